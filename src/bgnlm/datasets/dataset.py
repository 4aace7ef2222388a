"""A data set as the examples of the paper use it: inputs, response and what belongs to them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from bgnlm.errors import DataError

if TYPE_CHECKING:
    import pandas as pd

    from bgnlm._typing import BoolArray


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Dataset:
    """Inputs and response of one example.

    Attributes
    ----------
    name : str
        The short name, as in ``load_<name>``.
    X : DataFrame
        The inputs as published, not standardised; all columns are floats.
    y : Series
        The response, with the index of `X`.
    is_train : boolean array or None
        Which rows of `X` are for training; None where there is no split.
    table : DataFrame
        The whole table; the index of `X` points to its rows.
    description : str
        What the data are, their units, source and terms.
    offset : Series or None
        The known part of the linear predictor.
    position : Series or None
        Where each row lies, for latent processes.
    truth : tuple of str
        The true features as `bgnlm.parse` reads them, where a law is known.

    Examples
    --------
    >>> from bgnlm.datasets import Dataset, make_kepler
    >>> data = make_kepler(n_rows=50, random_state=1)
    >>> isinstance(data, Dataset)
    True
    >>> data.name, data.X.shape, data.truth
    ('kepler', (50, 10), ('cbrt_abs(HostStarMassSlrMass*PeriodDays**2)',))
    """

    name: str
    X: pd.DataFrame
    y: pd.Series
    table: pd.DataFrame
    description: str
    is_train: BoolArray | None = None
    offset: pd.Series | None = None
    position: pd.Series | None = None
    truth: tuple[str, ...] = ()

    @property
    def train(self) -> tuple[pd.DataFrame, pd.Series]:
        """X and y of the training rows."""
        chosen = self._split()
        return self.X[chosen], self.y[chosen]

    @property
    def test(self) -> tuple[pd.DataFrame, pd.Series]:
        """X and y of the test rows."""
        chosen = ~self._split()
        return self.X[chosen], self.y[chosen]

    def _split(self) -> BoolArray:
        if self.is_train is None:
            raise DataError(
                f"The data set {self.name!r} is not split into training and test rows. Use X and y, "
                "and split them yourself if you need to."
            )
        return self.is_train

    def __repr__(self) -> str:
        n_rows, n_inputs = self.X.shape
        text = f"<Dataset {self.name}: {n_rows:,} rows, {n_inputs} inputs, response {self.y.name}"
        if self.is_train is not None:
            text += f", {self.is_train.sum():,} for training"
        return f"{text}>"
