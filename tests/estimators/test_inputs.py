import datetime
import json
import warnings
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from bgnlm._validation import LARGEST
from bgnlm.errors import BgnlmWarning, DataError, SettingError, UnseenLevelWarning
from bgnlm.estimators.columns import BooleanColumn, CategoricalColumn, NumericColumn
from bgnlm.estimators.inputs import TableCoding, learn_coding

NAN = float("nan")
MIXED = {
    "size": [1, 2, 3, 4],
    "price": [0.5, 1.5, 2.5, 3.5],
    "sold": [True, False, True, True],
    "color": ["red", "blue", "red", "green"],
}
MIXED_NAMES = ("size", "price", "sold", "color=blue", "color=green")
MIXED_CODED = [[1, 0.5, 1, 0, 0], [2, 1.5, 0, 1, 0], [3, 2.5, 1, 0, 0], [4, 3.5, 1, 0, 1]]


def as_pandas(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def as_polars(columns):
    return pytest.importorskip("polars").DataFrame(columns, strict=False)


def as_arrow(columns):
    return pytest.importorskip("pyarrow").table(columns)


def as_objects(columns):
    return np.array([list(row) for row in zip(*columns.values(), strict=True)], dtype=object)


def as_lists(columns):
    return [list(row) for row in zip(*columns.values(), strict=True)]


FRAMES = [as_pandas, as_polars, as_arrow]
ARRAYS = [as_objects, as_lists]
frames = pytest.mark.parametrize("table", FRAMES)
tables = pytest.mark.parametrize("table", FRAMES + ARRAYS)


def column(X, **options):
    """What is learnt from a table of one column."""
    return learn_coding(X, **options).columns[0]


@frames
def test_each_kind_of_column_is_coded_by_its_rule(table):
    coding = learn_coding(table(MIXED))
    assert coding.columns == (
        NumericColumn("size"),
        NumericColumn("price"),
        BooleanColumn("sold"),
        CategoricalColumn("color", "red", ("blue", "green")),
    )
    assert (coding.has_names, coding.input_names, coding.names) == (True, tuple(MIXED), MIXED_NAMES)
    coded = coding.encode(table(MIXED))
    assert coded.dtype == np.float64
    np.testing.assert_array_equal(coded, MIXED_CODED)


@pytest.mark.parametrize("table", ARRAYS)
def test_columns_without_names_are_numbered(table):
    coding = learn_coding(table(MIXED))
    assert not coding.has_names
    assert coding.input_names == ("x1", "x2", "x3", "x4")
    assert coding.names == ("x1", "x2", "x3", "x4=blue", "x4=green")
    np.testing.assert_array_equal(coding.encode(table(MIXED)), MIXED_CODED)


def test_a_table_may_come_from_another_library_in_another_order():
    coding = learn_coding(as_pandas(MIXED))
    other = dict(reversed(MIXED.items()))
    for table in FRAMES:
        np.testing.assert_array_equal(coding.encode(table(other)), MIXED_CODED)


@pytest.mark.parametrize("dtype", ["i1", "u8", "f2", "f4", "f8", "?", np.longdouble, object])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_of_any_type_of_number(dtype, order):
    X = np.array([[0, 1], [1, 1], [1, 0]], dtype=dtype, order=order)
    X.setflags(write=False)
    coding = learn_coding(X)
    kind = BooleanColumn if dtype == "?" else NumericColumn
    assert coding.columns == (kind("x1"), kind("x2"))
    np.testing.assert_array_equal(coding.encode(X), [[0, 1], [1, 1], [1, 0]])


class OnlyAnArray:
    def __init__(self, data):
        self.data = data

    def __array__(self, dtype=None, copy=None):
        return self.data

    def __array_function__(self, func, types, args, kwargs):
        raise TypeError(func.__name__)


@pytest.mark.parametrize(
    "wrapped", [OnlyAnArray, np.matrix, np.ma.asarray, np.ndarray.tolist], ids=lambda f: f.__name__
)
@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_what_can_become_an_array(wrapped):
    X = np.arange(6.0).reshape(3, 2)
    coding = learn_coding(wrapped(X))
    encoded = coding.encode(wrapped(X))
    assert type(encoded) is np.ndarray
    np.testing.assert_array_equal(encoded, X)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1, 2.5, True], NumericColumn("x1")),
        ([Decimal("1.5"), Fraction(1, 2), np.float32(2)], NumericColumn("x1")),
        ([True, np.bool_(False), True], BooleanColumn("x1")),
        (["1", "2", "1"], CategoricalColumn("x1", "1", ("2",))),
        (np.array(["b", "a"]), CategoricalColumn("x1", "a", ("b",))),
        ([np.str_("b"), "a", "b"], CategoricalColumn("x1", "b", ("a",))),
    ],
    ids=str,
)
def test_columns_of_objects(values, expected):
    X = np.asarray(values).reshape(-1, 1) if isinstance(values, np.ndarray) else as_objects({"": values})
    assert column(X) == expected


def test_types_of_pandas():
    pd = pytest.importorskip("pandas")
    types = {
        "Int64": ([1, 2, 2], NumericColumn),
        "Float64": ([1, 2, 2], NumericColumn),
        "boolean": ([True, False, True], BooleanColumn),
        "string": (["a", "b", "a"], CategoricalColumn),
        "category": (["a", "b", "a"], CategoricalColumn),
        "object": ([1, 2.5, 3], NumericColumn),
        "Sparse[float]": ([0.0, 0.0, 1.0], NumericColumn),
    }
    for dtype, (values, kind) in types.items():
        X = pd.DataFrame({"a": pd.Series(values, dtype=dtype)})
        assert type(column(X)) is kind, dtype


def test_types_of_polars():
    pl = pytest.importorskip("polars")
    types = [
        (pl.UInt8, [1, 2, 2], NumericColumn),
        (pl.Float32, [1, 2, 2], NumericColumn),
        (pl.Decimal(10, 2), [Decimal("1.25"), Decimal(2), Decimal(3)], NumericColumn),
        (pl.Boolean, [True, False, True], BooleanColumn),
        (pl.String, ["a", "b", "a"], CategoricalColumn),
        (pl.Categorical, ["a", "b", "a"], CategoricalColumn),
        (pl.Enum(["a", "b", "c"]), ["a", "b", "a"], CategoricalColumn),
    ]
    for dtype, values, kind in types:
        X = pl.DataFrame({"a": pl.Series(values, dtype=dtype)})
        assert type(column(X)) is kind, dtype
        assert learn_coding(X).encode(X).shape == (3, 1)


def test_levels_of_any_type_are_their_str():
    pd = pytest.importorskip("pandas")
    coding = learn_coding(pd.DataFrame({"a": pd.Categorical([10, 9, 10], categories=[9, 10, 11])}))
    assert coding.columns == (CategoricalColumn("a", "10", ("9",)),)
    np.testing.assert_array_equal(coding.encode(pd.DataFrame({"a": ["9", "10"]})), [[1], [0]])
    assert column(pd.DataFrame({"a": pd.Categorical([1.0, 2.0, 1.0])})) == CategoricalColumn("a", "1.0", ("2.0",))


@pytest.mark.parametrize(
    ("values", "weights", "reference", "levels"),
    [
        ("baab", None, "a", "b"),
        ("bab", None, "b", "a"),
        ("aab", [1, 1, 3], "b", "a"),
        ("abcc", [2, 1, 0, 0], "a", "b"),
        ("aaa", None, "a", ""),
    ],
)
def test_the_reference_is_the_most_frequent_level(values, weights, reference, levels):
    X = np.column_stack([np.array(list(values), dtype=object), np.arange(len(values))])
    assert column(X, sample_weight=weights) == CategoricalColumn("x1", reference, tuple(levels))


def test_a_single_level_gives_no_column_but_one_is_needed():
    coding = learn_coding(as_objects({"": ["a", "a"], " ": [1, 2]}))
    assert coding.names == ("x2",)
    np.testing.assert_array_equal(coding.encode(as_objects({"": ["a", "a"], " ": [1, 2]})), [[1], [2]])
    with pytest.raises(DataError, match="a column that varies"):
        learn_coding([["a"], ["a"]])


@pytest.mark.parametrize(
    ("n_levels", "n_rows", "fine"),
    [(20, 20, True), (21, 42, True), (21, 41, False), (100, 1000, True), (101, 1000, False)],
)
def test_too_many_levels_look_like_an_identifier(n_levels, n_rows, fine):
    X = [[f"id{i % n_levels}"] for i in range(n_rows)]
    if fine:
        coding = learn_coding(X)
        assert len(coding.names) == n_levels - 1
        assert TableCoding.from_plain(coding.to_plain()) == coding
    else:
        with pytest.raises(DataError, match=rf"column 0 \(x1\) has {n_levels} different .* identifier.*leave it out"):
            learn_coding(X)


def test_rows_count_as_often_as_they_were_observed():
    X, weights = [[f"id{i}"] for i in range(21)], [2] * 21
    assert learn_coding(X, sample_weight=weights) == learn_coding(X * 2)
    with pytest.raises(DataError, match="identifier"):
        learn_coding(X)


@pytest.mark.parametrize(
    ("columns", "names"),
    [
        ({"a": ["b", "c", "c"], "a=b": [1, 2, 3]}, "'a=b'"),
        ({"a": [1.0, None, 3.0], "a=missing": [1, 2, 3]}, "'a=missing'"),
        ({"a": ["x", "x", "missing", None]}, "'a=missing'"),
    ],
)
def test_coded_names_must_differ(columns, names):
    with pytest.raises(DataError, match=f"more than once: {names}.*rename"):
        learn_coding(as_pandas(columns), missing="impute")


# Names of columns


@pytest.mark.parametrize("names", [[10, 11], [("a", 1), ("a", 2)], [0.5, 1.5]], ids=str)
def test_names_that_are_no_strings_are_as_good_as_none(names):
    X = pytest.importorskip("pandas").DataFrame([[1, 2], [3, 4]])
    X.columns = names
    coding = learn_coding(X)
    assert (coding.has_names, coding.names) == (False, ("x1", "x2"))
    np.testing.assert_array_equal(coding.encode(X), [[1, 2], [3, 4]])


@pytest.mark.parametrize(
    ("names", "kind", "message"),
    [
        (
            ["a", 1],
            TypeError,
            r"Feature names are only supported if all input features have string names.*'int', 'str'",
        ),
        (["a", "a"], DataError, "more than once: 'a'. Rename"),
        ([1, 1], DataError, "more than once: '1'. Rename"),
        (["a", ""], DataError, "not empty; number 1"),
    ],
)
def test_names_that_are_refused(names, kind, message):
    X = pytest.importorskip("pandas").DataFrame([[1, 2]])
    X.columns = names
    with pytest.raises(kind, match=message) as caught:
        learn_coding(X)
    assert isinstance(caught.value, DataError)


@frames
def test_names_must_be_those_of_training(table):
    start = "^The feature names should match those that were passed during fit.\n"
    coding = learn_coding(table({name: [1, 2] for name in "abcdefgh"}))
    with pytest.raises(DataError, match=f"{start}Feature names seen at fit time, yet now missing:\n- d\n- e\n- f\n"):
        coding.encode(table({name: [1, 2] for name in "abc"}))
    with pytest.raises(
        DataError, match=f"{start}Feature names unseen at fit time:\n- B\nGive the columns of the train"
    ):
        coding.encode(table({name: [1, 2] for name in "abBcdefgh"}))
    with pytest.raises(
        DataError, match=r"unseen at fit time:\n- q\n- r\n- s\n- t\n- u\n- \.\.\.\nFeature names seen at fit"
    ):
        coding.encode(table({name: [1, 2] for name in "qrstuvw"}))


def test_an_unknown_column_is_named_before_its_content_is_looked_at():
    coding = learn_coding(as_pandas({"a": [1, 2]}))
    with pytest.raises(DataError, match="unseen at fit time:\n- day"):
        coding.encode(as_pandas({"a": [1], "day": [datetime.date(2020, 1, 1)]}))


def test_with_names_in_one_table_only_columns_go_by_place():
    X = np.array([[1.0, 2.0], [3.0, 4.0]])
    frame = as_pandas({"b": X[:, 0], "a": X[:, 1]})
    with pytest.warns(
        UserWarning, match="^X does not have valid feature names, but Mine was fitted with feature names$"
    ):
        np.testing.assert_array_equal(learn_coding(frame).encode(X, "Mine"), X)
    with pytest.warns(UserWarning, match="^X has feature names, but Mine was fitted without feature names$"):
        np.testing.assert_array_equal(learn_coding(X).encode(frame, "Mine"), X)


def test_the_number_of_columns_is_that_of_training():
    with pytest.raises(DataError, match=r"^X has 1 features, but Mine is expecting 4 features as input"):
        learn_coding(np.ones((3, 4))).encode(np.ones((3, 1)), "Mine")


# New data of another kind


@tables
def test_levels_not_seen_in_training_count_as_the_reference(table):
    train = table({"a": ["u", "u", "v", "w"], "b": ["p", "q", "q", "q"], "n": [1, 2, 3, 4]})
    coding = learn_coding(train)
    names = ("'a'", "'b'") if table in FRAMES else (r"0 \(x1\)", r"1 \(x2\)")
    new = table({"a": ["A", "v", "B", "A"], "b": ["q", "Q", "p", "q"], "n": [1, 2, 3, 4]})
    message = rf"column {names[0]}: 'A', 'B' \(3 rows\); column {names[1]}: 'Q' \(1 row\)\."
    with pytest.warns(UnseenLevelWarning, match=message) as caught:
        coded = coding.encode(new)
    assert len(caught) == 1
    np.testing.assert_array_equal(coded, [[0, 0, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 4]])


def test_at_most_five_unseen_levels_are_named():
    coding = learn_coding([["a"], ["b"]])
    with pytest.warns(UnseenLevelWarning, match=r"column 0 \(x1\): 'l0', 'l1', 'l2', 'l3', 'l4', \.\.\. \(9 rows\)"):
        coding.encode([[f"l{i}"] for i in range(9)])
    assert issubclass(UnseenLevelWarning, BgnlmWarning)


@pytest.mark.parametrize(
    ("train", "new", "message"),
    [
        (["a", "b"], [1, 2], "column 'c' held categories in training; got numbers"),
        (["a", "b"], [True, False], "column 'c' held categories in training; got booleans"),
        ([1, 2], ["1", "2"], "column 'c' held numbers in training; got categories"),
        ([True, False], ["a", "b"], "column 'c' held booleans in training; got categories"),
        ([True, False], [1, 2], "column 'c' held booleans in training .* 0 and 1; got 2 in row 1"),
    ],
)
@frames
def test_a_column_must_hold_what_it_held(table, train, new, message):
    with pytest.raises(DataError, match=message):
        learn_coding(table({"c": train})).encode(table({"c": new}))


@frames
def test_booleans_and_zero_and_one_are_alike(table):
    for train, new in (([True, False], [1.0, 0.0]), ([2, 3], [True, False])):
        coded = learn_coding(table({"c": train})).encode(table({"c": new}))
        np.testing.assert_array_equal(coded, [[1], [0]])


# Missing and infinite values


@tables
def test_missing_values_are_refused_with_their_place(table):
    full = {"a": [1.5, 2.5, 3.5], "b": [True, False, True], "c": ["u", "v", "u"]}
    holed = {"a": [1.5, 2.5, NAN], "b": [True, None, None], "c": ["u", "v", None]}
    names = "'b'" if table in FRAMES else r"1 \(x2\)"
    message = rf"NaN.* first in row 1, column {names}; .* 4, .*: 3\. Drop .*missing=\"impute\""
    with pytest.raises(DataError, match=message):
        learn_coding(table(holed))
    with pytest.raises(DataError, match=message):
        learn_coding(table(full)).encode(table(holed))


def test_every_sign_for_a_missing_value_is_known():
    pd = pytest.importorskip("pandas")
    for sign in (None, NAN, np.float32("nan"), Decimal("nan"), Decimal("sNaN"), pd.NA, pd.NaT):
        for values in ([1, sign, 3], ["a", sign, "b"], [True, False, sign]):
            X = as_objects({"": values})
            with pytest.raises(DataError, match="NaN"):
                learn_coding(X)
            assert column(X, missing="impute").indicator
            frame = pd.DataFrame(X, columns=["a"])
            assert column(frame, missing="impute").indicator
            assert column(frame.convert_dtypes(), missing="impute").indicator


HOLED = {
    "n": [1.0, 5.0, None, 2.0],
    "full": [4.0, 1.0, 2.0, 3.0],
    "b": [True, None, False, True],
    "c": ["u", "v", "v", None],
    "d": ["u", "v", "v", "w"],
}


@frames
def test_imputing_fills_and_tells_where(table):
    coding = learn_coding(table(HOLED), missing="impute")
    assert coding.columns == (
        NumericColumn("n", 2.0, True),
        NumericColumn("full", 2.5, False),
        BooleanColumn("b", True, True),
        CategoricalColumn("c", "v", ("u",), "v", True),
        CategoricalColumn("d", "v", ("u", "w"), "v", False),
    )
    assert coding.names == ("n", "n=missing", "full", "b", "b=missing", "c=u", "c=missing", "d=u", "d=w")
    expected = [
        [1, 0, 4, 1, 0, 1, 0, 1, 0],
        [5, 0, 1, 1, 1, 0, 0, 0, 0],
        [2, 1, 2, 0, 0, 0, 0, 0, 0],
        [2, 0, 3, 1, 0, 0, 1, 0, 1],
    ]
    np.testing.assert_array_equal(coding.encode(table(HOLED)), expected)


@frames
def test_new_data_may_miss_what_training_had(table):
    coding = learn_coding(table(HOLED), missing="impute")
    new = table({name: [None] for name in HOLED})
    with pytest.warns(UnseenLevelWarning, match=r"column 'd': a missing value \(1 row\)"):
        coded = coding.encode(new)
    np.testing.assert_array_equal(coded, [[2, 1, 2.5, 1, 1, 0, 1, 0, 0]])


def test_columns_of_nan_only_fit_any_kind_of_column():
    coding = learn_coding(as_pandas(HOLED | {"d": HOLED["c"]}), missing="impute")
    new = as_pandas({name: np.array([NAN, NAN]) for name in HOLED})
    assert np.isfinite(coding.encode(new)).all()


def test_fills_respect_frequencies():
    X = as_objects({"n": [1, 2, 9, None], "b": [True, False, False, None], "c": ["u", "v", "v", None]})
    weights = [3, 1, 1, 1]
    weighted = learn_coding(X, missing="impute", sample_weight=weights)
    assert [c.fill for c in weighted.columns] == [1.0, True, "u"]
    assert weighted == learn_coding(np.repeat(X, weights, axis=0), missing="impute")
    assert not any(c.indicator for c in learn_coding(X, missing="impute", sample_weight=[3, 1, 1, 0]).columns)


@tables
def test_a_column_without_values_is_refused(table):
    X = table({"a": [None, None], "b": [1, 2]})
    with pytest.raises(DataError, match=r"column .* all are missing. Leave"):
        learn_coding(X, missing="impute")


@pytest.mark.parametrize("missing", ["raise", "impute"])
@pytest.mark.parametrize(
    ("value", "message"),
    [
        (np.inf, "infinity; got inf in row 1, column"),
        (-np.inf, "infinity; got -inf in row 1, column"),
        (2 * LARGEST, "within 1e[+]140; got 2e[+]140 in row 1, column .* unit"),
    ],
)
@tables
def test_numbers_must_be_finite(table, value, message, missing):
    good, bad = table({"a": [1.0, 2.0], "b": [3.0, 4.0]}), table({"a": [1.0, 2.0], "b": [3.0, value]})
    with pytest.raises(DataError, match=message):
        learn_coding(bad, missing=missing)
    with pytest.raises(DataError, match=message):
        learn_coding(good, missing=missing).encode(bad)


def test_numbers_too_large_for_a_float_are_infinite():
    for value in (10**400, -(10**400), Fraction(10**400), Decimal("1e400")):
        with pytest.raises(DataError, match="infinity"):
            learn_coding(as_objects({"": [1, value]}))
    with pytest.raises(DataError, match="infinity"):
        learn_coding(np.array([["1e400"]], dtype=np.longdouble))


# Data that cannot be used


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, 2, "x"], "numbers only or strings only; got 'x' in row 2, column .* numbers"),
        ([None, "x", 2.5], "numbers only or strings only; got 2.5 in row 2, column .* categories"),
        (["x", True, 1], "numbers only or strings only; got True in row 1, column .* categories"),
        ([1, True, None, "x"], "numbers only or strings only; got 'x' in row 3, column .* numbers"),
        ([1.5, {"foo": "bar"}, "x"], "argument must be a string or a number; got {'foo': 'bar'} in row 1"),
        ([b"a", b"b"], "got b'a' in row 0, column .* Decode"),
        ([1, 2j], "Complex data not supported; got 2j in row 1"),
        ([datetime.date(2020, 1, 2)], "in row 0, column .* number of days"),
        ([datetime.timedelta(3)], "in row 0, column .* number of days"),
        ([np.datetime64("2020")], "in row 0, column .* number of days"),
        ([np.timedelta64(3, "D")], "in row 0, column .* number of days"),
        ([[1, 2], (1,)], r"got \[1, 2\] in row 0, column .* Leave"),
    ],
    ids=str,
)
def test_odd_values_in_columns_of_objects(values, message):
    X = np.empty((len(values), 2), dtype=object)
    X[:, 0], X[:, 1] = 1.0, [*values]
    with pytest.raises(DataError, match=message):
        learn_coding(X)
    frame = as_pandas({"a": np.ones(len(X)), "b": X[:, 1]})
    with pytest.raises(DataError, match=message):
        learn_coding(frame)


def test_what_is_no_string_or_number_is_a_type_error_too():
    X = np.ones((3, 2), dtype=object)
    X[0, 0] = {"foo": "bar"}
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        learn_coding(X)


def test_a_mixture_is_found_far_down():
    """Libraries guess types from the first rows."""
    X = as_pandas({"a": np.array(["a", "b"] * 500 + [1], dtype=object)})
    with pytest.raises(DataError, match="got 1 in row 1000, column 'a'"):
        learn_coding(X)


def test_other_types_of_data_frames_are_refused_with_the_column():
    pl = pytest.importorskip("polars")
    day = datetime.datetime(2020, 1, 1)
    for values, advice in (
        ([day], "days"),
        ([day.date()], "days"),
        ([day.time()], "days"),
        ([day - day], "days"),
        ([[1, 2]], "Leave"),
        ([{"a": 1}], "Leave"),
        ([b"a"], "Decode"),
    ):
        X = pl.DataFrame({"good": [1], "odd": values})
        with pytest.raises(DataError, match=f"in row 0, column 'odd'.* {advice}"):
            learn_coding(X)
        with pytest.raises(DataError, match=f"in row 0, column 'odd'.* {advice}"):
            learn_coding(X.to_arrow())


def test_dates_and_periods_of_pandas_are_refused():
    pd = pytest.importorskip("pandas")
    for values in (pd.to_datetime(["2020"]), pd.to_timedelta([3], unit="D"), pd.period_range("2020", periods=1)):
        with pytest.raises(DataError, match="in row 0, column 'odd'"):
            learn_coding(pd.DataFrame({"odd": values}))


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (np.ones(3), r"Expected 2D array, got 1D array instead.*Reshape your data either using array.reshape\(-1, 1\)"),
        ([1, 2], "Expected 2D array, got 1D array instead"),
        ([], "Expected 2D array, got 1D array instead"),
        (np.ones((1, 2, 3)), "Expected 2D array, got 3D array instead"),
        (3, "Expected 2D array, got int instead"),
        (None, "Expected 2D array, got NoneType instead"),
        ([[1, 2], [3]], "same length"),
        (np.empty((0, 3)), r"Found array with 0 sample\(s\) \(shape=\(0, 3\)\) while a minimum of 1 is required\."),
        (np.empty((12, 0)), r"0 feature\(s\) \(shape=\(12, 0\)\) while a minimum of 1 is required\."),
        (np.ones((2, 1)) * 1j, "Complex data not supported"),
        (np.array([["2020-01-01"]], dtype="M8[ns]"), "number of days"),
        (np.array([[1]], dtype="m8[ns]"), "number of days"),
        (np.array([[b"a"]]), "Decode"),
        (np.ma.masked_equal([[1, 2]], 2), r"masked.*filled\(np.nan\)"),
        (sparse.csr_matrix(np.eye(2)), r"sparse.*X\.toarray\(\)"),
        (sparse.coo_array(np.eye(2)), r"sparse.*X\.toarray\(\)"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str) else value[:30],
)
def test_tables_that_are_refused(X, message):
    with pytest.raises(DataError, match=message):
        learn_coding(X)
    with pytest.raises(DataError, match=message):
        learn_coding([[1.0], [2.0]]).encode(X)


@frames
def test_frames_without_rows_are_refused(table):
    with pytest.raises(DataError, match=r"0 sample\(s\) \(shape=\(0, 2\)\)"):
        learn_coding(table({"a": [], "b": []}))


def test_frames_that_are_no_tables_in_memory():
    pl = pytest.importorskip("polars")
    for X, found in ((pl.LazyFrame({"a": [1]}), r"LazyFrame\. Use X\.collect"), (pl.Series([1]), "1D array")):
        with pytest.raises(DataError, match=f"got {found}"):
            learn_coding(X)


def test_settings_are_checked():
    with pytest.raises(SettingError, match="'raise', 'impute'; got 'drop'"):
        learn_coding([[1.0]], missing="drop")
    with pytest.raises(DataError, match="sample_weight must have one value per row, 2 in all"):
        learn_coding([[1.0], [2.0]], sample_weight=[1.0])


@tables
def test_data_stay_as_they_are(table):
    import pickle

    X = table(HOLED)
    before = pickle.dumps(X)
    learn_coding(X, missing="impute").encode(X)
    assert pickle.dumps(X) == before
    Z = np.array([[1.0, NAN], [2.0, 3.0]])
    coded = learn_coding(Z, missing="impute").encode(Z)
    coded[:] = 7.0
    np.testing.assert_array_equal(Z, [[1.0, NAN], [2.0, 3.0]])
    assert not np.shares_memory(coded, Z)


# The plain form

texts = st.text(max_size=8)
fills = st.floats(-LARGEST, LARGEST)


@st.composite
def columns_of(draw, name):
    kind = draw(st.sampled_from(["numeric", "boolean", "categorical"]))
    impute = draw(st.booleans())
    indicator = impute and draw(st.booleans())
    if kind == "numeric":
        return NumericColumn(name, draw(fills) if impute else None, indicator)
    if kind == "boolean":
        return BooleanColumn(name, draw(st.booleans()) if impute else None, indicator)
    reference, *levels = draw(st.lists(texts, min_size=1, max_size=6, unique=True))
    return CategoricalColumn(name, reference, tuple(sorted(levels)), reference if impute else None, indicator)


@st.composite
def codings(draw):
    has_names = draw(st.booleans())
    names = draw(st.lists(st.text(min_size=1, max_size=8), min_size=1, max_size=5, unique=True))
    if not has_names:
        names = [f"x{j + 1}" for j in range(len(names))]
    columns = tuple(draw(columns_of(name)) for name in names)
    try:
        return TableCoding(columns, has_names)
    except DataError:
        # No coded column, or two of the same name.
        return TableCoding((NumericColumn("x1"),), has_names)


@given(codings())
def test_the_plain_form_is_exact(coding):
    plain = coding.to_plain()
    text = json.dumps(plain, allow_nan=False)
    again = TableCoding.from_plain(json.loads(text))
    assert again == coding
    assert repr(again) == repr(coding)
    assert again.to_plain() == plain


def test_a_coding_read_back_codes_the_same():
    X = as_pandas(HOLED)
    coding = learn_coding(X, missing="impute")
    again = TableCoding.from_plain(json.loads(json.dumps(coding.to_plain(), allow_nan=False)))
    np.testing.assert_array_equal(again.encode(X), coding.encode(X))


def _nested(depth):
    value = []
    for _ in range(depth):
        value = [value]
    return value


NUMERIC = {"kind": "numeric", "name": "a", "fill": None, "indicator": False}
CATEGORICAL = {"kind": "categorical", "name": "a", "reference": "u", "levels": ["v"], "fill": None, "indicator": False}


@pytest.mark.parametrize("has_names", [1, "yes", None, []], ids=repr)
def test_has_names_must_be_a_bool(has_names):
    with pytest.raises(DataError):
        TableCoding.from_plain({"has_names": has_names, "columns": [NUMERIC]})


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "text"},
        {"kind": None},
        {"kind": ["numeric"]},
        {"name": ""},
        {"name": 3},
        {"name": ["a"]},
        {"fill": NAN},
        {"fill": float("inf")},
        {"fill": 2 * LARGEST},
        {"fill": 10**400},
        {"fill": True},
        {"fill": "1"},
        {"indicator": True},
        {"indicator": 0},
        {"further": 1},
        {"kind": "boolean", "fill": 1},
        {"kind": "boolean", "fill": "true"},
        CATEGORICAL | {"levels": ["v", "v"]},
        CATEGORICAL | {"levels": ["w", "v"]},
        CATEGORICAL | {"levels": ["u"]},
        CATEGORICAL | {"levels": [1]},
        CATEGORICAL | {"levels": [["v"]]},
        CATEGORICAL | {"levels": "v"},
        CATEGORICAL | {"levels": None},
        CATEGORICAL | {"levels": {"v": 1}},
        CATEGORICAL | {"levels": []},
        CATEGORICAL | {"levels": sorted(map(str, range(100)))},
        CATEGORICAL | {"reference": None},
        CATEGORICAL | {"fill": "v"},
        {"fill": _nested(100_000)},
        {"name": _nested(100_000)},
        CATEGORICAL | {"levels": _nested(100_000)},
    ],
    ids=lambda change: str([key for key in change if change.get(key) != CATEGORICAL.get(key, 0)]),
)
def test_damaged_columns_are_refused(change):
    TableCoding.from_plain({"has_names": True, "columns": [NUMERIC]})
    with pytest.raises(DataError):
        TableCoding.from_plain({"has_names": True, "columns": [NUMERIC | change]})


@pytest.mark.parametrize(
    "value",
    [
        None,
        3,
        [],
        "{}",
        {},
        {"has_names": True},
        {"has_names": True, "columns": []},
        {"has_names": True, "columns": {}},
        {"has_names": True, "columns": [None]},
        {"has_names": True, "columns": [NUMERIC, NUMERIC]},
        {"has_names": True, "columns": [NUMERIC | {"name": "a=v"}, CATEGORICAL]},
        {"has_names": False, "columns": [NUMERIC]},
        {"has_names": True, "columns": [NUMERIC], "more": 1},
        {"has_names": True, "columns": [{k: v for k, v in NUMERIC.items() if k != "fill"}]},
    ],
    ids=lambda value: str(value)[:60],
)
def test_damaged_codings_are_refused(value):
    with pytest.raises(DataError):
        TableCoding.from_plain(value)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | st.sampled_from(["numeric", "categorical"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def _places(value, path=()):
    yield path
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, part in inner:
        yield from _places(part, (*path, key))


@settings(max_examples=300)
@given(codings(), st.data())
def test_only_data_errors_come_out_of_damaged_files(coding, data):
    plain = json.loads(json.dumps(coding.to_plain()))
    for _ in range(data.draw(st.integers(1, 3))):
        path = data.draw(st.sampled_from(list(_places(plain))))
        if not path:
            plain = data.draw(json_values)
            break
        parent = plain
        for key in path[:-1]:
            parent = parent[key]
        if data.draw(st.booleans()):
            del parent[path[-1]]
        else:
            parent[path[-1]] = data.draw(json_values)
    try:
        again = TableCoding.from_plain(plain)
    except DataError:
        return
    assert TableCoding.from_plain(json.loads(json.dumps(again.to_plain(), allow_nan=False))) == again


# The checks of scikit-learn


@pytest.mark.parametrize(
    "check",
    [
        "check_complex_data",
        "check_dtype_object",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_estimators_dtypes",
        "check_estimators_empty_data_messages",
        "check_estimators_nan_inf",
        "check_f_contiguous_array_estimator",
        "check_fit1d",
        "check_fit2d_1feature",
        "check_fit2d_1sample",
        "check_fit2d_predict1d",
        "check_n_features_in",
        "check_n_features_in_after_fitting",
        "check_readonly_memmap_input",
        "check_regressor_data_not_an_array",
        "check_dict_unchanged",
    ],
)
def test_checks_of_scikit_learn(check):
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    function = getattr(checks, check, None)
    if function is None:
        pytest.skip("this version of scikit-learn has no such check")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function("LeastSquares", least_squares())


def test_names_as_scikit_learn_checks_them():
    checks = pytest.importorskip("sklearn.utils.estimator_checks")
    pytest.importorskip("pandas")
    # Columns are matched by name here: another order is no mistake, and is what the check complains of first.
    with pytest.raises(AssertionError, match="did not raise"):
        checks.check_dataframe_column_names_consistency("LeastSquares", least_squares())


def least_squares():
    """A minimal estimator on top of the coding."""
    from sklearn.base import BaseEstimator, RegressorMixin

    class LeastSquares(RegressorMixin, BaseEstimator):
        def fit(self, X, y):
            self.coding_ = learn_coding(X, estimator_name="LeastSquares")
            self.n_features_in_ = len(self.coding_.input_names)
            if self.coding_.has_names:
                self.feature_names_in_ = np.array(self.coding_.input_names, dtype=object)
            y = np.asarray(y, dtype=float)
            if len(y) < 2:
                raise ValueError("1 sample")
            self.coefficients_ = np.linalg.lstsq(self.coding_.encode(X), y, rcond=None)[0]
            return self

        def predict(self, X):
            return self.coding_.encode(X, "LeastSquares") @ self.coefficients_

    return LeastSquares()
