"""Distributions of hyperparameters on their unbounded scale."""

import math
from dataclasses import dataclass

from bgnlm._validation import check_number

FARTHEST = 60.0  # of an unbounded hyperparameter; beyond, powers overflow


@dataclass(frozen=True)
class Gamma:
    """Gamma distribution of a precision; the density is that of its logarithm.

    Examples
    --------
    >>> from bgnlm.latent import Gamma, Grouped
    >>> Grouped("patient", precision_prior=Gamma(1, 0.5)).precision_prior.rate
    0.5
    """

    shape: float = 1.0
    rate: float = 5e-5

    def __post_init__(self) -> None:
        check_number(self.shape, "shape", above=0.0, high=1e6)
        check_number(self.rate, "rate", above=0.0, high=1e12)

    def log_density(self, log_precision: float) -> float:
        """Log density of the logarithm of the precision."""
        precision = math.exp(log_precision)
        constant = self.shape * math.log(self.rate) - math.lgamma(self.shape)
        return constant + self.shape * log_precision - self.rate * precision

    def slope(self, log_precision: float) -> float:
        """Derivative of the log density."""
        return self.shape - self.rate * math.exp(log_precision)

    @property
    def mode(self) -> float:
        """Most probable logarithm of the precision."""
        return math.log(self.shape / self.rate)


PAPER_PRECISION = Gamma()


@dataclass(frozen=True)
class Normal:
    """Normal distribution of an unbounded hyperparameter, by mean and precision.

    Examples
    --------
    >>> from bgnlm.latent import OU, Normal
    >>> OU("day", decay_prior=Normal(-2, 1)).decay_prior.mean
    -2
    """

    mean: float = 0.0
    precision: float = 1.0

    def __post_init__(self) -> None:
        check_number(self.mean, "mean", low=-FARTHEST, high=FARTHEST)
        check_number(self.precision, "precision", above=0.0, high=1e12)

    def log_density(self, value: float) -> float:
        """Log density."""
        return 0.5 * (math.log(self.precision / (2.0 * math.pi)) - self.precision * (value - self.mean) ** 2)


PAPER_CORRELATION = Normal(0.0, 0.15)  # of log((1 + rho) / (1 - rho))
PAPER_DECAY = Normal(0.0, 0.2)  # of log phi
