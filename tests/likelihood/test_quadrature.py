"""Every Gaussian prior against independent quadrature, with and without a noise floor."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import bgnlm
from bgnlm import CoefficientPrior
from bgnlm.likelihood.coefficient_priors import PARAMETERS
from bgnlm.likelihood.gaussian import GaussianScore
from bgnlm.likelihood.variance import log_lower_gamma
from tests import naive

MIXTURES = ["robust", "hyper-g", "hyper-g/n", "zellner-siow", "intrinsic", "beta-prime", "cch", "tg"]
CASES = [
    (12, 1, 0.97),
    (12, 5, 0.2),
    (50, 3, 0.5),
    (400, 4, 0.36),
    (400, 9, 1e-8),
    (2000, 40, 0.8),
    (30, 28, 0.01),
]


def _bayes_factor(name, n, k, residual, floor=0.0, total=7.3):
    prior = name if isinstance(name, CoefficientPrior) else CoefficientPrior(name)
    score = GaussianScore(prior, n, math.log(total), floor)
    return float(score.log_bayes_factor(k, np.array([residual]))[0])


@pytest.mark.parametrize(("n", "k", "residual"), CASES)
@pytest.mark.parametrize("name", MIXTURES)
def test_mixtures(name, n, k, residual):
    assert _bayes_factor(name, n, k, residual) == pytest.approx(naive.log_mixture(name, n, k, residual), abs=1e-8)


@pytest.mark.parametrize(("n", "k", "residual"), [(12, 2, 0.9), (50, 3, 0.004), (400, 4, 1e-5)])
@pytest.mark.parametrize("floor", [0.01, 0.3])
@pytest.mark.parametrize("name", ["robust", "hyper-g/n", "zellner-siow", "beta-prime"])
def test_mixtures_with_a_noise_floor(name, n, k, residual, floor):
    total = 7.3
    expected = naive.log_mixture_with_floor(name, n, k, residual, total, floor**2 * total / n)
    assert _bayes_factor(name, n, k, residual, floor, total) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("a", [2.2, 4.0])
def test_parameters_of_the_hyper_priors(a):
    n, k, residual = 60, 3, 0.4

    def expected(log_density):
        def log_function(x):
            g = np.exp(x)
            bayes_factor = (n - 1 - k) / 2 * np.log1p(g) - (n - 1) / 2 * np.log1p(g * residual)
            return bayes_factor + log_density(g) + x

        return naive.log_integral(log_function, -60.0, 250.0)

    hyper_g = expected(lambda g: np.log((a - 2) / 2) - a / 2 * np.log1p(g))
    hyper_g_n = expected(lambda g: np.log((a - 2) / (2 * n)) - a / 2 * np.log1p(g / n))
    assert _bayes_factor(CoefficientPrior("hyper-g", a=a), n, k, residual) == pytest.approx(hyper_g, abs=1e-8)
    assert _bayes_factor(CoefficientPrior("hyper-g/n", a=a), n, k, residual) == pytest.approx(hyper_g_n, abs=1e-8)


@pytest.mark.parametrize(
    ("name", "parameters"), [("cch", {"a": 0.7, "b": 3.1, "s": 5.0}), ("tg", {"a": 1.4, "s": -2.0})]
)
def test_parameters_of_the_cch_class(name, parameters):
    n, k, residual = 60, 3, 0.4
    a, b, s = parameters["a"], parameters.get("b", 2.0), parameters["s"]

    def log_density(x):  # of the log odds of u = 1 / (1 + g)
        log_u, log_rest = -np.logaddexp(0, -x), -np.logaddexp(0, x)
        return a / 2 * log_u + b / 2 * log_rest - s / 2 * np.exp(log_u)

    def log_function(x):
        g = np.exp(-x)
        bayes_factor = (n - 1 - k) / 2 * np.log1p(g) - (n - 1) / 2 * np.log1p(g * residual)
        return log_density(x) + bayes_factor

    expected = naive.log_integral(log_function, -120.0, 100.0) - naive.log_integral(log_density, -120.0, 100.0)
    assert _bayes_factor(CoefficientPrior(name, **parameters), n, k, residual) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("floor", [0.0, 0.01, 0.3])
@pytest.mark.parametrize(("n", "k", "residual"), CASES)
def test_a_given_g_and_the_best_g(n, k, residual, floor):
    total = 7.3
    variance = floor**2 * total / n

    def given(g):
        return float(naive.log_bayes_factor_given_g(mp.mpf(g), n, k, residual, total, variance))

    assert _bayes_factor("g", n, k, residual, floor) == pytest.approx(given(n), abs=1e-9)
    assert _bayes_factor(CoefficientPrior("g", g=2.5), n, k, residual, floor) == pytest.approx(given(2.5), abs=1e-9)
    best = minimize_scalar(
        lambda x: -given(math.exp(x)), bounds=(-12.0, 60.0), method="bounded", options={"xatol": 1e-9}
    )
    assert _bayes_factor("eb-local", n, k, residual, floor) == pytest.approx(max(-best.fun, given(0.0)), abs=1e-7)


@pytest.mark.parametrize("a", [0.6, 5.0, 199.5, 2e4])
def test_log_of_the_incomplete_gamma_function(a):
    z = a * np.array([1e-30, 1e-8, 0.01, 0.3, 0.9, 0.999, 1.0, 1.05, 3.0])
    expected = [float(mp.log(mp.gammainc(a, 0, x, regularized=True))) for x in map(mp.mpf, z)]
    assert log_lower_gamma(a, z) == pytest.approx(expected, rel=1e-11, abs=1e-11)


def _small_data():
    rng = np.random.default_rng(3)
    x = rng.normal(size=7)
    return 0.8 * x + rng.normal(size=7) * 0.6 + 0.3, x


def _brute_force(name, floor):
    """Integrate likelihood times prior over (intercept, slope, log variance) on a grid, no algebra."""
    y, x = _small_data()
    n = len(y)
    c = x - x.mean()
    unit = c / np.sqrt(c @ c / n)
    variance_floor = floor**2 * y.var()
    column = {"gaussian": unit}.get(name, c)

    def log_density(intercept, slope, log_variance):
        v = np.exp(log_variance)
        rss = ((y[:, None, None, None] - intercept - slope * column[:, None, None, None]) ** 2).sum(axis=0)
        value = -n / 2 * (naive.LOG_2PI + log_variance) - rss / (2 * v)
        prior_variance = {"g": n * v / (c @ c), "gaussian": v}.get(name)
        if prior_variance is None:  # the paper's: |X'X|^(1/2) sigma^-2 for two coefficients
            value = value + 0.5 * np.log(n * (c @ c)) - log_variance
        else:
            value = value - 0.5 * (naive.LOG_2PI + np.log(prior_variance)) - slope**2 / (2 * prior_variance)
        return value  # p(v) dv = dv / v = d log v

    lowest = np.log(variance_floor) if floor else -9.0
    return naive.grid_marginal(log_density, [(-12.0, 12.0), (-14.0, 14.0), (lowest, 9.0)], 251), lowest


@pytest.mark.parametrize("name", ["g", "jeffreys", "gaussian"])
def test_absolute_value_by_brute_force(name):
    """All constants, from nothing but likelihood times prior."""
    y, x = _small_data()
    expected, _ = _brute_force(name, 0.0)
    assert bgnlm.log_marginal(y, x[:, None], coefficient_prior=name) == pytest.approx(expected, abs=2e-3)


def test_absolute_value_with_known_variance():
    y, x = _small_data()
    n, v = len(y), 0.4
    design = np.column_stack([np.ones(n), x])

    def log_density(intercept, slope):
        rss = ((y[:, None, None] - intercept - slope * x[:, None, None]) ** 2).sum(axis=0)
        return -n / 2 * (naive.LOG_2PI + np.log(v)) - rss / (2 * v) + 0.5 * np.linalg.slogdet(design.T @ design / v)[1]

    expected = naive.grid_marginal(log_density, [(-6.0, 6.0), (-6.0, 6.0)], 601)
    prior = CoefficientPrior("known-variance", variance=v)
    assert bgnlm.log_marginal(y, x[:, None], coefficient_prior=prior) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("floor", [0.0, 0.3, 0.8])
@pytest.mark.parametrize("name", list(PARAMETERS))
def test_absolute_value_of_the_null_model(name, floor):
    """Against the two-dimensional integral over intercept and variance, or its definition."""
    y, _ = _small_data()
    n, total = len(y), float(((y - y.mean()) ** 2).sum())
    ours = bgnlm.log_marginal(y, np.empty((n, 0)), coefficient_prior=name, noise_floor=floor)
    variance = floor**2 * total / n
    known = max(1.0, variance)
    expected = {
        "jeffreys": float(naive.log_variance_integral(n / 2, total, variance)) - (n - 1) / 2 * naive.LOG_2PI,
        "bic": -n / 2 * (naive.LOG_2PI + math.log(total / n) + 1) - 0.5 * math.log(n),
        "aic": -n / 2 * (naive.LOG_2PI + math.log(total / n) + 1) - 1,
        "known-variance": -n / 2 * (naive.LOG_2PI + math.log(known)) - total / 2 / known + naive.LOG_2PI / 2,
        "script": -total / 2 / known,
    }
    flat = float(naive.log_variance_integral((n - 1) / 2, total, variance)) - (n - 1) / 2 * naive.LOG_2PI
    assert ours == pytest.approx(expected.get(name, flat - 0.5 * math.log(n)), abs=1e-9)


def test_the_floor_matters_only_near_exact_fits():
    """It reduces to the ordinary score when the noise is well above it."""
    assert _bayes_factor("robust", 200, 3, 0.5, 0.01) == pytest.approx(_bayes_factor("robust", 200, 3, 0.5), abs=1e-9)
    assert _bayes_factor("robust", 200, 3, 1e-9, 0.01) < _bayes_factor("robust", 200, 3, 1e-9) - 500
    # Below the floor there is next to nothing to gain.
    gain = _bayes_factor("robust", 200, 3, 1e-9, 0.01) - _bayes_factor("robust", 200, 3, 1e-7, 0.01)
    assert 0 <= gain < 0.2


def test_information_criteria_with_a_noise_floor():
    """The variance of the likelihood stays at the floor."""
    n, k, residual, floor = 50, 2, 1e-4, 0.1
    profile = -n / 2 * (math.log(floor**2) + residual / floor**2) + n / 2
    assert _bayes_factor("bic", n, k, residual, floor) == pytest.approx(profile - k / 2 * math.log(n), abs=1e-10)
    assert _bayes_factor("aic", n, k, residual, floor) == pytest.approx(profile - k, abs=1e-10)


def test_independent_gaussian_prior_by_its_determinant_form():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(40, 3)) @ rng.normal(size=(3, 3)) + 5
    y = X @ [0.5, -1, 0] + rng.normal(size=40)
    prior = CoefficientPrior("gaussian", variance=0.7)
    n = len(y)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    covariance = np.eye(n) + 0.7 * Z @ Z.T
    centred = y - y.mean()
    quadratic = centred @ np.linalg.solve(covariance, centred)
    total = centred @ centred
    expected = -0.5 * np.linalg.slogdet(covariance)[1] - (n - 1) / 2 * np.log(quadratic / total)
    ours = bgnlm.log_marginal(y, X, coefficient_prior=prior, relative_to_null=True)
    assert ours == pytest.approx(expected, abs=1e-9)
