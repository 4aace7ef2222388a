"""Weights alpha of projections, strategy 1 of section 2.1.1: maximum likelihood without the transform."""

from collections.abc import Sequence

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.features import Evaluator, Feature, Transform, project
from bgnlm.features.nodes import Projection
from bgnlm.likelihood.coefficient_priors import CoefficientPrior
from bgnlm.likelihood.marginal import Likelihood

# A prior this vague leaves the estimate where the data put it, and finite where classes separate.
_VAGUE = 1e4


def naive_projection(
    likelihood: Likelihood, evaluator: Evaluator, transform: Transform, operands: Sequence[Feature]
) -> Projection | None:
    """g(alpha_0 + sum alpha_k F_k) with the weights of h(mu) = alpha_0 + sum alpha_k F_k; None if they do not exist."""
    columns = evaluator.matrix(operands)
    if not np.isfinite(columns).all():
        return None
    coefficients = _fit(likelihood, columns)
    if coefficients is None or np.count_nonzero(coefficients[1:]) < 2:
        return None
    rounded = [float(f"{value:.8g}") for value in coefficients]
    return project(transform, operands, rounded[1:], rounded[0])


def _fit(likelihood: Likelihood, columns: FloatArray) -> FloatArray | None:
    if likelihood.family.name == "gaussian":
        return _least_squares(likelihood, columns)
    prior = CoefficientPrior("g", g=_VAGUE * float(likelihood.weights.sum()))
    fit = likelihood.with_prior(prior).population(columns).fit(list(range(columns.shape[1])))
    return fit.coefficients if np.isfinite(fit.coefficients).all() else None


def _least_squares(likelihood: Likelihood, columns: FloatArray) -> FloatArray | None:
    """Intercept and slopes, from centred columns of unit norm."""
    weights = likelihood.weights
    total = weights.sum()
    target = likelihood.y - likelihood.offset
    with np.errstate(all="ignore"):
        means = weights @ columns / total
        centred = (columns - means) * np.sqrt(weights)[:, None]
        norms = np.sqrt(np.square(centred).sum(axis=0))
        if not (np.isfinite(norms).all() and (norms > 0).all()):
            return None
        mean = float(weights @ target / total)
        unit = centred / norms
        slopes = np.linalg.lstsq(unit.T @ unit, unit.T @ ((target - mean) * np.sqrt(weights)), rcond=1e-12)[0] / norms
    coefficients = np.append(mean - means @ slopes, slopes)
    return coefficients if np.isfinite(coefficients).all() else None
