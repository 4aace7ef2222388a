"""Residual sums of squares of many subsets of columns from one Gram matrix.

`gram` is the matrix of inner products of the centred columns, scaled to unit norm, with the response as last row and
column. Eliminating the columns of a model leaves RSS / TSS in the last corner. Besides it every model gets its
smallest pivot, which tells how far rounding reaches, and, if the array for it is not empty, the log determinant of its
block. Where rounding reaches as far as a pivot, the model is undecided; `fit_subset` decides from the data.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bgnlm.kernels._jit import jit, reordering_jit
from bgnlm.kernels.score_table import table_value

# In place of a residual.
UNDECIDED = -1.0
RANK_DEFICIENT = -2.0


@jit
def reliable_pivot(error, smallest):
    """The pivot that rounding can produce from nothing after pivots down to `smallest`."""
    return max(1e-12, error / smallest)


@reordering_jit
def eliminate_subset(gram, columns, size, error, work):
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
        if not pivot > reliable_pivot(error, smallest):
            return UNDECIDED, smallest, 0.0
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
def eliminate_subsets(gram, masks, error, residuals, pivots, log_determinants):
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
        found = eliminate_subset(gram, columns, size, error, work)
        residuals[model] = found[0]
        pivots[model] = found[1]
        if len(log_determinants):
            log_determinants[model] = found[2]


@jit
def eliminate_all_subsets(gram, max_size, error, residuals, pivots, log_determinants):
    """Fill the statistics of all 2^p models, indexed by their bit mask.

    A walk over the tree of subsets in which a child adds one column below the lowest of its parent. Each
    node keeps the Gram matrix of the columns still to come after elimination of its own, so a child costs
    one rank-one update of what is left: O(1) per model on average, because most nodes are near the leaves.
    The highest column is eliminated first. Models larger than `max_size` and those that an unreliable pivot leaves
    undecided keep what the arrays held before.
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
        if not pivot > reliable_pivot(error, smallest[depth]):
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


@reordering_jit
def fit_subset(rows, noise, columns, size, q, r, inverse, slopes):
    """RSS / TSS, its floor and the slopes of one model, by orthogonalisation of its columns; good to the last digits.

    `rows` holds the columns and, last, the response in as many rows as it takes: the data, or their triangular factor.
    `noise` are their rounding errors, as norms. A model is rank deficient if some column is no further from the span of
    the others than rounding errors reach, in whatever order they come; the residual then says so. The floor is what
    rounding errors amount to in the residual: less means that nothing is left to explain.
    """
    n_rows = rows.shape[0]
    for a in range(size):
        for i in range(n_rows):
            q[a, i] = rows[i, columns[a]]
        for b in range(a + 1):
            r[b, a] = 0.0
        for _ in range(2):  # twice is enough
            for b in range(a):
                along = 0.0
                for i in range(n_rows):
                    along += q[b, i] * q[a, i]
                r[b, a] += along
                for i in range(n_rows):
                    q[a, i] -= along * q[b, i]
        square = 0.0
        for i in range(n_rows):
            square += q[a, i] * q[a, i]
        r[a, a] = math.sqrt(square)
        if r[a, a] == 0.0:
            return RANK_DEFICIENT, 0.0
        for i in range(n_rows):
            q[a, i] /= r[a, a]
    invert_upper(r, size, inverse)
    if depends(inverse, noise, columns, size):
        return RANK_DEFICIENT, 0.0
    left = np.empty(n_rows)
    for i in range(n_rows):
        left[i] = rows[i, rows.shape[1] - 1]
    for a in range(size):
        slopes[a] = 0.0
    for _ in range(2):
        for a in range(size):
            along = 0.0
            for i in range(n_rows):
                along += q[a, i] * left[i]
            for i in range(n_rows):
                left[i] -= along * q[a, i]
            for b in range(a + 1):
                slopes[b] += inverse[b, a] * along
    floor = noise[-1] * noise[-1]
    for a in range(size):
        floor += (noise[columns[a]] * slopes[a]) ** 2
    square = 0.0
    for i in range(n_rows):
        square += left[i] * left[i]
    return square, floor


@jit
def invert_upper(r, size, inverse):
    """Inverse of an upper triangular matrix."""
    for c in range(size):
        for a in range(c + 1, size):
            inverse[a, c] = 0.0
        inverse[c, c] = 1.0 / r[c, c]
        for a in range(c - 1, -1, -1):
            total = 0.0
            for b in range(a + 1, c + 1):
                total += r[a, b] * inverse[b, c]
            inverse[a, c] = -total / r[a, a]


@jit
def depends(inverse, noise, columns, size):
    """Whether rounding errors reach from some column to the span of the others.

    With H the inverse of the Gram matrix, column j is 1 / H_jj away (squared), and -H_jc / H_jj are the coefficients of
    the others in its projection.
    """
    for j in range(size):
        own = 0.0
        for c in range(j, size):
            own += inverse[j, c] * inverse[j, c]
        reach = 0.0
        for c in range(size):
            shared = 0.0
            for i in range(max(j, c), size):
                shared += inverse[j, i] * inverse[c, i]
            reach += (shared * noise[columns[c]]) ** 2
        if own <= reach:
            return True
    return False


@jit
def fit_subsets(rows, noise, models, residuals, floors, log_determinants, all_slopes):
    """`fit_subset` for models given by their bit masks.

    Log determinants of the Gram matrices and slopes, `all_slopes` (models, columns), are filled unless they are empty.
    """
    p = rows.shape[1] - 1
    columns = np.empty(p, np.int64)
    q = np.empty((p, rows.shape[0]))
    r, inverse, slopes = np.empty((p, p)), np.empty((p, p)), np.empty(p)
    for i in range(len(models)):
        size = columns_of(models[i], columns)
        found = fit_subset(rows, noise, columns, size, q, r, inverse, slopes)
        residuals[i] = found[0]
        floors[i] = found[1]
        if len(log_determinants):
            log_determinants[i] = 0.0
            for a in range(size if found[0] != RANK_DEFICIENT else 0):
                log_determinants[i] += 2.0 * math.log(r[a, a])
        if len(all_slopes):
            for column in range(p):
                all_slopes[i, column] = 0.0
            for a in range(size if found[0] != RANK_DEFICIENT else 0):
                all_slopes[i, columns[a]] = slopes[a]


@jit
def columns_of(mask, columns):
    """List the bits of a mask."""
    size = 0
    column = 0
    while mask:
        if mask & 1:
            columns[size] = column
            size += 1
        mask >>= 1
        column += 1
    return size


@jit
def subset_sizes(sizes):
    """Fill the number of bits of 0, 1, 2, ..."""
    sizes[0] = 0
    for model in range(1, len(sizes)):
        sizes[model] = sizes[model >> 1] + (model & 1)


class Statistics(NamedTuple):
    """What the score of each model is computed from, and how rounding enters."""

    sizes: Any
    residuals: Any
    pivots: Any
    log_determinants: Any
    determinant_weight: float
    lowest: float  # residual below which only rounding errors are left
    error: float  # of a residual, times the smallest pivot
    steepest: float  # largest slope of the score in log RSS
    tolerance: float  # nats that rounding may move a score


@jit
def lowest_residual(statistics):
    """Smallest residual that a model can have, rounding considered; at most 1."""
    smallest = 1.0
    for model in range(len(statistics.residuals)):
        if statistics.residuals[model] >= 0.0:
            smallest = min(smallest, statistics.residuals[model] - statistics.error / statistics.pivots[model])
    return max(smallest, statistics.lowest)


@jit
def score_statistics(statistics, table, bound, scores, uncertain, best_scores):
    """Turn sufficient statistics into scores; the answer is how many of them are uncertain.

    Rounding leaves the residual uncertain by error / pivot. Where that can change the score, the upper end is taken,
    so that no model wins by rounding; as far as there is room, `uncertain` lists these models and `best_scores` what
    they have at most: at the lower end, not below `bound`. Undecided models are among them, with score -inf.
    """
    found = 0
    for model in range(len(scores)):
        size = statistics.sizes[model]
        scores[model] = -np.inf
        if statistics.residuals[model] == RANK_DEFICIENT or not table.available[size]:
            continue
        determinant = 0.0
        if statistics.determinant_weight:
            determinant = statistics.determinant_weight * statistics.log_determinants[model]
        low = bound
        if statistics.residuals[model] != UNDECIDED:
            residual = max(statistics.residuals[model], statistics.lowest)
            spread = statistics.error / statistics.pivots[model]
            if statistics.steepest * spread <= statistics.tolerance * residual:
                scores[model] = table_value(table, size, math.log(residual)) - determinant
                continue
            scores[model] = table_value(table, size, math.log(residual + spread)) - determinant
            low = max(residual - spread, bound)
        if found < len(uncertain):
            uncertain[found] = model
            best_scores[found] = table_value(table, size, math.log(low)) - determinant
        found += 1
    return found


@reordering_jit
def inner_products(rows, column, out):
    """Inner products of a column with each row."""
    for a in range(len(rows)):
        total = 0.0
        for i in range(len(column)):
            total += rows[a, i] * column[i]
        out[a] = total
