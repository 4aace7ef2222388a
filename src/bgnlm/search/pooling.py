"""Models drawn from the posterior over everything that was found together, for logistic regression.

Probabilities that are renormalised over the models visited are those of the few best ones where many thousand models
are nearly as good as each other, and no search visits them all. Here the chains' features and functions of single
inputs make one population, a pool, larger than any that chains explore. A Gibbs sampler draws from the posterior over
its models, and these count as often as they are drawn: the other estimate of section 3 of the paper. Given
Polya-Gamma variables the likelihood is normal, so that slopes are integrated out and a step takes a few operations.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bgnlm._typing import BoolArray, FloatArray, IntArray
from bgnlm.features import Evaluator, Feature, modify
from bgnlm.kernels import gibbs as kernels
from bgnlm.kernels.polya_gamma import draw_all
from bgnlm.likelihood.glm import GlmStatistics
from bgnlm.likelihood.glm_fit import GlmPopulation
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.search.classes import FeatureClasses, Identified
from bgnlm.search.problem import SearchProblem
from bgnlm.search.union import FoundModels
from bgnlm.search.visited import feature_key, rows_of

_ALIKE = 0.98  # correlation of columns of which one is enough
_RELATED = 0.6  # correlation of columns that can take each other's place
_ONE_ROW = 0.5  # share of its variation in a single row beyond which a column says nothing about others
_OF_FOUND = 0.5  # of the pool at most; the rest is for functions of single inputs
_STEPS = 3  # for each column, between draws
_BURN_IN = 0.25  # draws that are not kept, as a share of those that are
_MOST_AT_START = 0.5  # probability of the features that the sampler starts with


class PoolPrior(NamedTuple):
    """Variance of the slopes of standardised columns; nats that columns cost; log prior of sizes, and the largest."""

    variance: float
    costs: FloatArray
    sizes: FloatArray
    max_size: int


@dataclass(frozen=True, eq=False)
class PooledModels:
    """Models that were drawn, and how often each of them was."""

    found: FoundModels
    counts: IntArray


def draw_from_pool(
    rng: np.random.Generator, problem: SearchProblem, found: FoundModels, probabilities: FloatArray
) -> PooledModels:
    """Draw models over the features that were found, with these probabilities, and functions of single inputs."""
    evaluator = Evaluator(problem.X, problem.names, max_cached_bytes=2**27)
    classes = problem.classes(evaluator)
    by_probability = np.argsort(-probabilities, kind="stable")
    likely = {found.features[c] for c in np.flatnonzero(probabilities >= _MOST_AT_START)}
    members = _gather(problem, classes, [found.features[c] for c in by_probability if probabilities[c] > 0.0])
    costs = classes.costs_of(member.feature_class for member in members)
    population = problem.likelihood.population(evaluator.matrix(member.feature for member in members))
    assert isinstance(population, GlmPopulation)
    limit = problem.config.limits.max_model_size
    prior = PoolPrior(
        variance=problem.likelihood.prior["variance"],
        costs=costs,
        sizes=log_sizes(np.arange(len(members) + 1), problem.likelihood.n_slots),
        max_size=len(members) if limit is None else limit,
    )
    start = np.array([member.feature in likely for member in members], dtype=np.bool_)
    drawn = draw_models(rng, population.score.statistics, prior, start, problem.config.n_pool_draws)
    included, counts = np.unique(drawn, axis=0, return_counts=True)
    log_marginal = population.score.log_marginals(included)[0]
    features = tuple(classes.representatives[member.feature_class] for member in members)
    keys = np.array([feature_key(feature) for feature in features], dtype=np.uint64)
    rows = rows_of(included, np.arange(len(features)), keys, log_marginal)
    return PooledModels(FoundModels(features, costs, rows, -np.inf), counts)


def _gather(problem: SearchProblem, classes: FeatureClasses, found: list[Feature]) -> list[Identified]:
    """Members of the pool, no two of which are nearly the same: those found, inputs, and functions of one input."""
    size = problem.config.pool_size
    members: list[Identified] = []
    units = np.empty((size, len(problem.X)))

    def take(candidates: Iterator[Identified], up_to: int) -> None:
        for candidate in candidates:
            if len(members) >= up_to:
                return
            values = candidate.unit.values
            n = len(members)
            if np.square(values).max() <= _ONE_ROW and np.abs(units[:n] @ values).max(initial=0.0) <= _ALIKE:
                units[n] = values
                members.append(candidate)

    take(_identified(classes, found), int(_OF_FOUND * size))
    take(_identified(classes, problem.inputs), size)
    response = problem.builder.response.values
    singles = _identified(classes, _functions_of_one_input(problem))
    by_score = sorted(singles, key=lambda one: -abs(float(response @ one.unit.values)))
    take(iter(by_score), size)
    take(_identified(classes, found), size)  # where there are few functions, there is room for others
    return members


def _functions_of_one_input(problem: SearchProblem) -> list[Feature]:
    limits, is_used = problem.config.limits, problem.config.moves.modification > 0.0
    if not is_used or limits.max_depth < 1 or (limits.max_operations is not None and limits.max_operations < 1):
        return []
    return [modify(transform, x) for x in problem.inputs for transform in problem.transforms]


def _identified(classes: FeatureClasses, features: Iterable[Feature]) -> Iterator[Identified]:
    return (identified for feature in features if (identified := classes.identify(feature)) is not None)


def draw_models(
    rng: np.random.Generator, statistics: GlmStatistics, prior: PoolPrior, start: BoolArray, n_draws: int
) -> BoolArray:
    """Draw models, and between them their slopes and the Polya-Gamma variables, each given the others."""
    data, n_columns = statistics.data, statistics.n_columns
    deviations = np.where(statistics.deviations > 0.0, statistics.deviations, 1.0)
    design = np.vstack([data.design / deviations[:, None], np.ones(len(data.y))])
    included = start.copy()
    included[np.flatnonzero(included)[prior.max_size :]] = False
    pairs = _related(design[:-1])
    log_precision, precision = -np.log(prior.variance), np.append(np.full(n_columns, 1.0 / prior.variance), 0.0)
    predictor = np.full(len(data.y), statistics.intercept) + data.offset
    auxiliary, matrix = np.empty(len(data.y)), np.empty((n_columns + 2, n_columns + 2))
    n_dropped = int(np.ceil(_BURN_IN * n_draws))
    drawn = np.empty((n_draws, n_columns), dtype=np.bool_)
    for number in range(-n_dropped, n_draws):
        draw_all(rng, data.weights, predictor, auxiliary)
        matrix[:-1, :-1] = (design * auxiliary) @ design.T
        matrix[np.arange(n_columns + 1), np.arange(n_columns + 1)] += precision
        matrix[-1, :-1] = matrix[:-1, -1] = design @ (data.weights * (data.y - 0.5) - auxiliary * data.offset)
        matrix[-1, -1] = 0.0
        for k in (n_columns, *np.flatnonzero(included)):
            kernels.sweep(matrix, k, True)
        n_steps = _STEPS * n_columns
        kernels.move(rng, matrix, included, prior.costs, prior.sizes, log_precision, prior.max_size, pairs, n_steps)
        chosen = np.append(np.flatnonzero(included), n_columns)
        predictor = data.offset + _drawn_slopes(rng, matrix, chosen) @ design[chosen]
        if number >= 0:
            drawn[number] = included
    return drawn


def _drawn_slopes(rng: np.random.Generator, matrix: FloatArray, chosen: IntArray) -> FloatArray:
    """Slopes of the model that is swept: normal, with minus the swept block as covariance."""
    covariance = -matrix[np.ix_(chosen, chosen)]
    factor = np.linalg.cholesky(0.5 * (covariance + covariance.T))
    return np.asarray(matrix[chosen, -1] + factor @ rng.standard_normal(len(chosen)))


def _related(columns: FloatArray) -> IntArray:
    """Pairs of columns that can take each other's place."""
    if not len(columns):
        return np.empty((0, 2), dtype=np.int64)
    centred = columns - columns.mean(axis=1)[:, None]
    norms = np.maximum(np.sqrt(np.square(centred).sum(axis=1)), 1e-300)
    correlation = (centred @ centred.T) / np.outer(norms, norms)
    return np.argwhere(np.triu(np.abs(correlation), 1) > _RELATED).astype(np.int64)
