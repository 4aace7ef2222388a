"""Parquet files as tables, read and written through pyarrow."""

from __future__ import annotations

import io
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm.cli.cells import Column, Kind
from bgnlm.cli.console import quoted
from bgnlm.cli.tables import Table
from bgnlm.errors import DataError, MissingExtraError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


class ParquetTable(Table):
    """A table in memory whose columns have types."""

    def __init__(self, path: str, table: Any) -> None:
        super().__init__(path, (name for name in table.column_names if name))
        self._table = table

    def __len__(self) -> int:
        return int(self._table.num_rows)

    def raw(self, name: str) -> Sequence[Any]:
        """Return the cells as Python values."""
        return list(self._table.column(name).to_pylist())

    def place(self, row: int) -> str:
        """Name the file and the row."""
        return f"{self.path}, row {row} (the first is 0)"

    def located(self, message: str) -> str:
        """Name the file."""
        return f"{self.path}: {message}"

    def column(self, name: str, kind: Kind | None = None) -> Column:
        """Take the type of the file; whole numbers may be categories, and booleans 0 and 1."""
        types = import_arrow("pyarrow.types")
        cells = self._table.column(name)
        held = cells.type.value_type if types.is_dictionary(cells.type) else cells.type
        found = _kind(types, held)
        if found is None:
            raise DataError(
                f"{self.path}, column {name!r} holds {cells.type}; numbers, booleans and texts can be used. Convert "
                f"it, or leave it out: --exclude {name}"
            )
        if types.is_dictionary(cells.type) or (kind == "texts" and types.is_integer(held)):
            return _texts(name, cells)
        wanted = kind or found
        if found == wanted or types.is_null(held) or {found, wanted} == {"numbers", "booleans"}:
            return _as_kind(name, cells, wanted)
        raise DataError(f"{self.path}, column {name!r} must hold {wanted}; got {cells.type}. Convert it.")


def _kind(types: Any, held: Any) -> Kind | None:
    if types.is_boolean(held):
        return "booleans"
    if any(test(held) for test in (types.is_integer, types.is_floating, types.is_decimal, types.is_null)):
        return "numbers"
    return "texts" if types.is_string(held) or types.is_large_string(held) else None


def _as_kind(name: str, cells: Any, kind: Kind) -> Column:
    match kind:
        case "texts":
            return _texts(name, cells)
        case "booleans" if str(cells.type) == "bool":
            return Column(name, "booleans", np.array(cells.to_pylist(), dtype=object))
        case _:  # 0 and 1 for booleans, which the estimators take for them
            numbers = [np.nan if cell is None else float(cell) for cell in cells.to_pylist()]
            return Column(name, "numbers", np.array(numbers, dtype=np.float64))


def _texts(name: str, cells: Any) -> Column:
    texts = [None if cell is None else str(cell) for cell in cells.to_pylist()]
    return Column(name, "texts", np.array(texts, dtype=object))


def read_parquet(path: str) -> ParquetTable:
    """Read a whole file."""
    arrow, parquet = import_arrow("pyarrow"), import_arrow("pyarrow.parquet")
    content = Path(path).read_bytes()
    try:
        table = parquet.read_table(arrow.BufferReader(content))
    except (arrow.ArrowException, OSError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DataError(f"{path} is no whole Parquet file ({reason}). Write it again.") from None
    names = table.column_names
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise DataError(f"{path}: columns must have different names; got twice: {quoted(sorted(twice))}. Rename them.")
    if not table.num_rows:
        raise DataError(f"{path} has no rows. Add the data.")
    return ParquetTable(path, table)


def as_parquet(columns: Mapping[str, Sequence[Any]]) -> bytes:
    """Columns as the content of a file."""
    table = import_arrow("pyarrow").table({name: list(values) for name, values in columns.items()})
    content = io.BytesIO()
    import_arrow("pyarrow.parquet").write_table(table, content)
    return content.getvalue()


def import_arrow(module: str) -> Any:
    """Import a part of pyarrow, or say how to get it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtraError(
            'Parquet files are read and written by pyarrow, which is not installed. Run: pip install "bgnlm[parquet]", '
            "or use CSV files."
        ) from error
