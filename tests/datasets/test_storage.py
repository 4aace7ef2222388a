"""Where a table is looked for, and what is said where it is not found."""

import builtins
import errno
import gzip
import os
import stat
from pathlib import Path

import pytest

from bgnlm.datasets import download, load_abalone, storage
from bgnlm.errors import DataError, MissingExtraError
from tests.datasets.conftest import SMALL_RAW, SMALL_TABLE


def put(folder, recipe, content=None):
    folder.mkdir(exist_ok=True)
    path = folder / recipe.file
    path.write_bytes(storage._packed(SMALL_TABLE.encode(), recipe) if content is None else content)
    return path


@pytest.fixture
def no_pooch(monkeypatch):
    original = builtins.__import__

    def refuse(name, *arguments, **options):
        if name.partition(".")[0] == "pooch":
            raise ImportError(name)
        return original(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)


@pytest.fixture
def no_download(monkeypatch):
    def refuse(*_):
        raise AssertionError("a download was tried")

    monkeypatch.setattr(download, "download", refuse)


def test_the_folder_named_by_the_environment_is_used(small_recipe, cache, tmp_path, monkeypatch, no_pooch):
    put(tmp_path / "data", small_recipe)
    monkeypatch.setenv("BGNLM_DATA", str(tmp_path / "data"))
    assert list(load_abalone().y) == [15, 7, 9]
    assert not cache.exists()


def test_another_compression_of_the_same_text_will_do(small_recipe, cache, tmp_path, monkeypatch):
    if small_recipe.file.endswith(".gz"):
        put(tmp_path, small_recipe, gzip.compress(SMALL_TABLE.encode(), 1))
        monkeypatch.setenv("BGNLM_DATA", str(tmp_path))
        assert list(load_abalone().y) == [15, 7, 9]


def test_a_missing_file_in_the_named_folder(small_recipe, tmp_path, monkeypatch, no_download):
    monkeypatch.setenv("BGNLM_DATA", str(tmp_path))
    path = tmp_path / small_recipe.file
    with pytest.raises(DataError, match=r"BGNLM_DATA is set to .* does not exist.*unset BGNLM_DATA") as caught:
        load_abalone()
    assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    "content",
    [b"", b"other", gzip.compress(b"other"), gzip.compress(SMALL_TABLE.encode())[:-9]],
    ids=["empty", "other", "compressed", "cut off"],
)
def test_a_wrong_file_in_the_named_folder(content, small_recipe, tmp_path, monkeypatch, no_download):
    path = put(tmp_path, small_recipe, content)
    monkeypatch.setenv("BGNLM_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"is not the table that was expected.*unset BGNLM_DATA") as caught:
        load_abalone()
    assert str(path) in str(caught.value)
    assert small_recipe.sha256 in str(caught.value)
    assert path.read_bytes() == content


def test_a_folder_in_the_place_of_the_file(small_recipe, tmp_path, monkeypatch):
    (tmp_path / small_recipe.file).mkdir()
    monkeypatch.setenv("BGNLM_DATA", str(tmp_path))
    with pytest.raises(DataError, match=r"cannot be read \("):
        load_abalone()


def test_what_is_in_the_cache_needs_no_pooch(small_recipe, cache, no_pooch, no_download):
    put(cache, small_recipe)
    assert list(load_abalone().y) == [15, 7, 9]


@pytest.mark.parametrize(
    "content", [b"", b"other", gzip.compress(SMALL_TABLE.encode())[:-9]], ids=["empty", "other", "cut off"]
)
def test_a_spoilt_cache_is_mended(content, small_recipe, cache, server):
    path = put(cache, small_recipe, content)
    assert list(load_abalone().y) == [15, 7, 9]
    assert path.read_bytes() == storage._packed(SMALL_TABLE.encode(), small_recipe)


def test_raw_files_put_there_by_hand_are_used(small_recipe, cache, no_download):
    for name, content in SMALL_RAW.items():
        path = cache / "raw" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
    assert list(load_abalone().y) == [15, 7, 9]
    assert (cache / small_recipe.file).exists()


def test_without_pooch_there_is_advice(small_recipe, cache, no_pooch):
    with pytest.raises(MissingExtraError, match=r"pip install 'bgnlm\[data\]', or set BGNLM_DATA"):
        load_abalone()


def test_the_usual_cache_is_the_platforms(monkeypatch):
    import pooch

    monkeypatch.delenv("BGNLM_CACHE", raising=False)
    assert storage._cache_folder() == Path(pooch.os_cache("bgnlm"))
    monkeypatch.setenv("BGNLM_CACHE", "")
    assert storage._cache_folder() == Path(pooch.os_cache("bgnlm"))
    monkeypatch.setenv("BGNLM_CACHE", "~/there")
    assert storage._cache_folder() == Path.home() / "there"


def test_a_file_in_the_place_of_the_cache(small_recipe, cache, no_download):
    cache.write_bytes(b"mine")
    with pytest.raises(DataError, match=r"The cache folder .* cannot be used .*set BGNLM_CACHE to another"):
        load_abalone()
    assert cache.read_bytes() == b"mine"


def test_a_cache_that_is_read_only(small_recipe, cache, no_download):
    cache.mkdir()
    cache.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        if os.access(cache, os.W_OK):
            pytest.skip("this user may write anywhere")
        with pytest.raises(DataError, match=r"The cache folder .* cannot be used .*set BGNLM_CACHE to another"):
            load_abalone()
        assert not list(cache.iterdir())
    finally:
        cache.chmod(stat.S_IRWXU)


@pytest.mark.parametrize(
    ("method", "code"), [("mkdir", errno.EACCES), ("write_bytes", errno.ENOSPC), ("replace", errno.EACCES)]
)
def test_a_disk_that_is_full_or_refuses(method, code, small_recipe, cache, server, monkeypatch):
    def fail(self, *_, **__):
        if method == "write_bytes":
            self.touch()
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(Path, method, fail)
    with pytest.raises(DataError, match=rf"cannot be used \({os.strerror(code)}\)"):
        load_abalone()
    assert not [path for path in cache.rglob("*") if path.is_file()]
    assert len(server.asked) == (method != "mkdir")


def test_a_table_that_comes_out_wrong_is_our_mistake(small_recipe, cache, server, monkeypatch):
    object.__setattr__(small_recipe, "derive", lambda *_: "other")
    with pytest.raises(DataError, match="mistake in bgnlm: please report"):
        load_abalone()
    assert not (cache / small_recipe.file).exists()
