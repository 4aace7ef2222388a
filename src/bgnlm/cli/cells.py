"""From the texts of a column to values: numbers, booleans or texts, and what is missing."""

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

MISSING = ("", "NA", "NaN", "nan", "null", "NULL", "None")
_BOOLEANS = {"true": True, "false": False}
# A column with so many numbers is one of numbers, and what is none in it a mistake.
MOSTLY = 0.9

Kind = Literal["numbers", "booleans", "texts"]


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table.

    Attributes
    ----------
    kind
        What it holds.
    values
        Numbers, NaN where missing; otherwise objects, None where missing.
    """

    name: str
    kind: Kind
    values: npt.NDArray[Any]

    @property
    def missing(self) -> npt.NDArray[np.bool_]:
        """Where there is no value."""
        if self.kind == "numbers":
            return np.array(np.isnan(self.values))
        return np.array([value is None for value in self.values], dtype=np.bool_)


class NotOfKind(Exception):  # noqa: N818
    """A cell is not what its column holds; `row` is its place."""

    def __init__(self, row: int) -> None:
        super().__init__(row)
        self.row = row


def as_numbers(name: str, cells: Sequence[str], missing: Collection[str], decimal: str = ".") -> Column:
    """Read all cells as numbers."""
    numbers = [_number(cell, missing, decimal) for cell in cells]
    if None in numbers:
        raise NotOfKind(numbers.index(None))
    return Column(name, "numbers", np.array(numbers, dtype=np.float64))


def as_booleans(name: str, cells: Sequence[str], missing: Collection[str]) -> Column:
    """Read all cells as true or false, or 1 or 0."""
    words = {**_BOOLEANS, "1": True, "0": False, "1.0": True, "0.0": False}
    values = [None if cell in missing else words.get(cell.lower()) for cell in cells]
    is_odd = [value is None and cell not in missing for value, cell in zip(values, cells, strict=True)]
    if any(is_odd):
        raise NotOfKind(is_odd.index(True))
    return Column(name, "booleans", np.array(values, dtype=object))


def as_texts(name: str, cells: Sequence[str], missing: Collection[str]) -> Column:
    """Take the cells as they are."""
    return Column(name, "texts", np.array([None if cell in missing else cell for cell in cells], dtype=object))


def guess(name: str, cells: Sequence[str], missing: Collection[str], decimal: str = ".") -> Column:
    """Numbers or booleans if all cells are, otherwise texts; refuse the few cells that spoil a column of numbers."""
    numbers = [_number(cell, missing, decimal) for cell in cells]
    n_odd = numbers.count(None)
    if not n_odd:
        return Column(name, "numbers", np.array(numbers, dtype=np.float64))
    present = [cell for cell in cells if cell not in missing]
    if all(cell.lower() in _BOOLEANS for cell in present):
        return as_booleans(name, cells, missing)
    if len(present) - n_odd >= MOSTLY * len(present):
        raise NotOfKind(numbers.index(None))
    return as_texts(name, cells, missing)


def has_decimal_comma(columns: Collection[Sequence[str]]) -> bool:
    """Whether more cells are numbers with a comma than with a point."""
    balance = 0
    for cells in columns:
        for cell in cells:
            if "," in cell:
                balance += _number(cell, (), ",") is not None
            elif "." in cell:
                balance -= _number(cell, (), ".") is not None
    return balance > 0


def _number(cell: str, missing: Collection[str], decimal: str) -> float | None:
    """Return the number in a cell, NaN if it is missing, None if it is something else."""
    if cell in missing:
        return math.nan
    if decimal == ",":
        if "." in cell:
            return None
        cell = cell.replace(",", ".")
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None
