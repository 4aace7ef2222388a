"""Generalized linear models of one population of columns, fitted one by one or averaged."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from bgnlm._typing import BoolArray, FloatArray, IntArray
from bgnlm.kernels import glm as kernels
from bgnlm.kernels import glm_walk as walk_kernels
from bgnlm.kernels.families import row_terms
from bgnlm.likelihood.glm import GlmStatistics
from bgnlm.likelihood.glm_score import MEAN_LOG_G, MEAN_U, RANK_TOLERANCE, WIDTH_LOG_G, GlmScore
from bgnlm.likelihood.model_fit import CoefficientSpread, ModelFit, upper_factor
from bgnlm.likelihood.script import script_deviances, script_fit
from bgnlm.likelihood.status import ModelStatus
from bgnlm.likelihood.subsets import unpack

_STEP = 1e-3  # of the linear predictor, for a difference


@dataclass(frozen=True, eq=False)
class GlmPopulation:
    """All models over some columns."""

    score: GlmScore

    def fit(self, columns: list[int]) -> ModelFit:
        """Fit one model.

        Where g is integrated out, coefficients and covariance are those at the posterior mean of 1 / (1 + g).
        """
        return self.fit_all([columns])[0]

    def fit_all(self, models: Sequence[Sequence[int]], *, with_spread: bool = False) -> list[ModelFit]:
        """Fit several models, each given by its columns; quickest where one resembles the one before."""
        included = np.zeros((len(models) + 1, self.score.statistics.n_columns), dtype=np.bool_)
        for row, columns in zip(included[1:], models, strict=True):
            row[list(columns)] = True
        values, status, of_g = self.score.evaluate(included)
        fits = []
        for columns, value, code, row in zip(models, values[1:], status[1:], of_g[1:].tolist(), strict=True):
            fit = self._fit(columns, float(value), float(values[0]), ModelStatus(int(code)), row[MEAN_U])
            chosen = np.array(columns, dtype=np.int64)
            fits.append(replace(fit, spread=self._spread(chosen, fit, row)) if with_spread else fit)
        return fits

    def log_marginals(self, models: Sequence[Sequence[int]]) -> FloatArray:
        """Score several models, each given by its columns."""
        included = np.zeros((len(models), self.score.statistics.n_columns), dtype=np.bool_)
        for row, columns in zip(included, models, strict=True):
            row[list(columns)] = True
        return self.score.log_marginals(included)[0]

    def _fit(self, columns: Sequence[int], value: float, null: float, status: ModelStatus, mean_u: float) -> ModelFit:
        coefficients, factor, dispersion, gain = self._mode(np.array(columns, dtype=np.int64), mean_u, status)
        return ModelFit(
            log_marginal=value,
            log_bayes_factor=value - null if np.isfinite([value, null]).all() else -math.inf,
            status=status,
            coefficients=coefficients,
            covariance_factor=factor,
            dispersion=dispersion,
            degrees_of_freedom=math.inf,
            shrinkage=1.0 - mean_u,
            r_squared=-math.expm1(-2.0 * max(gain, 0.0) / self.score.statistics.n_obs),
        )

    def _spread(self, columns: IntArray, fit: ModelFit, of_g: Sequence[float]) -> CoefficientSpread:
        """Mean of the coefficients and factor of their covariance, over g and with the skewness of the likelihood.

        At two values of g, a standard deviation of log g to either side of its mean.
        """
        if not (len(columns) and of_g[WIDTH_LOG_G] > 0.0):
            shift = self._skew(columns, fit.coefficients, fit.covariance_factor, fit.dispersion)
            return CoefficientSpread(fit.coefficients + shift, fit.covariance_factor)
        means, factors = [], []
        for side in (-1.0, 1.0):
            log_g = of_g[MEAN_LOG_G] + side * of_g[WIDTH_LOG_G]
            u = 1.0 / (1.0 + math.exp(min(log_g, 700.0)))
            coefficients, factor, dispersion, _ = self._mode(columns, u, fit.status)
            means.append(coefficients + self._skew(columns, coefficients, factor, dispersion))
            factors.append(factor)
        mean, half = 0.5 * (means[0] + means[1]), 0.5 * (means[1] - means[0])
        return CoefficientSpread(mean, upper_factor(np.hstack([*(math.sqrt(0.5) * f for f in factors), half[:, None]])))

    def _skew(self, columns: IntArray, coefficients: FloatArray, factor: FloatArray, dispersion: float) -> FloatArray:
        """From the mode to the mean of the coefficients, to first order in the third derivative of the likelihood."""
        statistics = self.score.statistics
        data, design = statistics.data, statistics.original(columns)
        eta = data.offset + design @ coefficients
        unused, before, behind = np.empty((3, len(eta)))
        row_terms(data.family, dispersion, data.y, data.weights, eta - _STEP, unused, before)
        row_terms(data.family, dispersion, data.y, data.weights, eta + _STEP, unused, behind)
        third = (before - behind) / (2.0 * _STEP)
        spread = design @ factor
        variance = np.square(spread).sum(axis=1)
        shift = 0.5 * (third * variance) @ spread  # in units of the factor
        size = float(np.linalg.norm(shift))
        if not math.isfinite(size):
            return np.zeros_like(coefficients)
        return np.asarray(factor @ shift / max(size, 1.0))  # farther off the expansion says nothing

    def average_coefficients(self, masks: IntArray, probabilities: FloatArray) -> FloatArray:
        """Average of the models' coefficients, intercept first; a column not in a model counts as 0."""
        average = np.zeros(self.score.statistics.n_columns + 1)
        for coefficients, probability in zip(self._coefficients(masks), probabilities, strict=True):
            average += probability * coefficients
        return average

    def average_mean(
        self, masks: IntArray, probabilities: FloatArray, design: FloatArray, offset: FloatArray
    ) -> FloatArray:
        """Average of the models' means for new rows."""
        family = self.score.statistics.family
        mean = np.zeros(len(design))
        for coefficients, probability in zip(self._coefficients(masks), probabilities, strict=True):
            mean += probability * family.mean(offset + coefficients[0] + design @ coefficients[1:])
        return mean

    def _coefficients(self, masks: IntArray) -> FloatArray:
        """Coefficients of each model, zero for columns it does not have."""
        included = unpack(masks, self.score.statistics.n_columns)
        _, status, of_g = self.score.evaluate(included)
        rows = np.zeros((len(masks), included.shape[1] + 1))
        for i, row in enumerate(included):
            columns = np.flatnonzero(row)
            mode = self._mode(columns, float(of_g[i, MEAN_U]), ModelStatus(int(status[i])))
            rows[i, np.append(0, columns + 1)] = mode[0]
        return rows

    def _nothing(self, size: int) -> tuple[FloatArray, FloatArray, float, float]:
        """What `_mode` answers for a model without one: the null model."""
        statistics = self.score.statistics
        coefficients = np.append(statistics.intercept, np.zeros(size))
        return coefficients, np.zeros((size + 1, size + 1)), statistics.dispersion, 0.0

    def _mode(
        self, columns: IntArray, mean_u: float, status: ModelStatus
    ) -> tuple[FloatArray, FloatArray, float, float]:
        """Coefficients on the scale of the data, covariance factor, dispersion, log-likelihood over the null."""
        statistics = self.score.statistics
        size = len(columns)
        if status in (ModelStatus.RANK_DEFICIENT, ModelStatus.CONSTANT_RESPONSE):
            return self._nothing(size)
        if self.score.prior.name == "script":
            return script_fit(statistics, columns, self._null_script_deviance)
        unit = np.append(statistics.intercept, np.zeros(size))
        precision, shrinkage = self.score.precision(columns, mean_u)
        mode, work = self._maximise(columns, precision, unit)
        factor = _covariance_factor(work, size)
        if not (np.isfinite(factor).all() and np.isfinite(unit).all()):
            return self._nothing(size)
        gain = self._log_likelihood(mode) - self._null_log_likelihood
        return *_to_data_scale(statistics, columns, unit, factor, shrinkage), float(mode.dispersion), gain

    def _maximise(
        self, columns: IntArray, precision: FloatArray, start: FloatArray
    ) -> tuple[kernels.Mode, kernels.Workspace]:
        """Find the mode; `start` becomes its coefficients."""
        data, dispersion, size = self.score.statistics.data, self.score.statistics.dispersion, len(columns)
        work = kernels.workspace(len(data.y), size)
        return kernels.fit_mode(data, dispersion, columns, size, precision, kernels.ENOUGH, start, work), work

    def _log_likelihood(self, mode: kernels.Mode) -> float:
        """Log-likelihood with the constants that differ between models."""
        if not self.score.statistics.family.has_dispersion:
            return float(mode.log_likelihood)
        return float(mode.log_likelihood + self.score.constants(np.array([mode.dispersion]))[0])

    @cached_property
    def _null_script_deviance(self) -> float:
        none = np.zeros((1, self.score.statistics.n_columns), dtype=np.bool_)
        return float(script_deviances(self.score.statistics, none)[0])

    @cached_property
    def _null_log_likelihood(self) -> float:
        start = np.array([self.score.statistics.intercept])
        return self._log_likelihood(self._maximise(np.empty(0, np.int64), np.empty((0, 0)), start)[0])


def g_prior_mode(statistics: GlmStatistics, g: float) -> FloatArray | None:
    """Coefficients of all columns at once under a given g, and nothing else; None if there are none.

    So it is for columns that are linearly dependent, and for a response without variation.
    """
    if statistics.constant_response:
        return None
    space = walk_kernels.scratch(len(statistics.data.y), statistics.n_columns)
    row = np.empty((1, walk_kernels.N_STATISTICS))
    walk_kernels.walk_models(
        statistics.data,
        np.ones((1, statistics.n_columns), dtype=np.bool_),
        walk_kernels.NULL_INFORMATION,
        1.0 / g,
        np.empty(0),
        statistics.dispersion,
        RANK_TOLERANCE,
        statistics.start(),
        space,
        row,
    )
    if np.isnan(row[0, walk_kernels.LOG_NULL_DETERMINANT]):
        return None
    slopes = space.coefficients[1:] / statistics.norms
    coefficients = np.append(space.coefficients[0] - statistics.means @ slopes, slopes)
    return coefficients if np.isfinite(coefficients).all() else None


def _covariance_factor(work: kernels.Workspace, size: int) -> FloatArray:
    """F with covariance F F' of intercept and slopes; NaN where the information has no factor."""
    factor = np.full((size + 1, size + 1), np.nan)
    lower = np.where(_lower_triangle(size), work.factor[:size, :size], 0.0)
    if np.isfinite(lower).all() and (lower.diagonal() > 0).all() and work.moments[0] > 0:
        factor[1:, 1:] = np.linalg.inv(lower).T
        # The intercept at the centre of the columns is independent of the slopes.
        factor[1:, 0], factor[0, 0] = 0.0, 1.0 / math.sqrt(work.moments[0])
        factor[0, 1:] = -work.moments[1 : size + 1] @ factor[1:, 1:]
    return factor


@lru_cache
def _lower_triangle(size: int) -> BoolArray:
    return np.tri(size, dtype=np.bool_)


def _to_data_scale(
    statistics: GlmStatistics, columns: IntArray, unit: FloatArray, factor: FloatArray, shrinkage: float
) -> tuple[FloatArray, FloatArray]:
    """Undo centring and scaling of the columns, after shrinking the slopes about the centre."""
    means, norms = statistics.means[columns], statistics.norms[columns]
    coefficients, scaled = unit.copy(), factor.copy()
    coefficients[1:] *= shrinkage / norms
    scaled[1:] *= (math.sqrt(shrinkage) / norms)[:, None]
    coefficients[0] -= means @ coefficients[1:]
    scaled[0] -= means @ scaled[1:]
    return coefficients, scaled
