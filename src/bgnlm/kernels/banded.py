"""Algebra of symmetric banded matrices with a dense border: fields along positions, and the coefficients beside them.

A banded matrix is stored by rows: `band[i, d]` is the entry (i, i - d). Cholesky factors are stored the same way.
"""

import math

import numpy as np

from bgnlm.kernels._jit import jit, reordering_jit

_UNEXPLAINED = 1e-14  # share of a variance that neighbours leave open at least


@jit
def _factorise_tridiagonal(band):
    """The same for the most common width; the next pivot does not wait for the root of this one."""
    log_determinant, product = 0.0, 1.0
    before, root = 1.0, 1.0
    for i in range(len(band)):
        across = band[i, 1] if i else 0.0
        pivot = band[i, 0] - across * across / before
        if not pivot > 0.0:
            return math.nan
        band[i, 1] = across / root
        before, root = pivot, math.sqrt(pivot)
        band[i, 0] = root
        product *= pivot
        if not 1e-100 < product < 1e100:
            log_determinant += math.log(product)
            product = 1.0
    return log_determinant + math.log(product)


@jit
def factorise_band(band):
    """Replace a banded matrix by its Cholesky factor and return the log determinant; NaN if it is not positive."""
    n, width = band.shape
    if width == 2:
        return _factorise_tridiagonal(band)
    log_determinant, product = 0.0, 1.0
    for i in range(n):
        reach = min(i, width - 1)
        pivot = band[i, 0]
        for d in range(reach, 0, -1):
            total = band[i, d]
            for e in range(d + 1, reach + 1):
                total -= band[i, e] * band[i - d, e - d]
            total /= band[i - d, 0]
            band[i, d] = total
            pivot -= total * total
        if not pivot > 0.0:
            return math.nan
        band[i, 0] = math.sqrt(pivot)
        product *= pivot  # of many pivots at a time: a logarithm takes longer
        if not 1e-100 < product < 1e100:
            log_determinant += math.log(product)
            product = 1.0
    return log_determinant + math.log(product)


@jit
def solve_lower(factor, values):
    """Replace each column of `values` by the solution with the factor."""
    n, width = factor.shape
    for i in range(n):
        for d in range(1, min(i, width - 1) + 1):
            f = factor[i, d]
            if f != 0.0:
                for a in range(values.shape[1]):
                    values[i, a] -= f * values[i - d, a]
        inverse = 1.0 / factor[i, 0]
        for a in range(values.shape[1]):
            values[i, a] *= inverse


@jit
def solve_upper(factor, values):
    """Replace each column of `values` by the solution with the transposed factor."""
    n, width = factor.shape
    for i in range(n - 1, -1, -1):
        inverse = 1.0 / factor[i, 0]
        for a in range(values.shape[1]):
            values[i, a] *= inverse
        for d in range(1, min(i, width - 1) + 1):
            f = factor[i, d]
            if f != 0.0:
                for a in range(values.shape[1]):
                    values[i - d, a] -= f * values[i, a]


@jit
def solve_lower_vector(factor, values):
    """As `solve_lower`, for one vector."""
    n, width = factor.shape
    for i in range(n):
        value = values[i]
        for d in range(1, min(i, width - 1) + 1):
            value -= factor[i, d] * values[i - d]
        values[i] = value / factor[i, 0]


@jit
def solve_upper_vector(factor, values):
    """As `solve_upper`, for one vector."""
    n, width = factor.shape
    for i in range(n - 1, -1, -1):
        value = values[i] / factor[i, 0]
        values[i] = value
        for d in range(1, min(i, width - 1) + 1):
            values[i - d] -= factor[i, d] * value


@jit
def markov_band(positions, precision, decay, swings):
    """Precision of a stationary Markov process with marginal `precision` and correlation exp(decay * distance).

    If it `swings`, the correlation over one step is negative.
    """
    n = len(positions)
    band = np.empty((n, 2))
    band[:, 0] = precision
    band[0, 1] = 0.0
    before, own, across = math.nan, 0.0, 0.0
    for i in range(1, n):
        distance = positions[i] - positions[i - 1]
        if distance != before:  # mostly it is the same
            before = distance
            correlation = math.exp(decay * distance)
            if swings:
                correlation *= math.cos(math.pi * distance)
            scaled = precision * correlation / max(-math.expm1(2.0 * decay * distance), _UNEXPLAINED)
            own, across = scaled * correlation, -scaled
        band[i - 1, 0] += own
        band[i, 0] += own
        band[i, 1] = across
    return band


@jit
def multiply_band(band, values, out):
    """The product of a banded matrix with a vector."""
    n, width = band.shape
    for i in range(n):
        out[i] = band[i, 0] * values[i]
    for i in range(n):
        for d in range(1, min(i, width - 1) + 1):
            out[i] += band[i, d] * values[i - d]
            out[i - d] += band[i, d] * values[i]


@reordering_jit
def add_products(sign, weights, rows, matrix):
    """Add weighted inner products of `rows` to the lower triangle of a matrix, or subtract them."""
    for a in range(len(rows)):
        for c in range(a + 1):
            total = 0.0
            for i in range(len(weights)):
                total += weights[i] * rows[a, i] * rows[c, i]
            matrix[a, c] += sign * total


@reordering_jit
def factorise(matrix):
    """Replace the lower triangle by its Cholesky factor and return the log determinant; NaN if not positive."""
    n = len(matrix)
    log_determinant = 0.0
    for j in range(n):
        total = matrix[j, j]
        for k in range(j):
            total -= matrix[j, k] * matrix[j, k]
        if not total > 0.0:
            return math.nan
        pivot = math.sqrt(total)
        matrix[j, j] = pivot
        log_determinant += math.log(total)
        for i in range(j + 1, n):
            rest = matrix[i, j]
            for k in range(j):
                rest -= matrix[i, k] * matrix[j, k]
            matrix[i, j] = rest / pivot
    return log_determinant


@reordering_jit
def solve_dense_lower(factor, values):
    """Replace a vector by the solution with a dense factor."""
    for i in range(len(factor)):
        total = values[i]
        for k in range(i):
            total -= factor[i, k] * values[k]
        values[i] = total / factor[i, i]


@jit
def solve_dense_upper(factor, values):
    """Replace a vector by the solution with a transposed dense factor."""
    for i in range(len(factor) - 1, -1, -1):
        total = values[i]
        for k in range(i + 1, len(factor)):
            total -= factor[k, i] * values[k]
        values[i] = total / factor[i, i]


@jit
def inverse_row(factor, i, rows, lengths):
    """Row i of the inverse of the matrix with this factor, from the diagonal on, given the rows below.

    `rows[j % len(rows), e]` is the entry (j, j + e), which is 0 from `lengths[j % len(rows)]` on.
    """
    n, width = factor.shape
    n_rows = len(rows)
    row = rows[i % n_rows]
    reach = 1
    for k in range(i + 1, min(i + width, n)):
        reach = max(reach, k - i + lengths[k % n_rows])
    reach = min(reach, rows.shape[1], n - i)
    pivot = factor[i, 0]
    for e in range(reach - 1, -1, -1):
        j = i + e
        total = 1.0 / pivot if e == 0 else 0.0
        for k in range(i + 1, min(i + width, n)):
            f = factor[k, k - i]
            if f == 0.0:
                continue
            first, second = (k, j) if k < j else (j, k)
            gap = second - first
            known = reach if first == i else lengths[first % n_rows]
            if gap < known:
                total -= f * rows[first % n_rows, gap]
        row[e] = total / pivot
    lengths[i % n_rows] = reach


@jit
def trim_row(diagonal, i, rows, lengths, negligible):
    """Shorten a row of the inverse by entries whose correlation is negligible."""
    n_rows = len(rows)
    row = rows[i % n_rows]
    reach = lengths[i % n_rows]
    while reach > 1:
        entry = row[reach - 1]
        if entry * entry > negligible * negligible * diagonal[i] * diagonal[i + reach - 1]:
            break
        reach -= 1
    lengths[i % n_rows] = reach


def empty_rows(n: int, width: int, block: int, longest: int) -> tuple[np.ndarray, np.ndarray]:
    """Room for the rows of an inverse that are needed at the same time."""
    n_rows = max(width + block, 1)
    return np.zeros((n_rows, max(min(n, longest), 1))), np.zeros(n_rows, np.int64)
