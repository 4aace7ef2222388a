"""The scoring of the authors' scripts for generalized linear models: the deviance where their iterations stop.

Where classes separate there is no maximum, and the result is a matter of the stopping rule; it is therefore kept as it
is: iteratively reweighted least squares from fitted values near the data, at most 25 steps, until the deviance changes
by less than 1e-8 of itself.
"""

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.errors import SettingError
from bgnlm.likelihood.glm import GlmStatistics

_MAX_STEPS = 25
_ENOUGH = 1e-8


def script_deviance(statistics: GlmStatistics, columns: IntArray) -> float:
    """Deviance of the model with the given columns."""
    return _iterate(statistics, columns)[1]


def script_fit(
    statistics: GlmStatistics, columns: IntArray, null_deviance: float
) -> tuple[FloatArray, FloatArray, float, float]:
    """Coefficients on the scale of the data, covariance factor, dispersion, gain in log-likelihood over the null."""
    coefficients, deviance, factor = _iterate(statistics, columns)
    return coefficients, factor, 1.0, 0.5 * (null_deviance - deviance)


@np.errstate(all="ignore")  # where classes separate the working weights underflow, as they do in the scripts
def _iterate(statistics: GlmStatistics, columns: IntArray) -> tuple[FloatArray, float, FloatArray]:
    family, data = statistics.family, statistics.data
    if family.name not in ("binomial", "poisson") or family.link == "cloglog":
        raise SettingError(
            f"The prior 'script' is for Gaussian, binomial (logit, probit) and Poisson responses; got {family.name!r} "
            f"with link {family.link!r}. Use 'bic'."
        )
    y, w = data.y, data.weights
    design = statistics.original(columns)
    mean = (w * y + 0.5) / (w + 1.0) if family.name == "binomial" else y + 0.1
    different, places = np.unique(mean, return_inverse=True)  # of 0 and 1 there are two
    eta = np.array([family.linear_predictor(float(value)) for value in different])[places]
    deviance = _deviance(family.name, y, w, mean)
    coefficients, root = np.zeros(design.shape[1]), np.ones(len(y))
    for _ in range(_MAX_STEPS):
        slope = family.mean_slope(eta)
        variance = mean * (1.0 - mean) if family.name == "binomial" else mean
        good = (slope != 0) & (variance > 0)
        root = np.where(good, np.sqrt(w / np.where(good, variance, 1.0)) * np.abs(slope), 0.0)
        working = eta - data.offset + np.where(good, (y - mean) / np.where(good, slope, 1.0), 0.0)
        root, working = np.nan_to_num(root, posinf=0.0), np.nan_to_num(working, posinf=0.0, neginf=0.0)
        coefficients = np.linalg.lstsq(design * root[:, None], working * root, rcond=1e-13)[0]
        eta = data.offset + design @ coefficients
        mean = family.mean(eta)
        if family.name == "binomial":
            mean = np.clip(mean, 2.2e-16, 1.0 - 2.2e-16)
        previous, deviance = deviance, _deviance(family.name, y, w, mean)
        if abs(deviance - previous) / (abs(deviance) + 0.1) < _ENOUGH:
            break
    factor = np.asarray(np.linalg.pinv(np.linalg.qr(design * root[:, None], mode="r")), dtype=np.float64)
    return coefficients, deviance, factor


def _deviance(family: str, y: FloatArray, w: FloatArray, mean: FloatArray) -> float:
    """Twice the distance to the log-likelihood of a model that fits every observation."""
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = np.where(y > 0, y * np.log(y / mean), 0.0)
        if family == "binomial":
            terms = terms + np.where(y < 1, (1.0 - y) * np.log((1.0 - y) / (1.0 - mean)), 0.0)
        else:
            terms = terms - (y - mean)
    return float(2.0 * (w @ terms))
