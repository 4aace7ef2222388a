"""Tests of samples against exact probabilities."""

import numpy as np
from scipy.stats import chi2

from bgnlm.likelihood.subsets import unpack

LEAST_EXPECTED = 5.0


def all_models(n_columns):
    """Every model as a row of Booleans, in the order of the bit masks."""
    return unpack(np.arange(2**n_columns), n_columns)


def mask_of(included):
    """Place of a model among all of them."""
    return int(included @ (1 << np.arange(len(included))))


def fit_p_value(counts, probabilities):
    """Chi-square test of counts against probabilities; cells are pooled until 5 or more are expected in each."""
    expected = counts.sum() * probabilities
    assert not counts[expected == 0.0].any()
    order = np.argsort(expected)
    first = int(np.searchsorted(expected[order].cumsum(), LEAST_EXPECTED))
    rest = order[first + 1 :]
    pooled = order[: first + 1]
    while len(rest) and expected[rest[0]] < LEAST_EXPECTED:
        pooled, rest = np.append(pooled, rest[0]), rest[1:]
    seen = np.append(counts[pooled].sum(), counts[rest])
    wanted = np.append(expected[pooled].sum(), expected[rest])
    assert len(seen) > 2
    return float(chi2.sf(((seen - wanted) ** 2 / wanted).sum(), len(seen) - 1))


def symmetry_p_value(before, after, n_models):
    """Whether moves from a to b are as frequent as moves from b to a, for all pairs that are seen often enough."""
    pairs = np.zeros((n_models, n_models))
    np.add.at(pairs, (before, after), 1.0)
    forth, back = pairs[np.triu_indices(n_models, 1)], pairs.T[np.triu_indices(n_models, 1)]
    often = forth + back >= 2 * LEAST_EXPECTED
    forth, back = forth[often], back[often]
    assert len(forth) > 2
    return float(chi2.sf(((forth - back) ** 2 / (forth + back)).sum(), len(forth)))
