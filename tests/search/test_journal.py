"""A file of records: cut off, damaged, on a full disk."""

import contextlib
import errno
import os
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bgnlm.errors import CheckpointError
from bgnlm.search import journal as module
from bgnlm.search.journal import Journal, framed

PAYLOADS = [b"first\n", b"", b"bgJ1" * 6, bytes(range(30)), b"\0" * 20, b"last"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "a.journal"


@pytest.fixture(autouse=True)
def without_waiting_for_the_disk(monkeypatch):
    monkeypatch.setattr(os, "fsync", lambda _: None)


def content(payloads):
    """A journal as it should be, byte by byte."""
    whole = b""
    for payload in payloads:
        whole += framed(payload, len(whole))
    return whole


def ends(payloads):
    return [len(content(payloads[: k + 1])) for k in range(len(payloads))]


def write(path, payloads):
    journal = Journal(path)
    for payload in payloads:
        journal.append(payload)
    journal.close()


def with_byte(data, place, mask):
    return data[:place] + bytes([data[place] ^ mask]) + data[place + 1 :]


def assert_refused(path, data):
    """Reading is an error that says where and what to do, and the file is as it was."""
    path.write_bytes(data)
    with pytest.raises(
        CheckpointError, match=r"is damaged at byte \d+, or of .*; nothing was changed. Restore .*, or remove it"
    ):
        Journal(path)
    assert path.read_bytes() == data


@given(payloads=st.lists(st.binary(max_size=200), max_size=6), n_before=st.integers(0, 6))
@settings(max_examples=60, deadline=None)
def test_records_come_back_in_their_order(tmp_path_factory, payloads, n_before):
    path = tmp_path_factory.mktemp("journal") / "a.journal"
    write(path, payloads[:n_before])
    write(path, payloads[n_before:])
    assert Journal(path).records == payloads
    assert path.exists() == bool(payloads)


def test_what_is_written_is_there_before_the_file_is_closed(path):
    journal = Journal(path)
    for k, payload in enumerate(PAYLOADS):
        journal.append(payload)
        assert Journal(path).records == PAYLOADS[: k + 1]
    assert path.read_bytes() == content(PAYLOADS)
    journal.close()


def test_reading_changes_nothing(path):
    Journal(path).close()
    assert not path.exists()
    data = content(PAYLOADS)[:-3]
    path.write_bytes(data)
    Journal(path).close()
    assert path.read_bytes() == data


def test_a_record_that_was_cut_off_is_forgotten(path):
    """At every length; what follows is written as if the rest had never been there."""
    data = content(PAYLOADS)
    for length in range(len(data) + 1):
        path.write_bytes(data[:length])
        left = [payload for payload, end in zip(PAYLOADS, ends(PAYLOADS), strict=True) if end <= length]
        journal = Journal(path)
        assert journal.records == left, length
        assert path.read_bytes() == data[:length]
        journal.append(b"next")
        journal.append(b"and next")
        journal.close()
        assert path.read_bytes() == content([*left, b"next", b"and next"]), length


@pytest.mark.parametrize("mask", [0x01, 0xFF])
def test_every_byte_that_is_another_is_noticed(path, mask):
    data = content(PAYLOADS)
    for place in range(len(data)):
        assert_refused(path, with_byte(data, place, mask))


@pytest.mark.parametrize("n_bytes", [3, 9, 16, 35])
def test_damage_in_front_of_a_record_that_was_cut_off(path, n_bytes):
    """Within that record it may go unnoticed, because the record is forgotten anyway."""
    intact = content(PAYLOADS[:4])
    data = intact + framed(PAYLOADS[4], len(intact))[:n_bytes]
    for place in range(len(data)):
        damaged = with_byte(data, place, 0x10)
        if place < len(intact):
            assert_refused(path, damaged)
            continue
        path.write_bytes(damaged)
        with contextlib.suppress(CheckpointError):
            assert Journal(path).records == PAYLOADS[:4]
        assert path.read_bytes() == damaged


@pytest.mark.parametrize("order", [[1, 2], [0, 2], [0, 2, 1], [0, 0, 1], [0, 1, 1], [0, 1, 2, 0]])
def test_records_that_were_left_out_or_moved_are_noticed(path, order):
    payloads = [b"aaaa", b"bbbb", b"cccc"]  # equally long, so that every frame starts where one should
    data = content(payloads)
    size = len(data) // 3
    assert_refused(path, b"".join(data[k * size : (k + 1) * size] for k in order))


@pytest.mark.parametrize(
    "data", [b"x", b"hello world", b"\n", b"bgJ2", b"bgJ", b"\0", b"PK\x03\x04" * 10, b"\x80\x04."]
)
def test_a_file_of_something_else(path, data):
    if data == b"bgJ":  # the beginning of a record
        path.write_bytes(data)
        assert Journal(path).records == []
    else:
        assert_refused(path, data)
        assert_refused(path, content(PAYLOADS) + data)


def fail_after(monkeypatch, n_bytes, error=errno.ENOSPC):
    """Let the disk be full after so many bytes."""
    room = n_bytes
    write = os.write

    def limited(file, data):
        nonlocal room
        if not room:
            raise OSError(error, os.strerror(error))
        n_written = write(file, data[:room])
        room -= n_written
        return n_written

    monkeypatch.setattr(os, "write", limited)
    return write


@pytest.mark.parametrize("n_before", [0, 3])
@pytest.mark.parametrize("n_bytes", [0, 1, 4, 16, 17, 40])
def test_a_full_disk_leaves_what_was_there(path, monkeypatch, n_bytes, n_before):
    """And once there is room again, the same journal goes on, and another one too."""
    write(path, PAYLOADS[:n_before])
    journal = Journal(path)
    usual = fail_after(monkeypatch, n_bytes)
    with pytest.raises(CheckpointError, match=r"No space left.*still there; make room and repeat the call"):
        journal.append(b"z" * 50)
    assert path.read_bytes() == content(PAYLOADS[:n_before])
    monkeypatch.setattr(os, "write", usual)
    journal.append(b"next")
    assert path.read_bytes() == content([*PAYLOADS[:n_before], b"next"])
    journal.append(b"and next")
    journal.close()
    write(path, [b"last"])
    assert Journal(path).records == [*PAYLOADS[:n_before], b"next", b"and next", b"last"]


def test_a_disk_that_takes_a_few_bytes_at_a_time(path, monkeypatch):
    write_all = os.write
    monkeypatch.setattr(os, "write", lambda file, data: write_all(file, data[:7]))
    write(path, PAYLOADS)
    assert path.read_bytes() == content(PAYLOADS)


def refuse(error):
    def refusing(*_):
        raise OSError(error, os.strerror(error))

    return refusing


def test_a_disk_on_which_nothing_works_any_more(path, monkeypatch):
    """Where half a record cannot even be taken back, the next one who reads forgets it."""
    write(path, PAYLOADS)
    journal = Journal(path)
    journal.append(b"more")
    with monkeypatch.context() as patch:
        fail_after(patch, 20, errno.EIO)
        patch.setattr(os, "ftruncate", refuse(errno.EIO))
        with pytest.raises(CheckpointError, match="Input/output error"):
            journal.append(b"z" * 50)
    assert Journal(path).records == [*PAYLOADS, b"more"]


def test_a_disk_that_does_not_take_what_was_written(path, monkeypatch):
    write(path, PAYLOADS)
    journal = Journal(path)
    monkeypatch.setattr(module, "_SYNC", -1.0)
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse(errno.EIO))
        with pytest.raises(CheckpointError, match="Input/output error"):
            journal.append(b"more")
    journal.append(b"next")
    journal.close()
    assert path.read_bytes() == content([*PAYLOADS, b"next"])


def test_a_disk_that_fails_at_the_end(path, monkeypatch):
    journal = Journal(path)
    journal.append(b"all")
    closed, close = [], os.close
    monkeypatch.setattr(os, "close", lambda file: (closed.append(file), close(file)))
    monkeypatch.setattr(os, "fsync", refuse(errno.EIO))
    with pytest.raises(CheckpointError, match="Input/output error"):
        journal.close()
    assert len(closed) == 1
    assert Journal(path).records == [b"all"]


def test_files_may_only_be_so_long(path):
    """The kernel's own limit, in a process that is not this one."""
    pytest.importorskip("resource")
    write(path, PAYLOADS)
    program = """if True:
        import pathlib, resource, sys
        from bgnlm.errors import CheckpointError
        from bgnlm.search.journal import Journal
        journal = Journal(pathlib.Path(sys.argv[1]))
        limit = int(sys.argv[2])
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
        n_written = 0
        try:
            for _ in range(1000):
                journal.append(b"x" * 100)
                n_written += 1
        except CheckpointError as error:
            resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            journal.append(b"after")
            print(n_written, error)
    """
    limit = len(content(PAYLOADS)) + 1000
    command = [sys.executable, "-c", program, str(path), str(limit)]
    process = subprocess.run(command, capture_output=True, text=True, check=True)
    n_written, message = process.stdout.split(maxsplit=1)
    assert int(n_written) == 1000 // len(framed(b"x" * 100, 0))
    assert "File too large" in message
    assert Journal(path).records == [*PAYLOADS, *[b"x" * 100] * int(n_written), b"after"]


def test_a_folder_in_its_place(path):
    path.mkdir()
    with pytest.raises(CheckpointError, match=r"cannot be read: Is a directory\. \w+"):
        Journal(path)


def test_a_folder_that_has_gone(tmp_path):
    (tmp_path / "folder").mkdir()
    journal = Journal(tmp_path / "folder" / "a.journal")
    (tmp_path / "folder").rmdir()
    with pytest.raises(CheckpointError, match=r"cannot be written: No such file or directory\. \w+"):
        journal.append(b"more")
    journal.close()
