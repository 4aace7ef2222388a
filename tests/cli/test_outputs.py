"""Files are written whole, through links, and to what is no file."""

import os
import threading

import pytest

from bgnlm.cli.outputs import as_csv, check_writable, save_model, write_table

COLUMNS = {"name": ["a,b", 'c"d'], "value": [0.1 + 0.2, 1e-300], "is": [True, False]}
TEXT = 'name,value,is\n"a,b",0.30000000000000004,True\n"c""d",1e-300,False\n'


class Model:
    def save(self, path):
        path.write_text("a model")


def test_every_digit_is_written():
    assert as_csv(COLUMNS) == TEXT


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
def test_a_link_stays_a_link(tmp_path):
    target, link = tmp_path / "there.csv", tmp_path / "here.csv"
    target.write_text("old")
    link.symlink_to(target)
    write_table(str(link), COLUMNS)
    assert link.is_symlink()
    assert target.read_text() == TEXT
    save_model(Model(), str(link))
    assert link.is_symlink()
    assert target.read_text() == "a model"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
@pytest.mark.parametrize(
    ("write", "content"),
    [(lambda path: write_table(path, COLUMNS), TEXT), (lambda path: save_model(Model(), path), "a model")],
)
def test_a_pipe_stays_a_pipe(tmp_path, write, content):
    pipe = tmp_path / "pipe.csv"
    os.mkfifo(pipe)
    check_writable(str(pipe))
    found = []
    reader = threading.Thread(target=lambda: found.append(pipe.read_text()))
    reader.start()
    write(str(pipe))
    reader.join(10)
    assert found == [content]
    assert pipe.is_fifo()


def test_what_was_there_stays_if_writing_fails(tmp_path, monkeypatch):
    out = tmp_path / "p.csv"
    out.write_text("old")

    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OSError, match="No space"):
        write_table(str(out), COLUMNS)
    assert out.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]
