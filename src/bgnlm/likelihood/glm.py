"""Marginal likelihoods of generalized linear models by Laplace's method (section 3.1).

Two kinds of g-prior. With information "null" (Sabanes Bove and Held 2011) the slopes are N(0, g (X' W_0 X)^-1), W_0 the
weights of the null model and X centred in them; the mode is finite even where the classes separate, and for each g
Laplace's method is applied at the mode under that g. With information "local" (Li and Clyde 2018) everything is
expanded at the maximum likelihood estimate, and the integral over g depends on k and the quadratic form Q alone.
"""

import math
from dataclasses import dataclass

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.kernels import glm as kernels
from bgnlm.likelihood.families import Family


@dataclass(frozen=True, eq=False)
class GlmStatistics:
    """What all models of a population of columns share.

    Attributes
    ----------
    n_obs
        Sum of the weights.
    data
        Response, weights, offset and columns for the kernels; the columns are centred in the weights W_0 of the null
        model and scaled to unit norm in them.
    means, norms
        What was subtracted from and divided out of each column.
    deviations
        Standard deviation of each column (by frequency weights), in units of its norm.
    intercept, dispersion
        The null model.
    constant_response
        Whether the response leaves the null model without a mode: all zero, all one.
    """

    family: Family
    n_obs: float
    data: kernels.GlmData
    means: FloatArray
    norms: FloatArray
    deviations: FloatArray
    intercept: float
    dispersion: float
    constant_response: bool

    @property
    def n_columns(self) -> int:
        """Number of columns a model can choose from."""
        return len(self.means)

    def original(self, columns: IntArray) -> FloatArray:
        """Return an intercept and the columns as they were given."""
        values = self.data.design[columns] * self.norms[columns, None] + self.means[columns, None]
        return np.column_stack([np.ones(len(self.data.y)), values.T])

    def start(self) -> FloatArray:
        """Return coefficients to start from: the null model."""
        return np.append(self.intercept, np.zeros(self.n_columns))


def glm_statistics(
    family: Family, y: FloatArray, X: FloatArray, weights: FloatArray, offset: FloatArray
) -> GlmStatistics:
    """Fit the null model, centre and scale the columns in its metric."""
    used = weights > 0
    if not used.all():
        y, X, weights, offset = y[used], X[used], weights[used], offset[used]
    constant = is_constant(family, y, offset)
    intercept, dispersion = null_model(family, y, weights, offset, constant)
    information = weights * family.expected_information(intercept + offset, dispersion)
    design = np.empty((X.shape[1], len(y)))
    means, norms, deviations = np.empty((3, X.shape[1]))
    for j in range(X.shape[1]):
        means[j], norms[j], deviations[j] = _standardise(X[:, j], weights, information, design[j])
    gram = (design * information) @ design.T
    return GlmStatistics(
        family=family,
        n_obs=float(weights.sum()),
        data=kernel_data(family, y, weights, offset, design, np.ascontiguousarray(gram), intercept),
        means=means,
        norms=norms,
        deviations=deviations,
        intercept=intercept,
        dispersion=dispersion,
        constant_response=constant,
    )


def kernel_data(
    family: Family,
    y: FloatArray,
    weights: FloatArray,
    offset: FloatArray,
    design: FloatArray,
    gram: FloatArray,
    intercept: float,
) -> kernels.GlmData:
    """Arrange data for the kernels."""
    reach = np.abs(design).max(axis=1, initial=0.0)
    return kernels.GlmData(family.code, y, weights, offset, design, reach, gram, intercept)


def is_constant(family: Family, y: FloatArray, offset: FloatArray) -> bool:
    """Whether the null model has no mode: nothing but zeros (or ones), or no variation beyond the offset."""
    relative = y * np.exp(np.clip(offset.mean() - offset, -500.0, 500.0)) if family.name == "gamma" else y
    lowest, highest = float(relative.min()), float(relative.max())
    match family.name:
        case "binomial":
            return highest == 0.0 or lowest == 1.0
        case "gamma":
            return highest - lowest <= 1e-13 * highest
        case _:
            return highest == 0.0


def null_model(
    family: Family, y: FloatArray, weights: FloatArray, offset: FloatArray, constant: bool
) -> tuple[float, float]:
    """Intercept and dispersion of the model without columns.

    Without a mode, half an observation is added on either side.
    """
    total = float(weights.sum())
    mean = float(weights @ y) / total
    if constant and family.name != "gamma":
        mean = (mean * total + 0.5) / (total + 1.0)
    mean_offset = float(weights @ offset) / total
    start = np.array(
        [family.linear_predictor(min(max(mean, 1e-12), 1.0 - 1e-12 if family.name == "binomial" else mean))]
    )
    start -= mean_offset
    if constant:
        return float(start[0]), 1.0
    data = kernel_data(family, y, weights, offset, np.empty((0, len(y))), np.empty((0, 0)), float(start[0]))
    none, work = np.empty(0, dtype=np.int64), kernels.workspace(len(y), 0)
    mode = kernels.fit_mode(data, 1.0, none, 0, np.empty((0, 0)), kernels.ENOUGH, start, work)
    return float(start[0]), float(mode.dispersion)


def _standardise(
    x: FloatArray, weights: FloatArray, information: FloatArray, out: FloatArray
) -> tuple[float, float, float]:
    """Centre and scale in the metric of the null model; mean, norm, and standard deviation in units of the norm."""
    largest = float(np.abs(x).max()) or 1.0
    np.divide(x, largest, out=out)
    total = float(information.sum())
    mean = float(information @ out) / total
    out -= mean
    rest = float(information @ out) / total  # what rounding left of the mean
    out -= rest
    norm = math.sqrt(float(information @ np.square(out)))
    mean = largest * (mean + rest)
    if norm <= 1e-13 * math.sqrt(total) or largest * norm < 1e-150:
        out[:] = 0.0
        return mean, 0.0, 0.0
    plain_mean = float(weights @ out) / float(weights.sum())
    deviation = math.sqrt(float(weights @ np.square(out - plain_mean)) / float(weights.sum()))
    out /= norm
    return mean, largest * norm, deviation / norm
