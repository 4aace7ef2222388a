"""A file of records to which one can only append, and which survives that its writer is killed at any moment.

A record is a frame (mark, length, checksum of these) and the payload with its digest. One that was cut off in the
middle of writing is recognised by its missing end and forgotten; anything else that does not fit is damage and is
reported.
"""

import os
import struct
import time
import zlib
from hashlib import blake2b
from pathlib import Path

from bgnlm.errors import CheckpointError

_MARK = b"bgJ1"
_FRAME = struct.Struct("<4sQI")
_DIGEST = 16
_SYNC = 5.0  # seconds after which what was written is forced to the disk, in case the machine fails


class Journal:
    """Records of a file, read when it is opened, and added one by one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            content = path.read_bytes() if path.exists() else b""
        except OSError as error:
            raise CheckpointError(f"{path} cannot be read: {error.strerror or error}.") from None
        self.records, self._length = _split(content, path)
        self._file: int | None = None
        self._synced = time.monotonic()

    def append(self, payload: bytes) -> None:
        """Write one record, all of it or nothing."""
        if self._file is None:
            self._file = self._open()
        data = memoryview(framed(payload, self._length))
        written = 0
        try:
            while written < len(data):
                written += os.write(self._file, data[written:])
            if time.monotonic() - self._synced > _SYNC:
                self.sync()
        except OSError as error:
            os.ftruncate(self._file, self._length)
            raise CheckpointError(
                f"{self._path} cannot be written: {error.strerror or error}. All that it had is still there; make room "
                "and repeat the call to go on from there."
            ) from None
        self._length += len(data)

    def _open(self) -> int:
        try:
            file = os.open(self._path, os.O_WRONLY | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o644)
            os.ftruncate(file, self._length)  # a record that was cut off
            os.lseek(file, 0, os.SEEK_END)
        except OSError as error:
            raise CheckpointError(f"{self._path} cannot be written: {error.strerror or error}.") from None
        return file

    def sync(self) -> None:
        """Force what was written to the disk."""
        if self._file is not None:
            os.fsync(self._file)
            self._synced = time.monotonic()

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            self.sync()
            os.close(self._file)
            self._file = None


def framed(payload: bytes, place: int) -> bytes:
    """Return a record as it stands at one place of a file."""
    start = _MARK + struct.pack("<Q", len(payload))
    return start + struct.pack("<I", zlib.crc32(start)) + payload + _digest(payload, place)


def _digest(payload: bytes, place: int) -> bytes:
    """Return a digest that a record at another place does not have."""
    return blake2b(payload, digest_size=_DIGEST, salt=struct.pack("<Q", place)).digest()


def _split(content: bytes, path: Path) -> tuple[list[bytes], int]:
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
        if content[start + length : end] != _digest(payload, place):
            raise _damaged(path, place)
        records.append(payload)
        place = end
    return records, place


def _damaged(path: Path, place: int) -> CheckpointError:
    return CheckpointError(
        f"{path} is damaged at byte {place}; nothing was changed. Restore the file from a copy, or remove it to run "
        "its chain from the beginning."
    )
