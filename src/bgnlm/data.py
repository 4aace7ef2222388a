"""A small read-only table of named numeric columns, the form in which the packaged data come."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from bgnlm._typing import AnyArray, FloatArray
from bgnlm.errors import DataError


@dataclass(frozen=True, eq=False, kw_only=True)
class Table:
    """Named numeric columns of equal length.

    Attributes
    ----------
    names : tuple of str
        Column names, all different.
    values : array of shape (n_rows, n_columns)
        The numbers, a read-only copy of what was given; NaN marks a missing value.
    labels : tuple of str
        Row names, or empty.
    description : str
        What the table holds: units, sources, conventions.
    """

    names: tuple[str, ...]
    values: FloatArray
    labels: tuple[str, ...] = ()
    description: str = ""

    def __post_init__(self) -> None:
        values = _read_only(self.values)
        names, labels = tuple(self.names), tuple(self.labels)
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise DataError(f"Column names must differ, but {', '.join(repeated)} came more than once.")
        if values.shape[1] != len(names):
            raise DataError(f"values has {values.shape[1]} columns, but there are {len(names)} names.")
        if labels and len(labels) != len(values):
            raise DataError(f"values has {len(values)} rows, but there are {len(labels)} labels.")
        for attribute, clean in (("names", names), ("values", values), ("labels", labels)):
            object.__setattr__(self, attribute, clean)

    def __len__(self) -> int:
        return len(self.values)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names, under the name that data frames have for them."""
        return self.names

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> AnyArray:
        return np.array(self.values, dtype=dtype)

    def __getitem__(self, names: Sequence[str]) -> Self:
        return self.select(names)

    def column(self, name: str) -> FloatArray:
        """Return the column called ``name``, of shape (n_rows,)."""
        return self.values[:, self._position(name)]

    def select(self, names: Sequence[str]) -> Self:
        """Return a table of the columns called ``names``, in that order."""
        positions = [self._position(name) for name in names]
        return type(self)(
            names=tuple(names),
            values=self.values[:, positions],
            labels=self.labels,
            description=self.description,
        )

    def _position(self, name: str) -> int:
        if name not in self.names:
            raise DataError(f"There is no column {name!r}. The columns are: {', '.join(self.names)}.")
        return self.names.index(name)


def _read_only(values: object) -> FloatArray:
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise DataError(f"values must be numbers in rows of equal length ({error}).") from error
    if array.ndim != 2:
        raise DataError(f"values must have rows and columns, got an array of {array.ndim} dimensions.")
    array.flags.writeable = False
    return array
