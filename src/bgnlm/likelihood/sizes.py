"""Every size of a model is as probable as another: what that is worth to a prior that prices features one by one."""

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from bgnlm._typing import FloatArray


def log_sizes(sizes: npt.ArrayLike, n_slots: int) -> FloatArray:
    """Log of n_slots^k / C(n_slots, k) for models of k features, and of n_slots^k for larger ones.

    A prior that prices each feature at log n_slots becomes one in which all sizes from 0 to n_slots have the same
    probability, shared by the sets of that size: the Beta-binomial prior, an unknown share of the features that is
    uniform between 0 and 1. The k-th feature then costs log((n_slots - k + 1) / k): dear where nothing else is there,
    and less than nothing where most of the others are. 0 slots: no such prior.
    """
    k = np.asarray(sizes, dtype=np.int64)
    if not n_slots:
        return np.zeros(k.shape)
    within = np.minimum(k, n_slots)
    log_sets = gammaln(n_slots + 1) - gammaln(within + 1) - gammaln(n_slots - within + 1)
    return np.asarray(k * np.log(n_slots) - log_sets)
