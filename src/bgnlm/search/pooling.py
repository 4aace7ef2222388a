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
from bgnlm.search.union import CommonClasses, FoundModels
from bgnlm.search.visited import distinct, feature_key, join, rows_of

_ALIKE = 0.98  # correlation of columns of which one is enough
_RELATED = 0.6  # correlation of columns that can take each other's place
_ONE_ROW = 0.5  # share of its variation in a single row beyond which a column says nothing about others
# Of the pool at most; the rest is for functions of single inputs.
_OF_FOUND, _OF_FOUND_AND_INPUTS = 0.5, 0.75
_STEPS = 3  # for each column, between draws
_FACTORS = 2.0 ** np.arange(0.0, 3.1, 0.25)  # on all prices, which may be dearer than the prior has them
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
    """Models that were visited or drawn, and how often each of them was drawn."""

    found: FoundModels
    counts: IntArray


def draw_from_pool(
    rng: np.random.Generator,
    problem: SearchProblem,
    common: CommonClasses,
    found: FoundModels,
    probabilities: FloatArray,
) -> PooledModels | None:
    """Draw models over features that were found, which have these probabilities, inputs and functions of one input.

    None for a response without variation.
    """
    evaluator = Evaluator(problem.X, problem.names, max_cached_bytes=2**27)
    classes = problem.classes(evaluator, common.table)
    by_probability = np.argsort(-probabilities, kind="stable")
    used = [found.features[c] for c in by_probability if probabilities[c] > 0.0]
    members = _gather(problem, classes, evaluator, used)
    numbers = np.array([member.feature_class for member in members], dtype=np.int64)
    population = problem.likelihood.population(evaluator.matrix(member.feature for member in members))
    assert isinstance(population, GlmPopulation)
    if population.score.statistics.constant_response:
        return None
    limit = problem.config.limits.max_model_size
    prior = PoolPrior(
        variance=problem.likelihood.prior["variance"],
        costs=classes.costs_of(numbers),
        sizes=log_sizes(np.arange(len(members) + 1), problem.likelihood.n_slots),
        max_size=len(members) if limit is None else limit,
    )
    start = np.append(probabilities, np.zeros(len(classes)))[numbers] >= _MOST_AT_START
    drawn = draw_models(rng, population.score.statistics, prior, start, problem.config.n_pool_draws)
    included, counts = np.unique(drawn, axis=0, return_counts=True)
    log_marginal = population.score.log_marginals(included)[0]
    features = tuple(classes.representatives)
    further = [feature_key(feature) for feature in features[len(common.keys) :]]
    keys = np.append(common.keys, np.array(further, dtype=np.uint64))
    rows = rows_of(included, numbers, keys[numbers], log_marginal)
    together = distinct(join([found.rows, rows]))
    all_counts = np.zeros(len(together), np.int64)
    all_counts[np.searchsorted(together.keys, rows.keys)] = counts
    return PooledModels(FoundModels(features, np.array(classes.costs), together, found.log_discarded), all_counts)


def _gather(
    problem: SearchProblem, classes: FeatureClasses, evaluator: Evaluator, found: list[Feature]
) -> list[Identified]:
    """Members of the pool, no two of which are nearly the same: those found, inputs, and functions of one input.

    Of inputs and functions those come first that explain most by themselves.
    """
    size = problem.config.pool_size
    members: list[Identified] = []
    units = np.empty((size + len(problem.keep), len(problem.builder.response.values)))

    def take(candidates: Iterable[Identified], up_to: float, *, whatever: bool = False) -> None:
        for candidate in candidates:
            n, values = len(members), candidate.unit.values
            if n >= up_to:
                return
            is_new = np.abs(units[:n] @ values).max(initial=0.0) <= _ALIKE
            if whatever or (is_new and np.square(values).max() <= _ONE_ROW):
                units[n] = values
                members.append(candidate)

    take(_identified(classes, problem.keep), np.inf, whatever=True)
    take(_identified(classes, found), _OF_FOUND * size)
    take(_by_score(problem, evaluator, _identified(classes, problem.inputs)), _OF_FOUND_AND_INPUTS * size)
    take(_by_score(problem, evaluator, _identified(classes, _functions_of_one_input(problem))), size)
    take(_identified(classes, [*found, *problem.inputs]), size)  # where there are few functions, there is room
    return members


def _by_score(problem: SearchProblem, evaluator: Evaluator, candidates: Iterable[Identified]) -> list[Identified]:
    """Candidates by their score test, beside intercept and offset."""
    listed = list(candidates)
    if not listed:
        return []
    population = problem.likelihood.population(evaluator.matrix(candidate.feature for candidate in listed))
    assert isinstance(population, GlmPopulation)
    statistics = population.score.statistics
    data = statistics.data
    mean = problem.likelihood.family.mean(statistics.intercept + data.offset)
    scores = np.abs(data.design @ (data.weights * (data.y - mean)))
    return [listed[j] for j in np.argsort(-scores, kind="stable")]


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
    costs = prior.costs.copy()
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
        kernels.move(rng, matrix, included, costs, prior.sizes, log_precision, prior.max_size, pairs, n_steps)
        costs = _drawn_costs(rng, included, prior.costs)
        chosen = np.append(np.flatnonzero(included), n_columns)
        predictor = data.offset + _drawn_slopes(rng, matrix, chosen) @ design[chosen]
        if number >= 0:
            drawn[number] = included
    return drawn


def _drawn_costs(rng: np.random.Generator, included: BoolArray, costs: FloatArray) -> FloatArray:
    """Prices given a model: those of the prior by a common factor, and of what is free there by an unknown share.

    Under given prices features are in models by themselves, each with odds e^-price.
    """
    log_weights = -_FACTORS * float(included @ costs) - np.logaddexp(0.0, -_FACTORS[:, None] * costs).sum(axis=1)
    weights = np.exp(log_weights - log_weights.max())
    drawn = rng.choice(_FACTORS, p=weights / weights.sum()) * costs
    is_free = costs == 0.0
    if is_free.any():
        n_in = int(included[is_free].sum())
        share = np.clip(rng.beta(1.0 + n_in, 1.0 + is_free.sum() - n_in), 1e-9, 1.0 - 1e-9)
        drawn[is_free] = np.log1p(-share) - np.log(share)
    return np.asarray(drawn)


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
    norms = np.maximum(np.sqrt(np.square(centred).sum(axis=1)), 1e-150)
    correlation = (centred @ centred.T) / np.outer(norms, norms)
    return np.argwhere(np.triu(np.abs(correlation), 1) > _RELATED).astype(np.int64)
