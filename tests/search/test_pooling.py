"""Models drawn over everything that was found, against integrals, and as a part of searches."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import betaln
from sklearn.metrics import log_loss

import bgnlm
from bgnlm import BGNLMClassifier, CoefficientPrior, SearchConfig, find_features
from bgnlm.errors import DataError, SettingError
from bgnlm.estimators.searches_plain import search_from_plain, search_to_plain
from bgnlm.features import inputs_of, operation_count, parse
from bgnlm.likelihood.families import resolve_family
from bgnlm.likelihood.glm import glm_statistics
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.search.config import Limits, resolved
from bgnlm.search.pooling import PoolPrior, draw_models
from bgnlm.search.prior import model_prior
from tests.search.goodness import all_models, mask_of

VARIANCE = 1.5
COSTS = np.array([0.4, 0.9])
QUICK = SearchConfig(n_populations=4, population_size=6, n_candidates=40, n_pool_draws=300, pool_size=20)


def _small(seed=3, n=40):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2)) * [1.0, 3.0] + rng.normal(size=(n, 1))
    y = (X[:, 0] + rng.logistic(size=n) > 0.3).astype(float)
    return X, y, np.ones(n), 0.5 * rng.normal(size=n)


def _log_prior(model, costs):
    """Prices by an unknown factor, of what is free by an unknown share of such features."""
    factors, is_free = 2.0 ** np.arange(0.0, 3.1, 0.25)[:, None], costs == 0.0
    each = np.where(model, -factors * costs, 0.0) - np.logaddexp(0.0, -factors * costs)
    n_in, n_free = model[is_free].sum(), is_free.sum()
    return np.logaddexp.reduce(each[:, ~is_free].sum(axis=1)) + betaln(1.0 + n_in, 1.0 + n_free - n_in)


def _by_quadrature(X, y, weights, offset, costs, sizes):
    """Posterior of the four models by sums over grids of intercept and slopes."""
    mean = np.average(X, axis=0, weights=weights)
    Z = (X - mean) / np.sqrt(np.average((X - mean) ** 2, axis=0, weights=weights))
    grid = np.linspace(-7.0, 7.0, 71)
    values = []
    for model in all_models(2):
        chosen = np.flatnonzero(model)
        points = np.array(np.meshgrid(grid, *[grid] * len(chosen), indexing="ij")).reshape(len(chosen) + 1, -1)
        eta = offset[:, None] + points[0] + Z[:, chosen] @ points[1:]
        log_likelihood = weights @ (y[:, None] * eta - np.logaddexp(0.0, eta))
        log_prior = -0.5 * (np.square(points[1:]) / VARIANCE + np.log(2.0 * np.pi * VARIANCE)).sum(axis=0)
        cell = (len(chosen) + 1) * np.log(grid[1] - grid[0])
        total = np.logaddexp.reduce(log_likelihood + log_prior) + cell
        values.append(total + _log_prior(model, costs) + sizes[model.sum()])
    return np.exp(values - np.logaddexp.reduce(values))


@pytest.mark.parametrize("case", ["plain", "weights", "trials", "fractions", "offset", "sizes", "free"])
def test_frequencies_are_those_of_the_posterior(case):
    X, y, weights, offset = _small()
    rng = np.random.default_rng(1)
    if case == "weights":
        weights = rng.integers(0, 3, size=len(y)).astype(float)
    if case == "fractions":
        weights = rng.uniform(0.2, 1.8, size=len(y))
    if case == "trials":
        weights = rng.integers(1, 5, size=len(y)).astype(float)
        y = rng.binomial(weights.astype(int), 0.3 + 0.4 * y) / weights
    offset = offset if case == "offset" else np.zeros(len(y))
    costs = np.array([0.0, 0.9]) if case == "free" else COSTS
    sizes = log_sizes(np.arange(3), 2 if case == "sizes" else 0)
    statistics = glm_statistics(resolve_family("binomial", None), y, X, weights, offset)
    drawn = draw_models(rng, statistics, PoolPrior(VARIANCE, costs, sizes, 2), np.zeros(2, np.bool_), 12_000)
    frequencies = np.bincount([mask_of(row) for row in drawn], minlength=4) / len(drawn)
    # Draws follow each other: some three times the error of independent ones.
    assert frequencies == pytest.approx(_by_quadrature(X, y, weights, offset, costs, sizes), abs=0.03)


def test_the_sampler_agrees_with_laplace_where_more_columns_matter():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 5))
    y = (X @ [0.5, -0.4, 0.2, 0.0, 0.1] + rng.logistic(size=300) > 0.0).astype(float)
    prior = CoefficientPrior("gaussian", variance=VARIANCE)
    models, costs = all_models(5), np.array([0.0, 1.0, 0.0, 0.5, 2.0])
    population = check_likelihood(y, family="binomial", coefficient_prior=prior).population(X)
    log_joint = population.log_marginals([np.flatnonzero(model).tolist() for model in models])
    log_joint += [_log_prior(model, costs) for model in models]
    exact = np.exp(log_joint - np.logaddexp.reduce(log_joint)) @ models
    drawn = draw_models(
        rng, population.score.statistics, PoolPrior(VARIANCE, costs, np.zeros(6), 5), np.zeros(5, np.bool_), 12_000
    )
    assert drawn.mean(axis=0) == pytest.approx(exact, abs=0.03)


@pytest.fixture(scope="module")
def flowers():
    rng = np.random.default_rng(8)
    X = rng.normal(size=(150, 3))
    return X, (X[:, 0] * X[:, 1] + 0.5 * X[:, 2] + 0.5 * rng.logistic(size=150) > 0.0).astype(int)


@pytest.fixture(scope="module")
def fitted(flowers):
    return BGNLMClassifier(search=QUICK, n_chains=2, random_state=1).fit(*flowers)


def test_models_count_as_often_as_they_were_drawn(fitted, flowers):
    posterior = fitted.posterior_
    assert posterior.counts.sum() == 300
    assert (posterior.counts == 0).any()  # of models that were only visited
    assert (np.diff(posterior.counts) <= 0).all()
    assert posterior.model_probabilities == pytest.approx(posterior.counts / 300)
    share = sum(count for m, count in enumerate(posterior.counts) if parse("x1*x2") in posterior.features_of(m))
    assert posterior.probability_of(parse("x1*x2")) == pytest.approx(share / 300)
    assert posterior.probability_of(parse("x1*x2")) > 0.9
    assert "shares of 300 draws" in fitted.summary()
    assert "shares of 300 draws" in str(posterior)
    assert fitted.score(*flowers) > 0.75
    assert fitted.models_["probability"].sum() <= 1.0 + 1e-9


def _drawn(found):
    """Features of the models that were drawn."""
    drawn = np.flatnonzero(found.posterior.counts)
    return {feature for model in drawn for feature in found.posterior.features_of(model)}


def test_the_pool_has_inputs_functions_of_one_input_and_what_was_found(flowers):
    X, y = flowers
    config = replace(QUICK, n_pool_draws=2000)
    found = find_features(y, X, family="binomial", prior=model_prior(0.0), config=config, n_chains=2, random_state=1)
    features = _drawn(found)
    assert len(features) <= QUICK.pool_size
    assert {parse("x1"), parse("x2"), parse("x3"), parse("x1*x2")} <= features
    assert sum(operation_count(feature) == 1 for feature in features) > 5
    linear = SearchConfig(n_populations=2, n_pool_draws=200, limits=Limits(max_depth=0, max_model_size=2))
    found = find_features(y, X, family="binomial", config=linear, n_chains=1, random_state=1)
    assert _drawn(found) <= {parse("x1"), parse("x2"), parse("x3")}
    assert max(found.posterior.found.rows.sizes[found.posterior.counts > 0]) <= 2


def test_the_best_inputs_are_in_the_pool_wherever_their_columns_are():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(400, 30))
    y = (X[:, 20:] @ np.full(10, 0.7) + rng.logistic(size=400) > 0.0).astype(float)
    config = SearchConfig(n_populations=1, n_initial_inputs=2, population_size=5, n_pool_draws=100, pool_size=20)
    found = find_features(y, X, family="binomial", prior=model_prior("predict"), config=config, random_state=1)
    assert {parse(f"x{j}") for j in range(21, 31)} <= _drawn(found)


def test_with_an_offset_the_pool_has_functions_of_what_it_does_not_explain():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 12))
    offset = 4.0 * X[:, 0]
    y = (offset + 2.0 * X[:, 1] ** 2 - 2.0 + rng.logistic(size=300) > 0.0).astype(float)
    config = SearchConfig(n_populations=1, n_initial_inputs=2, population_size=4, n_pool_draws=200, pool_size=24)
    found = find_features(
        y, X, family="binomial", offset=offset, prior=model_prior("predict"), config=config, n_chains=1, random_state=1
    )
    assert any(inputs_of(feature) == {"x2"} and operation_count(feature) for feature in _drawn(found))


def test_weights_of_zero_leave_rows_out(flowers):
    X, y = flowers
    weights = np.r_[np.ones(100), np.zeros(50)]
    both = [
        BGNLMClassifier(search=QUICK, n_chains=1, random_state=1).fit(X, y, sample_weight=weights),
        BGNLMClassifier(search=QUICK, n_chains=1, random_state=1).fit(X[:100], y[:100]),
    ]
    first, second = (model.posterior_ for model in both)
    assert first.counts.sum() == second.counts.sum() == 300
    assert first.probability_of(parse("x1*x2")) == pytest.approx(second.probability_of(parse("x1*x2")), abs=0.2)


def test_what_is_to_be_kept_is_in_the_pool():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 2))
    X[:, 1] = np.arange(80) == 7
    y = (X[:, 0] + rng.logistic(size=80) > 0).astype(float)
    config = SearchConfig(n_populations=1, n_pool_draws=200, limits=Limits(max_depth=0))
    found = find_features(
        y, X, family="binomial", prior=model_prior("predict"), keep=["x2"], config=config, n_chains=1, random_state=1
    )
    assert parse("x2") in _drawn(found)


def test_a_column_for_one_row_and_near_copies_stay_out():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 3))
    X[:, 1] = X[:, 0] + 0.01 * rng.normal(size=80)
    X[:, 2] = np.where(np.arange(80) == 7, 50.0, 0.1 * X[:, 2])
    y = (X[:, 0] + rng.logistic(size=80) > 0).astype(float)
    config = SearchConfig(n_populations=1, n_pool_draws=400, limits=Limits(max_depth=0))
    prior = model_prior("predict")
    found = find_features(y, X, family="binomial", prior=prior, config=config, n_chains=1, random_state=1)
    assert len(_drawn(found)) == 1
    assert _drawn(found) < {parse("x1"), parse("x2")}


def test_the_result_depends_on_the_seed_alone(fitted, flowers, tmp_path):
    again = BGNLMClassifier(search=QUICK, n_chains=2, random_state=1, n_jobs=2, checkpoint=tmp_path / "checkpoint").fit(
        *flowers
    )
    resumed = BGNLMClassifier(search=QUICK, n_chains=2, random_state=1, checkpoint=tmp_path / "checkpoint").fit(
        *flowers
    )
    for other in (again, resumed):
        assert (other.posterior_.counts == fitted.posterior_.counts).all()
        assert (other.predict_proba(flowers[0]) == fitted.predict_proba(flowers[0])).all()


def test_a_file_has_the_draws(fitted, flowers, tmp_path):
    fitted.save(tmp_path / "model.bgnlm")
    loaded = bgnlm.load(tmp_path / "model.bgnlm")
    assert (loaded.posterior_.counts == fitted.posterior_.counts).all()
    assert (loaded.posterior_.model_probabilities == fitted.posterior_.model_probabilities).all()
    assert loaded.summary() == fitted.summary()
    assert (loaded.predict_proba(flowers[0]) == fitted.predict_proba(flowers[0])).all()


def test_rescoring_is_about_everything_that_was_visited(fitted, flowers):
    plain = BGNLMClassifier(search=replace(QUICK, n_pool_draws=0), n_chains=2, random_state=1).fit(*flowers)
    best = [model.rescore(*flowers, penalty=3.0).posterior_ for model in (fitted, plain)]
    assert len(best[0].counts) == 0
    assert best[0].found.log_joint[0] >= best[1].found.log_joint[0] - 1e-9
    assert len(fitted.posterior_) >= len(plain.posterior_)


def test_more_classes_and_one_class(flowers):
    X, y = flowers
    three = np.where(X[:, 2] > 1.0, 2, y)
    model = BGNLMClassifier(search=QUICK, n_chains=1, random_state=1).fit(X, three)
    assert [posterior.counts.sum() for posterior in model.posterior_] == [300] * 3
    with pytest.warns(bgnlm.errors.ModelStatusWarning):
        constant = find_features(np.zeros(20), X[:20], family="binomial", config=QUICK, n_chains=1, random_state=1)
    assert len(constant.posterior.counts) == 0
    offset = np.random.default_rng(1).normal(size=20)
    constant = find_features(
        np.zeros(20), X[:20], family="binomial", offset=offset, config=QUICK, n_chains=1, random_state=1
    )
    assert len(constant.posterior.counts) == 0


def test_little_is_reported_of_noise_and_predicted_from_it():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(150, 12)), rng.integers(0, 2, size=150)
    config = SearchConfig(n_populations=3, n_pool_draws=300)
    model = BGNLMClassifier(penalty="predict", search=config, n_chains=1, random_state=1).fit(X[:100], y[:100])
    assert (model.features_["probability"] > 0.5).sum() == 0
    assert log_loss(y[100:], model.predict_proba(X[100:])) < 0.8


def test_malformed_counts_are_refused(fitted):
    plain, arrays = search_to_plain(fitted.searches_[0])
    names = ["x1", "x2", "x3"]
    assert len(search_from_plain(plain, arrays, names).posterior.counts) == len(fitted.posterior_)
    good = arrays["counts"]
    for counts in (good[1:], -good, good * 0, np.full_like(good, 2**61), good.astype(float)):
        with pytest.raises(DataError):
            search_from_plain(plain, arrays | {"counts": counts}, names)


@pytest.mark.parametrize(
    "settings",
    [
        {"family": "gaussian"},
        {"family": "poisson"},
        {"family": "binomial", "link": "probit"},
        {"family": "binomial", "coefficient_prior": "jeffreys"},
    ],
)
def test_other_responses_and_priors_are_refused(flowers, settings):
    X, y = flowers
    with pytest.raises(SettingError, match="n_pool_draws is for the family 'binomial' with link 'logit'"):
        find_features(y, X, config=QUICK, n_chains=1, **settings)


@pytest.mark.parametrize(("name", "value"), [("n_pool_draws", -1), ("n_pool_draws", 1.5), ("pool_size", 0)])
def test_settings_are_checked(name, value):
    with pytest.raises(SettingError, match=name):
        SearchConfig(**{name: value})


def test_the_prior_for_predictions_draws_models_of_two_classes(flowers):
    X, y = flowers
    quick = SearchConfig(n_populations=2, population_size=5)
    drawn = BGNLMClassifier(penalty="predict", search=quick, n_chains=1, random_state=1).fit(X, y)
    assert drawn.posterior_.counts.sum() == 300
    for settings in (
        {"penalty": "bic"},
        {"penalty": "predict", "coefficient_prior": "jeffreys"},
        {"penalty": "predict", "search": SearchConfig(n_populations=2, population_size=5, n_pool_draws=0)},
    ):
        other = BGNLMClassifier(**{"search": quick, "n_chains": 1, "random_state": 1} | settings).fit(X, y)
        assert len(other.posterior_.counts) == 0
    regressor = bgnlm.BGNLMRegressor(penalty="predict", search=quick, n_chains=1, random_state=1).fit(X, y)
    assert len(regressor.posterior_.counts) == 0


def test_many_rows_make_pools_smaller():
    sizes = [resolved(SearchConfig(), n, n_rows=n, draws_models=True) for n in (1000, 10_000, 100_000, 200_000)]
    assert [config.pool_size for config in sizes] == [400, 250, 79, 55]
    assert [config.n_pool_draws for config in sizes] == [300, 300, 300, 0]


@pytest.mark.parametrize("error", [KeyboardInterrupt, MemoryError, np.linalg.LinAlgError])
def test_an_interruption_or_a_failure_leaves_what_was_visited(flowers, monkeypatch, error):
    def interrupted(*_):
        raise error

    X, y = flowers
    monkeypatch.setattr("bgnlm.find.draw_from_pool", interrupted)
    with pytest.warns(bgnlm.errors.SearchStoppedWarning, match="over the models visited"):
        found = find_features(y, X, family="binomial", config=QUICK, n_chains=1, random_state=1)
    assert len(found.posterior.counts) == 0
    assert found.posterior.model_probabilities.sum() == pytest.approx(1.0)
