"""Files that the commands write: whole or not at all."""

import csv
import gzip
import io
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bgnlm.errors import DataError

STANDARD_OUTPUT = "-"


def check_writable(path: str) -> None:
    """Refuse early what could not be written in the end."""
    out = Path(path)
    if out.is_dir():
        raise DataError(f"--out must be a file; {path!r} is a folder. Give the name of a file in it.")
    folder = out.parent
    if not folder.is_dir():
        raise DataError(f"--out: there is no folder {str(folder)!r}. Create it first.")
    if not os.access(out if _is_device(out) else folder, os.W_OK):
        raise DataError(f"--out: no permission to write to the folder {str(folder)!r}. Choose another.")


@contextmanager
def whole_file(path: str) -> Iterator[Path]:
    """Provide a file to write to that takes the place of `path` when it is complete."""
    target = Path(os.path.realpath(path))  # of a link, what it points to
    if _is_device(target):
        with tempfile.TemporaryDirectory() as folder:
            yield Path(folder, target.name)
            with Path(folder, target.name).open("rb") as source, target.open("wb") as device:
                shutil.copyfileobj(source, device)
        return
    draft = target.with_name(f".{os.getpid()}-{target.name}")
    try:
        yield draft
        if target.exists():
            shutil.copymode(target, draft)
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()


def write_table(path: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write a table in the format that the ending of the name tells: Parquet, or CSV."""
    ending = path.lower()
    with whole_file(path) as draft:
        if ending.endswith((".parquet", ".pq")):
            from bgnlm.cli.parquet import write_parquet

            write_parquet(draft, columns)
            return
        is_tabbed = ending.removesuffix(".gz").endswith((".tsv", ".tab"))
        content = as_csv(columns, "\t" if is_tabbed else ",").encode()
        draft.write_bytes(gzip.compress(content, mtime=0) if ending.endswith(".gz") else content)


def as_csv(columns: Mapping[str, Sequence[Any]], delimiter: str = ",") -> str:
    """Columns as text, with every digit of every number."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()
