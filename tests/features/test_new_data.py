import warnings

import numpy as np
import pytest

from bgnlm.errors import DataError, FeatureError, FeatureRangeWarning
from bgnlm.features import Evaluator, TrainingRange, evaluate_on_new_data, parse

from .strategies import Frame

FEATURES = [parse(text) for text in ("a", "inverse(a)", "fp_0(b)", "a*b", "abs_pow_7_2(a)")]
TRAINING = np.array([[1.0, 2.0], [2.0, 8.0], [4.0, 1.0]])


def ranges():
    return [TrainingRange.of(column) for column in Evaluator(TRAINING, ("a", "b")).matrix(FEATURES).T]


def test_range():
    assert TrainingRange.of(np.array([3.0, -1.0, 8.0, 5.0])) == TrainingRange(-1.0, 8.0, 4.0)
    weighted = TrainingRange.of(np.array([3.0, -1.0, 8.0, 5.0]), np.array([1.0, 0.0, 3.0, 1.0]))
    assert weighted == TrainingRange(3.0, 8.0, 8.0)
    assert TrainingRange.of([3, -1, 8, 5], [1, 0, 3, 1]) == weighted
    fractional = TrainingRange.of([3, -1, 8, 5], [0.5, 0, 2.5, 0.5])
    assert fractional == TrainingRange(3.0, 8.0, 8.0)
    with pytest.raises(FeatureError, match="positive weight"):
        TrainingRange.of([1, 2], [0, 0])
    with pytest.raises(FeatureError, match="finite"):
        TrainingRange.of(np.array([1.0, np.nan]))


def test_finite_values_are_kept_however_far_away():
    new = np.array([[5e20, -3.0], [2.0, 1e250]])
    matrix = evaluate_on_new_data(FEATURES, ranges(), new, ("a", "b"))
    np.testing.assert_array_equal(matrix, Evaluator(new, ("a", "b")).matrix(FEATURES))


def test_values_that_are_not_finite_become_values_of_the_training_data():
    new = np.array([[0.0, 0.0], [1e200, 1e200], [np.nan, 1.0], [1.0, 1.0], [-1e200, 1e200]])
    with pytest.warns(FeatureRangeWarning) as caught:
        matrix = evaluate_on_new_data(FEATURES, ranges(), new, ("a", "b"))
    assert len(caught) == 1
    message = str(caught[0].message)
    assert "a (1 row), inverse(a) (2 rows), fp_0(b) (1 row), a*b (3 rows), abs_pow_7_2(a) (3 rows)" in message
    assert caught[0].filename == __file__
    np.testing.assert_allclose(matrix[:, 0], [0, 1e200, 2, 1, -1e200])  # NaN: the median
    np.testing.assert_allclose(matrix[:, 1], [1, 1e-200, 0.5, 1, -1e-200])  # 1/0: the maximum
    np.testing.assert_allclose(matrix[:, 2], [0, 200 * np.log(10), 0, 0, 200 * np.log(10)])  # log 0: the minimum
    np.testing.assert_allclose(matrix[:, 3], [0, 16, 4, 1, 2])
    np.testing.assert_allclose(matrix[:, 4], [0, 128, 2**3.5, 1, 128])


def test_columns_may_come_in_another_order_and_no_rows_are_fine():
    swapped = evaluate_on_new_data(FEATURES, ranges(), TRAINING[:, ::-1], ("b", "a"))
    np.testing.assert_array_equal(swapped, Evaluator(TRAINING, ("a", "b")).matrix(FEATURES))
    assert evaluate_on_new_data(FEATURES, ranges(), np.empty((0, 2)), ("a", "b")).shape == (0, 5)


def test_as_many_ranges_as_features():
    with warnings.catch_warnings(), pytest.raises(FeatureError, match="as many training ranges"):
        evaluate_on_new_data(FEATURES, ranges()[:2], TRAINING, ("a", "b"))


def test_columns_of_a_data_frame_are_matched_by_name():
    expected = Evaluator(TRAINING, ("a", "b")).matrix(FEATURES)
    frame = Frame(TRAINING[:, ::-1], ("b", "a"))
    for names in (("a", "b"), ("b", "a"), None):
        np.testing.assert_array_equal(evaluate_on_new_data(FEATURES, ranges(), frame, names), expected)
    with pytest.raises(DataError, match="without a column: c; columns without a name: b"):
        evaluate_on_new_data(FEATURES, ranges(), frame, ("a", "c"))


def test_missing_values_do_not_pass_a_threshold():
    feature, seen = parse("above_median(a, 1.5)"), TrainingRange(0.0, 1.0, 1.0)
    with pytest.warns(FeatureRangeWarning, match=r"above_median\(a, 1.5\) \(1 row\)"):
        matrix = evaluate_on_new_data([feature], [seen], np.array([[np.nan], [1.0]]), ["a"])
    np.testing.assert_array_equal(matrix, [[1.0], [0.0]])
