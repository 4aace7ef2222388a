import copy
import dataclasses
import pickle
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bgnlm.errors import FeatureError
from bgnlm.features import (
    Input,
    Modification,
    Multiplication,
    Projection,
    Transform,
    get_transform,
    modify,
    multiply,
    operation_count,
    parse,
    power,
    project,
    registered_transforms,
    sort_key,
)
from bgnlm.features.checks import MAX_NESTING

from .strategies import any_features

SIN, SIGMOID, ABOVE = map(get_transform, ("sin", "sigmoid", "above_median"))
A, B, C = map(Input, "abc")


@settings(deadline=None)
@given(any_features, any_features, any_features)
def test_products_do_not_depend_on_order_or_grouping(f, g, h):
    product = multiply(f, g, h)
    assert product == multiply(multiply(f, g), h) == multiply(h, multiply(g, f))
    assert hash(product) == hash(multiply(g, multiply(h, f)))
    assert not any(isinstance(factor, Multiplication) for factor in product.factors)
    assert list(product.factors) == sorted(product.factors, key=sort_key)


def test_direct_construction_is_canonical_too():
    assert Multiplication((B, Multiplication((A, B)))).factors == (A, B, B)
    projection = Projection(SIN, (B, A, B), (1, 2, 3), -0.0)
    assert (projection.operands, projection.weights) == ((A, B), (2.0, 4.0))
    assert str(projection.intercept) == "0.0"
    assert all(type(weight) is float for weight in projection.weights)
    assert Projection(SIN, [C, A, B], np.array([0.0, 1.0, 2.0]), 1) == project(SIN, (A, B), (1, 2), 1)


@settings(deadline=None)
@given(st.permutations([(A, 0.1), (B, 2.0), (C, -0.5), (A, 0.2), (A, 0.3), (A, 1e20), (A, -1e20)]))
def test_projections_do_not_depend_on_the_order_of_their_operands(pairs):
    operands, weights = zip(*pairs, strict=True)
    assert project(SIGMOID, operands, weights, 0.5) == project(SIGMOID, (A, B, C), (0.6, 2.0, -0.5), 0.5)


def test_different_features_differ():
    features = [
        *[A, B, modify(SIN, A), modify(SIGMOID, A), multiply(A, A), multiply(A, A, A), multiply(A, B)],
        *[modify(ABOVE, A), modify(ABOVE, A, (1.0,)), modify(ABOVE, A, (2.0,))],
        *[project(SIN, (A, B), (1, 1)), project(SIN, (A, B), (1, 2)), project(SIN, (A, B), (1, 1), 1)],
        project(ABOVE, (A, B), (1, 1), 0, (1,)),
    ]
    assert all(f != g and sort_key(f) != sort_key(g) for f, g in combinations(features, 2))
    assert len(set(features)) == len(features)
    assert A != "a"


@settings(deadline=None)
@given(st.lists(any_features, max_size=6))
def test_the_order_is_total_and_puts_simple_features_first(features):
    ordered = sorted(features, key=sort_key)
    backwards = features[::-1]
    assert ordered == sorted(backwards, key=sort_key)
    counts = [operation_count(feature) for feature in ordered]
    assert counts == sorted(counts)


@settings(deadline=None)
@given(any_features, any_features)
def test_equal_keys_mean_equal_features(f, g):
    assert (f == g) == (sort_key(f) == sort_key(g)) == (str(f) == str(g))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Input(""), "not empty"),
        (lambda: Input(3), "got 3"),
        (lambda: modify("sin", A), "expected a Transform"),
        (lambda: modify(SIN, "a"), "expected a feature"),
        (lambda: modify(SIN, A, (1.0,)), "takes 0 cut points"),
        (lambda: modify(ABOVE, A, (1.0, 2.0)), "takes 1 cut points"),
        (lambda: modify(ABOVE, A, (np.nan,)), "finite"),
        (lambda: multiply(), "two factors"),
        (lambda: multiply(A), "two factors"),
        (lambda: multiply(A, "b"), "expected a feature"),
        (lambda: project(SIN, (A,), (1,)), "use modify"),
        (lambda: project(SIN, (A, A), (1, 2)), "two different features"),
        (lambda: project(SIN, (A, B), (1, 0)), "other than zero"),
        (lambda: project(SIN, (A, B), (1, np.inf)), "finite"),
        (lambda: project(SIN, (A, A, B), (1e308, 1e308, 1)), "finite"),
        (lambda: project(SIN, (A, B), (1, "two")), "numbers"),
        (lambda: project(SIN, (A, B), (1, 2, 3)), "as many weights"),
        (lambda: project(SIN, (A, B), (1, 2), np.nan), "finite"),
        (lambda: project("sin", (A, B), (1, 2)), "expected a Transform"),
        (lambda: power(A, 0), "from 1 on"),
        (lambda: power(A, 2.0), "whole number from 1 on, got 2.0"),
        (lambda: power(A, True), "whole number from 1 on, got True"),
        (lambda: power(A, "2"), "whole number from 1 on, got '2'"),
        (lambda: power("a", 2), "expected a feature, got 'a'"),
        (lambda: A**0, "from 1 on"),
        (lambda: sort_key("a"), "expected a feature, got 'a'"),
        (lambda: power(A, np.int64(2**62)), "at most 10000 inputs"),
        (lambda: power(A, 10**9), "at most 10000 inputs"),
        (lambda: multiply(power(A, 9000), power(B, 9000)), "at most 10000 inputs"),
    ],
)
def test_what_is_no_feature_is_refused(build, message):
    with pytest.raises(FeatureError, match=message):
        build()


def test_operators():
    assert multiply(A, B) == A * B
    assert multiply(A, A, B) == A * B * A
    assert power(A, 3) == A**3
    assert (A * B) ** np.int64(2) == multiply(A, A, B, B)
    assert modify(SIN, A) ** 1 * C == multiply(modify(SIN, A), C)


@pytest.mark.parametrize("other", [2, 2.0, "b", None, np.float64(2), np.array([1.0, 2.0])])
def test_operators_are_for_features_only(other):
    with pytest.raises(TypeError):
        A * other
    with pytest.raises(TypeError):
        other * A


@pytest.mark.parametrize("exponent", [2.0, "2", None, B])
def test_exponents_are_whole_numbers(exponent):
    with pytest.raises(TypeError):
        A**exponent


def test_nesting_is_limited():
    feature = A
    for _ in range(MAX_NESTING):
        feature = modify(SIN, feature)
    assert operation_count(feature) == MAX_NESTING
    assert pickle.loads(pickle.dumps(feature)) == feature == parse(str(feature))
    with pytest.raises(FeatureError, match="nested at most"):
        modify(SIN, feature)


@pytest.mark.parametrize("feature", [A, modify(SIN, A), multiply(A, B), project(SIN, (A, B), (1, 2))])
def test_features_are_frozen_and_copies_are_the_same_object(feature):
    name = dataclasses.fields(feature)[0].name
    with pytest.raises(dataclasses.FrozenInstanceError):
        setattr(feature, name, None)
    assert copy.copy(feature) is feature
    assert copy.deepcopy(feature) is feature


@settings(deadline=None)
@given(any_features.filter(lambda f: not any(name in str(f) for name in ("cube", "größer_als", "x("))))
def test_pickling_gives_back_the_feature(feature):
    again = pickle.loads(pickle.dumps(feature))
    assert again == feature
    assert hash(again) == hash(feature)


def test_built_in_transforms_are_pickled_by_name():
    for transform in registered_transforms():
        assert pickle.loads(pickle.dumps(transform)) is transform
    own = pickle.loads(pickle.dumps(Transform("own", np.cosh, smooth=True)))
    assert (own.name, own.function, own.smooth) == ("own", np.cosh, True)
    shadow = pickle.loads(pickle.dumps(Transform("sin", np.cosh)))
    assert shadow.function is np.cosh


def test_hashes_are_computed_anew_in_another_process(tmp_path):
    texts = ["x", "sin(x)*y", "sigmoid(0.5 + 2.0*x - y)", "above_median(`a b`, 3.0)"]
    path = tmp_path / "features.pickle"
    program = (
        "import pickle, sys; from pathlib import Path; from bgnlm.features import parse\n"
        f"path, texts = Path({str(path)!r}), {texts!r}\n"
        "features = [parse(text) for text in texts]\n"
        "if sys.argv[1] == 'write': path.write_bytes(pickle.dumps(dict(zip(features, texts))))\n"
        "else: loaded = pickle.loads(path.read_bytes()); assert [loaded[f] for f in features] == texts\n"
        "print(hash('x'), *map(hash, features))"
    )
    outputs = []
    for seed, action in (("1", "write"), ("2", "read")):
        command = [sys.executable, "-c", program, action]
        done = subprocess.run(command, env={"PYTHONHASHSEED": seed}, capture_output=True, text=True, check=True)
        outputs.append(done.stdout.split())
    assert all(first != second for first, second in zip(*outputs, strict=True))


def test_modification_holds_what_was_given():
    feature = Modification(ABOVE, A, [np.float64(2)])
    assert (feature.transform, feature.operand, feature.parameters) == (ABOVE, A, (2.0,))
    assert str(feature) == "above_median(a, 2.0)"
