"""Gaussian scores of many subsets of columns at once, without a pass over the data for each of them."""

from dataclasses import dataclass

import numpy as np

from bgnlm._typing import AnyArray, BoolArray, FloatArray, IntArray
from bgnlm.kernels import gram as kernels
from bgnlm.likelihood.gaussian import GaussianScore
from bgnlm.likelihood.gram import GramStatistics
from bgnlm.likelihood.status import ModelStatus
from bgnlm.likelihood.tabulate import TabulatedScore

# Rounding of RSS / TSS computed from the Gram matrix, times the smallest pivot (measured: below 50 eps).
GRAM_ERROR = 50.0 * float(np.finfo(np.float64).eps)
_IMPRECISE = 1e-3
_ROOM = 2**20  # for uncertain models, before it is known how many there are
# Nats that rounding may move a score before it counts as uncertain.
TOLERANCE = 1e-7


@dataclass(frozen=True, eq=False)
class SubsetScores:
    """Scores relative to the null model, with what they were computed from.

    `scores` never gains from rounding. The models in `exact` leave nothing but rounding errors; those in
    `uncertain` have at most `best_scores`.
    """

    statistics: kernels.Statistics
    scores: FloatArray
    exact: IntArray
    uncertain: IntArray
    best_scores: FloatArray

    @property
    def sizes(self) -> AnyArray:
        """Number of columns of each model."""
        return np.asarray(self.statistics.sizes)

    @property
    def residuals(self) -> FloatArray:
        """RSS / TSS of each model, negative where it has none."""
        return np.asarray(self.statistics.residuals)


def score_all_subsets(
    statistics: GramStatistics, score: TabulatedScore, max_size: int, tolerance: float = TOLERANCE
) -> SubsetScores:
    """Score every model of at most `max_size` columns; entry i is the model with the bits of i.

    Best with columns in pivot order, because the highest is eliminated first.
    """
    n_models = 2**statistics.n_columns
    largest = max_size if score.exact.ridge else min(max_size, statistics.max_rank)
    sizes = np.empty(n_models, dtype=np.int8)
    kernels.subset_sizes(sizes)
    residuals = np.full(n_models, kernels.UNDECIDED)
    pivots = np.empty(n_models, dtype=np.float32)
    log_determinants = np.empty(n_models if score.exact.uses_determinant else 0)
    kernels.eliminate_all_subsets(
        statistics.with_ridge(score.exact.ridge)[0], largest, GRAM_ERROR, residuals, pivots, log_determinants
    )
    residuals[sizes > largest] = kernels.RANK_DEFICIENT
    return _scored(statistics, score, largest, tolerance, sizes, residuals, pivots, log_determinants)


def score_subsets(statistics: GramStatistics, score: TabulatedScore, included: BoolArray) -> SubsetScores:
    """Score the models given as rows of a Boolean matrix (models, columns)."""
    n_models = len(included)
    residuals, pivots = np.empty(n_models), np.empty(n_models, dtype=np.float32)
    log_determinants = np.empty(n_models if score.exact.uses_determinant else 0)
    kernels.eliminate_subsets(
        statistics.with_ridge(score.exact.ridge)[0], pack(included), GRAM_ERROR, residuals, pivots, log_determinants
    )
    sizes = included.sum(axis=1, dtype=np.int16)
    return _scored(statistics, score, int(sizes.max(initial=0)), TOLERANCE, sizes, residuals, pivots, log_determinants)


def pack(included: BoolArray) -> AnyArray:
    """Rows of Booleans as bit masks of shape (models, words of 64 columns), column 0 in the lowest bit."""
    n_words = max(1, -(-included.shape[1] // 64))
    padded = np.zeros((len(included), 64 * n_words), dtype=np.uint8)
    padded[:, : included.shape[1]] = included
    return np.packbits(padded, axis=1, bitorder="little").view("<u8").astype(np.uint64)


def unpack(masks: IntArray, n_columns: int) -> BoolArray:
    """Bit masks of up to 63 columns as rows of Booleans."""
    included = np.empty((len(masks), n_columns), dtype=np.bool_)
    for j in range(n_columns):
        included[:, j] = (masks >> j) & 1
    return included


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


def _scored(
    statistics: GramStatistics,
    score: TabulatedScore,
    max_size: int,
    tolerance: float,
    sizes: AnyArray,
    residuals: FloatArray,
    pivots: AnyArray,
    log_determinants: FloatArray,
) -> SubsetScores:
    found = kernels.Statistics(
        sizes=sizes,
        residuals=residuals,
        pivots=pivots,
        log_determinants=log_determinants,
        determinant_weight=0.5 if score.exact.uses_determinant else 0.0,
        lowest=statistics.lowest_residual,
        error=GRAM_ERROR,
        steepest=steepest_slope(score.exact),
        tolerance=tolerance,
    )
    lowest = kernels.lowest_residual(found)
    scores, none = np.empty(len(sizes)), np.empty(0, dtype=np.int64)
    room = min(len(sizes), _ROOM)
    uncertain, best_scores = np.empty(room, dtype=np.int64), np.empty(room)
    n_uncertain = kernels.score_statistics(found, score.table(max_size, lowest), lowest, scores, uncertain, best_scores)
    if n_uncertain > len(uncertain) or np.any(residuals[uncertain[:n_uncertain]] == kernels.UNDECIDED):
        # Nothing fits better than all columns together.
        bound = max(_residual_of_all(statistics, score.exact.ridge), statistics.lowest_residual)
        uncertain, best_scores = np.empty(n_uncertain, dtype=np.int64), np.empty(n_uncertain)
        table = score.table(max_size, min(bound, lowest))
        kernels.score_statistics(found, table, bound, scores, uncertain, best_scores)
    return SubsetScores(found, scores, none, uncertain[:n_uncertain], best_scores[:n_uncertain])


def _residual_of_all(statistics: GramStatistics, ridge: float) -> float:
    rows = statistics.with_ridge(ridge)[1]
    slopes = np.linalg.lstsq(rows[:, :-1], rows[:, -1], rcond=None)[0]
    left = rows[:, -1] - rows[:, :-1] @ slopes
    return float(left @ left) * (1.0 - 1e-6)
