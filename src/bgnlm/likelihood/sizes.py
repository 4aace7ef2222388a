"""Models are sets: what that is worth to a prior that prices features one by one."""

import numpy as np
import numpy.typing as npt

from bgnlm._typing import FloatArray


def log_orders(sizes: npt.ArrayLike, n_slots: int) -> FloatArray:
    """Log of the number of orders in which features can be chosen: log k!, growing by log n_slots at most.

    A prior that gives each feature 1 / n_slots spreads the probability of a set over its orders. With them, the k-th
    feature costs log(n_slots / k): dear where nothing else is there, and nothing where there are as many as slots.
    0 slots: no such prior.
    """
    k = np.asarray(sizes, dtype=np.int64)
    if not n_slots:
        return np.zeros(k.shape)
    steps = np.log(np.minimum(np.arange(1, int(k.max(initial=0)) + 1), n_slots))
    return np.append(0.0, np.cumsum(steps))[k]
