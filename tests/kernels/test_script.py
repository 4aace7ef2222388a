"""The iterations of the authors' scripts against an obvious version of R's `glm.fit` and their own interpreted form."""

import numpy as np
import pytest

from bgnlm.kernels import glm as glm_kernels
from bgnlm.kernels import script as kernels
from bgnlm.kernels.families import LOGIT, POISSON, PROBIT
from bgnlm.likelihood.families import resolve_family
from bgnlm.likelihood.glm import glm_statistics
from bgnlm.likelihood.script import script_deviances, script_fit
from tests.naive_glm import glm_of_r, simulate

PAIRS = [("binomial", "logit"), ("binomial", "probit"), ("poisson", "log")]
BERNOULLI = PAIRS[:2]


def _statistics(family, link, y, X, weights=None, offset=None):
    weights = np.ones(len(y)) if weights is None else weights
    return glm_statistics(resolve_family(family, link), y, X, weights, np.zeros(len(y)) if offset is None else offset)


def _iterate(statistics, included, function=kernels.fit_as_scripts):
    """Deviances and numbers of steps; coefficients of the last model."""
    data, family = statistics.data, statistics.family
    mean = (data.weights * data.y + 0.5) / (data.weights + 1.0) if family.name == "binomial" else data.y + 0.1
    start = np.array([family.linear_predictor(float(value)) for value in mean])
    n, p = len(start), statistics.n_columns
    coefficients, deviances, steps = np.full(p + 1, np.nan), np.empty(len(included)), np.empty(len(included), np.int64)
    space = np.empty(p, np.int64), coefficients, glm_kernels.workspace(n, p), np.empty((p + 2, n))
    function(data, included, start, *space, deviances, steps)
    return deviances, steps, coefficients


def _some_models(p, n_models=12, seed=3):
    included = np.random.default_rng(seed).random((n_models, p)) < 0.5
    included[0], included[-1] = False, True
    return included


def _compare(family, link, y, X, weights, offset):
    included = _some_models(X.shape[1])
    deviances, steps, _ = _iterate(_statistics(family, link, y, X, weights, offset), included)
    for row, deviance, n_steps in zip(included, deviances, steps, strict=True):
        expected, _, expected_steps = glm_of_r(family, link, y, X[:, row], weights, offset)
        assert deviance == pytest.approx(expected, rel=1e-8, abs=1e-9)
        assert n_steps == expected_steps
    return deviances, steps


@pytest.mark.parametrize("n", [40, 700])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_deviance_and_number_of_steps(family, link, n):
    y, X, weights, offset = simulate(family, link, n, 5, seed=2)
    _compare(family, link, y, X, weights, offset)


@pytest.mark.parametrize(("family", "link"), BERNOULLI)
@pytest.mark.parametrize("seed", range(3))
def test_separated_classes(family, link, seed):
    """There the deviance is where the steps stop, and what few rows decide is far from what inner products can tell."""
    rng = np.random.default_rng(seed)
    X = rng.standard_t(2, size=(60, 6))
    y = (X[:, 0] + X[:, 1] > 0.0).astype(float)
    deviances, steps = _compare(family, link, y, X, np.ones(60), np.zeros(60))
    assert deviances[-1] < 1e-6
    assert steps[-1] > 10


def test_columns_that_nearly_depend_on_others():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(80, 4))
    X[:, 3] = X[:, 0] - X[:, 1] + 1e-6 * rng.normal(size=80)  # inner products have lost all digits
    y = (rng.random(80) < 0.5).astype(float)
    _compare("binomial", "logit", y, X, np.ones(80), np.zeros(80))


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_columns_that_depend_on_others_change_nothing(family, link):
    y, X, weights, offset = simulate(family, link, 50, 2, seed=4)
    wide = np.column_stack([X, X[:, 0] - 3.0 * X[:, 1], np.full(50, 7.0), X[:, 1]])
    statistics = _statistics(family, link, y, wide, weights, offset)
    two = np.array([[True, True, False, False, False]])
    expected = script_deviances(statistics, two)[0]
    assert script_deviances(statistics, np.ones((1, 5), np.bool_))[0] == pytest.approx(expected, rel=1e-9)
    coefficients, _, _, gain = script_fit(statistics, np.arange(5), 0.0)
    assert -2.0 * gain == pytest.approx(expected, rel=1e-9)
    plain = script_fit(statistics, np.arange(2), 0.0)[0]
    assert wide @ coefficients[1:] + coefficients[0] == pytest.approx(X @ plain[1:] + plain[0], abs=1e-6)


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_coefficients_are_on_the_scale_of_the_data_in_the_order_of_the_columns(family, link):
    y, X, weights, offset = simulate(family, link, 60, 4, seed=6)
    X = X * [1.0, 1e5, 1e-4, 3.0] + [0.0, 2e5, 1.0, -4.0]
    columns = np.array([3, 0, 2])
    statistics = _statistics(family, link, y, X, weights, offset)
    coefficients, factor, dispersion, gain = script_fit(statistics, columns, 10.0)
    deviance, expected, _ = glm_of_r(family, link, y, X[:, columns], weights, offset)
    assert coefficients == pytest.approx(expected, rel=1e-5)
    assert (dispersion, gain) == (1.0, pytest.approx(0.5 * (10.0 - deviance)))
    design = np.column_stack([np.ones(60), X[:, columns]])
    mean = statistics.family.mean(offset + design @ expected)
    slope = statistics.family.mean_slope(offset + design @ expected)
    information = weights * slope**2 / (mean * (1.0 - mean) if family == "binomial" else mean)
    whole = design.T @ (information[:, None] * design)
    assert factor @ factor.T @ whole == pytest.approx(np.eye(4), abs=1e-3)


def test_steps_that_overshoot_leave_a_deviance():
    """Nothing halves a step in the scripts: a row far off goes farther, and costs what R's smallest mean says."""
    x = np.append(np.linspace(-1.0, 1.0, 30), 300.0)
    y = np.append(np.repeat([0.0, 1.0], 15), 0.0)
    deviances, steps = _compare("binomial", "logit", y, x[:, None], np.ones(31), np.zeros(31))
    assert np.isfinite(deviances).all()
    assert (steps <= 25).all()


@pytest.mark.parametrize(
    ("family", "eta", "expected"),
    [
        (LOGIT, 0.0, (0.5, 0.5, 0.25)),
        (LOGIT, 29.0, (1.0, 2.543665647376923e-13, 2.543665647376276e-13)),
        (LOGIT, 31.0, (1.0, 2.0**-52, 2.0**-52)),
        (LOGIT, -800.0, (2.0**-52, 1.0, 2.0**-52)),
        (PROBIT, 0.0, (0.5, 0.5, 0.3989422804014327)),
        (PROBIT, 9.0, (1.0, 2.0**-52, 2.0**-52)),
        (PROBIT, -40.0, (2.0**-52, 1.0, 2.0**-52)),
        (POISSON, 1.0, (np.e, 1.0, np.e)),
        (POISSON, -50.0, (2.0**-52, 1.0, 2.0**-52)),
    ],
)
@pytest.mark.parametrize("function", [kernels.fitted, kernels.fitted.py_func])
def test_means_and_slopes_of_r(function, family, eta, expected):
    assert function(family, eta) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("function", [kernels.orthogonal_step, kernels.orthogonal_step.py_func])
@pytest.mark.parametrize("size", [0, 1, 4])
def test_orthogonal_step_is_weighted_least_squares(function, size):
    rng = np.random.default_rng(size)
    design, information, score = rng.normal(size=(6, 20)), rng.exponential(size=20), rng.normal(size=20)
    information[3] = score[3] = 0.0
    columns = np.array([5, 0, 2, 3])[:size]
    out, p = np.full(size + 1, np.nan), size + 1
    arrays = np.empty((p, p)), np.empty(p), np.empty(p), np.empty((p + 1, 20))
    function(design, columns, size, score, information, *arrays, out)
    whole = np.column_stack([np.ones(20), design[columns].T])
    expected = np.linalg.solve(whole.T @ (information[:, None] * whole), whole.T @ score)
    assert out == pytest.approx(expected, rel=1e-9)


def test_orthogonal_step_without_information():
    """No row has a weight: every column depends on those before it."""
    zero, out = np.zeros(9), np.full(3, np.nan)
    arrays = np.empty((3, 3)), np.empty(3), np.empty(3), np.empty((4, 9))
    kernels.orthogonal_step(np.ones((2, 9)), np.arange(2), 2, zero, zero, *arrays, out)
    assert out.tolist() == [0.0, 0.0, 0.0]


@pytest.mark.parametrize("n_dependent", [0, 1])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_compiled_equals_interpreted(family, link, n_dependent):
    y, X, weights, offset = simulate(family, link, 25, 3, seed=1)
    statistics = _statistics(family, link, y, np.column_stack([X, X[:, :n_dependent]]), weights, offset)
    included = _some_models(statistics.n_columns, 5)
    fast = _iterate(statistics, included)
    slow = _iterate(statistics, included, kernels.fit_as_scripts.py_func)
    assert fast[0] == pytest.approx(slow[0], rel=1e-11)
    assert fast[1].tolist() == slow[1].tolist()
    assert fast[2] == pytest.approx(slow[2], rel=1e-7)
