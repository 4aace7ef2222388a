"""Tables that the commands read: text files and Parquet, with the place of every cell in its file."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from bgnlm.cli.cells import (
    MISSING,
    Column,
    Kind,
    NotOfKind,
    as_booleans,
    as_numbers,
    as_texts,
    guess,
    has_decimal_comma,
)
from bgnlm.cli.console import quoted
from bgnlm.cli.text_files import TextFile, read_text_file, shown
from bgnlm.errors import DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    import pandas as pd

_PARQUET = (".parquet", ".pq")
_WANTED = {"numbers": "a number", "booleans": "true or false"}


class Table(ABC):
    """Columns of a file, turned into values when they are asked for, so that others may hold anything."""

    n_unnamed = 0  # columns without a name, which are left out

    def __init__(self, path: str, names: Iterable[str]) -> None:
        self.path = shown(path)
        self.names = tuple(names)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def raw(self, name: str) -> Sequence[Any]:
        """The cells of a column as they are."""

    @abstractmethod
    def column(self, name: str, kind: Kind | None = None) -> Column:
        """A column as values of a kind; None takes what the cells look like."""

    @abstractmethod
    def place(self, row: int) -> str:
        """Where a row stands in the file, for messages."""

    @abstractmethod
    def located(self, message: str) -> str:
        """A message about rows by their number, counted from 0, as one about this file."""

    def require(self, names: Iterable[str], what: str) -> None:
        """Refuse names that are no columns, with the names that were meant."""
        absent = [name for name in names if name not in self.names]
        if absent:
            raise DataError(f"{self.path} has no column {quoted(absent)} ({what}). {self._suggestion(absent)}")

    def _suggestion(self, absent: Iterable[str]) -> str:
        lower = {name.lower(): name for name in self.names}
        close = [lower[match] for name in absent for match in get_close_matches(name.lower(), lower, 3, 0.6)]
        if close:
            return f"Did you mean {quoted(dict.fromkeys(close))}?"
        return f"It has {quoted(self.names)}."


class TextTable(Table):
    """A table of texts."""

    def __init__(self, path: str, file: TextFile, missing: Iterable[str]) -> None:
        super().__init__(path, file.columns)
        self.n_unnamed = file.n_unnamed
        self._file = file
        self._missing = frozenset((*MISSING, *missing))
        has_comma = file.delimiter == ";" and has_decimal_comma(file.columns.values())
        self._decimal = "," if has_comma else "."

    def __len__(self) -> int:
        return len(self._file.lines)

    def raw(self, name: str) -> Sequence[Any]:
        """Return the cells as texts."""
        return self._file.columns[name]

    def place(self, row: int) -> str:
        """Name the file and the line."""
        return f"{self.path}, line {self._file.lines[row]}"

    def located(self, message: str) -> str:
        """Name the file and lines."""
        lines = self._file.lines
        found = re.sub(
            r"\brow (\d+)\b",
            lambda match: f"line {lines[int(match[1])]}" if int(match[1]) < len(lines) else match[0],
            message,
        )
        return f"{self.path}: {found}"

    def column(self, name: str, kind: Kind | None = None) -> Column:
        """Read the texts; a few that spoil a column of numbers are refused."""
        cells = self._file.columns[name]
        try:
            match kind:
                case "texts":
                    return as_texts(name, cells, self._missing)
                case "booleans":
                    return as_booleans(name, cells, self._missing)
                case "numbers":
                    return as_numbers(name, cells, self._missing, self._decimal)
                case None:
                    column = guess(name, cells, self._missing, self._decimal)
        except NotOfKind as error:
            raise self._odd_cell(name, kind, error.row) from None
        if column.kind == "texts" and self._decimal == ",":
            self._refuse_points(name, cells)
        return column

    def _odd_cell(self, name: str, kind: Kind | None, row: int) -> DataError:
        text = self._file.columns[name][row][:60]
        others = "the other cells of the column are numbers" if kind is None else f"{_WANTED[kind]} is needed"
        remedy = "" if kind else f", or give --categories {name} if they are names"
        return DataError(
            f"{self.place(row)}, column {name!r}: got {text!r}, but {others}. Correct it, or give --na {text!r} if it "
            f"stands for a missing value{remedy}."
        )

    def _refuse_points(self, name: str, cells: Sequence[str]) -> None:
        """Refuse numbers with a point in a file of decimal commas: it might stand between thousands."""
        try:
            as_numbers(name, cells, self._missing)
        except NotOfKind:
            return
        row = next(i for i, cell in enumerate(cells) if "." in cell)
        raise DataError(
            f"{self.place(row)}, column {name!r}: got {cells[row]!r} with a point, but other numbers in the file have "
            "a decimal comma. Use one of them throughout."
        )


def read_table(path: str, missing: Iterable[str] = ()) -> Table:
    """Read a table by the ending of its name; `missing` are further texts that stand for missing values."""
    try:
        if path.lower().endswith(_PARQUET):
            from bgnlm.cli.parquet import read_parquet

            return read_parquet(path)
        return TextTable(path, read_text_file(path), missing)
    except FileNotFoundError:
        raise DataError(f"there is no file {path!r}. Check the name and the folder.") from None
    except IsADirectoryError:
        raise DataError(f"{path!r} is a folder. Give a file in it.") from None
    except PermissionError:
        raise DataError(f"{path!r} cannot be read: no permission. Ask its owner, or copy it.") from None


def frame_of(columns: Iterable[Column]) -> pd.DataFrame:
    """Columns as the data frame that the estimators take."""
    import pandas as pd

    def values(column: Column) -> Any:
        is_whole = column.kind == "booleans" and not column.missing.any()
        return column.values.astype(bool) if is_whole else column.values

    return pd.DataFrame({column.name: values(column) for column in columns})
