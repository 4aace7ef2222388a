"""Values of the R package BAS, and the gap where BAS itself approximates."""

import numpy as np
import pytest

import bgnlm

PRIORS = {
    "g-prior": "g",
    "hyper-g": "hyper-g",
    "hyper-g-n": "hyper-g/n",
    "ZS-null": "zellner-siow",
    "JZS": "zellner-siow",
    "EB-local": "eb-local",
    "BIC": "bic",
    "AIC": "aic",
}
# BAS uses Laplace approximations for these two: (lowest, highest) excess of the exact integral, PIP difference.
APPROXIMATE = {"hyper-g-n": (0.0144, 0.0222, 4.5e-4), "ZS-null": (0.269, 0.434, 1.1e-2)}


@pytest.fixture(scope="module")
def abalone400(abalone):
    X, y, *_ = abalone
    return X[:400], y[:400]


def _rows(bas, prior, kind):
    return [row for row in bas if row["kind"] == "lm" and row["prior"] == prior and row["row"] == kind]


@pytest.mark.parametrize("prior", PRIORS)
def test_log_marginal_likelihoods(bas, abalone400, prior):
    X, y = abalone400
    rows = _rows(bas, prior, "model")
    null = next(float(row["value"]) for row in rows if not row["model_columns"])
    gaps = []
    for row in rows:
        columns = [int(j) - 1 for j in row["model_columns"].split()]
        if not columns:
            continue
        ours = bgnlm.log_marginal(y, X[:, columns], coefficient_prior=PRIORS[prior], relative_to_null=True)
        gaps.append(ours - (float(row["value"]) - null))
    assert len(gaps) == 15
    if prior in APPROXIMATE:
        low, high, _ = APPROXIMATE[prior]
        assert low <= min(gaps) <= max(gaps) <= high
    else:
        assert np.abs(gaps).max() < 1e-8


@pytest.mark.parametrize("prior", PRIORS)
def test_inclusion_probabilities(bas, abalone400, prior):
    X, y = abalone400
    (row,) = _rows(bas, prior, "PIP")
    theirs = np.array([float(value) for value in row["value"].split()])
    ours = bgnlm.enumerate_models(y, X, coefficient_prior=PRIORS[prior]).inclusion_probabilities
    assert np.abs(ours - theirs).max() < (APPROXIMATE[prior][2] if prior in APPROXIMATE else 1e-8)


@pytest.mark.parametrize("prior", PRIORS)
def test_posterior_model_probabilities(bas, abalone400, prior):
    X, y = abalone400
    result = bgnlm.enumerate_models(y, X, coefficient_prior=PRIORS[prior])
    probability = dict(zip(result.masks.tolist(), result.model_probabilities, strict=True))
    for row in _rows(bas, prior, "model"):
        mask = sum(1 << (int(j) - 1) for j in row["model_columns"].split())
        tolerance = 0.02 if prior in APPROXIMATE else 1e-8
        assert probability[mask] == pytest.approx(float(row["posterior"]), abs=tolerance)


def test_constants_of_bic_and_aic(bas, abalone400):
    """BAS leaves the constant of the Gaussian density out; ours is the full log-likelihood."""
    X, y = abalone400
    n = len(y)
    constant = -n / 2 * (np.log(2 * np.pi / n) + 1)
    for prior in ("BIC", "AIC"):
        for row in _rows(bas, prior, "model"):
            columns = [int(j) - 1 for j in row["model_columns"].split()]
            ours = bgnlm.log_marginal(y, X[:, columns], coefficient_prior=PRIORS[prior])
            assert ours - constant == pytest.approx(float(row["value"]), abs=1e-8)


GLM_PRIORS = {
    "g_n": "g",
    "CCH_1_2_0": "cch",
    "hyper_g_n": "hyper-g/n",
    "robust": "robust",
    "intrinsic": "intrinsic",
    "beta_prime": "beta-prime",
    "EB_local": "eb-local",
    "bic": "bic",
    "aic": "aic",
    "TG": "tg",
    "Jeffreys": "cch",
}
# Quadrature of BAS: 1e-4 for hyper-g/n, off by 0.02 for intrinsic with four columns or more.
GLM_TOLERANCE = {"hyper_g_n": (1e-4, 1e-5), "intrinsic": (0.024, 3.5e-4)}


@pytest.fixture(scope="module")
def breast_cancer569(breast_cancer):
    columns = "texture_mean smoothness_mean symmetry_mean fractal_dimension_mean texture_se smoothness_se symmetry_se"
    return np.column_stack([breast_cancer[name] for name in columns.split()]), breast_cancer["malignant"]


def _local(name):
    parameters = {"a": 0.0, "b": 2.0} if name == "Jeffreys" else {}
    return bgnlm.CoefficientPrior(GLM_PRIORS[name], information="local", **parameters)


@pytest.mark.parametrize("name", GLM_PRIORS)
def test_logistic_marginal_likelihoods(bas, breast_cancer569, name):
    X, y = breast_cancer569
    rows = [row for row in bas if row["kind"] == "glm" and row["prior"] == name and row["row"] == "model"]
    gaps = []
    for row in rows:
        columns = [int(j) - 1 for j in row["model_columns"].split()]
        value = bgnlm.log_marginal(y, X[:, columns], family="binomial", coefficient_prior=_local(name))
        gaps.append(value - float(row["value"]))
    assert len(gaps) == 16
    # BIC and AIC of BAS do not count the intercept; all else agrees with its constants.
    constant = {"bic": -0.5 * np.log(569), "aic": -1.0}.get(name, 0.0)
    assert np.abs(np.array(gaps) - constant).max() < GLM_TOLERANCE.get(name, (2e-6,))[0]


@pytest.mark.parametrize("name", GLM_PRIORS)
def test_logistic_inclusion_probabilities(bas, breast_cancer569, name):
    X, y = breast_cancer569
    (row,) = [row for row in bas if row["kind"] == "glm" and row["prior"] == name and row["row"] == "PIP"]
    theirs = np.array([float(value) for value in row["value"].split()])
    ours = bgnlm.enumerate_models(y, X, family="binomial", coefficient_prior=_local(name)).inclusion_probabilities
    assert np.abs(ours - theirs).max() < GLM_TOLERANCE.get(name, (0, 1e-6))[1]
