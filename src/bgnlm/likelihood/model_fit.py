"""What a fitted model is: its marginal likelihood and what prediction needs."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.likelihood.status import ModelStatus


class CoefficientSpread(NamedTuple):
    """Mean of the coefficients and factor of their covariance; for a skew posterior the mean is not the mode."""

    mean: FloatArray
    covariance_factor: FloatArray


def upper_factor(factor: FloatArray) -> FloatArray:
    """Return the square, upper triangular matrix of the same covariance."""
    if factor.shape[0] == factor.shape[1] and not np.tril(factor, -1).any():
        return factor
    from scipy.linalg import rq

    size = len(factor)
    return np.asarray(rq(factor, mode="r")[:, -size:])


@dataclass(frozen=True, eq=False)
class ModelFit:
    """One fitted model.

    Attributes
    ----------
    log_marginal
        log p(y | m), -inf where the model has none.
    log_bayes_factor
        The same relative to the model with the intercept alone.
    status
        Whether anything is unusual; `bgnlm.likelihood.status.advice` says what to do.
    coefficients
        Posterior mode, intercept first, on the scale of the columns as given. For mixtures of g-priors the
        posterior mean.
    covariance_factor
        F with Cov(coefficients | dispersion) = dispersion * F F' for the Gaussian family and F F' for the others, at
        the posterior mean of g / (1 + g).
    dispersion
        Gaussian: noise variance, the squared scale of its posterior, so that the predictive distribution at x is
        Student t with `degrees_of_freedom` and squared scale dispersion * (1 + x' F F' x). Gamma: shape. Negative
        binomial: size. Others: 1.
    degrees_of_freedom
        Infinite where the variance is known, and for families other than the Gaussian.
    shrinkage
        Posterior mean of g / (1 + g); 1 for priors without g.
    r_squared
        1 - RSS / TSS of the least-squares fit (of the ridge fit for the prior "gaussian"); for other families
        1 - (likelihood ratio of the null model)^(2/n).
    spread
        For families other than the Gaussian, where asked for: mean and covariance of the coefficients over g, and with
        the skewness of the likelihood.
    """

    log_marginal: float
    log_bayes_factor: float
    status: ModelStatus
    coefficients: FloatArray
    covariance_factor: FloatArray
    dispersion: float
    degrees_of_freedom: float
    shrinkage: float
    r_squared: float
    spread: CoefficientSpread | None = None
