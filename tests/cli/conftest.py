"""The command line in this process, small tables, and models fitted to them."""

import csv
from typing import NamedTuple

import numpy as np
import pytest

from bgnlm.cli.main import main

QUICK = ("--chains", "1", "--populations", "3", "--seed", "1")


class Done(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    def run(*arguments):
        try:
            code = main([str(argument) for argument in arguments])
        except SystemExit as stop:
            code = stop.code
        return Done(code, *capsys.readouterr())

    return run


@pytest.fixture
def fails(run):
    """Expects a failure with one line on the error stream, and returns that line."""

    def fails(*arguments, code=1):
        done = run(*arguments)
        assert done.code == code
        assert done.out == ""
        lines = [line for line in done.err.splitlines() if not line.startswith("bgnlm: family")]
        assert len(lines) == 1, done.err
        assert lines[0].startswith("bgnlm: ")
        return lines[0].removeprefix("bgnlm: ")

    return fails


def write_rows(path, header, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


HEADER = ["id", "width", "height", "kind", "is_new", "area", "size", "large"]


def bodies(n=40, seed=3):
    """Rows of a table in which the area is a product, and two columns are classes of it."""
    rng = np.random.default_rng(seed)
    for i in range(n):
        width, height = (round(float(value), 3) for value in rng.uniform(1, 3, size=2))
        kind = ("blue", "red")[int(rng.integers(2))]
        area = round(width * height + (kind == "red") + 0.1 * float(rng.normal()), 3)
        size = "small" if area < 3 else "middle" if area < 5 else "big"
        yield [f"n{i:03d}", width, height, kind, ("false", "true")[int(rng.integers(2))], area, size, int(area > 4)]


@pytest.fixture(scope="session")
def table(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("table") / "bodies.csv", HEADER, bodies())


@pytest.fixture(scope="session")
def models(tmp_path_factory, table):
    """Files of a regressor, and of classifiers with two and three classes."""
    folder = tmp_path_factory.mktemp("models")
    inputs = ("--features", "width", "height", "kind", "is_new", "--quiet", *QUICK)
    paths = {}
    for target in ("area", "large", "size"):
        paths[target] = folder / f"{target}.bgnlm"
        assert main(["fit", str(table), "--target", target, "--out", str(paths[target]), *inputs]) == 0
    return paths
