"""Table 1 of the paper and its counts, row by row and by brute force."""

from itertools import combinations, combinations_with_replacement

import numpy as np
import pytest
from hypothesis import given, settings

from bgnlm.errors import FeatureError, SettingError
from bgnlm.features import (
    Input,
    Transform,
    count_features,
    depth,
    feature_counts,
    inputs_of,
    leaf_count,
    local_width,
    modify,
    multiply,
    operation_count,
    parse,
    project,
)

from .strategies import any_features

U, V = Transform("u", np.tanh), Transform("v", np.sin)

TABLE_1 = [  # feature, d, oc, lw: left panel, then right panel
    ("x", 0, 0, 1),
    ("u(x)", 1, 1, 1),
    ("v(x)", 1, 1, 1),
    ("u(u(x))", 2, 2, 1),
    ("v(u(x))", 2, 2, 1),
    ("u(v(x))", 2, 2, 1),
    ("v(v(x))", 2, 2, 1),
    ("u(x + u(x))", 2, 3, 2),
    ("v(x + u(x))", 2, 3, 2),
    ("u(x + v(x))", 2, 3, 2),
    ("v(x + v(x))", 2, 3, 2),
    ("u(u(x) + v(x))", 2, 4, 2),
    ("v(u(x) + v(x))", 2, 4, 2),
    ("u(x + u(x) + v(x))", 2, 5, 3),
    ("v(x + u(x) + v(x))", 2, 5, 3),
    ("x**2", 1, 1, 2),
    ("x*u(x)", 2, 2, 2),
    ("x*v(x)", 2, 2, 2),
    ("x**3", 2, 2, 2),
    ("u(x**2)", 2, 2, 1),
    ("v(x**2)", 2, 2, 1),
    ("u(x + x**2)", 2, 3, 2),
    ("v(x + x**2)", 2, 3, 2),
    ("u(u(x) + x**2)", 2, 4, 2),
    ("v(u(x) + x**2)", 2, 4, 2),
    ("u(v(x) + x**2)", 2, 4, 2),
    ("v(v(x) + x**2)", 2, 4, 2),
    ("u(x + u(x) + x**2)", 2, 5, 3),  # printed as 3 operations; its twin in the next row has 5
    ("v(x + u(x) + x**2)", 2, 5, 3),
    ("u(x + v(x) + x**2)", 2, 5, 3),
    ("v(x + v(x) + x**2)", 2, 5, 3),
    ("u(u(x) + v(x) + x**2)", 2, 6, 3),
    ("v(u(x) + v(x) + x**2)", 2, 6, 3),
    ("u(x + u(x) + v(x) + x**2)", 2, 7, 4),
    ("v(x + u(x) + v(x) + x**2)", 2, 7, 4),
]


@pytest.mark.parametrize(("text", "d", "oc", "lw"), TABLE_1)
def test_table_1(text, d, oc, lw):
    feature = parse(text, [U, V])
    assert (depth(feature), operation_count(feature), local_width(feature)) == (d, oc, lw)


@pytest.mark.parametrize(
    ("text", "d", "oc"),
    [("v(u(x) + x)", 2, 3), ("sin(cos(tanh(x1)) + gauss(x2))", 3, 5), ("x2*gauss(x1)", 2, 2)],
)
def test_examples_in_the_text(text, d, oc):
    feature = parse(text, [U, V])
    assert (depth(feature), operation_count(feature)) == (d, oc)


def enumerate_features(max_depth, inputs, transforms):
    """List all canonical features by depth, and count the pairs that products were made of."""
    by_depth, n_pairs = [set(map(Input, inputs))], [0]
    for d in range(1, max_depth + 1):
        operands = sorted(set().union(*by_depth), key=str)
        made = {modify(g, f) for g in transforms for f in operands}
        for size in range(2, len(operands) + 1):
            for chosen in combinations(operands, size):
                made |= {project(g, chosen, (1,) * size) for g in transforms}
        pairs = [p for p in combinations_with_replacement(operands, 2) if 1 + depth(p[0]) + depth(p[1]) == d]
        made |= {multiply(*pair) for pair in pairs}
        by_depth.append({feature for feature in made if depth(feature) == d})
        n_pairs.append(len(pairs))
    return by_depth, n_pairs


def test_table_1_lists_all_features_up_to_depth_2():
    by_depth, _ = enumerate_features(2, "x", [U, V])
    rows = {parse(text, [U, V]) for text, *_ in TABLE_1}
    assert set().union(*by_depth) == rows
    assert [len(features) for features in by_depth] == [1, 3, 31]


def test_products_of_depth_3_are_34_in_37_constructions():
    by_depth, _ = enumerate_features(2, "x", [U, V])
    features = sorted(set().union(*by_depth), key=str)
    pairs = [p for p in combinations_with_replacement(features, 2) if depth(p[0]) + depth(p[1]) == 2]
    assert len(pairs) == 37 == feature_counts(3, 1, 2)[3].products
    assert len({multiply(*pair) for pair in pairs}) == 34 == feature_counts(3, 1, 2, distinct=True)[3].products


def test_counts_as_printed():
    counts = feature_counts(3, 1, 2)
    assert [count.total for count in counts] == [1, 3, 31, 68_719_476_740]
    assert [count.transforms for count in counts] == [0, 2, 28, 68_719_476_703]
    assert [count.products for count in counts] == [0, 1, 3, 37]
    assert count_features(3, 1, 2) == 68_719_476_740


def test_counts_without_multiplications():
    # The paper prints 8176 = 2 (2^12 - 1) - 14; there are 1 + 2 + 12 = 15 operands, not 12.
    counts = [count_features(d, 1, 2, multiplications=False) for d in range(4)]
    assert counts == [1, 2, 12, 2 * (2**15 - 1) - 14]
    assert counts[3] == 65520


@pytest.mark.parametrize(
    ("max_depth", "inputs", "transforms"), [(3, "x", [U]), (2, "xy", [U]), (1, "xyz", [U, V]), (4, "x", [])]
)
def test_distinct_counts_by_brute_force(max_depth, inputs, transforms):
    by_depth, n_pairs = enumerate_features(max_depth, inputs, transforms)
    size = (len(inputs), len(transforms))
    assert [count_features(d, *size, distinct=True) for d in range(max_depth + 1)] == list(map(len, by_depth))
    if max_depth < 3:  # one more level, and the constructions are not the distinct features
        assert [count.products for count in feature_counts(max_depth, *size)] == n_pairs


def test_counts_at_depth_3_are_distinct_features_and_one_more_or_less():
    # As printed, the product x² is subtracted although it is no transform.
    assert count_features(3, 1, 2, distinct=True) == 2 * (2**35 - 1) - 30 + 34


@pytest.mark.parametrize("arguments", [(-1, 1, 2), (1, -1, 2), (1, 1, -2), (5, 1, 2)])
def test_impossible_counts_are_refused(arguments):
    with pytest.raises(SettingError, match=r"0 or more|smaller depth"):
        count_features(*arguments)


@pytest.mark.parametrize("arguments", [(2.5, 1, 2), (1, "1", 2), (1, 1, None), (True, 1, 1)])
def test_counts_are_of_whole_numbers(arguments):
    with pytest.raises(SettingError, match="must be a whole number"):
        count_features(*arguments)


def test_counts_do_not_overflow():
    assert count_features(*map(np.int64, (3, 1, 2))) == 68_719_476_740


@pytest.mark.parametrize("measure", [depth, local_width, operation_count, leaf_count, inputs_of])
@pytest.mark.parametrize("value", ["x", None, 3])
def test_only_features_have_measures(measure, value):
    with pytest.raises(FeatureError, match=r"expected a feature, got .* Use parse\(...\)"):
        measure(value)


def test_no_inputs_means_no_features():
    assert [count_features(d, 0, 3, distinct=True) for d in range(4)] == [0, 0, 0, 0]


def test_inputs_and_leaves():
    feature = parse("a*sin(b)*sigmoid(a + 2*c**2)")
    assert inputs_of(feature) == {"a", "b", "c"}
    assert leaf_count(feature) == 5


@settings(deadline=None)
@given(any_features, any_features)
def test_measures_of_products_and_transforms(f, g):
    product, modified = multiply(f, g), modify(U, f)
    assert depth(product) == 1 + depth(f) + depth(g)
    assert operation_count(product) == 1 + operation_count(f) + operation_count(g)
    assert (depth(modified), operation_count(modified)) == (1 + depth(f), 1 + operation_count(f))
    assert inputs_of(product) == inputs_of(f) | inputs_of(g)
    assert leaf_count(product) == leaf_count(f) + leaf_count(g) >= len(inputs_of(product))
