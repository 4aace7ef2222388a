"""Tables in which some columns are set to values of one's choice, and the values that are worth it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm.errors import DataError, SettingError
from bgnlm.plot.canvas import some_of
from bgnlm.plot.fits import check_model

if TYPE_CHECKING:
    from bgnlm._typing import AnyArray, FloatArray, IntArray

_FEW = 8  # different numbers that are drawn one by one
_CROWD = 0.4  # of the rows, between two neighbours of a grid, for which it is too coarse there
_TAIL = 0.01  # of the rows, at either end, that the values of an input leave out


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a table as a pandas frame, which rows they are, and the offset there."""

    frame: Any
    places: IntArray
    n_given: int
    offset: Any

    def repeated(self, settings: dict[int, AnyArray]) -> tuple[Any, Any]:
        """Return all rows once for each value of the columns in `settings`, and the offset; rows vary fastest."""
        n_rows, n_values = len(self.frame), len(next(iter(settings.values())))
        again = np.tile(np.arange(n_rows), n_values)
        frame = self.frame.iloc[again].reset_index(drop=True)
        for place, values in settings.items():
            frame.isetitem(place, np.repeat(values, n_rows))
        return frame, self.offset[again] if isinstance(self.offset, np.ndarray) else self.offset


def take_rows(model: Any, X: Any, most: int, offset: Any = None) -> Rows:
    """Take at most so many rows of a table, of any kind; `X` must be there, since estimators keep no data."""
    check_model(model)
    if X is None:
        raise DataError("X must be a table: the estimator keeps no data. Give that of the training, or any like it.")
    frame, n_given = _as_pandas(X, most)
    places = some_of(n_given, most)
    if frame.shape[1] != model.n_features_in_:
        raise DataError(
            f"X has {frame.shape[1]} columns, but the model was fitted with {model.n_features_in_}. Give the columns "
            "of the training data."
        )
    if offset is not None and np.ndim(offset) > 0:
        given = np.asarray(offset, dtype=np.float64).reshape(-1)
        if len(given) != n_given:
            raise DataError(f"offset must have one value for each of the {n_given} rows; got {len(given)}.")
        offset = given[places]
    return Rows(frame, places, n_given, offset)


def _as_pandas(X: Any, most: int) -> tuple[Any, int]:
    import narwhals.stable.v1 as nw
    import pandas as pd

    if isinstance(X, list | tuple):
        X = np.asarray(X, dtype=object)
    if isinstance(X, np.ndarray) or not hasattr(X, "columns"):
        cells = np.asarray(X)
        if cells.ndim != 2:
            raise DataError(f"X must be a table of rows and columns; got shape {cells.shape}.")
        return pd.DataFrame(cells[some_of(len(cells), most)]), len(cells)
    whole = nw.from_native(X, eager_only=True)
    part = whole[some_of(len(whole), most).tolist()]
    # By lists: what libraries call a type differs, and the estimator looks at values anyway.
    return pd.DataFrame({name: part[name].to_list() for name in part.columns}), len(whole)


def input_place(model: Any, rows: Rows, name: str | int) -> int:
    """Return where an input is in the table, by its name or its number."""
    known = list(model.coding_.input_names)
    if isinstance(name, int | np.integer) and not isinstance(name, bool) and 0 <= name < len(known):
        name = known[int(name)]
    if name not in known:
        listed = ", ".join(known[:20]) + (", ..." if len(known) > 20 else "")
        raise SettingError(f"input must be one of the columns of the training data, {listed}; got {name!r}.")
    given = list(rows.frame.columns)
    return given.index(name) if model.coding_.has_names and name in given else known.index(str(name))


@dataclass(frozen=True, eq=False)
class Values:
    """Values of an input to draw at: where on the axis, and their names if they are no numbers.

    Attributes
    ----------
    given
        As the table has them.
    at
        Numbers on the axis.
    labels
        Names of categories; None for numbers.
    few
        Whether they are drawn one by one.
    """

    given: AnyArray
    at: FloatArray
    labels: list[str] | None
    few: bool


def values_of(column: Any, n_grid: int, wanted: Any = None) -> Values:
    """Choose values of a column: all of them if they are few, else between its quantiles."""
    present = [value for value in column.tolist() if value is not None and value == value]
    if wanted is not None:
        present = list(wanted)
    if not present:
        raise DataError("The input must have values in X; all are missing.")
    if any(isinstance(value, str | bool | np.bool_) for value in present):
        different = sorted(set(present), key=str)
        return Values(
            np.array(different, dtype=object), np.arange(float(len(different))), list(map(str, different)), True
        )
    numbers = np.unique(np.asarray(present, dtype=np.float64))
    if wanted is not None or len(numbers) <= _FEW:
        return Values(numbers, numbers, None, len(numbers) <= _FEW)
    grid = _between(np.asarray(present, dtype=np.float64), n_grid)
    return Values(grid, grid, None, False)


def _between(values: FloatArray, n_grid: int) -> FloatArray:
    """Return numbers at equal distances; half of them are quantiles if many values are between two of these."""
    low, high = np.quantile(values, [_TAIL, 1.0 - _TAIL])
    grid = np.linspace(low, high if high > low else values.max(), n_grid)
    if n_grid <= _FEW or np.histogram(values, grid)[0].max() < _CROWD * len(values):
        return grid
    ends = np.append(grid[::2], grid[-1])
    return np.union1d(ends, np.quantile(values, np.linspace(_TAIL, 1.0 - _TAIL, n_grid // 2)))
