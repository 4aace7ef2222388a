"""Mixtures of g-priors: one-dimensional integrals over g to near machine precision.

With u = 1/(1 + g) and A(u) = r + u (1 - r), r = RSS/TSS, the Bayes factor of a model with k columns to the
null model is the integral of u^(k/2) V(A(u)) p(u) du, V the variance integral. In x = log(vu / (1 - vu)) the
integrand is analytic and falls off exponentially on both sides, so the trapezoidal rule converges
geometrically.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.likelihood.coefficient_priors import MixtureParameters

_LOWEST_PEAK = -115.0  # of x: residuals down to 1e-33, for up to 1e16 observations
_HIGHEST_PEAK = 20.0
_COARSE_STEP = 4.0
# Off the real line the integrand grows from pi / 2 on, which makes an error of about e^(-pi^2 / step); a peak of width
# sigma makes one of e^(-2 pi^2 sigma^2 / step^2).
_WIDEST_STEP = 0.3
_STEP_IN_WIDTHS = 0.5
_MIN_NODES = 65
_NEGLIGIBLE = 37.0  # nats below the maximum


@dataclass(frozen=True)
class MixingDensity:
    """Density of g, written in x; not normalised.

    `at(x)` gives log u and the log density of x. The density falls off like exp(left_rate * x) on the left
    and at least like exp(-right_rate * x) on the right. Times u^(k/2) and a likelihood, its peak is no narrower
    than sqrt(2 / (k + 2 left_rate)).
    """

    at: Callable[[FloatArray], tuple[FloatArray, FloatArray]]
    left_rate: float  # 0 for an improper density, which stays as it is
    right_rate: float

    def coarse_grid(self) -> FloatArray:
        """Return nodes that reach to where nothing is left of any integrand."""
        low = _LOWEST_PEAK - 1.1 * _NEGLIGIBLE / (self.left_rate or 0.5)  # u^(k/2) with k >= 1 does the rest
        high = _HIGHEST_PEAK + 1.1 * _NEGLIGIBLE / self.right_rate
        return np.arange(low, high + _COARSE_STEP, _COARSE_STEP)[None, :]


LogLikelihood = Callable[[FloatArray], FloatArray]
"""log u of shape (1, nodes) or (likelihoods, nodes) -> one row for each likelihood."""


def density_of(parameters: MixtureParameters) -> MixingDensity:
    """Return the density of `MixtureParameters` in x = log(vu / (1 - vu))."""
    a, b, s, r, v, kappa = parameters

    def at(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        log_t = -np.logaddexp(0.0, -x)  # t = vu
        log_rest = -np.logaddexp(0.0, x)
        t = np.exp(log_t)
        log_p = 0.5 * (a * log_t + b * log_rest - s * t / v)
        if r and kappa != 1.0:
            log_p = log_p - r * np.log(kappa + (1.0 - kappa) * t)
        return log_t - np.log(v), log_p

    return MixingDensity(at, left_rate=a / 2, right_rate=b / 2)


def zellner_siow(n_obs: float) -> MixingDensity:
    """G ~ InvGamma(1/2, n/2), in x = -log(g / n)."""

    def at(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -np.logaddexp(0.0, np.log(n_obs) - x), 0.5 * (x - np.exp(np.minimum(x, 700.0)))

    return MixingDensity(at, left_rate=0.5, right_rate=1.0)


def log_mixture(density: MixingDensity, size: int, log_likelihood: LogLikelihood) -> tuple[FloatArray, FloatArray]:
    """Log of E[likelihood] and posterior mean of u, for many likelihoods of models with `size` columns at once."""
    value, mean_u = _log_integral(density, size, log_likelihood)
    return value - log_normaliser(density), mean_u


def log_normaliser(density: MixingDensity) -> float:
    """Log of the integral of the density; 0 if it has none."""
    if density.left_rate == 0.0:
        return 0.0
    return float(_log_integral(density, 0, lambda log_u: np.zeros_like(log_u))[0][0])


def _log_integral(density: MixingDensity, size: int, log_likelihood: LogLikelihood) -> tuple[FloatArray, FloatArray]:
    nodes = density.coarse_grid()
    step = min(_WIDEST_STEP, _STEP_IN_WIDTHS * np.sqrt(2.0 / (size + 2.0 * density.left_rate)))
    for finest in (_COARSE_STEP / 4, step):
        log_u, log_p = density.at(nodes)
        nodes = _where_it_matters(nodes, log_likelihood(log_u) + log_p, finest)
    log_u, log_p = density.at(nodes)
    log_terms = log_likelihood(log_u) + log_p
    peak = log_terms.max(axis=1, keepdims=True)
    terms = np.exp(log_terms - peak)
    total = terms.sum(axis=1)
    mean_u = (terms * np.exp(log_u)).sum(axis=1) / total
    return peak[:, 0] + np.log(total * (nodes[:, 1] - nodes[:, 0])), mean_u


def _where_it_matters(nodes: FloatArray, log_terms: FloatArray, step: float) -> FloatArray:
    """Equally spaced nodes over the stretch that holds the integral, one row for each integral.

    A peak narrower than the spacing of the nodes still lies next to the highest of them, inside the stretch.
    """
    matters = log_terms > log_terms.max(axis=1, keepdims=True) - _NEGLIGIBLE
    first = np.maximum(matters.argmax(axis=1) - 1, 0)
    last = matters.shape[1] - 1 - np.maximum(matters[:, ::-1].argmax(axis=1) - 1, 0)
    rows = np.arange(len(matters)) if len(nodes) > 1 else 0
    low, high = nodes[rows, first], nodes[rows, last]
    n_nodes = max(_MIN_NODES, int(np.ceil((high - low).max() / step)) + 1)
    return np.asarray(low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, n_nodes))
