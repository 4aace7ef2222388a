"""Coefficients, covariance factor and dispersion of one model, against textbook formulas and quadrature."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import simpson

import bgnlm
from bgnlm import CoefficientPrior
from tests import naive


@pytest.fixture
def data(rng):
    X = rng.normal(size=(30, 2)) * [1.0, 20.0] + [3.0, -50.0]
    return X @ [0.7, -0.1] + rng.normal(size=30), X


def _least_squares(y, X):
    coefficients, rss, total = naive.least_squares(y, X)
    full = np.column_stack([np.ones(len(y)), X])
    return coefficients, np.linalg.inv(full.T @ full), rss, total


@pytest.mark.parametrize("prior", ["jeffreys", "bic", "aic", "script", "known-variance"])
def test_flat_priors_give_least_squares(data, prior):
    y, X = data
    coefficients, inverse, rss, _ = _least_squares(y, X)
    fit = bgnlm.fit_model(y, X, coefficient_prior=prior)
    assert fit.coefficients == pytest.approx(coefficients, rel=1e-9)
    assert fit.covariance_factor @ fit.covariance_factor.T == pytest.approx(inverse, rel=1e-8)
    scale, degrees = {"jeffreys": (rss / 30, 30), "bic": (rss / 27, 27), "aic": (rss / 27, 27)}.get(
        prior, (1.0, math.inf)
    )
    assert fit.dispersion == pytest.approx(scale, rel=1e-10)
    assert fit.degrees_of_freedom == degrees


def test_a_given_g_shrinks_the_slopes_about_the_mean(data):
    y, X = data
    coefficients, _, rss, total = _least_squares(y, X)
    fit = bgnlm.fit_model(y, X, coefficient_prior=CoefficientPrior("g", g=9.0))
    assert fit.shrinkage == pytest.approx(0.9)
    assert fit.coefficients[1:] == pytest.approx(0.9 * coefficients[1:], rel=1e-9)
    assert fit.coefficients[0] == pytest.approx(y.mean() - X.mean(axis=0) @ fit.coefficients[1:])
    centred = X - X.mean(axis=0)
    covariance = fit.covariance_factor @ fit.covariance_factor.T
    assert covariance[1:, 1:] == pytest.approx(0.9 * np.linalg.inv(centred.T @ centred), rel=1e-8)
    at_mean = np.append(1.0, X.mean(axis=0))
    assert at_mean @ covariance @ at_mean == pytest.approx(1 / 30, rel=1e-8)
    assert fit.dispersion == pytest.approx((total + 9.0 * rss) / 10.0 / 29, rel=1e-10)
    assert fit.degrees_of_freedom == 29


def test_the_predictive_distribution_of_a_g_prior(data):
    """p(y* | y) = p(y, y*) / p(y) with the prior held fixed is the Student t that `ModelFit` describes."""
    y, X = data
    fit = bgnlm.fit_model(y, X, coefficient_prior=CoefficientPrior("g", g=5.0))
    new = np.array([2.0, -30.0])
    x = np.append(1.0, new)
    scale = math.sqrt(fit.dispersion * (1 + np.sum((x @ fit.covariance_factor) ** 2)))
    centred = X - X.mean(axis=0)
    prior_precision = centred.T @ centred / 5.0

    def log_joint(response):
        """Marginal likelihood of 31 rows under a flat intercept and the prior of the first 30."""
        rows = np.vstack([X, new])
        full = np.column_stack([np.ones(31), rows - X.mean(axis=0)])
        precision = full.T @ full
        precision[1:, 1:] += prior_precision
        target = np.append(y, response)
        mean = np.linalg.solve(precision, full.T @ target)
        quadratic = target @ target - mean @ precision @ mean
        return -15.0 * np.log(quadratic)

    values = fit.coefficients @ x + np.array([-2.0, 0.0, 1.5])
    ours = stats.t.logpdf(values, fit.degrees_of_freedom, fit.coefficients @ x, scale)
    theirs = np.array([log_joint(value) for value in values])
    assert ours - ours[1] == pytest.approx(theirs - theirs[1], abs=1e-8)


@pytest.mark.parametrize("prior", ["robust", "hyper-g", "hyper-g/n", "zellner-siow", "intrinsic", "beta-prime"])
def test_mixtures_shrink_by_the_posterior_mean(data, prior):
    y, X = data
    coefficients, _, rss, total = _least_squares(y, X)
    log_density, end = naive.log_g_densities(30, 2)[prior]
    x = np.arange(-60.0, 90.0, 0.05)
    g = end + np.exp(x)
    log_posterior = 27 / 2 * np.log1p(g) - 29 / 2 * np.log1p(g * rss / total) + log_density(x) + x
    weights = naive.enumerate_probabilities(log_posterior)
    fit = bgnlm.fit_model(y, X, coefficient_prior=prior)
    assert fit.shrinkage == pytest.approx(weights @ (g / (1 + g)), abs=1e-9)
    assert fit.coefficients[1:] == pytest.approx(fit.shrinkage * coefficients[1:], rel=1e-9)
    assert fit.dispersion == pytest.approx(weights @ ((total + g * rss) / (1 + g)) / 29, rel=1e-8)


def test_independent_gaussian_coefficients_are_a_ridge(data):
    y, X = data
    fit = bgnlm.fit_model(y, X, coefficient_prior=CoefficientPrior("gaussian", variance=0.2))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    precision = Z.T @ Z + np.eye(2) / 0.2
    slopes = np.linalg.solve(precision, Z.T @ (y - y.mean())) / X.std(axis=0)
    assert fit.coefficients[1:] == pytest.approx(slopes, rel=1e-9)
    covariance = (fit.covariance_factor @ fit.covariance_factor.T)[1:, 1:]
    assert covariance == pytest.approx(np.linalg.inv(precision) / np.outer(X.std(axis=0), X.std(axis=0)), rel=1e-8)


def test_the_noise_floor_holds_the_dispersion_up(data):
    _, X = data
    y = X @ [0.7, -0.1] + 1.0
    for prior in ("robust", "jeffreys", "bic"):
        fit = bgnlm.fit_model(y, X, coefficient_prior=prior, noise_floor=0.05)
        assert fit.dispersion == pytest.approx((0.05 * y.std()) ** 2, rel=0.2)
        assert fit.dispersion >= (0.05 * y.std()) ** 2 * 0.9


def test_the_posterior_mean_of_a_restricted_variance():
    from bgnlm.likelihood.variance import VarianceIntegral

    shape, n, floor, quadratic = 6.0, 13.0, 0.4, 0.3
    total = n  # so that the floor on the variance is floor^2
    v = np.exp(np.linspace(2 * np.log(floor), 12.0, 400_001))
    density = v**-shape * np.exp(-quadratic * total / (2 * v))
    mean = simpson(density * v, x=np.log(v)) / simpson(density, x=np.log(v))
    unrestricted = quadratic * total / (2 * (shape - 1))
    assert unrestricted * VarianceIntegral(shape, n, floor).inflation(quadratic) == pytest.approx(mean, rel=1e-6)


def test_the_null_model_predicts_the_mean(data):
    y, _ = data
    fit = bgnlm.fit_model(y, np.empty((30, 0)))
    assert fit.coefficients == pytest.approx([y.mean()])
    assert fit.covariance_factor == pytest.approx(np.array([[1 / math.sqrt(30)]]))
    assert fit.log_bayes_factor == 0.0
    assert fit.r_squared == pytest.approx(0.0, abs=1e-12)
