"""Scores of all models under a quadratic log-likelihood, many models at a time.

Columns come in one after the other. Each doubles the models at hand: the new half is the old one with this column
eliminated. A number is kept for all models side by side, so that every step is a loop without branches over models. The
first columns give a few thousand models; the others are added to some of these at a time, in the cache.
"""

import math
from typing import Any, NamedTuple

import numpy as np

from bgnlm.kernels._jit import jit
from bgnlm.kernels.gram import reliable_pivot

_LATER = 8  # columns that are added in the cache
_TOGETHER = 16  # models they are added to at a time


class Partial(NamedTuple):
    """Models over the columns so far, those still to come eliminated from; the last index is the model."""

    posterior: Any  # upper triangle; the gradient is the last column
    prior: Any
    smallest: Any  # pivot so far: posterior, prior
    determinants: Any  # that of the prior divided by that of the posterior; 0 for dependent columns
    scores: Any  # the rest


@jit
def room_for(n_columns, n_models):
    """Arrays for so many models."""
    p = n_columns
    shape = (p, p + 1, n_models)
    return Partial(np.empty(shape), np.empty(shape), np.empty((2, n_models)), np.empty(n_models), np.empty(n_models))


@jit
def eliminate(matrices, column, width, error, smallest, count, inverses):
    """Eliminate a column from the first `count` matrices, into the next `count`.

    `inverses` receive one over the pivots; zero where a pivot is not reliable.
    """
    pivots, new_smallest = matrices[column, column], smallest[count:]
    for m in range(count):
        is_reliable = pivots[m] > reliable_pivot(error, smallest[m])
        inverses[m] = 1.0 / pivots[m] if is_reliable else 0.0
        new_smallest[m] = min(smallest[m], pivots[m]) if is_reliable else smallest[m]
    for a in range(column + 1, len(matrices)):
        left = matrices[column, a]
        for b in range(a, width):
            right, old, new = matrices[column, b], matrices[a, b], matrices[a, b, count:]
            for m in range(count):
                new[m] = old[m] - left[m] * inverses[m] * right[m]


@jit
def add_column(partial, column, cost, corner, error, count, inverses, prior_inverses):
    """Double the models: the second half has the column."""
    p = len(partial.posterior)
    eliminate(partial.prior, column, p, error, partial.smallest[1], count, prior_inverses)
    eliminate(partial.posterior, column, p + 1, error, partial.smallest[0], count, inverses)
    gradients, prior_pivots = partial.posterior[column, p], partial.prior[column, column]
    scores, determinants = partial.scores[count:], partial.determinants[count:]
    for m in range(count):
        scores[m] = partial.scores[m] + cost + 0.5 * corner * gradients[m] * gradients[m] * inverses[m]
        prior_pivot = prior_pivots[m] if prior_inverses[m] > 0.0 else 0.0
        determinants[m] = partial.determinants[m] * prior_pivot * inverses[m]


@jit
def copy_models(source, first, count, first_column, target):
    """Copy some models, as far as the columns from `first_column` on need them."""
    p = len(source.posterior)
    for m in range(count):
        target.scores[m], target.determinants[m] = source.scores[first + m], source.determinants[first + m]
        target.smallest[0, m], target.smallest[1, m] = source.smallest[0, first + m], source.smallest[1, first + m]
    for a in range(first_column, p):
        for b in range(a, p + 1):
            for m in range(count):
                target.posterior[a, b, m] = source.posterior[a, b, first + m]
                target.prior[a, b, m] = source.prior[a, b, first + m] if b < p else 0.0


@jit
def score_all_models(posterior, prior, costs, corner, constant, error, scores):
    """Fill the scores of all models, indexed by their bit mask: -inf where columns are dependent.

    `posterior` is the posterior precision, scaled to unit diagonal, with the gradient as last column, `corner` the
    factor on its square; `prior` the matrix in the prior precision. Each column adds its cost, half the gain in the
    quadratic form and half the change in the log ratio of the determinants.
    """
    p = len(costs)
    n_first = max(p - _LATER, 0)
    n_models = 2**n_first
    together = min(_TOGETHER, n_models)
    start, partial = room_for(p, n_models), room_for(p, together * 2 ** (p - n_first))
    for a in range(p):
        for b in range(p + 1):
            start.posterior[a, b, 0], start.prior[a, b, 0] = posterior[a, b], prior[a, b] if b < p else 0.0
    start.smallest[0, 0], start.smallest[1, 0] = 1.0, 1.0
    start.determinants[0], start.scores[0] = 1.0, constant
    most = max(n_models, len(partial.scores))
    inverses, prior_inverses = np.empty(most), np.empty(most)
    for column in range(n_first):
        add_column(start, column, costs[column], corner, error, 2**column, inverses, prior_inverses)
    for first in range(0, n_models, together):
        copy_models(start, first, together, n_first, partial)
        count = together
        for column in range(n_first, p):
            add_column(partial, column, costs[column], corner, error, count, inverses, prior_inverses)
            count *= 2
        for block in range(count // together):
            low = block * together
            for m in range(together):
                value = partial.scores[low + m] + 0.5 * math.log(partial.determinants[low + m])
                scores[block * n_models + first + m] = value
