"""Integrals over the noise variance, with or without a floor under it.

With the prior 1/sigma^2 on sigma > s, everything a Gaussian marginal likelihood needs is
log int_{s^2}^inf (sigma^2)^(-a-1) exp(-q / (2 sigma^2)) d sigma^2
= log Gamma(a) - a log(q/2) + log P(a, q / (2 s^2)), P the regularised lower incomplete gamma function.
"""

import numpy as np

from bgnlm._typing import FloatArray

_TINY = 1e-280
_SERIES_TERMS = 100_000


def log_lower_gamma(a: float, z: FloatArray) -> FloatArray:
    """Compute log P(a, z) for a > 0 and z > 0, also where P itself is below the smallest double."""
    from scipy.special import gammainc

    direct = gammainc(a, z)
    with np.errstate(divide="ignore"):
        value = np.log(direct)
    # Near 1 the complement carries the digits.
    upper = direct > 0.5
    if upper.any():
        from scipy.special import gammaincc

        value[upper] = np.log1p(-gammaincc(a, z[upper]))
    tiny = direct < _TINY
    if tiny.any():
        value[tiny] = _log_lower_gamma_series(a, z[tiny])
    return np.asarray(value)


def _log_lower_gamma_series(a: float, z: FloatArray) -> FloatArray:
    """P(a, z) = z^a e^-z / Gamma(a + 1) * sum_j z^j / ((a+1)...(a+j)); all terms positive, z well below a."""
    from scipy.special import gammaln

    total = np.ones_like(z)
    term = np.ones_like(z)
    for j in range(1, _SERIES_TERMS):
        term = term * (z / (a + j))
        total += term
        if (term <= 1e-17 * total).all():
            break
    return np.asarray(a * np.log(z) - z - gammaln(a + 1.0) + np.log(total))


class VarianceIntegral:
    """The integral as a function of q = A * TSS relative to its value at A = 1.

    Parameters
    ----------
    shape
        The a of the formula above.
    n_obs
        Number of observations (sum of weights); sd(y)^2 = TSS / n_obs.
    noise_floor
        The smallest noise standard deviation as a fraction of sd(y); 0 for none.
    """

    def __init__(self, shape: float, n_obs: float, noise_floor: float) -> None:
        self.shape = shape
        self.noise_floor = noise_floor
        # q / (2 s^2) at A = 1, where q = TSS and s^2 = noise_floor^2 TSS / n.
        self._scale = 0.5 * n_obs / noise_floor**2 if noise_floor else np.inf
        self._log_p_null = self._log_p(np.ones(1))[0]

    def _log_p(self, quadratic: FloatArray) -> FloatArray:
        if not self.noise_floor:
            return np.zeros_like(quadratic)
        return log_lower_gamma(self.shape, self._scale * quadratic)

    def relative(self, quadratic: FloatArray) -> FloatArray:
        """Log of the integral at q = `quadratic` * TSS minus its log at q = TSS."""
        flat = np.ravel(quadratic)
        value = -self.shape * np.log(flat) + self._log_p(flat) - self._log_p_null
        return np.asarray(value.reshape(np.shape(quadratic)))

    def inflation(self, quadratic: float) -> float:
        """By how much the floor raises the posterior mean of the variance; 1 without a floor.

        E[sigma^2] is the ratio of the integrals with shapes a - 1 and a.
        """
        if not self.noise_floor or self.shape <= 1.0:
            return 1.0
        z = np.array([self._scale * quadratic])
        return float(np.exp(log_lower_gamma(self.shape - 1.0, z) - log_lower_gamma(self.shape, z))[0])

    def log_at_null(self, log_total: float) -> float:
        """Log of the integral at q = TSS."""
        from scipy.special import gammaln

        return float(gammaln(self.shape) - self.shape * (log_total - np.log(2.0)) + self._log_p_null)
