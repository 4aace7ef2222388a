"""A file of records to which one can only append, and which survives that its writer is killed at any moment.

A record is a frame (mark, length, checksum of these) and the payload with its digest. One that was cut off in the
middle of writing is recognised by its missing end and forgotten; anything else that does not fit is damage and is
reported.
"""

import contextlib
import os
import struct
import time
import zlib
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path

from bgnlm.errors import CheckpointError

_MARK = b"bgJ1"
_FRAME = struct.Struct("<4sQI")
_DIGEST = 16
_SYNC = 5.0  # seconds after which what was written is forced to the disk, in case the machine fails


class Journal:
    """Records of a file, read when this is made, and added one by one.

    Parameters
    ----------
    path
        The file; it need not exist.
    identity
        What the records belong to, in at most 64 bytes: those of something else are no records here.
    """

    def __init__(self, path: Path, identity: bytes = b"") -> None:
        self._path = path
        self._identity = identity
        try:
            content = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise CheckpointError(
                f"{path} cannot be read: {error.strerror or error}. Nothing was changed; make it readable, or remove "
                "it to run its chain from the beginning."
            ) from None
        self.records, self._length = _split(content, path, identity)
        self._is_synced = True
        self._synced = time.monotonic()

    def append(self, payload: bytes) -> None:
        """Write one record, all of it or nothing."""
        data = memoryview(framed(payload, self._length, self._identity))
        with self._opened() as file:
            try:
                written = 0
                while written < len(data):
                    written += os.write(file, data[written:])
                self._is_synced = False
                if time.monotonic() - self._synced > _SYNC:
                    self._sync(file)
            except OSError:
                with contextlib.suppress(OSError):  # what is left is forgotten by whoever reads it
                    os.ftruncate(file, self._length)
                raise
        self._length += len(data)

    @contextlib.contextmanager
    def _opened(self) -> Iterator[int]:
        """Open the file at its end, without a record that was cut off; there may be more chains than open files."""
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
            try:
                os.ftruncate(file, self._length)
                os.lseek(file, 0, os.SEEK_END)
                yield file
            finally:
                os.close(file)
        except OSError as error:
            raise CheckpointError(
                f"{self._path} cannot be written: {error.strerror or error}. All that it had is still there; make room "
                "and repeat the call to go on from there."
            ) from None

    def _sync(self, file: int) -> None:
        """Force what was written to the disk."""
        os.fsync(file)
        self._synced, self._is_synced = time.monotonic(), True

    def close(self) -> None:
        """See that everything is on the disk."""
        if not self._is_synced:
            with self._opened() as file:
                self._sync(file)


def framed(payload: bytes, place: int, identity: bytes = b"") -> bytes:
    """Return a record as it stands at one place of a file."""
    start = _MARK + struct.pack("<Q", len(payload))
    return start + struct.pack("<I", zlib.crc32(start)) + payload + _digest(payload, place, identity)


def _digest(payload: bytes, place: int, identity: bytes) -> bytes:
    """Return a digest that a record at another place, or of another file, does not have."""
    return blake2b(payload, digest_size=_DIGEST, salt=struct.pack("<Q", place), key=identity).digest()


def _split(content: bytes, path: Path, identity: bytes) -> tuple[list[bytes], int]:
    """Return the payloads of a file, and how long it is without a record that was cut off."""
    records: list[bytes] = []
    place = 0
    while place < len(content):
        frame = content[place : place + _FRAME.size]
        if len(frame) < _FRAME.size:
            if not (_MARK.startswith(frame[:4]) or frame.startswith(_MARK)):
                raise _damaged(path, place)
            break
        mark, length, checksum = _FRAME.unpack(frame)
        if mark != _MARK or checksum != zlib.crc32(frame[:-4]):
            raise _damaged(path, place)
        start = place + _FRAME.size
        end = start + length + _DIGEST
        if end > len(content):
            break
        payload = content[start : start + length]
        if content[start + length : end] != _digest(payload, place, identity):
            raise _damaged(path, place)
        records.append(payload)
        place = end
    return records, place


def _damaged(path: Path, place: int) -> CheckpointError:
    return CheckpointError(
        f"{path} is damaged at byte {place}, or of another search; nothing was changed. Restore the file from a copy, "
        "or remove it to run its chain from the beginning."
    )
