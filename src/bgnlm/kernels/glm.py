"""Posterior modes of generalized linear models by Newton's method, on rows of a contiguous design.

A model is a list of rows of `design` (one row per column of the data, W_0-centred and scaled to unit W_0-norm) and an
intercept, which comes first among the coefficients. Its prior is normal with a given precision of the slopes.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bgnlm.kernels._jit import jit, reordering_jit
from bgnlm.kernels.families import GAMMA, dispersion_terms, linear_predictor, row_terms

_BLOCK = 512
_USE_BLAS_FROM = 16
_MAX_STEPS = 60
_MAX_HALVINGS = 30
# Newton decrement at which the mode is known well enough: the log posterior to its square (half of it is added on), the
# determinant to less than its root.
_DECREMENT = 1e-12
# Where classes separate, the log posterior is flat long before the mode; no linear predictor may still be on the move.
_CHANGE = 0.02


class GlmData(NamedTuple):
    """What all models share."""

    family: int
    y: Any
    weights: Any
    offset: Any
    design: Any  # (columns, rows)
    null_information: Any  # (columns, columns): inner products of the design in the metric of the null model


class Workspace(NamedTuple):
    """Arrays to write to, so that a fit allocates nothing."""

    eta: Any
    score: Any
    information: Any
    matrix: Any  # (size + 1, size + 1)
    factor: Any  # (size + 1, size + 1)
    gradient: Any
    step: Any
    trial: Any
    change: Any
    block: Any


@jit
def workspace(n_rows, max_size):
    """Arrays for models of up to `max_size` columns."""
    p = max_size + 1
    return Workspace(
        np.empty(n_rows),
        np.empty(n_rows),
        np.empty(n_rows),
        np.empty((p, p)),
        np.empty((p, p)),
        np.empty(p),
        np.empty(p),
        np.empty(p),
        np.empty(n_rows),
        np.empty((p, _BLOCK)),
    )


class Mode(NamedTuple):
    """A fitted model."""

    log_likelihood: float  # without constants
    penalty: float  # half the quadratic form of the prior
    log_determinant: float  # of information plus prior precision, dispersion included
    log_curvature: float  # the dispersion's part of it
    dispersion: float
    steps: int
    converged: bool


@reordering_jit
def dot(a, b, low, high):
    """Inner product of two stretches."""
    total = 0.0
    for i in range(low, high):
        total += a[i] * b[i]
    return total


@jit
def copy_to(source, length, target):
    """Copy the first entries."""
    for i in range(length):
        target[i] = source[i]


@reordering_jit
def total_of(values):
    """Add up."""
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    return total


@reordering_jit
def _multiply_out(block, size, length, matrix):
    """Add the inner products of the first rows of `block` to the lower triangle of `matrix`, one place down."""
    for a in range(size):
        for b in range(a + 1):
            total = 0.0
            for i in range(length):
                total += block[a, i] * block[b, i]
            matrix[a + 1, b + 1] += total


@jit
def accumulate_information(design, columns, size, information, matrix, block):
    """X' W X with the intercept first, in the lower triangle of `matrix`; a block of rows at a time."""
    n = len(information)
    for a in range(size + 1):
        for b in range(a + 1):
            matrix[a, b] = 0.0
    for i in range(n):
        matrix[0, 0] += information[i]
    for a in range(size):
        matrix[a + 1, 0] = dot(design[columns[a]], information, 0, n)
    for low in range(0, n, _BLOCK):
        length = min(_BLOCK, n - low)
        for i in range(length):
            block[size, i] = math.sqrt(information[low + i])
        for a in range(size):
            column = design[columns[a]]
            for i in range(length):
                block[a, i] = column[low + i] * block[size, i]
        if size < _USE_BLAS_FROM:
            _multiply_out(block, size, length, matrix)
        else:
            for a in range(size):
                for i in range(length, _BLOCK):
                    block[a, i] = 0.0
            product = np.dot(block[:size], block[:size].T)
            for a in range(size):
                for b in range(a + 1):
                    matrix[a + 1, b + 1] += product[a, b]


@jit
def cholesky(matrix, size, factor):
    """Lower triangular factor of the leading block; False if a pivot is not positive."""
    for a in range(size):
        for b in range(a + 1):
            total = matrix[a, b]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            if a == b:
                if not total > 0.0:
                    return False
                factor[a, a] = math.sqrt(total)
            else:
                factor[a, b] = total / factor[b, b]
    return True


@jit
def solve(factor, size, right, out):
    """Solve with the factor of `cholesky`."""
    for a in range(size):
        total = right[a]
        for c in range(a):
            total -= factor[a, c] * out[c]
        out[a] = total / factor[a, a]
    for a in range(size - 1, -1, -1):
        total = out[a]
        for c in range(a + 1, size):
            total -= factor[c, a] * out[c]
        out[a] = total / factor[a, a]


@jit
def largest_change(design, columns, size, step, change):
    """By how much a step moves the linear predictor of any row."""
    largest = 0.0
    for i in range(len(change)):
        change[i] = step[0]
    for a in range(size):
        column = design[columns[a]]
        for i in range(len(change)):
            change[i] += step[a + 1] * column[i]
    for i in range(len(change)):
        largest = max(largest, abs(change[i]))
    return largest


@jit
def half_quadratic(precision, size, coefficients):
    """Half the quadratic form of the prior in the slopes."""
    total = 0.0
    for a in range(size):
        for b in range(size):
            total += precision[a, b] * coefficients[a + 1] * coefficients[b + 1]
    return 0.5 * total


@jit
def fit_coefficients(data, dispersion, columns, size, precision, enough, coefficients, work):
    """Newton's method with step halving from `coefficients`, which receive the mode.

    Returns log-likelihood, penalty, number of steps and whether the mode was reached. `work.factor` is left with
    the Cholesky factor of information plus precision at the mode, `work.information` with the weights of the rows.
    """
    p = size + 1
    likelihood, penalty, steps, halvings, length = -np.inf, 0.0, 0, 0, 1.0
    for a in range(p):
        work.step[a] = 0.0
    copy_to(coefficients, p, work.trial)
    while steps < _MAX_STEPS and halvings < _MAX_HALVINGS:
        linear_predictor(data.design, data.offset, columns, size, work.trial, work.eta)
        new_likelihood = row_terms(
            data.family, dispersion, data.y, data.weights, work.eta, work.score, work.information
        )
        new_penalty = half_quadratic(precision, size, work.trial)
        slack = 1e-12 * (abs(likelihood) + len(work.eta)) if likelihood > -np.inf else 0.0
        if not new_likelihood - new_penalty >= likelihood - penalty - slack:  # NaN counts as worse
            length *= 0.5
            halvings += 1
            for a in range(p):
                work.trial[a] = coefficients[a] + length * work.step[a]
            continue
        likelihood, penalty = new_likelihood, new_penalty
        copy_to(work.trial, p, coefficients)
        accumulate_information(data.design, columns, size, work.information, work.matrix, work.block)
        work.gradient[0] = total_of(work.score)
        for a in range(size):
            work.gradient[a + 1] = dot(data.design[columns[a]], work.score, 0, len(work.score))
            for b in range(size):
                work.gradient[a + 1] -= precision[a, b] * coefficients[b + 1]
            for b in range(a + 1):
                work.matrix[a + 1, b + 1] += precision[a, b]
        if not cholesky(work.matrix, p, work.factor):
            return likelihood, penalty, steps, False
        solve(work.factor, p, work.gradient, work.step)
        decrement = 0.0
        for a in range(p):
            decrement += work.gradient[a] * work.step[a]
        if decrement < enough and largest_change(data.design, columns, size, work.step, work.change) < _CHANGE:
            return likelihood + 0.5 * decrement, penalty, steps, True
        steps, halvings, length = steps + 1, 0, 1.0
        for a in range(p):
            work.trial[a] = coefficients[a] + work.step[a]
    return likelihood, penalty, steps, False


@jit
def fit_mode(data, dispersion, columns, size, precision, enough, coefficients, work):
    """Mode of coefficients and, for families that have one, log(dispersion); see `Mode`.

    The determinant is that of the full negative Hessian, dispersion included.
    """
    has_dispersion = data.family >= GAMMA
    steps = 0
    for _ in range(_MAX_STEPS if has_dispersion else 1):
        likelihood, penalty, taken, converged = fit_coefficients(
            data, dispersion, columns, size, precision, enough, coefficients, work
        )
        steps += taken + 1
        if not (converged and has_dispersion):
            break
        updated = best_dispersion(data, dispersion, work)
        if abs(math.log(updated / dispersion)) < 1e-7:  # the likelihood at hand belongs to the present one
            break
        dispersion = updated
    log_determinant = 0.0
    for a in range(size + 1):
        log_determinant += 2.0 * math.log(work.factor[a, a])
    log_curvature = 0.0
    if has_dispersion:
        log_curvature = math.log(dispersion_curvature(data, dispersion, columns, size, work))
    return Mode(likelihood, penalty, log_determinant + log_curvature, log_curvature, dispersion, steps, converged)


@jit
def best_dispersion(data, dispersion, work):
    """Maximise the likelihood in log(dispersion) at the present linear predictor."""
    cross = work.score  # not needed any more
    for _ in range(_MAX_STEPS):
        first, second = dispersion_terms(data.family, dispersion, data.y, data.weights, work.eta, cross)
        step = first / second if second > 0.0 else math.copysign(1.0, first)
        step = min(max(step, -2.0), 2.0)
        # Beyond these the distribution is as good as a point mass, or as Poisson.
        largest = 1e10 if data.family == GAMMA else 1e6
        dispersion = min(max(dispersion * math.exp(step), 1e-8), largest)
        if abs(step) < 1e-9 or dispersion == largest:
            break
    return dispersion


@jit
def dispersion_curvature(data, dispersion, columns, size, work):
    """Negative second derivative in log(dispersion), less what the coefficients take up of it.

    At least 1: where the data leave the dispersion open, as for counts without overdispersion, a factor e counts.
    """
    cross = work.score
    _, second = dispersion_terms(data.family, dispersion, data.y, data.weights, work.eta, cross)
    work.gradient[0] = total_of(cross)
    for a in range(size):
        work.gradient[a + 1] = dot(data.design[columns[a]], cross, 0, len(cross))
    solve(work.factor, size + 1, work.gradient, work.step)
    taken = 0.0
    for a in range(size + 1):
        taken += work.gradient[a] * work.step[a]
    return max(second - taken, 1.0)


@jit
def relative_pivot(data, columns, size, work):
    """Smallest pivot of the information at the mode, each divided by that of the null model.

    Near zero where the data say nothing about some direction any more: the fit runs away to separate them.
    """
    accumulate_information(data.design, columns, size, work.information, work.matrix, work.block)
    smallest = 1.0
    p = size + 1
    # Elimination in place; the intercept first, as in the null model, where it is orthogonal to all columns.
    null = np.empty((size, size))
    for a in range(size):
        for b in range(a + 1):
            null[a, b] = data.null_information[columns[a], columns[b]]
    for a in range(p):
        pivot = work.matrix[a, a]
        if a > 0:
            smallest = min(smallest, pivot / null[a - 1, a - 1])
        if not pivot > 0.0:
            return 0.0
        for b in range(a + 1, p):
            factor = work.matrix[b, a] / pivot
            for c in range(a + 1, b + 1):
                work.matrix[b, c] -= factor * work.matrix[c, a]
        if a > 0:
            for b in range(a, size):
                factor = null[b, a - 1] / null[a - 1, a - 1]
                for c in range(a, b + 1):
                    null[b, c] -= factor * null[c, a - 1]
    return smallest


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


@jit
def fill_precision(data, columns, size, kind, scale, diagonal, precision):
    """Prior precision of the slopes: none, `scale` times the null information, or diagonal."""
    for a in range(size):
        for b in range(size):
            precision[a, b] = 0.0
            if kind == NULL_INFORMATION:
                precision[a, b] = scale * data.null_information[columns[a], columns[b]]
        if kind == DIAGONAL:
            precision[a, a] = diagonal[columns[a]]


@jit
def null_log_determinant(data, columns, size, tolerance, matrix, factor):
    """Log determinant of the null information of the columns; NaN if they are linearly dependent."""
    for a in range(size):
        for b in range(a + 1):
            matrix[a, b] = data.null_information[columns[a], columns[b]]
    if not cholesky(matrix, size, factor):
        return np.nan
    total = 0.0
    for a in range(size):
        if factor[a, a] * factor[a, a] <= tolerance:
            return np.nan
        total += 2.0 * math.log(factor[a, a])
    return total


@jit
def slope_quadratic(data, intercept, work):
    """Quadratic form of the fitted slopes in the information at the mode, the intercept projected out."""
    total, first, second = 0.0, 0.0, 0.0
    for i in range(len(work.eta)):
        slope_part = work.eta[i] - data.offset[i] - intercept
        total += work.information[i]
        first += work.information[i] * slope_part
        second += work.information[i] * slope_part * slope_part
    return max(second - first * first / total, 0.0), total


@jit
def columns_of(included, columns):
    """List the columns that are included."""
    size = 0
    for column in range(len(included)):
        if included[column]:
            columns[size] = column
            size += 1
    return size


@jit
def all_positive(values, columns, size):
    """Whether all the listed values are positive."""
    n_positive = 0
    for a in range(size):
        n_positive += values[columns[a]] > 0.0
    return n_positive == size


@jit
def walk_models(data, included, kind, scale, diagonal, start, dispersion, tolerance, statistics):
    """Fit models, given as rows of Booleans, one after the other, each from the coefficients of those before it.

    `start` (intercept first, then one per column) is where the first begins and where the last ends. A model with
    linearly dependent columns gets NaN; one whose mode was not found gets pivot 0.
    """
    n_columns = len(data.design)
    work = workspace(len(data.y), n_columns)
    columns = np.empty(n_columns, np.int64)
    precision = np.empty((n_columns, n_columns))
    coefficients = np.empty(n_columns + 1)
    for model in range(len(included)):
        size = columns_of(included[model], columns)
        out = statistics[model]
        out[LOG_NULL_DETERMINANT] = null_log_determinant(data, columns, size, tolerance, work.matrix, work.factor)
        if kind == DIAGONAL and math.isnan(out[LOG_NULL_DETERMINANT]) and all_positive(diagonal, columns, size):
            out[LOG_NULL_DETERMINANT] = 0.0  # a proper prior on each coefficient: nothing is wrong
        if math.isnan(out[LOG_NULL_DETERMINANT]):
            for i in range(N_STATISTICS):
                out[i] = np.nan
            continue
        fill_precision(data, columns, size, kind, scale, diagonal, precision)
        coefficients[0] = start[0]
        for a in range(size):
            coefficients[a + 1] = start[columns[a] + 1]
        mode = fit_mode(data, dispersion, columns, size, precision, _DECREMENT, coefficients, work)
        pivot = 1.0 if mode.converged else 0.0
        if mode.converged and kind == NO_PRIOR:
            pivot = relative_pivot(data, columns, size, work)
        out[LOG_LIKELIHOOD] = mode.log_likelihood
        out[PENALTY] = mode.penalty
        out[LOG_DETERMINANT] = mode.log_determinant
        out[LOG_CURVATURE] = mode.log_curvature
        out[DISPERSION] = mode.dispersion
        out[PIVOT] = pivot
        quadratic = slope_quadratic(data, coefficients[0], work)
        out[QUADRATIC] = quadratic[0]
        out[TOTAL_INFORMATION] = quadratic[1]
        if pivot > 1e-3:
            start[0] = coefficients[0]
            for a in range(size):
                start[columns[a] + 1] = coefficients[a + 1]
