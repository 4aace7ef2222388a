"""Simulated data: the law is in them, and what is said of it can be read."""

import numpy as np
import pytest

import bgnlm
from bgnlm.datasets import make_kepler, make_logic
from bgnlm.errors import SettingError
from bgnlm.features import Evaluator


def true_columns(data):
    evaluator = Evaluator(data.X.to_numpy(), list(data.X.columns))
    return np.column_stack([evaluator.column(bgnlm.parse(text)) for text in data.truth])


def regression(data):
    design = np.column_stack([np.ones(len(data.y)), true_columns(data)])
    coefficients = np.linalg.lstsq(design, data.y, rcond=None)[0]
    return coefficients, data.y - design @ coefficients


def test_logic_is_that_of_the_paper():
    data = make_logic(n_rows=20_000, random_state=1)
    assert data.X.shape == (20_000, 50)
    assert set(np.unique(data.X)) == {0.0, 1.0}
    assert np.abs(data.X.mean() - 0.5).max() < 0.02
    coefficients, residuals = regression(data)
    assert coefficients == pytest.approx([1, 1.5, 1.5, 6.6, 3.5, 9, 7, 7, 7], abs=0.15)
    assert residuals.std() == pytest.approx(1, abs=0.02)


def test_the_stream_of_random_numbers_is_inputs_then_noise():
    data = make_logic(n_rows=100, random_state=7)
    rng = np.random.default_rng(7)
    assert np.array_equal(data.X, rng.random((100, 50)) < 0.5)
    mean = 1 + true_columns(data) @ [1.5, 1.5, 6.6, 3.5, 9, 7, 7, 7]
    assert np.allclose(data.y, mean + rng.normal(size=100))


def test_kepler_obeys_the_law():
    exact = make_kepler(noise=0.0, random_state=1)
    assert exact.X.shape == (223, 10)
    coefficients, residuals = regression(exact)
    assert coefficients == pytest.approx([0, 365.25 ** (-2 / 3)], abs=1e-12)
    assert np.abs(residuals).max() < 1e-12
    assert exact.y.between(0.01, 3).all()
    noisy = make_kepler(n_rows=5000, noise=0.05, random_state=1)
    assert regression(noisy)[1].std() == pytest.approx(0.05, rel=0.05)
    X = noisy.X
    assert (X["PlanetaryDensJpt"] * X["RadiusJpt"] ** 3).to_numpy() == pytest.approx(X["PlanetaryMassJpt"].to_numpy())
    assert X["Eccentricity"].between(0, 1).all()


def test_rivals_of_the_stars_mass_are_close_but_not_the_same():
    X = make_kepler(n_rows=5000, random_state=2).X
    for name, least in (("HostStarRadiusSlrRad", 0.7), ("HostStarTempK", 0.8)):
        assert least < np.corrcoef(np.log(X["HostStarMassSlrMass"]), np.log(X[name]))[0, 1] < 0.99


def test_kepler_has_the_columns_of_the_exoplanets():
    from bgnlm.datasets.derive import EXOPLANET_COLUMNS

    data = make_kepler(n_rows=5, random_state=0)
    assert (data.y.name, *data.X.columns) == EXOPLANET_COLUMNS


@pytest.mark.parametrize("make", [make_logic, make_kepler])
def test_seeds(make):
    first, again, other = make(50, random_state=3), make(50, random_state=3), make(50, random_state=4)
    assert first.table.equals(again.table)
    assert not first.table.equals(other.table)
    rng = np.random.default_rng(3)
    assert make(50, random_state=rng).table.equals(first.table)
    assert not make(50, random_state=rng).table.equals(first.table)
    assert not make(50).table.equals(make(50).table)
    assert first.is_train is None
    assert list(first.table) == [*first.X, first.y.name]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: make_logic(1), "n_rows must be 2 or more; got 1"),
        (lambda: make_logic(10.5), r"n_rows must be a whole number; got 10\.5"),
        (lambda: make_kepler(noise=-1), "noise must be 0 or more; got -1"),
        (lambda: make_kepler(random_state="one"), "random_state must be a whole number of 0 or more, a numpy"),
        (lambda: make_kepler(random_state=-1), "random_state must be .* got -1"),
    ],
)
def test_what_cannot_be_simulated(make, message):
    with pytest.raises(SettingError, match=message):
        make()
