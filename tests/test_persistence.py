"""Model files: written whole or not at all, read without trust."""

import errno
import io
import json
import os
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import bgnlm
from bgnlm import BGNLMRegressor, SearchConfig, persistence
from bgnlm.errors import ModelFileError
from bgnlm.persistence import read_model, write_model

CONTENT = {"text": "caf\u00e9 \U0001f600 \ud800", "numbers": [1, 0.1, None, True], "nested": {"a": {}}}
ARRAYS = {
    "0.a": np.arange(6.0).reshape(2, 3),
    "0.b": np.array(-np.inf),
    "0.c": np.array([], dtype=np.int64),
    "d": np.array([2**64 - 1], dtype=np.uint64),
    "fortran": np.asfortranarray(np.arange(6).reshape(2, 3)),
}
N_DAMAGED = 3200  # files with bytes changed; raise it to look further
N_PARTS = 8

is_posix = pytest.mark.skipif(os.name != "posix", reason="devices and links of POSIX")


@pytest.fixture(scope="module")
def model():
    rng = np.random.default_rng(71)
    X = rng.uniform(0.5, 2.0, size=(20, 2))
    search = SearchConfig(n_populations=2, population_size=4, n_candidates=20, n_averaged=6)
    return BGNLMRegressor(search=search, n_chains=1, random_state=0).fit(X, X[:, 0] + 0.3 * rng.normal(size=20))


@pytest.fixture(scope="module")
def raw(model, tmp_path_factory):
    """A file of a small model, as bytes."""
    path = tmp_path_factory.mktemp("models") / "small.bgnlm"
    model.save(path)
    return path.read_bytes()


@pytest.fixture
def path(tmp_path):
    return tmp_path / "here.bgnlm"


def names_in(folder):
    return [entry.name for entry in folder.iterdir()]


def members(raw):
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def packed(parts, method=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a name that comes twice
        for name, content in parts:
            archive.writestr(name, content)
    return buffer.getvalue()


def with_document(raw, **changes):
    parts = members(raw)
    document = json.loads(parts["model.json"]) | changes
    document = {key: value for key, value in document.items() if value is not ...}
    return packed([("model.json", json.dumps(document)), ("arrays.npz", parts["arrays.npz"])])


def refused(path, content, message=None):
    path.write_bytes(content)
    with pytest.raises(ModelFileError, match=message) as caught:
        bgnlm.load(path)
    assert type(caught.value) is ModelFileError
    assert path.name in str(caught.value)
    return str(caught.value)


def test_content_and_arrays_come_back(path):
    write_model(path, CONTENT, ARRAYS)
    content, arrays = read_model(path)
    assert content == CONTENT
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(arrays[name], array, strict=True)
        assert arrays[name].flags.writeable


def test_a_file_is_a_zip_of_a_document_and_arrays(path, raw):
    parts = members(raw)
    assert sorted(parts) == ["arrays.npz", "model.json"]
    document = json.loads(parts["model.json"])
    assert document["format"] == "bgnlm model"
    assert document["version"] == 1
    assert document["bgnlm"] == bgnlm.__version__
    with np.load(io.BytesIO(parts["arrays.npz"]), allow_pickle=False) as arrays:
        content = {name: arrays[name] for name in arrays.files}
    assert document["digest"] == persistence._digest(document["content"], content)
    path.write_bytes(raw)
    assert bgnlm.load(path).predict([[1.0, 1.0]]).shape == (1,)


def test_content_that_json_does_not_have_is_refused_before_anything_is_written(path):
    path.write_bytes(b"before")
    for content in ({"a": np.nan}, {"a": object()}, {"a": {1, 2}}):
        with pytest.raises((ValueError, TypeError)):
            write_model(path, content, {})
    assert path.read_bytes() == b"before"
    assert names_in(path.parent) == [path.name]


class TestWriting:
    @pytest.mark.parametrize("exists", [True, False])
    @pytest.mark.parametrize(
        ("place", "code"),
        [("os.fsync", errno.EIO), ("pathlib.Path.replace", errno.EACCES), ("pathlib.Path.open", errno.ENOSPC)],
    )
    def test_one_that_fails_changes_nothing(self, model, path, monkeypatch, place, code, exists):
        if exists:
            path.write_bytes(b"before")

        def fail(*_, **__):
            raise OSError(code, os.strerror(code))

        monkeypatch.setattr(place, fail)
        with pytest.raises(ModelFileError, match=rf"(?s)here.bgnlm.*{os.strerror(code)}.*Nothing was changed"):
            model.save(path)
        monkeypatch.undo()
        assert names_in(path.parent) == [path.name] * exists
        assert not exists or path.read_bytes() == b"before"

    def test_an_interrupt_leaves_nothing_behind(self, model, path, monkeypatch):
        path.write_bytes(b"before")

        def interrupt(_):
            raise KeyboardInterrupt

        monkeypatch.setattr("os.fsync", interrupt)
        with pytest.raises(KeyboardInterrupt):
            model.save(path)
        assert names_in(path.parent) == [path.name]
        assert path.read_bytes() == b"before"

    @is_posix
    def test_a_full_disk(self, raw, path):
        """A limit on the size of files stands for the end of the disk."""
        path.write_bytes(raw)
        code = (
            "import resource, sys, bgnlm; model = bgnlm.load(sys.argv[1]);"
            "resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500));"
            "model.save(sys.argv[1])"
        )
        run = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True)
        assert run.returncode == 1
        assert "ModelFileError" in run.stderr
        assert "File too large" in run.stderr
        assert names_in(path.parent) == [path.name]
        assert path.read_bytes() == raw

    def test_targets_that_are_no_files(self, model, tmp_path):
        for target in (tmp_path, tmp_path / "no folder" / "model", tmp_path / ("a" * 300), tmp_path / "zero\0byte"):
            with pytest.raises(ModelFileError, match="could not be written"):
                model.save(target)
        (tmp_path / "file").write_bytes(b"")
        with pytest.raises(ModelFileError, match="could not be written"):
            model.save(tmp_path / "file" / "model")
        assert names_in(tmp_path) == ["file"]

    @is_posix
    def test_devices_and_circles_are_no_files(self, model, tmp_path):
        circle = tmp_path / "circle"
        circle.symlink_to(circle)
        for target in (Path("/dev/full"), circle):
            with pytest.raises(ModelFileError, match="could not be written"):
                model.save(target)
        assert circle.is_symlink()

    @is_posix
    def test_links_are_followed(self, model, tmp_path):
        link, target = tmp_path / "link", tmp_path / "target"
        link.symlink_to(target)
        model.save(link)
        assert link.is_symlink()
        assert bgnlm.load(link).summary() == bgnlm.load(target).summary() == model.summary()

    def test_names_may_be_texts_of_any_kind(self, model, tmp_path):
        for name in ("caf\u00e9.bgnlm", "no ending", ".hidden", "-", "a\nb" if os.name == "posix" else "ab"):
            model.save(str(tmp_path / name))
            assert bgnlm.load(str(tmp_path / name)).summary() == model.summary()


class TestReading:
    @pytest.mark.parametrize(
        ("content", "message"),
        [
            (b"", "is not a bgnlm model, or was cut off"),
            (b"hello", "is not a bgnlm model, or was cut off"),
            (b"PK\x03\x04", "is not a bgnlm model, or was cut off"),
            (b"PK\x03\x04" + bytes(10_000), "is not a bgnlm model, or was cut off"),
            (packed([]), "is not a bgnlm model"),
            (packed([("a.txt", b"a")]), "is a zip file, but not a bgnlm model"),
            (packed([("model.json", b"{}")]), "is a zip file, but not a bgnlm model"),
            (packed([("model.json", b"{}"), ("arrays.npz", b"")]), "is not a bgnlm model"),
            (packed([("model.json", b"[]"), ("arrays.npz", b"")]), "is not a bgnlm model"),
            (packed([("model.json", b"\xff\xfe"), ("arrays.npz", b"")]), "is damaged"),
            (packed([("model.json", b"[" * 100_000), ("arrays.npz", b"")]), "is damaged"),
            (packed([("model.json", b"{" + b'"a":{' * 5_000), ("arrays.npz", b"")]), "is damaged"),
            (packed([("model.json", b'{"format": NaN}'), ("arrays.npz", b"")]), "is damaged"),
            (packed([("model.json", b"9" * 10_000), ("arrays.npz", b"")]), "is damaged"),
        ],
        ids=lambda value: str(value)[:30],
    )
    def test_other_files(self, path, content, message):
        refused(path, content, message)

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"version": 4}, "has version 4 of the format, written by bgnlm .* reads versions up to 3"),
            ({"version": 10**30}, "Install a later bgnlm"),
            ({"version": 0}, "it has no version"),
            ({"version": "1"}, "it has no version"),
            ({"version": 1.5}, "it has no version"),
            ({"version": None}, "it has no version"),
            ({"version": ...}, "it has no version"),
            ({"format": "another"}, "is not a bgnlm model"),
            ({"format": ...}, "is not a bgnlm model"),
            ({"content": ...}, "it has no content"),
            ({"content": []}, "it has no content"),
            ({"digest": "0" * 32}, "its digest is that of another content"),
            ({"digest": ...}, "its digest is that of another content"),
            ({"content": {}}, "its digest is that of another content"),
        ],
        ids=str,
    )
    def test_other_documents(self, path, raw, changes, message):
        refused(path, with_document(raw, **changes), message)

    def test_a_later_version_may_have_anything_else(self, path, raw):
        """What a later version needs to say must not be hidden by what only it understands."""
        parts = members(raw)
        document = json.dumps({"format": "bgnlm model", "version": 7, "bgnlm": "9.9", "body": [1]})
        content = packed([("model.json", document), ("arrays.npz", parts["arrays.npz"])])
        assert "written by bgnlm 9.9" in refused(path, content)

    def test_members_that_are_too_many_or_too_few(self, path, raw):
        parts = members(raw)
        refused(path, packed([*parts.items(), ("more.txt", b"")]), "but not a bgnlm model")
        refused(path, packed([*parts.items(), *parts.items()]), "but not a bgnlm model")
        for name in parts:
            refused(path, packed([(name, parts[name])]), "but not a bgnlm model")

    def test_what_compresses_it_does_not_matter(self, path, raw, model):
        parts = members(raw)
        for method in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            path.write_bytes(packed(parts.items(), method))
            assert bgnlm.load(path).summary() == model.summary()

    def test_files_that_cannot_be_read(self, tmp_path):
        for target in (tmp_path, tmp_path / "nothing", tmp_path / "zero\0byte", tmp_path / ("a" * 300)):
            with pytest.raises(ModelFileError, match="could not be read"):
                bgnlm.load(target)

    @is_posix
    @pytest.mark.parametrize("device", ["/dev/zero", "/dev/null", "/dev/urandom"])
    def test_devices_have_no_end(self, device):
        if not Path(device).exists():
            pytest.skip(f"there is no {device}")
        with pytest.raises(ModelFileError, match="is not a bgnlm model"):
            bgnlm.load(device)

    def test_files_that_were_cut_off(self, path, raw):
        for length in range(0, len(raw), 97):
            refused(path, raw[:length])

    def test_nothing_is_unpickled(self, path, raw, monkeypatch):
        path.write_bytes(raw)

        def fail(*_, **__):
            raise AssertionError("this would execute what the file says")

        for place in ("pickle.load", "pickle.loads", "pickle.Unpickler", "numpy.load"):
            monkeypatch.setattr(place, fail)
        bgnlm.load(path)


def npz(name, content):
    return packed([(f"{name}.npy", content)])


def npy(header, data=b"", version=b"\x01\x00"):
    text = header.encode("latin-1")
    return b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text + data


def saved(array, **options):
    buffer = io.BytesIO()
    np.save(buffer, array, **options)
    return buffer.getvalue()


class TestArrays:
    @pytest.mark.parametrize(
        "content",
        [
            b"",
            b"\x93NUMPY",
            saved(np.array([{}], dtype=object), allow_pickle=True),
            saved(np.array(["text"])),
            saved(np.zeros(2, dtype="f8,i4")),
            saved(np.zeros(2, dtype=complex)),
            saved(np.zeros(2, dtype="M8[s]")),
            saved(np.zeros(3))[:-1],
            saved(np.zeros(3)) + b"x",
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"),
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }", bytes(8)),
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1, -1), }", bytes(8)),
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296, 4294967296), }"),
            npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"cos\nsystem\n"),
            npy("{'descr': [('a', '|O')], 'fortran_order': False, 'shape': (1,), }", bytes(8)),
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': 'x', }", bytes(8)),
            npy("__import__('os').abort()"),
            npy("(" * 9_000),
            npy("-" * 9_000 + "1"),
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", bytes(8), version=b"\x02\x00"),
            npy("{'descr': '<f8', 'fortran_order': False, 'shape': (), }", bytes(8), version=b"\x07\x00"),
        ],
        ids=lambda value: str(value[:60]),
    )
    def test_what_is_no_array_of_numbers(self, path, raw, content):
        parts = members(raw)
        message = refused(path, packed([("model.json", parts["model.json"]), ("arrays.npz", npz("0.costs", content))]))
        assert "damaged" in message

    def test_another_order_of_bytes_is_another_array(self, path, raw):
        """The digest says so; with its digest it is refused, or read for what it is."""
        parts = members(raw)
        with np.load(io.BytesIO(parts["arrays.npz"])) as arrays:
            given = {name: arrays[name] for name in arrays.files}
        given["0.costs"] = given["0.costs"].astype(">f8")
        buffer = io.BytesIO()
        np.savez(buffer, **given)
        refused(path, packed([("model.json", parts["model.json"]), ("arrays.npz", buffer.getvalue())]), "digest")


class TestSizes:
    def test_sizes_that_are_only_declared(self, path, raw):
        content = bytearray(raw)
        place = content.rindex(b"PK\x01\x02")  # the list of members at the end
        content[place + 24 : place + 28] = (0xFFFF_FFF0).to_bytes(4, "little")
        refused(path, bytes(content), "would unpack to 4,29.* bytes; a model of its size has at most")

    @pytest.mark.parametrize("inside", [False, True])
    def test_what_would_fill_the_memory(self, path, raw, inside):
        """300 MB of zeros in 300 kB."""
        parts = members(raw)
        bomb = bytes(300_000_000)
        if inside:
            content = [("model.json", parts["model.json"]), ("arrays.npz", npz("0.costs", bomb))]
        else:
            content = [("model.json", bomb), ("arrays.npz", parts["arrays.npz"])]
        content = packed(content, zipfile.ZIP_DEFLATED)
        assert len(content) < 400_000
        refused(path, content, "would unpack to 300,")

    def test_no_more_is_unpacked_than_was_declared(self, path, raw):
        import tracemalloc

        parts = members(raw)
        content = bytearray(packed([("model.json", bytes(100_000_000)), ("arrays.npz", parts["arrays.npz"])]))
        for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
            place = content.index(mark)
            content[place + offset : place + offset + 4] = (1000).to_bytes(4, "little")
        tracemalloc.start()
        refused(path, bytes(content), "is damaged")
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 20_000_000

    def test_files_beyond_all_sizes(self, path, raw, monkeypatch):
        monkeypatch.setattr(persistence, "LARGEST_FILE", 1000)
        refused(path, raw, "models have at most 1,000")

    def test_a_model_that_compresses_well_can_be_read(self, path):
        """Many models that are alike are no reason for suspicion."""
        arrays = {"0.a": np.zeros(100_000), "0.b": np.arange(100_000)}
        write_model(path, {}, arrays)
        assert read_model(path)[1]["0.b"][-1] == 99_999


def damage(rng, raw):
    """Change, insert or leave out a few bytes, or exchange parts."""
    content = bytearray(raw)
    for _ in range(rng.integers(1, 4)):
        place = int(rng.integers(len(content)))
        match rng.integers(6):
            case 0:
                content[place] ^= 1 << int(rng.integers(8))
            case 1:
                content[place] = int(rng.integers(256))
            case 2:
                content[place:place] = rng.bytes(int(rng.integers(1, 9)))
            case 3:
                del content[place : place + int(rng.integers(1, 9))]
            case 4:
                other = int(rng.integers(len(content)))
                content[place : place + 8], content[other : other + 8] = (
                    content[other : other + 8],
                    content[place : place + 8],
                )
            case 5:
                content[place : place + 4] = bytes([255]) * 4
    return bytes(content)


@pytest.mark.parametrize("part", range(N_PARTS))
def test_damaged_files_are_refused_or_as_good_as_before(part, model, raw, path):
    rng = np.random.default_rng([72, part])
    X = np.array([[1.0, 1.5], [0.5, 2.0]])
    expected = model.predict(X)
    n_refused = 0
    for _ in range(N_DAMAGED // N_PARTS):
        path.write_bytes(damage(rng, raw))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the reader of zip files
            try:
                again = bgnlm.load(path)
            except ModelFileError:
                n_refused += 1
                continue
        # The time of a member, say, means nothing.
        np.testing.assert_array_equal(again.predict(X), expected)
    assert n_refused > 0.5 * N_DAMAGED // N_PARTS
