"""Changes of weights that do not change a feature: how many there are, and that they are a group."""

from itertools import product

import numpy as np
import pytest

from bgnlm.features import Evaluator, Transform, learn_cut_points, parse, project
from bgnlm.features.gradients import WeightFunction
from bgnlm.features.weight_symmetries import SignedPermutation, generated, weight_symmetries

N = 30
SIZES = {
    "tanh(0.3 + x1 + x2)": 2,
    "sigmoid(0.3 + x1 + x2 - x3)": 2,
    "gauss(0.3 + x1 + x2)": 2,
    "sin(x1 + x2)": 2,
    "cos(x1 + x2)": 2,
    "relu(0.3 + x1 + x2)": 1,
    "gelu(0.3 + x1 + x2)": 1,
    "abs_pow_5_2(0.3 + x1 + x2)": 2,
    "above_median(0.3 + x1 + x2)": 2,
    "hinge_up(0.3 + x1 + x2)": 1,
    # A transform of a projection: of an odd one only what an odd or even function leaves.
    "gauss(tanh(x1 + x2))": 2,
    "gelu(tanh(x1 + x2))": 1,
    "gelu(gauss(x1 + x2))": 2,
    # One inside the other: both signs.
    "tanh(x1 + sigmoid(x2 + x3))": 4,
    "gelu(0.5 + x1 + sigmoid(x2 + x3))": 2,
    "tanh(x1 + relu(x2 + x3))": 2,
    "tanh(x1 + atan(x2 + sin(x1 + x3)))": 8,
    "tanh(x1 + x3*sin(x1 + x2))": 4,
    "tanh(x1 + x3*sigmoid(x1 + x2))": 2,
    # Units of one layer: signs of all, and their order.
    "tanh(0.1 + sigmoid(x1 + 0.5*x2) + sigmoid(0.3*x1 - x2))": 16,
    "relu(0.1 + sigmoid(x1 + 0.5*x2) + sigmoid(0.3*x1 - x2))": 8,
    "sin(sigmoid(x1 + 0.5*x2) + sigmoid(0.3*x1 - x2) + sigmoid(x1 + x2))": 2 * 2**3 * 6,
    "tanh(0.1 + sigmoid(x1 + 0.5*x2) + sigmoid(0.3*x1 - x3))": 8,
    "tanh(0.1 + sigmoid(x1 + 0.5*x2) + atan(0.3*x1 - x2))": 8,
    # A product changes its sign with that of an odd factor, and has no order.
    "sigmoid(x1 + 0.5*x2)*sigmoid(0.3*x1 - x2)": 2,
    "sigmoid(x1 + 0.5*x2)*sigmoid(0.3*x1 - x3)": 1,
    "tanh(x1 + 0.5*x2)*tanh(0.3*x1 - x2)": 8,
    "tanh(x1 + 0.5*x2)*tanh(0.3*x1 - x3)": 4,
    "x3*tanh(x1 + x2)": 2,
    "x3*sigmoid(x1 + x2)": 1,
}


def function_of(text, X=None, sample_weight=None):
    evaluator = Evaluator(np.random.default_rng(81).normal(size=(N, 3)) if X is None else X)
    weights = np.ones(evaluator.n_rows) if sample_weight is None else sample_weight
    feature = learn_cut_points(parse(text), evaluator, weights)
    return feature, WeightFunction(feature, evaluator, weights, every_layer=True)


def as_tuple(element):
    return *element.order.tolist(), *element.signs.tolist()


@pytest.mark.parametrize(("text", "size"), SIZES.items())
def test_groups(text, size):
    feature, function = function_of(text)
    group = weight_symmetries(feature, function)
    assert len(group) == size
    assert as_tuple(group[0]) == (*range(function.n_weights), *[1.0] * function.n_weights)
    elements = set(map(as_tuple, group))
    assert len(elements) == size
    assert {as_tuple(one.after(other)) for one, other in product(group[:16], group)} <= elements
    weights = np.random.default_rng(82).normal(size=(5, function.n_weights))
    columns = function.values(weights)
    for element in group:
        for column, image in zip(columns, function.values(element.apply(weights)), strict=True):
            slope, intercept = np.polyfit(column, image, 1)
            assert image == pytest.approx(intercept + slope * column, abs=1e-9 * np.abs(image).max())
            assert abs(slope) == pytest.approx(1.0, abs=1e-6)  # of no effect on priors that depend on scale


def test_one_map_after_the_other():
    rng = np.random.default_rng(83)
    weights = rng.normal(size=(4, 5))
    one, other = (SignedPermutation(rng.permutation(5), rng.choice([-1.0, 1.0], 5)) for _ in range(2))
    np.testing.assert_array_equal(one.after(other).apply(weights), one.apply(other.apply(weights)))


def test_a_group_too_large_is_replaced_by_a_smaller_one():
    """Its elements must be a group all the same: otherwise images have different images."""
    size = 14
    identity = SignedPermutation(np.arange(size), np.ones(size))
    generators = [identity._replace(signs=np.where(np.arange(size) == k, -1.0, 1.0)) for k in range(size)]
    group = generated(identity, generators)
    assert len(group) == 4096
    elements = set(map(as_tuple, group))
    assert all(as_tuple(one.after(other)) in elements for one, other in product(group[::400], group))


def test_rows_without_weight_do_not_count():
    X = np.random.default_rng(84).normal(size=(N, 3))
    weights = np.append(0.0, np.ones(N - 1))
    X[0] = 0.0
    for text, size in (
        ("x3*tanh(inverse(x1) + x2)", 2),  # infinite times 0
        ("gauss(x2 + x3)*inverse(x1)", 2),
        ("gelu(inverse(x1) + tanh(inverse(x2) + x3))", 2),
    ):
        feature, function = function_of(text, X, weights)
        assert len(weight_symmetries(feature, function)) == size


def test_a_feature_that_few_weights_give_values_has_the_identity_alone():
    evaluator = Evaluator(np.random.default_rng(85).normal(size=(N, 2)))
    feature = project(Transform("logarithm", np.log), [parse("x1"), parse("x2")], [0.1, 0.1], 2.0)
    function = WeightFunction(feature, evaluator, np.ones(N), every_layer=True)
    assert np.isfinite(function.value(function.start)).all()
    assert len(weight_symmetries(feature, function)) == 1
