"""What the size of a model is worth to a prior that prices features one by one."""

import numpy as np
import numpy.typing as npt
from scipy.special import gammaln

from bgnlm._typing import FloatArray


def log_sizes(sizes: npt.ArrayLike, n_slots: int) -> FloatArray:
    """Log of n_slots^k / C(n_slots + 1, min(k, n_slots)) for models of k features.

    A prior that prices each feature at log n_slots becomes one of features that matter with the same unknown
    probability, a Beta(1, 2) variable: all shares are possible, small ones more probable. The k-th feature then costs
    log((n_slots - k + 2) / k): dear where nothing else is there, and less than nothing where most of the others are.
    All together cost as much as a single one. 0 slots: no such prior.
    """
    k = np.asarray(sizes, dtype=np.int64)
    if not n_slots:
        return np.zeros(k.shape)
    within = np.minimum(k, n_slots)
    log_sets = gammaln(n_slots + 2) - gammaln(within + 1) - gammaln(n_slots - within + 2)
    return np.asarray(k * np.log(n_slots) - log_sets)
