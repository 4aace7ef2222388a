"""Exploration of one population: all models, Algorithm 1, or models drawn by a quadratic approximation."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bgnlm._typing import BoolArray, FloatArray, IntArray
from bgnlm.errors import ModelStatusWarning
from bgnlm.kernels.model_store import ModelStore
from bgnlm.likelihood.gaussian_fit import GaussianPopulation
from bgnlm.likelihood.glm_fit import GlmPopulation
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.likelihood.subsets import unpack
from bgnlm.likelihood.surrogate import QuadraticSurrogate, quadratic_surrogate
from bgnlm.search.config import SearchConfig, choose_engine
from bgnlm.search.exhaustive import ScoredModels, log_prior_of_subsets, score_models
from bgnlm.search.mjmcmc import KERNELS, climb_compiled, log_joint_compiled, run_mjmcmc
from bgnlm.search.optimizers import GREEDY, most_models_of_a_climb
from bgnlm.search.target import TOLERANCE, FunctionTarget, gram_target, surrogate_target
from bgnlm.search.visited import log_sum

Models = GaussianPopulation | GlmPopulation

_EXPANSIONS = 3
_MATTERS = 25.0  # nats below the total; what is further down adds nothing to the probability of a column
_NEAR = 30.0  # nats of the approximation
_FLIPPED = 0.02


@dataclass(frozen=True, eq=False)
class Explored:
    """Models of a population that were scored exactly.

    Attributes
    ----------
    included, log_marginal
        Models that are to be stored, as rows of Booleans, and their scores.
    log_discarded
        Log of the summed p(y | m) p(m) of the models that are not.
    probabilities
        Of each column, renormalised over all models scored.
    best
        The best model.
    best_log_joint
        Its log joint probability.
    model
        Where the chain ended; the best model where there is no chain.
    n_scored
        Models scored, repetitions included.
    tally
        Use and acceptance of each kernel of Algorithm 1.
    """

    included: BoolArray
    log_marginal: FloatArray
    log_discarded: float
    probabilities: FloatArray
    best: BoolArray
    best_log_joint: float
    model: BoolArray
    n_scored: int
    tally: IntArray


def explore(
    rng: np.random.Generator,
    models: Models,
    costs: FloatArray,
    config: SearchConfig,
    start: BoolArray,
    n_steps: int,
    best_so_far: float,
) -> Explored:
    """Explore the models over the columns of a population.

    Parameters
    ----------
    costs
        Nats of prior that each column costs a model.
    start
        Model to start from.
    best_so_far
        Best log joint of other populations: what is further below than the window need not be stored.
    """
    n_columns = len(costs)
    limit = config.limits.max_model_size
    max_size = n_columns if limit is None else min(limit, n_columns)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelStatusWarning)
        match engine_of(models, config, n_columns):
            case "exhaustive":
                return _explore_all(models, costs, max_size, config, best_so_far)
            case "surrogate":
                assert isinstance(models, GlmPopulation)
                return _explore_by_surrogate(rng, models, costs, max_size, start, config.n_draws)
            case _:
                return _explore_by_mjmcmc(rng, models, costs, max_size, config, start, n_steps)


def engine_of(models: Models, config: SearchConfig, n_columns: int) -> str:
    """How a population of so many columns is explored."""
    return choose_engine(config.engine, isinstance(models, GaussianPopulation), n_columns)


def _explore_all(
    models: Models, costs: FloatArray, max_size: int, config: SearchConfig, best_so_far: float
) -> Explored:
    scored = score_models(models, costs, max_size, TOLERANCE, config.window + 10.0)
    log_joint = scored.log_marginal + scored.log_prior
    best = int(np.argmax(log_joint))
    probabilities, total = _inclusion(log_joint, scored)
    kept = log_joint >= max(float(log_joint[best]), best_so_far) - config.window
    if kept.sum() > config.max_models:
        kept[np.argsort(-log_joint, kind="stable")[config.max_models :]] = False
    best_model = _unpacked(scored, np.array([best]))[0]
    return Explored(
        included=_unpacked(scored, np.flatnonzero(kept)),
        log_marginal=scored.log_marginal[kept],
        log_discarded=log_sum(log_joint[~kept]) if total > -np.inf else -np.inf,
        probabilities=probabilities,
        best=best_model,
        best_log_joint=float(log_joint[best]),
        model=best_model,
        n_scored=len(log_joint),
        tally=np.zeros((2, len(KERNELS)), np.int64),
    )


def _inclusion(log_joint: FloatArray, scored: ScoredModels) -> tuple[FloatArray, float]:
    total = log_sum(log_joint)
    if not np.isfinite(total):
        return np.zeros(len(scored.order)), -np.inf
    heavy = np.flatnonzero(log_joint > total - _MATTERS)
    return np.minimum(np.exp(log_joint[heavy] - total) @ _unpacked(scored, heavy), 1.0), total


def _unpacked(scored: ScoredModels, models: IntArray) -> BoolArray:
    included = np.empty((len(models), len(scored.order)), dtype=np.bool_)
    included[:, scored.order] = unpack(scored.masks[models], len(scored.order))
    return included


def summary_of(
    included: BoolArray,
    log_joint: FloatArray,
    costs: FloatArray,
    model: BoolArray | None,
    n_scored: int,
    tally: IntArray,
    log_discarded: float = -np.inf,
) -> Explored:
    """Summary of models that are all stored, as far as they exist."""
    exists = np.isfinite(log_joint)
    included, log_joint = included[exists], log_joint[exists]
    if not len(included):
        included, log_joint = np.zeros((1, len(costs)), np.bool_), np.array([-np.inf])
    best = int(np.argmax(log_joint))
    total = log_sum(log_joint)
    weights = np.exp(log_joint - total) if np.isfinite(total) else np.zeros(len(log_joint))
    return Explored(
        included=included,
        log_marginal=log_joint + included @ costs,
        log_discarded=log_discarded,
        probabilities=np.minimum(weights @ included, 1.0),
        best=included[best],
        best_log_joint=float(log_joint[best]),
        model=included[best] if model is None else model,
        n_scored=n_scored,
        tally=tally,
    )


def _explore_by_mjmcmc(
    rng: np.random.Generator,
    models: Models,
    costs: FloatArray,
    max_size: int,
    config: SearchConfig,
    start: BoolArray,
    n_steps: int,
) -> Explored:
    if isinstance(models, GaussianPopulation):
        starts = starting_points(start, max_size, models.score.exact.n_slots)
        room = 4 * n_steps + len(starts) * most_models_of_a_climb(len(costs))
        gram = gram_target(models, costs, max_size, room)
        if len(starts) > 1:
            peaks = [climb_compiled(rng, gram, GREEDY, each) for each in starts]
            start = max(peaks, key=lambda peak: log_joint_compiled(gram, peak))
        run = run_mjmcmc(rng, gram, config.mjmcmc, start, n_steps)
        store = run.target.store
        included, log_joint = stored_models(store, len(costs))
        log_joint = log_joint + models.score.exact.log_null  # the target's scores are relative to the null model
        return summary_of(included, log_joint, costs, run.model, int(store.count[1]), run.tally)
    target = FunctionTarget(exact_score(models, costs, max_size))
    surrogate, start = expand(rng, models, costs, max_size, start, target.log_joint)
    target.guide = surrogate_target(surrogate, costs, max_size, models.score.n_slots)
    run = run_mjmcmc(rng, target, config.mjmcmc, start, n_steps)
    included = np.frombuffer(b"".join(target.values), dtype=np.bool_).reshape(len(target.values), len(costs))
    log_joint = np.fromiter(target.values.values(), np.float64)
    return summary_of(included, log_joint, costs, run.model, target.n_asked, run.tally)


def _explore_by_surrogate(
    rng: np.random.Generator,
    models: GlmPopulation,
    costs: FloatArray,
    max_size: int,
    start: BoolArray,
    n_draws: int,
) -> Explored:
    """Draw different models with probabilities proportional to the approximation, score them exactly.

    A few are the drawn ones with columns flipped at random, so that every model has its chance.
    """
    n_columns = len(costs)
    surrogate, start = expand(rng, models, costs, max_size, start, exact_score(models, costs, max_size))
    approximate = surrogate.scores(max_size) + log_prior_of_subsets(costs)
    if models.score.n_slots:
        approximate += log_sizes(log_prior_of_subsets(np.full(n_columns, -1.0)).astype(np.int64), models.score.n_slots)
    near = np.flatnonzero(approximate >= approximate.max() - _NEAR)
    # With Gumbel noise the largest are a sample without replacement.
    noisy = approximate[near] + rng.gumbel(size=len(near))
    drawn = np.argpartition(noisy, len(near) - n_draws)[-n_draws:] if n_draws < len(near) else np.arange(len(near))
    included = unpack(near[drawn[np.argsort(-noisy[drawn], kind="stable")]], n_columns)
    n_flipped = max(n_draws - len(included), int(_FLIPPED * n_draws), 1)
    flipped = included[np.arange(n_flipped) % len(included)] ^ (
        rng.random((n_flipped, n_columns)) < 1.0 / max(n_columns, 1)
    )
    included = np.vstack([included, flipped[flipped.sum(axis=1) <= max_size], start[None, :]])
    included = np.unique(included, axis=0)
    log_joint = models.score.log_marginals(included)[0] - included @ costs
    return summary_of(included, log_joint, costs, None, len(included), np.zeros((2, len(KERNELS)), np.int64))


def exact_score(models: GlmPopulation, costs: FloatArray, max_size: int) -> Callable[[BoolArray], float]:
    """Return the function that computes the log joint of one generalized linear model."""

    def score(included: BoolArray) -> float:
        if included.sum() > max_size:
            return -np.inf
        return float(models.score.log_marginals(included[None, :])[0][0] - included @ costs)

    return score


def expand(
    rng: np.random.Generator,
    models: GlmPopulation,
    costs: FloatArray,
    max_size: int,
    start: BoolArray,
    score: Callable[[BoolArray], float],
) -> tuple[QuadraticSurrogate, BoolArray]:
    """Approximation at the mode of a good model, and that model: climb, expand where that led, climb again."""
    statistics, precision = models.score.statistics, models.score.normal_precision

    def ascend(model: BoolArray) -> tuple[float, QuadraticSurrogate, BoolArray]:
        best, best_value = model, score(model)
        surrogate = quadratic_surrogate(statistics, np.flatnonzero(best), precision)
        for _ in range(_EXPANSIONS):
            target = surrogate_target(surrogate, costs, max_size, models.score.n_slots)
            peak = climb_compiled(rng, target, GREEDY, best)
            value = score(peak)
            if not value > best_value:
                break
            best, best_value = peak, value
            surrogate = quadratic_surrogate(statistics, np.flatnonzero(best), precision)
        return best_value, surrogate, best

    found = map(ascend, starting_points(start, max_size, models.score.n_slots))
    _, surrogate, best = max(found, key=lambda one: one[0])
    return surrogate, best


def starting_points(start: BoolArray, max_size: int, n_slots: int) -> list[BoolArray]:
    """Return where to climb from: where the share of features that matter is unknown, there can be two peaks."""
    return [start, np.ones_like(start)] if n_slots and len(start) <= max_size else [start]


def stored_models(store: ModelStore, n_columns: int) -> tuple[BoolArray, FloatArray]:
    """Models of a store as rows of Booleans, and their values."""
    n_models = int(store.count[0])
    as_bytes = store.bits[:n_models].astype("<u8").view(np.uint8).reshape(n_models, -1)
    included = np.unpackbits(as_bytes, axis=1, bitorder="little")[:, :n_columns].astype(np.bool_)
    return included, store.values[:n_models]
