import csv
from importlib import resources

import numpy as np
import pandas as pd
import pytest

import bgnlm
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
def table() -> pd.DataFrame:
    return load_solar_system()


@pytest.fixture(scope="module")
def parents() -> dict[str, str]:
    text = (resources.files("bgnlm.datasets") / "solar_system.csv").read_text(encoding="utf-8")
    return {row["body"]: row["parent"] for row in csv.DictReader(text.splitlines())}


def test_shape_and_names(table):
    assert tuple(table.columns) == COLUMNS
    assert table.shape == (70, len(COLUMNS))
    assert (table.dtypes == np.float64).all()
    assert table.index.name == "body"
    assert table.index.is_unique
    assert all(name in table.attrs["description"] for name in COLUMNS)


def test_nothing_is_missing_or_negative(table):
    assert np.isfinite(table).all(axis=None)
    assert (table >= 0).all(axis=None)
    assert (table[["semi_major_axis", "period", "parent_mass", "mass", "radius"]] > 0).all(axis=None)
    assert (table["eccentricity"] < 1).all()
    years = table["discovery_year"]
    assert ((years == 0) | ((years >= 1610) & (years <= 2010))).all()


def test_keplers_third_law_holds_row_by_row(table):
    total_mass = table["parent_mass"] + table["mass"] / EARTHS_PER_SUN
    by_law = np.cbrt(table["period"] ** 2 * total_mass)
    deviation = np.abs(by_law / table["semi_major_axis"] - 1)
    allowed = np.where(table.index.isin(IRREGULAR), 0.01, 0.003)
    assert not list(table.index[deviation > allowed])


def test_the_earth_is_the_unit(table):
    earth = table.loc["Earth"]
    assert earth["semi_major_axis"] == pytest.approx(1, abs=1e-5)
    assert earth["period"] == pytest.approx(1, abs=1e-4)
    assert earth["mass"] == 1
    assert earth["parent_mass"] == 1
    assert earth["radius"] == pytest.approx(6371, abs=1)


def test_there_are_many_parents(table, parents):
    assert list(parents) == list(table.index)
    assert set(parents.values()) >= {"Sun", "Earth", "Mars", "Jupiter", "Saturn", "Uranus", "Neptune"}


def test_parent_masses_agree_with_the_parents_own_rows(table, parents):
    own_mass = (table["mass"] / EARTHS_PER_SUN).to_dict() | {"Sun": 1.0}
    expected = [own_mass[parents[body]] for body in table.index]
    np.testing.assert_allclose(table["parent_mass"], expected, rtol=1e-5)


def test_densities_are_those_of_real_matter(table):
    kilograms = table["mass"] * 5.9722e24
    density = kilograms / (4 / 3 * np.pi * (table["radius"] * 1000) ** 3)
    assert density.min() > 400
    assert density.max() < 5600


def test_it_goes_where_an_array_goes():
    table = load_solar_system()
    X = table.drop(columns="semi_major_axis")
    models = bgnlm.enumerate_models(table["semi_major_axis"], X)
    assert models.names == tuple(X.columns)
    assert np.allclose(models.predict(X[X.columns[::-1]]), models.predict(X))
