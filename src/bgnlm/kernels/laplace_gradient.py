"""Parts of the covariance of fields and coefficients that the gradient of a Laplace approximation needs.

Names are those of `nested_laplace`: `band` and `schur` are Cholesky factors, `cross` is solved with the first of them.
"""

import numpy as np

from bgnlm.kernels import banded
from bgnlm.kernels._jit import jit, reordering_jit


@reordering_jit
def invert_factor(schur, inverse):
    """Inverse of the dense lower factor."""
    size = len(schur)
    for c in range(size):
        for a in range(c):
            inverse[a, c] = 0.0
        inverse[c, c] = 1.0 / schur[c, c]
    for a in range(size):
        for c in range(a):
            total = 0.0
            for m in range(c, a):
                total += schur[a, m] * inverse[m, c]
            inverse[a, c] = -total / schur[a, a]


@jit
def near_covariances(band, rows, lengths, near):
    """Entries (i, i - d) of the inverse of the band that are in the band themselves, as `near[i, d]`."""
    n, width = band.shape
    for r in range(len(lengths)):
        lengths[r] = 0
    for i in range(n - 1, -1, -1):
        banded.inverse_row(band, i, rows, lengths)
        row = i % len(rows)
        lengths[row] = min(lengths[row], width)
        for d in range(min(width, n - i)):
            near[i + d, d] = rows[row, d] if d < lengths[row] else 0.0


@reordering_jit
def covariances(
    border, beside, beside_loadings, place, loadings, band, cross, inverse, rows, lengths, near, shares, variances
):
    """Fill the variances of the linear predictors, and covariances of fields near each other.

    `inverse` is that of the factor `schur`; u . v of rows of `shares` is the part of Cov(field u, field v) that comes
    from not knowing the border.
    """
    n_fields, n_columns, size = loadings.shape[1], len(border), len(inverse)
    near_covariances(band, rows, lengths, near)
    solved = cross.copy()
    banded.solve_upper(band, solved)
    for j in range(len(band)):
        for a in range(size):
            total = 0.0
            for c in range(a + 1):
                total += inverse[a, c] * solved[j, c]
            shares[j, a] = total
    own = np.empty(size)
    for i in range(len(variances)):
        first = place[i] * n_fields
        for a in range(size):
            total = 0.0
            for c in range(min(n_columns, a + 1)):
                total += inverse[a, c] * border[c, i]
            own[a] = total
        for b in range(beside.shape[1]):
            column = n_columns + beside[i, b]
            for a in range(column, size):
                own[a] += inverse[a, column] * beside_loadings[i, b]
        variance = 0.0
        for k in range(n_fields):
            for a in range(size):
                own[a] -= loadings[i, k] * shares[first + k, a]
            for m in range(k + 1):
                count = 1.0 if m == k else 2.0
                variance += count * loadings[i, k] * loadings[i, m] * near[first + k, k - m]
        for a in range(size):
            variance += own[a] * own[a]
        variances[i] = variance
    for j in range(len(band)):
        for d in range(min(band.shape[1], j + 1)):
            total = 0.0
            for a in range(size):
                total += shares[j, a] * shares[j - d, a]
            near[j, d] += total


@reordering_jit
def solve_with_rows(pull, border, beside, beside_loadings, place, loadings, band, cross, schur, along, across):
    """Solve with the negative Hessian for the sum of the rows of the design times `pull`: `along` and `across`."""
    n_fields, n_columns, size = loadings.shape[1], len(border), len(schur)
    field = np.zeros((len(band), 1))
    for a in range(size):
        across[a] = 0.0
    for a in range(n_columns):
        for i in range(len(pull)):
            across[a] += pull[i] * border[a, i]
    for i in range(len(pull)):
        first = place[i] * n_fields
        for k in range(n_fields):
            field[first + k, 0] += pull[i] * loadings[i, k]
        for b in range(beside.shape[1]):
            across[n_columns + beside[i, b]] += pull[i] * beside_loadings[i, b]
    banded.solve_lower(band, field)
    for j in range(len(band)):
        for a in range(size):
            across[a] -= cross[j, a] * field[j, 0]
    banded.solve_dense_lower(schur, across)
    banded.solve_dense_upper(schur, across)
    for j in range(len(band)):
        for a in range(size):
            field[j, 0] -= cross[j, a] * across[a]
    banded.solve_upper(band, field)
    for j in range(len(band)):
        along[j] = field[j, 0]
