"""Generalized linear models where some combination of columns tells the responses apart."""

import math

import numpy as np
import pytest
from scipy.special import expit

import bgnlm
from bgnlm import CoefficientPrior
from bgnlm.errors import ModelStatusWarning
from bgnlm.likelihood.status import ModelStatus
from tests import naive
from tests.likelihood.glm_cases import FINITE, LOCAL, fit_checked


def _separated(how, n=40, seed=0):
    rng = np.random.default_rng(seed)
    x = np.linspace(-1.0, 1.0, n)
    if how == "quasi":
        x = np.round(3 * x) / 3
        y = (x > 0).astype(float)
        y[np.flatnonzero(x == 0)[::2]] = 1.0  # both classes at 0
    else:
        y = (x > 0.1).astype(float)
    return y, np.column_stack([x, rng.normal(size=n)])


@pytest.mark.parametrize("how", ["complete", "quasi"])
@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_separation_under_priors_with_a_finite_mode(link, how):
    y, X = _separated(how)
    options = {"family": "binomial", "link": link}
    with_given_g = fit_checked(y, X, coefficient_prior="g", **options)
    assert with_given_g.status is ModelStatus.OK
    assert with_given_g.log_bayes_factor > 10
    assert fit_checked(y, X, coefficient_prior="gaussian", **options).status is ModelStatus.OK
    default = fit_checked(y, X, **options)
    assert default.status is ModelStatus.OK
    # The mixture can do better than g = n, but not by much more than the likelihood's maximum, which is 1.
    assert with_given_g.log_bayes_factor - 1 < default.log_bayes_factor < with_given_g.log_bayes_factor + 10
    assert default.coefficients[1] > 0
    alone = fit_checked(y, X[:, :1], **options)
    assert alone.log_marginal > default.log_marginal  # the second column is noise


@pytest.mark.parametrize("n", [20, 30, 40, 60, 100, 200])
@pytest.mark.parametrize("k", [1, 2, 4])
@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_the_default_is_sane_under_complete_separation(link, k, n):
    X = np.random.default_rng(n + k).normal(size=(n, k))
    y = (X[:, 0] > 0.1).astype(float)
    fit = fit_checked(y, X, family="binomial", link=link)
    # Under cloglog a single row carries nearly all the information far out.
    assert fit.status is ModelStatus.OK
    assert -40 < fit.log_marginal < 2


def _separated_laplace(y, x, log_g, start):
    """One slope under logit and information "null", in margins, where nothing cancels; the value and the mode."""
    sign, mean = 2 * y - 1, y.mean()
    centred = x - x.mean()
    precision = mean * (1 - mean) * (centred @ centred) * math.exp(-log_g)
    design, theta = np.column_stack([np.ones(len(y)), centred]), start
    for _ in range(500):
        eta = design @ theta
        gradient = design.T @ (sign * expit(-sign * eta)) - [0, precision * theta[1]]
        hessian = (design.T * (expit(eta) * expit(-eta))) @ design + np.diag([0, precision])
        step = np.linalg.solve(hessian, gradient)
        change = float(np.abs(design @ step).max())
        theta = theta + step / max(1.0, change / 2.0)  # no more than two units of any linear predictor
        if change < 1e-6:
            break
    else:
        raise AssertionError("no mode")
    value = -np.logaddexp(0, -sign * (design @ theta)).sum() - 0.5 * precision * theta[1] ** 2
    return value + 0.5 * (naive.LOG_2PI + math.log(precision) - np.linalg.slogdet(hessian)[1]), theta


@pytest.mark.parametrize("n", [20, 40, 80])
def test_separation_against_quadrature(n):
    """The integrand falls off like g^(-1/2) only; far out the modes must still be modes."""
    x = np.linspace(-1.0, 1.0, n)
    y = (x > 0.1).astype(float)
    log_g = np.arange(-12.0, 60.0, 0.25)
    values, theta = np.empty(len(log_g)), np.zeros(2)
    for i, v in enumerate(log_g):
        values[i], theta = _separated_laplace(y, x, v, theta)
    for i in (60, 104, 160):  # log g = 3, 14, 28
        prior = CoefficientPrior("g", g=math.exp(log_g[i]))
        ours = bgnlm.log_marginal(y, x[:, None], family="binomial", coefficient_prior=prior)
        assert ours == pytest.approx(values[i], abs=1e-3)
    terms = values + log_g - math.log(n) - 2.0 * np.logaddexp(0.0, log_g - math.log(n))
    expected = terms.max() + math.log(0.25 * np.exp(terms - terms.max()).sum())
    ours = bgnlm.log_marginal(y, x[:, None], family="binomial", coefficient_prior=FINITE)
    assert ours == pytest.approx(expected, abs=5e-3)


@pytest.mark.parametrize("how", ["complete", "quasi"])
@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_separation_where_the_maximum_likelihood_is_needed(link, how):
    y, X = _separated(how)
    options = {"family": "binomial", "link": link}
    for prior in LOCAL:
        fit = fit_checked(y, X, coefficient_prior=prior, **options)
        assert fit.status is ModelStatus.SEPARATED
        assert fit.log_marginal == -math.inf
        with pytest.warns(ModelStatusWarning, match="information='null'"):
            bgnlm.log_marginal(y, X, coefficient_prior=prior, **options)
    # The likelihood has a supremum though no maximum: 1 where all can be told apart.
    supremum = 0.0 if how == "complete" else None
    for prior, cost in (("bic", 1.5 * math.log(40)), ("aic", 3.0), ("jeffreys", -1.5 * naive.LOG_2PI)):
        fit = fit_checked(y, X, coefficient_prior=prior, **options)
        assert fit.status is ModelStatus.SEPARATED
        assert math.isfinite(fit.log_marginal)
        if supremum is not None:
            assert fit.log_marginal == pytest.approx(supremum - cost, abs=1e-4)
    # Columns that do not separate are not touched by it.
    assert fit_checked(y, X[:, 1:], coefficient_prior=LOCAL[0], **options).status is ModelStatus.OK


def test_separation_of_counts():
    """A group whose counts are all zero: its effect is at minus infinity."""
    rng = np.random.default_rng(4)
    group = (np.arange(40) < 10).astype(float)
    y = np.where(group > 0, 0, rng.poisson(3.0, size=40)).astype(float)
    options = {"family": "poisson"}
    default = fit_checked(y, group[:, None], **options)
    assert default.status is ModelStatus.OK
    assert default.log_bayes_factor > 5
    assert default.coefficients[1] < -1
    assert fit_checked(y, group[:, None], coefficient_prior=LOCAL[0], **options).status is ModelStatus.SEPARATED
    assert fit_checked(y, group[:, None], coefficient_prior="bic", **options).status is ModelStatus.SEPARATED
