"""One model given its hyperparameters: the Laplace approximation of fields and coefficients."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy import special

from bgnlm._typing import FloatArray
from bgnlm.errors import DataError
from bgnlm.kernels import banded, nested_laplace
from bgnlm.kernels.families import higher_terms, log_constants
from bgnlm.latent import refined
from bgnlm.latent.gradient import gradient
from bgnlm.latent.hyperpriors import FARTHEST, PAPER_PRECISION, Gamma
from bgnlm.latent.layout import Layout
from bgnlm.likelihood.families import Family

_TOLERANCE = 1e-8  # of the squared Newton decrement
_ENOUGH = 1e-3  # nats that a correction must be able to have
_DOUBT = 0.3  # nats of the part of a correction that comes from the coefficients
_LARGE = 20.0  # nats of all terms, whatever their signs, which mostly cancel
_LARGE_SUM = 3.0
_ROWS = 500  # that may have so much; more rows more
_LARGE_EXCESS = 0.8  # nats of a fourth-order term above 0, that of a posterior with heavy tails, which nothing cancels
_LONGEST = 4000  # lag between effects whose covariance is followed
_LOG_2PI = math.log(2.0 * math.pi)


@dataclass(frozen=True)
class SlopePrior:
    """Independent normal slopes: with a given precision, or with one that has a Gamma prior and is integrated out.

    Slopes are those of the columns as they are, or of standardised columns; in a Gaussian model the latter are in units
    of the noise. The intercept is flat.
    """

    precision: float | None = 1e-3
    hyperprior: Gamma = PAPER_PRECISION
    standardised: bool = False

    @property
    def is_integrated(self) -> bool:
        """Whether there is a hyperparameter."""
        return self.precision is None


class LatentResponse(NamedTuple):
    """A checked response; `dispersion_prior` if it is another than the usual one."""

    family: Family
    y: FloatArray
    weights: FloatArray
    offset: FloatArray
    dispersion_prior: Gamma | None = None


def check_intercept(response: LatentResponse) -> LatentResponse:
    """Refuse a response that leaves a flat intercept without a proper posterior."""
    bounds = {"binomial": (0.0, 1.0), "poisson": (0.0,), "negative_binomial": (0.0,)}.get(response.family.name, ())
    counted = response.y[response.weights > 0]
    for bound in bounds:
        if (counted == bound).all():
            raise DataError(
                f"y of family {response.family.name!r} must have values other than {bound:g} where the intercept has a "
                f"flat prior, as in all models with latent components; got {bound:g} in all {len(counted)} rows, which "
                "fits the better the farther away the intercept is. Add rows with other values."
            )
    return response


class Mode(NamedTuple):
    """Fields and coefficients at their mode, in the order of the kernels."""

    field: FloatArray
    border: FloatArray


class Factors(NamedTuple):
    """The negative Hessian: factor of the band, cross block solved with it, factor of the Schur complement."""

    band: FloatArray
    cross: FloatArray
    schur: FloatArray


class Inner(NamedTuple):
    """What is known given hyperparameters; `log_integrand` is log p(y, hyperparameters), -inf where that fails."""

    log_integrand: float
    mode: Mode
    factors: Factors


class Series(NamedTuple):
    """Terms of the second order of a Laplace approximation, and nats of the first one that come from the slopes."""

    n_obs: int
    doubt: float
    quartic: float
    cubic: float = 0.0
    square: float = 0.0

    @property
    def total(self) -> float:
        """What the second order adds."""
        return self.quartic + self.cubic + self.square

    @property
    def is_doubtful(self) -> bool:
        """Whether terms are so large that those of higher orders matter."""
        terms = abs(self.quartic) + abs(self.cubic) + abs(self.square)
        many = max(self.n_obs / _ROWS, 1.0)  # of which each has its part in the terms
        is_large = terms > many * _LARGE or abs(self.total) > many * _LARGE_SUM or self.quartic > many * _LARGE_EXCESS
        return self.doubt > _DOUBT or is_large


class InnerLaplace:
    """A response, a layout of fields and the columns of a model, for any hyperparameters.

    Inside, columns are standardised; `columns` has the intercept and these. The border has fields beside the band too.

    Hyperparameters come in the order of the components, then the dispersion of the family, then the precision of the
    slopes where it is integrated.
    """

    def __init__(self, response: LatentResponse, layout: Layout, columns: FloatArray, slopes: SlopePrior) -> None:
        self.response, self.layout, self.slopes = response, layout, slopes
        family, order = response.family, layout.order
        self.y, self.weights, self.offset = response.y[order], response.weights[order], response.offset[order]
        self.n_slopes = columns.shape[1]
        if not (response.weights > 0).all():  # there a feature may be anything
            columns = np.where(response.weights[:, None] > 0, columns, 0.0)
        self.centres, self.scales = standards(columns, response.weights)
        unit = ((columns - self.centres) / self.scales)[order]
        self.columns = np.ascontiguousarray(np.vstack([np.ones((1, len(order))), unit.T]))
        self.own_squares = self.squares(self.scales)
        self._log_squares = float(np.log(self.own_squares).sum())
        self.sizes = [layout.placed[c].field.n_hyperparameters for c in range(len(layout.placed))]
        self.has_dispersion = family.has_dispersion
        self.integrates_slopes = slopes.is_integrated and self.n_slopes > 0
        self._constants = None if self.has_dispersion else self._log_constants(1.0)
        self._slope_places = np.arange(1, self.n_slopes + 1) * (self.n_border + 1)  # on the diagonal of the border
        n_rows = len(layout.along) * layout.n_positions
        self.rows = banded.empty_rows(n_rows, layout.width, len(layout.along), _LONGEST * max(len(layout.along), 1))

    @property
    def dispersion_prior(self) -> Gamma:
        """Of the precision of the noise, the shape or the size."""
        return self.response.dispersion_prior or DISPERSION_PRIORS[self.response.family.name]

    @property
    def n_border(self) -> int:
        """Intercept, slopes and effects beside the band."""
        return len(self.columns) + self.layout.n_beside

    @property
    def n_hyperparameters(self) -> int:
        """Of the whole model."""
        return sum(self.sizes) + int(self.has_dispersion) + int(self.integrates_slopes)

    def start(self) -> Mode:
        """No effects, and an intercept near the data."""
        family, y, w = self.response.family, self.y, self.weights
        mean = float(np.average(y, weights=w))
        if family.name == "binomial":
            mean = min(max(mean, 0.5 / w.sum()), 1.0 - 0.5 / w.sum())
        elif family.name != "gaussian":
            mean = max(mean, 0.1 / w.sum())
        border = np.zeros(self.n_border)
        if family.link == "log":  # offsets are logarithms of sizes, of which some may be nearly nothing
            level = float(special.logsumexp(self.offset, b=w / w.sum()))
        else:
            level = float(np.average(self.offset, weights=w))
        border[0] = family.linear_predictor(mean) - level
        return Mode(np.zeros(len(self.layout.along) * self.layout.n_positions), border)

    def split(self, hyperparameters: FloatArray) -> tuple[list[FloatArray], float, float]:
        """Hyperparameters of each component, dispersion, precision of the slopes."""
        parts, first = [], 0
        for size in self.sizes:
            parts.append(hyperparameters[first : first + size])
            first += size
        dispersion = 1.0
        if self.has_dispersion:
            dispersion = math.exp(hyperparameters[first])
            first += 1
        if self.integrates_slopes:
            return parts, dispersion, math.exp(hyperparameters[first])
        return parts, dispersion, 1.0 if self.slopes.precision is None else self.slopes.precision

    def log_prior(self, hyperparameters: FloatArray) -> float:
        """Log density of the hyperparameters."""
        if max(map(abs, hyperparameters), default=0.0) > FARTHEST:
            return -math.inf
        parts, dispersion, precision = self.split(hyperparameters)
        value = sum(component.field.log_prior(part) for component, part in zip(self.layout.placed, parts, strict=True))
        if self.has_dispersion:
            value += self.dispersion_prior.log_density(math.log(dispersion))
        if self.integrates_slopes:
            value += self.slopes.hyperprior.log_density(math.log(precision))
        return value

    def evaluate(self, hyperparameters: FloatArray, start: Mode, tolerance: float = _TOLERANCE) -> Inner:
        """Find the mode from a start near it."""
        log_prior = self.log_prior(hyperparameters)
        field, border = start.field.copy(), start.border.copy()
        size = len(border)
        if not log_prior > -math.inf:
            return Inner(-math.inf, start, Factors(np.empty((0, 1)), np.empty((0, size)), np.empty((size, size))))
        parts, dispersion, precision = self.split(hyperparameters)
        band, dense, log_determinant = self.prior(parts, dispersion, precision)
        factors = Factors(np.empty_like(band), np.empty((len(field), size)), np.empty((size, size)))
        value, log_curvature, _ = nested_laplace.find_mode(
            self.response.family.code,
            dispersion,
            self.y,
            self.weights,
            self.offset,
            self.columns,
            self.layout.beside_place,
            self.layout.beside_loadings,
            self.layout.place,
            self.layout.loadings,
            band,
            dense,
            tolerance,
            field,
            border,
            *factors,
        )
        constants = self._log_constants(dispersion) if self._constants is None else self._constants
        # The flat intercept has no density that would cancel its factor of 2 pi.
        total = log_prior + constants + value + 0.5 * (log_determinant - log_curvature + _LOG_2PI)
        return Inner(total if math.isfinite(total) else -math.inf, Mode(field, border), factors)

    def gradient(self, hyperparameters: FloatArray, inner: Inner) -> FloatArray:
        """Derivatives of the log integrand."""
        return gradient(self, hyperparameters, inner)

    def prior(
        self, parts: Sequence[FloatArray], dispersion: float, precision: float
    ) -> tuple[FloatArray, FloatArray, float]:
        """Prior precision of the band and of the border, and their log determinant but for the intercept."""
        band = self.layout.prior_band(parts)
        log_determinant = float(banded.factorise_band(band.copy()))
        dense = np.zeros((self.n_border, self.n_border))
        if self.n_slopes:
            scale = precision * self.unit(dispersion)
            dense.flat[self._slope_places] = scale * self.own_squares
            log_determinant += self.n_slopes * math.log(scale) + self._log_squares
        first = 1 + self.n_slopes
        for beside in self.layout.prior_beside(parts):
            places = np.arange(first, first + len(beside))
            for d in range(beside.shape[1]):
                dense[places[d:], places[: len(places) - d]] = dense[places[: len(places) - d], places[d:]] = beside[
                    d:, d
                ]
            log_determinant += float(banded.factorise_band(beside.copy()))
            first += len(beside)
        return band, dense, log_determinant

    def correction(self, hyperparameters: FloatArray, inner: Inner) -> float:
        """What is to be added to the logarithm of the Laplace approximation.

        Of the second order; where that is large, and effects are one chain beside a few coefficients, by quadrature.
        """
        if self.response.family.name == "gaussian":
            return 0.0
        series = self.series(hyperparameters, inner)
        if series.is_doubtful and refined.applies(self):
            found = refined.log_ratio(self, hyperparameters, inner)
            if math.isfinite(found):
                return found
        return series.total

    def series(self, hyperparameters: FloatArray, inner: Inner) -> Series:
        """Second-order correction of the Laplace approximation.

        (1/8) sum l4 s^4 + (1/12) l3' C^(o3) l3 + (1/8) a' C a with C = Cov(eta), s^2 = diag C, a = l3 o s^2, and l3, l4
        the third and fourth derivatives of the log-likelihood. All pairs of observations enter the second term, as far
        as their fields are correlated at all.
        """
        layout, eta = self.layout, self.linear_predictor(inner.mode)
        third, fourth = np.empty_like(eta), np.empty_like(eta)
        dispersion = self.split(hyperparameters)[1]
        higher_terms(self.response.family.code, dispersion, self.y, self.weights, eta, third, fourth)
        scores = self.border_scores(inner)
        # Where the data hardly tell a coefficient, as that of a category without events, the series does not converge.
        slopes = slice(1, 1 + self.n_slopes)
        doubt = float(np.abs(fourth * np.square(np.square(scores[:, slopes]).sum(axis=1))).sum()) / 8.0
        if doubt > _DOUBT:
            scores[:, slopes] *= (_DOUBT / doubt) ** 0.25
        variances = self.field_variances(inner) + np.square(scores).sum(axis=1)
        quartic = fourth * variances**2
        if (np.abs(quartic) + third**2 * variances**3).sum() < 8.0 * _ENOUGH:
            return Series(len(eta), doubt, float(quartic.sum()) / 8.0)  # the other terms are of the same order
        pull = third * variances
        along = np.zeros((len(inner.factors.band), 1))
        for k in range(len(layout.along)):
            np.add.at(along[:, 0], layout.place * len(layout.along) + k, pull * layout.loadings[:, k])
        banded.solve_lower(inner.factors.band, along)
        square = float(np.square(along).sum() + np.square(pull @ scores).sum())
        cubic = nested_laplace.border_cubes(third, scores)
        if layout.along:
            cubic += nested_laplace.field_cubes(
                third, layout.place, layout.loadings, inner.factors.band, scores, layout.starts, *self.rows
            )
        return Series(len(eta), doubt, float(quartic.sum()) / 8.0, float(cubic) / 12.0, square / 8.0)

    def border_scores(self, inner: Inner) -> FloatArray:
        """Rows u_i with u_i . u_j the part of Cov(eta_i, eta_j) that comes from not knowing the border."""
        layout = self.layout
        border = np.ascontiguousarray(np.vstack([self.columns, layout.beside_columns().T]))
        scores = np.empty((len(self.y), self.n_border))
        nested_laplace.border_scores(border, layout.place, layout.loadings, *inner.factors, scores)
        return scores

    def field_variances(self, inner: Inner) -> FloatArray:
        """The other part of Var(eta_i)."""
        variances = np.zeros(len(self.y))
        nested_laplace.field_variances(
            self.layout.loadings, inner.factors.band, self.layout.starts, *self.rows, variances
        )
        return variances

    def linear_predictor(self, mode: Mode) -> FloatArray:
        """Of the observations, in the order of the layout."""
        eta = np.empty(len(self.y))
        layout = self.layout
        nested_laplace.predict_rows(
            *(self.offset, self.columns, layout.beside_place, layout.beside_loadings),
            *(layout.place, layout.loadings, *mode, eta),
        )
        return eta

    def squares(self, scales: FloatArray) -> FloatArray:
        """Factors of the prior precisions that make them those of standardised columns of these scales."""
        return np.ones_like(scales) if self.slopes.standardised else 1.0 / np.square(scales)

    def unit(self, dispersion: float) -> float:
        """Standardised slopes of the Gaussian family are in units of the noise."""
        return dispersion if self.slopes.standardised and self.response.family.name == "gaussian" else 1.0

    def _log_constants(self, dispersion: float) -> float:
        return float(log_constants(self.response.family.code, dispersion, self.y, self.weights))


def standards(columns: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weighted means and standard deviations; 1 for a column that does not vary."""
    share = weights / weights.sum()
    centres = share @ columns
    scales = np.sqrt(share @ np.square(columns - centres))
    return centres, np.where(scales > 1e-14 * np.abs(centres), scales, 1.0)


# Of the logarithm: precision of the noise, shape, size.
DISPERSION_PRIORS = {"gaussian": Gamma(1.0, 5e-5), "gamma": Gamma(1.0, 0.01), "negative_binomial": Gamma(1.0, 0.01)}
