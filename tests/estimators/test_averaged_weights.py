"""Searches in which weights of projections are parameters that models are averaged over."""

from functools import cache

import joblib
import numpy as np
import pytest
from scipy.special import expit

from bgnlm import BGNLMClassifier, BGNLMRegressor, SearchConfig, load
from bgnlm.errors import SettingError
from bgnlm.features import Projection
from bgnlm.posterior.predict import predict_quantiles
from bgnlm.search import Limits, MoveProbabilities, ProjectionWeights

N = 100
USING = ("average", "best", "median")
QUICK = SearchConfig(
    population_size=4,
    n_populations=3,
    n_candidates=6,
    moves=MoveProbabilities(modification=0.0, multiplication=0.0, projection=1.0),
    limits=Limits(max_depth=1),
)


@cache
def inputs():
    return np.random.default_rng(101).normal(size=(N, 3))


@cache
def response():
    X, rng = inputs(), np.random.default_rng(102)
    return 3.0 * expit(1.0 + 3.0 * X[:, 0] - 2.0 * X[:, 1]) + 0.3 * rng.normal(size=N)


@cache
def classes():
    """One of them lies along a line."""
    X, rng = inputs(), np.random.default_rng(103)
    along = np.exp(-np.square(1.2 * X[:, 0] - 0.9 * X[:, 1]))
    return np.where(rng.random(N) < expit(8.0 * along - 4.0), "in", "out")


def regressor(**settings):
    defaults = {
        "transforms": ("sigmoid",),
        "projection_weights": "bayesian",
        "search": QUICK,
        "n_chains": 1,
        "random_state": 1,
    }
    return BGNLMRegressor(**(defaults | settings))


@cache
def fitted():
    return regressor().fit(inputs(), response())


@cache
def classifier():
    model = BGNLMClassifier(
        transforms=("gauss",), projection_weights="bayesian", search=QUICK, n_chains=1, random_state=1
    )
    return model.fit(inputs(), classes())


def projections(model):
    """Most probable features, as far as they are projections of the first two inputs."""
    probable = model.posterior_.features[:1]
    return [f for f in probable if isinstance(f, Projection) and [str(each) for each in f.operands] == ["x1", "x2"]]


def test_the_structure_is_found():
    for model in (fitted(), classifier()):
        assert projections(model)
        assert model.posterior_.inclusion_probabilities[0] > 0.9


def test_the_formula_has_the_most_probable_weights():
    """Those of the prior pull them towards 0, from 3 and -2."""
    (feature,) = fitted().searches_[0].formula("best").features
    assert feature.weights[0] == pytest.approx(2.4, abs=0.8)
    assert feature.weights[1] == pytest.approx(-1.6, abs=0.6)
    text = fitted().expression(digits=3)
    assert text.startswith("y = ")
    assert text.count("sigmoid(") == 1
    assert "sigmoid" in fitted().expression("median")
    assert fitted().expression("average").count("sigmoid(") > 20  # one for each draw of weights
    assert r"\sigma" in fitted().expression(format="latex")
    assert "gauss" in classifier().expression()


@pytest.mark.parametrize("using", USING)
def test_predictions(using):
    X, model = inputs(), fitted()
    mean = 3.0 * expit(1.0 + 3.0 * X[:, 0] - 2.0 * X[:, 1])
    assert np.abs(model.predict(X, using=using) - mean).mean() < 0.12
    low, high = model.predict_interval(X, using=using).T
    assert 0.8 < ((low < response()) & (response() < high)).mean() <= 1.0
    draws = model.sample_predictive(X[:5], 400, using=using, random_state=1)
    assert draws.mean(axis=0 if draws.shape[1] == 5 else 1) == pytest.approx(
        model.predict(X[:5], using=using), abs=0.15
    )
    probability = classifier().predict_proba(X, using=using)
    assert probability.sum(axis=1) == pytest.approx(np.ones(N))
    assert (classifier().predict(X, using=using) == classes()).mean() > 0.8


def test_not_knowing_the_weights_makes_intervals_of_the_mean_wider():
    """One draw of them has the uncertainty of its coefficients alone."""
    average = fitted().searches_[0].average
    best, single = average.best(), average.only(0)
    assert len(best) == average.n_best > 50
    assert best.probabilities.sum() == pytest.approx(1.0)
    assert len(set(best.known_as)) == len(single.features) == 1
    assert len(best.features) > 50
    rows = fitted()._rows(np.array([[-0.3, 0.2, 0.0], [0.3, 1.0, 0.0]]))
    wide, narrow = (
        np.diff(predict_quantiles(models, rows, [0.025, 0.975], "mean"), axis=1) for models in (best, single)
    )
    assert (wide > narrow).all()


def test_tables_and_summary():
    model = fitted()
    features, models = model.features_, model.models_
    assert features["coefficient"][0] == pytest.approx(3.3, abs=0.8)
    assert 0.0 < features["sd"][0] < 1.5
    assert "mc_error" in models
    error = models["mc_error"][0]
    assert 0.0 < error <= 0.05
    assert "mc_error" not in regressor(projection_weights="naive").fit(inputs(), response()).models_
    text = model.summary()
    assert "weights of projections: N(0, 1)" in text
    assert "weights of projections are averaged over: Monte Carlo errors of the log posterior are at most 0.0" in text
    n_models = len(model.searches_[0].weight_errors)
    assert f"predictions average over {n_models} of {len(models)} models" in text
    column = model.transform(inputs())
    assert column.shape == (N, len(model.get_feature_names_out()))
    assert model.get_feature_names_out()[0] == features["expression"][0]


def test_saved_and_loaded(tmp_path):
    for number, model in enumerate((fitted(), classifier())):
        path = tmp_path / f"{number}.bgnlm"
        model.save(path)
        again = load(path)
        for using in USING:
            np.testing.assert_array_equal(model.predict(inputs(), using=using), again.predict(inputs(), using=using))
            assert model.expression(using) == again.expression(using)
        assert model.summary() == again.summary()
        assert model.features_.equals(again.features_)
        assert model.models_.equals(again.models_)
        np.testing.assert_array_equal(model.transform(inputs()), again.transform(inputs()))
        one, other = (each.sample_predictive(inputs()[:3], 10, random_state=1) for each in (model, again))
        np.testing.assert_array_equal(one, other)


def test_another_prior():
    other = fitted().rescore(inputs(), response(), coefficient_prior="hyper-g", max_models=4)
    assert projections(other)
    assert len(other.models_) <= 4
    one, two = fitted().models_["log_posterior"][0], other.models_["log_posterior"][0]
    assert one != two
    assert one == pytest.approx(two, abs=3.0)
    same = fitted().rescore(inputs(), response(), penalty=1.0)
    assert len(same.models_) == len(fitted().models_)
    assert same.expression() == fitted().expression()


def test_a_search_goes_on_from_its_checkpoint(tmp_path):
    short = SearchConfig(**(vars(QUICK) | {"n_populations": 2}))
    regressor(search=short, checkpoint=tmp_path).fit(inputs(), response())
    again = regressor(search=short, checkpoint=tmp_path).fit(inputs(), response())
    whole = regressor(search=short).fit(inputs(), response())
    assert again.models_.equals(whole.models_)
    np.testing.assert_array_equal(again.predict(inputs()), whole.predict(inputs()))


@pytest.mark.parametrize("backend", ["threading", "loky"])
def test_chains_side_by_side(backend):
    """Threads share what they score, processes do not; nothing depends on it."""
    short = SearchConfig(**(vars(QUICK) | {"n_populations": 2}))
    one = regressor(search=short, n_chains=2, n_jobs=1).fit(inputs(), response())
    with joblib.parallel_config(backend=backend):
        other = regressor(search=short, n_chains=2, n_jobs=2).fit(inputs(), response())
    assert one.models_.equals(other.models_)
    np.testing.assert_array_equal(one.predict(inputs()), other.predict(inputs()))


@pytest.mark.parametrize(
    "changes",
    [{"moves": MoveProbabilities(projection=0.0)}, {"limits": Limits(max_depth=0)}],
    ids=["no projections", "linear"],
)
def test_without_projections_there_is_nothing_to_average_over(changes):
    config = SearchConfig(**(vars(QUICK) | {"population_size": 6} | changes))
    one, other = (
        regressor(projection_weights=strategy, search=config).fit(inputs(), response())
        for strategy in ("bayesian", "naive")
    )
    assert one.features_.equals(other.features_)
    np.testing.assert_array_equal(one.predict(inputs()), other.predict(inputs()))
    np.testing.assert_array_equal(one.models_["log_posterior"], other.models_["log_posterior"])
    for using in USING:
        assert one.expression(using) == other.expression(using)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weight_variance": 0.0}, "weight_variance must be above 0; got 0"),
        ({"weight_variance": -1.0}, "weight_variance"),
        ({"tolerance": 0}, "tolerance must be above 0; got 0"),
        ({"tolerance": float("nan")}, "tolerance"),
        ({"n_weight_draws": 10}, "n_weight_draws must be 100 or more; got 10"),
        ({"sampler": "x"}, "sampler must be one of 'importance', 'prior'; got 'x'"),
        ({"strategy": "Bayesian"}, "strategy must be one of 'naive', 'concave', .*, 'conditional'; got 'Bayesian'"),
    ],
)
def test_settings_that_are_not_allowed(settings, message):
    with pytest.raises(SettingError, match=message):
        ProjectionWeights(**({"strategy": "bayesian"} | settings))
