"""Steps between models of many columns under a quadratic log-likelihood, slopes integrated out.

The matrix has the precision of all slopes, then of the intercept, and in its last row and column the linear term of the
log-likelihood. With the columns of a model swept (Beaton 1964) it says at once what each other column would add to the
model and what each of its own is worth.
"""

import math

from bgnlm.kernels._jit import jit

_OF_PAIRS = 0.4  # share of the steps that exchange a column for one that resembles it


@jit
def sweep(matrix, k, forward):
    """Sweep a column into the model, or out of it."""
    n, pivot = len(matrix), matrix[k, k]
    row = matrix[k].copy()
    for i in range(n):
        if i != k:
            factor, target = row[i] / pivot, matrix[i]
            for j in range(n):
                target[j] -= factor * row[j]
    sign = 1.0 if forward else -1.0
    for i in range(n):
        matrix[i, k] = matrix[k, i] = sign * row[i] / pivot
    matrix[k, k] = -1.0 / pivot


@jit
def gain(matrix, k, log_precision):
    """Nats of log marginal likelihood that a column outside the model adds to it, or one inside is worth.

    The slope's prior is normal with that precision, which is part of the matrix.
    """
    pivot, along = matrix[k, k], matrix[k, -1]
    spread = pivot if pivot > 0.0 else -1.0 / pivot
    explained = along * along / pivot if pivot > 0.0 else -along * along / pivot
    return 0.5 * (explained - math.log(spread) + log_precision)


@jit
def gain_in_place_of(matrix, inside, outside, log_precision):
    """What a column outside the model adds once one of the model's is left out."""
    pivot = matrix[inside, inside]
    left = matrix[outside, outside] - matrix[inside, outside] ** 2 / pivot
    along = matrix[outside, -1] - matrix[inside, outside] * matrix[inside, -1] / pivot
    return 0.5 * (along * along / left - math.log(left) + log_precision)


@jit
def move(rng, matrix, included, costs, sizes, log_precision, max_size, pairs, n_steps):
    """Metropolis steps: a column at random in or out, or one of the model for one that resembles it.

    `sizes` is the log prior of models by their size, beside the `costs` of their columns. Answers the number of steps
    that were taken.
    """
    size, n_taken, n_columns = included.sum(), 0, len(included)
    for _ in range(n_steps):
        if len(pairs) and rng.random() < _OF_PAIRS:
            a, b = pairs[int(rng.random() * len(pairs))]
            if included[a] == included[b]:
                continue
            inside, outside = (a, b) if included[a] else (b, a)
            change = gain_in_place_of(matrix, inside, outside, log_precision) - gain(matrix, inside, log_precision)
            if -rng.standard_exponential() < change + costs[inside] - costs[outside]:
                sweep(matrix, inside, False)
                sweep(matrix, outside, True)
                included[inside], included[outside] = False, True
                n_taken += 1
            continue
        k = int(rng.random() * n_columns)
        worth = gain(matrix, k, log_precision) - costs[k]
        after = size - 1 if included[k] else size + 1
        if after > max_size:
            continue
        change = (-worth if included[k] else worth) + sizes[after] - sizes[size]
        if -rng.standard_exponential() < change:
            sweep(matrix, k, not included[k])
            included[k] = not included[k]
            size = after
            n_taken += 1
    return n_taken
