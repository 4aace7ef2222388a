"""Text tables as they are in files: bytes to named columns of cells, each row with its line."""

import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bgnlm.cli.console import counted
from bgnlm.errors import DataError

STANDARD_INPUT = "-"
_DELIMITERS = {",": "comma", ";": "semicolon", "\t": "tab"}
_FOREIGN = {
    b"PAR1": "a Parquet file. Give it the ending .parquet",
    b"PK\x03\x04": "a zip archive or a spreadsheet. Export the table as CSV",
    b"\xd0\xcf\x11\xe0": "an old spreadsheet. Export the table as CSV",
    b"\x1f\x8b": "compressed by gzip. Give it the ending .gz",
    b"\xff\xfe": "in UTF-16. Save it as UTF-8",
    b"\xfe\xff": "in UTF-16. Save it as UTF-8",
}


@dataclass(frozen=True)
class TextFile:
    """A text table.

    Attributes
    ----------
    columns
        The cells of each column, without surrounding spaces.
    lines
        Where each row begins in the file.
    delimiter
        What stands between cells.
    n_unnamed
        How many columns without a name were left out: row numbers, mostly.
    """

    columns: dict[str, list[str]]
    lines: list[int]
    delimiter: str
    n_unnamed: int


def read_text_file(path: str) -> TextFile:
    """Read a table whose first line has the names of the columns."""
    name = shown(path)
    text = _decoded(_content(path), name)
    delimiter = _delimiter(path, text)
    records = _records(text, delimiter, name)
    line, header = next(records, (0, []))
    if not header:
        raise DataError(f"{name} is empty. The first line must have the names of the columns.")
    names = [cell.strip() for cell in header]
    _check_names(names, f"{name}, line {line}")
    rows, lines = _rows(records, header, name, delimiter)
    if not rows:
        raise DataError(f"{name} has names of columns in line {line} and no rows. Add the data.")
    cells = zip(names, zip(*rows, strict=True), strict=True)
    columns = {name: [cell.strip() for cell in column] for name, column in cells if name}
    return TextFile(columns, lines, delimiter, names.count(""))


def shown(path: str) -> str:
    """What messages call a file."""
    return "standard input" if path == STANDARD_INPUT else path


def _content(path: str) -> bytes:
    if path == STANDARD_INPUT:
        return sys.stdin.buffer.read()
    raw = Path(path).read_bytes()
    if not path.lower().endswith(".gz"):
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise DataError(f"{path} is no whole gzip file ({error}). Copy or compress it again.") from None


def _decoded(content: bytes, name: str) -> str:
    for start, what in _FOREIGN.items():
        if content.startswith(start):
            raise DataError(f"{name} is no text table in UTF-8 but {what}.")
    if b"\0" in content:
        line = content.count(b"\n", 0, content.index(b"\0")) + 1
        raise DataError(f"{name} is no text table: line {line} has a zero byte. Give a CSV or Parquet file.")
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name} must be text in UTF-8; line {line} has the byte 0x{content[error.start]:02x} that is none. Save "
            "it as UTF-8, by `iconv -f latin1 -t utf-8` say."
        ) from None


def _delimiter(path: str, text: str) -> str:
    """A tab where the name says so; otherwise what is most frequent in the first line, outside quotes."""
    if path.lower().removesuffix(".gz").endswith((".tsv", ".tab")):
        return "\t"
    first = re.sub(r'"[^"]*"', "", text.lstrip("\r\n").partition("\n")[0])
    return max(_DELIMITERS, key=first.count)


def _records(text: str, delimiter: str, name: str) -> Iterator[tuple[int, list[str]]]:
    """Lines that are not blank, with the number of the line in which they begin."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    line = 1
    try:
        for record in reader:
            if any(cell.strip() for cell in record) or len(record) > 1:
                yield line, record
            line = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{name}, line {line}: {error}. Check the quotes; a quote in a cell is written twice."
        ) from None


def _rows(
    records: Iterator[tuple[int, list[str]]], header: list[str], name: str, delimiter: str
) -> tuple[list[list[str]], list[int]]:
    rows, lines = [], []
    for line, record in records:
        if len(record) != len(header):
            raise DataError(
                f"{name}, line {line} has {counted(len(record), 'field')}, the header has {len(header)} (delimiter: "
                f"{_DELIMITERS[delimiter]}). Every line must have as many fields; put quotes around a cell with a "
                f"{_DELIMITERS[delimiter]} in it."
            )
        rows.append(record)
        lines.append(line)
    return rows, lines


def _check_names(names: list[str], place: str) -> None:
    twice = sorted({name for name in names if name and names.count(name) > 1})
    if twice:
        raise DataError(f"{place}: columns must have different names; got twice: {', '.join(twice)}. Rename them.")
    if not any(names):
        raise DataError(f"{place}: no column has a name. The first line must have the names of the columns.")
