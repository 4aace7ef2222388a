"""From the authors' raw files to one tidy table for each example, as text.

Numbers stay as they are written in the source, so a table has the same checksum wherever it is made. Raw files have
passed their own checksums before they come here, so nothing is checked again.
"""

import csv
import re
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from io import StringIO

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

ABALONE_INPUTS = ("Length", "Diameter", "Height", "WholeWeight", "ShuckedWeight", "VisceraWeight", "ShellWeight")
# Number of the field in the source, counted from 0.
ASTEROID_FIELDS = {
    "absolute_magnitude": 2,
    "mean_anomaly": 5,
    "argument_of_perihelion": 6,
    "longitude_of_the_ascending_node": 7,
    "inclination": 8,
    "eccentricity": 9,
    "mean_motion": 10,
    "semi_major_axis": 11,
    "rms_residual": 17,
}
EXOPLANET_COLUMNS = (
    "SemiMajorAxisAU",
    "TypeFlag",
    "RadiusJpt",
    "PeriodDays",
    "PlanetaryMassJpt",
    "Eccentricity",
    "HostStarMassSlrMass",
    "HostStarRadiusSlrRad",
    "HostStarMetallicity",
    "HostStarTempK",
    "PlanetaryDensJpt",
)
# Our name and the source's.
EPIGENETIC_COLUMNS = {
    **{name: name for name in ("chrom", "pos", "strand", "mc_class", "methylated_bases", "total_bases", "base_dist")},
    **{name: name for name in ("CG", "CHG", "CHH", "DT1", "DT2", "DT3", "DT4", "DT5", "DT6_20", "DT20_inf")},
    "M_alpha": "Mα",
    "M_gamma": "Mγ",
    "M_delta": "Mδ",
    "coding": "coding",
    "express_noisy": "express_noisy",
}


def breast_cancer(train: bytes, test: bytes) -> str:
    """Join the two parts in the order of the row numbers that their first column has."""
    rows = []
    for split, content in (("train", train), ("test", test)):
        header, *part = _cells(content)
        rows += [(int(number), [split, malignant, *inputs]) for number, *inputs, malignant in part]
    names = [name.replace(".", "_") for name in header[1:-1]]
    return _text(["split", "malignant", *names], [row for _, row in sorted(rows)])


def spam(data: bytes, indicator: bytes) -> str:
    """Put the label first and the indicator (1 = train) into words."""
    rows = [line.split() for line in data.decode("ascii").splitlines()]
    splits = ["train" if flag == "1" else "test" for flag in indicator.decode("ascii").split()]
    names = [f"x{j}" for j in range(1, len(rows[0]))]
    return _text(
        ["split", "spam", *names],
        ([split, label, *inputs] for split, (*inputs, label) in zip(splits, rows, strict=True)),
    )


def abalone(data: bytes, test_rows: bytes) -> str:
    """Mark the listed test rows, counted from 1, and code the sex by two indicators."""
    listed = {int(row[1]) for row in _cells(test_rows, delimiter=";")[1:]}
    rows = [
        ["test" if number in listed else "train", rings, *inputs, int(sex == "M"), int(sex == "F")]
        for number, (sex, *inputs, rings) in enumerate(_cells(data), start=1)
    ]
    return _text(["split", "Rings", *ABALONE_INPUTS, "Male", "Female"], rows)


def asteroids(teach_other: bytes, teach_neo: bytes, recognize_other: bytes, recognize_neo: bytes) -> str:
    """Take nine fields of the four files; lines where one of them is not a number are left out."""
    rows = []
    parts = (
        ("train", 0, teach_other),
        ("train", 1, teach_neo),
        ("test", 0, recognize_other),
        ("test", 1, recognize_neo),
    )
    for split, neo, content in parts:
        # Not splitlines: some Latin-1 characters in names count as line ends there.
        for line in content.decode("latin-1").split("\n")[1:]:
            fields = dict(enumerate(line.split(",")))
            inputs = [fields.get(number, "").strip() for number in ASTEROID_FIELDS.values()]
            if all(map(_NUMBER.fullmatch, inputs)):
                rows.append([split, neo, *inputs])
    return _text(["split", "neo", *ASTEROID_FIELDS], rows)


def exoplanets(data: bytes) -> str:
    """Reorder the columns: the response of Example 4 first, then the inputs as the paper numbers them."""
    header, *rows = _cells(data)
    order = [header.index(name) for name in EXOPLANET_COLUMNS]
    return _text(EXOPLANET_COLUMNS, ([row[j] for j in order] for row in rows))


def epigenetic(data: bytes) -> str:
    """Mark the samples, leave out what is constant or follows from the rest, and cut the expression level twice."""
    header, *rows = _cells(data)
    order = [header.index(name) for name in EPIGENETIC_COLUMNS.values()]
    level = header.index("express_noisy")
    samples = epigenetic_samples()
    return _text(
        [*samples, *EPIGENETIC_COLUMNS, "eg3000", "eg10000"],
        (
            [
                *(int(number in chosen) for chosen in samples.values()),
                *(row[j] for j in order),
                int(float(row[level]) > 3000),
                int(float(row[level]) > 10000),
            ]
            for number, row in enumerate(rows, start=1)
        ),
    )


@cache
def epigenetic_samples() -> dict[str, frozenset[int]]:
    """Read which rows, counted from 1, are drawn for Example 5, under both of R's ways to draw after seed 1."""
    content = (resources.files("bgnlm.datasets") / "epigenetic_samples.csv").read_bytes()
    header, *rows = _cells(content)
    return {name: frozenset(map(int, column)) for name, column in zip(header, zip(*rows, strict=True), strict=True)}


def _cells(content: bytes, delimiter: str = ",") -> list[list[str]]:
    return list(csv.reader(StringIO(content.decode("utf-8")), delimiter=delimiter))


def _text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    file = StringIO()
    csv.writer(file, lineterminator="\n").writerows([header, *rows])
    return file.getvalue()
