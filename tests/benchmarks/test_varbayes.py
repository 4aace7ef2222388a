"""The variational regression against all models, where it is exact."""

from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from benchmarks.paper.varbayes import Statistics, VariationalSpikeSlab, approximate

NOISE, SLAB, LOG_ODDS = 0.7, 0.3, -0.4


def orthogonal(rng, n=24, p=4):
    """Centred columns that are orthogonal, of different lengths."""
    Q, _ = np.linalg.qr(np.column_stack([np.ones(n), rng.normal(size=(n, p))]))
    X = Q[:, 1:] * np.array([2.0, 3.0, 4.0, 5.0])
    return X, X @ np.array([1.0, 0.0, -0.5, 0.2]) + rng.normal(size=n)


def enumerated(X, y):
    """Log evidence, inclusion probabilities and mean coefficients: all models, the intercept integrated out."""
    n, p = X.shape
    contrasts = np.linalg.svd(np.eye(n) - 1.0 / n)[0][:, : n - 1]  # what is left of y without its mean
    values, subsets, means = [], list(product((0, 1), repeat=p)), []
    for subset in subsets:
        Z = X[:, np.array(subset, bool)]
        covariance = NOISE * (np.eye(n) + SLAB * Z @ Z.T)
        reduced, z = contrasts.T @ covariance @ contrasts, contrasts.T @ y
        quadratic, size = z @ np.linalg.solve(reduced, z), np.linalg.slogdet(2 * np.pi * reduced)[1]
        prior = sum(np.log(expit(LOG_ODDS if chosen else -LOG_ODDS)) for chosen in subset)
        values.append(-0.5 * (quadratic + size) - 0.5 * np.log(n) + prior)
        mean = np.zeros(p)
        mean[np.array(subset, bool)] = np.linalg.solve(Z.T @ Z + np.eye(Z.shape[1]) / SLAB, Z.T @ (y - y.mean()))
        means.append(mean)
    weights = np.exp(np.array(values) - logsumexp(values))
    return logsumexp(values), weights @ np.array(subsets), weights @ np.array(means)


def test_it_is_exact_for_orthogonal_columns(rng):
    X, y = orthogonal(rng)
    centred = y - y.mean()
    data = Statistics(len(y), X.T @ X, X.T @ centred, float(centred @ centred))
    q = approximate(data, LOG_ODDS, NOISE, SLAB)
    evidence, inclusion, coefficients = enumerated(X, y)
    assert q.bound == pytest.approx(evidence, abs=1e-8)
    np.testing.assert_allclose(q.inclusion, inclusion, atol=1e-8)
    np.testing.assert_allclose(q.coefficients, coefficients, atol=1e-8)


def test_the_bound_is_below_the_evidence_for_columns_that_are_not(rng):
    X = rng.normal(size=(24, 4)) + 2.0 * rng.normal(size=(24, 1))
    X -= X.mean(axis=0)
    y = X @ np.array([0.5, 0.5, 0.0, 0.0]) + rng.normal(size=24)
    centred = y - y.mean()
    data = Statistics(len(y), X.T @ X, X.T @ centred, float(centred @ centred))
    assert approximate(data, LOG_ODDS, NOISE, SLAB).bound < enumerated(X, y)[0]


def test_variances_maximise_the_bound(rng):
    X, y = orthogonal(rng)
    centred = y - y.mean()
    data = Statistics(len(y), X.T @ X, X.T @ centred, float(centred @ centred))
    best = approximate(data, LOG_ODDS)
    for noise, slab in [(1.05, 1.0), (0.95, 1.0), (1.0, 1.1), (1.0, 0.9)]:
        assert approximate(data, LOG_ODDS, best.noise * noise, best.slab * slab).bound < best.bound


def test_abalone_is_near_least_squares(abalone):
    X, y, X_new, y_new, _ = abalone
    found = VariationalSpikeSlab().fit(X, y)
    rmse = np.sqrt(np.square(found.predict(X_new) - y_new).mean())
    assert rmse == pytest.approx(2.0779, abs=0.003)
    assert found.weights_.sum() == pytest.approx(1.0)


def test_inputs_may_be_on_any_scale(rng):
    X = rng.normal(size=(60, 3))
    y = 2.0 * X[:, 0] + rng.normal(size=60)
    one, other = VariationalSpikeSlab().fit(X, y), VariationalSpikeSlab().fit(1000.0 * X + 5.0, y)
    np.testing.assert_allclose(one.predict(X), other.predict(1000.0 * X + 5.0), rtol=1e-6)
    assert one.inclusion_[0] > 0.99
    assert one.inclusion_[1:].max() < 0.5
