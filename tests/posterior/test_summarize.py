"""Probabilities of models and features, by the union and by weighted sums."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bgnlm
from bgnlm.features import Input
from bgnlm.posterior.summarize import sum_by_chain, summarize
from bgnlm.search.config import Limits, SearchConfig
from bgnlm.search.prior import ModelPrior
from bgnlm.search.problem import define_problem
from bgnlm.search.runner import run_chains
from bgnlm.search.union import FoundModels, by_chain, common_classes, unite
from bgnlm.search.visited import rows_of
from tests import naive

FEATURES = tuple(map(Input, "abcd"))
COSTS = np.array([0.0, 1.0, 2.0, 0.5])
KEYS = np.array([11, 22, 44, 88], dtype=np.uint64)

models = st.dictionaries(st.frozensets(st.integers(0, 3)), st.floats(-40.0, 10.0), min_size=1)


def found_models(scores, log_discarded=-np.inf):
    included = np.array([[c in model for c in range(4)] for model in scores], dtype=bool)
    rows = rows_of(included, np.arange(4), KEYS, np.array(list(scores.values())))
    return FoundModels(FEATURES, COSTS, rows, log_discarded)


def joint(scores):
    return {model: np.exp(value - COSTS[list(model)].sum()) for model, value in scores.items()}


@given(scores=models)
def test_probabilities_are_shares_of_the_mass_found(scores):
    weights = joint(scores)
    total = sum(weights.values())
    posterior = summarize(found_models(scores))
    assert len(posterior) == len(scores)
    assert posterior.log_mass == pytest.approx(np.log(total))
    assert posterior.model_probabilities.sum() == pytest.approx(1.0)
    assert (np.diff(posterior.model_probabilities) <= 1e-15).all()
    assert (np.diff(posterior.inclusion_probabilities) <= 1e-15).all()
    for i, probability in enumerate(posterior.model_probabilities):
        model = frozenset(FEATURES.index(feature) for feature in posterior.features_of(i))
        assert probability == pytest.approx(weights[model] / total)
    for c, feature in enumerate(FEATURES):
        expected = sum(weight for model, weight in weights.items() if c in model) / total
        assert posterior.probability_of(feature) == pytest.approx(expected)
    assert set(posterior.features) == {FEATURES[c] for model in scores for c in model}


def test_the_discarded_share():
    scores = {frozenset({0}): np.log(3.0)}
    assert summarize(found_models(scores)).discarded == 0.0
    assert summarize(found_models(scores, log_discarded=np.log(1.0))).discarded == pytest.approx(0.25)


def test_scores_far_from_one_do_not_overflow():
    posterior = summarize(found_models({frozenset({0}): 5000.0, frozenset({3}): 5000.5, frozenset(): -5000.0}))
    assert posterior.model_probabilities == pytest.approx([0.5, 0.5, 0.0])


def test_a_feature_that_is_not_there_has_no_probability():
    assert summarize(found_models({frozenset({0}): 1.0})).probability_of(Input("q")) == 0.0


def test_models_that_do_not_exist_have_no_probability():
    posterior = summarize(found_models({frozenset({0}): 1.0, frozenset({1}): -np.inf}))
    assert posterior.model_probabilities.tolist() == [1.0, 0.0]
    nothing = summarize(found_models({frozenset({0}): -np.inf}))
    assert nothing.model_probabilities.tolist() == [0.0]


def test_as_text():
    scores = {frozenset({0, 1}): 4.0, frozenset(): 0.0}
    posterior = summarize(found_models(scores))
    assert repr(posterior) == "<Posterior: 2 models of 2 features>"
    lines = str(posterior).splitlines()
    assert "     0.9526  a" in lines
    assert "     0.9526      3.000  a + b" in lines
    assert "     0.0474      0.000  (intercept only)" in lines


@given(chains=st.lists(models, min_size=1, max_size=4))
def test_in_weighted_sums_a_model_counts_once_for_every_chain_that_saw_it(chains):
    parts = [found_models(scores) for scores in chains]
    masses = [sum(joint(scores).values()) for scores in chains]
    weights = sum_by_chain(parts).weights
    assert weights.sum() == pytest.approx(1.0)
    assert weights == pytest.approx(np.array(masses) / sum(masses))
    expected = np.zeros(4)
    for scores in chains:
        for model, weight in joint(scores).items():
            expected[list(model)] += weight / sum(masses)
    assert sum_by_chain(parts).weighted == pytest.approx(expected)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(60, 4))
    return X[:, 0] + 0.4 * X[:, 2] + rng.normal(size=60), X


def test_union_and_weighted_sum_agree_where_every_chain_saw_the_same(data):
    y, X = data
    config = SearchConfig(limits=Limits(max_depth=0), n_populations=2, window=1e3)
    problem = define_problem(y, X, prior=ModelPrior(penalty=1.0, complexity="oc+1"), config=config)
    chains = run_chains(problem, 3, 1)
    parts = list(by_chain(chains, common_classes(problem, chains)))
    assert sum_by_chain(parts).weights == pytest.approx([1 / 3] * 3)
    posterior = summarize(unite(problem, chains))
    exact = bgnlm.enumerate_models(y, X, penalty=1.0)
    sums = dict(zip(parts[0].features, sum_by_chain(parts).weighted, strict=True))
    for name, probability in zip(exact.names, exact.inclusion_probabilities, strict=True):
        assert posterior.probability_of(Input(name)) == pytest.approx(probability, abs=1e-6)
        assert sums[Input(name)] == pytest.approx(probability, abs=1e-6)
    assert posterior.model_probabilities == pytest.approx(exact.model_probabilities, abs=1e-6)


def test_weighted_sums_of_chains_that_saw_different_models(data):
    """Against their definition, by one model at a time, over what each chain stored."""
    config = SearchConfig(population_size=6, n_populations=3, n_candidates=40)
    problem = define_problem(*data, config=config)
    chains = run_chains(problem, 3, 1)
    parts = list(by_chain(chains, common_classes(problem, chains)))
    log_joints = np.concatenate([part.log_joint for part in parts])
    subsets = [part.rows.members_of(i).tolist() for part in parts for i in range(len(part.rows))]
    expected = naive.inclusion(naive.enumerate_probabilities(log_joints), subsets, len(parts[0].features))
    assert sum_by_chain(parts).weighted == pytest.approx(expected, abs=1e-10)
    assert len({len(part.rows) for part in parts}) > 1


def test_what_was_not_stored_is_reported(data):
    config = SearchConfig(population_size=6, n_populations=3, n_candidates=40)
    full = define_problem(*data, config=replace(config, window=1e3))
    complete = summarize(unite(full, run_chains(full, 2, 1)))
    assert complete.discarded == 0.0
    for change in ({"window": 2.0}, {"max_models": 10}):
        problem = define_problem(*data, config=replace(config, **change))
        part = summarize(unite(problem, run_chains(problem, 2, 1)))
        missing = 1.0 - np.exp(part.log_mass - complete.log_mass)
        assert missing > 1e-4
        assert part.discarded >= missing - 1e-9
