"""Exact Gaussian marginal likelihoods as functions of n, k, RSS and TSS (section 3.1).

Everything is relative to the model with the intercept alone; `log_null` holds the constants. The intercept
has a flat prior, the noise variance 1/sigma^2, restricted to sigma > s where there is a noise floor.
"""

import math

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.likelihood.coefficient_priors import MIXTURES, CoefficientPrior, mixture_parameters
from bgnlm.likelihood.g_mixture import MixingDensity, density_of, log_mixture, zellner_siow
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.likelihood.variance import VarianceIntegral

_LOG_2PI = math.log(2.0 * math.pi)


class GaussianScore:
    """log p(y | m) - log p(y | null) for one data set and prior, as a function of size and RSS / TSS.

    Parameters
    ----------
    prior
        The prior on the coefficients.
    n_obs
        Number of observations: the sum of the frequency weights.
    log_total
        Log of the total sum of squares about the (weighted) mean.
    noise_floor
        Smallest noise standard deviation as a fraction of sd(y), 0 for none.
    n_slots
        Of `log_sizes`, which are added to the score; 0 for the marginal likelihood alone.
    """

    def __init__(
        self, prior: CoefficientPrior, n_obs: float, log_total: float, noise_floor: float = 0.0, n_slots: int = 0
    ) -> None:
        self.prior = prior
        self.n_obs = n_obs
        self.log_total = log_total
        self.noise_floor = noise_floor
        self.n_slots = n_slots
        self.shape = n_obs / 2 if prior.name == "jeffreys" else (n_obs - 1) / 2
        self.variance_integral = VarianceIntegral(self.shape, n_obs, noise_floor)

    @property
    def ridge(self) -> float:
        """What the prior adds to the diagonal of the unit-norm Gram matrix."""
        return 1.0 / (self.n_obs * self.prior["variance"]) if self.prior.name == "gaussian" else 0.0

    @property
    def uses_determinant(self) -> bool:
        """Whether half the log determinant of the (ridged) Gram block has to be subtracted."""
        return self.prior.name == "gaussian"

    @property
    def known_variance(self) -> float | None:
        """The noise variance where the prior fixes it."""
        match self.prior.name:
            case "known-variance":
                variance = float(self.prior["variance"])
            case "script":
                variance = 1.0
            case _:
                return None
        return max(variance, self.noise_floor**2 * math.exp(self.log_total) / self.n_obs)

    @property
    def log_null(self) -> float:
        """Log p(y | null), with all constants."""
        n = self.n_obs
        match self.prior.name:
            case "jeffreys":
                return self.variance_integral.log_at_null(self.log_total) - 0.5 * (n - 1) * _LOG_2PI
            case "bic":
                return self._log_likelihood_null() - 0.5 * math.log(n)
            case "aic":
                return self._log_likelihood_null() - 1.0
            case "known-variance":
                return self._log_likelihood_null() + 0.5 * _LOG_2PI
            case "script":
                return -0.5 * math.exp(self.log_total) / self._variance()
            case _:
                flat_intercept = -0.5 * math.log(n) - 0.5 * (n - 1) * _LOG_2PI
                return self.variance_integral.log_at_null(self.log_total) + flat_intercept

    def is_defined(self, size: int) -> bool:
        """Whether models with `size` columns have a marginal likelihood at all, data permitting."""
        match self.prior.name:
            case _ if size == 0:
                return True
            case "jeffreys" | "bic" | "aic":
                return size < self.n_obs - 1 or self.noise_floor > 0
            case "beta-prime":
                return size < self.n_obs - 1.5
            case _:
                return True

    def breakpoints(self, size: int) -> tuple[float, ...]:
        """Values of log(RSS / TSS) where the score is not smooth."""
        n = self.n_obs
        if self.prior.name == "eb-local" and 0 < size < n - 1:
            return (math.log1p(-size / (n - 1)),)
        if self.prior.name in ("bic", "aic") and self.noise_floor:
            return (2.0 * math.log(self.noise_floor),)
        return ()

    def log_bayes_factor(self, size: int, residual: FloatArray) -> FloatArray:
        """Score of models with `size` columns and RSS / TSS = `residual`, an array in (0, 1]."""
        return self._log_bayes_factor(size, residual) + log_sizes(size, self.n_slots)

    def _log_bayes_factor(self, size: int, residual: FloatArray) -> FloatArray:
        match self.prior.name:
            case _ if size == 0:
                return np.zeros_like(residual)
            case "jeffreys":
                return self.variance_integral.relative(residual) + 0.5 * size * _LOG_2PI
            case "bic":
                return self._profile(residual) - 0.5 * size * math.log(self.n_obs)
            case "aic":
                return self._profile(residual) - size
            case "known-variance":
                return self._explained(residual) + 0.5 * size * _LOG_2PI
            case "script":
                return self._explained(residual)
            case "gaussian":
                return self.variance_integral.relative(residual) + 0.5 * size * math.log(self.ridge)
            case "g" | "eb-local":
                return self._given_log_u(size, residual, self._log_u(size, residual))
            case name if name in MIXTURES:
                return self._mixture(size, residual)[0]
            case name:
                raise AssertionError(f"no score for the prior {name!r}")

    def evaluate(self, size: int, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """`log_bayes_factor` and `shrinkage` together, which for mixtures is half the work."""
        if size and self.prior.name in MIXTURES:
            value, mean_u = self._mixture(size, residual)
            return value + log_sizes(size, self.n_slots), 1.0 - mean_u
        return self.log_bayes_factor(size, residual), self.shrinkage(size, residual)

    def shrinkage(self, size: int, residual: FloatArray) -> FloatArray:
        """Posterior mean of g / (1 + g), the factor on the least-squares slopes; 1 for priors without g."""
        match self.prior.name:
            case _ if size == 0:
                return np.ones_like(residual)
            case "g" | "eb-local":
                return -np.expm1(self._log_u(size, residual))
            case name if name in MIXTURES:
                return 1.0 - self._mixture(size, residual)[1]
            case _:
                return np.ones_like(residual)

    def _variance(self) -> float:
        """The variance in the likelihood of the null model: known, or the restricted maximum likelihood."""
        return self.known_variance or math.exp(self.log_total) / self.n_obs

    def _log_likelihood_null(self) -> float:
        variance = self._variance()
        return -0.5 * (self.n_obs * (_LOG_2PI + math.log(variance)) + math.exp(self.log_total) / variance)

    def _explained(self, residual: FloatArray) -> FloatArray:
        return np.asarray(0.5 * math.exp(self.log_total) / self._variance() * (1.0 - residual))

    def _profile(self, residual: FloatArray) -> FloatArray:
        """Gain in log-likelihood with the variance at its maximum not below the floor."""

        def half_deviance(r: FloatArray) -> FloatArray:
            v = np.maximum(r, self.noise_floor**2)
            return 0.5 * self.n_obs * (np.log(v) + r / v)

        return np.asarray(half_deviance(np.ones(1)) - half_deviance(residual))

    def _given_log_u(self, size: int, residual: FloatArray, log_u: FloatArray) -> FloatArray:
        # r + u (1 - r) = 1 - (1 - r)(1 - u): the second form keeps the digits of r near 1.
        u = np.exp(log_u)
        explained = (1.0 - residual) * -np.expm1(log_u)
        quadratic = np.where(explained < 0.5, 1.0 - explained, residual + u * (1.0 - residual))
        return 0.5 * size * log_u + self.variance_integral.relative(quadratic)

    def _density(self, size: int) -> MixingDensity:
        parameters = mixture_parameters(self.prior, self.n_obs, size)
        return zellner_siow(self.n_obs) if parameters is None else density_of(parameters)

    def _mixture(self, size: int, residual: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Log of the integral over g and posterior mean of u."""
        flat = np.ravel(residual)[:, None]

        def log_likelihood(log_u: FloatArray) -> FloatArray:
            return self._given_log_u(size, flat, log_u)

        value, mean_u = log_mixture(self._density(size), size, log_likelihood)
        return value.reshape(np.shape(residual)), mean_u.reshape(np.shape(residual))

    def _log_u(self, size: int, residual: FloatArray) -> FloatArray:
        """Log u = -log(1 + g) of the priors with a single g: given, or the g >= 0 that fits best."""
        if self.prior.name == "g":
            g = self.n_obs if self.prior["g"] is None else self.prior["g"]
            return np.full_like(residual, -math.log1p(g))
        degrees = self.n_obs - 1 - size
        if not self.noise_floor:
            if degrees <= 0:
                return np.zeros_like(residual)
            with np.errstate(divide="ignore"):
                log_f = np.log((1.0 - residual) / residual * (degrees / size))
            return -np.maximum(log_f, 0.0)
        return self._search_log_u(size, np.ravel(residual)).reshape(np.shape(residual))

    def _search_log_u(self, size: int, residual: FloatArray) -> FloatArray:
        """Maximise by repeated refinement of a grid; the maximum is unique."""
        low = np.full((len(residual), 1), -120.0)
        high = np.zeros((len(residual), 1))
        grid = np.linspace(0.0, 1.0, 41)[None, :]
        for _ in range(7):
            log_u = low + (high - low) * grid
            best = self._given_log_u(size, residual[:, None], log_u).argmax(axis=1)[:, None]
            step = (high - low) / 40.0
            centre = np.take_along_axis(log_u, best, axis=1)
            low, high = centre - step, np.minimum(centre + step, 0.0)
        return np.asarray(centre[:, 0])
