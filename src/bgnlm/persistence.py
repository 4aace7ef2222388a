"""Model files: a zip with one JSON document and one npz of arrays, written whole or not at all, read without trust.

`model.json` says what the file is (`format`, `version`, `digest`) and has everything that is not an array under
`content`; `arrays.npz` has the arrays. The digest is of the content and all arrays, so that a file that was changed is
noticed. Nothing in a file is ever executed.
"""

import json
import os
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from hashlib import blake2b
from io import BytesIO
from pathlib import Path
from typing import Any
from uuid import uuid4

import numpy as np

from bgnlm._typing import AnyArray
from bgnlm._version import __version__
from bgnlm.errors import ModelFileError

FORMAT = "bgnlm model"
VERSION = 3  # the latest; files have the earliest that has all that is in them
_DOCUMENT, _ARRAYS = "model.json", "arrays.npz"
LARGEST_FILE = 2**32  # bytes, unpacked
_MOST_COMPRESSED = 100  # times; random keys and digits leave no model anywhere near
_MAGIC = b"PK\x03\x04"
_KINDS = "biuf"  # of numbers


def write_model(
    path: str | Path, content: Mapping[str, Any], arrays: Mapping[str, AnyArray], version: int = VERSION
) -> None:
    """Write a file, or leave what is there as it is."""
    document = {
        "format": FORMAT,
        "version": version,
        "bgnlm": __version__,
        "digest": _digest(content, arrays),
        "content": content,
    }
    packed = BytesIO()
    np.savez_compressed(packed, **arrays)  # type: ignore[arg-type]
    buffer = BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr(_DOCUMENT, json.dumps(document, allow_nan=False, indent=1))
        archive.writestr(_ARRAYS, packed.getvalue(), compress_type=zipfile.ZIP_STORED)
    try:
        write_whole(Path(path), buffer.getvalue())
    except (OSError, ValueError, RuntimeError) as error:  # a name with a zero byte, a circle of links
        reason = getattr(error, "strerror", None) or str(error)
        raise ModelFileError(
            f"The model could not be written to {path}: {reason}. Nothing was changed there."
        ) from error


def write_whole(path: Path, content: bytes) -> None:
    """Write a file under another name first, so that nobody ever sees half of it; links are followed."""
    path = path.resolve()
    if path.is_symlink() or (path.exists() and not path.is_file()):  # a link that is left leads to itself
        raise OSError(f"{path} is not a file")
    part = path.with_name(f".{path.name}.{uuid4().hex[:8]}.part")
    try:
        part.write_bytes(content)
        with part.open("r+b") as file:
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path)) from error  # not the name of the part
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def read_model(path: str | Path) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Return content and arrays of a file."""
    try:
        raw = _read_whole(Path(path))
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise ModelFileError(f"{str(path)!r} could not be read: {reason}.") from error
    try:
        return _unpacked(raw, path)
    except ModelFileError:
        raise
    except Exception as error:  # whatever parsers make of bytes that are not what they say
        raise damaged(path, f"{type(error).__name__}: {error}") from error


def _read_whole(path: Path) -> bytes:
    """Return what a file has, but no more than the beginning of what is no zip: a device has no end."""
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        if size > LARGEST_FILE:
            raise OSError(f"it has {size:,} bytes, and models have at most {LARGEST_FILE:,}")
        start = file.read(len(_MAGIC))
        return start + file.read() if start == _MAGIC else start


def damaged(path: str | Path, why: str) -> ModelFileError:
    """Return the error for a file that cannot be what was written."""
    return ModelFileError(f"{path} is damaged ({why[:200]}). Save the model again, or take a copy of the file.")


def _unpacked(raw: bytes, path: str | Path) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    if not zipfile.is_zipfile(BytesIO(raw)):
        raise ModelFileError(f"{path} is not a bgnlm model, or was cut off. Models are written by save().")
    with zipfile.ZipFile(BytesIO(raw)) as archive:
        if sorted(archive.namelist()) != [_ARRAYS, _DOCUMENT]:
            raise ModelFileError(f"{path} is a zip file, but not a bgnlm model. Models are written by save().")
        _check_size(archive, len(raw), path)
        document = json.loads(_read_member(archive, _DOCUMENT), parse_constant=_refuse_constant)
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise ModelFileError(f"{path} is not a bgnlm model. Models are written by save().")
        version = document.get("version")
        if not isinstance(version, int) or version < 1:
            raise damaged(path, "it has no version")
        if version > VERSION:
            raise ModelFileError(
                f"{path} has version {version} of the format, written by bgnlm {document.get('bgnlm')}; this bgnlm, "
                f"{__version__}, reads versions up to {VERSION}. Install a later bgnlm."
            )
        arrays = _read_arrays(_read_member(archive, _ARRAYS), path)
    content = document.get("content")
    if not isinstance(content, dict):
        raise damaged(path, "it has no content")
    if document.get("digest") != _digest(content, arrays):
        raise damaged(path, "its digest is that of another content")
    return content, arrays


def _read_arrays(raw: bytes, path: str | Path) -> dict[str, AnyArray]:
    arrays = {}
    with zipfile.ZipFile(BytesIO(raw)) as archive:
        _check_size(archive, len(raw), path)
        for name in archive.namelist():
            if name.endswith(".npy"):
                arrays[name.removesuffix(".npy")] = _read_array(_read_member(archive, name), path)
    return arrays


def _read_member(archive: zipfile.ZipFile, name: str) -> bytes:
    """Unpack no more than what a member is said to have."""
    info = archive.getinfo(name)
    with archive.open(info) as member:
        return member.read(info.file_size)


def _read_array(raw: bytes, path: str | Path) -> AnyArray:
    """Read one array; the header must agree with the number of bytes before anything is allocated."""
    stream = BytesIO(raw)
    if np.lib.format.read_magic(stream) != (1, 0):
        raise damaged(path, "an array of another version")
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(stream)
    if dtype.kind not in _KINDS or dtype.hasobject:
        raise damaged(path, f"an array of type {dtype}")
    rest = len(raw) - stream.tell()
    if any(length < 0 for length in shape) or int(np.prod(shape, dtype=object)) * dtype.itemsize != rest:
        raise damaged(path, "an array whose size is not what it says")
    flat = np.frombuffer(raw, dtype, offset=stream.tell())
    return flat.reshape(shape, order="F" if fortran else "C").copy()


def _check_size(archive: zipfile.ZipFile, n_packed: int, path: str | Path) -> None:
    size = sum(info.file_size for info in archive.infolist())
    most = min(LARGEST_FILE, 2**20 + _MOST_COMPRESSED * n_packed)
    if size > most:
        raise ModelFileError(f"{path} would unpack to {size:,} bytes; a model of its size has at most {most:,}.")


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _digest(content: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> str:
    state = blake2b(json.dumps(content, sort_keys=True, allow_nan=False).encode(), digest_size=16)
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        state.update(f"{name} {array.dtype.str} {array.shape}".encode())
        state.update(array.tobytes())
    return state.hexdigest()
