"""The scoring of the authors' scripts for generalized linear models: the deviance where their iterations stop.

Where classes separate there is no maximum, and the result is a matter of the stopping rule; it is therefore kept as it
is in R's `glm.fit`: iteratively reweighted least squares from fitted values near the data, at most 25 steps and none
of them halved, until the deviance changes by less than 1e-8 of itself.
"""

import numpy as np

from bgnlm._typing import BoolArray, FloatArray, IntArray
from bgnlm.errors import SettingError
from bgnlm.kernels import glm as glm_kernels
from bgnlm.kernels import script as kernels
from bgnlm.likelihood.glm import GlmStatistics


def script_deviances(statistics: GlmStatistics, included: BoolArray) -> FloatArray:
    """Deviances of models, given as rows of Booleans."""
    return _iterate(statistics, included)[0]


def script_fit(
    statistics: GlmStatistics, columns: IntArray, null_deviance: float
) -> tuple[FloatArray, FloatArray, float, float]:
    """Coefficients on the scale of the data, covariance factor, dispersion, gain in log-likelihood over the null."""
    included = np.zeros((1, statistics.n_columns), dtype=np.bool_)
    included[0, columns] = True
    deviances, unit, information = _iterate(statistics, included)
    norms, means = statistics.norms[columns], statistics.means[columns]
    # A model may list its columns in any order.
    coefficients = unit[np.append(0, np.argsort(np.argsort(columns)) + 1)]
    coefficients[1:] = np.divide(coefficients[1:], norms, out=np.zeros(len(columns)), where=norms > 0.0)
    coefficients[0] -= means @ coefficients[1:]
    design = statistics.original(columns) * np.sqrt(information)[:, None]
    factor = np.asarray(np.linalg.pinv(np.linalg.qr(design, mode="r")), dtype=np.float64)
    return coefficients, factor, 1.0, 0.5 * (null_deviance - float(deviances[0]))


def _iterate(statistics: GlmStatistics, included: BoolArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Deviances; coefficients of the standardised columns and working weights of the last model."""
    family, data = statistics.family, statistics.data
    if family.name not in ("binomial", "poisson") or family.link == "cloglog":
        raise SettingError(
            f"The prior 'script' is for Gaussian, binomial (logit, probit) and Poisson responses; got {family.name!r} "
            f"with link {family.link!r}. Use 'bic'."
        )
    mean = (data.weights * data.y + 0.5) / (data.weights + 1.0) if family.name == "binomial" else data.y + 0.1
    different, places = np.unique(mean, return_inverse=True)  # of 0 and 1 there are two
    start = np.array([family.linear_predictor(float(value)) for value in different])[places]
    n_rows, size = len(start), statistics.n_columns
    coefficients, work = np.empty(size + 1), glm_kernels.workspace(n_rows, size)
    deviances, steps = np.empty(len(included)), np.empty(len(included), dtype=np.int64)
    kernels.fit_as_scripts(
        data,
        included,
        start,
        np.empty(size, dtype=np.int64),
        coefficients,
        work,
        np.empty((size + 2, n_rows)),
        deviances,
        steps,
    )
    return deviances, coefficients, work.information
