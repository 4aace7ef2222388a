"""Features that are one function on the data are one class, represented by its simplest form."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bgnlm.features import Evaluator, Transform, modify, operation_count, parse
from bgnlm.features.nodes import Input
from bgnlm.likelihood.gram import GramBuilder
from bgnlm.search.classes import FeatureClasses, class_key

N_ROWS = 60
ONCE = "cbrt_abs(P**2*M)"
TWICE = "sqrt_abs(cbrt_abs(P**4*M**2))"
THRICE = "sqrt_abs(sqrt_abs(cbrt_abs(P**8*M**4)))"


def table_of(columns, weights=None, known=None, cost=operation_count):
    X = np.column_stack(list(columns.values()))
    weights = np.ones(len(X)) if weights is None else np.asarray(weights, dtype=float)
    evaluator = Evaluator(X, list(columns))
    builder = GramBuilder(np.arange(len(X)) ** 1.5, weights, np.zeros(len(X)))
    return FeatureClasses(evaluator, builder, lambda feature: float(cost(feature)), weights, known)


@pytest.fixture
def columns(rng):
    x = rng.normal(size=N_ROWS)
    return {
        "P": rng.uniform(0.1, 5.0, N_ROWS),
        "M": rng.uniform(0.5, 2.0, N_ROWS),
        "x": x,
        "y": rng.normal(size=N_ROWS),
        "b": (rng.random(N_ROWS) < 0.4).astype(float),
        "affine": 7.0 - 3.0 * x,
        "flipped": -x,
    }


@pytest.fixture
def classes(columns):
    return table_of(columns)


def class_of(classes, text):
    found = classes.identify(parse(text))
    return None if found is None else found.feature_class


def test_the_order_of_factors_does_not_matter(classes):
    assert class_of(classes, "x*y") == class_of(classes, "y*x")
    assert len(classes) == 1


def test_two_ways_of_writing_a_law_are_one_class(classes):
    assert class_of(classes, TWICE) == class_of(classes, ONCE) == class_of(classes, THRICE)
    assert class_of(classes, "cbrt_abs(P*M)") == 1


@pytest.mark.parametrize("text", ["cbrt_abs(M)*cbrt_abs(P**2)", "cbrt_abs(M)*cbrt_abs(P)*cbrt_abs(P)"])
def test_a_product_of_roots_is_the_root_of_the_product(classes, text):
    assert classes.identify(parse(text)).feature == parse(ONCE)
    assert classes.representatives == [parse(ONCE)]


def test_sines_do_not_multiply(classes):
    assert classes.identify(parse("sin(x)*sin(y)")).feature == parse("sin(x)*sin(y)")


@pytest.mark.parametrize("name", ["sigmoid", "sin", "log1p_abs", "sqrt_abs", "gauss", "not_"])
def test_any_function_of_a_binary_input_is_the_input(classes, name):
    assert class_of(classes, "b") == class_of(classes, f"{name}(b)") == class_of(classes, "b*b") == 0
    assert classes.representatives == [Input("b")]


def test_affine_images_and_sign_flips_are_one_class(classes):
    assert {class_of(classes, name) for name in ("x", "affine", "flipped")} == {0}
    assert class_of(classes, "y") == 1


@pytest.mark.parametrize("order", [(ONCE, TWICE, THRICE), (THRICE, TWICE, ONCE), (TWICE, ONCE, THRICE)])
def test_the_simplest_member_represents_whatever_comes_first(classes, order):
    found = [classes.identify(parse(text)) for text in order]
    assert classes.representatives == [parse(ONCE)]
    assert classes.costs == [3.0]
    cheapest = np.minimum.accumulate([operation_count(parse(text)) for text in order])
    assert [one.cost for one in found] == cheapest.tolist()
    assert classes.costs_of([0, 0]).tolist() == [3.0, 3.0]


def test_equally_simple_members_are_ordered_canonically(columns):
    for order in (("x", "affine"), ("affine", "x")):
        classes = table_of(columns)
        assert {classes.identify(Input(name)).feature_class for name in order} == {0}
        assert classes.representatives == [Input("affine")]


def test_forms_met_before_are_known(classes):
    classes.identify(parse(TWICE))
    classes.identify(parse(ONCE))
    assert classes.class_of(parse(TWICE)) == classes.class_of(parse(ONCE)) == 0
    assert classes.class_of(parse(THRICE)) is None


@pytest.mark.parametrize(("distance", "n_classes"), [(1e-6, 2), (1e-8, 2), (3e-10, 2), (3e-11, 1), (1e-13, 1)])
def test_functions_that_are_only_close_are_two_classes(rng, distance, n_classes):
    """`near` has a correlation of 1 - distance with x."""
    basis = np.linalg.qr(np.column_stack([np.ones(N_ROWS), rng.normal(size=(N_ROWS, 2))]))[0]
    x, across = basis[:, 1], basis[:, 2]
    near = (1 - distance) * x + np.sqrt(2 * distance - distance**2) * across
    classes = table_of({"x": x, "near": near, "turned": 4.0 - 2.0 * near})
    for name in ("x", "near", "turned"):
        classes.identify(Input(name))
    assert len(classes) == n_classes


def test_columns_that_cannot_enter_a_model_are_refused(columns):
    columns |= {"zero": np.append(np.zeros(3), np.arange(3.0, N_ROWS)), "level": np.full(N_ROWS, 2.5)}
    columns |= {"large": 1e90 * (1 + columns["P"]), "shifted": 1e14 + columns["P"]}
    classes = table_of(columns)
    for text in ("level", "level*level", "inverse(zero)", "large**3", "large**2", "not_(level)", "shifted"):
        assert classes.identify(parse(text)) is None, text
    assert len(classes) == 0


def test_features_that_the_prior_rules_out_are_refused(columns):
    classes = table_of(columns, cost=lambda feature: np.inf if operation_count(feature) else 0.0)
    assert classes.identify(parse("sin(x)")) is None
    assert classes.identify(parse("x")).feature_class == 0


def test_a_transform_that_fails_is_refused(columns):
    def fails(x):
        raise ValueError

    classes = table_of(columns)
    assert classes.identify(modify(Transform("fails", fails), Input("x"))) is None


def test_a_feature_may_be_finite_where_a_part_of_it_is_not(columns):
    classes = table_of(columns | {"zero": np.append(0.0, np.arange(1.0, N_ROWS))})
    assert classes.identify(parse("sigmoid(inverse(zero))")).feature == parse("sigmoid(inverse(zero))")
    assert classes.identify(parse("x*sigmoid(inverse(zero))")).feature_class == 1


def test_cut_points_are_learnt(classes, columns):
    found = classes.identify(parse("above_median(x)"))
    assert found.feature.parameters == (np.median(columns["x"]),)
    assert class_of(classes, "above_median(affine)") == class_of(classes, "above_median(flipped)")


def test_the_column_is_standardised(classes, columns):
    unit = classes.identify(Input("P")).unit
    centred = columns["P"] - columns["P"].mean()
    assert unit.values == pytest.approx(centred / np.linalg.norm(centred), abs=1e-14)
    assert unit.norm == pytest.approx(np.linalg.norm(centred))


def test_a_table_as_a_value_rebuilds_the_same_numbers(columns):
    before = table_of(columns)
    texts = ["x", TWICE, "b", "sin(y)", ONCE, "x*y", "P", "gauss(b)", *(f"sin(x + {k}*y)" for k in range(2, 80))]
    for text in texts:
        before.identify(parse(text))
    after = table_of(columns, known=before.table())
    assert after.representatives == before.representatives
    assert after.costs == before.costs
    assert len(after) > 64
    for text in [*texts, THRICE, "flipped"]:
        assert class_of(after, text) == class_of(before, text)
    assert (after.table().fingerprints == before.table().fingerprints).all()


def test_the_value_does_not_change_with_the_table(classes):
    classes.identify(parse(TWICE))
    value = classes.table()
    classes.identify(parse(ONCE))
    classes.identify(parse("x"))
    assert value.representatives == (parse(TWICE),)
    assert value.fingerprints.shape[0] == 1


def test_rows_of_weight_zero_do_not_take_part(columns):
    other = columns["x"].copy()
    other[:5] += 10.0
    broken = columns["P"].copy()
    broken[:5] = 0.0
    only_here = np.zeros(N_ROWS)
    only_here[:5] = 1.0
    columns |= {"other": other, "broken": broken, "only_here": only_here}
    weights = np.ones(N_ROWS)
    everything = table_of(columns, weights)
    assert class_of(everything, "other") != class_of(everything, "x")
    assert class_of(everything, "inverse(broken)") is None
    weights[:5] = 0.0
    some = table_of(columns, weights)
    assert class_of(some, "other") == class_of(some, "x")
    assert class_of(some, "inverse(broken)") == class_of(some, "inverse(P)")
    assert class_of(some, "only_here") is None


def test_classes_by_weights_are_those_of_repeated_rows(columns):
    weights = np.tile([1.0, 3.0], N_ROWS // 2)
    weighted = table_of(columns, weights)
    repeated = table_of({name: np.repeat(values, weights.astype(int)) for name, values in columns.items()})
    for text in ("x", "affine", "above_q75(P)", TWICE, ONCE, "above_median(x)"):
        found, expected = weighted.identify(parse(text)), repeated.identify(parse(text))
        assert (found.feature, found.feature_class) == (expected.feature, expected.feature_class)


def test_what_another_chain_found_is_the_same_class(columns):
    here, there = table_of(columns), table_of(columns)
    here.identify(parse("y"))
    here.identify(parse(TWICE))
    there.identify(parse(ONCE))
    there.identify(parse("sin(x)"))
    value = there.table()
    assert [here.absorb(*known) for known in zip(value.representatives, value.fingerprints, strict=True)] == [1, 2]
    assert here.representatives == [parse("y"), parse(ONCE), parse("sin(x)")]
    assert here.costs == [0.0, 3.0, 1.0]


def test_keys_of_classes_are_different():
    assert len({class_key(number) for number in range(10_000)}) == 10_000


FORMS = [
    *["x", "affine", "flipped", "y", "b", "sin(b)", "b*b", "x*y", "y*flipped", "affine*y", "x**2", "flipped**2"],
    *[ONCE, TWICE, THRICE, "sqrt_abs(x**2)", "sqrt_abs(flipped**2)", "sin(x)", "sin(flipped)", "b*x", "b*b*x"],
]


def partition(classes):
    groups = {}
    for text in FORMS:
        groups.setdefault(class_of(classes, text), set()).add(text)
    return {frozenset(group) for group in groups.values()}


@settings(max_examples=40, deadline=None)
@given(order=st.permutations(FORMS))
def test_the_order_of_arrival_changes_neither_the_classes_nor_who_represents_them(order):
    rng = np.random.default_rng(3)
    x = rng.normal(size=N_ROWS)
    columns = {"P": rng.uniform(0.1, 5.0, N_ROWS), "M": rng.uniform(0.5, 2.0, N_ROWS), "x": x, "flipped": -x}
    columns |= {"y": rng.normal(size=N_ROWS), "b": 1.0 * (rng.random(N_ROWS) < 0.4), "affine": 7.0 - 3.0 * x}
    expected, shuffled = table_of(columns), table_of(columns)
    for text in FORMS:
        expected.identify(parse(text))
    for text in order:
        shuffled.identify(parse(text))
    assert partition(shuffled) == partition(expected)
    assert set(shuffled.representatives) == set(expected.representatives)


def test_changes_make_one_table_from_another(classes):
    table = classes.table()
    for texts in (("x", THRICE), ("y",), (), (TWICE, "sin(x)"), (ONCE,)):
        for text in texts:
            classes.identify(parse(text))
        table = table.changed(classes.changes())
        assert table.representatives == tuple(classes.representatives)
        assert table.costs.tolist() == classes.costs
        assert (table.fingerprints == classes.table().fingerprints).all()
    assert len(table) == 4
    assert not len(classes.changes().numbers)


def _classes_of(x, y):
    evaluator, weights = Evaluator(np.column_stack([x, x[::-1]]), ["x", "z"]), np.ones(len(x))
    return FeatureClasses(evaluator, GramBuilder(y, weights, np.zeros(len(x))), operation_count, weights)


def test_a_pole_at_a_single_row_is_no_feature_unless_the_response_has_it(rng):
    x = rng.choice([-1.0, 1.0], N_ROWS) * rng.uniform(0.5, 2.0, N_ROWS)
    y = rng.normal(size=N_ROWS)
    assert class_of(_classes_of(x, y), "inverse(x)") is not None
    x[5] = 1e-7  # where new rows fall beside it, 1/x is anything
    for pole in ("inverse(x)", "inverse(0.0 + 1.0*x + 0.0000001*z)"):
        assert class_of(_classes_of(x, y), pole) is None
        assert class_of(_classes_of(x, 1.0 / x), pole) is not None
    assert class_of(_classes_of(x, y), "cbrt_abs(x)") is not None


def test_what_is_apart_in_an_argument_may_be_apart_in_its_function(rng):
    x = rng.uniform(0.5, 2.0, N_ROWS)
    x[5] = -1e9
    assert class_of(_classes_of(x, rng.normal(size=N_ROWS)), "abs_pow_7_2(x)") is not None
    assert class_of(_classes_of(x, rng.normal(size=N_ROWS)), "x**2") is not None
