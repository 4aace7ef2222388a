"""Tables in which some columns are set to values of one's choice, and the values that are worth it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm.errors import DataError, SettingError
from bgnlm.plot.canvas import some_of
from bgnlm.plot.fits import check_model

if TYPE_CHECKING:
    from collections.abc import Callable

    from bgnlm._typing import AnyArray, FloatArray, IntArray

_FEW = 8  # different numbers that are drawn one by one
_CROWD = 0.4  # of the rows, between two neighbours of a grid, for which it is too coarse there
_MISSING = "(missing)"  # as the report page calls it
_TAIL = 0.01  # of the rows, at either end, that the values of an input leave out


@dataclass(frozen=True, eq=False)
class Rows:
    """Some rows of a table as a pandas frame, which rows they are, and the offset there.

    `whole` gives a column of all rows by its place.
    """

    frame: Any
    places: IntArray
    n_given: int
    offset: Any
    whole: Callable[[int], Any]

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
    frame, n_given, whole = _as_pandas(X, most)
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
    return Rows(frame, places, n_given, offset, whole)


def _as_pandas(X: Any, most: int) -> tuple[Any, int, Callable[[int], Any]]:
    """Return some rows, how many there are, and what gives a column of all of them by its place."""
    import narwhals.stable.v1 as nw
    import pandas as pd

    if isinstance(X, list | tuple):
        X = np.asarray(X, dtype=object)
    if isinstance(X, np.ndarray) or not hasattr(X, "columns"):
        cells = np.asarray(X)
        if cells.ndim != 2:
            raise DataError(f"X must be a table of rows and columns; got shape {cells.shape}.")
        part = pd.DataFrame(cells[some_of(len(cells), most)])
        return part, len(cells), lambda place: pd.Series(cells[:, place].tolist())
    whole = nw.from_native(X, eager_only=True)
    part = whole[some_of(len(whole), most).tolist()]
    # By lists: what libraries call a type differs, and the estimator looks at values anyway.
    frame = pd.DataFrame({name: part[name].to_list() for name in part.columns})
    return frame, len(whole), lambda place: pd.Series(whole[whole.columns[place]].to_list())


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


def values_at(model: Any, rows: Rows, place: int, n_grid: int, wanted: Any = None) -> Values:
    """Choose values of a column by all rows of the table, since some rows may lack what is rare."""
    known, name = list(model.coding_.input_names), rows.frame.columns[place]
    coded = model.coding_.columns[known.index(name) if model.coding_.has_names and name in known else place]
    return values_of(rows.whole(place), n_grid, wanted, with_missing=coded.indicator)


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


def values_of(column: Any, n_grid: int, wanted: Any = None, *, with_missing: bool = False) -> Values:
    """Choose values of a column: all of them if they are few, else between its quantiles.

    With `with_missing`, categories have a last one for missing values, which the model tells from the others.
    """
    import pandas as pd

    present = column.dropna() if wanted is None else pd.Series(list(wanted))
    if not len(present):
        raise DataError("The input must have values in X; all are missing.")
    is_number = present.dtype.kind in "iuf"  # a long column is not looked through value by value
    if not is_number and any(isinstance(value, str | bool | np.bool_) for value in present.tolist()):
        return _categories(sorted(set(present.tolist()), key=str), with_missing and wanted is None)
    numbers = np.asarray(present, dtype=np.float64)
    different = np.unique(numbers)
    if wanted is not None or len(different) <= _FEW:
        return Values(different, different, None, len(different) <= _FEW)
    grid = _between(numbers, n_grid)
    return Values(grid, grid, None, False)


def _categories(levels: list[Any], with_missing: bool) -> Values:
    labels = list(map(str, levels))
    if with_missing:
        levels, labels = [*levels, None], [*labels, _MISSING]
    return Values(np.array(levels, dtype=object), np.arange(float(len(levels))), labels, True)


def _between(values: FloatArray, n_grid: int) -> FloatArray:
    """Return numbers at equal distances; half of them are quantiles if many values are between two of these."""
    low, high = np.quantile(values, [_TAIL, 1.0 - _TAIL])
    grid = np.linspace(low, high if high > low else values.max(), n_grid)
    if n_grid <= _FEW or np.histogram(values, grid)[0].max() < _CROWD * len(values):
        return grid
    ends = np.append(grid[::2], grid[-1])
    return np.union1d(ends, np.quantile(values, np.linspace(_TAIL, 1.0 - _TAIL, n_grid // 2)))
