"""Downloads from a web server of our own, whole and broken."""

import os
import socket
import subprocess
import sys
import threading

import pytest

from bgnlm.datasets import download, load_abalone
from bgnlm.datasets.recipes import RECIPES
from bgnlm.errors import DataError
from tests.datasets.conftest import SMALL_RAW
from tests.datasets.raw_files import make_raw


def files_in(folder):
    return {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}


def assert_fails(match, cache):
    """With one of our errors, which names a way out."""
    with pytest.raises(DataError, match=match) as caught:
        load_abalone()
    message = str(caught.value)
    assert "Nothing was kept." in message
    assert str(cache / "raw" / "abalone age" / "abalone.data") in message
    assert "set BGNLM_DATA to a folder that holds abalone.csv" in message
    assert not files_in(cache)


def test_the_first_time_is_a_download_and_the_second_is_not(small_recipe, cache, server):
    first = load_abalone()
    assert server.asked == ["/abalone%20age/abalone.data", "/abalone%20age/teid.csv"]
    assert files_in(cache) == {small_recipe.file, *(f"raw/{path}" for path in SMALL_RAW)}
    second = load_abalone()
    assert len(server.asked) == 2
    assert first.table.equals(second.table)
    assert list(first.is_train) == [True, False, True]


def test_a_raw_file_that_is_there_is_not_downloaded_again(small_recipe, cache, server):
    load_abalone()
    (cache / small_recipe.file).unlink()
    (cache / "raw" / "abalone age" / "teid.csv").write_bytes(b"spoilt")
    load_abalone()
    assert server.asked[2:] == ["/abalone%20age/teid.csv"]


def test_addresses_are_encoded():
    addresses = [download.url_of(file) for recipe in RECIPES.values() for file in recipe.raw]
    assert len(set(addresses)) == 12
    assert all(address.startswith("https://raw.githubusercontent.com/aliaksah/EMJMCMC2016/") for address in addresses)
    assert not any(" " in address or "+" in address for address in addresses)
    assert any(address.endswith("/supplementaries/BGNLM/asteroids/Recognize/NotNeas8%2B.txt") for address in addresses)


def test_another_file_at_the_address(small_recipe, cache, server):
    server.files["abalone age/abalone.data"] += b"\n"
    assert_fails("is not the file that was asked for: its sha256 is", cache)


def test_a_connection_that_is_cut(small_recipe, cache, server):
    server.promise_more = True
    assert_fails("there is no connection, or it was cut|its sha256 is", cache)


def test_a_connection_that_is_cut_at_the_second_file(small_recipe, cache, server):
    load_abalone()
    (cache / small_recipe.file).unlink()
    (cache / "raw" / "abalone age" / "teid.csv").unlink()
    server.promise_more = True
    with pytest.raises(DataError, match=r"teid\.csv"):
        load_abalone()
    assert files_in(cache) == {"raw/abalone age/abalone.data"}
    server.promise_more = False
    load_abalone()
    assert server.asked[-1] == "/abalone%20age/teid.csv"


def test_a_file_that_is_not_there(small_recipe, cache, server):
    server.files.clear()
    assert_fails("the server answered 404 Not Found", cache)


def test_a_server_that_says_nothing(small_recipe, cache, server, monkeypatch):
    monkeypatch.setattr(download, "TIMEOUT", 0.2)
    server.silence.clear()
    assert_fails(r"the server gave no answer for 0\.2 seconds", cache)


def test_no_server(small_recipe, cache, monkeypatch):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    monkeypatch.setattr(download, "BASE_URL", f"http://127.0.0.1:{port}/")
    assert_fails("there is no connection, or it was cut", cache)


def test_many_threads_at_a_time(small_recipe, cache, server):
    barrier, loaded = threading.Barrier(8), []

    def load():
        barrier.wait()
        loaded.append(load_abalone())

    threads = [threading.Thread(target=load) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(loaded) == 8
    assert all(data.table.equals(loaded[0].table) for data in loaded)
    assert files_in(cache) == {small_recipe.file, *(f"raw/{path}" for path in SMALL_RAW)}


def test_two_processes_at_a_time(finished_table, cache, server):
    """From the real raw files."""
    contents = make_raw("abalone", finished_table("abalone"))
    server.files.update(zip([file.path for file in RECIPES["abalone"].raw], contents, strict=True))
    code = (
        f"from bgnlm.datasets import download, load_abalone; download.BASE_URL = {server.url!r}; print(load_abalone())"
    )
    environment = {name: value for name, value in os.environ.items() if name != "BGNLM_DATA"}
    processes = [
        subprocess.Popen([sys.executable, "-c", code], env=environment, stdout=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=60)[0] for process in processes]
    assert outputs == ["<Dataset abalone: 4,177 rows, 9 inputs, response Rings, 3,177 for training>\n"] * 2
    assert (cache / "abalone.csv").read_text() == finished_table("abalone")
