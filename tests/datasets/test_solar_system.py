import csv
from importlib import resources

import numpy as np
import pytest

from bgnlm.data import Table
from bgnlm.datasets import load_solar_system

COLUMNS = (
    "semi_major_axis",
    "period",
    "parent_mass",
    "mass",
    "radius",
    "eccentricity",
    "discovery_year",
)
# Far from their planets, where the Sun disturbs the orbit.
IRREGULAR = {"Himalia", "Elara", "Pasiphae", "Sinope", "Ananke", "Phoebe", "Sycorax", "Nereid"}
EARTHS_PER_SUN = 332946.05


@pytest.fixture(scope="module")
def table() -> Table:
    return load_solar_system()


@pytest.fixture(scope="module")
def parents() -> dict[str, str]:
    text = (resources.files("bgnlm.datasets") / "solar_system.csv").read_text(encoding="utf-8")
    return {row["body"]: row["parent"] for row in csv.DictReader(text.splitlines())}


def test_shape_and_names(table):
    assert table.names == COLUMNS
    assert table.values.shape == (70, len(COLUMNS))
    assert len(set(table.labels)) == 70
    assert all(name in table.description for name in COLUMNS)


def test_nothing_is_missing_or_negative(table):
    assert np.isfinite(table.values).all()
    assert (table.values >= 0).all()
    positive = table.select(["semi_major_axis", "period", "parent_mass", "mass", "radius"])
    assert (positive.values > 0).all()
    assert (table.column("eccentricity") < 1).all()
    years = table.column("discovery_year")
    assert ((years == 0) | ((years >= 1610) & (years <= 2010))).all()


def test_keplers_third_law_holds_row_by_row(table):
    total_mass = table.column("parent_mass") + table.column("mass") / EARTHS_PER_SUN
    by_law = np.cbrt(table.column("period") ** 2 * total_mass)
    deviation = np.abs(by_law / table.column("semi_major_axis") - 1)
    allowed = np.array([0.01 if body in IRREGULAR else 0.003 for body in table.labels])
    too_far = {body: d for body, d, a in zip(table.labels, deviation, allowed, strict=True) if d > a}
    assert not too_far


def test_the_earth_is_the_unit(table):
    earth = dict(zip(table.names, table.values[table.labels.index("Earth")], strict=True))
    assert earth["semi_major_axis"] == pytest.approx(1, abs=1e-5)
    assert earth["period"] == pytest.approx(1, abs=1e-4)
    assert earth["mass"] == 1
    assert earth["parent_mass"] == 1
    assert earth["radius"] == pytest.approx(6371, abs=1)


def test_there_are_many_parents(table, parents):
    assert tuple(parents) == table.labels
    assert set(parents.values()) >= {"Sun", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"}


def test_parent_masses_agree_with_the_parents_own_rows(table, parents):
    own_mass = dict(zip(table.labels, table.column("mass") / EARTHS_PER_SUN, strict=True)) | {"Sun": 1.0}
    expected = [own_mass[parents[body]] for body in table.labels]
    np.testing.assert_allclose(table.column("parent_mass"), expected, rtol=1e-5)


def test_densities_are_those_of_real_matter(table):
    kilograms = table.column("mass") * 5.9722e24
    density = kilograms / (4 / 3 * np.pi * (table.column("radius") * 1000) ** 3)
    assert density.min() > 400
    assert density.max() < 5600
