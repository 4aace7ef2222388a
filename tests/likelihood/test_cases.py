"""Weights, offset, units, and designs that defeat ordinary least squares."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bgnlm
from bgnlm.errors import DataError, ModelStatusWarning, SettingError
from bgnlm.likelihood.coefficient_priors import PARAMETERS
from bgnlm.likelihood.status import ModelStatus, advice
from tests import naive

ALL = list(PARAMETERS)
# Scores that depend on the unit of y, by definition.
WITH_UNITS = {"known-variance", "script"}


@pytest.fixture
def data(rng):
    X = rng.normal(size=(25, 3)) + np.array([0.0, 5.0, -3.0])
    return X @ [1.0, 0.5, 0.0] + rng.normal(size=25) + 2.0, X


@pytest.mark.parametrize("floor", [0.0, 0.2])
@pytest.mark.parametrize("prior", ALL)
def test_frequency_weights_repeat_rows(data, prior, floor, rng):
    y, X = data
    weights = rng.integers(0, 4, size=25)
    repeated = np.repeat(np.arange(25), weights)
    settings = {"coefficient_prior": prior, "noise_floor": floor}
    weighted = bgnlm.fit_model(y, X, sample_weight=weights, **settings)
    plain = bgnlm.fit_model(y[repeated], X[repeated], **settings)
    assert weighted.log_marginal == pytest.approx(plain.log_marginal, abs=1e-9)
    assert weighted.log_bayes_factor == pytest.approx(plain.log_bayes_factor, abs=1e-9)
    assert weighted.coefficients == pytest.approx(plain.coefficients, abs=1e-7)
    assert weighted.dispersion == pytest.approx(plain.dispersion, rel=1e-7)
    assert weighted.covariance_factor == pytest.approx(plain.covariance_factor, abs=1e-7)


@pytest.mark.parametrize("prior", ALL)
def test_an_offset_is_taken_off_the_response(data, prior, rng):
    y, X = data
    offset = rng.normal(size=25) * 3
    with_offset = bgnlm.log_marginal(y + offset, X, offset=offset, coefficient_prior=prior)
    assert with_offset == pytest.approx(bgnlm.log_marginal(y, X, coefficient_prior=prior), abs=1e-9)


@pytest.mark.parametrize("prior", ALL)
def test_units_and_origins_do_not_matter(data, prior):
    y, X = data
    here = bgnlm.log_marginal(y, X, coefficient_prior=prior, relative_to_null=True, noise_floor=0.05)
    moved = X * [1e-135, 1e135, -7.0] + [0.0, 3e135, 1000.0]
    y_there = y if prior in WITH_UNITS else 1e80 * y - 3e80
    there = bgnlm.log_marginal(y_there, moved, coefficient_prior=prior, relative_to_null=True, noise_floor=0.05)
    assert there == pytest.approx(here, abs=1e-7)


@pytest.mark.parametrize("prior", [name for name in ALL if name != "gaussian"])
def test_affine_maps_of_the_columns_do_not_matter(data, prior, rng):
    y, X = data
    mixed = X @ rng.normal(size=(3, 3)) + rng.normal(size=3)
    assert bgnlm.log_marginal(y, mixed, coefficient_prior=prior) == pytest.approx(
        bgnlm.log_marginal(y, X, coefficient_prior=prior), abs=1e-8
    )


def _status(y, X, **settings):
    """The fit, checked for what must hold of any fit."""
    fit = bgnlm.fit_model(y, X, **settings)
    for value in (fit.coefficients, fit.covariance_factor, fit.dispersion, fit.shrinkage, fit.r_squared):
        assert np.isfinite(value).all()
    assert not math.isnan(fit.log_marginal)
    assert fit.log_marginal < math.inf
    return fit


@pytest.mark.parametrize("floor", [0.0, 0.1])
@pytest.mark.parametrize("prior", ALL)
def test_dependent_columns(data, prior, floor):
    y, X = data
    for doubled in (np.column_stack([X, X[:, 0] - 2 * X[:, 1]]), np.column_stack([X, np.full(25, 4.0)])):
        fit = _status(y, doubled, coefficient_prior=prior, noise_floor=floor)
        if prior == "gaussian" and doubled[:, 3].std() > 0:  # a proper prior on each coefficient: nothing is wrong
            assert fit.status is ModelStatus.OK
            continue
        assert fit.status is ModelStatus.RANK_DEFICIENT
        assert fit.log_marginal == -math.inf
        with pytest.warns(ModelStatusWarning, match="linearly dependent"):
            bgnlm.log_marginal(y, doubled, coefficient_prior=prior, noise_floor=floor)


@pytest.mark.parametrize("n_columns", [3, 4, 5, 9])
@pytest.mark.parametrize("prior", ALL)
def test_as_many_columns_as_observations(prior, n_columns, rng):
    y, X = rng.normal(size=5), rng.normal(size=(5, n_columns))
    fit = _status(y, X, coefficient_prior=prior)
    if n_columns < 4:
        assert fit.status is ModelStatus.OK
    elif n_columns == 4:
        assert fit.status is ModelStatus.SATURATED
        defined = prior not in ("jeffreys", "bic", "aic", "beta-prime")
        assert math.isfinite(fit.log_marginal) == defined
        if defined and prior not in WITH_UNITS | {"gaussian"}:
            assert fit.log_bayes_factor == pytest.approx(0.0, abs=1e-6)  # it explains anything, so nothing
    elif prior != "gaussian":
        assert fit.status is ModelStatus.RANK_DEFICIENT


@pytest.mark.parametrize("value", [0.0, 3.7, -1e139, 1e-300])
@pytest.mark.parametrize("floor", [0.0, 0.1])
@pytest.mark.parametrize("prior", ALL)
def test_constant_response(data, prior, value, floor):
    _, X = data
    y = np.full(25, value)
    fit = _status(y, X, coefficient_prior=prior, noise_floor=floor)
    assert fit.status is ModelStatus.CONSTANT_RESPONSE
    assert fit.coefficients == pytest.approx([value, 0, 0, 0], rel=1e-12, abs=1e-290)
    with pytest.warns(ModelStatusWarning, match="constant"):
        result = bgnlm.enumerate_models(y, X, coefficient_prior=prior, noise_floor=floor)
    assert np.isfinite(result.model_probabilities).all()
    assert result.model_probabilities.sum() == pytest.approx(1.0)
    if prior not in ("jeffreys", "script", "known-variance", "eb-local"):  # these do not charge for columns
        assert result.names_of(0) == ()


@pytest.mark.parametrize("floor", [0.0, 0.01])
@pytest.mark.parametrize("prior", ALL)
def test_perfect_fit(data, prior, floor):
    _, X = data
    y = X @ [1.0, -2.0, 0.0] + 1.0
    fit = _status(y, X[:, :2], coefficient_prior=prior, noise_floor=floor)
    assert fit.status is (ModelStatus.OK if prior == "gaussian" else ModelStatus.PERFECT_FIT)
    assert fit.log_bayes_factor > 0
    result = bgnlm.enumerate_models(y, X, coefficient_prior=prior, noise_floor=floor, penalty=3.0)
    assert np.isfinite(result.model_probabilities).all()
    assert result.names_of(0) == ("x1", "x2")


@settings(deadline=None, max_examples=60)
@given(
    n=st.integers(2, 12),
    p=st.integers(0, 9),
    seed=st.integers(0, 10**6),
    prior=st.sampled_from(ALL),
    floor=st.sampled_from([0.0, 0.01, 0.5]),
    how=st.sampled_from(["plain", "integers", "duplicated", "huge", "tiny", "weights", "low rank"]),
)
def test_any_design_gives_defined_numbers(n, p, seed, prior, floor, how):
    rng = np.random.default_rng(seed)
    X, y, weights = rng.normal(size=(n, p)), rng.normal(size=n), None
    match how:
        case "integers":
            X, y = np.round(X), np.round(y)
        case "duplicated":
            X = X[:, rng.integers(0, p, size=p)] if p else X
        case "low rank":
            X = np.vander(X[:, 0], 3) @ rng.normal(size=(3, p)) if p else X
        case "huge":
            X, y = X * 1e135, y * 1e100
        case "tiny":
            X, y = X * 1e-140, y * 1e-100
        case "weights":
            weights = np.append(rng.exponential(size=n - 2) * (rng.random(n - 2) < 0.7), [0.6, 0.6])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelStatusWarning)
        options = {"coefficient_prior": prior, "noise_floor": floor, "sample_weight": weights}
        _status(y, X, **options)
        result = bgnlm.enumerate_models(y, X, **options)
    assert result.model_probabilities.sum() == pytest.approx(1.0)
    assert ((result.inclusion_probabilities >= 0) & (result.inclusion_probabilities <= 1 + 1e-12)).all()
    assert not np.isnan(result.log_marginal).any()


def test_every_status_has_advice():
    assert advice(ModelStatus.OK) == ""
    for status in ModelStatus:
        assert status is ModelStatus.OK or len(advice(status)) > 40


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y": [1.0, "a", 2.0]}, DataError, "row 1"),
        ({"y": [1.0, None, 2.0]}, DataError, "row 1"),
        ({"y": [1.0, math.nan, 2.0]}, DataError, "row 1"),
        ({"y": [[1.0, 2.0]]}, DataError, "one-dimensional"),
        ({"y": [1.0]}, DataError, "at least 2"),
        ({"y": np.array([1 + 2j, 3, 4])}, DataError, "numbers only"),
        ({"y": ["1", "2", "3"]}, DataError, "numbers only"),
        ({"X": [1.0, 2.0, 3.0]}, DataError, r"X\[:, None\]"),
        ({"X": [[1.0], [2.0]]}, DataError, "same number of rows"),
        ({"X": [[1.0], [math.inf], [2.0]]}, DataError, "row 1, column 0"),
        ({"X": [[1.0], [-1e141], [2.0]]}, DataError, "larger unit"),
        ({"X": [["x"], [2.0], [2.0]]}, DataError, "row 0, column 0"),
        ({"X": [[1.0, 2.0], [3.0], [4.0]]}, DataError, "different lengths"),
        ({"sample_weight": [1.0, -1.0, 1.0]}, DataError, "row 1"),
        ({"sample_weight": [0.0, 0.0, 1.0]}, DataError, "at least 2 rows"),
        ({"sample_weight": [0.1, 0.1, 0.1]}, DataError, "more than 1"),
        ({"sample_weight": [1.0, 1.0]}, DataError, "one value per row"),
        ({"offset": [1.0, math.nan, 1.0]}, DataError, "offset must be finite"),
        ({"coefficient_prior": "horseshoe"}, SettingError, "'robust'"),
        ({"coefficient_prior": 3}, SettingError, "CoefficientPrior"),
        ({"noise_floor": -0.1}, SettingError, "0 or more"),
        ({"noise_floor": 1.0}, SettingError, "below 1"),
        ({"noise_floor": 1e-200}, SettingError, "at least 1e-12"),
        ({"X": np.ma.masked_greater(np.eye(3), 0.5)}, DataError, "masked"),
        ({"X": np.array([["2020-01-01"]] * 3, dtype="M8[ns]")}, DataError, "dates"),
        ({"X": None}, DataError, "None"),
        ({"sample_weight": [1e20, 1.0, 1.0]}, DataError, "at most"),
        ({"noise_floor": "1%"}, SettingError, "finite number"),
        ({"family": "poison"}, SettingError, "family"),
        ({"link": "log"}, SettingError, "identity"),
    ],
)
def test_bad_input_is_refused_with_advice(change, error, message):
    arguments = {"y": [1.0, 2.0, 4.0], "X": [[1.0], [2.0], [2.5]]} | change
    with pytest.raises(error, match=message):
        bgnlm.log_marginal(arguments.pop("y"), arguments.pop("X"), **arguments)


@pytest.mark.parametrize(
    ("name", "parameters", "message"),
    [
        ("g", {"a": 1.0}, "no parameter 'a'"),
        ("g", {"g": 0.0}, "greater than 0"),
        ("hyper-g", {"a": 2.0}, "2.05 or more"),
        ("robust", {"a": 2.0}, "allowed: none"),
        ("gaussian", {"variance": math.inf}, "finite"),
        ("nonsense", {}, "must be one of"),
    ],
)
def test_bad_priors_are_refused(name, parameters, message):
    with pytest.raises(SettingError, match=message):
        bgnlm.CoefficientPrior(name, **parameters)


def test_priors_are_values():
    assert bgnlm.CoefficientPrior("g") == bgnlm.CoefficientPrior("g", information="null")
    assert bgnlm.CoefficientPrior("g", g=5) == bgnlm.CoefficientPrior("g", g=5.0)
    assert len({bgnlm.CoefficientPrior("hyper-g"), bgnlm.CoefficientPrior("hyper-g", a=3.0)}) == 1
    with pytest.raises(SettingError, match="information"):
        bgnlm.CoefficientPrior("g", information="total")


def test_residuals_agree_with_lstsq(data):
    y, X = data
    _, rss, total = naive.least_squares(y, X)
    assert bgnlm.fit_model(y, X).r_squared == pytest.approx(1 - rss / total, abs=1e-13)
