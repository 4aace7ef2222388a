"""Prior probabilities of models."""

import math

import numpy as np
import pytest
from scipy import integrate

from bgnlm import parse
from bgnlm.errors import SettingError
from bgnlm.features import operation_count
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.search.prior import ModelPrior, logic_complexity, script_complexity

FEATURES = [parse(text) for text in ("x1", "sin(x1)", "x1*x2", "sigmoid(x1 + x2 + x3)", "cbrt_abs(x1**2*x2)")]


@pytest.mark.parametrize(("complexity", "expected"), [("oc", [0, 1, 1, 3, 3]), ("oc+1", [1, 2, 2, 4, 4])])
def test_operation_counts(complexity, expected):
    prior = ModelPrior(penalty=1.0, complexity=complexity)
    assert prior.costs(FEATURES, 100, 9).tolist() == expected


def test_the_measure_of_the_classification_scripts():
    """0.5 for a term, 1.5 for g(x) or x y, (k + 3) / 2 for a projection of k inputs."""
    assert [script_complexity(feature) for feature in FEATURES] == [0.5, 1.5, 1.5, 3.0, 3.5]


@pytest.mark.parametrize(("penalty", "nats"), [("bic", math.log(223)), ("aic", 2.0), (0.5, 0.5), (0, 0.0)])
def test_penalties(penalty, nats):
    assert ModelPrior(penalty=penalty, complexity="oc").log_model_prior(FEATURES, 223, 9) == pytest.approx(-8 * nats)


def test_by_default_every_feature_also_pays_for_the_choice_among_the_inputs():
    assert ModelPrior().costs(FEATURES, 223, 9) == pytest.approx(
        np.log(223) * np.array([0, 1, 1, 3, 3]) + math.log(9) * np.array([1, 2, 2, 4, 4]), rel=1e-14
    )
    assert ModelPrior(penalty=0.0).costs(FEATURES, 223, 9).tolist() == [0.0] * 5


def test_inputs_matter_with_an_unknown_probability():
    prior = ModelPrior()
    inputs = [parse(f"x{number}") for number in range(9)]
    for size in range(10):
        integral = integrate.quad(lambda w, k=size: 2.0 * (1.0 - w) * w**k * (1.0 - w) ** (9 - k), 0.0, 1.0)[0]
        nothing = integrate.quad(lambda w: 2.0 * (1.0 - w) ** 10, 0.0, 1.0)[0]
        assert prior.log_model_prior(inputs[:size], 223, 9) == pytest.approx(math.log(integral / nothing))
    larger = [*inputs, parse("x0*x1")]
    assert prior.log_model_prior(larger, 223, 9) == pytest.approx(-math.log(10) - math.log(223) - math.log(9))
    assert log_sizes([0, 1, 2, 3, 4], 3) == pytest.approx(np.log([1, 3 / 4, 9 / 6, 27 / 4, 81 / 4]))
    assert (log_sizes([0, 3], 0) == 0.0).all()
    assert ModelPrior(complexity="oc").log_model_prior(FEATURES[:1] * 3, 223, 9) == 0.0


def test_the_size_limit():
    prior = ModelPrior(penalty=1.0, complexity="oc", max_model_size=2)
    assert prior.log_model_prior(FEATURES[:2], 10, 9) == -1.0
    assert prior.log_model_prior(FEATURES[:3], 10, 9) == -math.inf
    assert ModelPrior(max_model_size=0).log_model_prior([], 10, 9) == 0.0


@pytest.mark.parametrize(("text", "leaves"), [("x1", 1), ("not_(x1)", 1), ("x1*x2", 2), ("x1*not_(x2*x3)", 3)])
def test_logic_regression(text, leaves):
    prior = ModelPrior(penalty=1.0, complexity=logic_complexity(50))
    expected = -math.log(math.comb(50, leaves) * 2 ** (2 * leaves - 2))
    assert prior.log_model_prior([parse(text)], 1000, 50) == pytest.approx(expected)


def test_logic_trees_that_are_too_large_are_ruled_out():
    for prior in (
        ModelPrior(penalty=1.0, complexity=logic_complexity(50, max_leaves=2)),
        ModelPrior(penalty=0.0, complexity=logic_complexity(2)),
    ):
        assert prior.log_model_prior([parse("x1*x2*x3")], 1000, 50) == -math.inf
        assert prior.log_model_prior([parse("x1*x2")], 1000, 50) > -math.inf


def test_a_measure_of_ones_own():
    prior = ModelPrior(penalty=2.0, complexity=lambda feature: 10.0 * operation_count(feature) + 1)
    assert prior.costs(FEATURES[:2], 10, 9).tolist() == [2.0, 22.0]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"penalty": "hqc"}, "'bic', 'aic'"),
        ({"penalty": -0.1}, "0 or more"),
        ({"complexity": "depth"}, "'oc'"),
        ({"max_model_size": -2}, "0 or more"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(SettingError, match=message):
        ModelPrior(**settings)


@pytest.mark.parametrize("value", [-1.0, math.nan, "much", None])
def test_a_measure_must_answer_with_a_number(value):
    with pytest.raises(SettingError, match="for the feature x1"):
        ModelPrior(complexity=lambda _: value).costs(FEATURES[:1], 10, 9)
