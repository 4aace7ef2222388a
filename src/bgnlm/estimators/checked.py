"""Values and arrays of a file, each checked for what it must be; DataError for anything else."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from bgnlm._typing import AnyArray, FloatArray, IntArray
from bgnlm.estimators.columns import demand

Arrays = Mapping[str, AnyArray]


def lists(
    arrays: Arrays, starts_name: str, members_name: str, n_rows: int, n_columns: int
) -> tuple[IntArray, IntArray]:
    """Lists of places: where each begins, and the places one after the other."""
    starts = array(arrays, starts_name, np.int64, 1)
    demand(members_name in arrays, f"{members_name} is missing")
    members = np.asarray(arrays[members_name])
    demand(members.ndim == 1 and members.dtype.kind in "iu", f"{members_name} are no places")
    members = members.astype(np.int64)
    demand(len(starts) == n_rows + 1 and starts[0] == 0 and starts[-1] == len(members), f"{starts_name} do not fit")
    demand((np.diff(starts) >= 0).all(), f"{starts_name} do not ascend")
    demand(((members >= 0) & (members < n_columns)).all(), f"{members_name} are out of range")
    return starts, members


def ascends_in_lists(starts: IntArray, members: IntArray) -> bool:
    """Whether the places of each list ascend, so that none comes twice."""
    ascending = np.diff(members) > 0
    ascending[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(members))] - 1] = True
    return bool(ascending.all())


def array(arrays: Arrays, name: str, dtype: Any, n_dimensions: int) -> AnyArray:
    """An array of this type and number of dimensions."""
    demand(name in arrays, f"{name} is missing")
    found = arrays[name]
    demand(found.dtype == dtype and found.ndim == n_dimensions, f"{name} is of another kind")
    return found


def floats(arrays: Arrays, name: str, n_dimensions: int, *, finite: bool = True) -> FloatArray:
    """An array of numbers, finite ones by default."""
    found = array(arrays, name, np.float64, n_dimensions)
    demand(not finite or np.isfinite(found).all(), f"{name} has values that are not finite")
    return found


def text(value: Any) -> str:
    """A text."""
    demand(isinstance(value, str), "a text is missing")
    return str(value)


def number(value: Any) -> float:
    """A finite number."""
    demand(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value), "a number is missing"
    )
    return float(value)


def count(value: Any) -> int:
    """A whole number of 0 or more."""
    demand(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53, "a count is missing")
    return int(value)


def boolean(value: Any, name: str) -> bool:
    """True or false."""
    demand(isinstance(value, bool), f"{name} must be true or false")
    return bool(value)
