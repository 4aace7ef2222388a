"""Second look at the leading models whose scores rounding of the Gram matrix leaves uncertain.

With an exact law among the columns, or nearly dependent columns, rounding would decide between models.
The models that could matter are scored again from their residuals, best first.
"""

import dataclasses

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.kernels import gram as kernels
from bgnlm.likelihood.gram import GramStatistics
from bgnlm.likelihood.subsets import SubsetScores, exact_scores
from bgnlm.likelihood.tabulate import TabulatedScore

# Models further below the best than this do not matter: e^-30 each, even a million of them together.
_WINDOW = 30.0
_BATCH = 256
# Multiplications spent on it, about a second; models beyond keep their cautious score.
_EFFORT = 2e9


def refine_leaders(
    statistics: GramStatistics, score: TabulatedScore, result: SubsetScores, log_prior: FloatArray
) -> SubsetScores:
    """Score uncertain models within reach of the best one again; `result` is of `score_all_subsets`.

    Supersets of a model that explains the response to the last digit do so too and need no second look.
    """
    if not len(result.uncertain):
        return result
    residuals, scores = result.residuals.copy(), result.scores.copy()
    best_joint = result.best_scores + log_prior[result.uncertain]
    order = np.argsort(-best_joint, kind="stable")
    waiting, best_joint, best_scores = result.uncertain[order], best_joint[order], result.best_scores[order]
    design, response, matrix = _with_ridge(statistics, score.exact.ridge)
    exact = []
    effort = 0.0
    while len(waiting) and effort < _EFFORT:
        batch = waiting[:_BATCH]
        found, floors = np.empty(len(batch)), np.empty(len(batch))
        kernels.residuals_from_data(design, response, matrix, statistics.noise, batch, found, floors)
        effort += 6.0 * len(response) * float(result.sizes[batch].sum())
        residuals[batch] = np.maximum(found, floors)
        done = np.arange(len(waiting)) < len(batch)
        for law in _minimal(batch[found <= floors]):
            supersets = (waiting & law) == law
            residuals[waiting[supersets]] = residuals[law]
            exact.append(waiting[supersets])
            done |= supersets
        scores[waiting[done]] = exact_scores(statistics, score, result, waiting[done], residuals[waiting[done]])
        keep = ~done & (best_joint > (scores + log_prior).max() - _WINDOW)
        waiting, best_joint, best_scores = waiting[keep], best_joint[keep], best_scores[keep]
    return dataclasses.replace(
        result,
        residuals=residuals,
        scores=scores,
        exact=np.concatenate([result.exact, *exact]),
        uncertain=waiting,
        best_scores=best_scores,
    )


def _minimal(models: IntArray) -> list[int]:
    """The models that contain no other of them."""
    found: list[int] = []
    for model in sorted(models.tolist(), key=int.bit_count):
        if not any(model & small == small for small in found):
            found.append(model)
    return found


def _with_ridge(statistics: GramStatistics, ridge: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Columns, response and Gram matrix; a ridge is the same as one more row per column, with response 0."""
    if not ridge:
        return statistics.design, statistics.response, statistics.matrix
    p = statistics.n_columns
    design = np.hstack([statistics.design, np.sqrt(ridge) * np.eye(p)])
    return design, np.concatenate([statistics.response, np.zeros(p)]), statistics.with_ridge(ridge)
