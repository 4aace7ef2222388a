"""Checks of the columns that are used, whose messages name file, line and column."""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

import numpy as np

from bgnlm._validation import LARGEST
from bgnlm.cli.cells import Column
from bgnlm.cli.console import counted
from bgnlm.cli.tables import Table
from bgnlm.errors import DataError

_OPTIONS = {"y": "target", "sample_weight": "weights", "offset": "offset"}


def refuse_missing(table: Table, columns: Iterable[Column], advice: str) -> None:
    """Refuse missing values; `advice` says what to do."""
    holes = {column.name: np.flatnonzero(column.missing) for column in columns}
    holes = {name: rows for name, rows in holes.items() if len(rows)}
    if not holes:
        return
    first = min(holes, key=lambda name: int(holes[name][0]))
    total = sum(map(len, holes.values()))
    others = f" (one of {total} missing values in {counted(len(holes), 'column')})" if total > 1 else ""
    raise DataError(f"{table.place(int(holes[first][0]))}, column {first!r}: the value is missing{others}. {advice}")


def refuse_infinite(table: Table, columns: Iterable[Column]) -> None:
    """Refuse numbers that are too large to compute with."""
    for column in columns:
        if column.kind != "numbers":
            continue
        beyond = np.flatnonzero(np.abs(column.values) > LARGEST)
        if len(beyond):
            row = int(beyond[0])
            raise DataError(
                f"{table.place(row)}, column {column.name!r}: got {column.values[row]:g}; numbers must be finite and "
                f"stay within {LARGEST:g}. Correct the value, drop the row, or use a larger unit."
            )


def numbers(table: Table, name: str, option: str) -> Column:
    """A column that must hold a number in every row, such as weights."""
    table.require([name], option)
    column = table.column(name, "numbers")
    refuse_missing(table, [column], f"{option} needs a number in every row: fill it, or drop the row.")
    refuse_infinite(table, [column])
    return column


@contextmanager
def rows_as_lines(table: Table, **columns: str | None) -> Iterator[None]:
    """Turn errors about rows and arguments into errors about places in the file and columns, named by their options."""
    try:
        yield
    except DataError as error:
        raise DataError(table.located(_with_columns(str(error), columns))) from error


def _with_columns(message: str, columns: Mapping[str, str | None]) -> str:
    """Name columns where a message names arguments: at its start; elsewhere such a word may be a name in the table."""
    for argument, option in _OPTIONS.items():
        name = columns.get(option)
        if name and message.startswith(f"{argument} "):
            message = f"column {name!r} (--{option}){message.removeprefix(argument)}"
    return message.replace(" as sample_weight", " as --weights")
