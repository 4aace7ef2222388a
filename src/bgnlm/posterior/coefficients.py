"""The coefficient of a feature given that the feature is in the model: a mixture over the models that have it."""

from dataclasses import dataclass

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.features import Feature
from bgnlm.posterior.average import ModelAverage

_MOST_STEPS = 200
_FARTHEST = 1e4  # deviations from a mean; beyond, no level that anybody asks for
_HALF = 0.5


@dataclass(frozen=True, eq=False)
class CoefficientMixture:
    """Student t distributions (normal ones for infinite degrees) with weights that add up to 1.

    Attributes
    ----------
    probability
        Of the models that have the feature, among the averaged ones.
    weights, means, deviations, degrees
        Of each of these models; `deviations` are scales of Student's t.
    scale
        Standard deviation of the feature in training: means times scale are coefficients of standardised columns.
    """

    probability: float
    weights: FloatArray
    means: FloatArray
    deviations: FloatArray
    degrees: FloatArray
    scale: float

    @property
    def mean(self) -> float:
        """Mean of the mixture."""
        return float(self.weights @ self.means)

    def cdf(self, value: float) -> float:
        """P(coefficient <= value)."""
        from scipy.special import ndtr, stdtr

        known = np.isinf(self.degrees)
        standard = (value - self.means) / self.deviations
        each = np.where(known, ndtr(standard), stdtr(np.where(known, 1.0, self.degrees), standard))
        return float(self.weights @ each)

    def quantile(self, level: float) -> float:
        """Quantile by bisection."""
        low = float((self.means - _FARTHEST * self.deviations).min())
        high = float((self.means + _FARTHEST * self.deviations).max())
        for _ in range(_MOST_STEPS):
            middle = _HALF * (low + high)
            if middle in (low, high):
                break
            low, high = (middle, high) if self.cdf(middle) < level else (low, middle)
        return _HALF * (low + high)


def coefficient_of(average: ModelAverage, feature: Feature) -> CoefficientMixture | None:
    """Return the coefficient of a feature as it is listed, on its own scale; None if no averaged model has it."""
    places = [j for j, known in enumerate(average.known_as) if known == feature]
    found: list[tuple[float, float, float, float]] = []
    corners = np.append(0, np.cumsum(np.square(average.sizes + 1)))
    gaussian = average.family.name == "gaussian"
    for at in np.flatnonzero(np.isin(average.members, places)).tolist():
        m = int(np.searchsorted(average.starts, at, side="right")) - 1
        size, row = int(average.sizes[m]), at - int(average.starts[m]) + 1
        factor = average.factors[corners[m] : corners[m + 1]].reshape(size + 1, size + 1)[row]
        noise = float(np.sqrt(average.dispersions[m])) if gaussian else 1.0
        unit = float(average.scales[average.members[at]])
        coefficient = float(average.coefficients[int(average.starts[m]) + m + row])
        deviation = max(float(np.linalg.norm(factor)) * noise, np.finfo(float).tiny)
        found.append((float(average.probabilities[m]), coefficient / unit, deviation / unit, float(average.degrees[m])))
    total = sum(probability for probability, *_ in found)
    if not total:
        return None
    weights, means, deviations, degrees = np.array(found).T
    first = next(j for j in places if j in average.members)
    return CoefficientMixture(total, weights / total, means, deviations, degrees, float(average.scales[first]))
