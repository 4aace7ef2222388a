"""The page of text about a fit."""

import re
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from bgnlm import BGNLMClassifier, BGNLMRegressor, CoefficientPrior, SearchConfig
from bgnlm.report.summary import advice_on
from bgnlm.search import ModelPrior

QUICK = SearchConfig(n_populations=3, population_size=8, n_candidates=40)
N = 50


@cache
def data():
    rng = np.random.default_rng(61)
    X = rng.uniform(0.5, 2.0, size=(N, 3))
    return X, X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=N)


def fitted(response=None, **settings):
    X, y = data()
    settings = {"search": QUICK, "n_chains": 2, "random_state": 0, **settings}
    return BGNLMRegressor(**settings).fit(X, y if response is None else response)


def test_what_a_statistician_looks_for_first():
    model = fitted()
    text = model.summary()
    lines = text.splitlines()
    assert lines[0] == "BGNLMRegressor: gaussian response, identity link; 50 observations, 3 inputs in 3 columns"
    assert lines[1] == "coefficients: robust, share of features unknown; models: penalty bic, complexity multiplicity"
    table, models = model.features_, model.models_
    first = next(line for line in lines if line.endswith(" x1*x2"))
    numbers = [float(word) for word in first.split()[:3]]
    assert numbers == pytest.approx(table.loc[0, ["probability", "coefficient", "sd"]].tolist(), rel=1e-3)
    assert f"{models['probability'][0]:.4f}" in text
    assert f"{models['log_posterior'][0]:.3f}" in text
    average, posterior = model.searches_[0].average, model.posterior_
    assert f"average over {len(average):,} of {len(posterior):,} models, which hold {average.mass:.4f}" in text
    assert re.search(r"noise standard deviation: 0\.\d+", text)
    assert "2 chains explored 6 populations" in text
    assert f"{model.diagnostics_.n_scored:,} models scored" in text


@pytest.mark.parametrize(("weights", "is_alone"), [((0.96, 0.04), True), ((0.94, 0.06), False), ((1.0,), False)])
def test_a_chain_that_found_all_by_itself_is_told(weights, is_alone):
    found = fitted(n_chains=len(weights)).searches_[0]
    told = advice_on(found.posterior, replace(found.diagnostics, chain_weights=np.array(weights)), found.average)
    assert any("one chain alone found nearly all" in line for line in told) == is_alone


def test_features_that_are_not_shown_are_counted():
    model = fitted()
    probabilities = model.features_["probability"]
    found = re.search(r"and (\d+) features of probability below ([\d.e-]+)", model.summary())
    n_shown = int((probabilities >= 0.05).sum())
    assert int(found[1]) == len(probabilities) - n_shown
    assert float(found[2]) >= probabilities[n_shown:].max()


def test_nothing_may_be_probable():
    rng = np.random.default_rng(62)
    model = fitted(rng.normal(size=N), penalty=30.0)
    text = model.summary()
    if model.features_["probability"].max() < 0.05:
        assert "none is more probable than 0.05" in text
    assert "(intercept only)" in text


@pytest.mark.parametrize(
    ("family", "line"),
    [
        ("gamma", r"shape: [\d.e+-]+"),
        ("negative_binomial", r"size: [\d.e+-]+"),
        ("poisson", None),
        ("binomial", None),
    ],
)
def test_families_with_and_without_dispersion(family, line):
    _, y = data()
    response = {"gamma": y, "binomial": y > 1.5}.get(family, np.round(y))
    text = fitted(np.abs(response), family=family, n_chains=1).summary()
    assert text.startswith(f"BGNLMRegressor: {family} response, ")
    assert "noise standard deviation" not in text
    assert bool(re.search(r"^(shape|size): ", text, re.MULTILINE)) == (line is not None)
    if line:
        assert re.search(line, text)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"coefficient_prior": CoefficientPrior("hyper-g", a=3.25)}, "coefficients: hyper-g (a = 3.25)"),
        ({"coefficient_prior": CoefficientPrior("g", g=1234567.5)}, "coefficients: g (g = 1234567.5)"),
        ({"coefficient_prior": "g"}, "coefficients: g,"),
        ({"noise_floor": 0.05}, "noise floor 0.05 sd(y)"),
        ({"penalty": 2.5}, "models: penalty 2.5, complexity multiplicity"),
        ({"penalty": ModelPrior(penalty="aic", complexity="oc")}, "models: penalty aic, complexity oc"),
        ({"max_seconds": 0}, "2 chains did not come to their end (time is over)"),
    ],
)
def test_settings_in_words(settings, words):
    assert words in fitted(**settings).summary()


def test_chains_that_disagree():
    rng = np.random.default_rng(63)
    X = rng.uniform(0.5, 2.0, size=(N, 3))
    y = np.sin(3.0 * X[:, 0] * X[:, 1]) + X[:, 2] ** 2 + 0.3 * rng.normal(size=N)
    config = SearchConfig(n_populations=2, population_size=6, n_candidates=10)
    model = BGNLMRegressor(search=config, n_chains=4, random_state=3, penalty=0.5).fit(X, y)
    assert model.diagnostics_.disagreement.max() > 0.1
    assert re.search(r"chains disagree about .* \(standard deviation of its probability 0\.\d\d\)", model.summary())
    one = BGNLMRegressor(search=config, n_chains=1, random_state=3).fit(X, y)
    assert "chains disagree" not in one.summary()
    assert "1 chain explored 2 populations" in one.summary()


def test_columns_are_counted_before_and_after_coding():
    pd = pytest.importorskip("pandas")
    X, y = data()
    frame = pd.DataFrame(
        {"a": X[:, 0], "b": np.where(X[:, 1] > 1.0, "high", "low"), "c": list("xyz") * 16 + ["x", "y"]}
    )
    model = BGNLMRegressor(search=QUICK, n_chains=1, random_state=0).fit(frame, y)
    assert "3 inputs in 4 columns" in model.summary()


@pytest.mark.parametrize("n_obs", [1e6, 1234567.0, 2.5e9])
def test_many_observations_are_a_number_one_can_read(n_obs):
    X, y = data()
    model = BGNLMRegressor(search=QUICK, n_chains=1, random_state=0, max_depth=0)
    model.fit(X, y, sample_weight=np.full(N, n_obs / N))
    assert f"; {n_obs:,.0f} observations" in model.summary()


def test_fractions_of_observations():
    X, y = data()
    model = BGNLMRegressor(search=QUICK, n_chains=1, random_state=0, max_depth=0)
    assert "; 62.5 observations" in model.fit(X, y, sample_weight=np.full(N, 1.25)).summary()


def test_classes_below_each_other():
    X, y = data()
    model = BGNLMClassifier(search=QUICK, n_chains=1, random_state=0).fit(X, np.digitize(y, [1.0, 2.0]))
    text = model.summary()
    assert [line for line in text.splitlines() if line.startswith("class ")] == [
        f"class {number}, against the rest" for number in range(3)
    ]
    assert text.count("predictions average over") == 3
