"""Averages over models at new rows: linear predictors with their spreads, and mixtures of these distributions.

A mixture of thousands of models has a few dozen clearly different components at any one row. Components of nearly the
same place and width are merged first, which makes everything that follows cheap.
"""

import math

import numpy as np

from bgnlm.kernels._jit import jit, reordering_jit
from bgnlm.kernels.families import CLOGLOG, LOGIT, PROBIT

_BLOCK = 256  # rows worked on at a time, for which everything stays in the fastest memory
_CELL = 0.125  # components within so many of their own widths may be merged; their widths differ by an eighth at most
_NARROWEST = 1e-13  # relative to the place: a component without spread is a very narrow one
_NARROWEST_OF_ALL = 1e-290
_LIGHTEST = 1e-290
_WIDE = 1.0  # standard deviation of the linear predictor from which on the mean varies faster than it
_FARTHEST = 2.0**50
_MOST_STEPS = 100

# The distribution functions are tabulated in asinh(z), at equal steps.
STEPS_PER_UNIT = 64
REACH = 21.0  # |z| up to 6e8


@reordering_jit
def locate(columns, starts, members, coefficients, factors, with_spread, location, spread):
    """Linear predictor of each model at each row, and the standard deviation F'z that its coefficients give it.

    Parameters
    ----------
    columns
        (features, rows).
    starts, members
        The features of model m are `members[starts[m] : starts[m + 1]]`.
    coefficients, factors
        Of one model after the other: intercept and slopes; the upper triangular F, by rows.
    location, spread
        (rows, models); `spread` is left alone unless `with_spread`.
    """
    n_rows = columns.shape[1]
    total, part = np.empty(_BLOCK), np.empty(_BLOCK)
    for low in range(0, n_rows, _BLOCK):
        n = min(_BLOCK, n_rows - low)
        first, corner = 0, 0
        for m in range(len(starts) - 1):
            size = starts[m + 1] - starts[m]
            total[:n] = coefficients[first]
            for a in range(size):
                column = columns[members[starts[m] + a]]
                b = coefficients[first + 1 + a]
                for i in range(n):
                    total[i] += b * column[low + i]
            for i in range(n):
                location[low + i, m] = total[i]
            if with_spread:
                total[:n] = 0.0
                for j in range(size + 1):
                    part[:n] = factors[corner + j]
                    for a in range(j):
                        column = columns[members[starts[m] + a]]
                        f = factors[corner + (a + 1) * (size + 1) + j]
                        for i in range(n):
                            part[i] += f * column[low + i]
                    for i in range(n):
                        total[i] += part[i] * part[i]
                for i in range(n):
                    spread[low + i, m] = math.sqrt(total[i])
            first += size + 1
            corner += (size + 1) * (size + 1)


@jit
def merge(places, widths, weights, shapes, slots, cells, merged):
    """Merge components that are nearly the same, with their mean and variance; return how many are left.

    Parameters
    ----------
    shapes
        Which distribution each component has; only those of the same are merged.
    slots
        Work space, whole numbers: a power of two, at least twice as many as components.
    cells
        Work space: (components, 2), whole numbers.
    merged
        (components, 6): weight, place, width, shape, and work space.
    """
    slots[:] = -1
    last = len(slots) - 1
    count = 0
    origin = 0.0
    for m in range(len(weights)):
        if not weights[m] > _LIGHTEST:
            continue
        if count == 0:
            origin = places[m]
        width = max(widths[m], _NARROWEST * abs(places[m]), _NARROWEST_OF_ALL)
        mantissa, exponent = math.frexp(width)
        eighth = int(mantissa * 16.0)  # 8 to 15
        ratio = (places[m] - origin) / math.ldexp(_CELL * eighth / 16.0, exponent)
        cell = math.floor(min(max(ratio, -_FARTHEST), _FARTHEST))
        kind = (int(shapes[m]) * 4096 + exponent) * 8 + eighth - 8
        slot = (cell * 40503 + kind * 30011) & last
        while True:
            k = slots[slot]
            if k < 0:
                k = slots[slot] = count
                cells[k, 0], cells[k, 1] = cell, kind
                merged[k, 0], merged[k, 1], merged[k, 2], merged[k, 3] = 0.0, 0.0, 0.0, shapes[m]
                merged[k, 4], merged[k, 5] = places[m], width
                count += 1
            if cells[k, 0] == cell and cells[k, 1] == kind:
                break
            slot = (slot + 1) & last
        # In units of the first width, so that squares stay within the range of numbers.
        shift, ratio = (places[m] - merged[k, 4]) / merged[k, 5], width / merged[k, 5]
        merged[k, 0] += weights[m]
        merged[k, 1] += weights[m] * shift
        merged[k, 2] += weights[m] * (shift * shift + ratio * ratio)
    for k in range(count):
        shift = merged[k, 1] / merged[k, 0]
        merged[k, 2] = merged[k, 5] * math.sqrt(max(merged[k, 2] / merged[k, 0] - shift * shift, 0.0))
        merged[k, 1] = merged[k, 4] + merged[k, 5] * shift
    return count


@jit
def _work_space(n_models):
    """Arrays for `merge`, and the shapes of components that all have the same."""
    n_slots = 4
    while n_slots < 2 * n_models:
        n_slots *= 2
    slots, cells = np.empty(n_slots, np.int64), np.empty((n_models, 2), np.int64)
    return slots, cells, np.empty((n_models, 6)), np.zeros(n_models, np.int64)


@jit
def _distribution(tables, shape, z):
    """Distribution function and density, by cubic interpolation."""
    x = (math.asinh(z) + REACH) * STEPS_PER_UNIT
    j = int(x)
    if not x >= 0.0:
        return 0.0, 0.0
    if j >= tables.shape[1] - 1:
        return 1.0, 0.0
    t = x - j
    left, right = tables[shape, j, 0], tables[shape, j + 1, 0]
    rise_left, rise_right = tables[shape, j, 1] / STEPS_PER_UNIT, tables[shape, j + 1, 1] / STEPS_PER_UNIT
    jump = right - left
    c2 = 3.0 * jump - 2.0 * rise_left - rise_right
    c3 = rise_left + rise_right - 2.0 * jump
    slope = (rise_left + t * (2.0 * c2 + 3.0 * t * c3)) * STEPS_PER_UNIT
    return left + t * (rise_left + t * (c2 + t * c3)), max(slope, 0.0) / math.sqrt(1.0 + z * z)


@jit
def mixture_quantiles(location, spread, probabilities, shapes, tables, levels, standard, out):
    """Quantiles of mixtures.

    Parameters
    ----------
    location, spread
        (rows, models).
    tables
        (shapes, nodes, 2): distribution functions and their derivatives in asinh(z).
    levels
        In ascending order.
    standard
        (shapes, levels): quantiles of the distributions themselves.
    out
        (rows, levels).
    """
    n_rows, n_models = location.shape
    slots, cells, merged, _ = _work_space(n_models)
    for i in range(n_rows):
        count = merge(location[i], spread[i], probabilities, shapes, slots, cells, merged)
        for q in range(len(levels)):
            low, high, sure = math.inf, -math.inf, 0.0
            for k in range(count):
                x = merged[k, 1] + merged[k, 2] * standard[int(merged[k, 3]), q]
                low, high, sure = min(low, x), max(high, x), sure + merged[k, 0] * x
            x = sure if q == 0 or not low <= out[i, q - 1] <= high else max(sure, out[i, q - 1])
            enough = 1e-9 * min(levels[q], 1.0 - levels[q])
            for _ in range(_MOST_STEPS):
                below, density = -levels[q], 0.0
                for k in range(count):
                    cdf, pdf = _distribution(tables, int(merged[k, 3]), (x - merged[k, 1]) / merged[k, 2])
                    below += merged[k, 0] * cdf
                    density += merged[k, 0] * pdf / merged[k, 2]
                if below > 0.0:
                    high = x
                else:
                    low = x
                if abs(below) < enough or not high - low > 1e-14 * (abs(low) + abs(high)):
                    break
                step = x - below / density if density > 0.0 else low
                x = step if low < step < high else 0.5 * (low + high)
            out[i, q] = x


@jit
def mixture_masses(location, spread, probabilities, low, high, masses):
    """Probabilities of equal cells between `low` and `high` under mixtures of normal distributions.

    The first and the last cell have what is beyond them too. `masses` is (rows, cells).
    """
    n_rows, n_models = location.shape
    slots, cells, merged, shapes = _work_space(n_models)
    n_cells = masses.shape[1]
    for i in range(n_rows):
        count = merge(location[i], spread[i], probabilities, shapes, slots, cells, merged)
        step = (high[i] - low[i]) / n_cells
        masses[i] = 0.0
        for k in range(count):
            before, scale = 0.0, merged[k, 2] * math.sqrt(2.0)
            for j in range(n_cells):
                edge = low[i] + (j + 1) * step
                until = 0.5 * math.erfc((merged[k, 1] - edge) / scale) if j < n_cells - 1 else 1.0
                masses[i, j] += merged[k, 0] * (until - before)
                before = until


@jit
def inverse_link(code, eta):
    """Mean of a binomial response."""
    if code == LOGIT:
        return 1.0 / (1.0 + math.exp(-eta)) if eta > -700.0 else 0.0
    if code == PROBIT:
        return 0.5 * math.erfc(-eta / math.sqrt(2.0))
    if code == CLOGLOG:
        return -math.expm1(-math.exp(min(eta, 700.0)))
    return math.nan


@jit
def share_moments(location, spread, probabilities, code, nodes, weights, steps, mean, square):
    """Mean and mean square of h(eta), eta a mixture of normal distributions.

    For narrow components by a rule of `nodes` and `weights` in eta. Over wide ones h is all but a step, so by parts:
    E h = int h'(t) P(eta > t) dt, and likewise for h^2; `steps` has t, and h' and (h^2)' times the distance of the t.
    """
    n_rows, n_models = location.shape
    slots, cells, merged, shapes = _work_space(n_models)
    for i in range(n_rows):
        count = merge(location[i], spread[i], probabilities, shapes, slots, cells, merged)
        first, second = 0.0, 0.0
        for k in range(count):
            weight, place, width = merged[k, 0], merged[k, 1], merged[k, 2]
            if width < _WIDE:
                for j in range(len(nodes)):
                    share = inverse_link(code, place + width * nodes[j])
                    first += weight * weights[j] * share
                    second += weight * weights[j] * share * share
            else:
                for j in range(len(steps)):
                    above = weight * 0.5 * math.erfc((steps[j, 0] - place) / (width * math.sqrt(2.0)))
                    first += steps[j, 1] * above
                    second += steps[j, 2] * above
        mean[i], square[i] = first, second
