"""A quadratic stand-in for generalized linear models: all models at the price of Gaussian ones.

The log-likelihood is replaced by its second-order expansion in the linear predictor at the mode of one model. Under a
normal prior every marginal likelihood is then a Gaussian integral that elimination of a weighted Gram matrix gives:
good for climbing and screening, exact (to Laplace's method) for the model it is expanded at, no replacement elsewhere.
"""

import math
from dataclasses import dataclass

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.kernels import families as row_kernels
from bgnlm.kernels import glm as kernels
from bgnlm.kernels import gram as gram_kernels
from bgnlm.kernels import surrogate as surrogate_kernels
from bgnlm.likelihood.glm import GlmStatistics
from bgnlm.likelihood.subsets import GRAM_ERROR

_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True, eq=False)
class QuadraticSurrogate:
    """Expansion of the models of a population at the mode of one of them, under a normal prior.

    Attributes
    ----------
    matrix
        Posterior precision of the slopes of the model with all columns, scaled to unit diagonal, and the gradient as
        last row and column; the last corner is what all columns together can gain, and more.
    corner
        That corner before scaling.
    prior_matrix
        Prior precision of these slopes, scaled to unit diagonal.
    cost
        What each column adds to the score by itself.
    constant
        Score of the model without columns.
    """

    matrix: FloatArray
    corner: float
    prior_matrix: FloatArray
    cost: FloatArray
    constant: float

    def scores(self, max_size: int | None = None) -> FloatArray:
        """Approximate log p(y | m) of all models, in the order of their masks; -inf for dependent columns."""
        n_columns = len(self.cost)
        scores = np.empty(2**n_columns)
        surrogate_kernels.score_all_models(
            self.matrix, self.prior_matrix, self.cost, self.corner, self.constant, GRAM_ERROR, scores
        )
        if max_size is not None and max_size < n_columns:
            sizes = np.empty(len(scores), dtype=np.int16)
            gram_kernels.subset_sizes(sizes)
            scores[sizes > max_size] = -np.inf
        return scores


def quadratic_surrogate(statistics: GlmStatistics, columns: IntArray, precision: FloatArray) -> QuadraticSurrogate:
    """Expand at the mode of the model with `columns`; slopes of the model with all columns have this `precision`."""
    data, size = statistics.data, len(columns)
    work = kernels.workspace(len(data.y), size)
    mode = np.append(statistics.intercept, np.zeros(size))
    here = np.ascontiguousarray(precision[np.ix_(columns, columns)])
    fit = kernels.fit_mode(data, statistics.dispersion, columns, size, here, kernels.ENOUGH, mode, work)
    row_kernels.row_terms(data.family, fit.dispersion, data.y, data.weights, work.eta, work.score, work.information)
    weights = np.maximum(work.information, 1e-300)
    eta = work.eta - data.offset
    working = eta + work.score / weights  # response of the equivalent least-squares problem
    total = float(weights.sum())
    centre = (data.design @ weights) / total
    design = data.design - centre[:, None]
    mean = float(weights @ working) / total
    target = working - mean
    matrix = (design * weights) @ design.T + precision
    gradient = design @ (weights * target)
    diagonal = np.diag(matrix)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0))  # a column that does not vary stays zero
    gain = float(gradient @ np.linalg.lstsq(matrix, gradient, rcond=None)[0])
    corner = 1.01 * gain + 1e-12
    augmented = np.empty((len(scale) + 1, len(scale) + 1))
    augmented[:-1, :-1] = matrix * np.outer(scale, scale)
    augmented[-1, :-1] = augmented[:-1, -1] = gradient * scale / math.sqrt(corner)
    augmented[-1, -1] = 1.0
    own = np.diag(precision)
    unit = 1.0 / np.sqrt(np.where(own > 0.0, own, 1.0))
    constants = row_kernels.log_constants(data.family, fit.dispersion, data.y, data.weights)
    at_mode = float(fit.log_likelihood) + constants
    # l(eta) = l(mode) + 1/2 sum w (working - mode)^2 - 1/2 sum w (working - eta)^2
    expansion = at_mode + 0.5 * float(weights @ np.square(working - eta)) - 0.5 * float(weights @ np.square(target))
    n_flat = 1 + int(statistics.family.has_dispersion)
    return QuadraticSurrogate(
        matrix=augmented,
        corner=corner,
        prior_matrix=precision * np.outer(unit, unit),
        cost=np.log(scale) - np.log(unit),
        constant=expansion + 0.5 * (n_flat * _LOG_2PI - math.log(total) - float(fit.log_curvature)),
    )
