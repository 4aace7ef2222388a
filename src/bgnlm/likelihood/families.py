"""Distributions of the response and their links (eq. 1 of the paper)."""

from dataclasses import dataclass

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm._validation import check_choice
from bgnlm.errors import DataError
from bgnlm.kernels import families as kernels

# The first link of each family is its default.
LINKS: dict[str, dict[str, int]] = {
    "gaussian": {"identity": kernels.GAUSSIAN},
    "binomial": {"logit": kernels.LOGIT, "probit": kernels.PROBIT, "cloglog": kernels.CLOGLOG},
    "poisson": {"log": kernels.POISSON},
    "gamma": {"log": kernels.GAMMA},
    "negative_binomial": {"log": kernels.NEGATIVE_BINOMIAL},
}

FARTHEST = 340.0  # logarithm of a mean whose square is still a number


@dataclass(frozen=True)
class Family:
    """A distribution with a link.

    `binomial`: y is 0 or 1, or the share of successes with the number of trials as weight. `gamma`: the dispersion is
    the shape. `negative_binomial`: the dispersion is the size, variance mean + mean^2 / size.
    """

    name: str
    link: str

    @property
    def code(self) -> int:
        """Number of family and link in the kernels."""
        return LINKS[self.name][self.link]

    @property
    def has_dispersion(self) -> bool:
        """Whether a dispersion has to be estimated."""
        return self.name in ("gaussian", "gamma", "negative_binomial")

    def mean(self, eta: FloatArray) -> FloatArray:
        """Mean of the response for a linear predictor."""
        from scipy.special import expit, ndtr

        match self.link:
            case "identity":
                return eta
            case "logit":
                return np.asarray(expit(eta))
            case "probit":
                return np.asarray(ndtr(eta))
            case "cloglog":
                return np.asarray(-np.expm1(-np.exp(np.minimum(eta, FARTHEST))))
            case _:
                return np.exp(np.clip(eta, -FARTHEST, FARTHEST))

    def mean_slope(self, eta: FloatArray) -> FloatArray:
        """Derivative of the mean in the linear predictor."""
        mean = self.mean(eta)
        match self.link:
            case "identity":
                return np.ones_like(eta)
            case "logit":
                return mean * (1.0 - mean)
            case "probit":
                return np.asarray(np.exp(-0.5 * eta**2) / np.sqrt(2.0 * np.pi))
            case "cloglog":
                return np.exp(np.minimum(eta, FARTHEST)) * (1.0 - mean)
            case _:
                return mean

    def linear_predictor(self, mean: float) -> float:
        """Linear predictor of a mean strictly inside its range."""
        from scipy.special import logit, ndtri

        match self.link:
            case "identity":
                return mean
            case "logit":
                return float(logit(mean))
            case "probit":
                return float(ndtri(mean))
            case "cloglog":
                return float(np.log(-np.log1p(-mean)))
            case _:
                return float(np.log(mean))

    def expected_information(self, eta: FloatArray, dispersion: float) -> FloatArray:
        """Fisher information of one observation about its linear predictor."""
        mean = self.mean(eta)
        match self.link, self.name:
            case "logit", _:
                return mean * (1.0 - mean)
            case "probit", _:
                from scipy.special import log_ndtr

                return np.asarray(np.exp(-(eta**2) - log_ndtr(eta) - log_ndtr(-eta)) / (2.0 * np.pi))
            case "cloglog", _:
                rate = np.exp(np.minimum(eta, 6.5))  # beyond, next to nothing is left: e^-665
                return np.asarray(rate**2 / np.expm1(rate))
            case _, "poisson":
                return mean
            case _, "gamma":
                return np.full_like(mean, dispersion)
            case _:
                return mean * dispersion / (mean + dispersion)

    def check_response(self, y: FloatArray, has_weights: bool) -> None:
        """Refuse values that the distribution cannot have, with their row."""
        match self.name:
            case "binomial":
                self._refuse(y, (y < 0) | (y > 1), "between 0 and 1", "Code the two classes as 0 and 1")
                if not has_weights:
                    inside = (y > 0) & (y < 1)
                    self._refuse(
                        y, inside, "0 or 1", "For shares of successes pass the number of trials as sample_weight"
                    )
            case "poisson" | "negative_binomial":
                self._refuse(y, (y < 0) | (y != np.floor(y)), "a whole number of 0 or more", "It counts something")
            case "gamma":
                self._refuse(y, y <= 0, "greater than 0", "Use another family, or leave these rows out")

    def _refuse(self, y: FloatArray, bad: np.ndarray, allowed: str, advice: str) -> None:
        if bad.any():
            row = int(np.flatnonzero(bad)[0])
            raise DataError(f"y of family {self.name!r} must be {allowed}; got {y[row]:g} in row {row}. {advice}.")


def resolve_family(family: str, link: str | None) -> Family:
    """Turn what a user typed into a `Family`; None is the family's first link."""
    links = LINKS[check_choice(family, "family", tuple(LINKS))]
    return Family(family, next(iter(links)) if link is None else check_choice(link, "link", tuple(links)))
