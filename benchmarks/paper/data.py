"""The data of the prediction examples: rows to learn from and rows to be predicted."""

from functools import cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from bgnlm.datasets import load_abalone, load_asteroids, load_breast_cancer, load_spam

_LOADERS = {
    "breast_cancer": load_breast_cancer,
    "spam": load_spam,
    "abalone": load_abalone,
    "asteroids": load_asteroids,
}


class Sample(NamedTuple):
    """Training and test rows."""

    X: pd.DataFrame
    y: np.ndarray
    X_new: pd.DataFrame
    y_new: np.ndarray

    @property
    def is_classification(self) -> bool:
        """Whether the response is 0 or 1."""
        return bool(np.isin(self.y, (0, 1)).all())


@cache
def load(name: str, *, is_standardised: bool = False) -> Sample:
    """Load an example; standardised as the authors do for the spam data, by all rows, those of the test among them."""
    data = _LOADERS[name]()
    X = (data.X - data.X.mean()) / data.X.std() if is_standardised else data.X
    train = data.is_train
    assert train is not None
    y = data.y.to_numpy(dtype=float)
    return Sample(X[train], y[train], X[~train], y[~train])
