"""Gaussian models of one population of columns, fitted one by one or averaged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.kernels import gram as kernels
from bgnlm.likelihood.gaussian import GaussianScore
from bgnlm.likelihood.gram import GramStatistics
from bgnlm.likelihood.model_fit import ModelFit
from bgnlm.likelihood.status import ModelStatus
from bgnlm.likelihood.subsets import unpack
from bgnlm.likelihood.tabulate import TabulatedScore

_BATCH = 2**17  # models whose slopes are in memory at a time


@dataclass(frozen=True, eq=False)
class GaussianPopulation:
    """All models over some columns."""

    statistics: GramStatistics
    score: TabulatedScore

    def fit(self, columns: list[int]) -> ModelFit:
        """Fit one model."""
        return fit_columns(self.statistics, self.score.exact, columns)

    def fit_all(self, models: Sequence[Sequence[int]], *, with_spread: bool = False) -> list[ModelFit]:  # noqa: ARG002
        """Fit several models, each given by its columns; mean and covariance are those of the fit."""
        return [self.fit(list(columns)) for columns in models]

    def log_marginals(self, models: Sequence[Sequence[int]]) -> FloatArray:
        """Score several models, each given by its columns."""
        return np.array([fit.log_marginal for fit in self.fit_all(models)])

    def average_coefficients(self, masks: IntArray, probabilities: FloatArray) -> FloatArray:
        """Average of the models' coefficients, intercept first; a column not in a model counts as 0."""
        statistics = self.statistics
        rows = statistics.with_ridge(self.score.exact.ridge)[1]
        slopes = np.zeros(statistics.n_columns)
        for start in range(0, len(masks), _BATCH):
            chosen = masks[start : start + _BATCH]
            residuals, floors, each = np.empty(len(chosen)), np.empty(len(chosen)), np.empty((len(chosen), len(slopes)))
            kernels.fit_subsets(rows, statistics.noise, chosen, residuals, floors, np.empty(0), each)
            sizes = unpack(chosen, len(slopes)).sum(axis=1)
            shrinkage = self.score.shrinkage(sizes, np.maximum(residuals, floors))
            slopes += (probabilities[start : start + _BATCH] * shrinkage) @ each
        slopes *= statistics.response_norm / np.where(statistics.norms > 0, statistics.norms, 1.0)
        return np.append(statistics.response_mean - statistics.means @ slopes, slopes)

    def average_mean(
        self, masks: IntArray, probabilities: FloatArray, design: FloatArray, offset: FloatArray
    ) -> FloatArray:
        """Average of the models' means for new rows."""
        coefficients = self.average_coefficients(masks, probabilities)
        return np.asarray(offset + coefficients[0] + design @ coefficients[1:])


def fit_columns(statistics: GramStatistics, score: GaussianScore, columns: Any = slice(None)) -> ModelFit:
    """Fit the model with the given columns of a population, from the data rather than the Gram matrix."""
    chosen = np.arange(statistics.n_columns)[columns]
    means, norms, size = statistics.means[chosen], statistics.norms[chosen], len(chosen)
    rows = statistics.with_ridge(score.ridge)[1]
    q, r, inverse, slopes = np.empty((size, len(rows))), *np.empty((2, size, size)), np.empty(size)
    residual, floor = kernels.fit_subset(rows, statistics.noise, chosen, size, q, r, inverse, slopes)
    if residual == kernels.RANK_DEFICIENT or (size > statistics.max_rank and not score.ridge):
        return _no_fit(statistics, score, size, ModelStatus.RANK_DEFICIENT)
    status = _status(statistics, size, residual <= floor)
    if not score.is_defined(size):
        return _no_fit(statistics, score, size, status)
    residual = min(max(residual, floor), 1.0)
    bayes_factor, shrinkage = (float(value[0]) for value in score.evaluate(size, np.array([residual])))
    if score.uses_determinant:
        bayes_factor -= float(np.log(np.diag(r)).sum())
    slopes *= shrinkage * statistics.response_norm / np.where(norms > 0, norms, 1.0)
    dispersion, degrees = _dispersion(score, size, residual, shrinkage)
    scaled = math.sqrt(shrinkage) * inverse / np.where(norms > 0, norms, 1.0)[:, None]
    return ModelFit(
        log_marginal=score.log_null + bayes_factor,
        log_bayes_factor=bayes_factor,
        status=status,
        coefficients=np.append(statistics.response_mean - means @ slopes, slopes),
        covariance_factor=_with_intercept(scaled, means, statistics.n_obs),
        dispersion=dispersion,
        degrees_of_freedom=degrees,
        shrinkage=shrinkage,
        r_squared=1.0 - residual,
    )


def _status(statistics: GramStatistics, size: int, exact: bool) -> ModelStatus:
    if size >= statistics.n_obs - 1:
        return ModelStatus.SATURATED
    if statistics.constant_response:
        return ModelStatus.CONSTANT_RESPONSE
    return ModelStatus.PERFECT_FIT if exact else ModelStatus.OK


def _no_fit(statistics: GramStatistics, score: GaussianScore, size: int, status: ModelStatus) -> ModelFit:
    """Return a model without a marginal likelihood: it predicts the mean and claims nothing."""
    total = math.exp(statistics.log_total)
    return ModelFit(
        log_marginal=-math.inf,
        log_bayes_factor=-math.inf,
        status=status,
        coefficients=np.append(statistics.response_mean, np.zeros(size)),
        covariance_factor=np.diag(np.append(1.0 / math.sqrt(statistics.n_obs), np.zeros(size))),
        dispersion=score.known_variance or total / statistics.n_obs,
        degrees_of_freedom=math.inf if score.known_variance else max(statistics.n_obs - 1.0, 0.0),
        shrinkage=0.0,
        r_squared=0.0,
    )


def _with_intercept(slopes: FloatArray, means: FloatArray, n_obs: float) -> FloatArray:
    """Factor of the covariance of (intercept, slopes); the mean of the response is independent of the slopes."""
    size = len(slopes)
    factor = np.zeros((size + 1, size + 1))
    factor[0, 0] = 1.0 / math.sqrt(n_obs)
    factor[0, 1:] = -means @ slopes
    factor[1:, 1:] = slopes
    return factor


def _dispersion(score: GaussianScore, size: int, residual: float, shrinkage: float) -> tuple[float, float]:
    """Squared scale of the posterior of the noise variance and its degrees of freedom."""
    if score.known_variance is not None:
        return score.known_variance, math.inf
    total = math.exp(score.log_total)
    floor = score.noise_floor**2 * total / score.n_obs
    if score.prior.name in ("bic", "aic"):
        degrees = max(score.n_obs - 1.0 - size, 1.0)
        return max(residual * total / degrees, floor), degrees
    quadratic = residual + (1.0 - shrinkage) * (1.0 - residual)
    return quadratic * total / (2.0 * score.shape) * score.variance_integral.inflation(quadratic), 2.0 * score.shape
