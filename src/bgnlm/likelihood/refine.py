"""Second look at models whose scores rounding of the Gram matrix leaves uncertain.

With an exact law among the columns, or nearly dependent columns, rounding would decide between models. They are scored
again from the triangular factor of the data, which is as good as the data themselves, best first.
"""

import dataclasses
import math

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.kernels import gram as kernels
from bgnlm.likelihood.gram import GramStatistics
from bgnlm.likelihood.subsets import SubsetScores
from bgnlm.likelihood.tabulate import TabulatedScore

# At most so many models, a few seconds; those beyond keep their cautious scores.
_MOST = 2**20


def refine(
    statistics: GramStatistics,
    score: TabulatedScore,
    result: SubsetScores,
    log_prior: FloatArray,
    window: float = math.inf,
) -> SubsetScores:
    """Score the uncertain models of `score_all_subsets` again; what is left uncertain is in the result.

    Models that cannot come within `window` nats of the best are not looked at.
    """
    if not len(result.uncertain):
        return result
    reach = result.best_scores + log_prior[result.uncertain]
    matters = np.flatnonzero(reach >= float((result.scores + log_prior).max()) - window)
    order = matters[np.argsort(-reach[matters], kind="stable")][:_MOST]
    looked_at = result.uncertain[order]
    if not len(order):
        return result
    found, floors = np.empty(len(looked_at)), np.empty(len(looked_at))
    rows = statistics.with_ridge(score.exact.ridge)[1]
    determinants = np.empty(len(looked_at) if score.exact.uses_determinant else 0)
    kernels.fit_subsets(rows, statistics.noise, looked_at, found, floors, determinants, np.empty((0, 0)))
    deficient = found == kernels.RANK_DEFICIENT
    residuals, scores = result.residuals.copy(), result.scores.copy()
    residuals[looked_at] = np.where(deficient, found, np.maximum(found, floors))
    scores[looked_at] = _scores(score, result, looked_at, residuals[looked_at], determinants)
    return dataclasses.replace(
        result,
        statistics=result.statistics._replace(residuals=residuals),
        scores=scores,
        exact=looked_at[~deficient & (found <= floors)],
        uncertain=np.delete(result.uncertain, order),
        best_scores=np.delete(result.best_scores, order),
    )


def _scores(
    score: TabulatedScore, result: SubsetScores, models: np.ndarray, residuals: FloatArray, determinants: FloatArray
) -> FloatArray:
    """Scores with residuals that are taken as exact."""
    old = result.statistics
    chosen = old._replace(
        sizes=old.sizes[models],
        residuals=residuals,
        pivots=np.ones(len(models), dtype=np.float32),
        log_determinants=determinants,
        error=0.0,
    )
    scores = np.empty(len(models))
    lowest = kernels.lowest_residual(chosen)
    table = score.table(int(chosen.sizes.max()), lowest)
    kernels.score_statistics(chosen, table, lowest, scores, np.empty(0, dtype=np.int64), np.empty(0))
    return scores
