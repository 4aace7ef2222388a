"""Settings of the estimators: what each value does, and what is said about values that are not allowed."""

from functools import cache

import numpy as np
import pytest

import bgnlm
from bgnlm import BGNLMClassifier, BGNLMRegressor, CoefficientPrior, SearchConfig, Transform
from bgnlm.errors import FeatureError, SettingError
from bgnlm.features import depth, inputs_of, parse, transforms_of
from bgnlm.search import Limits, ModelPrior, MoveProbabilities

QUICK = SearchConfig(n_populations=3, population_size=8, n_candidates=40)
N = 40


def quick(**settings):
    return BGNLMRegressor(**{"search": QUICK, "n_chains": 1, "random_state": 0, **settings})


@cache
def data():
    rng = np.random.default_rng(31)
    X = rng.uniform(0.5, 2.0, size=(N, 3))
    return X, X[:, 0] * X[:, 1] + 0.2 * rng.normal(size=N)


def features_of(model):
    return [parse(text) for text in model.features_["expression"]]


BOTH = [
    ("transforms", "nope", r"transforms must be one of 'default', .*got 'nope'"),
    ("transforms", ["nope"], "unknown transform 'nope'"),
    ("transforms", ["sin", 5], "a name or a Transform, got 5"),
    ("transforms", 5, "a preset's name or a list, got 5"),
    ("transforms", ["sin", "cos", "sin"], "got twice: sin"),
    ("coefficient_prior", "flat", r"coefficient_prior must be 'auto', one of 'robust', .*got 'flat'"),
    ("coefficient_prior", 5, r"or a CoefficientPrior; got 5"),
    ("coefficient_prior", None, r"or a CoefficientPrior; got None"),
    (
        "penalty",
        "hq",
        "penalty must be 'bic', 'aic', 'predict', a number of nats per operation or a ModelPrior; got 'hq'",
    ),
    ("penalty", -1.0, "penalty must be 0 or more; got -1"),
    ("penalty", 1e7, r"penalty must be at most 1e\+06"),
    ("penalty", None, "penalty must be a finite number; got None"),
    ("penalty", np.nan, "penalty must be a finite number; got nan"),
    ("penalty", True, "penalty must be a finite number; got True"),
    ("max_depth", -1, "max_depth must be 0 or more; got -1"),
    ("max_depth", 2.0, "max_depth must be a whole number; got 2.0"),
    ("max_depth", None, "max_depth must be a whole number; got None"),
    (
        "projection_weights",
        "fast",
        "projection_weights must be one of 'naive', 'concave', 'deep', 'bayesian', 'conditional'; got 'fast'",
    ),
    ("latent", ["AR1"], "latent must have components: .*got 'AR1'"),
    ("latent", "AR1", "latent must be a list of components; got 'AR1'"),
    ("latent", None, "latent must be a list of components; got None"),
    ("latent", 5, "latent must be a list of components; got 5"),
    ("keep", "x1", r"keep must be a list of features or their texts; got 'x1'. Write \['x1'\]"),
    ("keep", None, "keep must be a list of features"),
    ("keep", ["x1"] * 8, "keep must have fewer features than a population, 8; got 8"),
    ("missing", "drop", "missing must be one of 'raise', 'impute'; got 'drop'"),
    ("missing", None, "missing must be one of 'raise', 'impute'; got None"),
    ("n_chains", 0, "n_chains must be 1 or more; got 0"),
    ("n_chains", 1.5, "n_chains must be a whole number; got 1.5"),
    ("n_chains", True, "n_chains must be a whole number; got True"),
    ("n_jobs", 0, "n_jobs must be a whole number but 0, or None; got 0"),
    ("n_jobs", "all", "n_jobs must be a whole number but 0, or None; got 'all'"),
    ("max_seconds", -1, "max_seconds must be 0 or more; got -1"),
    ("max_seconds", np.inf, "max_seconds must be a finite number; got inf"),
    ("max_seconds", "1 h", "max_seconds must be a finite number; got '1 h'"),
    ("search", {"n_populations": 3}, "search must be a SearchConfig or None; got {'n_populations': 3}"),
    ("search", SearchConfig, "search must be a SearchConfig or None"),
    ("search", SearchConfig(engine="exhaustive", population_size=30), "populations of at most"),
    ("search", SearchConfig(transform_weights=(1.0, 2.0)), "one weight for each of the 8 transforms; got 2"),
    ("search", SearchConfig(transform_weights=(0.0,) * 8), "transform_weights must not all be 0"),
    ("checkpoint", 5, "checkpoint must be the path of a folder, or None; got 5"),
    (
        "random_state",
        -1,
        "random_state must be a whole number of 0 or more, a RandomState, a Generator or None; got -1",
    ),
    ("random_state", 1.5, "random_state must be a whole number"),
    ("random_state", "seed", "random_state must be a whole number"),
    ("random_state", True, "random_state must be a whole number"),
]
OF_THE_REGRESSOR = [
    ("family", "normal", "family must be one of 'gaussian', .*'negative_binomial'; got 'normal'"),
    ("family", None, "family must be one of 'gaussian'"),
    ("family", ["gaussian"], "family must be one of 'gaussian'"),
    ("link", "log", "link must be one of 'identity'; got 'log'"),
    ("link", 5, "link must be one of 'identity'; got 5"),
    ("noise_floor", -0.1, "noise_floor must be 0 or more; got -0.1"),
    ("noise_floor", 1.0, "noise_floor must be 0, or at least 1e-12 and below 1; got 1"),
    ("noise_floor", "a", "noise_floor must be a finite number; got 'a'"),
]
OF_THE_CLASSIFIER = [
    ("link", "identity", "link must be one of 'logit', 'probit', 'cloglog'; got 'identity'"),
    ("coefficient_prior", "known-variance", "'known-variance' is for the Gaussian family; got family 'binomial'"),
]


@pytest.mark.parametrize(("name", "value", "message"), BOTH + OF_THE_REGRESSOR, ids=str)
def test_values_that_the_regressor_does_not_allow(name, value, message):
    X, y = data()
    with pytest.raises(SettingError, match=message):
        quick(**{name: value}).fit(X, y)


@pytest.mark.parametrize(("name", "value", "message"), BOTH + OF_THE_CLASSIFIER, ids=str)
def test_values_that_the_classifier_does_not_allow(name, value, message):
    X, y = data()
    settings = {"search": QUICK, "n_chains": 1, "random_state": 0, name: value}
    with pytest.raises(SettingError, match=message):
        BGNLMClassifier(**settings).fit(X, y > np.median(y))


@pytest.mark.parametrize(
    ("family", "settings", "message"),
    [
        ("poisson", {"link": "identity"}, "link must be one of 'log'"),
        ("binomial", {"link": "log"}, "link must be one of 'logit', 'probit', 'cloglog'"),
        ("poisson", {"noise_floor": 0.1}, "noise_floor is for the Gaussian family"),
        ("gamma", {"coefficient_prior": "script"}, "'script' is for Gaussian, binomial"),
        ("gaussian", {"search": SearchConfig(engine="surrogate", population_size=8)}, "other families than the Gauss"),
    ],
)
def test_settings_that_do_not_go_together(family, settings, message):
    X, y = data()
    with pytest.raises(SettingError, match=message):
        quick(family=family, **settings).fit(X, 1.0 * (y > 2) + (family == "gamma"))


@pytest.mark.parametrize(
    ("keep", "message"),
    [
        (["x9"], "there is no column 'x9'. The columns are: x1, x2, x3"),
        (["sin("], "cannot read the feature at position 4"),
        ([5], "expected a feature, got 5"),
        ([parse("sin(x1)", [Transform("sin", np.tanh)])], "another function than the sin of transforms"),
    ],
    ids=str,
)
def test_features_to_keep_that_are_none(keep, message):
    X, y = data()
    with pytest.raises(FeatureError, match=message):
        quick(keep=keep).fit(X, y)


@pytest.mark.parametrize(
    "make",
    [
        lambda: SearchConfig(n_populations=0),
        lambda: SearchConfig(population_size=1.5),
        lambda: SearchConfig(keep_threshold=2),
        lambda: SearchConfig(informed=-0.1),
        lambda: SearchConfig(engine="quick"),
        lambda: SearchConfig(limits=5),
        lambda: SearchConfig(moves={"projection": 0}),
        lambda: SearchConfig(n_averaged=0),
        lambda: Limits(max_depth=-1),
        lambda: MoveProbabilities(projection=-1),
        lambda: MoveProbabilities(new_input=0, modification=0, multiplication=0, projection=0),
        lambda: ModelPrior(penalty="x"),
        lambda: ModelPrior(complexity="x"),
        lambda: ModelPrior(max_model_size=-1),
        lambda: CoefficientPrior("x"),
        lambda: CoefficientPrior("g", h=3),
        lambda: CoefficientPrior("g", g=-1),
        lambda: CoefficientPrior("g", information="all"),
    ],
)
def test_objects_of_settings_are_checked_when_they_are_made(make):
    with pytest.raises(SettingError, match=r"must|no parameter"):
        make()


def test_a_constructor_checks_nothing():
    """As scikit-learn demands: values are checked by fit."""
    model = BGNLMRegressor(family=5, penalty="x", n_chains=-1)
    assert model.get_params()["family"] == 5


@pytest.mark.parametrize(
    "settings",
    [
        {"max_depth": 0, "search": SearchConfig(n_populations=2, window=100.0)},
        {"search": SearchConfig(n_populations=2, window=100.0, limits=Limits(max_depth=0))},
    ],
    ids=["of the estimator", "of the search"],
)
@pytest.mark.parametrize("penalty", ["bic", "aic", 1.5, 0.0, np.float32(2.0)])
def test_depth_zero_is_the_linear_model(settings, penalty):
    X, y = data()
    model = quick(**settings, penalty=ModelPrior(penalty=penalty, complexity="oc+1")).fit(X, y)
    assert set(model.features_["expression"]) == {"x1", "x2", "x3"}
    exact = bgnlm.enumerate_models(y, X, penalty=penalty)
    probabilities = dict(zip(exact.names, exact.inclusion_probabilities, strict=True))
    expected = [probabilities[name] for name in model.features_["expression"]]
    assert model.features_["probability"].tolist() == pytest.approx(expected, abs=1e-7)
    assert model.predict(X) == pytest.approx(exact.predict(X), rel=1e-3)
    assert len(model.models_) == 8


@pytest.mark.parametrize(
    ("settings", "deepest"),
    [
        ({"max_depth": 1}, 1),
        ({"max_depth": 1, "search": SearchConfig(population_size=8, n_populations=4, limits=Limits(max_width=3))}, 1),
        # What SearchConfig says goes before what the estimator says.
        ({"max_depth": 5, "search": SearchConfig(population_size=8, n_populations=4, limits=Limits(max_depth=1))}, 1),
        ({"max_depth": 0, "search": SearchConfig(population_size=8, n_populations=4, limits=Limits(max_depth=2))}, 2),
    ],
)
def test_features_are_no_deeper_than_allowed(settings, deepest):
    X, y = data()
    model = quick(**settings).fit(X, y)
    assert max(map(depth, features_of(model))) == deepest
    assert model.features_["depth"].max() == deepest


def test_weights_of_transforms():
    X, y = data()
    config = SearchConfig(population_size=8, n_populations=4, n_candidates=40, transform_weights=(0.0, 1.0, 0.0))
    model = quick(transforms=["sin", "gauss", "sigmoid"], search=config).fit(X, y)
    used = {transform.name for feature in features_of(model) for transform in transforms_of(feature)}
    assert used == {"gauss"}


@pytest.mark.parametrize(
    ("transforms", "allowed"),
    [("none", set()), ([], set()), (["sin"], {"sin"}), ("neural", {"sigmoid"}), (("cos", "tanh"), {"cos", "tanh"})],
)
def test_only_the_given_transforms_are_used(transforms, allowed):
    X, y = data()
    model = quick(transforms=transforms).fit(X, y)
    assert {transform.name for feature in features_of(model) for transform in transforms_of(feature)} <= allowed


def test_a_transform_of_ones_own():
    X, y = data()
    square = Transform("square", np.square)
    model = quick(transforms=[square], search=SearchConfig(n_populations=4, population_size=8)).fit(X, np.exp(y) ** 2)
    assert any("square(" in text for text in model.features_["expression"])
    assert np.isfinite(model.predict(X)).all()


@pytest.mark.parametrize("keep", [["x1*x2*x3"], [parse("sin(x1)"), "x2**2"], ("x3",), (text for text in ["x3"])])
def test_features_to_keep_stay(keep):
    X, y = data()
    wanted = list(keep)
    model = quick(keep=wanted).fit(X, y)
    texts = {str(feature) for feature in wanted}
    assert texts <= set(model.features_["expression"])


def test_moves_that_are_switched_off():
    X, y = data()
    config = SearchConfig(population_size=8, n_populations=4, moves=MoveProbabilities(projection=0, modification=0))
    model = quick(search=config).fit(X, y)
    assert not [text for text in model.features_["expression"] if "(" in text]


def test_time_may_be_over_at_once():
    X, y = data()
    model = quick(max_seconds=0, n_chains=2).fit(X, y)
    assert model.diagnostics_.endings == ("time is over",) * 2
    assert [len(history) for history in model.diagnostics_.history] == [1, 1]
    assert "2 chains did not come to their end (time is over)" in model.summary()
    assert np.isfinite(model.predict_interval(X)).all()
    limited = quick(search=SearchConfig(n_populations=3, population_size=8, n_candidates=40, max_seconds=0)).fit(X, y)
    assert limited.diagnostics_.endings == ("time is over",)


def test_penalties():
    X, y = data()
    n_obs = len(y)
    one, other = quick(penalty="bic").fit(X, y), quick(penalty=float(np.log(n_obs))).fit(X, y)
    assert one.features_.equals(other.features_)
    free = quick(penalty=0).fit(X, y)
    assert free.features_["probability"].sum() > one.features_["probability"].sum()
    strict = quick(penalty=50.0).fit(X, y)
    assert strict.features_["complexity"][strict.features_["probability"] > 0.5].sum() == 0
    predictive, by_hand = (quick(penalty=p).fit(X, y) for p in ("predict", ModelPrior(penalty="aic", complexity="oc")))
    assert predictive.features_.equals(by_hand.features_)
    assert predictive.features_["probability"].sum() > one.features_["probability"].sum()
    small = quick(penalty=ModelPrior(max_model_size=1)).fit(X, y)
    assert small.models_["size"].max() == 1
    own = quick(penalty=ModelPrior(penalty=1.0, complexity=lambda feature: len(inputs_of(feature)))).fit(X, y)
    assert "complexity of your own" in own.summary()


@pytest.mark.parametrize(
    "prior", ["robust", "g", "jeffreys", "bic", "eb-local", "zellner-siow", CoefficientPrior("g", g=30.0)], ids=str
)
def test_priors_of_coefficients(prior):
    X, y = data()
    model = quick(coefficient_prior=prior, max_depth=0, penalty=0.0).fit(X, y)
    exact = bgnlm.enumerate_models(y, X, coefficient_prior=prior)
    assert model.posterior_.log_mass == pytest.approx(np.logaddexp.reduce(exact.log_joint), abs=1e-8)
    assert model.predict(X) == pytest.approx(exact.predict(X), rel=1e-3)


@pytest.mark.parametrize("prior", ["known-variance", "script"])
def test_standard_deviations_where_the_variance_is_known(prior):
    X, y = data()
    model = quick(coefficient_prior=prior).fit(X, y)
    assert np.isfinite(model.features_["sd"]).all()
    assert np.isfinite(model.predict(X, return_std=True)[1]).all()


def test_a_noise_floor_widens_intervals():
    X, _ = data()
    y = X[:, 0] * X[:, 1]
    one, other = (quick(noise_floor=floor).fit(X, y) for floor in (0.0, 0.3))
    assert np.diff(other.predict_interval(X)).mean() > 100 * np.diff(one.predict_interval(X)).mean()
    assert "noise floor 0.3 sd(y)" in other.summary()


def test_fewer_models_to_average_over():
    X, y = data()
    config = SearchConfig(n_populations=3, population_size=8, n_candidates=40, n_averaged=1)
    model = quick(search=config).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), model.predict(X, using="best"))
    assert "SearchConfig(n_averaged=...)" in model.summary()


def test_a_bar_shows_the_progress(capsys, monkeypatch):
    monkeypatch.setattr("bgnlm.progress._PATIENCE", 0.0)
    monkeypatch.setattr("bgnlm.progress._EVERY", 0.0)
    X, y = data()
    quick(verbose=1).fit(X, y)
    assert "chain 1/1, population 3/3" in capsys.readouterr().err
    quick(verbose=0).fit(X, y)
    assert capsys.readouterr().err == ""
