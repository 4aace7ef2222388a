"""Mixtures of g-priors: one-dimensional integrals over g to near machine precision.

With u = 1/(1 + g) and A(u) = r + u (1 - r), r = RSS/TSS, the Bayes factor of a model with k columns to the
null model is the integral of u^(k/2) V(A(u)) p(u) du, V the variance integral. In x = log(vu / (1 - vu)) the
integrand is analytic and falls off exponentially on both sides, so the trapezoidal rule converges
geometrically.
"""

from collections.abc import Callable

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.likelihood.coefficient_priors import MixtureParameters

# Where the integrand can have mass: residuals down to 1e-33 and g up to 1e43.
_COARSE = np.arange(-152.0, 104.0, 4.0)[None, :]
_N_NODES = 193
_NEGLIGIBLE = 37.0  # nats below the maximum

LogDensity = Callable[[FloatArray], tuple[FloatArray, FloatArray]]
"""x -> (log u, log density of x), the density not normalised."""

LogLikelihood = Callable[[FloatArray], FloatArray]
"""log u of shape (1, nodes) or (likelihoods, nodes) -> one row for each likelihood."""


def log_density_of(parameters: MixtureParameters) -> LogDensity:
    """Return the density of `MixtureParameters` in x = log(vu / (1 - vu))."""
    a, b, s, r, v, kappa = parameters

    def density(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        log_t = -np.logaddexp(0.0, -x)  # t = vu
        log_rest = -np.logaddexp(0.0, x)
        t = np.exp(log_t)
        log_p = 0.5 * (a * log_t + b * log_rest - s * t / v)
        if r and kappa != 1.0:
            log_p = log_p - r * np.log(kappa + (1.0 - kappa) * t)
        return log_t - np.log(v), log_p

    return density


def zellner_siow(n_obs: float) -> LogDensity:
    """g ~ InvGamma(1/2, n/2), in x = -log(g / n)."""

    def density(x: FloatArray) -> tuple[FloatArray, FloatArray]:
        return -np.logaddexp(0.0, np.log(n_obs) - x), 0.5 * (x - np.exp(np.minimum(x, 700.0)))

    return density


def log_mixture(density: LogDensity, log_likelihood: LogLikelihood) -> tuple[FloatArray, FloatArray]:
    """Log of E[likelihood] and posterior mean of u, for many likelihoods at once."""
    log_norm, _ = _log_integral(density, lambda log_u: np.zeros_like(log_u))
    value, mean_u = _log_integral(density, log_likelihood)
    return value - log_norm, mean_u


def _log_integral(density: LogDensity, log_likelihood: LogLikelihood) -> tuple[FloatArray, FloatArray]:
    log_u, log_p = density(_COARSE)
    nodes = _where_it_matters(log_likelihood(log_u) + log_p)
    log_u, log_p = density(nodes)
    log_terms = log_likelihood(log_u) + log_p
    peak = log_terms.max(axis=1, keepdims=True)
    terms = np.exp(log_terms - peak)
    total = terms.sum(axis=1)
    mean_u = (terms * np.exp(log_u)).sum(axis=1) / total
    return peak[:, 0] + np.log(total * (nodes[:, 1] - nodes[:, 0])), mean_u


def _where_it_matters(log_terms: FloatArray) -> FloatArray:
    """Equally spaced nodes over the stretch of `_COARSE` that holds the integral, one row for each integral.

    A peak narrower than the coarse spacing still lies next to the highest node, inside the stretch.
    """
    matters = log_terms > log_terms.max(axis=1, keepdims=True) - _NEGLIGIBLE
    first = np.maximum(matters.argmax(axis=1) - 1, 0)
    last = matters.shape[1] - 1 - np.maximum(matters[:, ::-1].argmax(axis=1) - 1, 0)
    low, high = _COARSE[0, first], _COARSE[0, last]
    return np.asarray(low[:, None] + (high - low)[:, None] * np.linspace(0.0, 1.0, _N_NODES))
