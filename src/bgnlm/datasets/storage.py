"""Where the tables of the paper's examples come from: a folder you name, the cache, or the authors' repository.

1. ``BGNLM_DATA``, if set, is a folder that holds the finished tables; nothing else is looked at then.
2. The cache folder, ``BGNLM_CACHE`` or the platform's, holds what was made before.
3. Otherwise the raw files are downloaded to ``raw/`` in the cache folder, and the table is made from them.

Every file is written under another name and then renamed, so that two processes may load the same table at a time.
"""

from __future__ import annotations

import gzip
import os
import zlib
from contextlib import suppress
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING

from bgnlm.datasets import download
from bgnlm.datasets.frames import read_frame
from bgnlm.datasets.recipes import RECIPES, RawFile, Recipe
from bgnlm.errors import DataError
from bgnlm.persistence import write_whole

if TYPE_CHECKING:
    import pandas as pd


def read_table(name: str) -> pd.DataFrame:
    """Read the table of one example, making it first if need be."""
    recipe = RECIPES[name]
    folder = os.environ.get("BGNLM_DATA")
    text = _from_folder(Path(folder).expanduser(), recipe) if folder else _from_cache(_cache_folder(), recipe)
    return read_frame(text.decode("utf-8"))


def _from_folder(folder: Path, recipe: Recipe) -> bytes:
    path = folder / recipe.file
    advice = "Put the right file there, or unset BGNLM_DATA to have the table downloaded and made."
    try:
        content = path.read_bytes()
    except OSError as error:
        problem = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be read ({error.strerror})"
        raise DataError(f"BGNLM_DATA is set to {folder}, but {path} {problem}. {advice}") from error
    text = _unpacked(content, recipe)
    if text is None:
        raise DataError(
            f"BGNLM_DATA is set to {folder}, but {path} is not the table that was expected: "
            f"the sha256 of its text is not {recipe.sha256}. {advice}"
        )
    return text


def _cache_folder() -> Path:
    chosen = os.environ.get("BGNLM_CACHE")
    return Path(chosen).expanduser() if chosen else Path(download.import_pooch().os_cache("bgnlm"))


def _from_cache(cache: Path, recipe: Recipe) -> bytes:
    try:
        with suppress(FileNotFoundError):
            text = _unpacked((cache / recipe.file).read_bytes(), recipe)
            if text is not None:
                return text
        raw = [_raw_content(cache, file, recipe) for file in recipe.raw]
        text = recipe.derive(*raw).encode("utf-8")
        if sha256(text).hexdigest() != recipe.sha256:
            raise DataError(
                f"The raw files of {recipe.file} are right, but the table made from them is not. "
                "This is a mistake in bgnlm: please report it."
            )
        _write(cache / recipe.file, _packed(text, recipe))
    except OSError as error:
        raise DataError(
            f"The cache folder {cache} cannot be used ({error.strerror or error}). Make it writable and see "
            "that there is space, set BGNLM_CACHE to another folder, or set BGNLM_DATA to a folder that holds "
            f"{recipe.file}."
        ) from error
    return text


def _raw_content(cache: Path, file: RawFile, recipe: Recipe) -> bytes:
    path = cache / "raw" / file.path
    with suppress(FileNotFoundError):
        content = path.read_bytes()
        if sha256(content).hexdigest() == file.sha256:
            return content
    # Before the download: it would be for nothing if the folder could not be made.
    path.parent.mkdir(parents=True, exist_ok=True)
    advice = (
        f"Check the connection and try again, download that address yourself and save it as {path}, "
        f"or set BGNLM_DATA to a folder that holds {recipe.file}, made on another computer."
    )
    content = download.download(file, advice)
    _write(path, content)
    return content


def _unpacked(content: bytes, recipe: Recipe) -> bytes | None:
    """Return the text of a table, None if it is not what it should be."""
    if recipe.file.endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error):
            return None
    return content if sha256(content).hexdigest() == recipe.sha256 else None


def _packed(text: bytes, recipe: Recipe) -> bytes:
    if not recipe.file.endswith(".gz"):
        return text
    buffer = BytesIO()
    # Neither name nor time, so that the same text gives the same file.
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=buffer, mtime=0) as file:
        file.write(text)
    return buffer.getvalue()


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_whole(path, content)
