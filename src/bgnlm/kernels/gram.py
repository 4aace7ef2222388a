"""Residual sums of squares of many subsets of columns from one Gram matrix.

`gram` is the matrix of inner products of the centred columns, scaled to unit norm, with the response as
last row and column. Eliminating the columns of a model leaves RSS / TSS in the last corner. Besides it
every model gets its smallest pivot, which tells how far rounding reaches, and, if the array for it is not
empty, the log determinant of its block. A model with a pivot at or below `tolerance` is rank deficient and gets
residual -1.
"""

import math

import numpy as np

from bgnlm.kernels._jit import jit
from bgnlm.kernels.score_table import table_value

RANK_DEFICIENT = -1.0
NEGLIGIBLE = 1e-5


@jit
def eliminate_subset(gram, columns, size, tolerance, work):
    """Residual, smallest pivot and log determinant of the model with `columns[:size]`."""
    last = gram.shape[0] - 1
    for a in range(size):
        row = gram[columns[a]]
        for b in range(a, size):
            work[a, b] = row[columns[b]]
        work[a, size] = row[last]
    residual = gram[last, last]
    smallest = 1.0
    log_determinant = 0.0
    determinant = 1.0
    for a in range(size):
        pivot = work[a, a]
        if not pivot > tolerance:
            return RANK_DEFICIENT, 0.0, 0.0
        smallest = min(smallest, pivot)
        determinant *= pivot
        if determinant < 1e-100 or determinant > 1e100:
            log_determinant += math.log(determinant)
            determinant = 1.0
        inverse = 1.0 / pivot
        residual -= work[a, size] * work[a, size] * inverse
        for b in range(a + 1, size):
            factor = work[a, b] * inverse
            for c in range(b, size + 1):
                work[b, c] -= factor * work[a, c]
    return max(residual, 0.0), smallest, log_determinant + math.log(determinant)


@jit
def eliminate_subsets(gram, masks, tolerance, residuals, pivots, log_determinants):
    """Fill the statistics of every model in `masks`, an array of bits (models, words of 64 columns)."""
    n_columns = gram.shape[0] - 1
    columns = np.empty(n_columns, np.int64)
    work = np.empty((n_columns, n_columns + 1))
    for model in range(masks.shape[0]):
        size = 0
        for word in range(masks.shape[1]):
            bits = masks[model, word]
            column = 64 * word
            while bits != np.uint64(0):
                if bits & np.uint64(1):
                    columns[size] = column
                    size += 1
                bits >>= np.uint64(1)
                column += 1
        found = eliminate_subset(gram, columns, size, tolerance, work)
        residuals[model] = found[0]
        pivots[model] = found[1]
        if len(log_determinants):
            log_determinants[model] = found[2]


@jit
def eliminate_all_subsets(gram, max_size, tolerance, residuals, pivots, log_determinants):
    """Fill the statistics of all 2^p models, indexed by their bit mask.

    A walk over the tree of subsets in which a child adds one column below the lowest of its parent. Each
    node keeps the Gram matrix of the columns still to come after elimination of its own, so a child costs
    one rank-one update of what is left: O(1) per model on average, because most nodes are near the leaves.
    Models larger than `max_size` and supersets of a rank-deficient model keep what the arrays held before.
    """
    p = gram.shape[0] - 1
    with_determinants = len(log_determinants) > 0
    # Columns in reverse, so that the walk varies the low bits fastest and writes nearly in order.
    remaining = np.empty((p + 1, p + 1, p + 1))
    for a in range(p + 1):
        for b in range(p + 1):
            remaining[0, a, b] = gram[p - 1 - a if a < p else p, p - 1 - b if b < p else p]
    candidate = np.zeros(p + 1, np.int64)
    mask = np.zeros(p + 1, np.int64)
    smallest = np.ones(p + 1)
    log_determinant = np.zeros(p + 2)
    residuals[0] = gram[p, p]
    pivots[0] = 1.0
    if with_determinants:
        log_determinants[0] = 0.0
    depth = 0
    while depth >= 0:
        j = candidate[depth]
        if j == p or depth == max_size:
            depth -= 1
            continue
        candidate[depth] = j + 1
        parent = remaining[depth]
        pivot = parent[j, j]
        if not pivot > tolerance:
            continue
        inverse = 1.0 / pivot
        residual = max(parent[p, p] - parent[j, p] * parent[j, p] * inverse, 0.0)
        model = mask[depth] | (np.int64(1) << (p - 1 - j))
        low = min(smallest[depth], pivot)
        residuals[model] = residual
        pivots[model] = low
        if with_determinants:
            determinant = log_determinant[depth] + math.log(pivot)
            log_determinants[model] = determinant
            log_determinant[depth + 1] = determinant
        if j < p - 1:
            child = remaining[depth + 1]
            for a in range(j + 1, p):
                factor = parent[j, a] * inverse
                for b in range(a, p + 1):
                    child[a, b] = parent[a, b] - factor * parent[j, b]
            child[p, p] = residual
            depth += 1
            candidate[depth] = j + 1
            mask[depth] = model
            smallest[depth] = low


@jit
def residual_from_data(design, response, gram, columns, size, solution):
    """RSS / TSS of one model from its residual vector, good to the precision of the data.

    Solves the normal equations from `gram` and corrects the solution by the residuals (twice, more than
    enough while the pivots are above the rank tolerance). `solution` receives the coefficients of the
    unit-norm columns.
    """
    last = gram.shape[0] - 1
    factor = np.empty((size, size))
    for a in range(size):
        for b in range(a + 1):
            total = gram[columns[a], columns[b]]
            for c in range(b):
                total -= factor[a, c] * factor[b, c]
            factor[a, b] = math.sqrt(total) if a == b else total / factor[b, b]
    step = np.empty(size)
    for a in range(size):
        step[a] = gram[columns[a], last]
        solution[a] = 0.0
    residual = response.copy()
    for _ in range(3):
        for a in range(size):
            for c in range(a):
                step[a] -= factor[a, c] * step[c]
            step[a] /= factor[a, a]
        for a in range(size - 1, -1, -1):
            for c in range(a + 1, size):
                step[a] -= factor[c, a] * step[c]
            step[a] /= factor[a, a]
        for a in range(size):
            column = design[columns[a]]
            solution[a] += step[a]
            for i in range(len(residual)):
                residual[i] -= step[a] * column[i]
        for a in range(size):
            step[a] = np.dot(design[columns[a]], residual)
    return np.dot(residual, residual)


@jit
def subset_sizes(sizes):
    """Fill the number of bits of 0, 1, 2, ..."""
    sizes[0] = 0
    for model in range(1, len(sizes)):
        sizes[model] = sizes[model >> 1] + (model & 1)


@jit
def residual_range(residuals, pivots, error, lowest):
    """Smallest residual that a model can have, rounding considered; at least `lowest`, at most 1."""
    smallest = 1.0
    for model in range(len(residuals)):
        if residuals[model] != RANK_DEFICIENT:
            smallest = min(smallest, residuals[model] - error / pivots[model])
    return max(smallest, lowest)


@jit
def is_uncertain(residual, spread, steepest):
    """Whether `spread` in the residual can move the score, whose slope in log RSS is at most `steepest`."""
    return steepest * spread > NEGLIGIBLE * residual


@jit
def score_statistics(
    table, determinant_weight, lowest, error, steepest, sizes, residuals, pivots, log_determinants, scores
):
    """Turn sufficient statistics into scores; the answer is how many of them are uncertain.

    Rounding leaves the residual uncertain by `error` / pivot. Where that can change the score, the upper end
    is taken, so that no model wins by rounding.
    """
    n_uncertain = 0
    for model in range(len(scores)):
        size = sizes[model]
        if residuals[model] == RANK_DEFICIENT or not table.available[size]:
            scores[model] = -np.inf
            continue
        residual = max(residuals[model], lowest)
        spread = error / pivots[model]
        if is_uncertain(residual, spread, steepest):
            n_uncertain += 1
            residual += spread
        scores[model] = table_value(table, size, math.log(residual))
        if determinant_weight:
            scores[model] -= determinant_weight * log_determinants[model]
    return n_uncertain


@jit
def uncertain_scores(
    table,
    determinant_weight,
    lowest,
    error,
    steepest,
    sizes,
    residuals,
    pivots,
    log_determinants,
    models,
    scores,
):
    """List the uncertain models with the scores they have at most: at the lower end of their residual."""
    found = 0
    for model in range(len(sizes)):
        size = sizes[model]
        if residuals[model] == RANK_DEFICIENT or not table.available[size]:
            continue
        residual = max(residuals[model], lowest)
        spread = error / pivots[model]
        if is_uncertain(residual, spread, steepest):
            models[found] = model
            scores[found] = table_value(table, size, math.log(max(residual - spread, lowest)))
            if determinant_weight:
                scores[found] -= determinant_weight * log_determinants[model]
            found += 1


@jit
def residuals_from_data(design, response, gram, noise, models, residuals, floors):
    """Fill the residuals of the models given by their bit masks, each from the data.

    `noise` holds the rounding errors of the columns and, last, of the response, as norms. `floors` receives what
    they amount to in each model's residual: less than that means that nothing is left to explain.
    """
    columns = np.empty(len(design), np.int64)
    solution = np.empty(len(design))
    for i in range(len(models)):
        size = 0
        for column in range(len(design)):
            if (models[i] >> column) & 1:
                columns[size] = column
                size += 1
        residuals[i] = residual_from_data(design, response, gram, columns, size, solution)
        floors[i] = noise[-1] * noise[-1]
        for a in range(size):
            floors[i] += (noise[columns[a]] * solution[a]) ** 2
