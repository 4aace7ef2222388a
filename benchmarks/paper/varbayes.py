"""VARBAYES: linear regression with a spike-and-slab prior by variational approximation (Carbonetto & Stephens 2012).

y = b_0 + X b + N(0, v), b_j = 0 with probability 1 - pi, else N(0, v s). The posterior is approximated by independent
b_j, each 0 with probability 1 - a_j, else N(m_j, c_j), which is exact for orthogonal columns. For each pi of a grid v
and s are those that maximise the bound on the evidence, and the fits are averaged with weights proportional to it.
"""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from scipy.special import expit, log_expit, logsumexp, xlogy
from sklearn.base import BaseEstimator, RegressorMixin

_TOLERANCE = 1e-8
_MOST_SWEEPS = 5000


class Statistics(NamedTuple):
    """All that the approximation needs of centred data."""

    n: int
    gram: np.ndarray  # X'X
    products: np.ndarray  # X'y
    total: float  # y'y


@dataclass
class Approximation:
    """q(b) for one choice of pi, with its bound on the log evidence."""

    inclusion: np.ndarray  # a
    mean: np.ndarray  # m
    variance: np.ndarray  # c
    noise: float  # v
    slab: float  # s
    bound: float = -np.inf

    @property
    def coefficients(self) -> np.ndarray:
        """Posterior means."""
        return self.inclusion * self.mean


def approximate(
    data: Statistics, log_odds: float, noise: float | None = None, slab: float | None = None
) -> Approximation:
    """Coordinate ascent; v and s are given, or maximise the bound."""
    p = len(data.products)
    q = Approximation(
        np.full(p, expit(log_odds)),
        np.zeros(p),
        np.ones(p),
        noise or data.total / data.n,
        1.0 if slab is None else slab,
    )
    for _ in range(_MOST_SWEEPS):
        _sweep(data, q, log_odds)
        if noise is None:
            q.noise = _best_noise(data, q)
        if slab is None:
            q.slab = _best_slab(q)
        before, q.bound = q.bound, _bound(data, q, log_odds)
        if abs(q.bound - before) < _TOLERANCE * (1.0 + abs(q.bound)):
            break
    return q


def _sweep(data: Statistics, q: Approximation, log_odds: float) -> None:
    fitted = data.gram @ q.coefficients
    for j, d in enumerate(np.diag(data.gram)):
        before = q.inclusion[j] * q.mean[j]
        q.variance[j] = q.noise / (d + 1.0 / q.slab)
        q.mean[j] = q.variance[j] / q.noise * (data.products[j] - fitted[j] + d * before)
        evidence = 0.5 * (np.log(q.variance[j] / (q.slab * q.noise)) + q.mean[j] ** 2 / q.variance[j])
        q.inclusion[j] = expit(log_odds + evidence)
        fitted += data.gram[:, j] * (q.inclusion[j] * q.mean[j] - before)


def _expected_residuals(data: Statistics, q: Approximation) -> float:
    """E |y - X b|^2."""
    b = q.coefficients
    variances = q.inclusion * (q.variance + q.mean**2) - b**2
    return float(data.total - 2.0 * b @ data.products + b @ data.gram @ b + np.diag(data.gram) @ variances)


def _best_noise(data: Statistics, q: Approximation) -> float:
    slabs = float(q.inclusion @ (q.variance + q.mean**2)) / q.slab
    return (_expected_residuals(data, q) + slabs) / (data.n - 1 + float(q.inclusion.sum()))


def _best_slab(q: Approximation) -> float:
    return max(float(q.inclusion @ (q.variance + q.mean**2)) / (q.noise * max(float(q.inclusion.sum()), 1e-12)), 1e-12)


def _bound(data: Statistics, q: Approximation, log_odds: float) -> float:
    """Bound on log p(y); the intercept, whose prior is flat, is integrated out."""
    fit = -0.5 * (data.n - 1) * np.log(2.0 * np.pi * q.noise) - 0.5 * np.log(data.n)
    fit -= 0.5 * _expected_residuals(data, q) / q.noise
    ratio = q.variance / (q.slab * q.noise)
    slabs = 0.5 * q.inclusion @ (1.0 + np.log(ratio) - ratio - q.mean**2 / (q.slab * q.noise))
    choices = q.inclusion @ np.full_like(q.mean, log_expit(log_odds)) + (1.0 - q.inclusion).sum() * log_expit(-log_odds)
    entropy = -(xlogy(q.inclusion, q.inclusion) + xlogy(1.0 - q.inclusion, 1.0 - q.inclusion)).sum()
    return float(fit + slabs + choices + entropy)


class VariationalSpikeSlab(RegressorMixin, BaseEstimator):
    """The regression for inputs as they are, which are standardised first.

    Attributes
    ----------
    coef_, intercept_
        Posterior means.
    inclusion_
        Posterior probabilities of the inputs.
    log_odds_, weights_
        The grid of prior log odds of an input, and the weights of the fits.
    """

    def __init__(self, n_grid: int = 20, noise: float | None = None, slab: float | None = None) -> None:
        self.n_grid = n_grid
        self.noise = noise
        self.slab = slab

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Average over a grid of pi, from one input expected to nine in ten."""
        X, y = np.asarray(X, float), np.asarray(y, float)
        means, scales = X.mean(axis=0), X.std(axis=0)
        Z, centred = (X - means) / np.where(scales > 0.0, scales, 1.0), y - y.mean()
        data = Statistics(len(y), Z.T @ Z, Z.T @ centred, float(centred @ centred))
        p = X.shape[1]
        self.log_odds_ = np.linspace(-np.log(max(p - 1.0, 1.0)), np.log(9.0), self.n_grid)
        fits = [approximate(data, log_odds, self.noise, self.slab) for log_odds in self.log_odds_]
        bounds = np.array([q.bound for q in fits])
        self.weights_ = np.exp(bounds - logsumexp(bounds))
        self.inclusion_ = self.weights_ @ np.array([q.inclusion for q in fits])
        self.coef_ = self.weights_ @ np.array([q.coefficients for q in fits]) / np.where(scales > 0.0, scales, 1.0)
        self.intercept_ = float(y.mean() - means @ self.coef_)
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Posterior means of the response."""
        return np.asarray(X, float) @ self.coef_ + self.intercept_
