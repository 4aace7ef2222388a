"""Averages over models at new rows: linear predictors with their spreads, and mixtures of these distributions.

A mixture of thousands of models has a few dozen clearly different components at any one row. Components of nearly the
same place and width are merged first, which makes everything that follows cheap; few models are taken one by one.
"""

import math

import numpy as np

from bgnlm.kernels._jit import jit, reordering_jit
from bgnlm.kernels.families import CLOGLOG, LOGIT, PROBIT

_BLOCK = 256  # rows worked on at a time, for which everything stays in the fastest memory
_FEW = 32  # components that are not merged
_CELL = 0.1875  # components within so many of their own widths may be merged
_DROPPED_BITS = 49  # of a width; three binary digits are left: widths that differ by an eighth at most may be merged
_NARROWEST = 1e-13  # relative to the place: a component without spread is a very narrow one
_NARROWEST_OF_ALL = 1e-290
_LIGHTEST = 1e-290
_WIDE = 1.0  # standard deviation of the linear predictor from which on the mean varies faster than it
_SMOOTH = 0.5  # a mean between 0 and 1 is smooth on this scale
_FARTHEST = 2.0**50
_MOST_STEPS = 100
_ENOUGH = 1e-7  # of the smaller of level and 1 - level

# The distribution functions are tabulated at equal steps: of z near 0, then of asinh(z).
NEAR = 8  # |z| that is near
NEAR_STEPS = 32  # for a unit of z
FAR = 21  # asinh(|z|), for |z| up to 6e8
FAR_STEPS = 64  # for a unit of asinh(z)
N_NEAR = 2 * NEAR * NEAR_STEPS + 1
N_FAR = 2 * FAR * FAR_STEPS + 1


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
    totals, parts = np.empty(_BLOCK), np.empty(_BLOCK)
    for low in range(0, n_rows, _BLOCK):
        here = slice(low, min(low + _BLOCK, n_rows))
        total, part = totals[: here.stop - low], parts[: here.stop - low]
        first, corner = 0, 0
        for m in range(len(starts) - 1):
            size = starts[m + 1] - starts[m]
            total[:] = coefficients[first]
            _add_columns(columns, here, members, starts[m], size, coefficients, first + 1, 1, total)
            location[here, m] = total
            if with_spread:
                total[:] = 0.0
                for j in range(size + 1):
                    part[:] = factors[corner + j]
                    _add_columns(columns, here, members, starts[m], j, factors, corner + size + 1 + j, size + 1, part)
                    for i in range(len(total)):
                        total[i] += part[i] * part[i]
                spread[here, m] = np.sqrt(total)
            first += size + 1
            corner += (size + 1) * (size + 1)


@reordering_jit
def _add_columns(columns, here, members, first, count, factors, corner, stride, total):
    """Add to `total` so many columns, each times its factor; four at a time, so that sums stay in registers."""
    a = 0
    while a + 4 <= count:
        f0, f1 = factors[corner + a * stride], factors[corner + (a + 1) * stride]
        f2, f3 = factors[corner + (a + 2) * stride], factors[corner + (a + 3) * stride]
        column0, column1 = columns[members[first + a], here], columns[members[first + a + 1], here]
        column2, column3 = columns[members[first + a + 2], here], columns[members[first + a + 3], here]
        for i in range(len(total)):
            total[i] += f0 * column0[i] + f1 * column1[i] + f2 * column2[i] + f3 * column3[i]
        a += 4
    while a < count:
        f0, column0 = factors[corner + a * stride], columns[members[first + a], here]
        for i in range(len(total)):
            total[i] += f0 * column0[i]
        a += 1


@jit
def merge(places, widths, weights, shapes, finest, rounded, ratios, slots, cells, merged):
    """Merge components that are nearly the same, with their mean and variance; return how many are left.

    Parameters
    ----------
    shapes
        Which distribution each component has; only those of the same are merged.
    finest
        Narrower components are merged as if they had this width.
    rounded, ratios
        Work space, as many as components.
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
    origin = places[np.argmax(weights)]
    bits = rounded.view(np.int64)
    for m in range(len(weights)):  # without a branch: several at a time
        rounded[m] = max(widths[m], _NARROWEST * abs(places[m]), finest)
        bits[m] = (bits[m] >> _DROPPED_BITS) << _DROPPED_BITS
        ratios[m] = min(max((places[m] - origin) / (_CELL * rounded[m]), -_FARTHEST), _FARTHEST)
    for m in range(len(weights)):
        if not weights[m] > _LIGHTEST:
            continue
        width = max(widths[m], _NARROWEST * abs(places[m]), _NARROWEST_OF_ALL)
        cell = math.floor(ratios[m])
        kind = shapes[m] * 65536 + (bits[m] >> _DROPPED_BITS)
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
def components(places, widths, weights, shapes, finest, rounded, ratios, slots, cells, merged):
    """The same, but few components are left as they are: merging moves quantiles by up to a thousandth of a width."""
    if len(weights) > _FEW:
        return merge(places, widths, weights, shapes, finest, rounded, ratios, slots, cells, merged)
    count = 0
    for m in range(len(weights)):
        if weights[m] > _LIGHTEST:
            merged[count, 0], merged[count, 1], merged[count, 3] = weights[m], places[m], shapes[m]
            merged[count, 2] = max(widths[m], _NARROWEST * abs(places[m]), _NARROWEST_OF_ALL)
            count += 1
    return count


@jit
def _work_space(n_models):
    """Arrays for `components`."""
    n_slots = 4
    while n_slots < 2 * n_models:
        n_slots *= 2
    rounded, ratios = np.empty(n_models), np.empty(n_models)
    slots, cells = np.empty(n_slots, np.int64), np.empty((n_models, 2), np.int64)
    return rounded, ratios, slots, cells, np.empty((n_models, 6))


@jit
def _distribution(table, z):
    """Distribution function and density, by cubic interpolation."""
    if -NEAR < z < NEAR:
        return _interpolate(table, 0, (z + NEAR) * NEAR_STEPS, NEAR_STEPS)
    x = (math.asinh(z) + FAR) * FAR_STEPS
    if not x > 0.0:
        return 0.0, 0.0
    if not x < N_FAR - 1:
        return 1.0, 0.0
    cdf, slope = _interpolate(table, N_NEAR, x, FAR_STEPS)
    return cdf, slope / math.sqrt(1.0 + z * z)


@jit
def _interpolate(table, first, x, steps):
    """Value and derivative at `x`, counted in steps from row `first`."""
    j = int(x)
    t = x - j
    j += first
    left, rise = table[j, 0], table[j, 1] / steps
    jump, next_rise = table[j + 1, 0] - left, table[j + 1, 1] / steps
    c2 = 3.0 * jump - 2.0 * rise - next_rise
    c3 = rise + next_rise - 2.0 * jump
    return left + t * (rise + t * (c2 + t * c3)), max((rise + t * (2.0 * c2 + 3.0 * t * c3)) * steps, 0.0)


@jit
def mixture_quantiles(location, spread, probabilities, shapes, tables, levels, standard, out):
    """Quantiles of mixtures.

    Parameters
    ----------
    location, spread
        (rows, models).
    tables
        (shapes, `N_NEAR + N_FAR`, 2): distribution functions, their derivatives in z, or asinh(z).
    levels
        In ascending order.
    standard
        (shapes, levels): quantiles of the distributions themselves.
    out
        (rows, levels).
    """
    n_rows, n_models = location.shape
    rounded, ratios, slots, cells, merged = _work_space(n_models)
    for i in range(n_rows):
        count = components(
            location[i], spread[i], probabilities, shapes, _NARROWEST_OF_ALL, rounded, ratios, slots, cells, merged
        )
        for q in range(len(levels)):
            low, high, sure = math.inf, -math.inf, 0.0
            for k in range(count):
                x = merged[k, 1] + merged[k, 2] * standard[int(merged[k, 3]), q]
                low, high, sure = min(low, x), max(high, x), sure + merged[k, 0] * x
            x = sure if q == 0 or not low <= out[i, q - 1] <= high else max(sure, out[i, q - 1])
            enough = _ENOUGH * min(levels[q], 1.0 - levels[q])
            for number in range(_MOST_STEPS):
                below, density = -levels[q], 0.0
                for k in range(count):
                    cdf, pdf = _distribution(tables[int(merged[k, 3])], (x - merged[k, 1]) / merged[k, 2])
                    below += merged[k, 0] * cdf
                    density += merged[k, 0] * pdf / merged[k, 2]
                if below > 0.0:
                    high = x
                else:
                    low = x
                if abs(below) < enough or not high - low > 1e-14 * (abs(low) + abs(high)):
                    break
                step = x - below / density if density > 0.0 else low
                # Beside narrow components Newton's steps can go to and fro: every fourth halves the interval.
                x = step if low < step < high and number % 4 < 3 else 0.5 * (low + high)
            out[i, q] = x


@jit
def mixture_masses(location, spread, probabilities, table, negligible, places, masses):
    """Put a mixture of normal distributions into cells of equal width.

    Parameters
    ----------
    location, spread
        (rows, models).
    table
        Of the normal distribution; see `mixture_quantiles`.
    negligible
        Share of the probability that a component may have beyond the cells.
    places, masses
        (rows, cells): middles and probabilities of the cells. The first and the last have what is beyond them too.
    """
    n_rows, n_models = location.shape
    rounded, ratios, slots, cells, merged = _work_space(n_models)
    shapes = np.zeros(n_models, np.int64)
    n_cells = masses.shape[1]
    for i in range(n_rows):
        count = merge(
            location[i], spread[i], probabilities, shapes, _NARROWEST_OF_ALL, rounded, ratios, slots, cells, merged
        )
        total, heaviest = 0.0, 0.0
        for k in range(count):
            total, heaviest = total + merged[k, 0], max(heaviest, merged[k, 0])
        low, high = math.inf, -math.inf
        for k in range(count):
            ratio = merged[k, 0] / (negligible * total)
            if ratio > 1.0 or merged[k, 0] == heaviest:
                reach = merged[k, 2] * math.sqrt(2.0 * math.log(max(ratio, 2.0)))
                low, high = min(low, merged[k, 1] - reach), max(high, merged[k, 1] + reach)
        step = (high - low) / n_cells
        for j in range(n_cells):
            places[i, j], masses[i, j] = low + (j + 0.5) * step, 0.0
        for k in range(count):
            reach = NEAR * merged[k, 2]
            before, j = 0.0, int(min(max((merged[k, 1] - reach - low) / step, 0.0), n_cells - 1.0))
            while before < 1.0:
                edge = low + (j + 1) * step
                z = (edge - merged[k, 1]) / merged[k, 2]
                until = _distribution(table, z)[0] if j < n_cells - 1 and z < NEAR else 1.0
                masses[i, j] += merged[k, 0] * (until - before)
                before, j = until, j + 1


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
    rounded, ratios, slots, cells, merged = _work_space(n_models)
    shapes = np.zeros(n_models, np.int64)
    for i in range(n_rows):
        count = merge(location[i], spread[i], probabilities, shapes, _SMOOTH, rounded, ratios, slots, cells, merged)
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
