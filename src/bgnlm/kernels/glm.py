"""Posterior modes of generalized linear models by Newton's method, on rows of a contiguous design.

A model is a list of rows of `design` (one row per column of the data, W_0-centred and scaled to unit W_0-norm) and an
intercept, which comes first among the coefficients. Its prior is normal with a given precision of the slopes.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bgnlm.kernels._jit import inlined_jit, jit
from bgnlm.kernels.families import GAMMA, add_columns, dispersion_terms, linear_predictor, row_terms
from bgnlm.kernels.glm_algebra import (
    BLOCK,
    accumulate,
    cholesky,
    copy_to,
    dot,
    half_quadratic,
    log_determinant,
    quadratic_form,
    solve,
    total_of,
)

_MAX_STEPS = 60
_MAX_HALVINGS = 30
# Newton decrement at which the mode is known: the log posterior to its square, the determinant to less than its root.
ENOUGH = 1e-12
# Where classes separate, the log posterior is flat long before the mode; no linear predictor may still be on the move.
_CHANGE = 0.02
# A step that promises less and brings nothing has met rounding errors.
_ROUNDING = 1e-8
# Beyond these the distribution is as good as a point mass, or as Poisson.
_SMALLEST_DISPERSION, _LARGEST_SHAPE, _LARGEST_SIZE = 1e-8, 1e10, 1e6


class GlmData(NamedTuple):
    """What all models share."""

    family: int
    y: Any
    weights: Any
    offset: Any
    design: Any  # (columns, rows)
    reach: Any  # largest absolute value of each column
    null_information: Any  # (columns, columns): inner products of the design in the metric of the null model
    intercept: float  # of the null model


class Workspace(NamedTuple):
    """Arrays to write to, so that a fit allocates nothing."""

    eta: Any
    score: Any
    information: Any
    moments: Any  # total information, then the mean of each column in it
    matrix: Any  # information about the slopes plus their prior precision; lower triangle
    factor: Any  # its Cholesky factor
    gradient: Any
    step: Any
    trial: Any
    block: Any


def workspace(n_rows: int, max_size: int) -> Workspace:
    """Arrays for models of up to `max_size` columns."""
    p = max_size + 1
    return Workspace(
        np.empty(n_rows),
        np.empty(n_rows),
        np.empty(n_rows),
        np.empty(p),
        np.empty((p, p)),
        np.empty((p, p)),
        np.empty(p),
        np.empty(p),
        np.empty(p),
        np.zeros((p + 1, BLOCK)),  # one row is read before it is written: what it holds must not be denormal
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


@inlined_jit
def newton_step(data, columns, size, precision, coefficients, work):
    """Fill `work.step`; return the decrement, the square of the step's length in the metric of the posterior.

    NaN if the information is not positive definite.
    """
    accumulate(
        data.design, columns, size, work.score, work.information, work.moments, work.gradient, work.matrix, work.block
    )
    for a in range(size):
        pull = 0.0
        for b in range(size):
            pull += precision[a, b] * coefficients[b + 1]
        work.gradient[a + 1] -= pull
        for b in range(a + 1):
            work.matrix[a, b] += precision[a, b]
    if not (work.moments[0] > 0.0 and cholesky(work.matrix, size, work.factor)):
        return np.nan
    solve(work.moments, work.factor, size, work.gradient, work.step)
    return quadratic_form(work.moments, size, work.gradient, work.step)


@jit
def is_small(data, columns, size, step, limit, change):
    """Whether a step moves the linear predictor of no row by as much as `limit`; `change` is written to."""
    bound = abs(step[0])
    for a in range(size):
        bound += abs(step[a + 1]) * data.reach[columns[a]]
    if bound < limit:
        return True
    # Nearly dependent columns take back from each other most of what the bound adds up.
    add_columns(data.design, columns, size, step, change)
    largest = 0.0
    for i in range(len(change)):
        largest = max(largest, abs(change[i]))
    return largest < limit


@inlined_jit
def fit_coefficients(data, dispersion, columns, size, precision, enough, coefficients, work):
    """Newton's method with step halving from `coefficients`, which receive the mode.

    Returns log-likelihood, penalty, number of steps and whether the mode was reached. A last step is taken on trust:
    it adds half its decrement to the log posterior. The rows of `work` are those before it.
    """
    p = size + 1
    likelihood, penalty, decrement, steps, halvings, length = -np.inf, 0.0, np.inf, 0, 0, 1.0
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
            if decrement < _ROUNDING:
                return likelihood, penalty, steps, True
            length *= 0.5
            halvings += 1
            for a in range(p):
                work.trial[a] = coefficients[a] + length * work.step[a]
            continue
        likelihood, penalty = new_likelihood, new_penalty
        copy_to(work.trial, p, coefficients)
        decrement = newton_step(data, columns, size, precision, coefficients, work)
        if math.isnan(decrement):
            break
        for a in range(p):
            work.trial[a] = coefficients[a] + work.step[a]
        if decrement < enough and is_small(data, columns, size, work.step, _CHANGE, work.score):
            copy_to(work.trial, p, coefficients)
            return likelihood + 0.5 * decrement, penalty, steps, True
        steps, halvings, length = steps + 1, 0, 1.0
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
    log_curvature = 0.0
    if has_dispersion:
        log_curvature = math.log(dispersion_curvature(data, dispersion, columns, size, work))
    total = math.log(work.moments[0]) + log_determinant(work.factor, size) + log_curvature
    return Mode(likelihood, penalty, total, log_curvature, dispersion, steps, converged)


@jit
def best_dispersion(data, dispersion, work):
    """Maximise the likelihood in log(dispersion) at the present linear predictor."""
    cross = work.score  # not needed any more
    largest = _LARGEST_SHAPE if data.family == GAMMA else _LARGEST_SIZE
    for _ in range(_MAX_STEPS):
        first, second = dispersion_terms(data.family, dispersion, data.y, data.weights, work.eta, cross)
        step = first / second if second > 0.0 else math.copysign(1.0, first)
        step = min(max(step, -2.0), 2.0)
        dispersion = min(max(dispersion * math.exp(step), _SMALLEST_DISPERSION), largest)
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
    total = total_of(cross)
    work.gradient[0] = total
    for a in range(size):
        work.gradient[a + 1] = dot(data.design[columns[a]], cross) - work.moments[a + 1] * total
    solve(work.moments, work.factor, size, work.gradient, work.step)
    return max(second - quadratic_form(work.moments, size, work.gradient, work.step), 1.0)
