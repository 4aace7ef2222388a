"""Checks at the rim: each takes what a user gave and returns a clean value or says what to do."""

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.errors import DataError, SettingError

LARGEST = 1e140
_LARGEST_WEIGHT = 1e15


def check_choice(value: Any, name: str, allowed: Sequence[str]) -> str:
    """One of a few words."""
    if not isinstance(value, str) or value not in allowed:
        raise SettingError(f"{name} must be one of {', '.join(map(repr, allowed))}; got {value!r}.")
    return value


def check_number(
    value: Any, name: str, *, low: float = -math.inf, above: float = -math.inf, high: float = math.inf
) -> float:
    """Check for a finite number that is at least `low`, greater than `above` and at most `high`."""
    if isinstance(value, bool) or not isinstance(value, Real) or not math.isfinite(value):
        raise SettingError(f"{name} must be a finite number; got {value!r}.")
    number = float(value)
    if number < low:
        raise SettingError(f"{name} must be {low:g} or more; got {number:g}.")
    if number <= above:
        raise SettingError(f"{name} must be greater than {above:g}; got {number:g}.")
    if number > high:
        raise SettingError(f"{name} must be at most {high:g}; got {number:g}.")
    return number


def check_count(value: Any, name: str, *, low: int = 0) -> int:
    """Check for a whole number that is at least `low`."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise SettingError(f"{name} must be a whole number; got {value!r}.")
    if value < low:
        raise SettingError(f"{name} must be {low} or more; got {value}.")
    return int(value)


def check_response(y: Any) -> FloatArray:
    """Check for a vector of at least two finite numbers."""
    values = numeric_array(y, "y")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise DataError(f"y must be one-dimensional; got shape {values.shape}. Pass a single column.")
    if len(values) < 2:
        raise DataError(f"y must have at least 2 values; got {len(values)}.")
    _finite(values, "y", y)
    return values


def check_design(X: Any, n_obs: int | None = None) -> FloatArray:
    """Check for a matrix of finite numbers, with one row per observation if their number is known."""
    values = numeric_array(X, "X")
    if values.ndim != 2:
        raise DataError(
            f"X must be two-dimensional (rows, columns); got shape {values.shape}. For a single column use X[:, None]."
        )
    if n_obs is not None and len(values) != n_obs:
        raise DataError(f"X and y must have the same number of rows; got {len(values)} and {n_obs}.")
    _finite(values, "X", X)
    return values


def check_weights(sample_weight: Any, n_obs: int) -> FloatArray:
    """Check for frequency weights; None means one for each row."""
    if sample_weight is None:
        return np.ones(n_obs)
    weights = _per_row(sample_weight, "sample_weight", n_obs)
    if (weights < 0).any():
        row = int(np.flatnonzero(weights < 0)[0])
        raise DataError(
            f"sample_weight must not be negative; got {weights[row]:g} in row {row}. "
            "A weight says how often a row was observed; use 0 to leave it out."
        )
    if weights.max() > _LARGEST_WEIGHT:
        raise DataError(f"sample_weight must be at most {_LARGEST_WEIGHT:g}; got {weights.max():g}.")
    if np.count_nonzero(weights) < 2:
        raise DataError(
            f"sample_weight must be positive in at least 2 rows; got {np.count_nonzero(weights)}, the others are zero. "
            "Too little is left to learn from."
        )
    if weights.sum() <= 1.0:
        raise DataError(
            f"sample_weight must add up to more than 1; got {weights.sum():g}. A weight says how often a row was "
            "observed, so the sum is the number of observations."
        )
    return weights


def check_offset(offset: Any, n_obs: int) -> FloatArray:
    """Check for a known part of the linear predictor; None means zero, a number is that of all rows."""
    if offset is None or (isinstance(offset, Real) and not isinstance(offset, bool)):
        offset = np.full(n_obs, 0.0 if offset is None else float(offset))
    return _per_row(offset, "offset", n_obs)


def column_names(X: Any, n_columns: int, names: Sequence[str] | None = None) -> tuple[str, ...]:
    """Take the given names, those a data frame has, or x1, x2, ... for an array."""
    given = getattr(X, "columns", None) if names is None else names
    if given is None:
        return tuple(f"x{j + 1}" for j in range(n_columns))
    chosen = tuple(map(str, given))
    twice = sorted({name for name in chosen if chosen.count(name) > 1})
    if twice or len(chosen) != n_columns:
        found = f"got more than once: {', '.join(twice)}" if twice else f"got {len(chosen)} names"
        raise DataError(f"The {n_columns} columns of X must have one different name each; {found}.")
    return chosen


def _per_row(values: Any, name: str, n_obs: int) -> FloatArray:
    clean = numeric_array(values, name)
    if clean.ndim == 2 and clean.shape[1] == 1:
        clean = clean[:, 0]
    if clean.shape != (n_obs,):
        raise DataError(f"{name} must have one value per row, {n_obs} in all; got shape {clean.shape}.")
    _finite(clean, name, values)
    return clean


def numeric_array(values: Any, name: str) -> FloatArray:
    """Turn what a user gave into an array of floats; anything but real numbers is refused with its place."""
    if hasattr(values, "toarray"):
        raise DataError(f"{name} must be a dense array; got a sparse one. Use {name}.toarray().")
    if values is None:
        raise DataError(f"{name} must hold numbers; got None.")
    if np.ma.is_masked(values):
        raise DataError(f"{name} must have no masked entries. Fill or drop missing values first.")
    try:
        raw = np.asarray(values)
        if raw.dtype.kind in "mM":
            raise DataError(
                f"{name} must hold numbers only; got dates or durations. Convert them to a number of days, say."
            )
        if raw.dtype.kind not in "biuf":
            raw = np.asarray(raw, dtype=object)
            if any(map(_is_no_number, raw.flat)):
                raise TypeError
        return np.asarray(raw, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} must hold numbers only; {_first_bad(values)}.") from None


def _is_no_number(value: Any) -> bool:
    """What `float` would take all the same."""
    if isinstance(value, np.generic):
        return value.dtype.kind in "mMcSU"
    return isinstance(value, str | bytes | complex) or value is np.ma.masked


def _first_bad(values: Any) -> str:
    try:
        cells = np.asarray(values, dtype=object)
    except ValueError:
        cells = np.array([[]])
    for index, value in np.ndenumerate(cells):
        if isinstance(value, list | tuple | np.ndarray):
            return "its rows have different lengths"
        try:
            if _is_no_number(value):
                raise TypeError
            float(value)
        except (TypeError, ValueError, OverflowError):
            shown = repr(value)
            place = _place(values, index)
            return f"got {shown[:60]} in {place}. Code categories as numbers and fill or drop missing values"
    return f"got {type(values).__name__}"


def _place(values: Any, index: Any) -> str:
    """Name a cell for a person: row, and column by its name if there is one."""
    if not len(index):
        return "it"
    row = f"row {index[0]}"
    if len(index) == 1:
        return row
    names = getattr(values, "columns", None)
    return f"{row}, column {index[1] if names is None else repr(str(list(names)[index[1]]))}"


def _finite(values: FloatArray, name: str, given: Any) -> None:
    # NaN fails the comparison too; squares of anything within the limits can still be added up.
    good = np.abs(values) <= LARGEST
    if good.all():
        return
    index = np.argwhere(~good)[0]
    value = values[tuple(index)]
    place = _place(given, index)
    if np.isfinite(value):
        raise DataError(f"{name} must stay within {LARGEST:g}; got {value:g} in {place}. Use a larger unit.")
    raise DataError(f"{name} must be finite; got {value} in {place}. Fill or drop missing values first.")
