"""Scores of generalized linear models under the priors on the coefficients."""

import math
from functools import cached_property, lru_cache

import numpy as np

from bgnlm._typing import AnyArray, BoolArray, FloatArray, IntArray
from bgnlm.errors import SettingError
from bgnlm.kernels import families as row_kernels
from bgnlm.kernels import glm_mixtures as mixture_kernels
from bgnlm.kernels import glm_walk as kernels
from bgnlm.likelihood.coefficient_priors import MIXTURES, CoefficientPrior, MixtureParameters, mixture_parameters
from bgnlm.likelihood.g_mixture import MixingDensity, density_of, log_mixture, log_normaliser, zellner_siow
from bgnlm.likelihood.glm import GlmStatistics
from bgnlm.likelihood.script import script_deviances
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.likelihood.status import ModelStatus

_LOG_2PI = math.log(2.0 * math.pi)
RANK_TOLERANCE = 1e-12
# Information about some direction, relative to the null model's, that means an estimate at infinity.
_SEPARATED = 1e-6
_FLAT = ("jeffreys", "bic", "aic")
# Columns of what is known of g: posterior mean of u, posterior mean and standard deviation of log g.
MEAN_U, MEAN_LOG_G, WIDTH_LOG_G = range(3)
_ZELLNER_SIOW = MixtureParameters(a=1.0, b=1.0)  # a stand-in: it has a density of its own
# In the order of the states of `glm_mixtures`.
_STATUS_OF_STATE = np.array(
    [ModelStatus.OK, ModelStatus.RANK_DEFICIENT, ModelStatus.IMPRECISE, ModelStatus.SEPARATED], dtype=np.int8
)


class GlmScore:
    """Log marginal likelihoods of models over the columns of `statistics`, given as rows of Booleans.

    With `n_slots` the `log_sizes` of models are added to them.
    """

    def __init__(self, prior: CoefficientPrior, statistics: GlmStatistics, n_slots: int = 0) -> None:
        if prior.name == "known-variance":
            raise SettingError(
                f"The prior 'known-variance' is for the Gaussian family; got family {statistics.family.name!r}. "
                "Use 'jeffreys' for the paper's prior."
            )
        self.prior = prior
        self.statistics = statistics
        self.n_slots = n_slots
        # Parameters with a flat prior that Laplace's method integrates out: intercept and log dispersion.
        self._n_flat = 1 + int(statistics.family.has_dispersion)

    def log_marginals(self, included: BoolArray) -> tuple[FloatArray, AnyArray]:
        """Compute log p(y | m) with all constants, and the `ModelStatus` of each model."""
        values, status, _ = self.evaluate(included)
        return values, status

    def evaluate(self, included: BoolArray) -> tuple[FloatArray, AnyArray, FloatArray]:
        """The same, and what is known of g, in columns; u = 1 / (1 + g) is 0 for priors without g."""
        values, status, of_g = self._evaluate(included, included.sum(axis=1))
        if of_g.ndim == 1:  # one value of u
            log_g = np.log(np.maximum(1.0 - of_g, 1e-300)) - np.log(np.maximum(of_g, 1e-300))
            of_g = np.column_stack([of_g, log_g, np.zeros_like(of_g)])
        return values + log_sizes(included.sum(axis=1), self.n_slots), status, of_g

    def _evaluate(self, included: BoolArray, sizes: IntArray) -> tuple[FloatArray, AnyArray, FloatArray]:
        if self.statistics.constant_response:
            status = np.full(len(included), ModelStatus.CONSTANT_RESPONSE, dtype=np.int8)
            return self._nothing_explained(sizes), status, np.ones(len(included))
        if self.prior.name == "script":
            return self._as_the_scripts(included)
        if self.prior.name in _FLAT or self._is_local:
            values, status, of_g = self._at_estimate(included, sizes)
        elif self.prior.name in ("g", "gaussian"):
            values, status, of_g = self._at_mode(included, sizes)
        else:
            values, status, of_g = self._over_g(included)
        saturated = (sizes >= self.statistics.n_obs - 1) & (status == ModelStatus.OK)
        if self.prior.name == "beta-prime":
            without = (sizes >= self.statistics.n_obs - 1.5) & (sizes > 0)
            values[without] = -np.inf
            saturated |= without & (status != ModelStatus.RANK_DEFICIENT)
        status[saturated] = ModelStatus.SATURATED
        lost = ~np.isfinite(values) & (status == ModelStatus.OK)  # beyond the range of floating-point numbers
        lost |= np.isnan(values) | (values == np.inf)
        values[lost], status[lost] = -np.inf, ModelStatus.IMPRECISE
        return values, status, np.nan_to_num(of_g, nan=1.0, posinf=1.0, neginf=0.0)

    def precision(self, columns: IntArray, mean_u: float) -> tuple[FloatArray, float]:
        """Prior precision of the slopes of one model at the posterior mean of u, and the factor on its mode."""
        size = len(columns)
        if self.prior.name == "gaussian":
            return np.diag(np.square(self.statistics.deviations[columns]) / self.prior["variance"]), 1.0
        if self.prior.name in _FLAT or self._is_local:
            return np.zeros((size, size)), 1.0 - mean_u
        u = min(mean_u, 1.0 - 1e-12)
        return u / (1.0 - u) * self.statistics.data.null_information[np.ix_(columns, columns)], 1.0

    @cached_property
    def normal_precision(self) -> FloatArray:
        """Precision of a normal prior of all slopes that is this prior, or near it: unit information."""
        if self.prior.name == "gaussian":
            return self.precision(np.arange(self.statistics.n_columns), 0.0)[0]
        return np.asarray(self.statistics.data.null_information / self.statistics.n_obs)

    def _as_the_scripts(self, included: BoolArray) -> tuple[FloatArray, AnyArray, FloatArray]:
        """Minus half the deviance, by the iterations of the authors' scripts."""
        values = -0.5 * script_deviances(self.statistics, included)
        return values, np.zeros(len(included), dtype=np.int8), np.zeros(len(included))

    @property
    def _is_local(self) -> bool:
        return self.prior.information == "local" and self.prior.name != "gaussian"

    def _at_estimate(self, included: BoolArray, sizes: IntArray) -> tuple[FloatArray, AnyArray, FloatArray]:
        """Priors expanded at the maximum likelihood estimate."""
        rows = self._walk(included, kernels.NO_PRIOR, 0.0)
        likelihood = rows[:, kernels.LOG_LIKELIHOOD] + self.constants(rows[:, kernels.DISPERSION])
        status = self._status(rows)
        separated = (rows[:, kernels.PIVOT] < _SEPARATED) & (status != ModelStatus.RANK_DEFICIENT)
        status[separated] = ModelStatus.SEPARATED
        mean_u = np.zeros(len(included))
        match self.prior.name:
            case "jeffreys":
                value = likelihood + 0.5 * (sizes + 1) * _LOG_2PI
            case "bic":
                value = likelihood - 0.5 * (sizes + 1) * math.log(self.statistics.n_obs)
            case "aic":
                value = likelihood - (sizes + 1)
            case _:
                with np.errstate(divide="ignore"):
                    spread = np.log(rows[:, kernels.TOTAL_INFORMATION]) + rows[:, kernels.LOG_CURVATURE]
                value = likelihood + 0.5 * (self._n_flat * _LOG_2PI - spread)
                factor, mean_u = self._local_factor(sizes, rows[:, kernels.QUADRATIC])
                value += factor
                value[separated] = -np.inf
        value[status == ModelStatus.RANK_DEFICIENT] = -np.inf
        return value, status, mean_u

    def _at_mode(self, included: BoolArray, sizes: IntArray) -> tuple[FloatArray, AnyArray, FloatArray]:
        """A normal prior with given covariance: Laplace's method once for each model."""
        log_precision = np.zeros(len(included))
        if self.prior.name == "gaussian":
            diagonal = np.square(self.statistics.deviations) / self.prior["variance"]
            rows = self._walk(included, kernels.DIAGONAL, 0.0, diagonal)
            with np.errstate(divide="ignore"):
                log_diagonal = np.log(diagonal)
            log_precision = np.where(included, log_diagonal, 0.0).sum(axis=1)
        else:
            g = self._given_g
            rows = self._walk(included, kernels.NULL_INFORMATION, 1.0 / g)
            log_precision = rows[:, kernels.LOG_NULL_DETERMINANT] - sizes * math.log(g)
        likelihood = rows[:, kernels.LOG_LIKELIHOOD] + self.constants(rows[:, kernels.DISPERSION])
        value = likelihood - rows[:, kernels.PENALTY]
        value += 0.5 * (log_precision + self._n_flat * _LOG_2PI - rows[:, kernels.LOG_DETERMINANT])
        status = self._status(rows)
        status[(rows[:, kernels.PIVOT] == 0.0) & (status == ModelStatus.OK)] = ModelStatus.IMPRECISE
        value[status == ModelStatus.RANK_DEFICIENT] = -np.inf
        mean_u = 0.0 if self.prior.name == "gaussian" else 1.0 / (1.0 + self._given_g)
        return value, status, np.full(len(included), mean_u)

    def _over_g(self, included: BoolArray) -> tuple[FloatArray, AnyArray, FloatArray]:
        """Integrate (or maximise) over g, with Laplace's method at each."""
        statistics = self.statistics
        value, of_g = np.empty(len(included)), np.empty((len(included), 3))
        state = np.empty(len(included), dtype=np.int8)
        peaks, steps = np.full((2, statistics.n_columns + 1), np.nan)
        mixture_kernels.walk_mixtures(
            statistics.data,
            included,
            self.mixing_prior,
            statistics.dispersion,
            RANK_TOLERANCE,
            statistics.start(),
            peaks,
            steps,
            kernels.scratch(len(statistics.data.y), statistics.n_columns),
            mixture_kernels.lattice(statistics.n_columns),
            value,
            of_g,
            state,
        )
        value += 0.5 * self._n_flat * _LOG_2PI
        if not statistics.family.has_dispersion:
            value += self.constants(np.ones(1))[0]
        value[state == mixture_kernels.ENDLESS] = -np.inf
        return value, _STATUS_OF_STATE[state], of_g

    @cached_property
    def mixing_prior(self) -> mixture_kernels.MixingPrior:
        """Prior of g for the kernels."""
        n = self.statistics.n_obs
        sizes = range(self.statistics.n_columns + 1)
        maximise = self.prior.name == "eb-local"
        if maximise:  # any prior will do
            parameters = [MixtureParameters(a=1.0, b=2.0) for _ in sizes]
        else:
            parameters = [mixture_parameters(self.prior, n, size) or _ZELLNER_SIOW for size in sizes]
        is_zellner_siow = parameters[0] is _ZELLNER_SIOW
        log_norm = np.array(
            [0.0 if maximise else _log_normaliser(None if is_zellner_siow else row, n) for row in parameters]
        )
        a, b, s, r, v, kappa = np.array(parameters).T.copy()
        # Begin at g = n, or in the middle of what the prior allows, with the step that the narrowest integrand needs.
        first_x = np.where((v > 0.5 * n) | is_zellner_siow, 0.0, np.log(v / (1.0 + n)))
        first_step = np.array([mixture_kernels.step_for.py_func(math.sqrt(2.0 / (size + 2.0))) for size in sizes])
        return mixture_kernels.MixingPrior(
            maximise, is_zellner_siow, n, a, b, s, r, v, kappa, log_norm, first_x, first_step
        )

    def _local_factor(self, sizes: IntArray, quadratic: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log of the integral of (1+g)^(-k/2) exp(-Q / (2 (1+g))) over the prior of g, and the posterior mean of u."""
        factor, mean_u = np.zeros(len(sizes)), np.ones(len(sizes))
        for size in np.unique(sizes[sizes > 0]).tolist():
            here = sizes == size
            q = np.nan_to_num(quadratic[here])[:, None]

            def log_likelihood(log_u: FloatArray, q: FloatArray = q, size: int = size) -> FloatArray:
                return 0.5 * size * log_u - 0.5 * q * np.exp(log_u)

            if self.prior.name in MIXTURES:
                factor[here], mean_u[here] = log_mixture(self._density(size), size, log_likelihood)
                continue
            if self.prior.name == "g":
                log_u = np.full_like(q, -math.log1p(self._given_g))
            else:
                log_u = np.minimum(np.log(size / np.maximum(q, 1e-300)), 0.0)
            factor[here], mean_u[here] = log_likelihood(log_u)[:, 0], np.exp(log_u)[:, 0]
        return factor, mean_u

    def _nothing_explained(self, sizes: IntArray) -> FloatArray:
        """A response without variation: the quadratic form of every model is zero."""
        n = self.statistics.n_obs
        match self.prior.name:
            case "jeffreys":
                return np.asarray(0.5 * (sizes + 1) * _LOG_2PI)
            case "bic":
                return np.asarray(-0.5 * (sizes + 1) * math.log(n))
            case "aic":
                return np.asarray(-(sizes + 1.0))
            case "script":
                return np.zeros(len(sizes))
            case "gaussian":
                return np.asarray(-0.5 * sizes * math.log1p(n * self.prior["variance"]))
            case _:
                return self._local_factor(sizes, np.zeros(len(sizes)))[0]

    def _walk(self, included: BoolArray, kind: int, scale: float, diagonal: FloatArray | None = None) -> FloatArray:
        statistics = self.statistics
        rows = np.empty((len(included), kernels.N_STATISTICS))
        kernels.walk_models(
            statistics.data,
            included,
            kind,
            scale,
            np.empty(0) if diagonal is None else diagonal,
            statistics.dispersion,
            RANK_TOLERANCE,
            statistics.start(),
            kernels.scratch(len(statistics.data.y), statistics.n_columns),
            rows,
        )
        return rows

    def constants(self, dispersions: FloatArray) -> FloatArray:
        """Log-likelihood terms that depend on response and dispersion alone, for each dispersion."""
        data = self.statistics.data
        if not self.statistics.family.has_dispersion:
            return np.full(len(dispersions), row_kernels.log_constants(data.family, 1.0, data.y, data.weights))
        return np.array([row_kernels.log_constants(data.family, d, data.y, data.weights) for d in dispersions])

    @staticmethod
    def _status(rows: FloatArray) -> AnyArray:
        deficient = np.isnan(rows[:, kernels.LOG_NULL_DETERMINANT])
        return np.where(deficient, ModelStatus.RANK_DEFICIENT, ModelStatus.OK).astype(np.int8)

    @property
    def _given_g(self) -> float:
        return self.statistics.n_obs if self.prior["g"] is None else float(self.prior["g"])

    def _density(self, size: int) -> MixingDensity:
        return _density_of(mixture_parameters(self.prior, self.statistics.n_obs, size), self.statistics.n_obs)


def _density_of(parameters: MixtureParameters | None, n_obs: float) -> MixingDensity:
    return zellner_siow(n_obs) if parameters is None else density_of(parameters)


@lru_cache(maxsize=4096)
def _log_normaliser(parameters: MixtureParameters | None, n_obs: float) -> float:
    return log_normaliser(_density_of(parameters, n_obs))
