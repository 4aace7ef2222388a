"""From the values of a column to the positions of a component, in training and in new rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from bgnlm._typing import AnyArray, FloatArray, IntArray
from bgnlm.errors import DataError
from bgnlm.latent.fields import LatentField
from bgnlm.latent.layout import Placed

UNKNOWN = -1


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
        Where the component has them: the numbers themselves, or their ranks.
    """

    values: AnyArray
    times: FloatArray

    def find(self, values: AnyArray) -> IntArray:
        """Numbers of these values among the known ones, -1 for others."""
        if self.values.dtype.kind != values.dtype.kind:  # labels, some of them not numbers: 1 is "1"
            numbers = {label: number for number, label in enumerate(_labels(self.values))}
            return np.array([numbers.get(label, UNKNOWN) for label in _labels(values)], dtype=np.int64)
        place = np.minimum(np.searchsorted(self.values, values), len(self.values) - 1)
        return np.where(self.values[place] == values, place, UNKNOWN)

    def times_of(self, values: AnyArray) -> FloatArray:
        """Where values of a numeric column are, known or not; beyond the ends by the median distance."""
        if (
            self.values.dtype.kind != "f" or values.dtype.kind != "f"
        ):  # labels: others than the known ones are each somewhere else
            return len(self.values) + np.unique(values, return_inverse=True)[1].astype(np.float64)
        if self.times is self.values or len(self.values) == 1:
            return np.asarray(values - self.values[0] + self.times[0])
        step = float(np.median(np.diff(self.values)))
        inside = np.interp(values, self.values, self.times)
        before = np.minimum(values - self.values[0], 0.0) / step
        after = np.maximum(values - self.values[-1], 0.0) / step
        return np.asarray(inside + before + after)


def _labels(values: AnyArray) -> list[str]:
    """Texts, with numbers in one form."""
    return [_label(value) for value in values.tolist()]


def _label(value: float | str) -> str:
    try:
        return f"{float(value):.15g}"
    except ValueError:
        return str(value)


def _no_number(column: AnyArray) -> Any:
    """The first value that is none."""
    for value in column.tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            return value
    return None


def column_values(field: LatentField, values: Any, *, is_slope: bool = False) -> AnyArray:
    """Check the positions or labels of a component, or its slope: numbers as floats, labels as texts."""
    column = np.asarray(values)
    if column.ndim != 1:
        raise DataError(f"{describe(field)} needs one value for each row; got shape {column.shape}.")
    _refuse_missing(field, column)
    try:
        numbers = column.astype(np.float64)
    except (TypeError, ValueError):
        if is_slope:
            raise DataError(f"The slope of {describe(field)} must be numbers; got {_no_number(column)!r}.") from None
        if not field.by_label:
            raise DataError(
                f"{describe(field)} is along positions, which must be numbers; got {_no_number(column)!r}. Give a "
                "numeric column, or use Grouped for labels."
            ) from None
        return column.astype(str)
    if not np.isfinite(numbers).all():
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
        raise DataError(
            f"{describe(field)} needs a finite value in every row; got {numbers[row]} in row {row}. Leave such rows "
            "out."
        )
    return numbers


def _refuse_missing(field: LatentField, column: AnyArray) -> None:
    for row, value in enumerate(column.tolist() if column.dtype == object else ()):
        if value is None or value != value:
            raise DataError(f"{describe(field)} needs a value in every row; row {row} has none. Leave such rows out.")


def positions_of(field: LatentField, values: AnyArray) -> Positions:
    """The distinct values, sorted, with their times."""
    distinct = np.unique(values)
    if field.by_rank or distinct.dtype.kind != "f":
        return Positions(distinct, np.arange(len(distinct), dtype=np.float64))
    return Positions(distinct, distinct)


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
        raise DataError(f"latent must be a list of components; got {latent!r}. Write [AR1('position')].")
    for field in fields:
        if not isinstance(field, LatentField):
            raise DataError(
                "latent must have components: IID, AR1, RW1, OU, Grouped, or what has the methods of a LatentField; "
                f"got {field!r}."
            )
    names = [describe(field) for field in fields]
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"latent has {name} twice. Leave one of them out.")
    return tuple(fields)
