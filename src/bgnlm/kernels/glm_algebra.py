"""Linear algebra of one Newton step: weighted least squares on rows of a contiguous design.

The intercept is eliminated before anything is multiplied out: columns are centred in the weights of the rows, so that
nothing cancels, not even where a single row carries nearly all the weight.
"""

import math

from bgnlm.kernels._jit import jit, reordering_jit

BLOCK = 512  # rows of all columns that fit into the cache


@reordering_jit
def dot(a, b):
    """Inner product."""
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@reordering_jit
def total_of(values):
    """Add up."""
    total = 0.0
    for i in range(len(values)):
        total += values[i]
    return total


@jit
def copy_to(source, length, target):
    """Copy the first entries."""
    for i in range(length):
        target[i] = source[i]


@reordering_jit
def _centred_dot(column, mean, score):
    """Inner product of column - mean and score.

    A loop that adds up must not write, or the order of the sum would depend on where in memory the arrays happen to
    lie: compiled code looks whether they could overlap and has a slower form for that.
    """
    total = 0.0
    for i in range(len(column)):
        total += (column[i] - mean) * score[i]
    return total


@jit
def _centre_and_weigh(column, mean, root, out):
    """Fill (column - mean) * root."""
    for i in range(len(column)):
        out[i] = (column[i] - mean) * root[i]


@reordering_jit
def _multiply_out(block, size, length, matrix):
    """Add the inner products of the first rows of `block` to the lower triangle of `matrix`.

    Two by two, so that each number loaded is used twice; fills one row, and one column above the diagonal, too many.
    """
    for a in range(0, size, 2):
        for b in range(0, a + 1, 2):
            here, right, below, across = 0.0, 0.0, 0.0, 0.0
            for i in range(length):
                here += block[a, i] * block[b, i]
                right += block[a, i] * block[b + 1, i]
                below += block[a + 1, i] * block[b, i]
                across += block[a + 1, i] * block[b + 1, i]
            matrix[a, b] += here
            matrix[a, b + 1] += right
            matrix[a + 1, b] += below
            matrix[a + 1, b + 1] += across


@jit
def accumulate(design, columns, size, score, information, moments, gradient, matrix, block):
    """Information about intercept and slopes, and the gradient, a block of rows at a time.

    `moments` receive the total information and the mean of each column in it, the lower triangle of `matrix` the
    information X' W X of the columns less their means, `gradient` the total score and its inner products with these.
    """
    n = len(information)
    total = total_of(information)
    moments[0], gradient[0] = total, total_of(score)
    for a in range(size):
        moments[a + 1] = dot(design[columns[a]], information) / total
        gradient[a + 1] = 0.0
    for a in range(size + 1):
        for b in range(size + 1):
            matrix[a, b] = 0.0
    root = block[size + 1]  # the row between is filled up by `_multiply_out`
    for low in range(0, n, BLOCK):
        # Loops from 0 on: where an index could be negative, the compiler takes one row at a time.
        high = min(low + BLOCK, n)
        here, scores = information[low:high], score[low:high]
        length = high - low
        for i in range(length):
            root[i] = math.sqrt(here[i])
        for a in range(size):
            column, mean = design[columns[a], low:high], moments[a + 1]
            gradient[a + 1] += _centred_dot(column, mean, scores)
            _centre_and_weigh(column, mean, root, block[a])
        _multiply_out(block, size, length, matrix)


@reordering_jit
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
def solve(moments, factor, size, right, out):
    """Solve for intercept and slopes.

    `right` is a gradient as `accumulate` leaves it, `factor` that of the information about the slopes.
    """
    for a in range(size):
        total = right[a + 1]
        for c in range(a):
            total -= factor[a, c] * out[c + 1]
        out[a + 1] = total / factor[a, a]
    for a in range(size - 1, -1, -1):
        out[a + 1] /= factor[a, a]
        for c in range(a):
            out[c + 1] -= factor[a, c] * out[a + 1]
    out[0] = right[0] / moments[0]
    for a in range(size):
        out[0] -= moments[a + 1] * out[a + 1]


@jit
def quadratic_form(moments, size, right, solution):
    """Inner product of a right-hand side of `solve` and its solution."""
    total = right[0] * right[0] / moments[0]
    for a in range(size):
        total += right[a + 1] * solution[a + 1]
    return total


@jit
def log_determinant(factor, size):
    """Of the matrix that was factored."""
    total = 0.0
    for a in range(size):
        total += 2.0 * math.log(factor[a, a])
    return total


@jit
def half_quadratic(precision, size, coefficients):
    """Half the quadratic form of the prior in the slopes."""
    total = 0.0
    for a in range(size):
        for b in range(size):
            total += precision[a, b] * coefficients[a + 1] * coefficients[b + 1]
    return 0.5 * total
