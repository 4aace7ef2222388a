"""Obvious slow twins of what the library does fast. Formulas in g, by general-purpose quadrature."""

import mpmath as mp
import numpy as np
from scipy.integrate import quad
from scipy.special import betaln

LOG_2PI = float(np.log(2 * np.pi))


def least_squares(y, X, weights=None):
    """(coefficients, RSS, TSS about the mean), intercept first, by numpy's lstsq."""
    w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=float)
    root = np.sqrt(w)
    full = np.column_stack([np.ones(len(y)), X])
    coefficients = np.linalg.lstsq(full * root[:, None], y * root, rcond=None)[0]
    mean = w @ y / w.sum()
    return coefficients, float(w @ (y - full @ coefficients) ** 2), float(w @ (y - mean) ** 2)


def subset_residual(gram, columns):
    """RSS / TSS from a Gram matrix with the response last, by solving the normal equations."""
    columns = list(columns)
    if not columns:
        return gram[-1, -1]
    block, right = gram[np.ix_(columns, columns)], gram[columns, -1]
    return gram[-1, -1] - right @ np.linalg.solve(block, right)


def all_subsets(n_columns):
    """Every subset as a tuple, in the order of the bit masks."""
    return [tuple(j for j in range(n_columns) if mask >> j & 1) for mask in range(2**n_columns)]


def log_g_densities(n, k):
    """Log prior densities of g as they stand in the literature, with their lower ends, as functions of log(g - end)."""
    robust_end = (n + 1) / (k + 1) - 1
    intrinsic_end = n / (k + 1)

    def intrinsic(x):  # g = n / ((k+1) w), w ~ Beta(1/2, 1/2)
        g = intrinsic_end + np.exp(x)
        w = intrinsic_end / g
        return np.log(w / g / np.pi) - 0.5 * np.log(w) - 0.5 * (x - np.log(g))

    def beta_prime(x):  # Maruyama and George (2011), a = -3/4
        b = (n - k - 5) / 2 + 3 / 4
        return b * x - (b + 5 / 4) * np.logaddexp(0, x) - betaln(1 / 4, b + 1)

    return {
        "robust": (
            lambda x: np.log((n + 1) / (k + 1)) / 2 - np.log(2) - 1.5 * np.log(1 + robust_end + np.exp(x)),
            robust_end,
        ),
        "hyper-g": (lambda x: -np.log(2) - 1.5 * np.logaddexp(0, x), 0.0),
        "hyper-g/n": (lambda x: -np.log(2 * n) - 1.5 * np.logaddexp(0, x - np.log(n)), 0.0),
        "zellner-siow": (lambda x: 0.5 * np.log(n / 2 / np.pi) - 1.5 * x - n / 2 * np.exp(-x), 0.0),
        "intrinsic": (intrinsic, intrinsic_end),
        "beta-prime": (beta_prime, 0.0),
        "cch": (lambda x: -np.log(2) - 1.5 * np.logaddexp(0, x), 0.0),
        "tg": (lambda x: -2 * np.logaddexp(0, x), 0.0),
    }


def log_variance_integral(shape, quadratic, floor_variance):
    """log of the integral of v^(-a-1) exp(-q / 2v) over v > s^2, by the incomplete gamma function of mpmath."""
    a, q = mp.mpf(shape), mp.mpf(quadratic)
    upper = mp.inf if not floor_variance else q / (2 * mp.mpf(floor_variance))
    return mp.log(mp.gammainc(a, 0, upper)) - a * mp.log(q / 2)


def log_bayes_factor_given_g(g, n, k, residual, total, floor_variance=0.0):
    quadratic = total * (1 + g * mp.mpf(residual)) / (1 + g)
    shape = (mp.mpf(n) - 1) / 2
    return (
        -mp.mpf(k) / 2 * mp.log(1 + g)
        + log_variance_integral(shape, quadratic, floor_variance)
        - log_variance_integral(shape, total, floor_variance)
    )


def log_integral(log_function, low, high):
    """log of the integral of exp(log_function) by adaptive quadrature on short pieces."""
    pieces = np.arange(low, high, 1.0)
    peak = max(log_function(x) for x in pieces)
    total = sum(
        quad(lambda x: np.exp(log_function(x) - peak), x, x + 1.0, epsabs=1e-14, epsrel=1e-11)[0] for x in pieces
    )
    return peak + np.log(total)


def log_mixture(name, n, k, residual):
    """log Bayes factor to the null model of a mixture of g-priors, by quadrature over log(g - end)."""
    log_density, end = log_g_densities(n, k)[name]

    def log_function(x):
        g = end + np.exp(x)
        bayes_factor = (n - 1 - k) / 2 * np.log1p(g) - (n - 1) / 2 * np.log1p(g * residual)
        return bayes_factor + log_density(x) + x

    return log_integral(log_function, -170.0, 110.0)


def log_mixture_with_floor(name, n, k, residual, total, floor_variance):
    """The same with the variance restricted; the incomplete gamma function is mpmath's."""
    log_density, end = log_g_densities(n, k)[name]

    x = np.arange(-40.0, 60.0, 0.1)  # smooth and falling off at both ends: the trapezoidal rule is exact here
    log_terms = np.array(
        [float(log_bayes_factor_given_g(end + mp.exp(v), n, k, residual, total, floor_variance)) for v in x]
    )
    log_terms += log_density(x) + x
    return log_terms.max() + np.log(0.1 * np.exp(log_terms - log_terms.max()).sum())


def enumerate_probabilities(log_joint):
    weights = np.exp(np.asarray(log_joint) - np.max(log_joint))
    return weights / weights.sum()


def inclusion(probabilities, subsets, n_columns):
    totals = np.zeros(n_columns)
    for probability, subset in zip(probabilities, subsets, strict=True):
        totals[list(subset)] += probability
    return totals


def grid_marginal(log_density, ranges, points=241):
    """log of the integral of exp(log_density(*axes)) over a box, by the trapezoidal rule."""
    axes = [np.linspace(low, high, points) for low, high in ranges]
    values = log_density(*np.meshgrid(*axes, indexing="ij", sparse=True))
    steps = np.prod([axis[1] - axis[0] for axis in axes])
    peak = values.max()
    return peak + np.log(np.exp(values - peak).sum() * steps)
