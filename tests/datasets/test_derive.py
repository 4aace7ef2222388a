"""From raw files to tables, and back."""

import csv
import gzip
import os
import zlib
from hashlib import sha256
from pathlib import Path

import pytest

from bgnlm.datasets import derive, storage
from bgnlm.datasets.recipes import RECIPES
from tests.datasets.conftest import SMALL_RAW, SMALL_TABLE
from tests.datasets.r_sampler import draw
from tests.datasets.raw_files import EXACT, make_raw

# Of the files as they are handed around.
FILE_SUMS = {
    "breast_cancer": "fbf34b00982e94c55d50ea2c257a2ad8b70706cbefdc0eb18a0a72cd3cffdef3",
    "spam": "3ed080bb0eb1865fb443c6683e1bf72ffd0e1c8c2cf4812c8f0a4ba299223c75",
    "abalone": "9b6c8d3320ea417a75c6d89d3637bdd2eb2528e2c02e90c6c348ce6f80f536cd",
    "asteroids": "562aa7003f48a86c473be0acdf1b019c02c45aeb3d780db3cd983fca7c263ea5",
    "exoplanets": "7e66a6ba07c21f12b589c1f5d9b1fbce0c8c331d28b1231605d29d3d7eeb04e4",
    "epigenetic": "49d94cd2bdeb92f0e96333a8e8c24c0a14a936d40c377dd67dfe3e853a442077",
}


@pytest.mark.parametrize("name", RECIPES)
def test_the_table_comes_out_to_the_byte(name, finished_table):
    recipe = RECIPES[name]
    raw = make_raw(name, finished_table(name))
    text = recipe.derive(*raw)
    assert text == finished_table(name)
    assert sha256(text.encode()).hexdigest() == recipe.sha256


@pytest.mark.parametrize("name", EXACT)
def test_the_raw_files_of_the_tests_are_the_originals(name, finished_table):
    sums = [sha256(content).hexdigest() for content in make_raw(name, finished_table(name))]
    assert sums == [file.sha256 for file in RECIPES[name].raw]


@pytest.mark.parametrize("name", RECIPES)
def test_files_are_packed_as_they_are_handed_around(name, finished_table):
    if RECIPES[name].file.endswith(".gz") and "ng" in zlib.ZLIB_RUNTIME_VERSION:
        pytest.skip("zlib-ng compresses differently")
    packed = storage._packed(finished_table(name).encode(), RECIPES[name])
    assert sha256(packed).hexdigest() == FILE_SUMS[name]
    assert packed == Path(os.environ["BGNLM_DATA"], RECIPES[name].file).read_bytes()


def test_the_samples_are_what_r_draws():
    samples = derive.epigenetic_samples()
    assert samples["sample500"] == set(draw(1, 1502, 500, rejection=False))
    assert samples["sample500_r36"] == set(draw(1, 1502, 500, rejection=True))
    assert all(len(rows) == 500 for rows in samples.values())


def test_abalone():
    assert derive.abalone(*SMALL_RAW.values()) == SMALL_TABLE


def test_breast_cancer_is_ordered_by_the_numbers_of_the_rows():
    header = b'"","radius_mean","concave.points_mean","X"\n'
    train, test = header + b'"10",1.50,3,0\n"2",1e-05,4,1\n', header + b'"1",7,0.10,0\n'
    assert derive.breast_cancer(train, test) == (
        "split,malignant,radius_mean,concave_points_mean\ntest,0,7,0.10\ntrain,1,1e-05,4\ntrain,0,1.50,3\n"
    )


def test_spam():
    data = b"0 0.64 61 1\n0.210 0.28  101 0\n"
    assert derive.spam(data, b"0\n1\n") == "split,spam,x1,x2,x3\ntest,1,0,0.64,61\ntrain,0,0.210,0.28,101\n"


def asteroid(**changes):
    fields = [str(number) for number in range(25)]
    for place, value in changes.items():
        fields[int(place.removeprefix("f"))] = value
    return ",".join(fields)


KEPT = "2,5,6,7,8,9,10,11,17"


@pytest.mark.parametrize(
    ("line", "kept"),
    [
        (asteroid(), KEPT),
        (asteroid() + "\r", KEPT),
        (asteroid(f23="a \"b' \x85"), KEPT),
        (asteroid(f2="-0.50", f17=" .54117"), "-0.50,5,6,7,8,9,10,11,.54117"),
        (asteroid(f11="1e-3"), "2,5,6,7,8,9,10,1e-3,17"),
        (asteroid(f2=""), None),
        (asteroid(f5="nan"), None),
        (asteroid(f5="Infinity"), None),
        (asteroid(f17="1_000"), None),
        (asteroid(f17="\xb3"), None),
        ("1,2,3", None),
        ("", None),
    ],
)
def test_asteroids_whose_fields_are_not_numbers_are_left_out(line, kept):
    content = f"header\n{line}\n".encode("latin-1")
    none = b"header\n"
    for place, start in enumerate(("train,0,", "train,1,", "test,0,", "test,1,")):
        header, *rows = derive.asteroids(*(content if j == place else none for j in range(4))).splitlines()
        assert header == ",".join(["split", "neo", *derive.ASTEROID_FIELDS])
        assert rows == ([start + kept] if kept else [])


def test_exoplanets_are_reordered():
    names = derive.EXOPLANET_COLUMNS
    row = {name: f"0.{j}0" for j, name in enumerate(names)}
    raw = ",".join(f'"{name}"' for name in sorted(names)) + "\n" + ",".join(row[name] for name in sorted(names))
    assert list(csv.DictReader(derive.exoplanets(raw.encode()).splitlines())) == [row]
    assert derive.exoplanets(raw.encode()).startswith(",".join(names) + "\n")


@pytest.mark.parametrize(("level", "cuts"), [("3000", "0,0"), ("3000.5", "1,0"), ("10000", "1,0"), ("10000.01", "1,1")])
def test_epigenetic(level, cuts):
    names = [*derive.EPIGENETIC_COLUMNS.values(), "Mβ"]
    line = ",".join(level if name == "express_noisy" else str(j) for j, name in enumerate(names))
    header, first, second = derive.epigenetic(f"{','.join(names)}\n{line}\n{line}\n".encode()).splitlines()
    assert header.split(",") == ["sample500", "sample500_r36", *derive.EPIGENETIC_COLUMNS, "eg3000", "eg10000"]
    numbers = ",".join(str(j) for j in range(len(names) - 2))
    assert first == f"0,0,{numbers},{level},{cuts}"
    assert second == f"1,0,{numbers},{level},{cuts}"


def test_packing_needs_no_clock():
    recipe = RECIPES["spam"]
    packed = storage._packed(b"text", recipe)
    assert packed[:10] == b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\xff"
    assert gzip.decompress(packed) == b"text"
