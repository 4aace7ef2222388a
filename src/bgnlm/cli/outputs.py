"""Files that the commands write: whole or not at all."""

import csv
import gzip
import io
import os
import shutil
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bgnlm.errors import DataError, OutputError, SettingError

STANDARD_OUTPUT = "-"
_PARQUET = (".parquet", ".pq")


def check_writable(path: str, *read: str | None) -> None:
    """Refuse early what could not be written in the end, and what would replace a file that is `read`."""
    out = Path(path)
    if out.is_dir():
        raise DataError(f"--out must be a file; {path!r} is a folder. Give the name of a file in it.")
    folder = out.parent
    if not folder.is_dir():
        raise DataError(f"--out: there is no folder {str(folder)!r}. Create it first.")
    if not os.access(out if _is_device(out) else folder, os.W_OK):
        raise DataError(f"--out: no permission to write to the folder {str(folder)!r}. Choose another.")
    if out.is_file() and any(one and Path(one).exists() and out.samefile(one) for one in read):
        raise DataError(f"--out must not be a file that is read; {path!r} would be lost. Choose another name.")


def check_model_writable(path: str, *read: str | None) -> None:
    """Refuse early a model that could not be saved in the end."""
    if path == STANDARD_OUTPUT:
        raise SettingError("--out must be a file; a model cannot go to standard output. Give a name, model.bgnlm say.")
    check_writable(path, *read)


def check_table_writable(path: str, *read: str | None) -> None:
    """Refuse early a table that could not be written in the end."""
    check_writable(path, *read)
    if path.lower().endswith(_PARQUET):
        from bgnlm.cli.parquet import import_arrow

        import_arrow("pyarrow")


def save_model(model: Any, path: str) -> None:
    """Save an estimator; what a link points to is replaced, not the link, and a device is written to."""
    target = Path(os.path.realpath(path))
    if not _is_device(target):
        model.save(target)
        return
    with tempfile.TemporaryDirectory() as folder:
        draft = Path(folder, "model")
        model.save(draft)
        target.write_bytes(draft.read_bytes())


def save_elsewhere(model: Any) -> str:
    """Save an estimator in a new folder for temporary files, which others cannot read."""
    folder = tempfile.mkdtemp(prefix="bgnlm-")
    path = Path(folder, "model.bgnlm")
    try:
        model.save(path)
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise
    return str(path)


def write_table(path: str, columns: Mapping[str, Sequence[Any]]) -> None:
    """Write a table in the format that the ending of the name tells: Parquet, or CSV."""
    write_bytes(path, _as_bytes(path.lower(), columns))


def write_bytes(path: str, content: bytes) -> None:
    """Write a file; what a link points to is replaced, not the link, and a device is written to."""
    from bgnlm.persistence import write_whole

    target = Path(os.path.realpath(path))
    try:
        if _is_device(target):
            target.write_bytes(content)
        else:
            write_whole(target, content)
    except BrokenPipeError:  # the reader has seen enough
        raise
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise OutputError(
            f"{path} could not be written: {reason}. Nothing was changed there. Name another file."
        ) from error


def _as_bytes(path: str, columns: Mapping[str, Sequence[Any]]) -> bytes:
    if path.endswith(_PARQUET):
        from bgnlm.cli.parquet import as_parquet

        return as_parquet(columns)
    is_tabbed = path.removesuffix(".gz").endswith((".tsv", ".tab"))
    content = as_csv(columns, "\t" if is_tabbed else ",").encode()
    return gzip.compress(content, mtime=0) if path.endswith(".gz") else content


def as_csv(columns: Mapping[str, Sequence[Any]], delimiter: str = ",") -> str:
    """Columns as text, with every digit of every number."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _is_device(path: Path) -> bool:
    return path.exists() and not path.is_file()
