"""Features as functions of their weights: values against the evaluator, gradients against differences."""

import numpy as np
import pytest

from bgnlm.features import Evaluator, Transform, get_transform, learn_cut_points, parse, project, registered_transforms
from bgnlm.features.gradients import WeightFunction, round_weight
from bgnlm.features.measures import additional_weights

N = 40
SMOOTH = [g.name for g in registered_transforms() if g.derivative is not None and g.quantile is None]
NESTS = [
    "tanh(0.3 + 0.7*x1 - 1.2*x2)",
    "sigmoid(0.1 + x1 - 0.5*sin(0.2 + 2*x2 + 0.3*x3))",
    "gauss(0.5*x1 + 0.25*atan(x2 + x3)*tanh(1 + x1 - x3))",
    "erf(x1 + gelu(sin(0.3*x1 - x2 + tanh(x2 - 2*x3))))",
    "cos(0.2 + 0.1*x1*x2 + 0.7*sigmoid(x1 + x3)*sigmoid(0.5*x1 - x3)*x2)",
    "exp_neg_abs(0.3 + x1 + sqrt_abs(1.5 + x2 + 0.3*x3))",
]


@pytest.fixture
def evaluator():
    return Evaluator(np.random.default_rng(61).normal(size=(N, 3)))


def function_of(feature, evaluator, every_layer=True, sample_weight=None):
    weights = np.ones(N) if sample_weight is None else sample_weight
    return WeightFunction(feature, evaluator, weights, every_layer=every_layer)


def differences(function, weights, step=1e-6):
    columns = []
    for k in range(len(weights)):
        away = np.zeros_like(weights)
        away[k] = step * max(1.0, abs(weights[k]))
        columns.append((function.value(weights + away) - function.value(weights - away)) / (2.0 * away[k]))
    return np.array(columns)


def check_gradient(function, weights, rtol=1e-5):
    value = function.value_and_gradient(weights)
    assert value.column == pytest.approx(function.value(weights), rel=1e-13)
    assert value.gradient.shape == (function.n_weights, N)
    expected = differences(function, weights)
    scale = np.abs(expected).max()
    # Within a step of a kink the difference is of two sides.
    close = np.abs(value.gradient - expected) <= rtol * (scale + np.abs(expected))
    assert close.mean() > 0.99, np.abs(value.gradient - expected).max() / scale


@pytest.mark.parametrize("name", SMOOTH)
def test_every_transform(evaluator, name):
    """The argument stays away from 0, where some have a pole."""
    feature = project(get_transform(name), [parse("sin(x1)"), parse("tanh(x2)")], [0.25, -0.2], 1.1)
    function = function_of(feature, evaluator)
    assert function.is_differentiable
    assert function.n_weights == 3
    assert function.value(function.start) == pytest.approx(evaluator.column(feature), rel=1e-9)
    check_gradient(function, function.start)


@pytest.mark.parametrize("every_layer", [False, True])
@pytest.mark.parametrize("text", NESTS)
def test_nests(evaluator, text, every_layer):
    feature = parse(text)
    function = function_of(feature, evaluator, every_layer)
    outer = 1 + len(feature.operands)
    assert (function.n_weights == outer) == (not every_layer or additional_weights(feature) == outer - 2)
    assert function.value(function.start) == pytest.approx(evaluator.column(feature), rel=1e-9)
    check_gradient(function, function.start)
    check_gradient(function, function.start + 0.1 * np.random.default_rng(62).normal(size=function.n_weights))


@pytest.mark.parametrize("text", NESTS)
def test_other_weights_make_another_feature_of_the_same_structure(evaluator, text):
    function = function_of(parse(text), evaluator)
    weights = function.start + 0.2 * np.random.default_rng(63).normal(size=function.n_weights)
    feature = function.feature(weights)
    assert additional_weights(feature) == additional_weights(parse(text))
    assert evaluator.column(feature) == pytest.approx(function.value(weights), rel=1e-5, abs=1e-6)
    assert parse(str(feature)) == feature


def test_cut_points_move_with_the_weights(evaluator):
    weights = np.append(np.zeros(5), np.linspace(0.5, 2.0, N - 5))
    feature = learn_cut_points(parse("hinge_up(0.1 + x1 + 0.5*x2)"), evaluator, weights)
    function = function_of(feature, evaluator, sample_weight=weights)
    assert not function.is_differentiable
    assert function.value(function.start) == pytest.approx(evaluator.column(feature), abs=1e-12)
    elsewhere = function.start + np.array([0.0, 0.3, -0.4])
    moved = function.feature(elsewhere)
    assert moved.parameters == ()
    expected = evaluator.column(learn_cut_points(moved, evaluator, weights))
    assert function.value(elsewhere) == pytest.approx(expected, abs=1e-6)


def test_what_has_no_derivative(evaluator):
    cube = Transform("cube_without", lambda x: x**3)
    assert not function_of(project(cube, [parse("x1"), parse("x2")], [1, 1]), evaluator).is_differentiable
    inside = project(get_transform("tanh"), [parse("x1"), project(cube, [parse("x2"), parse("x3")], [1, 1])], [1, 1])
    assert not function_of(inside, evaluator).is_differentiable
    assert function_of(inside, evaluator, every_layer=False).is_differentiable


def test_a_weight_of_zero_would_be_another_feature(evaluator):
    function = function_of(parse("tanh(x1 + x2 + x3)"), evaluator)
    for zeros in ([0.0], [0.0, 0.0]):
        weights = function.start.copy()
        weights[1 : 1 + len(zeros)] = zeros
        assert function.feature(weights) is None


def test_operands_are_of_one_scale(evaluator):
    X = evaluator.matrix(map(parse, ("x1", "x2", "x3"))) * [1e-8, 1.0, 1e9] + [0.0, 1e3, 0.0]
    large = Evaluator(X)
    function = function_of(parse("tanh(1.0*x1 + 1.0*x2 + 1.0*x3)"), large)
    weights = np.array([0.3, 1.0, -0.5, 0.8])
    standard = (X - X.mean(axis=0)) / X.std(axis=0)
    assert function.value(weights) == pytest.approx(np.tanh(0.3 + standard @ weights[1:]), abs=1e-9)
    check_gradient(function, weights)


def test_an_operand_that_saturates_is_a_constant(evaluator):
    """Its standardised form would be rounding errors."""
    function = function_of(parse("tanh(x1 + tanh(0.1 + x2 + x3))"), evaluator)
    assert function.n_weights == 6
    weights = np.array([0.3, 0.5, 1.0, 0.0, 0.0, 0.0])
    first = evaluator.column(parse("x1"))
    expected = np.tanh(0.3 + 0.5 * (first - first.mean()) / first.std())
    for intercept in (19.0, 25.0, -40.0):
        weights[3:] = intercept, 0.01, 0.01
        assert function.value(weights) == pytest.approx(expected, abs=1e-12)
        assert function.value_and_gradient(weights).column == pytest.approx(expected, abs=1e-12)


def test_rounding():
    assert round_weight(1.0 / 3.0) == 0.33333333
    assert round_weight(-1.23456789e-30) == -1.2345679e-30
    assert round_weight(0.0) == 0.0
