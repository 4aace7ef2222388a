"""Second look at models whose scores rounding of the Gram matrix leaves uncertain.

With an exact law among the columns, or nearly dependent columns, rounding would decide between models. They are scored
again from the triangular factor of the data, which is as good as the data themselves, best first.
"""

import dataclasses

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.kernels import gram as kernels
from bgnlm.likelihood.gram import GramStatistics
from bgnlm.likelihood.subsets import SubsetScores
from bgnlm.likelihood.tabulate import TabulatedScore

# At most so many models, a few seconds; those beyond keep their cautious scores.
_MOST = 2**20


def refine(
    statistics: GramStatistics, score: TabulatedScore, result: SubsetScores, log_prior: FloatArray
) -> SubsetScores:
    """Score the uncertain models of `score_all_subsets` again; what is left uncertain is in the result."""
    if not len(result.uncertain):
        return result
    order = np.argsort(-(result.best_scores + log_prior[result.uncertain]), kind="stable")
    looked_at, left = result.uncertain[order[:_MOST]], order[_MOST:]
    found, floors = np.empty(len(looked_at)), np.empty(len(looked_at))
    rows = statistics.with_ridge(score.exact.ridge)[1]
    kernels.fit_subsets(rows, statistics.noise, looked_at, found, floors, np.empty((0, 0)))
    deficient = found == kernels.RANK_DEFICIENT
    residuals, scores = result.residuals.copy(), result.scores.copy()
    residuals[looked_at] = np.where(deficient, found, np.maximum(found, floors))
    scores[looked_at] = _scores(score, result, looked_at, residuals[looked_at])
    return dataclasses.replace(
        result,
        statistics=result.statistics._replace(residuals=residuals),
        scores=scores,
        exact=looked_at[~deficient & (found <= floors)],
        uncertain=result.uncertain[left],
        best_scores=result.best_scores[left],
    )


def _scores(score: TabulatedScore, result: SubsetScores, models: np.ndarray, residuals: FloatArray) -> FloatArray:
    """Scores with residuals that are taken as exact."""
    old = result.statistics
    chosen = old._replace(
        sizes=old.sizes[models],
        residuals=residuals,
        pivots=np.ones(len(models), dtype=np.float32),
        log_determinants=old.log_determinants[models] if score.exact.uses_determinant else old.log_determinants,
        error=0.0,
    )
    scores = np.empty(len(models))
    lowest = kernels.lowest_residual(chosen)
    table = score.table(int(chosen.sizes.max()), lowest)
    kernels.score_statistics(chosen, table, lowest, scores, np.empty(0, dtype=np.int64), np.empty(0))
    return scores
