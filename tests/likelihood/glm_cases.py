"""What the tests of generalized linear models share: priors to go through, data, and checks of any fit."""

import math

import numpy as np

import bgnlm
from bgnlm import CoefficientPrior
from bgnlm.likelihood.coefficient_priors import MIXTURES, PARAMETERS
from tests.naive_glm import simulate

WITH_G = (*MIXTURES, "g", "eb-local")
# The integral over g has an end where classes separate, which it has not with a = 3.
FINITE = CoefficientPrior("hyper-g/n", a=4.0)
PRIORS = [FINITE, *(name for name in PARAMETERS if name not in ("known-variance", "script"))]
LOCAL = [CoefficientPrior(name, information="local") for name in WITH_G]
SOME = [FINITE, "robust", "g", "gaussian", "jeffreys", "bic", "eb-local", LOCAL[2]]


def unit_rows(family, link, n=50, k=3, seed=0):
    """Rows of weight 1 and the settings that describe them."""
    y, X, _, offset = simulate(family, link, n, k, seed, weighted=False)
    return y, X, {"family": family, "link": link, "offset": offset}


def fit_checked(y, X, **options):
    """The fit, checked for what must hold of any fit."""
    fit = bgnlm.fit_model(y, X, **options)
    for value in (fit.coefficients, fit.covariance_factor, fit.dispersion, fit.shrinkage, fit.r_squared):
        assert np.isfinite(value).all()
    assert not math.isnan(fit.log_marginal)
    assert fit.log_marginal < math.inf
    assert 0.0 <= fit.shrinkage <= 1.0
    assert 0.0 <= fit.r_squared <= 1.0
    return fit
