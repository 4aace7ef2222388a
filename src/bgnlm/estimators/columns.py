"""One column of a table: as it came, what training learns from it, and the numbers that the search sees."""

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from numbers import Real
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from bgnlm._typing import AnyArray, BoolArray, FloatArray
from bgnlm._validation import LARGEST
from bgnlm.errors import DataError
from bgnlm.features.cut_points import weighted_quantile

MOST_LEVELS = 100
# With no more levels than this, few rows for each may still be an honest small table.
FEW_LEVELS = 20

Kind = Literal["numbers", "booleans", "categories", "nothing"]


class DataTypeError(DataError, TypeError):
    """Data of a wrong type; scikit-learn wants a TypeError there."""


@dataclass(frozen=True, eq=False)
class GivenColumn:
    """A column as it came.

    Attributes
    ----------
    label : str
        What messages call it.
    kind : {"numbers", "booleans", "categories", "nothing"}
        What it holds; "nothing" if every value is missing.
    values : array
        Numbers, NaN where missing; for categories places in `levels`, -1 where missing.
    levels : tuple of str
        The categories that occur.
    """

    label: str
    kind: Kind
    values: AnyArray
    levels: tuple[str, ...] = ()

    @property
    def missing(self) -> BoolArray:
        """Where there is no value."""
        return np.isnan(self.values) if self.kind in ("numbers", "booleans") else self.values < 0


def given_numbers(values: npt.ArrayLike, label: str, kind: Kind = "numbers") -> GivenColumn:
    """Numbers or booleans in an array, NaN where missing."""
    # What float64 cannot hold becomes infinite, and is refused as that.
    with np.errstate(over="ignore"):
        numbers = np.ascontiguousarray(values, dtype=np.float64)
    beyond = np.flatnonzero(np.abs(numbers) > LARGEST)
    if len(beyond):
        value, place = numbers[beyond[0]], f"row {beyond[0]}, column {label}"
        if np.isfinite(value):
            raise DataError(f"X must stay within {LARGEST:g}; got {value:g} in {place}. Use a larger unit.")
        raise DataError(f"X must not contain infinity; got {value} in {place}. Drop the row or replace the value.")
    return _nothing(label, len(numbers)) if np.isnan(numbers).all() else GivenColumn(label, kind, numbers)


def given_levels(values: Iterable[Any], label: str) -> GivenColumn:
    """Categories, whatever their type, by their str."""
    places: dict[str, int] = {}
    codes = np.array(
        [-1 if kind_of(value) == "nothing" else places.setdefault(str(value), len(places)) for value in values]
    )
    return GivenColumn(label, "categories", codes, tuple(places)) if places else _nothing(label, len(codes))


def given_objects(values: Sequence[Any], label: str) -> GivenColumn:
    """Any values: all numbers, all booleans or all strings, or missing."""
    kinds = [kind_of(value) for value in values]
    found = set(kinds) - {"nothing"}
    if "other" in found or ("categories" in found and len(found) > 1):
        raise _odd_value(values, kinds, label)
    if "categories" in found:
        return given_levels(values, label)
    numbers = [np.nan if kind == "nothing" else _as_float(value) for kind, value in zip(kinds, values, strict=True)]
    return given_numbers(numbers, label, "booleans" if found == {"booleans"} else "numbers")


def _nothing(label: str, n_rows: int) -> GivenColumn:
    return GivenColumn(label, "nothing", np.full(n_rows, -1))


def kind_of(value: Any) -> Kind | Literal["other"]:
    """What one value is."""
    if isinstance(value, str):
        return "categories"
    if isinstance(value, bool | np.bool_):
        return "booleans"
    if isinstance(value, float | int) or (isinstance(value, Real) and not isinstance(value, np.timedelta64)):
        return "nothing" if value != value else "numbers"
    if isinstance(value, Decimal):
        return "nothing" if value.is_nan() else "numbers"
    # The missing values of pandas, known by name so that pandas need not be there.
    return "nothing" if value is None or type(value).__name__ in ("NAType", "NaTType") else "other"


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def _odd_value(values: Sequence[Any], kinds: Sequence[str], label: str) -> DataError:
    """Say which value comes first that is no string or number, or not what the values above it are."""
    first = next(kind for kind in kinds if kind != "nothing")
    row = next(
        i
        for i, kind in enumerate(kinds)
        if kind == "other" or (kind != "nothing" and (kind == "categories") != (first == "categories"))
    )
    value = values[row]
    found = f"got {repr(value)[:60]} in row {row}, column {label}."
    if kinds[row] != "other":
        return DataError(
            f"a column must hold numbers only or strings only; {found} What stands above it are {first}. "
            "Convert the column to one type."
        )
    if isinstance(value, complex | np.complexfloating):
        return DataError(f"Complex data not supported; {found} Use the real and the imaginary part as columns.")
    if isinstance(value, datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64):
        advice = "Convert dates and durations to a number of days."
    elif isinstance(value, bytes):
        advice = "Decode bytes to strings."
    else:
        advice = "Leave the column out or turn it into numbers or strings."
    return DataTypeError(f"argument must be a string or a number; {found} {advice}")


@dataclass(frozen=True)
class NumericColumn:
    """Numbers, used as they are.

    Attributes
    ----------
    name : str
        The name in the training data.
    fill : float or None
        What stands for a missing value; None refuses missing values.
    indicator : bool
        Whether a further column says where a value was missing.
    """

    name: str
    fill: float | None = None
    indicator: bool = False

    def __post_init__(self) -> None:
        _check_common(self)
        if self.fill is not None:
            demand(type(self.fill) is float and abs(self.fill) <= LARGEST, "fill must be a finite number or none")


@dataclass(frozen=True)
class BooleanColumn:
    """Yes and no, coded 1 and 0; the attributes are those of a numeric column."""

    name: str
    fill: bool | None = None
    indicator: bool = False

    def __post_init__(self) -> None:
        _check_common(self)
        demand(self.fill is None or type(self.fill) is bool, "fill must be true, false or none")


@dataclass(frozen=True)
class CategoricalColumn:
    """Categories, coded by one indicator for each level but the reference.

    Attributes
    ----------
    name : str
        The name in the training data.
    reference : str
        The most frequent level; all indicators are 0 for it, and for what training did not see.
    levels : tuple of str
        The other levels, sorted.
    fill : str or None
        The reference, if missing values are allowed; None refuses them.
    indicator : bool
        Whether a further column says where a value was missing.
    """

    name: str
    reference: str
    levels: tuple[str, ...]
    fill: str | None = None
    indicator: bool = False

    def __post_init__(self) -> None:
        _check_common(self)
        every = (self.reference, *self.levels) if type(self.levels) is tuple else (None,)
        demand(all(isinstance(level, str) for level in every), "the levels must be strings")
        demand(list(self.levels) == sorted(set(self.levels)), "the levels must be sorted and differ")
        demand(self.reference not in self.levels, "the reference must not be one of the other levels")
        demand(len(every) <= MOST_LEVELS, f"there must be at most {MOST_LEVELS} levels")
        demand(self.fill is None or self.fill == self.reference, "fill must be the reference or none")


@dataclass(frozen=True)
class PositionColumn:
    """Positions or groups of latent components, of any kind, which are no input."""

    name: str

    fill: ClassVar[None] = None
    indicator: ClassVar[bool] = False

    def __post_init__(self) -> None:
        _check_common(self)


Column = NumericColumn | BooleanColumn | CategoricalColumn | PositionColumn


def _check_common(column: Column) -> None:
    demand(isinstance(column.name, str) and column.name != "", "the name must be a string that is not empty")
    demand(type(column.indicator) is bool, "indicator must be true or false")
    demand(column.fill is not None or not column.indicator, "an indicator needs a fill")


def demand(met: Any, rule: str) -> None:
    """Refuse what breaks a rule."""
    # What came is not shown: it may be from a file, and of any size and depth.
    if not met:
        raise DataError(rule)


def coded_names(column: Column) -> tuple[str, ...]:
    """Names of the numbers that a column is turned into."""
    if isinstance(column, PositionColumn):
        return ()
    own = [column.name]
    if isinstance(column, CategoricalColumn):
        own = [f"{column.name}={level}" for level in column.levels]
    return (*own, f"{column.name}=missing") if column.indicator else tuple(own)


def learn_column(name: str, given: GivenColumn, weights: FloatArray, *, impute: bool) -> Column:
    """Learn how to code a column; `weights` are frequencies, and rows without weight do not count."""
    present = ~given.missing & (weights > 0)
    if not present.any():
        raise DataError(f"column {given.label} must hold some values; all are missing. Leave the column out.")
    indicator = impute and bool((given.missing & (weights > 0)).any())
    values, weight = given.values[present], weights[present]
    if given.kind == "numbers":
        return NumericColumn(name, weighted_quantile(values, 0.5, weight) if impute else None, indicator)
    if given.kind == "booleans":
        return BooleanColumn(name, bool(2 * (weight @ values) > weight.sum()) if impute else None, indicator)
    frequency = {given.levels[place]: total for place, total in enumerate(np.bincount(values, weight)) if total > 0}
    levels = sorted(frequency)
    if len(levels) > MOST_LEVELS or len(levels) > max(FEW_LEVELS, weights.sum() / 2):
        raise DataError(
            f"column {given.label} has {len(levels)} different levels and looks like an identifier. "
            f"At most {MOST_LEVELS} are allowed, and beyond {FEW_LEVELS} at most one for two rows: "
            "leave it out or group its levels."
        )
    reference = max(levels, key=frequency.__getitem__)
    levels.remove(reference)
    return CategoricalColumn(name, reference, tuple(levels), reference if impute else None, indicator)


def check_kind(column: Column, given: GivenColumn) -> None:
    """Refuse a column that holds something else than in training; booleans and the numbers 0 and 1 are alike."""
    if isinstance(column, PositionColumn):
        return
    wanted = {NumericColumn: "numbers", BooleanColumn: "booleans", CategoricalColumn: "categories"}[type(column)]
    if given.kind != "nothing" and (given.kind == "categories") != (wanted == "categories"):
        target = "strings" if wanted == "categories" else "numbers"
        raise DataError(f"column {given.label} held {wanted} in training; got {given.kind}. Convert it to {target}.")
    if wanted == "booleans" and given.kind == "numbers":
        odd = np.flatnonzero(~np.isin(given.values, (0.0, 1.0)) & ~given.missing)
        if len(odd):
            raise DataError(
                f"column {given.label} held booleans in training and must hold these or 0 and 1; "
                f"got {given.values[odd[0]]:g} in row {odd[0]}."
            )


def code_column(column: Column, given: GivenColumn) -> FloatArray:
    """The numbers for a column, one row for each of its values and one column for each of `coded_names`."""
    if isinstance(column, PositionColumn):
        return np.empty((len(given.values), 0))
    if isinstance(column, CategoricalColumn):
        where = {level: k for k, level in enumerate(column.levels)}
        # Missing values have the place -1: the last entry.
        place = np.array([*(where.get(level, -1) for level in given.levels), -1])[given.values]
        coded = np.zeros((len(place), len(column.levels)))
        rows = np.flatnonzero(place >= 0)
        coded[rows, place[rows]] = 1.0
    else:
        filled = given.values if column.fill is None else np.where(given.missing, column.fill, given.values)
        coded = filled[:, None]
    return np.column_stack([coded, given.missing]) if column.indicator else coded


def unseen_levels(column: Column, given: GivenColumn) -> str:
    """Name the levels that training did not see and how many rows have them; empty if there are none."""
    if not isinstance(column, CategoricalColumn):
        return ""
    known = {column.reference, *column.levels}
    unseen = np.array([*(level not in known for level in given.levels), not column.indicator])
    n_rows = np.count_nonzero(unseen[given.values])
    if not n_rows:
        return ""
    shown = [repr(level)[:60] for level in given.levels if level not in known]
    if not column.indicator and given.missing.any():
        shown.insert(0, "a missing value")
    more = ["..."] if len(shown) > 5 else []
    return f"column {given.label}: {', '.join(shown[:5] + more)} ({n_rows} {'row' if n_rows == 1 else 'rows'})"
