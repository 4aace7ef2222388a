"""The inner Laplace approximation: mode of fields and coefficients given hyperparameters, and what it leaves out.

The linear predictor of observation i is offset_i + sum_k loading_ik x_(t(i), k) + z_i' b: `x` are K fields at
positions t, kept interleaved (t K + k) so that their precision is a narrow band, and `b` is the border: coefficients,
and effects that are not along these positions. The rows of `border` are its columns z; of the effects of a component
beside the band every observation has one, `beside[i]` counted from the first of all, with the loading
`beside_loadings[i]`. Given a band, the border is eliminated by its Schur complement.
"""

import math

import numpy as np

from bgnlm.kernels import banded
from bgnlm.kernels._jit import inlined_jit, jit, reordering_jit
from bgnlm.kernels.families import GAUSSIAN, row_terms

_MAX_STEPS = 100
_HALVINGS = 30
_NEGLIGIBLE = 1e-3  # correlation
_BLOCK = 500  # rows


@reordering_jit
def predict_rows(offset, border, beside, beside_loadings, place, loadings, field, coefficients, eta):
    """The linear predictor."""
    n_fields, n_columns = loadings.shape[1], len(border)
    for i in range(len(eta)):
        eta[i] = offset[i]
    for a in range(len(border)):
        c = coefficients[a]
        for i in range(len(eta)):
            eta[i] += c * border[a, i]
    for i in range(len(eta)):
        first = place[i] * n_fields
        for k in range(n_fields):
            eta[i] += loadings[i, k] * field[first + k]
        for b in range(beside.shape[1]):
            eta[i] += beside_loadings[i, b] * coefficients[n_columns + beside[i, b]]


@inlined_jit
def _assemble(
    information, border, beside, beside_loadings, place, loadings, prior_band, prior_border, band, cross, schur
):
    """The negative Hessian: band, cross block and border block."""
    n_fields, n_columns, size = loadings.shape[1], len(border), len(schur)
    for j in range(len(band)):
        for d in range(band.shape[1]):
            band[j, d] = prior_band[j, d]
        for a in range(size):
            cross[j, a] = 0.0
    for i in range(len(information)):
        first = place[i] * n_fields
        for k in range(n_fields):
            weighted = information[i] * loadings[i, k]
            for m in range(k + 1):
                band[first + k, k - m] += weighted * loadings[i, m]
            for a in range(n_columns):
                cross[first + k, a] += weighted * border[a, i]
            for b in range(beside.shape[1]):
                cross[first + k, n_columns + beside[i, b]] += weighted * beside_loadings[i, b]
    for a in range(size):
        for c in range(a + 1):
            schur[a, c] = prior_border[a, c]
    banded.add_products(1.0, information, border, schur)
    for b in range(beside.shape[1]):
        for i in range(len(information)):
            weighted = information[i] * beside_loadings[i, b]
            row = n_columns + beside[i, b]
            for a in range(n_columns):
                schur[row, a] += weighted * border[a, i]
            for c in range(b + 1):
                schur[row, n_columns + beside[i, c]] += weighted * beside_loadings[i, c]


@inlined_jit
def _penalty(prior_band, prior_border, field, coefficients, field_pull, border_pull):
    """Half the prior's quadratic form; fills its gradient."""
    banded.multiply_band(prior_band, field, field_pull)
    total = 0.0
    for j in range(len(field)):
        total += field[j] * field_pull[j]
    for a in range(len(coefficients)):
        pull = 0.0
        for c in range(len(coefficients)):
            pull += prior_border[a, c] * coefficients[c]
        border_pull[a] = pull
        total += coefficients[a] * pull
    return 0.5 * total


@reordering_jit
def find_mode(
    family,
    dispersion,
    y,
    weights,
    offset,
    border,
    beside,
    beside_loadings,
    place,
    loadings,
    prior_band,
    prior_border,
    tolerance,
    field,
    coefficients,
    band,
    cross,
    schur,
):
    """Newton's method from `field` and `coefficients`, which end at the mode.

    Returns the log-likelihood without constants minus the penalty, the log determinant of the negative Hessian, and
    the number of steps (negative: not converged). `band` and `schur` end as Cholesky factors, of the band and of the
    Schur complement; `cross` as the solution with the first of these.
    """
    n, n_fields, n_columns, size = len(y), loadings.shape[1], len(border), len(coefficients)
    eta, score, information = np.empty(n), np.empty(n), np.empty(n)
    field_pull, border_pull = np.empty(len(field)), np.empty(size)
    field_step, border_step = np.zeros(len(field)), np.zeros(size)
    tried_field, tried_coefficients = np.empty(len(field)), np.empty(size)
    across, ones = np.empty((n_columns, len(field))), np.ones(len(field))
    value, length, log_determinant = -math.inf, 0.0, math.nan
    n_steps, n_halvings = 0, 0
    while n_steps < _MAX_STEPS and n_halvings < _HALVINGS:
        for j in range(len(field)):
            tried_field[j] = field[j] + length * field_step[j]
        for a in range(size):
            tried_coefficients[a] = coefficients[a] + length * border_step[a]
        predict_rows(offset, border, beside, beside_loadings, place, loadings, tried_field, tried_coefficients, eta)
        found = row_terms(family, dispersion, y, weights, eta, score, information)
        found -= _penalty(prior_band, prior_border, tried_field, tried_coefficients, field_pull, border_pull)
        # The last steps change nothing but rounding.
        if not found >= value - 1e-10 * (1.0 + abs(found)):
            length *= 0.5
            n_halvings += 1
            continue
        value, length, n_halvings = found, 1.0, 0
        n_steps += 1
        for j in range(len(field)):
            field[j] = tried_field[j]
        for a in range(size):
            coefficients[a] = tried_coefficients[a]
        if n_steps == 1 or family != GAUSSIAN:  # whose curvature is the same everywhere
            _assemble(
                information,
                border,
                beside,
                beside_loadings,
                place,
                loadings,
                prior_band,
                prior_border,
                band,
                cross,
                schur,
            )
            log_determinant = banded.factorise_band(band)
            if math.isnan(log_determinant):
                break
            banded.solve_lower(band, cross)
            for j in range(len(field)):
                for a in range(n_columns):
                    across[a, j] = cross[j, a]
            banded.add_products(-1.0, ones, across, schur)
            for j in range(len(field)):
                for a in range(n_columns, size):
                    v = cross[j, a]
                    if v == 0.0:  # most effects beside have nothing to do with a position
                        continue
                    for c in range(a + 1):
                        schur[a, c] -= v * cross[j, c]
            log_determinant += banded.factorise(schur)
            if math.isnan(log_determinant):
                break
        for j in range(len(field)):
            field_step[j] = -field_pull[j]
        for a in range(size):
            border_step[a] = -border_pull[a]
        for a in range(n_columns):
            for i in range(n):
                border_step[a] += score[i] * border[a, i]
        for i in range(n):
            first = place[i] * n_fields
            for k in range(n_fields):
                field_step[first + k] += score[i] * loadings[i, k]
            for b in range(beside.shape[1]):
                border_step[n_columns + beside[i, b]] += score[i] * beside_loadings[i, b]
        banded.solve_lower_vector(band, field_step)
        decrement = 0.0
        for j in range(len(field)):
            step = field_step[j]
            decrement += step * step
            for a in range(size):
                border_step[a] -= cross[j, a] * step
        banded.solve_dense_lower(schur, border_step)
        for a in range(size):
            decrement += border_step[a] * border_step[a]
        if decrement < tolerance:
            return value, log_determinant, n_steps
        banded.solve_dense_upper(schur, border_step)
        for j in range(len(field)):
            for a in range(size):
                field_step[j] -= cross[j, a] * border_step[a]
        banded.solve_upper_vector(band, field_step)
    return value, math.nan, -1


@jit
def border_scores(border, place, loadings, band, cross, schur, out):
    """Rows u_i with u_i . u_j the part of Cov(eta_i, eta_j) that comes from not knowing the border."""
    n_fields, size = loadings.shape[1], len(border)
    solved = cross.copy()
    banded.solve_upper(band, solved)
    for i in range(len(out)):
        first = place[i] * n_fields
        for a in range(size):
            total = border[a, i]
            for k in range(n_fields):
                total -= loadings[i, k] * solved[first + k, a]
            out[i, a] = total
        banded.solve_dense_lower(schur, out[i])


@jit
def cubes_by_moments(third, scores):
    """Sum over all pairs of l3_i l3_j (u_i . u_j)^3, by third moments."""
    n, size = scores.shape
    total = 0.0
    for a in range(size):
        for b in range(a + 1):
            for c in range(b + 1):
                moment = 0.0
                for i in range(n):
                    moment += third[i] * scores[i, a] * scores[i, b] * scores[i, c]
                count = 1.0 if a == b == c else (3.0 if a == b or b == c else 6.0)
                total += count * moment * moment
    return total


def border_cubes(third: np.ndarray, scores: np.ndarray) -> float:
    """The same, by third moments or by pairs, whichever is less."""
    n, size = scores.shape
    if size * (size + 1) * (size + 2) // 6 <= n * size // 2 + 1:
        return float(cubes_by_moments(third, scores))
    total = 0.0
    for first in range(0, n, _BLOCK):
        products = scores[first : first + _BLOCK] @ scores.T
        total += float(third[first : first + _BLOCK] @ (products * products * products) @ third)
    return total


@jit
def field_variances(loadings, band, starts, rows, lengths, variances):
    """Variances of the observations' fields given the border, from the band of the inverse; 0 without fields.

    `starts` says where the observations of each position begin; they are sorted by position.
    """
    n_fields, width = loadings.shape[1], band.shape[1]
    if n_fields == 0:
        return
    for r in range(len(lengths)):
        lengths[r] = 0
    for t in range(len(starts) - 2, -1, -1):
        for k in range(n_fields - 1, -1, -1):
            i = t * n_fields + k
            banded.inverse_row(band, i, rows, lengths)
            lengths[i % len(rows)] = min(lengths[i % len(rows)], width)
        for i in range(starts[t], starts[t + 1]):
            variances[i] = _block(loadings[i], loadings[i], t, t, rows, lengths)


@jit
def _block(one, other, t, s, rows, lengths):
    """Covariance of two combinations of the fields at positions t <= s."""
    n_fields = len(one)
    total = 0.0
    for k in range(n_fields):
        if one[k] == 0.0:
            continue
        for m in range(n_fields):
            first, second = t * n_fields + k, s * n_fields + m
            if second < first:
                first, second = second, first
            if second - first < lengths[first % len(rows)]:
                total += one[k] * other[m] * rows[first % len(rows), second - first]
    return total


@jit
def field_cubes(third, place, loadings, band, scores, starts, rows, lengths):
    """Sum over all pairs of l3_i l3_j (C_ij^3 - (u_i . u_j)^3); pairs too far apart for their fields are left out."""
    n_fields, size = loadings.shape[1], scores.shape[1]
    diagonal = np.zeros(len(band))
    for r in range(len(lengths)):
        lengths[r] = 0
    total = 0.0
    n_positions = len(starts) - 1
    for t in range(n_positions - 1, -1, -1):
        farthest = 0
        for k in range(n_fields - 1, -1, -1):
            i = t * n_fields + k
            banded.inverse_row(band, i, rows, lengths)
            diagonal[i] = rows[i % len(rows), 0]
            banded.trim_row(diagonal, i, rows, lengths, _NEGLIGIBLE)
            farthest = max(farthest, i + lengths[i % len(rows)] - 1)
        last = min(farthest // n_fields, n_positions - 1)
        for i in range(starts[t], starts[t + 1]):
            for j in range(starts[t], starts[last + 1]):
                s = place[j]
                if s == t and j > i:
                    continue
                if n_fields == 1:  # the most common case, without the loops
                    near = loadings[i, 0] * loadings[j, 0] * rows[t % len(rows), s - t]
                else:
                    near = _block(loadings[i], loadings[j], t, s, rows, lengths)
                far = 0.0
                for a in range(size):
                    far += scores[i, a] * scores[j, a]
                cube = near * (near * near + 3.0 * near * far + 3.0 * far * far)
                total += (1.0 if i == j else 2.0) * third[i] * third[j] * cube
    return total


@jit
def predictive_variances(band, cross, schur, nodes, loadings, border, out):
    """Variances of new linear predictors: row i loads on the fields `nodes[i]` and on `border[:, i]`."""
    n, width = band.shape
    size = len(border)
    along, rest = np.zeros(n), np.empty(size)
    for i in range(len(out)):
        first = n
        for e in range(nodes.shape[1]):
            if loadings[i, e] != 0.0:
                along[nodes[i, e]] += loadings[i, e]
                first = min(first, nodes[i, e])
        for a in range(size):
            rest[a] = border[a, i]
        variance = 0.0
        for j in range(first, n):
            value = along[j]
            for d in range(1, min(j - first, width - 1) + 1):
                value -= band[j, d] * along[j - d]
            value /= band[j, 0]
            along[j] = value
            variance += value * value
            for a in range(size):
                rest[a] -= cross[j, a] * value
        banded.solve_dense_lower(schur, rest)
        for a in range(size):
            variance += rest[a] * rest[a]
        out[i] = variance
        for j in range(first, n):
            along[j] = 0.0
