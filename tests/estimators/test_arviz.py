"""Draws in the container of ArviZ are those of the posterior."""

import warnings

import numpy as np
import pandas as pd
import pytest

from bgnlm import BGNLMClassifier, BGNLMRegressor, SearchConfig
from bgnlm.errors import DataError, SettingError
from bgnlm.latent import Grouped

QUICK = {"search": SearchConfig(n_populations=3), "n_chains": 1, "random_state": 0}


@pytest.fixture(scope="module")
def az():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("arviz")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    return X, X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=60)


def test_draws_of_a_regression(az, data):
    X, y = data
    model = BGNLMRegressor(**QUICK).fit(X, y)
    drawn = model.to_arviz(X, y, n_draws=2000, random_state=1)
    is_tree = int(az.__version__.partition(".")[0]) >= 1
    assert type(drawn).__name__ == ("DataTree" if is_tree else "InferenceData")
    posterior = drawn["posterior"]
    assert posterior["coefficient"].dims == ("chain", "draw", "feature")
    assert posterior.sizes["chain"] == 4
    table = model.features_.set_index("expression")
    mass = model.searches_[0].average.mass
    for name in posterior["feature"].values[:5]:
        inclusion = float(posterior["inclusion"].sel(feature=name).mean())
        assert inclusion == pytest.approx(table.loc[name, "probability"] / mass, abs=0.03)
        mean = float(posterior["coefficient"].sel(feature=name).mean())
        assert mean == pytest.approx(table.loc[name, "coefficient"], abs=0.03)
    is_out = posterior["inclusion"].values == 0
    assert (posterior["coefficient"].values[is_out] == 0).all()
    response = drawn["posterior_predictive"]["y"]
    assert response.mean(("chain", "draw")).values == pytest.approx(model.predict(X), abs=0.05)
    assert response.std(("chain", "draw")).values == pytest.approx(model.predict(X, return_std=True)[1], rel=0.1)
    assert (drawn["observed_data"]["y"].values == y).all()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        summary = az.summary(drawn, var_names=["intercept", "sigma"])
    assert summary.loc["sigma", "mean"] == pytest.approx(0.3, abs=0.1)


@pytest.mark.parametrize(("response", "variable"), [("km/h", "km_h"), ("row", "row_"), ("draw", "draw_")])
def test_any_name_of_a_response_is_a_variable(az, data, response, variable):
    X, y = data
    model = BGNLMRegressor(search=SearchConfig(n_populations=1), n_chains=1, random_state=0)
    drawn = model.fit(X, pd.Series(y, name=response)).to_arviz(X, y, n_draws=3)
    assert list(drawn["posterior_predictive"].data_vars) == [variable]
    assert (drawn["observed_data"][variable].values == y).all()


def test_means_come_from_the_coefficients_that_were_drawn(az, data):
    X, y = data
    model = BGNLMRegressor(family="poisson", **QUICK).fit(X, np.round(np.abs(y)))
    drawn = model.to_arviz(X, n_draws=50, n_chains=2, random_state=1)
    again = model.to_arviz(X, n_draws=50, n_chains=2, random_state=1)
    assert drawn["posterior_predictive"].equals(again["posterior_predictive"])
    assert "sigma" not in drawn["posterior"]
    assert "observed_data" not in (drawn.groups() if callable(drawn.groups) else drawn.groups)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(az, data, n_classes):
    X, y = data
    labels = np.array(["a", "b", "c"])[np.digitize(y, [0.0] if n_classes == 2 else [-0.5, 0.5])]
    model = BGNLMClassifier(**QUICK).fit(X, labels)
    drawn = model.to_arviz(X, labels, n_draws=1000, random_state=1)
    response = drawn["posterior_predictive"]["y"].values
    shares = np.stack([(response == k).mean((0, 1)) for k in range(n_classes)], axis=1)
    assert shares == pytest.approx(model.predict_proba(X, plug_in=False), abs=0.06)
    assert drawn["posterior"]["model"].dims == ("chain", "draw") + (("class",) if n_classes == 3 else ())
    assert (model.classes_[drawn["observed_data"]["y"].values] == labels).all()
    with pytest.raises(DataError, match="classes of the training data"):
        model.to_arviz(X, np.array(["d"] * len(X)))


def test_latent_components_are_among_the_features(az, data):
    X, y = data
    group = np.arange(60) % 5
    table, effects = np.column_stack([X, group]), np.array([3, -3, 0, 1, -1])
    model = BGNLMRegressor(latent=[Grouped(3)], **QUICK).fit(table, y + effects[group])
    drawn = model.to_arviz(table, n_draws=50, random_state=1)
    name = model.components_["component"][0]
    assert float(drawn["posterior"]["inclusion"].sel(feature=name).mean()) > 0.9
    assert "coefficient" not in drawn["posterior"]


def test_what_cannot_be_drawn(az, data):
    X, y = data
    model = BGNLMRegressor(**QUICK).fit(X, y)
    with pytest.raises(SettingError, match="n_draws must be 1 or more"):
        model.to_arviz(n_draws=0)
    with pytest.raises(SettingError, match="using must be one of"):
        model.to_arviz(using="worst")
    with pytest.raises(DataError, match="give the table X"):
        model.to_arviz(y=y)
