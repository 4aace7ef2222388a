"""The inner Laplace approximation: mode of fields and coefficients given hyperparameters, and what it leaves out.

The linear predictor of observation i is offset_i + sum_k loading_ik x_(t(i), k) + z_i' b: `x` are K fields at
positions t, kept interleaved (t K + k) so that their precision is a narrow band, and `b` is the border: coefficients,
and effects that are not along these positions. Given a band, the border is eliminated by its Schur complement.
"""

import math

import numpy as np

from bgnlm.kernels import banded
from bgnlm.kernels._jit import jit
from bgnlm.kernels.families import higher_terms, row_terms

_MAX_STEPS = 100
_HALVINGS = 30
_NEGLIGIBLE = 1e-5  # correlation


@jit
def predict_rows(offset, border, place, loadings, field, coefficients, eta):
    """The linear predictor."""
    n_fields = loadings.shape[1]
    for i in range(len(eta)):
        total = offset[i]
        first = place[i] * n_fields
        for k in range(n_fields):
            total += loadings[i, k] * field[first + k]
        for a in range(border.shape[1]):
            total += border[i, a] * coefficients[a]
        eta[i] = total


@jit
def _assemble(information, border, place, loadings, prior_band, prior_border, band, cross, schur):
    """The negative Hessian: band, cross block and border block."""
    n_fields, size = loadings.shape[1], border.shape[1]
    band[:] = prior_band
    cross[:] = 0.0
    schur[:] = prior_border
    for i in range(len(information)):
        w = information[i]
        first = place[i] * n_fields
        for k in range(n_fields):
            weighted = w * loadings[i, k]
            if weighted == 0.0:
                continue
            for m in range(k + 1):
                band[first + k, k - m] += weighted * loadings[i, m]
            for a in range(size):
                cross[first + k, a] += weighted * border[i, a]
        for a in range(size):
            weighted = w * border[i, a]
            if weighted != 0.0:
                for c in range(a + 1):
                    schur[a, c] += weighted * border[i, c]


@jit
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


@jit
def find_mode(
    family,
    dispersion,
    y,
    weights,
    offset,
    border,
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
    n, n_fields, size = len(y), loadings.shape[1], border.shape[1]
    eta, score, information = np.empty(n), np.empty(n), np.empty(n)
    field_pull, border_pull = np.empty(len(field)), np.empty(size)
    field_step, border_step = np.empty((len(field), 1)), np.empty(size)
    new_field, new_coefficients = field.copy(), coefficients.copy()
    predict_rows(offset, border, place, loadings, field, coefficients, eta)
    value = row_terms(family, dispersion, y, weights, eta, score, information)
    value -= _penalty(prior_band, prior_border, field, coefficients, field_pull, border_pull)
    for step in range(_MAX_STEPS):
        _assemble(information, border, place, loadings, prior_band, prior_border, band, cross, schur)
        log_determinant = banded.factorise_band(band)
        if math.isnan(log_determinant):
            return value, math.nan, -1
        banded.solve_lower(band, cross)
        for j in range(len(field)):
            for a in range(size):
                v = cross[j, a]
                if v != 0.0:
                    for c in range(a + 1):
                        schur[a, c] -= v * cross[j, c]
        log_determinant += banded.factorise(schur)
        if math.isnan(log_determinant):
            return value, math.nan, -1
        # Gradient, then the Newton step
        for j in range(len(field)):
            field_step[j, 0] = -field_pull[j]
        for a in range(size):
            border_step[a] = -border_pull[a]
        for i in range(n):
            first = place[i] * n_fields
            for k in range(n_fields):
                field_step[first + k, 0] += score[i] * loadings[i, k]
            for a in range(size):
                border_step[a] += score[i] * border[i, a]
        banded.solve_lower(band, field_step)
        for j in range(len(field)):
            for a in range(size):
                border_step[a] -= cross[j, a] * field_step[j, 0]
        decrement = 0.0
        for j in range(len(field)):
            decrement += field_step[j, 0] * field_step[j, 0]
        banded.solve_dense_lower(schur, border_step)
        for a in range(size):
            decrement += border_step[a] * border_step[a]
        if decrement < tolerance:
            return value, log_determinant, step + 1
        banded.solve_dense_upper(schur, border_step)
        for j in range(len(field)):
            for a in range(size):
                field_step[j, 0] -= cross[j, a] * border_step[a]
        banded.solve_upper(band, field_step)
        length = 1.0
        for _ in range(_HALVINGS):
            for j in range(len(field)):
                new_field[j] = field[j] + length * field_step[j, 0]
            for a in range(size):
                new_coefficients[a] = coefficients[a] + length * border_step[a]
            predict_rows(offset, border, place, loadings, new_field, new_coefficients, eta)
            found = row_terms(family, dispersion, y, weights, eta, score, information)
            found -= _penalty(prior_band, prior_border, new_field, new_coefficients, field_pull, border_pull)
            # The last steps change nothing but rounding.
            if found >= value - 1e-10 * (1.0 + abs(value)):
                break
            length *= 0.5
        else:
            return value, math.nan, -1
        value = found
        field[:] = new_field
        coefficients[:] = new_coefficients
    return value, math.nan, -1


@jit
def border_scores(border, place, loadings, band, cross, schur, out):
    """Rows u_i with u_i . u_j the part of Cov(eta_i, eta_j) that comes from not knowing the border."""
    n_fields, size = loadings.shape[1], border.shape[1]
    solved = cross.copy()
    banded.solve_upper(band, solved)
    for i in range(len(border)):
        first = place[i] * n_fields
        for a in range(size):
            total = border[i, a]
            for k in range(n_fields):
                total -= loadings[i, k] * solved[first + k, a]
            out[i, a] = total
        banded.solve_dense_lower(schur, out[i])


@jit
def correct(
    family, dispersion, y, weights, eta, place, loadings, band, scores, starts, rows, lengths, enough, variances
):
    """Second-order correction of the inner Laplace approximation, to be added to its logarithm.

    (1/8) sum l4 s^4 + (1/12) l3' C^(o3) l3 + (1/8) a' C a with C = Cov(eta), s^2 = diag C, a = l3 o s^2. `starts` says
    where the observations of each position begin; they are sorted by position. Fills `variances` = s^2. Pairs are left
    out where the first term, and with it the others, is not `enough` to matter.
    """
    n, n_fields, size = len(y), loadings.shape[1], scores.shape[1]
    third, fourth = np.empty(n), np.empty(n)
    higher_terms(family, dispersion, y, weights, eta, third, fourth)
    _field_variances(loadings, band, starts, rows, lengths, variances)
    quartic, bound = 0.0, 0.0
    for i in range(n):
        for a in range(size):
            variances[i] += scores[i, a] * scores[i, a]
        quartic += fourth[i] * variances[i] ** 2
        bound += abs(fourth[i]) * variances[i] ** 2
    if bound / 8.0 < enough:
        return quartic / 8.0
    pull, border_pull = np.zeros((len(band), 1)), np.zeros(size)
    for i in range(n):
        a_i = third[i] * variances[i]
        for k in range(n_fields):
            pull[place[i] * n_fields + k, 0] += a_i * loadings[i, k]
        for a in range(size):
            border_pull[a] += a_i * scores[i, a]
    banded.solve_lower(band, pull)
    square = 0.0
    for j in range(len(band)):
        square += pull[j, 0] * pull[j, 0]
    for a in range(size):
        square += border_pull[a] * border_pull[a]
    cubic = _border_cubes(third, scores)
    if n_fields:
        cubic += _field_cubes(third, place, loadings, band, scores, starts, rows, lengths)
    return quartic / 8.0 + cubic / 12.0 + square / 8.0


@jit
def _border_cubes(third, scores):
    """Sum over all pairs of l3_i l3_j (u_i . u_j)^3, by third moments or by pairs, whichever is less."""
    n, size = scores.shape
    total = 0.0
    if size * (size + 1) * (size + 2) // 6 <= n * size // 2 + 1:
        for a in range(size):
            for b in range(a + 1):
                for c in range(b + 1):
                    moment = 0.0
                    for i in range(n):
                        moment += third[i] * scores[i, a] * scores[i, b] * scores[i, c]
                    count = 1.0 if a == b == c else (3.0 if a == b or b == c else 6.0)
                    total += count * moment * moment
        return total
    for i in range(n):
        for j in range(i + 1):
            product = 0.0
            for a in range(size):
                product += scores[i, a] * scores[j, a]
            total += (1.0 if i == j else 2.0) * third[i] * third[j] * product**3
    return total


@jit
def _field_variances(loadings, band, starts, rows, lengths, variances):
    """Variances of the observations' fields given the border, from the band of the inverse."""
    n_fields = loadings.shape[1]
    variances[:] = 0.0
    if n_fields == 0:
        return
    width = band.shape[1]
    lengths[:] = 0
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
def _field_cubes(third, place, loadings, band, scores, starts, rows, lengths):
    """Sum over all pairs of l3_i l3_j (C_ij^3 - (u_i . u_j)^3); pairs too far apart for their fields are left out."""
    n_fields, size = loadings.shape[1], scores.shape[1]
    diagonal = np.zeros(len(band))
    lengths[:] = 0
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
                near = _block(loadings[i], loadings[j], t, s, rows, lengths)
                if near == 0.0:
                    continue
                far = 0.0
                for a in range(size):
                    far += scores[i, a] * scores[j, a]
                cube = near * (near * near + 3.0 * near * far + 3.0 * far * far)
                total += (1.0 if i == j else 2.0) * third[i] * third[j] * cube
    return total
