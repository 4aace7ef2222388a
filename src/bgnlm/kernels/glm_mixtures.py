"""Integrals over g of Laplace's approximation, one generalized linear model after the other."""

import math
from typing import Any, NamedTuple

import numpy as np

from bgnlm.kernels._jit import jit
from bgnlm.kernels.families import GAMMA, log_constants
from bgnlm.kernels.glm import columns_of, copy_to, fit_mode, null_log_determinant, workspace

_DECREMENT_AT_NODES = 1e-5  # enough for one node of an integral
_MAX_NODES = 120
_HIGHEST_X = 25.0  # g is zero to all purposes
# A step of one width of the integrand gives seven nodes within 8 nats of the highest, and an error of e^(-2 pi^2);
# beyond a step of 0.8 the distance to where the integrand grows, pi / 2 off the real line, makes a larger one.
_MATTERS = 8.0
_FEWEST_NODES = 6
_WIDEST_STEP = 0.8
_NEGLIGIBLE = 12.0  # nats below the highest node
_TAIL = 6.0


class MixingPrior(NamedTuple):
    """The prior of g for models of each size, in x = log(vu / (1 - vu)), u = 1/(1+g); Zellner-Siow in x = -log(g / n).

    Index k of each array is for models with k columns; see `coefficient_priors.MixtureParameters`.
    """

    is_zellner_siow: bool
    n_obs: float
    a: Any
    b: Any
    s: Any
    r: Any
    v: Any
    kappa: Any
    log_norm: Any


@jit
def log_density(prior, size, x):
    """Return log u and the normalised log density of x."""
    log_t = -math.log1p(math.exp(-x)) if x > -700.0 else x
    if prior.is_zellner_siow:
        log_n = math.log(prior.n_obs)
        y = log_n - x
        log_u = -(y + math.log1p(math.exp(-y)) if y > 0.0 else math.log1p(math.exp(y)))
        return log_u, 0.5 * (x - math.exp(min(x, 700.0))) - prior.log_norm[size]
    log_rest = log_t - x
    t = math.exp(log_t)
    v = prior.v[size]
    value = 0.5 * (prior.a[size] * log_t + prior.b[size] * log_rest - prior.s[size] * t / v)
    if prior.r[size] != 0.0 and prior.kappa[size] != 1.0:
        value -= prior.r[size] * math.log(prior.kappa[size] + (1.0 - prior.kappa[size]) * t)
    return log_t - math.log(v), value - prior.log_norm[size]


@jit
def extrapolate(recent, known, coefficients, length):
    """Where the curve on which the last modes lie goes next; `recent` holds them, the last first."""
    for a in range(length):
        if known == 2:
            coefficients[a] = 2.0 * recent[0, a] - recent[1, a]
        elif known == 3:
            coefficients[a] = 3.0 * (recent[0, a] - recent[1, a]) + recent[2, a]


@jit
def integrate_over_g(
    data, prior, maximise, x_start, step, max_nodes, dispersion, columns, size, log_null, precision, coefficients, work
):
    """Log of the integral of Laplace's approximation over g (or its maximum), by the trapezoidal rule in x.

    The nodes are `x_start` and its neighbours on a lattice, out to where nothing is left. Each mode is sought from that
    of the node before. Returns the value, the best x, the posterior mean of u, a state (0 if all is well, 2 if some
    mode was not found, 3 if the integral has no end) and the number of nodes that matter. `coefficients` receive the
    mode at the best x.
    """
    p = size + 1
    at_start, at_best, recent = np.empty(p), np.empty(p), np.empty((3, p))
    copy_to(coefficients, p, at_start)
    values = np.empty(2 * max_nodes)
    n_values = 0
    best, best_x, best_log_u = -np.inf, x_start, 0.0
    total, total_u = 0.0, 0.0
    found, bounded = True, True
    for direction in (1, -1):
        copy_to(at_start, p, coefficients)
        copy_to(at_start, p, recent[0])
        d = dispersion
        ended = False
        for node in range(0 if direction == 1 else 1, max_nodes):
            x = x_start + direction * node * step
            log_u, log_p = log_density(prior, size, x)
            extrapolate(recent, min(node, 3), coefficients, p)
            # Laplace's approximation for this g, without constants of 2 pi.
            u = min(math.exp(log_u), 1.0 - 1e-12)
            scale = u / (1.0 - u)
            for a in range(size):
                for b in range(size):
                    precision[a, b] = scale * data.null_information[columns[a], columns[b]]
            mode = fit_mode(data, d, columns, size, precision, _DECREMENT_AT_NODES, coefficients, work)
            d = mode.dispersion
            value = mode.log_likelihood - mode.penalty
            value += 0.5 * (log_null + size * math.log(scale) - mode.log_determinant)
            if data.family >= GAMMA:
                value += log_constants(data.family, d, data.y, data.weights)
            if not mode.converged:  # rounding has taken over; what is left beyond does not count
                found &= n_values > 0 and values[n_values - 1] < best - _TAIL
                ended = True
                break
            if not maximise:
                value += log_p
            if node == 0:
                copy_to(coefficients, p, at_start)
            else:
                copy_to(recent[1], p, recent[2])
                copy_to(recent[0], p, recent[1])
            copy_to(coefficients, p, recent[0])
            values[n_values] = value
            n_values += 1
            if value > best:
                total *= math.exp(best - value)
                total_u *= math.exp(best - value)
                best, best_x, best_log_u = value, x, log_u
                copy_to(coefficients, p, at_best)
            total += math.exp(value - best)
            total_u += math.exp(value - best + log_u)
            if value < best - _NEGLIGIBLE or (maximise and x > _HIGHEST_X):
                ended = True
                break
        bounded &= ended
    copy_to(at_best, p, coefficients)
    n_matter = 0
    for i in range(n_values):
        n_matter += values[i] > best - _MATTERS
    state = (0 if found else 2) if bounded else 3
    if maximise:
        return best, best_x, math.exp(best_log_u), state, n_matter
    return best + math.log(total * step), best_x, total_u / total, state, n_matter


@jit
def walk_mixtures(data, included, prior, maximise, start, dispersion, tolerance, values, mean_u, state):
    """Integrate models over g one after the other, each from where those before it ended; constants of 2 pi apart.

    `state` is 1 for linearly dependent columns, otherwise that of `integrate_over_g`.
    """
    n_columns = len(data.design)
    work = workspace(len(data.y), n_columns)
    columns = np.empty(n_columns, np.int64)
    precision = np.empty((n_columns, n_columns))
    coefficients = np.empty(n_columns + 1)
    # Each size has its own x for the same u; begin where a unit-information prior has its g.
    best_x, steps = np.empty(n_columns + 1), np.empty(n_columns + 1)
    for size in range(n_columns + 1):
        best_x[size] = np.nan
    for model in range(len(included)):
        size = columns_of(included[model], columns)
        log_null = null_log_determinant(data, columns, size, tolerance, work.matrix, work.factor)
        state[model] = 1 if math.isnan(log_null) else 0
        if state[model] == 1:
            continue
        coefficients[0] = start[0]
        for a in range(size):
            coefficients[a + 1] = start[columns[a] + 1]
        if math.isnan(best_x[size]):
            steps[size] = min(math.sqrt(2.0 / max(size, 1)), _WIDEST_STEP)
            best_x[size] = 0.0 if prior.is_zellner_siow else math.log(prior.v[size] / (1.0 + prior.n_obs))
            if not prior.is_zellner_siow and prior.v[size] > 0.5 * prior.n_obs:
                best_x[size] = 0.0
        step = _WIDEST_STEP if maximise else steps[size]
        max_nodes = _MAX_NODES if size else 1  # without columns there is no g
        found_state = 0
        for attempt in range(8):
            result = integrate_over_g(
                data,
                prior,
                maximise or size == 0,
                best_x[size],
                step,
                max_nodes,
                dispersion,
                columns,
                size,
                log_null,
                precision,
                coefficients,
                work,
            )
            values[model], best_x[size], mean_u[model] = result[0], result[1], result[2]
            if attempt == 0:
                found_state = result[3]
            if size == 0:
                found_state, mean_u[model] = 0, 1.0
                break
            if maximise:  # closer and closer around the best
                step, max_nodes = 0.4 * step, 4
            elif result[3] == 3 and step < _WIDEST_STEP:
                step = _WIDEST_STEP
            else:  # the step of the last model of this size, unless it turns out too wide
                step = min(max(step * result[4] / (_FEWEST_NODES + 1.5), 0.02), _WIDEST_STEP)
                steps[size] = step
                found_state = result[3]
                if result[4] >= _FEWEST_NODES:
                    break
        state[model] = found_state
        start[0] = coefficients[0]
        for a in range(size):
            start[columns[a] + 1] = coefficients[a + 1]
