"""The inner Laplace approximation and its correction against dense twins, and against the exact Gaussian integral."""

import math

import numpy as np
import pytest

from bgnlm.kernels import nested_laplace as kernels
from bgnlm.latent.inner import SlopePrior
from tests.latent.cases import LAYOUTS, build
from tests.naive_latent import ALL_PAIRS, Case, DenseLaplace, exact_gaussian

STANDARDISED = SlopePrior(precision=0.7, standardised=True)
INTEGRATED = SlopePrior(precision=None)
TOLERANCE = 1e-4  # Newton's method ends where the rest is about 1e-5 in the log determinant
KERNELS = (
    *("predict_rows", "find_mode", "border_scores", "cubes_by_moments", "field_variances", "field_cubes"),
    *("_assemble", "_penalty", "_block"),
)


def _evaluate(case, hyperparameters, tolerance=1e-14):
    inner = case.inner()
    return inner, inner.evaluate(hyperparameters, inner.start(), tolerance)


def _coefficients(inner, mode):
    """Intercept and slopes of the columns as they are."""
    slopes = mode.border[1 : 1 + inner.n_slopes] / inner.scales
    return np.array([mode.border[0] - slopes @ inner.centres, *slopes])


def _variances(inner, found):
    return inner.field_variances(found) + np.square(inner.border_scores(found)).sum(axis=1)


def _in_order(case, inner, values):
    """Of the rows of the data, from rows in the order of the layout."""
    out = np.empty(len(case.y))
    out[inner.layout.order] = values
    return out


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pair", ALL_PAIRS, ids="-".join)
def test_mode_and_integrand(pair, layout):
    case, hyperparameters = build(pair, layout)
    inner, found = _evaluate(case, hyperparameters)
    dense = DenseLaplace(case, hyperparameters)
    assert found.log_integrand == pytest.approx(dense.log_integrand, abs=1e-6)
    usual = inner.evaluate(hyperparameters, inner.start())
    assert usual.log_integrand == pytest.approx(dense.log_integrand, abs=TOLERANCE)
    eta = _in_order(case, inner, inner.linear_predictor(found.mode))
    assert eta == pytest.approx(dense.eta(dense.mode), abs=1e-5)
    assert _coefficients(inner, found.mode) == pytest.approx(dense.mode[:3], abs=1e-5)
    assert inner.n_hyperparameters == len(hyperparameters)
    assert inner.log_prior(hyperparameters) == pytest.approx(case.log_hyperprior(hyperparameters), abs=1e-9)


@pytest.mark.parametrize("slopes", [SlopePrior(precision=1e-3), STANDARDISED, INTEGRATED])
@pytest.mark.parametrize("n_columns", [0, 1, 4])
@pytest.mark.parametrize("pair", [("poisson", "log"), ("gaussian", "identity")], ids="-".join)
def test_priors_of_slopes(pair, n_columns, slopes):
    case, hyperparameters = build(pair, "ar1, groups beside", n_columns=n_columns, slopes=slopes)
    _, found = _evaluate(case, hyperparameters)
    assert found.log_integrand == pytest.approx(DenseLaplace(case, hyperparameters).log_integrand, abs=1e-6)


@pytest.mark.parametrize("layout", ["none", "ar1", "rw1, ou, iid", "ar1, groups beside"])
@pytest.mark.parametrize("pair", [("poisson", "log"), ("gaussian", "identity")], ids="-".join)
def test_compiled_kernels_equal_their_interpreted_form(pair, layout, monkeypatch):
    case, hyperparameters = build(pair, layout)
    inner, found = _evaluate(case, hyperparameters)
    correction, variances = inner.series(hyperparameters, found).total, _variances(inner, found)
    for name in KERNELS:
        monkeypatch.setattr(kernels, name, getattr(kernels, name).py_func)
    inner, slow = _evaluate(case, hyperparameters)
    assert found.log_integrand == pytest.approx(slow.log_integrand, abs=1e-9)
    assert found.mode.border == pytest.approx(slow.mode.border, abs=1e-9)
    assert found.mode.field == pytest.approx(slow.mode.field, abs=1e-9)
    assert correction == pytest.approx(inner.series(hyperparameters, slow).total, abs=1e-9)
    assert variances == pytest.approx(_variances(inner, slow), abs=1e-9)


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pair", ALL_PAIRS, ids="-".join)
def test_second_order_correction(pair, layout):
    case, hyperparameters = build(pair, layout, n=40)
    inner, found = _evaluate(case, hyperparameters)
    ours, variances = inner.series(hyperparameters, found).total, _variances(inner, found)
    expected, dense_variances = DenseLaplace(case, hyperparameters).correction()
    assert _in_order(case, inner, variances) == pytest.approx(dense_variances, rel=1e-6)
    assert ours == pytest.approx(expected, abs=1e-5)  # pairs with a correlation below 1e-3 are left out
    assert (abs(ours) > 1e-3) == (pair[0] != "gaussian")


def test_correction_with_more_effects_beside_than_rows():
    """Cubes over the border are then summed by pairs."""
    case, hyperparameters = build(("poisson", "log"), "ar1, groups beside", n=12, n_columns=9)
    inner, found = _evaluate(case, hyperparameters)
    assert inner.series(hyperparameters, found).total == pytest.approx(
        DenseLaplace(case, hyperparameters).correction()[0], abs=1e-6
    )


def test_correction_where_the_fourth_derivative_vanishes():
    share = 0.5 - math.sqrt(1.0 / 12.0)  # p (1 - p) = 1/6
    case = Case(("binomial", "logit"), np.full(4, share), weights=np.full(4, 5.0))
    inner, found = _evaluate(case, np.empty(0))
    expected = DenseLaplace(case, np.empty(0)).correction()[0]
    assert expected == pytest.approx(5 / 12 / 20, rel=1e-6)
    assert inner.series(np.empty(0), found).total == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("slopes", [SlopePrior(precision=1e-3), STANDARDISED, INTEGRATED])
@pytest.mark.parametrize("layout", LAYOUTS)
def test_gaussian_response_is_exact(layout, slopes):
    for seed, (log_noise, shift) in enumerate([(-1.0, 0.0), (1.0, 1.5), (2.5, -2.0)]):
        case, hyperparameters = build(("gaussian", "identity"), layout, n=30, seed=seed, slopes=slopes)
        fields = sum(c.field.n_hyperparameters for c in case.components)
        hyperparameters[:fields] += 0.3 * shift
        hyperparameters[fields] = log_noise
        inner, found = _evaluate(case, hyperparameters)
        ours = found.log_integrand - inner.log_prior(hyperparameters)
        assert ours == pytest.approx(exact_gaussian(case, hyperparameters), abs=1e-8)
        assert inner.correction(hyperparameters, found) == 0.0


def test_walk_that_adds_up_to_zero():
    """With a flat intercept a pinned walk is the same as one of its sum-to-zero form, with all constants."""
    case, hyperparameters = build(("gaussian", "identity"), "rw1", n=12, n_columns=0)
    case = case.without_weights()
    walk = case.components[0]
    tau, noise = np.exp(hyperparameters)
    m, n = len(walk.positions), len(case.y)
    increments = np.diff(np.eye(m), axis=0) / np.sqrt(np.diff(walk.positions))[:, None]
    structure = tau * increments.T @ increments
    basis = np.linalg.svd(np.ones((1, m)))[2][1:].T  # effects that add up to 0
    effects = np.eye(m)[walk.place] @ basis
    reduced = basis.T @ structure @ basis
    marginal = effects @ np.linalg.inv(reduced) @ effects.T + np.eye(n) / noise
    ones, residual = np.ones(n), case.y - case.response.offset
    solved = np.linalg.solve(marginal, np.column_stack([ones, residual]))
    total = ones @ solved[:, 0]
    quadratic = residual @ solved[:, 1] - (ones @ solved[:, 1]) ** 2 / total
    expected = -0.5 * ((n - 1) * math.log(2 * math.pi) + np.linalg.slogdet(marginal)[1] + quadratic + math.log(total))
    inner, found = _evaluate(case, hyperparameters)
    ours = found.log_integrand - inner.log_prior(hyperparameters)
    assert ours == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("pair", ALL_PAIRS, ids="-".join)
@pytest.mark.parametrize("far", [-6.0, 8.0])
def test_the_mode_does_not_depend_on_the_start(pair, far):
    case, hyperparameters = build(pair, "ar1, groups beside")
    inner, found = _evaluate(case, hyperparameters)
    start = inner.start()
    start.border[:] += far / 4 * np.resize([1.0, -1.0, 0.5], len(start.border))
    start.field[:] += far / 4 * np.resize([1.0, 0.3, -1.0, 2.0], len(start.field))
    again = inner.evaluate(hyperparameters, start, 1e-14)
    assert again.log_integrand == pytest.approx(found.log_integrand, abs=1e-6)
    assert again.mode.border == pytest.approx(found.mode.border, abs=1e-5)


@pytest.mark.parametrize("value", [61.0, -61.0, 1e9, math.inf, -math.inf, math.nan])
def test_hyperparameters_out_of_reach(value):
    case, hyperparameters = build(("poisson", "log"), "ar1, groups beside")
    for j in range(len(hyperparameters)):
        inner = case.inner()
        there = hyperparameters.copy()
        there[j] = value
        assert inner.evaluate(there, inner.start()).log_integrand == -math.inf
