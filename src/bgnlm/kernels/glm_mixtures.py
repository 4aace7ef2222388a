"""Integrals over g of Laplace's approximation, one generalized linear model after the other.

The integrand is evaluated on a lattice in x, the log odds of u = 1/(1+g). It is analytic with exponential tails, so
that the trapezoidal rule converges geometrically: about ten nodes are good to 1e-5. The mode is a smooth function of x
whose slope each node has at the price of a solution; extrapolated from three nodes it is so near that most nodes
need a single evaluation of the likelihood.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bgnlm.kernels._jit import inlined_jit, jit
from bgnlm.kernels.families import GAMMA, log_constants
from bgnlm.kernels.glm import fit_mode
from bgnlm.kernels.glm_algebra import copy_to, solve
from bgnlm.kernels.glm_walk import begin_at_null, keep_coefficients, set_model

OK, DEPENDENT, IMPRECISE, ENDLESS = range(4)

# Newton decrement at the highest nodes: the determinant is off by a fraction of its root.
_ENOUGH = 2e-8
_ENOUGH_FAR_BELOW = 1e-5
_LOOSEST = 9.0  # log of the largest factor on it
_MAX_NODES = 120  # on either side
_ATTEMPTS = 6
_CLOSER = 3  # lattices around a maximum, each with a fifth of the step
_HIGHEST_X = 25.0  # g is zero to all purposes
# A peak c x - e^x of width s = c^(-1/2), the narrowest there is, needs steps of s / sqrt(0.8 + 2.3 s^2) for an error of
# 3e-7; in steps wider by a seventh it is 1e-5.
_NARROW, _WIDE, _TOLERATED = 0.8, 2.3, 1.15
_WIDEST_STEP = 0.65
# Nats below the highest node: where a lattice begins, from where on a rough mode will not do, where a search may end.
_BEGIN, _HALF_WAY, _FAR_BELOW = 6.5, 2.5, 12.0
_DETOUR = 2  # nodes by which the other side has to be nearer for a lattice to begin there
_ENOUGH_OF_TAIL, _TOLERABLE_TAIL = 5e-5, 1e-3  # uncertainty of what lies beyond the last node, in units of the highest


class MixingPrior(NamedTuple):
    """The prior of g for models of each size, in x = log(vu / (1 - vu)), u = 1/(1+g); Zellner-Siow in x = -log(g / n).

    Index k of each array is for models with k columns; see `coefficient_priors.MixtureParameters`.
    """

    maximise: bool  # the best g instead of an integral
    is_zellner_siow: bool
    n_obs: float
    a: Any
    b: Any
    s: Any
    r: Any
    v: Any
    kappa: Any
    log_norm: Any
    first_x: Any  # where to begin if nothing is known
    first_step: Any


class Lattice(NamedTuple):
    """What is known at the nodes; the node in the middle is where a model begins."""

    values: Any  # log of the integrand
    log_u: Any
    modes: Any  # one row for each node
    slopes: Any  # change of the mode from node to node


def lattice(n_columns: int) -> Lattice:
    """Nodes for models of up to `n_columns` columns."""
    n_nodes = 2 * _MAX_NODES + 1
    p = n_columns + 1
    return Lattice(np.empty(n_nodes), np.empty(n_nodes), np.empty((n_nodes, p)), np.empty((n_nodes, p)))


@jit
def log_density(prior, size, x):
    """Return log u, the derivative of log(1/g) in x, and the normalised log density of x."""
    log_t = -math.log1p(math.exp(-x)) if x > -700.0 else x
    if prior.is_zellner_siow:
        y = math.log(prior.n_obs) - x
        log_u = -(y + math.log1p(math.exp(-y)) if y > 0.0 else math.log1p(math.exp(y)))
        return log_u, 1.0, 0.5 * (x - math.exp(min(x, 700.0))) - prior.log_norm[size]
    log_rest = log_t - x
    t = math.exp(log_t)
    v = prior.v[size]
    value = 0.5 * (prior.a[size] * log_t + prior.b[size] * log_rest - prior.s[size] * t / v)
    if prior.r[size] != 0.0 and prior.kappa[size] != 1.0:
        value -= prior.r[size] * math.log(prior.kappa[size] + (1.0 - prior.kappa[size]) * t)
    rate = math.exp(log_rest) / (1.0 - t / v) if v > 1.0 else 1.0
    return log_t - math.log(v), rate, value - prior.log_norm[size]


@jit
def extrapolate(nodes, node, direction, known, p, out):
    """Mode at a node by Hermite's polynomial through the modes and slopes of up to three nodes before it."""
    one, two, three = node - direction, node - 2 * direction, node - 3 * direction
    modes, slopes = nodes.modes, nodes.slopes
    for a in range(p):
        if known == 1:
            out[a] = modes[one, a] + direction * slopes[one, a]
        elif known == 2:
            out[a] = 5.0 * modes[two, a] - 4.0 * modes[one, a]
            out[a] += direction * (4.0 * slopes[one, a] + 2.0 * slopes[two, a])
        elif known >= 3:
            out[a] = 10.0 * modes[three, a] + 9.0 * modes[two, a] - 18.0 * modes[one, a]
            out[a] += direction * (9.0 * slopes[one, a] + 18.0 * slopes[two, a] + 3.0 * slopes[three, a])


@inlined_jit
def evaluate_node(data, prior, x, step, node, enough, dispersion, size, log_null, space, nodes):
    """Laplace's approximation at x (constants of 2 pi apart) from `space.coefficients`; fill the node.

    Returns whether the mode was found, and the dispersion there.
    """
    log_u, rate, log_p = log_density(prior, size, x)
    u = min(math.exp(log_u), 1.0 - 1e-12)
    scale = u / (1.0 - u)
    for a in range(size):
        for b in range(size):
            space.precision[a, b] = scale * space.null[a, b]
    work = space.work
    mode = fit_mode(data, dispersion, space.columns, size, space.precision, enough, space.coefficients, work)
    value = mode.log_likelihood - mode.penalty
    value += 0.5 * (log_null + size * math.log(scale) - mode.log_determinant)
    if data.family >= GAMMA:
        value += log_constants(data.family, mode.dispersion, data.y, data.weights)
    nodes.values[node], nodes.log_u[node] = value if prior.maximise or size == 0 else value + log_p, log_u
    copy_to(space.coefficients, size + 1, nodes.modes[node])
    # The gradient of the log posterior stays zero along the curve of modes.
    work.gradient[0] = 0.0
    for a in range(size):
        total = 0.0
        for b in range(size):
            total += space.precision[a, b] * space.coefficients[b + 1]
        work.gradient[a + 1] = -step * rate * total
    solve(work.moments, work.factor, size, work.gradient, nodes.slopes[node])
    return mode.converged, mode.dispersion


@jit
def tail(nodes, node, direction, best):
    """Sum of the terms beyond a node in units of its own, and its uncertainty in units of the highest.

    A geometric series, whose ratio changes once more as it did at the last nodes; never certain to more than a tenth.
    """
    values = nodes.values
    slope = values[node] - values[node - direction]
    next_slope = 2.0 * slope - (values[node - direction] - values[node - 2 * direction])
    if not max(slope, next_slope) < 0.0:
        return np.inf, np.inf
    total = 1.0 / math.expm1(-next_slope)
    uncertainty = abs(total - 1.0 / math.expm1(-slope)) + 0.1 * total
    return total, uncertainty * math.exp(values[node] - best)


@jit
def decrement_for(nodes, node, direction, known, best, at_first):
    """Newton decrement that is enough at a node: the further below the highest, the larger."""
    if known < 2:
        return at_first
    one, two = nodes.values[node - direction], nodes.values[node - 2 * direction]
    expected = 2.0 * one - two
    if known > 2:
        expected += one - 2.0 * two + nodes.values[node - 3 * direction]
    return _ENOUGH * math.exp(min(max(best - expected, 0.0), _LOOSEST))


@inlined_jit
def fill_lattice(data, prior, x_start, step, max_nodes, at_first, dispersion, size, log_null, space, nodes):
    """Evaluate the integrand at x_start and on either side of it, out to where the rest is known.

    Returns the first and the last node, what lies beyond either in units of its value, and a state. Each mode is sought
    from where the nodes before it point to; `at_first` is the decrement to stop at where there are too few of them.
    With a negative step the nodes lead from small g to large g.
    """
    middle = len(nodes.values) // 2
    first = last = middle
    beyond_first, beyond_last = 0.0, 0.0
    best, state = -np.inf, OK
    for direction in (1, -1):
        d, beyond, uncertainty = dispersion, 0.0, np.inf
        count = 0 if direction == 1 else 1
        if direction == -1 and last - first >= 2:
            beyond, uncertainty = tail(nodes, middle, direction, best)
        while uncertainty > _ENOUGH_OF_TAIL:
            if count == max_nodes:
                state = ENDLESS
                break
            node, x = middle + direction * count, x_start + direction * count * step
            known = last - first + 1 if count else 0
            extrapolate(nodes, node, direction, known, size + 1, space.coefficients)
            enough = decrement_for(nodes, node, direction, known, best, at_first)
            found, d = evaluate_node(data, prior, x, step, node, enough, d, size, log_null, space, nodes)
            if not found:  # rounding has taken over; what is known of the rest has to do
                state = max(state, OK if uncertainty < _TOLERABLE_TAIL else IMPRECISE)
                break
            dispersion = dispersion if count else d
            first, last, best = min(first, node), max(last, node), max(best, nodes.values[node])
            count += 1
            if prior.maximise:  # the likelihood alone has no tails: where g is nothing it stays as it is
                if x > _HIGHEST_X or nodes.values[node] < best - _FAR_BELOW:
                    break
            elif last - first >= 2:
                beyond, uncertainty = tail(nodes, node, direction, best)
        if not beyond < np.inf:  # nothing is known of the rest; the state says so
            beyond = 0.0
        if direction == 1:
            beyond_last = beyond
        else:
            beyond_first = beyond
    return first, last, beyond_first, beyond_last, state


@jit
def add_up(nodes, first, last, beyond_first, beyond_last):
    """Log of the sum of the nodes and what lies beyond them, and the standard deviation of the node.

    Also the mean of u, and mean and standard deviation of log g.
    """
    best = nodes.values[first]
    for node in range(first, last + 1):
        best = max(best, nodes.values[node])
    total, total_u, mean, square, mean_log_g, square_log_g = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for node in range(first, last + 1):
        weight = math.exp(nodes.values[node] - best)
        weight *= 1.0 + (beyond_first if node == first else 0.0) + (beyond_last if node == last else 0.0)
        total += weight
        total_u += weight * math.exp(nodes.log_u[node])
        mean += weight * (node - first)
        square += weight * (node - first) ** 2
        log_g = log_g_of(nodes.log_u[node])
        mean_log_g += weight * log_g
        square_log_g += weight * log_g * log_g
    mean /= total
    mean_log_g /= total
    width = math.sqrt(max(square / total - mean * mean, 0.0))
    width_log_g = math.sqrt(max(square_log_g / total - mean_log_g * mean_log_g, 0.0))
    return best + math.log(total), width, total_u / total, mean_log_g, width_log_g


@jit
def log_g_of(log_u):
    """Log g for u = 1 / (1 + g), not below -40."""
    return -log_u + math.log(max(-math.expm1(log_u), 4e-18))


@jit
def begin_next(nodes, first, best, last):
    """The node at which a similar model should begin: so far below the highest that its mode need not be exact.

    On the side where these nodes began unless the other is much nearer. Where classes separate, the integrand falls off
    slowly towards large g, and far out Newton's method takes long to find the first mode.
    """
    enough = nodes.values[best] - _BEGIN
    before = behind = best
    while before > first and nodes.values[before] > enough:
        before -= 1
    while behind < last and nodes.values[behind] > enough:
        behind += 1
    return behind if best - before > behind - best + _DETOUR else before


@jit
def highest(nodes, first, last):
    """The highest node, and the top of the parabola through it and its neighbours: node and value."""
    best = first
    for node in range(first, last + 1):
        if nodes.values[node] > nodes.values[best]:
            best = node
    value = nodes.values[best]
    if not first < best < last:
        return best, float(best), value
    left, right = nodes.values[best - 1] - value, nodes.values[best + 1] - value
    bend = left + right
    if not bend < 0.0:
        return best, float(best), value
    return best, best + 0.5 * (left - right) / bend, value - 0.125 * (left - right) ** 2 / bend


@jit
def step_for(width):
    """Step in x that an integrand of this standard deviation needs."""
    return width / math.sqrt(_NARROW + _WIDE * width * width)


@jit
def begin(prior, size, peaks, steps):
    """The x to begin at, the step, and the Newton decrement for the first nodes.

    From the last model of this size, or of a neighbouring one; else from scratch.
    """
    for near in (size, size - 1, size + 1):
        if 0 < near < len(peaks) and not math.isnan(peaks[near]):
            # the same g has another x where the prior's v depends on the size
            return peaks[near] + math.log(prior.v[size] / prior.v[near]), steps[near], _ENOUGH_FAR_BELOW
    return prior.first_x[size], prior.first_step[size], _ENOUGH


@inlined_jit
def integrate_over_g(data, prior, peaks, steps, dispersion, size, log_null, space, nodes):
    """Log of the integral of Laplace's approximation over g (or its maximum), and a state.

    Also the posterior mean of u, mean and standard deviation of log g.

    `peaks` and `steps` have for each size of model the x to begin at and the step, from the last model of this size;
    NaN if there was none. `space.coefficients` receive the mode there.
    """
    x, step, at_first = begin(prior, size, peaks, steps)
    max_nodes, worst = _MAX_NODES if size else 1, OK
    if prior.maximise:
        step, at_first = _WIDEST_STEP, _ENOUGH
    value, mean_u, mean_log_g, width_log_g = -np.inf, 1.0, 0.0, 0.0
    for attempt in range(_CLOSER if prior.maximise else _ATTEMPTS):
        first, last, beyond_first, beyond_last, state = fill_lattice(
            data, prior, x, step, max_nodes, at_first, dispersion, size, log_null, space, nodes
        )
        best, top, value = highest(nodes, first, last)
        if size == 0:  # there is no g
            break
        if prior.maximise:  # again, closer around the top
            worst = state if attempt == 0 else worst
            copy_to(nodes.modes[best], size + 1, space.coefficients)
            x += (top - _MAX_NODES) * step
            mean_u = math.exp(log_density(prior, size, x)[0])
            mean_log_g = log_g_of(math.log(mean_u))
            peaks[size], steps[size] = x, step
            step, max_nodes = 0.2 * step, 2
            continue
        worst = state
        if state == IMPRECISE and at_first > _ENOUGH:  # another model's end is no place to begin: from nothing
            peaks[size] = np.nan
            x, step, at_first = prior.first_x[size], prior.first_step[size], _ENOUGH
            begin_at_null(data, size, space)
            continue
        value, width, mean_u, mean_log_g, width_log_g = add_up(nodes, first, last, beyond_first, beyond_last)
        spacing = abs(step)
        value += math.log(spacing)
        needed = min(max(step_for(width * spacing), 0.3 * spacing), _WIDEST_STEP)
        rough = at_first > _ENOUGH and nodes.values[_MAX_NODES + 1] > nodes.values[best] - _HALF_WAY
        too_wide, too_narrow = spacing > _TOLERATED * needed, state == ENDLESS and spacing < _WIDEST_STEP
        node = begin_next(nodes, first, best, last)
        copy_to(nodes.modes[node], size + 1, space.coefficients)
        x += (node - _MAX_NODES) * step
        ahead = math.copysign(1.0, step if node <= best else -step)  # towards the highest
        peaks[size], steps[size] = x, ahead * needed
        if not (rough or too_wide or too_narrow):
            break
        at_first, step = _ENOUGH, ahead * (_WIDEST_STEP if too_narrow else min(spacing, needed))
    return value, worst, mean_u, mean_log_g, width_log_g


@jit
def walk_mixtures(data, included, prior, dispersion, tolerance, start, peaks, steps, space, nodes, values, of_g, state):
    """Integrate models, given as rows of Booleans, over g one after the other; constants of 2 pi apart.

    `of_g` receives, for each model, the posterior mean of u, and mean and standard deviation of log g.

    `start`, `peaks` and `steps` say where to begin, and are left for the next walk: see `walk_models` and
    `integrate_over_g`.
    """
    for model in range(len(included)):
        size, log_null = set_model(data, included[model], start, tolerance, space)
        if math.isnan(log_null):
            values[model], state[model] = -np.inf, DEPENDENT
            of_g[model, 0], of_g[model, 1], of_g[model, 2] = 1.0, 0.0, 0.0
            continue
        values[model], state[model], of_g[model, 0], of_g[model, 1], of_g[model, 2] = integrate_over_g(
            data, prior, peaks, steps, dispersion, size, log_null, space, nodes
        )
        if state[model] == OK:
            keep_coefficients(size, space, start)
        else:
            peaks[size] = np.nan
