"""Measures of the paper's tables."""

import numpy as np
import pytest

from benchmarks.paper.measures import (
    Found,
    confusion,
    detection,
    errors,
    frequencies,
    mean_complexities,
    rates,
    spread,
)


def test_confusion_and_rates_of_a_hand_made_table():
    actual = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0], bool)
    predicted = np.array([1, 1, 1, 0, 1, 1, 0, 0, 0, 0], bool)
    counts = confusion(actual, predicted)
    assert counts == {"FN": 1, "FP": 2, "positives": 4, "negatives": 6}
    assert rates(counts) == pytest.approx({"ACC": 0.7, "FNR": 1 / 4, "FPR": 2 / 6, "FNR*": 1 / 5, "FPR*": 2 / 8})


@pytest.mark.parametrize(
    ("counts", "printed"),
    [
        # Breast cancer by the parallel version: 8 of 159 malignant and 3 of 267 benign tumours.
        ({"FN": 8, "FP": 3, "positives": 159, "negatives": 267}, {"ACC": 0.9742, "FNR*": 0.0479, "FPR*": 0.0111}),
        # Spam by the parallel version; the medians of the three columns are not of one run.
        ({"FN": 120, "FP": 108, "positives": 1218, "negatives": 1847}, {"FNR*": 0.0897, "FPR*": 0.0552}),
        # Asteroids by the linear models.
        ({"FN": 2, "FP": 1, "positives": 14081, "negatives": 6621}, {"ACC": 0.9999, "FNR*": 0.0001, "FPR*": 0.0002}),
    ],
)
def test_rates_with_a_star_are_those_that_the_paper_prints(counts, printed):
    found = rates(counts)
    assert {name: round(found[name], 4) for name in printed} == printed
    assert found["FNR"] == pytest.approx(found["FNR*"] / (1 - found["FNR*"]))


def test_errors_of_predictions():
    found = errors(np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 2.0, 5.0, 4.0]))
    assert found["RMSE"] == 1.0
    assert found["MAE"] == 0.5
    assert found["CORR"] == pytest.approx(np.corrcoef([1, 2, 3, 4], [1, 2, 5, 4])[0, 1])


def test_detection_counts_true_features_once_and_others_as_false():
    found = [
        Found("a", 0.9, 0, "F1"),
        Found("another form of a", 0.4, 3, "F1"),
        Found("b", 0.25, 0, "F2"),  # not above the threshold
        Found("c", 0.3, 1),
    ]
    some = detection(found, ("F1", "F2"), 0.25, any_will_do=True)
    assert some == {"F1": 1.0, "F2": 0.0, "Pow": 1.0, "FP": 1.0, "FDR": 0.5}
    assert detection(found, ("F1", "F2"), 0.25, any_will_do=False)["Pow"] == 0.5
    assert detection([], ("F1",), 0.25, any_will_do=True) == {"F1": 0.0, "Pow": 0.0, "FP": 0.0, "FDR": 0.0}


def test_complexities_and_frequencies_are_of_reported_features():
    runs = [
        [Found("x", 0.9, 0), Found("x*y", 0.5, 1), Found("z", 0.05, 0)],
        [Found("x", 0.2, 0), Found("deep", 0.3, 30)],
    ]
    means = mean_complexities(runs, 0.1)
    assert means == [1.0, 0.5, *[0.0] * 7, 0.5]
    assert frequencies(runs, 0.1) == [("x", 2, 0), ("deep", 1, 30), ("x*y", 1, 1)]


def test_spread_is_median_least_and_largest():
    assert spread([3.0, 1.0, 2.0, 10.0]) == (2.5, 1.0, 10.0)
    assert str(spread([0.5])) == "0.5000"
    assert str(spread([0.25, 0.75])) == "0.5000 (0.2500, 0.7500)"
