"""Models that share columns: their scores against those of each model by itself."""

from dataclasses import replace

import numpy as np
import pytest

from bgnlm import CoefficientPrior
from bgnlm.likelihood.coefficient_priors import PARAMETERS
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.likelihood.varying import VaryingColumns
from tests.likelihood.glm_cases import FINITE, LOCAL
from tests.naive_glm import PAIRS, simulate

N = 30
N_MODELS = 30  # more than are taken together
GLM_PRIORS = [FINITE, "robust", "g", "gaussian", "jeffreys", "bic", "eb-local", LOCAL[2]]


def one_by_one(likelihood, fixed, varying):
    """The slow twin."""
    values = []
    for columns in varying:
        X = np.column_stack([fixed, columns.T])
        X[likelihood.weights == 0.0] = 0.0
        if not np.isfinite(X).all():
            values.append(-np.inf)
            continue
        values.append(likelihood.population(X).fit(list(range(X.shape[1]))).log_marginal)
    return np.array(values)


def check(likelihood, fixed, varying, tolerance=1e-6):
    expected = one_by_one(likelihood, fixed, varying)
    assert VaryingColumns(likelihood, fixed).log_marginals(varying) == pytest.approx(expected, abs=tolerance)
    return expected


def gaussian(prior="auto", n_fixed=2, n_varying=2, seed=1, **settings):
    """A response that depends on some of the columns; a likelihood, and the columns."""
    rng = np.random.default_rng(seed)
    fixed = rng.normal(size=(N, n_fixed)) * 10.0 ** np.arange(n_fixed) + 5.0
    varying = rng.normal(size=(N_MODELS, n_varying, N)) * 3.0 ** np.arange(n_varying)[:, None] - 7.0
    y = fixed.sum(axis=1) + varying[0].sum(axis=0) + rng.normal(size=N)
    return check_likelihood(y, coefficient_prior=prior, **settings), fixed, varying


@pytest.mark.parametrize(
    "prior", [*PARAMETERS, CoefficientPrior("gaussian", variance=10.0), CoefficientPrior("g", g=7)]
)
def test_gaussian_models(prior):
    for n_fixed, n_varying in ((0, 1), (2, 1), (2, 3)):
        check(*gaussian(prior, n_fixed, n_varying))


@pytest.mark.parametrize("prior", ["robust", "gaussian", "jeffreys", "script"])
@pytest.mark.parametrize("noise_floor", [0.0, 0.3])
def test_weights_offset_and_noise_floor(prior, noise_floor, rng):
    weights = rng.integers(0, 4, size=N).astype(float)
    assert (weights == 0.0).any()
    likelihood, fixed, varying = gaussian(
        prior, noise_floor=noise_floor, sample_weight=weights, offset=rng.normal(size=N)
    )
    fixed[weights == 0.0], varying[:, :, weights == 0.0] = np.nan, np.inf  # there they may be anything
    check(likelihood, fixed, varying)


@pytest.mark.parametrize("prior", ["robust", "gaussian"])
def test_what_a_size_is_worth(prior):
    likelihood, fixed, varying = gaussian(prior)
    plain = check(likelihood, fixed, varying)
    with_sizes = check(replace(likelihood, n_slots=6), fixed, varying)
    assert np.ptp(with_sizes - plain) == pytest.approx(0.0, abs=1e-6)
    assert abs(with_sizes - plain).min() > 1.0


def test_a_score_that_is_given():
    likelihood, fixed, varying = gaussian()
    score = likelihood.population(np.empty((N, 0))).score
    shared = VaryingColumns(likelihood, fixed, score).log_marginals(varying)
    assert shared.tolist() == VaryingColumns(likelihood, fixed).log_marginals(varying).tolist()


@pytest.mark.parametrize("prior", GLM_PRIORS)
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_other_families(family, link, prior):
    y, X, weights, offset = simulate(family, link, N, 2, seed=4)
    varying = np.random.default_rng(5).normal(size=(26, 1, N))
    varying[0, 0] += X[:, 0] - X[:, 1]
    varying[1, 0] = np.nan
    varying[2, 0] = 1.0
    varying[3, 0] = X[:, 0] + 2.0
    likelihood = check_likelihood(
        y, family=family, link=link, coefficient_prior=prior, sample_weight=weights, offset=offset
    )
    values = check(likelihood, X, varying, 1e-4)
    without = [1, 2] if prior == "gaussian" else [1, 2, 3]  # whose ridge allows for dependent columns
    assert np.flatnonzero(np.isinf(values)).tolist() == without


def test_other_families_and_rows_without_weight():
    y, X, weights, offset = simulate("poisson", "log", N, 2, seed=4)
    weights[:3], varying = 0.0, np.random.default_rng(5).normal(size=(4, 2, N))
    X[0], varying[:, :, 1] = np.inf, np.nan
    likelihood = check_likelihood(y, family="poisson", sample_weight=weights, offset=offset)
    assert np.isfinite(check(likelihood, X, varying, 1e-4)).all()


@pytest.mark.parametrize("prior", ["robust", "gaussian", "bic"])
def test_columns_that_are_not_usable(prior):
    likelihood, fixed, varying = gaussian(prior, n_varying=3)
    varying[1, 0, 3] = np.nan
    varying[2, 1, 0] = np.inf
    varying[3, 0] = 4.0
    varying[4, 1] = 0.0
    varying[5, 0] = 1e200
    varying[6, 2] = 3.0 * varying[6, 0] - 2.0
    varying[7, 1] = fixed[:, 0] - 0.5 * fixed[:, 1] + 1.0
    varying[8, 2] = varying[8, 0] + fixed[:, 1]
    values = check(likelihood, fixed, varying)
    last = 5 if prior == "gaussian" else 8  # its ridge allows for columns that depend on each other
    assert np.flatnonzero(np.isinf(values)).tolist() == list(range(1, last + 1))


@pytest.mark.parametrize("prior", ["robust", "gaussian"])
def test_columns_of_any_scale(prior):
    likelihood, fixed, varying = gaussian(prior)
    plain = check(likelihood, fixed, varying)
    scaled = VaryingColumns(likelihood, 1e-90 * fixed).log_marginals(1e120 * varying)
    assert scaled == pytest.approx(plain, abs=1e-5)


@pytest.mark.parametrize("prior", ["robust", "gaussian"])
def test_fixed_columns_that_depend_on_each_other(prior):
    likelihood, fixed, varying = gaussian(prior)
    constant, dependent = (
        check(likelihood, np.column_stack([fixed, column]), varying) for column in (np.ones(N), 2.0 * fixed[:, 0] - 3.0)
    )
    assert np.isinf(constant).all()
    assert np.isinf(dependent).all() == (prior != "gaussian")


@pytest.mark.parametrize("prior", ["robust", "jeffreys", "bic"])
@pytest.mark.parametrize("noise", [1e-3, 1e-5, 1e-7])
def test_fits_that_are_nearly_exact(prior, noise):
    """Here subtraction would leave no digits of the residual."""
    rng = np.random.default_rng(6)
    _, fixed, varying = gaussian()
    y = 1.0 + fixed @ [1.0, -0.2] + 2.0 * varying[0, 0] + noise * rng.normal(size=N)
    varying[1] = varying[0] + 10.0 * noise * rng.normal(size=(2, N))
    likelihood = check_likelihood(y, coefficient_prior=prior)
    check(likelihood, fixed, varying, 1e-4)


def test_an_exact_fit_is_a_number():
    _, fixed, varying = gaussian()
    likelihood = check_likelihood(varying[0, 0] * 2.0 + 1.0)
    values = VaryingColumns(likelihood, fixed).log_marginals(varying)
    assert values.argmax() == 0
    assert np.isfinite(values).all()


@pytest.mark.parametrize("prior", ["robust", "gaussian", "bic"])
def test_a_response_that_does_not_vary(prior):
    _, fixed, varying = gaussian()
    check(check_likelihood(np.full(N, 3.0), coefficient_prior=prior), fixed, varying)


@pytest.mark.parametrize("prior", ["robust", "gaussian", "jeffreys", "bic"])
def test_as_many_columns_as_rows(prior):
    rng = np.random.default_rng(7)
    y = rng.normal(size=6)
    likelihood = check_likelihood(y, coefficient_prior=prior)
    for n_fixed in (2, 3, 4, 5):
        fixed, varying = rng.normal(size=(6, n_fixed)), rng.normal(size=(5, 1, 6))
        check(likelihood, fixed, varying)
