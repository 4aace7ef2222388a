"""Obvious slow twins of models with latent components: dense matrices, densities by their definition."""

import itertools
import math
from dataclasses import dataclass, field, replace

import numpy as np
from scipy import special, stats
from scipy.linalg import block_diag
from scipy.optimize import minimize

from bgnlm.kernels.families import higher_terms
from bgnlm.latent.fields import AR1, OU, RW1
from bgnlm.latent.inner import DISPERSION_PRIORS, InnerLaplace, LatentResponse, SlopePrior
from bgnlm.latent.layout import Placed, lay_out
from bgnlm.likelihood.families import Family
from tests.naive_glm import PAIRS, log_likelihood_rows

ALL_PAIRS = [("gaussian", "identity"), *PAIRS]
LOG_2PI = math.log(2.0 * math.pi)


def dense_band(band):
    """The symmetric matrix whose entry (i, i - d) is `band[i, d]`."""
    n, width = band.shape
    matrix = np.zeros((n, n))
    for i, d in itertools.product(range(n), range(width)):
        if d <= i:
            matrix[i, i - d] = matrix[i - d, i] = band[i, d]
    return matrix


def covariance(component, hyperparameters, positions):
    """Of the field at positions, by its definition."""
    variance = math.exp(-hyperparameters[0])
    positions = np.asarray(positions, dtype=float)
    match component:
        case AR1():
            rho = math.expm1(hyperparameters[1]) / (math.exp(hyperparameters[1]) + 1.0)
            return variance * rho ** np.abs(positions[:, None] - positions)
        case OU():
            return variance * np.exp(-math.exp(hyperparameters[1]) * np.abs(positions[:, None] - positions))
        case RW1():
            walked = positions - positions[0]
            return variance * np.minimum(walked[:, None], walked)
        case _:
            return variance * np.eye(len(positions))


def log_hyperprior(component, hyperparameters):
    """Of hyperparameters on their unbounded scale."""
    value = log_gamma_of_log(component.precision_prior, hyperparameters[0])
    if isinstance(component, AR1 | OU):
        prior = component.correlation_prior if isinstance(component, AR1) else component.decay_prior
        value += stats.norm.logpdf(hyperparameters[1], prior.mean, prior.precision**-0.5)
    return value


def log_gamma_of_log(prior, x):
    return stats.gamma.logpdf(math.exp(x), prior.shape, scale=1.0 / prior.rate) + x


def placed(component, values, loading=None):
    """A component over the values of its column in each row."""
    positions, place = np.unique(np.asarray(values, dtype=float), return_inverse=True)
    loading = np.ones(len(place)) if loading is None else np.asarray(loading, dtype=float)
    return Placed(component, component.times(positions), place.astype(np.int64), loading)


@dataclass(frozen=True, eq=False)
class Case:
    """Data and components, for the library and for the dense twin."""

    pair: tuple[str, str]
    y: np.ndarray
    components: tuple[Placed, ...] = ()
    columns: np.ndarray | None = None
    weights: np.ndarray | None = None
    offset: np.ndarray | None = None
    slopes: SlopePrior = field(default_factory=SlopePrior)

    @property
    def response(self):
        n = len(self.y)
        return LatentResponse(
            Family(*self.pair),
            np.asarray(self.y, dtype=float),
            np.ones(n) if self.weights is None else self.weights,
            np.zeros(n) if self.offset is None else self.offset,
        )

    @property
    def design(self):
        return np.empty((len(self.y), 0)) if self.columns is None else self.columns

    def inner(self):
        return InnerLaplace(self.response, lay_out(self.components, len(self.y)), self.design, self.slopes)

    def without_weights(self):
        """Rows as often as their weights say."""
        n = self.response.weights.astype(int)
        again = [c._replace(place=np.repeat(c.place, n), loading=np.repeat(c.loading, n)) for c in self.components]
        return replace(
            self,
            y=np.repeat(self.y, n),
            components=tuple(again),
            columns=np.repeat(self.design, n, axis=0),
            weights=None,
            offset=np.repeat(self.response.offset, n),
        )

    def split(self, hyperparameters):
        """Parts of the components, dispersion, precision of the slopes."""
        rest = list(hyperparameters)
        parts = []
        for component in self.components:
            size = component.field.n_hyperparameters
            parts.append(rest[:size])
            rest = rest[size:]
        dispersion = math.exp(rest.pop(0)) if self.response.family.has_dispersion else 1.0
        precision = self.slopes.precision
        if precision is None and self.design.shape[1]:
            precision = math.exp(rest.pop(0))
        assert not rest
        return parts, dispersion, precision

    def log_hyperprior(self, hyperparameters):
        parts, dispersion, precision = self.split(hyperparameters)
        value = sum(log_hyperprior(c.field, part) for c, part in zip(self.components, parts, strict=True))
        if self.response.family.has_dispersion:
            value += log_gamma_of_log(DISPERSION_PRIORS[self.pair[0]], math.log(dispersion))
        if self.slopes.precision is None and self.design.shape[1]:
            value += log_gamma_of_log(self.slopes.hyperprior, math.log(precision))
        return value

    def effects(self, hyperparameters):
        """Design and prior covariance of slopes and fields, without the intercept and without pinned places."""
        parts, dispersion, precision = self.split(hyperparameters)
        designs, covariances = [self.design], []
        if self.design.shape[1]:
            own = np.full(self.design.shape[1], precision)
            if self.slopes.standardised:
                weights = self.response.weights
                mean = np.average(self.design, axis=0, weights=weights)
                own = own * np.average((self.design - mean) ** 2, axis=0, weights=weights)
                own = own * (dispersion if self.pair[0] == "gaussian" else 1.0)
            covariances.append(np.diag(1.0 / own))
        for component, part in zip(self.components, parts, strict=True):
            first = 1 if component.field.is_pinned else 0
            matrix = np.zeros((len(self.y), len(component.positions)))
            matrix[np.arange(len(self.y)), component.place] = component.loading
            designs.append(matrix[:, first:])
            covariances.append(covariance(component.field, part, component.positions)[first:, first:])
        return np.column_stack(designs), block_diag(*covariances) if covariances else np.empty((0, 0))


class DenseLaplace:
    """Laplace approximation of a case given its hyperparameters; derivatives by complex steps and differences."""

    def __init__(self, case, hyperparameters):
        self.case, self.response = case, case.response
        effects, prior = case.effects(hyperparameters)
        self.dispersion = case.split(hyperparameters)[1]
        self.design = np.column_stack([np.ones(len(case.y)), effects])
        self.log_prior_determinant = -np.linalg.slogdet(prior)[1]
        self.precision = block_diag([[0.0]], np.linalg.inv(prior)) if len(prior) else np.zeros((1, 1))
        start = np.zeros(self.design.shape[1])
        start[0] = _near(self.response)
        found = minimize(
            lambda b: -self.log_joint(b),
            start,
            jac=lambda b: -self.gradient(b),
            hess=lambda b: self.hessian(b),
            method="trust-exact",
        )
        self.mode = found.x
        for _ in range(3):
            self.mode = self.mode + np.linalg.solve(self.hessian(self.mode), self.gradient(self.mode))
        sign, log_curvature = np.linalg.slogdet(self.hessian(self.mode))
        assert sign > 0
        value = self.log_joint(self.mode) + 0.5 * (self.log_prior_determinant - log_curvature + LOG_2PI)
        self.log_likelihood = value
        self.log_integrand = value + case.log_hyperprior(hyperparameters)

    def eta(self, coefficients):
        return self.response.offset + self.design @ coefficients

    def _rows(self, eta):
        if self.case.pair[0] == "gaussian":
            return 0.5 * (math.log(self.dispersion) - LOG_2PI) - 0.5 * self.dispersion * (self.case.y - eta) ** 2
        return log_likelihood_rows(*self.case.pair, self.case.y, eta, self.dispersion)

    def _score(self, eta):
        return self.response.weights * self._rows(eta + 1e-30j).imag / 1e-30

    def log_joint(self, coefficients):
        total = self.response.weights @ self._rows(self.eta(coefficients))
        if self.case.pair[0] == "binomial":
            w, y = self.response.weights, self.case.y
            total += np.sum(-np.log1p(w) - special.betaln(1 + w * y, 1 + w - w * y))
        return float(total - 0.5 * coefficients @ self.precision @ coefficients)

    def gradient(self, coefficients):
        return self.design.T @ self._score(self.eta(coefficients)) - self.precision @ coefficients

    def hessian(self, coefficients):
        """Negative."""
        h, eta = 1e-5, self.eta(coefficients)
        information = (self._score(eta - h) - self._score(eta + h)) / (2 * h)
        return (self.design.T * information) @ self.design + self.precision

    def covariance(self):
        """Of the linear predictors."""
        return self.design @ np.linalg.solve(self.hessian(self.mode), self.design.T)

    def given_others(self, *also):
        """Covariance of the linear predictors with nothing unknown but the fields in the band and some coefficients."""
        layout = lay_out(self.case.components, len(self.case.y))
        sizes = [len(c.positions) - int(c.field.is_pinned) for c in self.case.components]
        first = 1 + self.case.design.shape[1]
        starts = [first + sum(sizes[:c]) for c in range(len(sizes))]
        places = [*also, *(place for c in layout.along for place in range(starts[c], starts[c] + sizes[c]))]
        fields = self.design[:, places]
        return fields @ np.linalg.solve(self.hessian(self.mode)[np.ix_(places, places)], fields.T)

    def correction(self, doubt=0.3):
        """Of the second order, and the variances of the linear predictors.

        The part of the slopes counts less where its fourth-order term alone is more than `doubt`.
        """
        third, fourth = np.empty((2, len(self.case.y)))
        eta = self.eta(self.mode)
        higher_terms(self.response.family.code, self.dispersion, self.case.y, self.response.weights, eta, third, fourth)
        c = self.covariance()
        variances = np.diag(c).copy()
        slopes = self.given_others(*range(1 + self.case.design.shape[1])) - self.given_others(0)
        quartic = np.abs(fourth) @ np.diag(slopes) ** 2 / 8
        c = c - (1.0 - min(1.0, math.sqrt(doubt / max(quartic, 1e-300)))) * slopes
        s = np.diag(c)
        a = third * s
        return fourth @ s**2 / 8 + third @ c**3 @ third / 12 + a @ c @ a / 8, variances


def _near(response):
    mean = np.average(response.y, weights=response.weights)
    if response.family.name == "binomial":
        mean = min(max(mean, 0.01), 0.99)
    elif response.family.name != "gaussian":
        mean = max(mean, 0.01)
    return response.family.linear_predictor(mean) - np.mean(response.offset)


def exact_gaussian(case, hyperparameters):
    """Log p(y | hyperparameters) of the Gaussian family: a dense normal density with a flat intercept."""
    case = case.without_weights()
    effects, prior = case.effects(hyperparameters)
    n = len(case.y)
    marginal = effects @ prior @ effects.T + np.eye(n) / case.split(hyperparameters)[1]
    residual = case.y - case.response.offset
    both = np.linalg.solve(marginal, np.column_stack([np.ones(n), residual]))
    total, centre = both[:, 0].sum(), both[:, 1].sum() / both[:, 0].sum()
    quadratic = (residual - centre) @ (both[:, 1] - centre * both[:, 0])
    log_determinant = np.linalg.slogdet(marginal)[1]
    return -0.5 * (n * LOG_2PI + log_determinant + quadratic) + 0.5 * (LOG_2PI - math.log(total))


def simulate(rng, pair, eta, weights, dispersion=2.0):
    """A response with these linear predictors."""
    family, link = pair
    mean = Family(family, link).mean(eta)
    match family:
        case "gaussian":
            return mean + rng.normal(size=len(eta)) / math.sqrt(dispersion)
        case "binomial":
            return rng.binomial(weights.astype(int), mean) / weights
        case "poisson":
            return rng.poisson(mean).astype(float)
        case "gamma":
            return rng.gamma(dispersion, mean / dispersion)
        case _:
            return rng.negative_binomial(dispersion, dispersion / (dispersion + mean)).astype(float)


def log_sum(values):
    return float(special.logsumexp(values))


def fine_grid(inner, box, step, keep=14.0):
    """Integrate the integrand over hyperparameters by a lattice; cells of a first, coarser one are left out."""
    size = len(box)
    coarse = {}
    start = inner.start()
    for place in itertools.product(*(np.arange(low, high + 1e-9, 4 * step) for low, high in box)):
        coarse[place] = inner.evaluate(np.array(place), start)
    best = max(there.log_integrand for there in coarse.values())
    shifts = step * (np.arange(4) - 1.5)
    values = [
        inner.evaluate(np.array(place) + shift, there.mode).log_integrand
        for place, there in coarse.items()
        if there.log_integrand > best - keep
        for shift in itertools.product(shifts, repeat=size)
    ]
    return log_sum(values) + size * math.log(step)


def full_quadrature(case):
    """Log p(y) with effects of groups, intercept and their precision all on grids; nothing else is unknown."""
    (component,) = case.components
    scaled, h = np.linspace(-8.0, 8.0, 161, retstep=True)
    intercepts, step = np.linspace(-7.0, 7.0, 101, retstep=True)
    intercepts = intercepts + _near(case.response)
    log_precisions, across = np.linspace(-5.0, 15.0, 51, retstep=True)
    w, y = case.response.weights, case.y
    constants = 0.0
    if case.pair[0] == "binomial":
        constants = np.sum(-np.log1p(w) - special.betaln(1 + w * y, 1 + w - w * y))
    values = []
    for log_precision in log_precisions:
        effects = scaled * math.exp(-0.5 * log_precision)
        value = np.full(len(intercepts), log_gamma_of_log(component.field.precision_prior, log_precision))
        for group in range(len(component.positions)):
            rows = np.flatnonzero(component.place == group)[:, None, None]
            eta = case.response.offset[rows] + intercepts[:, None] + component.loading[rows] * effects
            likelihood = (w[rows] * log_likelihood_rows(*case.pair, y[rows], eta, 1.0)).sum(axis=0)
            value += special.logsumexp(likelihood + stats.norm.logpdf(scaled), axis=1) + math.log(h)
        values.append(log_sum(value))
    return log_sum(values) + math.log(step * across) + constants
