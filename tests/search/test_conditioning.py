"""Exact laws among nearly dependent columns must be decided by the models, not by rounding."""

import numpy as np
import pytest

import bgnlm
from bgnlm.likelihood.status import ModelStatus

UNKNOWN_VARIANCE = ["robust", "hyper-g", "hyper-g/n", "zellner-siow", "eb-local", "g", "bic", "jeffreys"]


@pytest.mark.parametrize("prior", UNKNOWN_VARIANCE)
@pytest.mark.parametrize("closeness", [1e-2, 1e-3, 1e-4, 1e-5])
def test_a_law_among_near_copies_of_itself(closeness, prior, rng):
    """Only one of the columns is the law; the copies have pivots down to 1e-10."""
    x = rng.normal(size=120)
    copies = [x + closeness * rng.normal(size=120) for _ in range(3)]
    noise = [rng.normal(size=120) for _ in range(4)]
    X = np.column_stack([*copies, x, *noise])
    result = bgnlm.enumerate_models(3.0 * x + 1.0, X, coefficient_prior=prior, penalty="bic")
    # A single g cannot tell the law from a copy that explains 1 - 1e-10 of it: the information paradox.
    if prior != "g":
        assert result.names_of(0) == ("x4",)
        assert result.inclusion_probabilities[3] > 0.99
    assert np.isfinite(result.model_probabilities).all()


@pytest.mark.parametrize("prior", UNKNOWN_VARIANCE)
@pytest.mark.parametrize("closeness", [1e-2, 1e-3, 1e-4, 3e-6])
def test_a_law_that_needs_the_difference_of_two_near_copies(closeness, prior, rng):
    """The model with both is exact but badly conditioned; each alone explains nothing."""
    x, z = rng.normal(size=(2, 100))
    X = np.column_stack([x, x + closeness * z, *rng.normal(size=(4, 100))])
    result = bgnlm.enumerate_models(z + 2.0, X, coefficient_prior=prior, penalty="bic")
    assert result.names_of(0) == ("x1", "x2")
    assert result.status[0] in (ModelStatus.OK, ModelStatus.PERFECT_FIT)
    alone = bgnlm.fit_model(z + 2.0, X[:, :2], coefficient_prior=prior)
    assert result.log_marginal[0] == pytest.approx(alone.log_marginal, abs=1e-3 * abs(alone.log_bayes_factor))


def test_supersets_of_a_law_are_told_apart_by_the_prior_alone(rng):
    X = rng.normal(size=(60, 12))
    result = bgnlm.enumerate_models(X[:, 2] * 5 - X[:, 7], X, coefficient_prior="bic", penalty="bic")
    assert result.names_of(0) == ("x3", "x8")
    with_law = result.included[:, 2] & result.included[:, 7]
    assert (result.status[with_law] == ModelStatus.PERFECT_FIT).all()
    sizes = result.included.sum(axis=1)[with_law]
    gap = result.log_marginal[with_law] + 0.5 * np.log(60) * sizes
    assert np.ptp(gap) < 1e-6


def test_near_exact_data_without_a_floor_collect_rounding_noise_with_it_they_do_not(exoplanets):
    """Kepler's law: the paper's score adds terms that explain the rounding of the data; a floor of 1 % does not."""
    y = exoplanets["SemiMajorAxisAU"]
    period, mass = exoplanets["PeriodDays"], exoplanets["HostStarMassSlrMass"]
    laws = [
        np.cbrt(period**2 * other) for other in (mass, exoplanets["HostStarRadiusSlrRad"], exoplanets["HostStarTempK"])
    ]
    inputs = [column for name, column in exoplanets.items() if name != "SemiMajorAxisAU"]
    X = np.column_stack([*laws, np.cbrt(period**2), *inputs])
    options = {"penalty": "bic", "complexity": [3, 3, 3, 2] + [0] * 10}
    plain = bgnlm.enumerate_models(y, X, coefficient_prior="jeffreys", **options)
    assert 5 <= len(plain.columns_of(0)) - 1 <= 12
    floored = bgnlm.enumerate_models(y, X, noise_floor=0.01, **options)
    assert floored.columns_of(0) == (0,)
    assert floored.model_probabilities[0] > 0.99
    # The table in the notes on the paper: g = n and the authors' score.
    g = bgnlm.enumerate_models(y, X, coefficient_prior="g", **options)
    assert g.inclusion_probabilities[:2] == pytest.approx([0.79, 0.21], abs=0.005)
    script = bgnlm.enumerate_models(y, X, coefficient_prior="script", penalty="bic", complexity=[4, 4, 4, 3] + [1] * 10)
    assert script.inclusion_probabilities[:2] == pytest.approx([0.56, 0.43], abs=0.005)


def test_the_mass_law_holds_to_rounding_error(exoplanets):
    radius, density = exoplanets["RadiusJpt"], exoplanets["PlanetaryDensJpt"]
    y = exoplanets["PlanetaryMassJpt"]
    powers = [radius**k * density for k in (3.0, 3.5, 2.3, 2.0, 1.0)]
    inputs = [column for name, column in exoplanets.items() if name != "PlanetaryMassJpt"]
    X = np.column_stack([*powers, *inputs])
    for floor in (0.0, 0.01):
        result = bgnlm.enumerate_models(y, X, noise_floor=floor, penalty="bic", complexity=[3, 2, 2, 2, 1] + [0] * 10)
        assert result.columns_of(0) == (0,)
        assert result.model_probabilities[0] > 0.97
