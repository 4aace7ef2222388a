"""Exact laws among nearly dependent columns must be decided by the models, not by rounding."""

import numpy as np
import pytest

import bgnlm
from bgnlm.likelihood.gram import gram_statistics
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
    assert result.log_marginal[0] == pytest.approx(alone.log_marginal, abs=1e-6)


def _ill_conditioned(rng, kind):
    x = rng.uniform(size=60)
    match kind:
        case "monomials":
            X = np.column_stack([x**k for k in range(1, 9)])
        case "low rank":
            X = np.column_stack([x, x**2, x**3]) @ rng.normal(size=(3, 8))
        case "years":
            X = np.column_stack([(1960 + 60 * x) ** k for k in range(1, 6)])
        case "more columns than rows":
            x, X = x[:7], rng.normal(size=(7, 10))
        case "copies":
            X = np.column_stack([x + 10.0**-k * rng.normal(size=60) for k in range(3, 11)])
        case "sums":
            X = rng.normal(size=(60, 5))
            X = np.column_stack([X, X[:, 0] - X[:, 1], X[:, 2] + 1e-9 * X[:, 3], X.sum(axis=1)])
    return np.abs(x - 0.5) + 0.1 * rng.normal(size=len(x)), X


KINDS = ["monomials", "low rank", "years", "more columns than rows", "copies", "sums"]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("prior", ["robust", "bic", "known-variance", "gaussian"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_model_of_an_ill_conditioned_design_agrees_with_its_own_fit(kind, prior, seed):
    y, X = _ill_conditioned(np.random.default_rng(seed), kind)
    result = bgnlm.enumerate_models(y, X, coefficient_prior=prior)
    assert np.isfinite(result.model_probabilities).all()
    for model in range(len(result)):
        alone = bgnlm.fit_model(y, X[:, list(result.columns_of(model))], coefficient_prior=prior)
        assert (result.status[model] == ModelStatus.RANK_DEFICIENT) == (alone.status is ModelStatus.RANK_DEFICIENT)
        if np.isfinite(alone.log_marginal):
            # Columns known to 1e-16 and 1e-9 apart leave no more digits than this.
            assert result.log_marginal[model] == pytest.approx(alone.log_marginal, abs=1e-4)


@pytest.mark.parametrize("kind", KINDS)
def test_relabelling_the_columns_of_an_ill_conditioned_design(kind, rng):
    y, X = _ill_conditioned(rng, kind)
    here = bgnlm.enumerate_models(y, X).inclusion_probabilities
    for _ in range(5):
        order = rng.permutation(X.shape[1])
        assert bgnlm.enumerate_models(y, X[:, order]).inclusion_probabilities == pytest.approx(here[order], abs=1e-6)


def test_raw_powers_give_the_same_as_centred_ones(rng):
    year = np.arange(1950, 2025.0)
    c = (year - 1987) / 37
    y = 3 * c - 4 * c**2 + 2 * c**3 + 5 * c**4 + rng.normal(size=75) * 0.1
    raw = bgnlm.log_marginal(y, np.column_stack([year**k for k in range(1, 5)]))
    assert raw == pytest.approx(bgnlm.log_marginal(y, np.column_stack([c**k for k in range(1, 5)])), abs=1e-6)


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


@pytest.mark.parametrize("variance", [1.0, 1e6, 1e12])
def test_near_copies_of_a_column_under_independent_priors(variance):
    rng = np.random.default_rng(5)
    x = rng.normal(size=50)
    X = np.column_stack([x + 1e-7 * rng.normal(size=50) for _ in range(3)])
    y = x + rng.normal(size=50)
    prior = bgnlm.CoefficientPrior("gaussian", variance=variance)
    result = bgnlm.enumerate_models(y, X, coefficient_prior=prior)
    for model in range(len(result)):
        own = bgnlm.log_marginal(y, X[:, list(result.columns_of(model))], coefficient_prior=prior)
        assert result.log_marginal[model] == pytest.approx(own, abs=1e-5)


def test_the_triangle_of_many_rows_is_that_of_a_qr_decomposition():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30_000, 5))
    X[:, 4] = X[:, 0] + 1e-2 * X[:, 4]
    statistics = gram_statistics(X[:, 0] + rng.normal(size=30_000), X, np.ones(30_000), np.zeros(30_000))
    expected = np.linalg.qr(statistics.data.T, mode="r")
    expected *= np.sign(np.diag(expected))[:, None]
    assert statistics.triangle == pytest.approx(expected, abs=1e-14)
