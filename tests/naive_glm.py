"""Obvious slow twins of generalized linear models: densities by scipy and mpmath, modes by scipy.optimize."""

import mpmath as mp
import numpy as np
from scipy import special, stats
from scipy.optimize import minimize

from bgnlm.likelihood.families import Family

PAIRS = [
    ("binomial", "logit"),
    ("binomial", "probit"),
    ("binomial", "cloglog"),
    ("poisson", "log"),
    ("gamma", "log"),
    ("negative_binomial", "log"),
]
H = 1e-5  # of differences of derivatives
WITH_DISPERSION = [("gamma", "log"), ("negative_binomial", "log")]


def scipy_log_density(family, link, y, weights, eta, dispersion=1.0):
    """Log-likelihood of each row with all constants; the weights of the binomial family are numbers of trials."""
    mean = Family(family, link).mean(eta)
    match family:
        case "binomial":
            return stats.binom.logpmf(np.round(weights * y), weights, mean)
        case "poisson":
            return weights * stats.poisson.logpmf(y, mean)
        case "gamma":
            return weights * stats.gamma.logpdf(y, dispersion, scale=mean / dispersion)
        case _:
            return weights * stats.nbinom.logpmf(y, dispersion, dispersion / (dispersion + mean))


def mp_log_density(family, link, y, eta, dispersion=1.0):
    """One row in many digits, without binomial coefficients."""
    y, eta, d = mp.mpf(y), mp.mpf(eta), mp.mpf(dispersion)
    mean = mp.exp(eta)
    match family, link:
        case _, "logit":
            return y * eta - mp.log1p(mean)
        case _, "probit":
            return y * mp.log(mp.ncdf(eta)) + (1 - y) * mp.log(mp.ncdf(-eta))
        case _, "cloglog":
            return (y * mp.log(-mp.expm1(-mean)) if y else mp.mpf(0)) - (1 - y) * mean
        case "poisson", _:
            return y * eta - mean - mp.loggamma(y + 1)
        case "gamma", _:
            return d * mp.log(d / mean) - mp.loggamma(d) + (d - 1) * mp.log(y) - d * y / mean
        case _:
            constant = mp.loggamma(y + d) - mp.loggamma(d) - mp.loggamma(y + 1)
            return constant + d * mp.log(d / (d + mean)) + y * mp.log(mean / (d + mean))


def responses(family, n, seed=0):
    """Responses with every special value: 0, 1, shares, large counts; and weights for which they make sense."""
    rng = np.random.default_rng(seed)
    weights = rng.integers(1, 5, size=n).astype(float)
    match family:
        case "binomial":
            return rng.binomial(weights.astype(int), 0.5) / weights, weights
        case "gamma":
            return rng.gamma(2.0, 1.5, size=n), weights
        case _:
            return rng.negative_binomial(1.0, 0.2, size=n).astype(float), weights


def log_likelihood_rows(family, link, y, eta, dispersion):
    """Log-likelihood of each row with what depends on the dispersion, for complex arguments too."""
    mean = np.exp(eta)
    match family, link:
        case _, "logit":
            return y * eta - np.log1p(mean)
        case _, "probit":
            return y * special.log_ndtr(eta) + (1 - y) * special.log_ndtr(-eta)
        case _, "cloglog":
            return y * np.log(-np.expm1(-mean)) - (1 - y) * mean
        case "poisson", _:
            return y * eta - mean - special.gammaln(y + 1)
        case "gamma", _:
            d = dispersion
            return d * (np.log(d) - eta) - special.loggamma(d) + (d - 1) * np.log(y) - d * y / mean
        case _:
            d = dispersion
            constant = special.loggamma(y + d) - special.loggamma(d) - special.gammaln(y + 1)
            return constant + d * np.log(d) + y * eta - (y + d) * np.log(d + mean)


class SlowGlm:
    """Log posterior of (intercept, slopes, log dispersion), derivatives by complex steps and differences."""

    def __init__(self, family, link, y, X, *, weights=None, offset=None, precision=None):
        self.pair, self.y = (family, link), y
        self.weights = np.ones(len(y)) if weights is None else weights
        self.offset = np.zeros(len(y)) if offset is None else offset
        self.design = np.column_stack([np.ones(len(y)), X])
        self.size = self.design.shape[1] - 1
        self.has_dispersion = family in ("gamma", "negative_binomial")
        self.precision = np.zeros((self.size, self.size)) if precision is None else precision

    def log_likelihood(self, theta):
        eta = self.offset + self.design @ theta[: self.size + 1]
        dispersion = np.exp(theta[self.size + 1]) if self.has_dispersion else 1.0
        return self.weights @ log_likelihood_rows(*self.pair, self.y, eta, dispersion)

    def log_posterior(self, theta):
        slopes = theta[1 : self.size + 1]
        return self.log_likelihood(theta) - 0.5 * slopes @ self.precision @ slopes

    def gradient(self, theta):
        steps = 1e-30j * np.eye(len(theta))
        return np.array([self.log_posterior(theta + step).imag / 1e-30 for step in steps])

    def hessian(self, theta):
        steps = H * np.eye(len(theta))
        matrix = np.array([(self.gradient(theta + s) - self.gradient(theta - s)) / (2 * H) for s in steps])
        return 0.5 * (matrix + matrix.T)

    def mode(self, start=None):
        """The maximum by scipy, then three plain Newton steps for the last digits."""
        n_parameters = self.size + 1 + self.has_dispersion
        if start is None:
            mean = self.weights @ self.y / self.weights.sum()
            start = np.zeros(n_parameters)
            start[0] = Family(*self.pair).linear_predictor(mean) - self.weights @ self.offset / self.weights.sum()
        with np.errstate(over="ignore", invalid="ignore"):
            found = minimize(
                lambda theta: -self.log_posterior(theta), start, jac=lambda theta: -self.gradient(theta), method="BFGS"
            )
        theta = found.x
        for _ in range(3):
            theta = theta - np.linalg.solve(self.hessian(theta), self.gradient(theta))
        return theta

    def log_determinant(self, theta):
        sign, value = np.linalg.slogdet(-self.hessian(theta))
        assert sign > 0
        return value


def simulate(family, link, n, k, seed=0, *, weighted=True, shape=2.0):
    """Response, columns, weights, offset."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k))
    offset = 0.3 * rng.normal(size=n)
    eta = 0.4 + offset + X @ (0.5 * (-1.0) ** np.arange(k) / np.sqrt(np.arange(1, k + 1)))
    weights = rng.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    mean = Family(family, link).mean(eta)
    match family:
        case "binomial":
            y = rng.binomial(weights.astype(int), mean) / weights
        case "poisson":
            y = rng.poisson(mean).astype(float)
        case "gamma":
            y = rng.gamma(shape, mean / shape)
        case _:
            y = rng.negative_binomial(shape, shape / (shape + mean)).astype(float)
    return y, X, weights, offset


def glm_of_r(family, link, y, X, weights, offset):
    """What R's `glm.fit` does, with R's families: deviance, coefficients and number of steps."""
    epsilon = np.finfo(float).eps
    design = np.column_stack([np.ones(len(y)), X])
    mean = (weights * y + 0.5) / (weights + 1.0) if family == "binomial" else y + 0.1
    eta = np.array([Family(family, link).linear_predictor(float(value)) for value in mean])
    deviance = _deviance_of_r(family, y, weights, mean)
    step, change = 0, np.inf
    while step < 25 and change >= 1e-8:
        step += 1
        match link:
            case "logit":
                slope = np.where(np.abs(eta) > 30.0, epsilon, special.expit(eta) * special.expit(-eta))
            case "probit":
                slope = np.maximum(stats.norm.pdf(eta), epsilon)
            case _:
                slope = mean
        variance = mean * (1.0 - mean) if family == "binomial" else mean
        root = np.sqrt(weights * slope**2 / variance)
        working = eta - offset + (y - mean) / slope
        scale = np.linalg.norm(design, axis=0)
        scaled = np.linalg.lstsq(design / scale * root[:, None], working * root, rcond=1e-13)[0]
        eta = offset + design / scale @ scaled
        match link:
            case "logit":
                odds = np.where(
                    eta < -30.0, epsilon, np.where(eta > 30.0, 1.0 / epsilon, np.exp(np.minimum(eta, 30.0)))
                )
                mean = odds / (1.0 + odds)
            case "probit":
                farthest = -stats.norm.ppf(epsilon)
                mean = stats.norm.cdf(np.clip(eta, -farthest, farthest))
            case _:
                mean = np.maximum(np.exp(eta), epsilon)
        previous, deviance = deviance, _deviance_of_r(family, y, weights, mean)
        change = abs(deviance - previous) / (abs(deviance) + 0.1)
    return deviance, scaled / scale, step


def _deviance_of_r(family, y, weights, mean):
    """Twice the distance to the log-likelihood of a model that fits every observation."""
    if family == "binomial":
        return 2.0 * weights @ (special.rel_entr(y, mean) + special.rel_entr(1.0 - y, 1.0 - mean))
    return 2.0 * weights @ (special.rel_entr(y, mean) - y + mean)
