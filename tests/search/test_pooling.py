"""Models drawn over everything that was found, against integrals, and as a part of searches."""

import numpy as np
import pytest

import bgnlm
from bgnlm import BGNLMClassifier, CoefficientPrior, SearchConfig, find_features
from bgnlm.errors import SettingError
from bgnlm.features import operation_count, parse
from bgnlm.likelihood.families import resolve_family
from bgnlm.likelihood.glm import glm_statistics
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.search.config import resolved
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


def _by_quadrature(X, y, weights, offset, sizes):
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
        values.append(np.logaddexp.reduce(log_likelihood + log_prior) + cell - model @ COSTS + sizes[model.sum()])
    return np.exp(values - np.logaddexp.reduce(values))


@pytest.mark.parametrize("case", ["plain", "weights", "trials", "offset", "sizes"])
def test_frequencies_are_those_of_the_posterior(case):
    X, y, weights, offset = _small()
    rng = np.random.default_rng(1)
    if case == "weights":
        weights = rng.integers(0, 3, size=len(y)).astype(float)
    if case == "trials":
        weights = rng.integers(1, 5, size=len(y)).astype(float)
        y = rng.binomial(weights.astype(int), 0.3 + 0.4 * y) / weights
    offset = offset if case == "offset" else np.zeros(len(y))
    sizes = log_sizes(np.arange(3), 2 if case == "sizes" else 0)
    statistics = glm_statistics(resolve_family("binomial", None), y, X, weights, offset)
    prior = PoolPrior(VARIANCE, COSTS, sizes, 2)
    n_draws = 6000 if case == "trials" else 12_000
    drawn = draw_models(rng, statistics, prior, np.zeros(2, np.bool_), n_draws)
    frequencies = np.bincount([mask_of(row) for row in drawn], minlength=4) / len(drawn)
    # Draws follow each other: some three times the error of independent ones.
    assert frequencies == pytest.approx(_by_quadrature(X, y, weights, offset, sizes), abs=0.03)


def test_laplace_agrees_with_the_sampler_where_many_columns_matter():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(300, 5))
    y = (X @ [0.5, -0.4, 0.2, 0.0, 0.1] + rng.logistic(size=300) > 0.0).astype(float)
    exact = bgnlm.enumerate_models(
        y, X, family="binomial", coefficient_prior=CoefficientPrior("gaussian", variance=VARIANCE), penalty=1.0
    )
    statistics = glm_statistics(resolve_family("binomial", None), y, X, np.ones(300), np.zeros(300))
    prior = PoolPrior(VARIANCE, np.ones(5), np.zeros(6), 5)
    drawn = draw_models(rng, statistics, prior, np.zeros(5, np.bool_), 12_000)
    assert drawn.mean(axis=0) == pytest.approx(exact.inclusion_probabilities, abs=0.03)


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
    assert (np.diff(posterior.counts) <= 0).all()
    assert posterior.model_probabilities == pytest.approx(posterior.counts / 300)
    share = sum(count for m, count in enumerate(posterior.counts) if parse("x1*x2") in posterior.features_of(m))
    assert posterior.probability_of(parse("x1*x2")) == pytest.approx(share / 300)
    assert posterior.probability_of(parse("x1*x2")) > 0.9
    assert "shares of 300 draws" in fitted.summary()
    assert "shares of 300 draws" in str(posterior)
    assert fitted.score(*flowers) > 0.75
    assert fitted.models_["probability"].sum() <= 1.0 + 1e-9


def test_the_pool_has_inputs_functions_of_one_input_and_what_was_found(flowers):
    X, y = flowers
    found = find_features(y, X, family="binomial", prior=model_prior(0.0), config=QUICK, n_chains=2, random_state=1)
    features = found.posterior.found.features
    assert len(features) <= QUICK.pool_size
    assert {parse("x1"), parse("x2"), parse("x3")} <= set(features)
    assert sum(operation_count(feature) == 1 for feature in features) > 5
    linear = SearchConfig(n_populations=2, n_pool_draws=50, limits=bgnlm.search.Limits(max_depth=0, max_model_size=2))
    found = find_features(y, X, family="binomial", config=linear, n_chains=1, random_state=1)
    assert set(found.posterior.found.features) == {parse("x1"), parse("x2"), parse("x3")}
    assert found.posterior.found.rows.sizes.max() <= 2


def test_a_column_for_one_row_and_near_copies_stay_out():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(80, 3))
    X[:, 1] = X[:, 0] + 0.01 * rng.normal(size=80)
    X[:, 2] = np.where(np.arange(80) == 7, 50.0, 0.1 * X[:, 2])
    y = (X[:, 0] + rng.logistic(size=80) > 0).astype(float)
    config = SearchConfig(n_populations=1, n_pool_draws=20, limits=bgnlm.search.Limits(max_depth=0))
    found = find_features(y, X, family="binomial", config=config, n_chains=1, random_state=1)
    assert len(found.posterior.found.features) == 1
    assert found.posterior.found.features[0] in (parse("x1"), parse("x2"))


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


def test_rescoring_renormalises(fitted, flowers):
    other = fitted.rescore(*flowers, penalty=3.0)
    assert len(other.posterior_.counts) == 0
    assert other.posterior_.model_probabilities.sum() == pytest.approx(1.0)


def test_more_classes_and_one_class(flowers):
    X, y = flowers
    three = np.where(X[:, 2] > 1.0, 2, y)
    model = BGNLMClassifier(search=QUICK, n_chains=1, random_state=1).fit(X, three)
    assert [posterior.counts.sum() for posterior in model.posterior_] == [300] * 3
    with pytest.warns(bgnlm.errors.ModelStatusWarning):
        constant = find_features(np.zeros(20), X[:20], family="binomial", config=QUICK, n_chains=1, random_state=1)
    assert len(constant.posterior.counts) == 0


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


def test_an_interruption_leaves_what_was_visited(flowers, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    X, y = flowers
    monkeypatch.setattr("bgnlm.find.draw_from_pool", interrupted)
    with pytest.warns(bgnlm.errors.SearchStoppedWarning, match="those of the models visited"):
        found = find_features(y, X, family="binomial", config=QUICK, n_chains=1, random_state=1)
    assert len(found.posterior.counts) == 0
    assert found.posterior.model_probabilities.sum() == pytest.approx(1.0)
