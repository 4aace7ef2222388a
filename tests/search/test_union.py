"""What several chains found together: one table of classes, every model once."""

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

import bgnlm
from bgnlm.features import Evaluator, Input, parse
from bgnlm.posterior.summarize import summarize
from bgnlm.search.chains import ChainResult, run_chain
from bgnlm.search.classes import class_key
from bgnlm.search.config import Limits, SearchConfig
from bgnlm.search.gmjmcmc import ChainState, Workspace
from bgnlm.search.prior import ModelPrior
from bgnlm.search.problem import define_problem
from bgnlm.search.runner import run_chains
from bgnlm.search.union import by_chain, common_classes, unite
from bgnlm.search.visited import VisitedModels, rows_of
from tests import naive

ONCE = "cbrt_abs(P**2*M)"
TWICE = "sqrt_abs(cbrt_abs(P**4*M**2))"
THRICE = "sqrt_abs(sqrt_abs(cbrt_abs(P**8*M**4)))"
ALL_MODELS = SearchConfig(n_populations=1, population_size=4, window=1e4)


@pytest.fixture
def law(rng):
    X = np.column_stack([rng.uniform(0.1, 5.0, 40), rng.uniform(0.5, 2.0, 40), rng.normal(size=40)])
    y = np.cbrt(X[:, 0] ** 2 * X[:, 1]) + 0.3 * rng.normal(size=40)
    return {"y": y, "X": X, "names": ["P", "M", "z"]}


def chain_that_knows(law, *features, config=ALL_MODELS):
    """All models over these features and as many inputs as fit, enumerated."""
    return run_chain(define_problem(**law, keep=features, config=config), np.random.SeedSequence(1))


def chain_of(problem, models, discarded=()):
    """A chain that stored these models, {features: log marginal}, and dropped some mass over other features."""
    classes = Workspace(problem).classes
    texts = dict.fromkeys(text for features in [*models, *(features for features, _ in discarded)] for text in features)
    number = {text: classes.identify(parse(text)).feature_class for text in texts}
    columns = np.arange(len(classes))
    keys = np.array([class_key(int(c)) for c in columns], dtype=np.uint64)
    included = np.array([[c in {number[text] for text in model} for c in columns] for model in models])
    visited = VisitedModels(problem.config.max_models)
    costs = np.array(classes.costs)
    visited.add(rows_of(included.reshape(len(models), -1), columns, keys, np.array(list(models.values()))), costs)
    for features, log_mass in discarded:
        visited.discard(log_mass, np.array([number[text] for text in features]))
    state = ChainState({}, (), np.zeros(0, bool), classes.table(), 1, -np.inf)
    return ChainResult(0, state, visited)


def models_of(found):
    """{features as text: log joint}."""
    rows = found.rows
    sets = [frozenset(str(found.features[c]) for c in rows.members_of(i)) for i in range(len(rows))]
    assert len(set(sets)) == len(sets)
    return dict(zip(sets, found.log_joint.tolist(), strict=True))


def enumerated(problem, texts):
    """The same of all models over some features, one at a time."""
    evaluator = Evaluator(problem.X, problem.names)
    features = [parse(text) for text in texts]
    result = {}
    for subset in naive.all_subsets(len(texts)):
        chosen = [features[j] for j in subset]
        value = bgnlm.log_marginal(problem.likelihood.y, evaluator.matrix(chosen))
        prior = problem.prior.log_model_prior(chosen, problem.n_obs, len(problem.names))
        result[frozenset(str(f) for f in chosen)] = value + prior
    return result


def test_forms_of_one_law_are_counted_once_and_priced_by_the_simplest(law):
    problem = define_problem(**law, config=ALL_MODELS)
    chains = [chain_that_knows(law, form) for form in (THRICE, ONCE, TWICE)]
    expected = enumerated(problem, [ONCE, "P", "M", "z"])
    found = unite(problem, chains)
    assert models_of(found) == pytest.approx(expected, abs=1e-4)
    assert len(found.rows) == 16
    assert found.costs[found.features.index(parse(ONCE))] == pytest.approx(3 * np.log(40) + 4 * np.log(3))
    alone = unite(problem, chains[:1])
    assert parse(THRICE) in alone.features
    assert summarize(found).probability_of(parse(ONCE)) > summarize(alone).probability_of(parse(THRICE))


def test_the_order_of_the_chains_does_not_matter(law):
    config = SearchConfig(n_populations=3, population_size=6, n_candidates=60)
    problem = define_problem(**law, config=config)
    chains = [*run_chains(problem, 2, 5), chain_that_knows(law, TWICE), chain_that_knows(law, ONCE)]
    expected = unite(problem, chains)
    assert len(expected.rows) > 100
    for order in list(permutations(chains))[1::5]:
        found = unite(problem, order)
        assert models_of(found) == pytest.approx(models_of(expected), abs=1e-9)
        assert (found.rows.keys == expected.rows.keys).all()
        assert found.log_discarded == pytest.approx(expected.log_discarded, abs=1e-9)


def test_the_union_is_the_enumeration_where_populations_are_enumerated(law):
    """Chains that saw different features: all models of each, those they share once."""
    problem = define_problem(**law, config=ALL_MODELS)
    sets = [("P*M", "P", "M", "z"), ("sin(z)", "P", "M", "z")]
    chains = [chain_that_knows(law, features[0]) for features in sets]
    expected = enumerated(problem, sets[0]) | enumerated(problem, sets[1])
    assert len(expected) == 24
    assert models_of(unite(problem, chains)) == pytest.approx(expected, abs=1e-4)


def test_one_chain_is_its_own_union(law):
    problem = define_problem(**law, config=ALL_MODELS)
    chain = chain_that_knows(law, ONCE)
    assert models_of(unite(problem, [chain])) == pytest.approx(models_of(unite(problem, [chain, chain])), abs=1e-12)


def test_chains_that_know_nothing_of_each_other(law):
    problem = define_problem(**law, prior=ModelPrior(complexity="oc"))
    chains = [chain_of(problem, {("P",): -1.0, (): -2.0}), chain_of(problem, {("M",): -3.0, (): -2.0})]
    found = models_of(unite(problem, chains))
    assert found == pytest.approx({frozenset(): -2.0, frozenset({"P"}): -1.0, frozenset({"M"}): -3.0})
    common = common_classes(problem, chains)
    assert set(common.features) == {Input("P"), Input("M")}


def test_a_model_in_which_two_classes_became_one_is_no_model(law):
    """A chain may have taken two forms for two classes if a third, closer to both, is known elsewhere only."""
    problem = define_problem(**law, prior=ModelPrior(complexity="oc"))
    chain = chain_of(problem, {("P", "M"): -1.0, ("P",): -2.0, ("M",): -3.0})
    value = chain.state.classes
    same = replace(value, representatives=(Input("P"), Input("P")), fingerprints=value.fingerprints[[0, 0]])
    chain.state = replace(chain.state, classes=same)
    assert models_of(unite(problem, [chain])) == {frozenset({"P"}): -2.0}


def test_the_most_probable_models_stay(law):
    problem = define_problem(**law, config=replace(ALL_MODELS, max_models=5))
    full = define_problem(**law, config=ALL_MODELS)
    chains = [chain_that_knows(law, form) for form in ("P*M", ONCE)]
    everything, found = unite(full, chains), unite(problem, chains)
    assert len(everything.rows) == 24
    assert models_of(found) == pytest.approx(dict(list(models_of(everything).items())[:5]))
    dropped = np.logaddexp.reduce(everything.log_joint[5:])
    assert found.log_discarded == pytest.approx(dropped)
    assert everything.log_discarded == -np.inf


def test_discarded_mass_of_all_chains_is_added(law):
    problem = define_problem(**law)
    parts = [
        chain_of(problem, {("P",): -1.0}, [(("P",), np.log(0.2))]),
        chain_of(problem, {("M",): -1.0}, [(("M",), np.log(0.3))]),
    ]
    assert unite(problem, parts).log_discarded == pytest.approx(np.log(0.5))
    assert [part.log_discarded for part in by_chain(parts, common_classes(problem, parts))] == pytest.approx(
        np.log([0.2, 0.3])
    )


def test_discarded_mass_is_repriced_where_another_chain_knows_a_simpler_form(law):
    problem = define_problem(**law)
    saving = problem.cost(parse(THRICE)) - problem.cost(parse(ONCE))
    here = chain_of(problem, {(THRICE,): -1.0}, [((THRICE, "z"), -2.0), (("z",), -3.0)])
    there = chain_of(problem, {(ONCE,): -1.0})
    assert unite(problem, [here, there]).log_discarded == pytest.approx(np.logaddexp(-2.0 + saving, -3.0))


def test_so_is_the_mass_of_classes_that_are_in_no_stored_model(law):
    problem = define_problem(**law)
    saving = problem.cost(parse(THRICE)) - problem.cost(parse(ONCE))
    here = chain_of(problem, {("P",): -1.0}, [((THRICE, "z"), -2.0)])
    there = chain_of(problem, {(ONCE,): -1.0})
    assert unite(problem, [here, there]).log_discarded >= -2.0 + saving - 1e-9


def test_chains_on_data_with_a_law_find_it_together(law):
    """Each with forms of its own; no two features of the union are one function."""
    problem = define_problem(
        **(law | {"y": np.cbrt(law["X"][:, 0] ** 2 * law["X"][:, 1])}),
        noise_floor=1e-3,
        transforms=["cbrt_abs", "sqrt_abs"],
        config=SearchConfig(population_size=10, n_populations=15),
    )
    found = summarize(unite(problem, run_chains(problem, 3, 2)))
    assert found.probability_of(parse(ONCE)) > 0.95
    columns = Evaluator(problem.X, problem.names).matrix(found.features)
    correlations = np.abs(np.corrcoef(columns, rowvar=False))[np.triu_indices(len(found.features), 1)]
    assert correlations.max() <= 1 - 1e-10


def test_limits_of_model_size_hold_in_the_union(law):
    config = SearchConfig(population_size=6, n_populations=4, limits=Limits(max_model_size=1))
    problem = define_problem(**law, config=config)
    assert unite(problem, run_chains(problem, 2, 1)).rows.sizes.max() == 1


def test_the_cap_holds_while_chains_are_united(law, monkeypatch):
    """Many chains with more models than may be kept: the best of all of them, whatever the order."""
    monkeypatch.setattr("bgnlm.search.union._AT_ONCE", 50)
    config = SearchConfig(n_populations=4, population_size=7, n_candidates=60, window=50.0)
    problem = define_problem(**law, config=config)
    chains = run_chains(problem, 6, 3)
    everything = unite(problem, chains)
    few = define_problem(**law, config=replace(config, max_models=20))
    best = set(np.sort(everything.rows.keys[np.argsort(-everything.log_joint)[:20]]).tolist())
    for order in (chains, chains[::-1]):
        found = unite(few, order)
        assert set(found.rows.keys.tolist()) == best
        lost = np.sort(everything.log_joint)[:-20]
        assert found.log_discarded >= np.logaddexp.reduce(lost) - 1e-9
