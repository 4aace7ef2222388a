"""Ways to explore a population, against each other and against the enumeration."""

from dataclasses import replace

import numpy as np
import pytest

import bgnlm
from bgnlm import CoefficientPrior
from bgnlm.errors import SettingError
from bgnlm.kernels.model_store import empty_store, find_slot, insert, pack_bits
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.search.config import Limits, SearchConfig, choose_engine
from bgnlm.search.explore import exact_score, expand, explore, starting_points, stored_models
from bgnlm.search.visited import log_sum
from tests.search.goodness import mask_of

COSTS = np.array([0.5, 0.1, 0.9, 0.5, 0.3])
BOTH = [("gaussian", "mjmcmc"), ("binomial", "mjmcmc"), ("binomial", "surrogate")]
ALL = [("gaussian", "exhaustive"), ("binomial", "exhaustive"), *BOTH]
# Quadrature over g stops at other places when it starts from another model.
TOLERANCE = {"gaussian": 1e-6, "binomial": 1e-3}
PRIOR = {"gaussian": "robust", "binomial": CoefficientPrior("hyper-g/n", a=4.0)}


def _data(family, n_columns=5):
    rng = np.random.default_rng(12)
    X = rng.normal(size=(60, n_columns)) + rng.normal(size=(60, 1))
    y = X[:, :2].sum(axis=1) * 0.15 + rng.normal(size=60)
    return (y if family == "gaussian" else (y > 0).astype(float)), X


def _explore(y, X, family, engine, *, costs=None, n_steps=1500, best_so_far=-np.inf, start=None, seed=1, **settings):
    n_columns = X.shape[1]
    return explore(
        np.random.default_rng(seed),
        check_likelihood(y, family=family, coefficient_prior=PRIOR[family]).population(X),
        np.full(n_columns, 0.2) if costs is None else costs,
        SearchConfig(**{"engine": engine, "n_draws": 2**n_columns, "window": 1000.0} | settings),
        np.zeros(n_columns, np.bool_) if start is None else start,
        n_steps,
        best_so_far,
    )


def _log_joint(explored, costs):
    """Log joint of every model that is stored, by its mask."""
    values = explored.log_marginal - explored.included @ costs
    models = {mask_of(row): value for row, value in zip(explored.included, values.tolist(), strict=True)}
    assert len(models) == len(explored.included)
    return models


@pytest.mark.parametrize(("family", "engine"), ALL)
def test_inclusion_probabilities_are_those_of_the_enumeration(family, engine):
    y, X = _data(family)
    found = _explore(y, X, family, engine, costs=COSTS)
    exact = bgnlm.enumerate_models(y, X, family=family, coefficient_prior=PRIOR[family], penalty=1.0, complexity=COSTS)
    assert len(found.included) == 32
    assert found.probabilities == pytest.approx(exact.inclusion_probabilities, abs=TOLERANCE[family])
    assert found.best.tolist() == exact.included[0].tolist()


@pytest.mark.parametrize(("family", "engine"), ALL)
def test_what_is_stored_are_log_marginals_with_all_constants(family, engine):
    y, X = _data(family)
    found = _explore(y, X, family, engine, costs=COSTS)
    expected = [
        bgnlm.log_marginal(y, X[:, row], family=family, coefficient_prior=PRIOR[family]) for row in found.included
    ]
    assert found.log_marginal == pytest.approx(expected, abs=TOLERANCE[family])
    assert found.best_log_joint == pytest.approx(max(_log_joint(found, COSTS).values()))
    assert found.log_discarded == -np.inf


@pytest.mark.parametrize(("family", "engine"), BOTH)
def test_a_size_limit(family, engine):
    y, X = _data(family)
    settings = {"costs": COSTS, "limits": Limits(max_model_size=2)}
    found, exact = _explore(y, X, family, engine, **settings), _explore(y, X, family, "exhaustive", **settings)
    assert found.included.sum(axis=1).max() == 2
    assert len(found.included) == len(exact.included) == 1 + 5 + 10
    assert found.probabilities == pytest.approx(exact.probabilities, abs=TOLERANCE[family])


@pytest.mark.parametrize("family", list(TOLERANCE))
@pytest.mark.parametrize("window", [0.5, 3.0, 40.0])
def test_what_is_stored_and_what_is_discarded_are_all_there_is(family, window):
    y, X = _data(family)
    everything = _explore(y, X, family, "exhaustive", costs=COSTS)
    values = _log_joint(everything, COSTS)
    found = _explore(y, X, family, "exhaustive", costs=COSTS, window=window)
    kept = _log_joint(found, COSTS)
    near = {mask for mask, value in values.items() if value >= everything.best_log_joint - window}
    assert kept.keys() == near
    total = log_sum(np.array(list(values.values())))
    assert np.logaddexp(log_sum(np.array(list(kept.values()))), found.log_discarded) == pytest.approx(total, abs=1e-9)
    assert (found.log_discarded > -np.inf) == (len(near) < 32)
    assert found.probabilities == pytest.approx(everything.probabilities, abs=1e-9)
    assert found.n_scored == 32


def test_a_population_far_below_the_best_so_far_stores_nothing():
    y, X = _data("gaussian")
    free = _explore(y, X, "gaussian", "exhaustive", costs=COSTS)
    found = _explore(y, X, "gaussian", "exhaustive", costs=COSTS, window=5.0, best_so_far=free.best_log_joint + 5.1)
    assert found.included.shape == (0, 5)
    assert found.log_discarded == pytest.approx(log_sum(np.array(list(_log_joint(free, COSTS).values()))))
    assert found.best.tolist() == free.best.tolist()
    assert found.best_log_joint == free.best_log_joint
    nearly = _explore(y, X, "gaussian", "exhaustive", costs=COSTS, window=5.0, best_so_far=free.best_log_joint + 4.9)
    assert 0 < len(nearly.included) < 32


def test_draws_by_the_approximation_are_different_models_mostly_good_ones():
    y, X = _data("binomial", 8)
    exact = _explore(y, X, "binomial", "exhaustive")
    found = _explore(y, X, "binomial", "surrogate", n_draws=60)
    values = _log_joint(exact, np.full(8, 0.2))
    drawn = _log_joint(found, np.full(8, 0.2))
    assert 60 <= len(drawn) == found.n_scored < 66
    assert drawn == pytest.approx({mask: values[mask] for mask in drawn}, abs=1e-3)
    assert log_sum(np.array(list(drawn.values()))) - log_sum(np.array(list(values.values()))) > np.log(0.6)
    assert found.tally.sum() == 0
    other = _explore(y, X, "binomial", "surrogate", n_draws=60, seed=2)
    assert set(map(mask_of, other.included)) != set(map(mask_of, found.included))


def test_expansion_leads_to_a_model_at_least_as_good():
    y, X = _data("binomial")
    models = check_likelihood(y, family="binomial", coefficient_prior=PRIOR["binomial"]).population(X)
    score = exact_score(models, COSTS, 5)
    start = np.array([False, False, True, False, False])
    surrogate, best = expand(np.random.default_rng(1), models, COSTS, 5, start, score)
    assert score(best) > score(start)
    assert surrogate.scores().shape == (32,)


def test_the_score_of_one_model():
    y, X = _data("binomial")
    score = exact_score(
        check_likelihood(y, family="binomial", coefficient_prior=PRIOR["binomial"]).population(X), COSTS, 2
    )
    chosen = np.array([True, False, True, False, False])
    assert score(chosen) == pytest.approx(
        bgnlm.log_marginal(y, X[:, chosen], family="binomial", coefficient_prior=PRIOR["binomial"]) - 1.4, abs=1e-3
    )
    assert score(np.ones(5, np.bool_)) == -np.inf


@pytest.mark.parametrize(("family", "engine"), ALL)
def test_separated_classes(family, engine):
    """The maximum likelihood estimate does not exist; the default prior is finite all the same."""
    X = _data(family)[1]
    y = (X[:, 1] > 0.1).astype(float)
    found = _explore(y, X, family, engine)
    exact = bgnlm.enumerate_models(y, X, family=family, coefficient_prior=PRIOR[family], penalty=0.2)
    assert np.isfinite(found.log_marginal).all()
    assert found.best[1]
    assert found.probabilities == pytest.approx(exact.inclusion_probabilities, abs=1e-3)


@pytest.mark.parametrize(("family", "engine"), ALL)
def test_a_constant_response(family, engine):
    X = _data(family)[1]
    found = _explore(np.ones(60), X, family, engine)
    assert np.isfinite(found.log_marginal).all()
    assert not found.best.any()
    assert len(found.included) == 32
    assert np.ptp(found.probabilities) < 1e-6
    assert 0.0 < found.probabilities[0] < 0.5


@pytest.mark.parametrize(("family", "engine"), ALL)
def test_dependent_columns(family, engine):
    y, X = _data(family, 3)
    found = _explore(y, np.column_stack([X, X[:, 0]]), family, engine)
    possible = np.isfinite(found.log_marginal)
    assert possible.sum() == 12
    assert not (found.included[possible, 0] & found.included[possible, 3]).any()
    assert found.probabilities[0] == pytest.approx(found.probabilities[3], abs=1e-3)


@pytest.mark.parametrize(("family", "engine"), ALL)
def test_a_constant_column_is_in_no_model(family, engine):
    y, X = _data(family, 2)
    found = _explore(y, np.column_stack([X, np.ones(60)]), family, engine)
    assert found.probabilities[2] == 0.0
    assert (found.probabilities[:2] > 0.0).all()


@pytest.mark.parametrize(("family", "engine"), ALL)
@pytest.mark.parametrize("n_columns", [0, 1])
def test_few_columns(n_columns, family, engine):
    y, X = _data(family, 3)
    found = _explore(y, X[:, :n_columns], family, engine)
    assert found.included.shape == (2**n_columns, n_columns)
    assert found.probabilities.shape == (n_columns,)
    assert np.isfinite(found.log_marginal).all()


@pytest.mark.parametrize(("family", "engine"), ALL)
def test_only_the_null_model(family, engine):
    found = _explore(*_data(family), family, engine, limits=Limits(max_model_size=0))
    assert found.included.tolist() == [[False] * 5]
    assert found.probabilities.tolist() == [0.0] * 5


@pytest.mark.parametrize(("family", "engine"), BOTH)
def test_a_start_that_does_not_exist(family, engine):
    settings = {"limits": Limits(max_model_size=2), "start": np.ones(5, np.bool_)}
    found = _explore(*_data(family), family, engine, **settings)
    exact = _explore(*_data(family), family, "exhaustive", **settings)
    assert found.probabilities == pytest.approx(exact.probabilities, abs=TOLERANCE[family])


@pytest.mark.parametrize(("family", "engine"), BOTH)
def test_the_same_seed_gives_the_same_models(family, engine):
    y, X = _data(family, 8)
    runs = [_explore(y, X, family, engine, n_steps=60, n_draws=30, seed=seed) for seed in (1, 1, 2)]
    np.testing.assert_array_equal(runs[0].included, runs[1].included)
    np.testing.assert_array_equal(runs[0].log_marginal, runs[1].log_marginal)
    assert runs[0].included.tolist() != runs[2].included.tolist()


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_algorithm_1_counts_what_it_did(family):
    found = _explore(*_data(family), family, "mjmcmc", n_steps=700)
    assert found.tally[0].sum() == 700
    assert (found.tally[1] <= found.tally[0]).all()
    assert found.n_scored > len(found.included)
    assert found.model.tolist() in found.included.tolist()


@pytest.mark.parametrize(
    ("is_gaussian", "n_columns", "engine"),
    [
        (True, 20, "exhaustive"),
        (True, 21, "mjmcmc"),
        (False, 10, "exhaustive"),
        (False, 11, "surrogate"),
        (False, 20, "surrogate"),
        (False, 21, "mjmcmc"),
    ],
)
def test_the_engine_that_is_cheapest(is_gaussian, n_columns, engine):
    assert choose_engine("auto", is_gaussian, n_columns) == engine
    assert choose_engine("mjmcmc", is_gaussian, n_columns) == "mjmcmc"


@pytest.mark.parametrize(
    ("engine", "is_gaussian", "n_columns", "message"),
    [
        ("exhaustive", True, 25, "'exhaustive' takes populations of at most 24 features; got 25"),
        ("exhaustive", False, 17, "at most 16 features; got 17"),
        ("surrogate", False, 21, "'surrogate' takes populations of at most 20 features; got 21"),
        ("surrogate", True, 5, "other families than the Gaussian"),
    ],
)
def test_engines_that_would_not_work_are_refused(engine, is_gaussian, n_columns, message):
    with pytest.raises(SettingError, match=message):
        choose_engine(engine, is_gaussian, n_columns)


@pytest.mark.parametrize("n_columns", [1, 64, 65, 130])
def test_models_come_out_of_a_store_as_they_went_in(n_columns, rng):
    models = np.unique(rng.random((50, n_columns)) < 0.5, axis=0)
    store = empty_store(n_columns, 50)
    bits = np.empty(store.bits.shape[1], np.uint64)
    for i, model in enumerate(models):
        pack_bits(model, bits)
        insert(store, find_slot(store, bits), bits, float(i))
    included, values = stored_models(store, n_columns)
    np.testing.assert_array_equal(included, models)
    assert values.tolist() == list(range(len(models)))


def _many_weak(rng, n=120, m=26):
    """Correlated inputs, all of which matter a little."""
    shared = rng.normal(size=(n, 3))
    X = shared @ rng.normal(size=(3, m)) + 0.7 * rng.normal(size=(n, m))
    return X, X @ np.full(m, 0.5) / X.std()


def test_a_peak_where_everything_matters_is_found(rng):
    """From nothing there is no way up to it: the price of a further feature is highest in the middle."""
    X, eta = _many_weak(rng)
    likelihood = replace(check_likelihood((eta > 0.0).astype(float), family="binomial"), n_slots=26)
    costs = np.full(26, np.log(26))
    config = SearchConfig(engine="mjmcmc")
    nothing = np.zeros(26, np.bool_)
    found = explore(rng, likelihood.population(X), costs, config, nothing, 100, -np.inf)
    full = likelihood.population(X).fit(list(range(26))).log_marginal - costs.sum()
    assert found.best_log_joint >= full - 1e-6
    assert found.probabilities.mean() > 0.7


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_among_noise_the_other_peak_is_left_alone(family, rng):
    X, _ = _many_weak(rng)
    y = rng.normal(size=len(X)) if family == "gaussian" else rng.integers(0, 2, size=len(X)).astype(float)
    likelihood = replace(check_likelihood(y, family=family), n_slots=26)
    found = explore(
        rng,
        likelihood.population(X),
        np.full(26, np.log(26)),
        SearchConfig(engine="mjmcmc"),
        np.zeros(26, np.bool_),
        100,
        -np.inf,
    )
    assert found.best.sum() <= 1
    assert (found.probabilities < 0.5).all()


def test_where_climbs_start():
    start = np.array([True, False, False])
    assert [each.tolist() for each in starting_points(start, 3, 3)] == [[True, False, False], [True, True, True]]
    assert [each.tolist() for each in starting_points(start, 3, 0)] == [[True, False, False]]
    assert [each.tolist() for each in starting_points(start, 2, 3)] == [[True, False, False]]


@pytest.mark.parametrize("engine", ["exhaustive", "mjmcmc", "surrogate"])
def test_the_default_prior_of_counts(engine, rng):
    """Large ones, about which the data say much more than the prior."""
    X = rng.normal(size=(80, 5))
    y = rng.poisson(5000.0 * np.exp(0.02 * X[:, 0] - 0.03 * X[:, 3])).astype(float)
    likelihood = replace(check_likelihood(y, family="poisson"), n_slots=5)
    costs, start = np.full(5, np.log(5)), np.zeros(5, np.bool_)
    config = SearchConfig(engine=engine, n_draws=32, window=1000.0)
    found = explore(rng, likelihood.population(X), costs, config, start, 3000, -np.inf)
    exact = explore(rng, likelihood.population(X), costs, replace(config, engine="exhaustive"), start, 0, -np.inf)
    assert found.best.tolist() == exact.best.tolist()
    assert found.probabilities == pytest.approx(exact.probabilities, abs=2e-3)
