import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bgnlm.errors import DataError, FeatureError, SettingError
from bgnlm.features import Evaluator, Transform, learn_cut_points, parse, weighted_quantile

X = np.array([[1.0, 5.0], [2.0, 4.0], [3.0, 0.0], [10.0, -1.0], [4.0, 7.0]])
EVALUATOR = Evaluator(X, ("a", "b"))
quantiles = st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.75, 1.0])


@pytest.mark.parametrize(
    ("text", "learnt"),
    [
        ("a", "a"),
        ("sin(a)", "sin(a)"),
        ("above_median(a)", "above_median(a, 3.0)"),
        ("below_q25(a)", "below_q25(a, 2.0)"),
        ("above_q75(a)", "above_q75(a, 4.0)"),
        ("hinge_up(a)*hinge_down(b)", "hinge_up(a, 3.0)*hinge_down(b, 4.0)"),
        ("above_median(a, 9.0)", "above_median(a, 9.0)"),
        ("hinge_up(1.0 + 2.0*a - b)", "hinge_up(1.0 + 2.0*a - b, 2.0)"),
        ("hinge_up(hinge_up(a))", "hinge_up(hinge_up(a, 3.0), 0.0)"),
        ("hinge_up(hinge_up(a, 1.0))", "hinge_up(hinge_up(a, 1.0), 2.0)"),
        ("sin(above_median(a) + b)", "sin(above_median(a, 3.0) + b)"),
    ],
)
def test_cut_points_are_learnt_from_the_inside_out(text, learnt):
    feature = learn_cut_points(parse(text), EVALUATOR)
    assert feature == parse(learnt)
    assert EVALUATOR.column(feature).shape == (5,)


def test_weights_count_as_frequencies():
    weights = np.array([0, 0, 1, 3, 1.0])
    feature = learn_cut_points(parse("above_median(a)"), EVALUATOR, weights)
    assert feature.parameters == (10.0,)


def test_weights_may_come_as_a_list():
    assert learn_cut_points(parse("above_median(a)"), EVALUATOR, [0, 0, 1, 3, 1]).parameters == (10.0,)
    assert weighted_quantile([1, 2, 9], 0.5, [1, 0, 1]) == 5


@pytest.mark.parametrize("text", ["a", "above_median(a)", "a*hinge_up(a + b)"])
@pytest.mark.parametrize("weights", [[1] * 4, [1] * 6, [1, 1, -1, 1, 1], [1, 1, np.nan, 1, 1], ["1"] * 5, [[1] * 5]])
def test_unusable_weights_are_refused(text, weights):
    with pytest.raises(DataError, match="sample_weight must"):
        learn_cut_points(parse(text), EVALUATOR, weights)


@pytest.mark.parametrize("quantile", [-0.1, 1.5, np.nan, "0.5", None])
def test_a_quantile_lies_between_0_and_1(quantile):
    with pytest.raises(SettingError, match="quantile must be"):
        weighted_quantile([1, 2], quantile)


@pytest.mark.parametrize("weights", [None, [1, 2, 1, 1], [0.3, 0.3, 0.3, 0.3]])
def test_huge_values_have_cut_points_too(weights):
    evaluator = Evaluator(np.array([[-1.7e308], [1.7e308], [-1.7e308], [1.7e308]]), ["a"])
    for text in ("hinge_up(a)", "hinge_down(a)", "above_median(a)", "below_q25(a)"):
        feature = learn_cut_points(parse(text), evaluator, weights)
        assert np.isfinite(feature.parameters).all()
        evaluator.column(feature)
    assert weighted_quantile([-1.7e308, 1.7e308], 0.5) == 0
    assert weighted_quantile([-1.7e308, 1.7e308], 0.75, [0.5, 0.5]) == pytest.approx(0.85e308)


def test_only_features_have_cut_points():
    with pytest.raises(FeatureError, match="expected a feature, got 'a'"):
        learn_cut_points("a", EVALUATOR)


def test_a_missing_cut_point_is_an_error_with_advice():
    with pytest.raises(FeatureError, match=r"cut point of above_median .* learn_cut_points"):
        EVALUATOR.column(parse("sin(above_median(a))"))


def test_cut_points_of_columns_that_are_not_finite_are_refused():
    with pytest.raises(FeatureError, match=r"hinge_up\(inverse\(b\)\) cannot be learnt"):
        learn_cut_points(parse("hinge_up(inverse(b))"), EVALUATOR)
    with pytest.raises(FeatureError, match="positive weight"):
        weighted_quantile(X[:, 0], 0.5, np.zeros(5))
    assert weighted_quantile(np.array([1, np.nan, 3.0]), 0.5, np.array([1, 0, 1.0])) == 2


rows = st.lists(st.tuples(st.floats(-1e6, 1e6), st.integers(0, 4)), min_size=1, max_size=20).filter(
    lambda pairs: any(weight for _, weight in pairs)
)


@settings(deadline=None)
@given(rows, quantiles)
def test_whole_weights_repeat_rows(pairs, quantile):
    values, weights = (np.array(part, dtype=float) for part in zip(*pairs, strict=True))
    expected = np.quantile(np.repeat(values, weights.astype(int)), quantile)
    assert weighted_quantile(values, quantile, weights) == expected


@settings(deadline=None)
@given(rows, quantiles, st.floats(0.01, 0.99))
def test_fractional_weights(pairs, quantile, share):
    values, weights = (np.array(part, dtype=float) for part in zip(*pairs, strict=True))
    present = values[weights > 0]
    found = weighted_quantile(values, quantile, share * weights)
    assert present.min() - 1e-9 <= found <= present.max() + 1e-9
    everywhere_equal = weighted_quantile(values, quantile, np.full(len(values), share))
    assert everywhere_equal == pytest.approx(np.quantile(values, quantile), rel=1e-9, abs=1e-6)


@settings(deadline=None)
@given(rows, quantiles)
def test_nearly_whole_weights_are_nearly_the_same(pairs, quantile):
    values, weights = (np.array(part, dtype=float) for part in zip(*pairs, strict=True))
    near = weights * (1 + 1e-12)
    exact = weighted_quantile(values, quantile, weights)
    assert weighted_quantile(values, quantile, near) == pytest.approx(exact, rel=1e-6, abs=1e-3)


def test_a_threshold_of_your_own_learns_its_quantile():
    threshold = Transform("top", lambda x, t: x > t, quantile=0.9)
    feature = learn_cut_points(parse("top(a)", [threshold]), EVALUATOR)
    assert feature.parameters == (np.quantile(X[:, 0], 0.9),)
