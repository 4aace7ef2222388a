"""What chains sample from, against the marginal likelihood of one model at a time."""

import warnings

import numpy as np
import pytest

import bgnlm
from bgnlm import CoefficientPrior
from bgnlm.errors import ModelStatusWarning
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.likelihood.surrogate import quadratic_surrogate
from bgnlm.search import target as module
from bgnlm.search.exhaustive import log_prior_of_subsets
from bgnlm.search.mjmcmc import log_joint_compiled
from bgnlm.search.target import (
    FunctionTarget,
    gram_target,
    has_room,
    height,
    log_joint,
    surrogate_target,
    with_more_room,
)
from tests.search.goodness import all_models

COSTS = np.array([0.7, 0.0, 1.4, 0.7, 2.1])
PRIORS = ["robust", "hyper-g/n", "eb-local", "g", "jeffreys", "bic", "known-variance", "gaussian", "script"]


@pytest.fixture
def data(rng):
    X = rng.normal(size=(40, 5)) @ rng.normal(size=(5, 5))
    return X[:, 0] - 0.4 * X[:, 2] + rng.normal(size=40), X


def _target(y, X, costs=None, max_size=None, capacity=100, **options):
    costs = np.zeros(X.shape[1]) if costs is None else costs
    population = check_likelihood(y, **options).population(X)
    return gram_target(population, costs, X.shape[1] if max_size is None else max_size, capacity)


def _expected(y, X, costs=None, **options):
    """Log joint of all models relative to the null model, each from its own fit."""
    costs = np.zeros(X.shape[1]) if costs is None else costs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelStatusWarning)
        return np.array(
            [
                bgnlm.log_marginal(y, X[:, included], relative_to_null=True, **options) - included @ costs
                for included in all_models(X.shape[1])
            ]
        )


def _relative(target, score=log_joint):
    values = np.array([score(target, included) for included in all_models(len(target.costs))])
    return values - values[0]


@pytest.mark.parametrize("floor", [0.0, 0.3])
@pytest.mark.parametrize("prior", PRIORS)
def test_gaussian_models_agree_with_their_own_fits(data, prior, floor, rng):
    options = {"coefficient_prior": prior, "noise_floor": floor, "sample_weight": rng.integers(1, 4, size=40)}
    target = _target(*data, COSTS, **options)
    assert _relative(target) == pytest.approx(_expected(*data, COSTS, **options), abs=1e-7)


@pytest.mark.parametrize("prior", ["robust", "gaussian", "script"])
def test_compiled_equals_interpreted(data, prior):
    y, X = data
    X = np.column_stack([X, X[:, 1]])
    costs = np.append(COSTS, 0.3)
    interpreted = _relative(_target(y, X, costs, 5, coefficient_prior=prior))
    compiled = _relative(_target(y, X, costs, 5, coefficient_prior=prior), log_joint_compiled)
    assert compiled == pytest.approx(interpreted, abs=1e-10)
    assert np.isfinite(interpreted).sum() >= 32


@pytest.mark.parametrize("prior", ["robust", "bic", "script"])
def test_dependent_columns_have_no_probability(data, prior):
    y, X = data
    X = np.column_stack([X[:, :3], X[:, 0] - 2.0 * X[:, 2], np.full(40, 3.0)])
    values = _relative(_target(y, X, coefficient_prior=prior))
    dependent = np.array([mask & 0b01101 == 0b01101 or mask & 0b10000 for mask in range(32)], dtype=bool)
    assert (values[dependent] == -np.inf).all()
    assert values == pytest.approx(_expected(y, X, coefficient_prior=prior), abs=1e-7)


def test_more_columns_than_rows(rng):
    y, X = rng.normal(size=5), rng.normal(size=(5, 7))
    for prior in ("robust", "bic", "gaussian"):
        values = _relative(_target(y, X, coefficient_prior=prior, noise_floor=0.1))
        assert values == pytest.approx(_expected(y, X, coefficient_prior=prior, noise_floor=0.1), abs=1e-6)
        assert np.isfinite(values).all() == (prior == "gaussian")


@pytest.mark.parametrize("variance", [1.0, 1e6, 1e12])
def test_copies_of_a_column_under_independent_priors(data, variance):
    """The prior keeps the determinant of dependent columns from being zero, however wide it is."""
    y, X = data
    X = np.column_stack([X[:, :2], X[:, 0], X[:, 0] + 1e-7 * X[:, 3]])
    prior = CoefficientPrior("gaussian", variance=variance)
    expected = _expected(y, X, coefficient_prior=prior)
    assert np.isfinite(expected).all()
    assert _relative(_target(y, X, coefficient_prior=prior)) == pytest.approx(expected, abs=1e-3)


LAWS = {
    "exact": lambda x, z: (2.0 * x[0] - x[1], [x[0], x[1], z[0], z[1]]),
    "nearly exact": lambda x, z: (x[0] + 1e-7 * z[0], [x[0], x[1], z[1], z[2]]),
    "among near copies": lambda x, z: (3.0 * x[0], [x[0] + 1e-4 * z[0], x[0] + 1e-4 * z[1], x[0], z[2]]),
    "a difference of near copies": lambda x, z: (z[0], [x[0], x[0] + 1e-5 * z[0], z[1], z[2]]),
}


@pytest.mark.parametrize("prior", ["robust", "bic", "jeffreys", "eb-local"])
@pytest.mark.parametrize("law", list(LAWS))
def test_a_law_among_the_columns_is_scored_from_the_data(law, prior, rng, monkeypatch):
    y, columns = LAWS[law](rng.normal(size=(2, 80)), rng.normal(size=(3, 80)))
    X = np.column_stack(columns)
    expected = _expected(y, X, coefficient_prior=prior)
    for score in (log_joint, log_joint_compiled):
        assert _relative(_target(y, X, coefficient_prior=prior), score) == pytest.approx(expected, abs=5e-4)
    monkeypatch.setattr(module, "TOLERANCE", np.inf)
    with np.errstate(invalid="ignore"):
        rough = _relative(_target(y, X, coefficient_prior=prior))
    assert not np.allclose(rough, expected, atol=1.0)


def test_the_largest_model_size(data):
    free, capped = _relative(_target(*data, COSTS)), _relative(_target(*data, COSTS, max_size=2))
    small = np.array([mask.bit_count() <= 2 for mask in range(32)])
    assert (capped[~small] == -np.inf).all()
    assert capped[small] == pytest.approx(free[small], abs=1e-9)
    nothing = _relative(_target(*data, COSTS, max_size=0))
    assert np.flatnonzero(np.isfinite(nothing)).tolist() == [0]


def test_a_model_is_scored_once_and_kept(data):
    target = _target(*data, COSTS)
    for included in (*all_models(5), *all_models(5)):
        log_joint(target, included)
    assert target.store.count.tolist() == [32, 64]
    target.store.values[3] = 123.0
    assert log_joint(target, all_models(5)[3]) == 123.0


def test_room_for_more_models(data):
    target = _target(*data, COSTS, capacity=40)
    room = len(target.store.values)
    before = [log_joint(target, included) for included in all_models(5)]
    assert has_room(target, room - 32)
    assert not has_room(target, room - 31)
    larger = with_more_room(target)
    assert has_room(larger, 2 * room - 32)
    assert not has_room(larger, 2 * room - 31)
    assert [log_joint(larger, included) for included in all_models(5)] == before
    assert larger.store.count.tolist() == [32, 64]


def _logistic(rng, n_columns=5):
    X = rng.normal(size=(90, n_columns)) @ rng.normal(size=(n_columns, n_columns))
    y = (rng.random(90) < 1 / (1 + np.exp(-X[:, 0]))).astype(float)
    return check_likelihood(y, family="binomial").population(X).score.statistics


def _surrogate(statistics, columns):
    return quadratic_surrogate(statistics, np.array(columns), statistics.data.null_information / 90.0)


@pytest.mark.parametrize("max_size", [0, 3, 5])
@pytest.mark.parametrize("score", [log_joint, log_joint_compiled], ids=["interpreted", "compiled"])
def test_the_approximation_agrees_with_its_enumeration(score, max_size, rng):
    surrogate = _surrogate(_logistic(rng), [0, 3])
    target = surrogate_target(surrogate, COSTS, max_size, n_slots=4)
    values = [score(target, included) for included in all_models(5)]
    sizes = [sum(included) for included in all_models(5)]
    expected = surrogate.scores(max_size) + log_prior_of_subsets(COSTS) + log_sizes(sizes, 4)
    assert np.isfinite(expected).sum() == {0: 1, 3: 26, 5: 32}[max_size]
    assert values == pytest.approx(expected, abs=1e-9)


def test_the_approximation_of_dependent_columns(rng):
    statistics = _logistic(rng, 3)
    X = np.column_stack([statistics.data.design.T, statistics.data.design[0]])
    doubled = check_likelihood(statistics.data.y, family="binomial").population(X).score.statistics
    surrogate = _surrogate(doubled, [1])
    target = surrogate_target(surrogate, np.zeros(4), 4)
    values = np.array([log_joint(target, included) for included in all_models(4)])
    both = np.array([mask & 0b1001 == 0b1001 for mask in range(16)])
    assert (values[both] == -np.inf).all()
    assert values[~both] == pytest.approx(surrogate.scores()[~both], abs=1e-9)


def test_nothing_is_kept_by_the_approximation(rng):
    target = surrogate_target(_surrogate(_logistic(rng), [0]), COSTS, 5)
    assert has_room(target, 10**12)


def test_a_function_is_asked_once_for_each_model():
    asked = []

    def score(included):
        asked.append(tuple(included.tolist()))
        return -float(included.sum())

    target = FunctionTarget(score)
    rows = all_models(3)
    for included in (*rows, *rows[::-1]):
        assert log_joint(target, included) == -included.sum()
    assert len(asked) == len(set(asked)) == 8
    assert target.n_asked == 16
    assert list(target.values.values()) == [-float(row.sum()) for row in rows]
    assert has_room(target, 10**12)


def test_heights_are_scores_where_there_are_any(data):
    target = _target(*data, COSTS, max_size=3)
    for included in all_models(5):
        if included.sum() <= 3:
            assert height(target, included) == log_joint(target, included)


def test_heights_lead_back_to_models_that_exist(data):
    """From outside, leaving a column out is always a gain, and every model that exists is higher."""
    target = _target(*data, COSTS, max_size=2)
    heights = np.array([height(target, included) for included in all_models(5)])
    sizes = all_models(5).sum(axis=1)
    assert np.isfinite(heights).all()
    assert heights[sizes > 2].max() < heights[sizes <= 2].min() - 1e9
    for size in (3, 4):
        assert heights[sizes == size].min() > heights[sizes == size + 1].max()


def test_heights_of_a_score_that_is_not_a_number():
    target = FunctionTarget(lambda included: np.nan if included.any() else 0.0)
    assert height(target, np.array([True, False])) < -1e11
    assert height(target, np.array([False, False])) == 0.0
