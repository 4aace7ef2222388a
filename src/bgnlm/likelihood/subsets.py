"""Gaussian scores of many subsets of columns at once, without a pass over the data for each of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bgnlm._typing import AnyArray, BoolArray, FloatArray, IntArray
from bgnlm.kernels import gram as kernels
from bgnlm.likelihood.gaussian import GaussianScore
from bgnlm.likelihood.gram import GramStatistics
from bgnlm.likelihood.status import ModelStatus
from bgnlm.likelihood.tabulate import TabulatedScore

# Pivots of unit-norm columns at or below this mean linear dependence; the pivots themselves are good to 1e-14.
RANK_TOLERANCE = 1e-12
# Rounding of RSS / TSS computed from the Gram matrix, times the smallest pivot (measured: below 50 eps).
_GRAM_ERROR = 50.0 * float(np.finfo(np.float64).eps)
_IMPRECISE = 1e-3


@dataclass(frozen=True, eq=False)
class SubsetScores:
    """Scores relative to the null model, with what they were computed from.

    `scores` never gains from rounding. The models in `exact` leave nothing but rounding errors; those in
    `uncertain` have at most `best_scores`.
    """

    sizes: AnyArray
    residuals: FloatArray
    pivots: AnyArray
    log_determinants: FloatArray  # empty unless the prior needs them
    scores: FloatArray
    exact: IntArray
    uncertain: IntArray
    best_scores: FloatArray


def score_all_subsets(statistics: GramStatistics, score: TabulatedScore, max_size: int) -> SubsetScores:
    """Score every model of at most `max_size` columns; entry i is the model with the bits of i."""
    n_models = 2**statistics.n_columns
    residuals = np.full(n_models, kernels.RANK_DEFICIENT)
    pivots = np.empty(n_models, dtype=np.float32)
    log_determinants = np.empty(n_models if score.exact.uses_determinant else 0)
    kernels.eliminate_all_subsets(
        statistics.with_ridge(score.exact.ridge),
        max_size,
        RANK_TOLERANCE,
        residuals,
        pivots,
        log_determinants,
    )
    sizes = np.empty(n_models, dtype=np.int8)
    kernels.subset_sizes(sizes)
    return _scored(statistics, score, sizes, residuals, pivots, log_determinants)


def score_subsets(statistics: GramStatistics, score: TabulatedScore, included: BoolArray) -> SubsetScores:
    """Score the models given as rows of a Boolean matrix (models, columns)."""
    n_models = len(included)
    residuals, pivots = np.empty(n_models), np.empty(n_models, dtype=np.float32)
    log_determinants = np.empty(n_models if score.exact.uses_determinant else 0)
    kernels.eliminate_subsets(
        statistics.with_ridge(score.exact.ridge),
        pack(included),
        RANK_TOLERANCE,
        residuals,
        pivots,
        log_determinants,
    )
    sizes = included.sum(axis=1, dtype=np.int16)
    return _scored(statistics, score, sizes, residuals, pivots, log_determinants)


def pack(included: BoolArray) -> AnyArray:
    """Rows of Booleans as bit masks of shape (models, words of 64 columns), column 0 in the lowest bit."""
    n_words = max(1, -(-included.shape[1] // 64))
    padded = np.zeros((len(included), 64 * n_words), dtype=np.uint8)
    padded[:, : included.shape[1]] = included
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def status_of(statistics: GramStatistics, result: SubsetScores) -> AnyArray:
    """`ModelStatus` of each model, as small integers."""
    status = np.zeros(len(result.scores), dtype=np.int8)
    gain = result.best_scores - result.scores[result.uncertain]
    status[result.uncertain[gain > _IMPRECISE]] = ModelStatus.IMPRECISE
    status[result.exact] = ModelStatus.PERFECT_FIT
    if statistics.constant_response:
        status[:] = ModelStatus.CONSTANT_RESPONSE
    status[result.sizes >= statistics.n_obs - 1] = ModelStatus.SATURATED
    status[result.residuals == kernels.RANK_DEFICIENT] = ModelStatus.RANK_DEFICIENT
    return status


def steepest_slope(score: GaussianScore) -> float:
    """Largest slope of the score in log RSS, for the effect of rounding on it."""
    known = score.known_variance
    return max(0.5 * score.n_obs, 0.0 if known is None else 0.5 * float(np.exp(score.log_total)) / known)


def exact_scores(
    statistics: GramStatistics,
    score: TabulatedScore,
    result: SubsetScores,
    models: IntArray,
    residuals: FloatArray,
) -> FloatArray:
    """Scores of some of the models of `result` with other residuals, taken as exact."""
    log_determinants = result.log_determinants[models] if score.exact.uses_determinant else result.log_determinants
    scores = np.empty(len(models))
    kernels.score_statistics(
        *_arguments(statistics, score, 0.0, result.sizes[models], residuals, result.pivots[models], log_determinants),
        scores,
    )
    return scores


def _scored(
    statistics: GramStatistics,
    score: TabulatedScore,
    sizes: AnyArray,
    residuals: FloatArray,
    pivots: AnyArray,
    log_determinants: FloatArray,
) -> SubsetScores:
    arguments = _arguments(statistics, score, _GRAM_ERROR, sizes, residuals, pivots, log_determinants)
    scores = np.empty(len(sizes))
    n_uncertain = kernels.score_statistics(*arguments, scores)
    uncertain, best_scores = np.empty(n_uncertain, dtype=np.int64), np.empty(n_uncertain)
    if n_uncertain:
        kernels.uncertain_scores(*arguments, uncertain, best_scores)
    exact = np.empty(0, dtype=np.int64)
    return SubsetScores(sizes, residuals, pivots, log_determinants, scores, exact, uncertain, best_scores)


def _arguments(
    statistics: GramStatistics,
    score: TabulatedScore,
    error: float,
    sizes: AnyArray,
    residuals: FloatArray,
    pivots: AnyArray,
    log_determinants: FloatArray,
) -> tuple[Any, ...]:
    """What the two scoring kernels take, but for where they write."""
    lowest = kernels.residual_range(residuals, pivots, error, statistics.lowest_residual)
    return (
        score.table(int(sizes.max()), lowest),
        0.5 if score.exact.uses_determinant else 0.0,
        statistics.lowest_residual,
        error,
        steepest_slope(score.exact),
        sizes,
        residuals,
        pivots,
        log_determinants,
    )
