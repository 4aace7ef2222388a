"""Generalized linear models one after the other, each from where those before it ended."""

import math
from typing import Any, NamedTuple

import numpy as np

from bgnlm.kernels._jit import jit
from bgnlm.kernels.glm import ENOUGH, fit_mode, workspace
from bgnlm.kernels.glm_algebra import cholesky, log_determinant

# Columns of the table that `walk_models` fills.
(
    LOG_LIKELIHOOD,
    PENALTY,
    LOG_DETERMINANT,
    LOG_CURVATURE,
    DISPERSION,
    PIVOT,
    QUADRATIC,
    TOTAL_INFORMATION,
    LOG_NULL_DETERMINANT,
) = range(9)
N_STATISTICS = 9

NO_PRIOR, NULL_INFORMATION, DIAGONAL = range(3)
_TRUSTED = 1e-3  # a fit with a smaller pivot has run away: no place to start from


class Scratch(NamedTuple):
    """Arrays to write to, so that a walk allocates nothing."""

    columns: Any  # of the present model
    coefficients: Any  # intercept first
    null: Any  # null information of the columns
    null_factor: Any  # its Cholesky factor
    precision: Any  # prior precision of the slopes
    work: Any


def scratch(n_rows: int, n_columns: int) -> Scratch:
    """Arrays for models of up to `n_columns` columns."""
    p = n_columns + 1
    return Scratch(
        np.empty(n_columns, np.int64),
        np.empty(p),
        np.empty((p, p)),
        np.empty((p, p)),
        np.empty((p, p)),
        workspace(n_rows, n_columns),
    )


@jit
def set_model(data, included, start, tolerance, space):
    """List the columns of a model, its first coefficients and its null information, in `space`.

    Returns the number of columns and the log determinant of the null information, NaN if they are linearly dependent.
    """
    size = 0
    for column in range(len(included)):
        if included[column]:
            space.columns[size] = column
            size += 1
    space.coefficients[0] = start[0]
    for a in range(size):
        space.coefficients[a + 1] = start[space.columns[a] + 1]
        for b in range(size):
            space.null[a, b] = data.null_information[space.columns[a], space.columns[b]]
    if not cholesky(space.null, size, space.null_factor):
        return size, np.nan
    for a in range(size):
        if space.null_factor[a, a] ** 2 <= tolerance:
            return size, np.nan
    return size, log_determinant(space.null_factor, size)


@jit
def begin_at_null(data, size, space):
    """Forget where other models ended."""
    space.coefficients[0] = data.intercept
    for a in range(size):
        space.coefficients[a + 1] = 0.0


@jit
def keep_coefficients(size, space, start):
    """Let the next model begin where this one ended."""
    start[0] = space.coefficients[0]
    for a in range(size):
        start[space.columns[a] + 1] = space.coefficients[a + 1]


@jit
def fill_precision(kind, scale, diagonal, size, space):
    """Prior precision of the slopes: none, `scale` times the null information, or diagonal.

    Returns whether it is positive definite whatever the columns are.
    """
    proper = kind == DIAGONAL
    for a in range(size):
        for b in range(size):
            space.precision[a, b] = scale * space.null[a, b] if kind == NULL_INFORMATION else 0.0
        if kind == DIAGONAL:
            space.precision[a, a] = diagonal[space.columns[a]]
            proper &= space.precision[a, a] > 0.0
    return proper


@jit
def relative_pivot(factor, null_factor, size):
    """Smallest pivot of the information about the slopes, each divided by that of the null model.

    Near zero where the data say nothing about some direction any more: the fit runs away to separate them.
    """
    smallest = 1.0
    for a in range(size):
        smallest = min(smallest, (factor[a, a] / null_factor[a, a]) ** 2)
    return smallest


@jit
def slope_quadratic(offset, work):
    """Quadratic form of the fitted slopes in the information at the mode, the intercept projected out."""
    mean, total = 0.0, 0.0
    for i in range(len(offset)):
        mean += work.information[i] * (work.eta[i] - offset[i]) / work.moments[0]
    for i in range(len(offset)):
        total += work.information[i] * (work.eta[i] - offset[i] - mean) ** 2
    return total


@jit
def walk_models(data, included, kind, scale, diagonal, dispersion, tolerance, start, space, statistics):
    """Fit models, given as rows of Booleans, one after the other.

    `start` (intercept first, then one per column) is where the first begins and where the last ends. A model with
    linearly dependent columns gets NaN; one whose mode was not found gets pivot 0.
    """
    for model in range(len(included)):
        out = statistics[model]
        size, log_null = set_model(data, included[model], start, tolerance, space)
        proper = fill_precision(kind, scale, diagonal, size, space)
        if math.isnan(log_null) and not proper:
            for i in range(N_STATISTICS):
                out[i] = np.nan
            continue
        for _ in range(2):
            mode = fit_mode(
                data, dispersion, space.columns, size, space.precision, ENOUGH, space.coefficients, space.work
            )
            if mode.converged:
                break
            begin_at_null(data, size, space)
        pivot = 1.0 if mode.converged else 0.0
        if mode.converged and kind == NO_PRIOR:
            pivot = relative_pivot(space.work.factor, space.null_factor, size)
        out[LOG_LIKELIHOOD] = mode.log_likelihood
        out[PENALTY] = mode.penalty
        out[LOG_DETERMINANT] = mode.log_determinant
        out[LOG_CURVATURE] = mode.log_curvature
        out[DISPERSION] = mode.dispersion
        out[PIVOT] = pivot
        out[QUADRATIC] = slope_quadratic(data.offset, space.work)
        out[TOTAL_INFORMATION] = space.work.moments[0]
        out[LOG_NULL_DETERMINANT] = 0.0 if math.isnan(log_null) else log_null
        if pivot > _TRUSTED:
            keep_coefficients(size, space, start)
