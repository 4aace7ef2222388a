import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from bgnlm._validation import LARGEST
from bgnlm.errors import DataError, FeatureError, SettingError
from bgnlm.features import (
    Evaluator,
    Input,
    Modification,
    Multiplication,
    Projection,
    TrainingRange,
    Transform,
    inputs_of,
    modify,
    multiply,
    parse,
    project,
    registered_transforms,
    reject_reason,
    weighted_quantile,
)

from .strategies import Frame, learnt_features, tame_features

X = np.array([[1.0, 2.0, -1.0], [2.0, 0.0, 0.5], [3.0, 5.0, 4.0], [-4.0, 1.0, 2.0]])
NAMES = ("a", "b", "a b")
ALL_OF_A = [f"{g.name}(a)" if g.quantile is None else f"{g.name}(a, 0.5)" for g in registered_transforms()]


def relabelled(feature, new_names):
    """Replace the names of inputs."""
    match feature:
        case Input(name=name):
            return Input(new_names[name])
        case Modification(transform=g, operand=operand, parameters=parameters):
            return modify(g, relabelled(operand, new_names), parameters)
        case Multiplication(factors=factors):
            return multiply(*(relabelled(factor, new_names) for factor in factors))
        case Projection(transform=g, operands=operands, weights=weights):
            renamed = [relabelled(operand, new_names) for operand in operands]
            return project(g, renamed, weights, feature.intercept, feature.parameters)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", X[:, 0]),
        ("sin(a)", np.sin(X[:, 0])),
        ("a**2*b", X[:, 0] ** 2 * X[:, 1]),
        ("tanh(0.5 + 2*a - b)", np.tanh(0.5 + 2 * X[:, 0] - X[:, 1])),
        ("above_median(`a b`, 0.5)", [0, 0, 1, 1]),
        ("hinge_up(a + b, 3)", [0, 0, 5, 0]),
        ("step(a)*not_(step(b))", [0, 1, 0, 0]),
        ("inverse(b)", [0.5, np.inf, 0.2, 1]),
    ],
)
def test_values(text, expected):
    column = Evaluator(X, NAMES).column(parse(text))
    assert column.dtype == np.float64
    np.testing.assert_allclose(column, expected, rtol=1e-15)


def test_columns_are_read_only_and_data_are_copied():
    data = X.copy()
    evaluator = Evaluator(data, NAMES)
    data[:] = 0
    for text in ("a", "sin(a)", "a*b", "sin(a + b)"):
        column = evaluator.column(parse(text))
        assert column.any()
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 1


def test_matrix():
    evaluator = Evaluator(X, NAMES)
    matrix = evaluator.matrix([parse("b"), parse("a*b")])
    assert matrix.flags.f_contiguous
    assert matrix.flags.writeable
    np.testing.assert_array_equal(matrix, np.column_stack([X[:, 1], X[:, 0] * X[:, 1]]))
    assert evaluator.matrix([]).shape == (4, 0)
    assert (evaluator.names, evaluator.n_rows) == (NAMES, 4)


def test_shared_parts_are_computed_once():
    calls = []
    counted = Transform("counted", lambda x: calls.append(1) or np.tanh(x))
    evaluator = Evaluator(X, NAMES)
    texts = ("counted(a)", "sin(counted(a))", "counted(a)*b", "cos(counted(a) + b)", "counted(a)**2")
    evaluator.matrix([parse(text, [counted]) for text in texts])
    assert len(calls) == 1
    assert evaluator.n_cached == len(texts)


@settings(deadline=None)
@given(st.lists(tame_features, min_size=1, max_size=5), st.integers(0, 4))
def test_the_cache_is_bounded_and_changes_nothing(features, n_columns):
    names = ("a", "b", "a b", "sin")
    data = np.random.default_rng(1).normal(size=(6, 4))
    bounded = Evaluator(data, names, max_cached_bytes=n_columns * 6 * 8)
    np.testing.assert_array_equal(bounded.matrix(features * 2), Evaluator(data, names).matrix(features * 2))
    assert bounded.n_cached <= n_columns


def test_the_oldest_column_is_forgotten_first():
    calls = []
    f, g, h = (Transform(name, lambda x, name=name: calls.append(name) or x + 1) for name in "fgh")
    evaluator = Evaluator(X, NAMES, max_cached_bytes=2 * 4 * 8)
    for transform in (f, g, h, g, h, f):
        evaluator.column(modify(transform, Input("a")))
    assert calls == ["f", "g", "h", "f"]


def test_transforms_of_the_same_name_are_not_confused():
    first, second = (Transform("mine", lambda x, shift=shift: x + shift) for shift in (1, 2))
    evaluator = Evaluator(X, NAMES)
    for mine, shift in ((first, 1), (second, 2), (second, 2), (first, 1)):
        inner = X[:, 0] + shift
        for text, expected in (
            ("mine(a)", inner),
            ("mine(a)*b", inner * X[:, 1]),
            ("cos(mine(a))", np.cos(inner)),
            ("tanh(mine(a) + 2*b)", np.tanh(inner + 2 * X[:, 1])),
            ("mine(cos(mine(a)))", np.cos(inner) + shift),
        ):
            np.testing.assert_array_equal(evaluator.column(parse(text, [mine])), expected)
    assert evaluator.n_cached == 5


def test_transforms_of_the_same_function_share_their_columns():
    calls = []

    def function(x):
        calls.append(1)
        return x + 1

    evaluator = Evaluator(X, NAMES)
    for _ in range(3):
        evaluator.column(parse("mine(a)*b", [Transform("mine", function)]))
    assert len(calls) == 1


@pytest.mark.parametrize("text", [*ALL_OF_A, "mine(a)", "step(a - b)", "step(a)*b"])
def test_missing_values_stay_missing(text):
    data = np.array([[0.3, 2.0], [np.nan, 3.0], [1.7, 5.0], [2.0, np.nan]])
    feature = parse(text, [Transform("mine", lambda x: np.where(x < 1, 1, 0))])
    missing = np.isnan(data[:, sorted("ab".index(name) for name in inputs_of(feature))]).any(axis=1)
    column = Evaluator(data, ("a", "b")).column(feature)
    np.testing.assert_array_equal(np.isnan(column), missing)
    assert "not finite" in reject_reason(column)


@pytest.mark.parametrize("value", ["x", None, 3, ["x"]])
def test_only_features_have_columns(value):
    with pytest.raises(FeatureError, match=r"expected a feature, got .* Use parse\(...\)"):
        Evaluator(X, NAMES).column(value)


@settings(deadline=None)
@given(learnt_features)
def test_no_warning_escapes(feature):
    names = sorted(inputs_of(feature))
    data = np.array([[0.0], [1e300], [-1e300], [np.inf], [np.nan], [-1e-320], [3.0]]).repeat(len(names), axis=1)
    assert Evaluator(data, names).column(feature).shape == (7,)


@settings(deadline=None)
@given(tame_features, st.permutations(range(4)))
def test_columns_are_found_by_name(feature, order):
    names = ("a", "b", "a b", "sin")
    data = np.random.default_rng(2).normal(size=(5, 4))
    shuffled = Evaluator(data[:, order], [names[j] for j in order])
    np.testing.assert_array_equal(shuffled.column(feature), Evaluator(data, names).column(feature))


@settings(deadline=None)
@given(tame_features, st.permutations(["z", "y y", "log", "A"]))
def test_relabelling_columns_relabels_results(feature, new):
    names = ("a", "b", "a b", "sin")
    data = np.random.default_rng(3).uniform(0.5, 2, size=(5, 4))
    before = Evaluator(data, names).column(feature)
    again = relabelled(feature, dict(zip(names, new, strict=True)))
    after = Evaluator(data, new).column(again)
    # Sums in another order differ by rounding, which thresholds can make visible: nudging shows where.
    nudged = Evaluator(data * (1 + 1e-12), names).column(feature)
    stable = np.isclose(before, nudged, rtol=1e-6, atol=0)
    np.testing.assert_allclose(after[stable], before[stable], rtol=1e-6)
    assert relabelled(again, dict(zip(new, names, strict=True))) == feature


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: x[:2], r"shape \(2,\)"),
        (lambda x: max(x), r"shape \(\).*np.maximum"),
        (lambda x: x.astype(complex), "complex128"),
        (lambda x: np.full(x.shape, "a"), "<U1"),
        (lambda x: np.full(x.shape, None), "object"),
        (lambda x: np.ma.log(x), "masked entries"),
        (lambda x: x.astype("datetime64[s]"), "datetime64"),
        (lambda x: len(x) / 0, "division by zero"),
        (lambda x: max(0, x), "ambiguous"),
        (lambda x: np.negative(x, out=x), "read-only"),
        (lambda x, y: x + y, "missing 1 required"),
    ],
)
def test_transforms_that_misbehave_are_named(function, message):
    feature = modify(Transform("mine", function), Input("a"))
    with pytest.raises(FeatureError, match=rf"(?s)transform mine failed in mine\(a\).*{message}") as caught:
        Evaluator(X, NAMES).column(feature)
    assert caught.value.__cause__ is not None


def test_what_a_transform_returns_is_copied():
    kept = np.zeros(4)

    def keep(x):
        kept[:] = x
        return kept

    evaluator = Evaluator(X, NAMES)
    first = evaluator.column(modify(Transform("keep", keep), Input("a")))
    evaluator.column(modify(Transform("keep", keep), Input("b")))
    np.testing.assert_array_equal(first, X[:, 0])


@pytest.mark.parametrize(
    ("data", "names", "message"),
    [
        (X[:, 0], ["a"], "two-dimensional"),
        (X, ["a", "b"], "3 columns but 2 names"),
        (X, "abc", "3 columns but 1 names"),
        (X, ["a", "b", "a"], "more than once: a"),
        (X, ["a", "b", ""], "not empty"),
        (X, {"a", "b", "c"}, "must be a list"),
        (X, 5, "must be a list with one name per column, got 5"),
        ([["x", "y"]], ["a", "b"], "numbers only"),
        (np.array([["1", 2]], dtype=object), ["a", "b"], "numbers only"),
        ([[1j]], ["a"], "numbers only"),
        ([[1, None], [{}, 2]], ["a", "b"], "numbers only"),
        ([[1, 2], [3]], ["a", "b"], "numbers only"),
        (np.array([[10**400, 1]], dtype=object), ["a", "b"], "numbers only"),
        (np.array([["2021-09-01"]], dtype="datetime64[D]"), ["a"], "dates or durations"),
        (np.array([[5]], dtype="timedelta64[ns]"), ["a"], "dates or durations"),
        (np.ma.array([[1.0, 2.0]], mask=[[False, True]]), ["a", "b"], "masked entries.*Fill"),
        (csr_array(X), NAMES, r"X\.toarray\(\)"),
        (Frame(X, ("a", "b", "c")), NAMES, "without a column: a b; columns without a name: c"),
        (Frame(X, ("a", "b", "b")), None, "more than once: b"),
        (Frame(X, ("a", "b", "b")), ("a", "a", "b"), "more than once: a"),
    ],
)
def test_unusable_data_are_refused(data, names, message):
    with pytest.raises((DataError, FeatureError), match=message):
        Evaluator(data, names)


def test_memory_is_a_whole_number():
    with pytest.raises(SettingError, match="max_cached_bytes must be a whole number"):
        Evaluator(X, NAMES, max_cached_bytes="1 GB")


@pytest.mark.parametrize("names", [None, NAMES, ("b", "a b", "a")])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_columns_of_a_data_frame_are_found_by_name(names, order):
    frame = Frame(X[:, order], [NAMES[j] for j in order])
    evaluator = Evaluator(frame, names)
    assert set(evaluator.names) == set(NAMES)
    np.testing.assert_array_equal(evaluator.matrix(map(Input, NAMES)), X)


def test_columns_of_an_array_have_names_too():
    evaluator = Evaluator(X)
    assert evaluator.names == ("x1", "x2", "x3")
    np.testing.assert_array_equal(evaluator.column(Input("x2")), X[:, 1])
    assert Evaluator(X, (name for name in NAMES)).names == NAMES


def test_nothing_masked_is_nothing_missing():
    np.testing.assert_array_equal(Evaluator(np.ma.array(X), NAMES).column(Input("a")), X[:, 0])


def test_unknown_inputs_are_named():
    evaluator = Evaluator(X, ("age", "height", "weight"))
    with pytest.raises(FeatureError, match=r"no column 'hieght'\. Did you mean 'height'"):
        evaluator.column(parse("sin(hieght)"))
    with pytest.raises(FeatureError, match="The columns are: age, height, weight"):
        evaluator.column(parse("q"))


@pytest.mark.parametrize(
    ("column", "weight", "reason"),
    [
        ([1, 2, 3], None, None),
        ([0, 0, 1e-300], None, None),
        ([1, np.nan, np.inf], None, "not finite in 2 of 3 rows, first in row 1"),
        ([1, np.nan, 2], [1, 0, 1], None),
        ([1, 2, np.nan], [0, 1, 1], "not finite in 1 of 2 rows, first in row 2"),
        ([2, 2, 2], None, "constant: every value is 2"),
        ([0, 0, 0], None, "constant"),
        ([1, 2, 2], [0, 1, 1], "constant"),
        ([1, 1 + 1e-15, 1 - 1e-15], None, "constant"),
        ([1e9, 1e9 + 1, 1e9], None, None),
        ([-1e308, 1e308, 0], None, "too large: values reach 1e+308"),
        ([-0.9 * LARGEST, 0.9 * LARGEST, 0], None, None),
        ([1, 2], [0, 0], "no row of positive weight"),
        ([], None, "no row"),
        ([1], None, "constant"),
    ],
)
def test_reject_reason(column, weight, reason):
    found = reject_reason(np.array(column, dtype=float), None if weight is None else np.array(weight, dtype=float))
    assert (found is None) if reason is None else (reason in found)
    assert reject_reason(column, weight) == found


@pytest.mark.parametrize(
    ("column", "weight", "message"),
    [
        ([1, 2, 3], [1, 1], "one value per row, 3 in all, got 2"),
        ([1, 2], [1, 1, 1], "one value per row, 2 in all, got 3"),
        ([1, 2], [1, -1], "got -1 in row 1"),
        ([1, 2], [1, np.nan], "got nan in row 1"),
        ([1, 2], [np.inf, 1], "got inf in row 0"),
        ([1, 2], ["1", "2"], "numbers only"),
        ([1, 2], 1.0, "one-dimensional"),
        (["1", "2"], None, "numbers only"),
        ([[1, 2]], None, "one-dimensional"),
        (3.0, None, "one-dimensional"),
    ],
)
@pytest.mark.parametrize(
    "function",
    [reject_reason, TrainingRange.of, lambda column, weight: weighted_quantile(column, 0.5, weight)],
    ids=["reject_reason", "TrainingRange.of", "weighted_quantile"],
)
def test_unusable_columns_and_weights_are_refused(function, column, weight, message):
    with pytest.raises(DataError, match=message):
        function(column, weight)
