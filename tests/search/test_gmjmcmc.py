"""Algorithm 2: chains as values, what they store, when they stop."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import bgnlm
from bgnlm.errors import DataError, SettingError
from bgnlm.features import Evaluator, Input, depth, local_width, operation_count, parse
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.posterior.summarize import summarize
from bgnlm.search.chains import ChainResult, run_chain
from bgnlm.search.classes import ClassChanges
from bgnlm.search.config import Limits, MoveProbabilities, SearchConfig
from bgnlm.search.gmjmcmc import Workspace, advance, marginal_order, start_chain
from bgnlm.search.mjmcmc import ACCEPTED, KERNELS, USED
from bgnlm.search.prior import ModelPrior
from bgnlm.search.problem import define_problem
from bgnlm.search.runner import OUT_OF_TIME, run_chains
from bgnlm.search.union import unite
from bgnlm.search.visited import VisitedModels

SMALL = SearchConfig(population_size=7, n_populations=5, n_candidates=60)
AT_NODES = 2e-3  # where g is integrated the nodes are where the model before left them
FAST = replace(SMALL, engine="mjmcmc", n_initial_steps=100, n_explore_steps=100, n_final_steps=200)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(50, 3)) + 1.0
    return X[:, 0] * X[:, 1] - X[:, 2] + 0.7 * rng.normal(size=50), X


@pytest.fixture
def classes_data(rng):
    X = rng.normal(size=(70, 3))
    return (rng.random(70) < 1 / (1 + np.exp(-2 * X[:, 0] * X[:, 1]))).astype(float), X


def seed(number=1):
    return np.random.SeedSequence(number)


def posterior(problem, *chains):
    return summarize(unite(problem, chains))


def start(problem, number=1):
    work = Workspace(problem)
    return work, start_chain(problem, seed(number), work)


def assert_same_state(here, there):
    for name in ("random_state", "features", "n_explored", "best_log_joint"):
        assert getattr(here, name) == getattr(there, name), name
    assert here.classes.representatives == there.classes.representatives
    assert (here.classes.fingerprints == there.classes.fingerprints).all()
    assert (here.model == there.model).all()


def assert_same_discovery(here, there):
    for name in ("keys", "log_marginal", "starts", "members"):
        assert (getattr(here.models, name) == getattr(there.models, name)).all(), name
    for name in ("classes", "tally", "model"):
        assert (getattr(here, name) == getattr(there, name)).all(), name
    for name in ("log_discarded", "best_log_joint", "n_scored", "random_state", "features"):
        assert getattr(here, name) == getattr(there, name), name
    for name in ("numbers", "fingerprints", "costs"):
        assert (getattr(here.changes, name) == getattr(there.changes, name)).all(), name
    assert here.changes.representatives == there.changes.representatives


@pytest.mark.parametrize("config", [SMALL, FAST, replace(SMALL, informed=0)], ids=["all", "mjmcmc", "paper"])
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_interrupting_a_chain_changes_nothing(data, classes_data, family, config):
    """From the state alone, in a workspace of its own, after any number of populations: the same to the last bit."""
    y, X = data if family == "gaussian" else classes_data
    problem = define_problem(y, X, family=family, config=config)
    work, first = start(problem)
    end, found = advance(problem, first, 5, work)
    assert end.n_explored == len(found) == 5
    for n_before in (1, 3):
        _, state = start(problem)
        state, before = advance(problem, state, n_before)
        state, after = advance(problem, state, 5 - n_before, Workspace(problem))
        assert_same_state(state, end)
        for here, there in zip(before + after, found, strict=True):
            assert_same_discovery(here, there)


def test_advancing_does_not_change_the_state(data):
    problem = define_problem(*data, config=FAST)
    _, state = start(problem)
    one, _ = advance(problem, state, 2)
    two, _ = advance(problem, state, 2)
    assert state.n_explored == 0
    assert_same_state(one, two)


def test_the_seed_decides(data):
    problem = define_problem(*data, config=FAST)
    one, same, other = (run_chain(problem, seed(number)) for number in (1, 1, 2))
    assert_same_state(one.state, same.state)
    assert (one.visited.rows().keys == same.visited.rows().keys).all()
    assert (one.visited.rows().log_marginal == same.visited.rows().log_marginal).all()
    assert other.classes.representatives != one.classes.representatives


def test_seeds_of_chains_depend_on_their_number_alone(data):
    problem = define_problem(*data, config=replace(FAST, n_populations=2))
    few, more = run_chains(problem, 1, 5), run_chains(problem, 2, np.random.SeedSequence(5))
    assert_same_state(few[0].state, more[0].state)
    assert more[0].state.random_state != more[1].state.random_state


def populations(problem, n_populations, number=1):
    work, state = start(problem, number)
    yield state
    for _ in range(n_populations):
        state, _ = advance(problem, state, 1, work)
        yield state


def test_every_transition_of_a_full_population_replaces_a_feature(data):
    """Even where all are above the threshold."""
    config = replace(SMALL, keep_threshold=0.0, n_populations=12)
    problem = define_problem(*data, config=config)
    seen = [set(state.features) for state in populations(problem, 11)]
    n_full = 0
    for before, after in pairwise(seen):
        if len(before) == 7:
            n_full += 1
            assert before - after
            assert after - before
    assert n_full >= 9


def test_a_population_of_one_feature_still_moves(data):
    problem = define_problem(*data, config=replace(SMALL, population_size=1, n_populations=6))
    seen = [state.features for state in populations(problem, 5)]
    assert all(before != after for before, after in pairwise(seen))


def test_a_population_is_explored_from_what_is_left_of_the_model_before(data):
    problem = define_problem(*data, config=replace(SMALL, n_populations=9))
    work, state = start(problem)
    n_included = 0
    for _ in range(8):
        before = state.features
        state, [found] = advance(problem, state, 1, work)
        log_joint = found.models.log_marginal - found.models.sum_over_members(state.classes.costs)
        best = {before[found.classes.tolist().index(c)] for c in found.models.members_of(int(np.argmax(log_joint)))}
        model = {feature for feature, is_in in zip(state.features, state.model, strict=True) if is_in}
        assert model == best & set(state.features)
        n_included += len(model)
    assert n_included > 8


def test_what_was_dropped_weighs_more_once_a_class_is_cheaper(data):
    problem = define_problem(*data, config=SMALL)
    _, state = start(problem)
    _, [found] = advance(problem, state, 1)
    number = int(found.classes[0])
    changes = ClassChanges(
        np.array([number]),
        (state.classes.representatives[number],),
        state.classes.fingerprints[[number]],
        state.classes.costs[[number]] - 1.5,
    )
    chain = ChainResult(0, state, VisitedModels(100))
    chain.absorb(found._replace(log_discarded=-3.0, changes=changes), problem.config)
    assert chain.visited.log_discarded() == pytest.approx(-1.5)
    dearer = ChainResult(0, state, VisitedModels(100))
    dearer.absorb(found._replace(log_discarded=-3.0), problem.config)
    assert dearer.visited.log_discarded() == pytest.approx(-3.0)
    assert dearer.log_mass < chain.log_mass


def test_features_to_keep_are_in_every_population(data):
    keep = ("sin(x2)", "x3*x1")
    problem = define_problem(*data, keep=keep, config=replace(SMALL, n_populations=9, keep_threshold=1.0))
    for state in populations(problem, 8):
        assert state.features[:2] == tuple(map(parse, keep))


@pytest.mark.parametrize("keep", [["x1", "x1"], ["x1", "x2", "x4"], ["x3*x3*x3*inverse(x4)"]])
def test_features_that_cannot_be_kept(data, keep):
    y, X = data
    X = np.column_stack([X, X[:, 0] + X[:, 1]])
    X[0, 3] = 0.0 if "inverse" in keep[0] else X[0, 3]
    with pytest.raises(DataError, match="cannot be kept"):
        run_chain(define_problem(y, X, keep=keep, config=SMALL), seed())


@pytest.mark.parametrize("informed", [0.0, 1.0])
def test_all_features_are_within_limits(data, informed):
    limits = Limits(max_depth=2, max_width=3, max_operations=4)
    moves = MoveProbabilities(new_input=1, modification=2, multiplication=2, projection=3)
    problem = define_problem(
        *data, config=replace(SMALL, limits=limits, moves=moves, informed=informed, n_populations=9)
    )
    features = set().union(*(state.features for state in populations(problem, 8)))
    assert len(features) > 12
    for feature in features:
        assert depth(feature) <= 2
        assert local_width(feature) <= 3
        assert operation_count(feature) <= 4


@pytest.mark.parametrize("informed", [0.0, 1.0])
def test_moves_that_are_switched_off_leave_no_trace(data, informed):
    moves = MoveProbabilities(new_input=1, modification=0, multiplication=1, projection=0)
    problem = define_problem(*data, config=replace(SMALL, moves=moves, informed=informed))
    chain = run_chain(problem, seed())
    assert any(operation_count(feature) for feature in chain.classes.representatives)
    assert not any("(" in str(feature) for feature in chain.classes.representatives)


def test_the_largest_model_size(data):
    problem = define_problem(*data, config=replace(FAST, limits=Limits(max_model_size=2)))
    sizes = run_chain(problem, seed()).visited.rows().sizes
    assert sizes.max() == 2


def test_the_largest_model_size_of_the_prior_holds_too(data):
    problem = define_problem(*data, prior=ModelPrior(max_model_size=1), config=SMALL)
    assert posterior(problem, run_chain(problem, seed())).found.rows.sizes.max() == 1


def test_weights_of_transforms_may_be_an_array(data):
    config = replace(SMALL, transform_weights=np.array([1.0, 0.0]))
    chain = run_chain(define_problem(*data, transforms=["sin", "tanh"], config=config), seed())
    texts = " ".join(map(str, chain.classes.representatives))
    assert "sin" in texts
    assert "tanh" not in texts


@pytest.mark.parametrize("engine", ["auto", "exhaustive", "mjmcmc"])
@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
def test_depth_zero_is_the_exact_linear_model(data, family, engine):
    y, X = data
    y = {"gaussian": y, "binomial": y > 0, "poisson": np.round(np.exp(0.3 * y))}[family]
    config = replace(SMALL, limits=Limits(max_depth=0), engine=engine, window=1e3, n_final_steps=400)
    problem = define_problem(y, X, family=family, prior=ModelPrior(penalty=0.7, complexity="oc+1"), config=config)
    found = posterior(problem, run_chain(problem, seed()))
    exact = bgnlm.enumerate_models(y, X, family=family, penalty=0.7)
    assert len(found) == 8
    tolerance = 1e-5 if family == "gaussian" else AT_NODES
    probabilities = np.array([found.probability_of(Input(name)) for name in exact.names])
    assert probabilities == pytest.approx(exact.inclusion_probabilities, abs=tolerance)
    log_mass = np.logaddexp.reduce(exact.log_marginal + exact.log_model_prior)
    assert found.log_mass == pytest.approx(log_mass, abs=tolerance)
    assert found.discarded == 0.0


def assert_exact(problem, chain, n_checked=200, tolerance=2e-5, **options):
    """Each model once, with the value it has by itself."""
    rows, features = chain.visited.rows(), chain.classes.representatives
    models = {frozenset(rows.members_of(i).tolist()) for i in range(len(rows))}
    assert len(models) == len(rows) == chain.visited.n_scored
    assert len({features[c] for model in models for c in model}) == len(set().union(*models))
    evaluator = Evaluator(problem.X, problem.names)
    for i in np.linspace(0, len(rows) - 1, min(n_checked, len(rows))).astype(int):
        X = evaluator.matrix(features[c] for c in rows.members_of(i))
        alone = bgnlm.log_marginal(problem.likelihood.y, X, **options)
        alone += float(log_sizes(X.shape[1], len(problem.names)))
        assert rows.log_marginal[i] == pytest.approx(alone, abs=tolerance)


@pytest.mark.parametrize("engine", ["exhaustive", "mjmcmc"])
@pytest.mark.parametrize("prior", ["robust", "jeffreys", "gaussian", "bic"])
def test_stored_scores_are_those_of_single_models(data, engine, prior):
    y, X = data
    problem = define_problem(y, X, coefficient_prior=prior, noise_floor=0.1, config=replace(FAST, engine=engine))
    assert_exact(problem, run_chain(problem, seed()), coefficient_prior=prior, noise_floor=0.1)


@pytest.mark.parametrize("engine", ["exhaustive", "surrogate", "mjmcmc"])
@pytest.mark.parametrize(("prior", "tolerance"), [("auto", AT_NODES), ("g", 1e-5)])
def test_stored_scores_of_generalized_linear_models(classes_data, engine, prior, tolerance):
    y, X = classes_data
    options = {"family": "binomial", "coefficient_prior": prior}
    problem = define_problem(y, X, **options, config=replace(FAST, engine=engine, n_draws=60, n_populations=4))
    assert_exact(problem, run_chain(problem, seed()), 100, tolerance, **options)


def test_stored_scores_of_counts(rng):
    X = rng.normal(size=(60, 3))
    y = rng.poisson(np.exp(0.5 + X[:, 0] * X[:, 1]))
    problem = define_problem(y, X, family="poisson", config=replace(SMALL, n_populations=8))
    chain = run_chain(problem, seed())
    assert_exact(problem, chain, 100, AT_NODES, family="poisson")
    assert posterior(problem, chain).probability_of(parse("x1*x2")) > 0.9


def test_more_columns_than_can_be_enumerated(rng):
    """Twelve inputs of a logistic model: the first populations are drawn by the approximation, all scores are exact."""
    X = rng.normal(size=(120, 12))
    y = (rng.random(120) < 1 / (1 + np.exp(-2.5 * X[:, 0] + 2.5 * X[:, 1]))).astype(float)
    config = SearchConfig(n_populations=2, n_draws=200, n_candidates=60)
    problem = define_problem(y, X, family="binomial", config=config)
    chain = run_chain(problem, seed())
    assert chain.n_scored >= 2 * 200
    assert_exact(problem, chain, 60, AT_NODES, family="binomial")
    found = posterior(problem, chain)
    assert min(found.probability_of(Input(name)) for name in ("x1", "x2")) > 0.5


def test_all_engines_score_on_one_scale(data):
    """Small populations are enumerated and large ones are not, and their models end up in one set."""
    linear = replace(FAST, limits=Limits(max_depth=0))
    problems = [define_problem(*data, config=replace(linear, engine=engine)) for engine in ("exhaustive", "mjmcmc")]
    one, other = (run_chain(problem, seed()).state.best_log_joint for problem in problems)
    assert one == pytest.approx(other, abs=1e-5)


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_every_kernel_is_used_and_accepted_somewhere(rng, family):
    X = rng.normal(size=(60, 6))
    y = X[:, 0] - X[:, 1] + 2.0 * rng.normal(size=60)
    config = SearchConfig(engine="mjmcmc", n_populations=6)
    problem = define_problem(y if family == "gaussian" else y > 0, X, family=family, config=config)
    chain = run_chain(problem, seed())
    assert chain.tally.shape == (2, len(KERNELS))
    assert (chain.tally[USED] > 0).all()
    assert (chain.tally[ACCEPTED] > 0).all()
    assert (chain.tally[ACCEPTED] <= chain.tally[USED]).all()
    assert chain.tally[USED].sum() == 250 * (config.n_populations - 1) + 1000


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_every_kernel_is_used_and_accepted_in_a_default_run(rng, family):
    """Of a table with many inputs; populations of few features need no sampling."""
    X = rng.normal(size=(60, 17))
    y = X[:, 0] - X[:, 1] + 2.0 * rng.normal(size=60)
    problem = define_problem(
        y if family == "gaussian" else y > 0, X, family=family, config=SearchConfig(n_populations=4)
    )
    chain = run_chain(problem, seed())
    assert (chain.tally > 0).all()


def test_weights_are_frequencies(data):
    y, X = data
    config = replace(SMALL, informed=0, n_populations=8)
    weights = np.where(np.arange(50) % 2, 2, 1)
    weighted = define_problem(y, X, sample_weight=weights, config=config)
    repeated = define_problem(np.repeat(y, weights), np.repeat(X, weights, axis=0), config=config)
    here, there = (posterior(problem, run_chain(problem, seed())) for problem in (weighted, repeated))
    assert len(here) == len(there) > 50
    assert here.log_mass == pytest.approx(there.log_mass, abs=1e-6)
    for text, probability in dict(zip(map(str, here.features), here.inclusion_probabilities, strict=True)).items():
        if "+" not in text:  # projections have weights that rounding may change
            assert there.probability_of(parse(text)) == pytest.approx(probability, abs=1e-6)


@pytest.mark.parametrize("informed", [0.0, 0.5])
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_rows_of_weight_zero_are_as_good_as_left_out(rng, family, informed):
    """Also where a feature is not finite in such a row."""
    X = rng.normal(size=(60, 3))
    y = 1.0 / X[:, 0] + 0.1 * rng.normal(size=60)
    y = y if family == "gaussian" else ((np.abs(y) > 2) ^ (rng.random(60) < 0.15)).astype(float)
    X[:5] = 0.0
    weights = (np.arange(60) >= 5).astype(float)
    options = {"family": family, "transforms": ["inverse", "sqrt_abs"], "config": replace(SMALL, informed=informed)}
    problems = define_problem(y, X, sample_weight=weights, **options), define_problem(y[5:], X[5:], **options)
    here, there = (posterior(problem, run_chain(problem, seed())) for problem in problems)
    assert here.log_mass == pytest.approx(there.log_mass, abs=1e-6)
    if family == "gaussian" and informed:
        assert here.probability_of(parse("inverse(x1)")) > 0.9


def test_inputs_come_in_by_marginal_testing(rng):
    X = rng.normal(size=(80, 6))
    y = 2 * X[:, 4] + X[:, 2] + 0.5 * rng.normal(size=80)
    problem = define_problem(y, X, keep=["x6"], config=replace(SMALL, n_initial_inputs=2))
    work, state = start(problem)
    assert state.features == (Input("x6"), Input("x5"), Input("x3"))
    assert not state.model.any()
    alone = [bgnlm.log_marginal(y, X[:, [j]]) for j in range(6)]
    assert [problem.names.index(f.name) for f in marginal_order(problem, work)] == np.argsort(alone)[::-1].tolist()


def test_useless_inputs_are_left_out(data):
    y, X = data
    X = np.column_stack([X, np.ones(50), 3.0 - X[:, 0], X[:, 0] + X[:, 1]])
    _, state = start(define_problem(y, X, config=SMALL))
    assert len(state.features) == 3
    assert Input("x4") not in state.features
    assert not {Input("x1"), Input("x5")} <= set(state.features)


@pytest.mark.parametrize("informed", [0.0, 0.5])
def test_inputs_that_say_nothing_leave_the_null_model(rng, informed):
    config = replace(SMALL, informed=informed, n_populations=2)
    problem = define_problem(rng.normal(size=20), np.ones((20, 2)), config=config)
    found = posterior(problem, run_chain(problem, seed()))
    assert len(found) == 1
    assert found.features_of(0) == ()


def test_informed_generation_finds_sooner(rng):
    n_found = {}
    X = rng.normal(size=(80, 6)) + 1.0
    y = np.sin(X[:, 0] * X[:, 1]) + 0.1 * rng.normal(size=80)
    for informed in (0.0, 0.5):
        config = SearchConfig(population_size=10, n_populations=8, informed=informed)
        problem = define_problem(y, X, config=config)
        chains = run_chains(problem, 20, 3)
        n_found[informed] = sum(posterior(problem, c).probability_of(parse("sin(x1*x2)")) > 0.5 for c in chains)
    assert n_found[0.5] >= n_found[0.0] + 5


def test_candidates_can_be_ranked_on_a_sample_of_rows(rng):
    X = rng.normal(size=(3000, 4))
    y = X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=3000)
    problem = define_problem(y, X, config=replace(SMALL, candidate_rows=100, informed=1.0))
    assert posterior(problem, run_chain(problem, seed())).probability_of(parse("x1*x2")) > 0.99


def test_a_chain_goes_on_until_it_has_enough_models(data):
    config = replace(FAST, n_populations=2, population_size=15, n_final_steps=50)
    short = run_chain(define_problem(*data, config=config), seed())
    long = run_chain(define_problem(*data, config=replace(config, min_models=900)), seed())
    assert short.visited.n_scored < 900 <= long.visited.n_scored
    assert len(short.history) == 2 < len(long.history)


def test_a_chain_ends_when_there_are_no_more_models(data):
    config = replace(SMALL, limits=Limits(max_depth=0), min_models=10**6, window=1e3, n_populations=2)
    chain = run_chain(define_problem(*data, config=config), seed())
    assert chain.visited.n_scored == 8
    assert len(chain.history) == 11  # it tries ten times


def test_a_chain_that_finds_nothing_more_loses_patience(data):
    config = replace(SMALL, limits=Limits(max_depth=0), n_populations=50)
    assert len(run_chain(define_problem(*data, config=config), seed()).history) == 50
    assert len(run_chain(define_problem(*data, config=replace(config, patience=3)), seed()).history) == 4


def test_time_is_limited(data):
    config = replace(SMALL, n_populations=10_000, max_seconds=0.05)
    [chain] = run_chains(define_problem(*data, config=config), 1, 1)
    assert 1 <= len(chain.history) < 1000
    assert chain.ending == OUT_OF_TIME


def test_progress_is_reported(data):
    reports = []
    problem = define_problem(*data, config=replace(SMALL, window=1e3))
    chains = run_chains(problem, 2, 1, report=reports.append)
    latest = [r.latest for r in reports]
    assert [(r.chain, r.n_explored) for r in latest] == [(c, t) for c in (0, 1) for t in range(1, 6)]
    assert [r.done for r in reports] == pytest.approx(np.arange(1, 11) / 10)
    assert reports[-1].n_models == sum(chain.visited.n_scored for chain in chains)
    assert reports[-1].best_log_joint == max(chain.state.best_log_joint for chain in chains)
    assert reports[-1].seconds_left == 0.0
    for chain in chains:
        masses = [progress.log_mass for progress in chain.history]
        assert (np.diff(masses) >= 0).all()
        last = chain.history[-1]
        assert last.n_models == chain.visited.n_scored <= last.n_scored
        assert last.log_mass == pytest.approx(posterior(problem, chain).log_mass, abs=0.1)
        assert last.best_log_joint == pytest.approx(posterior(problem, chain).found.log_joint[0], abs=1e-6)


def test_memory_is_bounded(data):
    full = run_chain(define_problem(*data, config=SMALL), seed())
    chain = run_chain(define_problem(*data, config=replace(SMALL, max_models=20)), seed())
    assert len(full.visited) > 40
    assert len(chain.visited) == 20
    assert chain.visited.log_discarded() > full.visited.log_discarded()
    assert chain.state.features == full.state.features


def test_the_window_limits_what_is_stored(data):
    problem = define_problem(*data, config=replace(SMALL, window=3.0))
    chain = run_chain(problem, seed())
    wide = run_chain(define_problem(*data, config=replace(SMALL, window=1e3)), seed())
    assert len(chain.visited) < len(wide.visited)
    assert chain.visited.log_discarded() > wide.visited.log_discarded() == -np.inf
    assert chain.state.best_log_joint == pytest.approx(wide.state.best_log_joint)


@pytest.mark.parametrize(
    ("family", "engine", "size", "message"),
    [
        ("gaussian", "exhaustive", 25, "at most 24 features"),
        ("binomial", "exhaustive", 17, "at most 16 features"),
        ("gaussian", "surrogate", 5, "other families than the Gaussian"),
    ],
)
def test_engines_that_do_not_fit(rng, family, engine, size, message):
    y, X = rng.normal(size=40), rng.normal(size=(40, 25))
    config = SearchConfig(engine=engine, population_size=size, n_populations=2)
    with pytest.raises(SettingError, match=message):
        run_chain(define_problem(y if family == "gaussian" else y > 0, X, family=family, config=config), seed())
