"""From the values of a column to the positions of a component, in training and in new rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, NamedTuple

import numpy as np

from bgnlm._typing import AnyArray, FloatArray, IntArray
from bgnlm._validation import LARGEST
from bgnlm.errors import DataError, SettingError
from bgnlm.latent.fields import LatentField
from bgnlm.latent.layout import Placed

UNKNOWN = -1
_KINDS = {"b": "numbers", "i": "numbers", "u": "numbers", "U": "texts"}  # of arrays in which nothing can be missing


class NewPlaces(NamedTuple):
    """New rows for one component: numbers of known positions (-1 for others), times, and loadings."""

    place: IntArray
    times: FloatArray
    loading: FloatArray

    def part(self, rows: slice) -> "NewPlaces":
        """Return some of the rows."""
        return NewPlaces(self.place[rows], self.times[rows], self.loading[rows])


@dataclass(frozen=True, eq=False)
class Positions:
    """The distinct values of a column, sorted, and where they are for a component.

    Attributes
    ----------
    values
        Numbers, or texts of labels.
    times
        Where the component has them: the numbers themselves, or numbers of steps.
    """

    values: AnyArray
    times: FloatArray

    def find(self, values: AnyArray) -> IntArray:
        """Numbers of these values among the known ones, -1 for others."""
        place = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        return np.where(self.values[place] == values, place, UNKNOWN)

    def times_of(self, values: AnyArray) -> FloatArray:
        """Where values of a numeric column are, known or not; beyond the ends by the median distance of a step."""
        if self.values.dtype.kind != "f":  # labels: others than the known ones are each somewhere else
            return len(self.values) + np.unique(values, return_inverse=True)[1].astype(np.float64)
        if self.times is self.values or len(self.values) == 1:
            return np.asarray(values - self.values[0] + self.times[0])
        step = float(np.median(np.diff(self.values) / np.diff(self.times)))
        inside = np.interp(values, self.values, self.times)
        before = np.minimum(values - self.values[0], 0.0) / step
        after = np.maximum(values - self.values[-1], 0.0) / step
        return np.asarray(inside + before + after)


def column_values(field: LatentField, values: Any, *, is_slope: bool = False) -> AnyArray:
    """Check the positions or labels of a component, or its slope: numbers as floats, labels as texts."""
    column = np.asarray(values)
    if column.ndim != 1:
        raise DataError(f"{describe(field)} needs one value for each row; got shape {column.shape}.")
    kinds = _kinds(column)
    if "nothing" in kinds:
        row = kinds.index("nothing")
        raise DataError(f"{describe(field)} needs a value in every row; row {row} has none. Leave such rows out.")
    wanted = "numbers" if is_slope or not field.by_label or kinds[0] == "numbers" else "texts"
    if any(kind != wanted for kind in kinds):
        raise _odd_value(field, column, next(row for row, kind in enumerate(kinds) if kind != wanted), is_slope)
    if wanted == "texts":
        return column.astype(str)
    numbers = column.astype(np.float64)
    if not (np.abs(numbers) <= LARGEST).all():
        row = int(np.flatnonzero(~(np.abs(numbers) <= LARGEST))[0])
        raise DataError(
            f"{describe(field)} needs a finite value in every row; got {numbers[row]} in row {row}. Leave such rows "
            "out."
        )
    return numbers


def _kinds(column: AnyArray) -> list[str]:
    """What the values of a column are, one word for all of them if that is plain."""
    if column.dtype.kind in _KINDS:
        return [_KINDS[column.dtype.kind]]
    if column.dtype.kind == "f":
        return ["nothing" if missing else "numbers" for missing in np.isnan(column).tolist()]
    return list(map(_kind_of, column))


def _kind_of(value: Any) -> str:
    """What one value is: a number, a text, nothing, or something else."""
    if isinstance(value, str):
        return "texts"
    # The missing values of pandas, known by name so that pandas need not be there.
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return "nothing"
    if isinstance(value, np.datetime64 | np.timedelta64):
        return "nothing" if np.isnat(value) else "others"
    if isinstance(value, Real | Decimal | np.bool_):
        return "numbers" if value == value else "nothing"
    return "others"


def _odd_value(field: LatentField, column: AnyArray, row: int, is_slope: bool) -> DataError:
    value = column[row]
    shown = repr(str(value) if isinstance(value, str) else value)[:60]
    found = f"got {shown} in row {row}."
    if is_slope:
        return DataError(f"The slope of {describe(field)} must be numbers; {found}")
    if not field.by_label:
        return DataError(
            f"{describe(field)} is along positions, which must be numbers; {found} Give a numeric column (dates as a "
            "number of days, say), or use Grouped for labels."
        )
    return DataError(f"The labels of {describe(field)} must be all texts or all numbers; {found}")


def positions_of(field: LatentField, values: AnyArray) -> Positions:
    """The distinct values, sorted, with their times."""
    distinct = np.unique(values)
    is_text = distinct.dtype.kind != "f"
    return Positions(distinct, np.arange(len(distinct), dtype=np.float64) if is_text else field.times(distinct))


def place(field: LatentField, values: AnyArray, slope: FloatArray | None = None) -> tuple[Placed, Positions]:
    """Put a component where a checked column says."""
    positions = positions_of(field, values)
    loading = np.ones(len(values)) if slope is None else np.asarray(slope, dtype=np.float64)
    return Placed(field, positions.times, positions.find(values), loading), positions


def place_new(positions: Positions, values: AnyArray, slope: FloatArray | None = None) -> NewPlaces:
    """Find where new rows are."""
    loading = np.ones(len(values)) if slope is None else np.asarray(slope, dtype=np.float64)
    return NewPlaces(positions.find(values), positions.times_of(values), loading)


def describe(field: LatentField) -> str:
    """A component in words, for example "AR1(pos)"."""
    slope = "" if field.slope is None else f", slope={field.slope}"
    return f"{type(field).__name__}({field.column}{slope})"


def check_fields(latent: Any) -> tuple[LatentField, ...]:
    """Check for components, one or several."""
    fields = (latent,) if isinstance(latent, LatentField) else latent
    if isinstance(fields, str) or not isinstance(fields, Sequence):
        raise SettingError(f"latent must be a list of components; got {latent!r}. Write [AR1('position')].")
    for field in fields:
        if not isinstance(field, LatentField):
            raise SettingError(
                "latent must have components: IID, AR1, RW1, OU, Grouped, or what has the methods of a LatentField; "
                f"got {field!r}."
            )
    names = [describe(field) for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise SettingError(f"latent has {name} twice. Leave one of them out.")
    return tuple(fields)
