"""Estimators with latent components: answers, new positions and groups, faults, files, and scikit-learn."""

import copy
import math
import pickle
from functools import cache

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import bgnlm
from bgnlm import BGNLMClassifier, BGNLMRegressor, CoefficientPrior, SearchConfig
from bgnlm.errors import CheckpointError, DataError, ModelFileError, SettingError
from bgnlm.latent import AR1, IID, OU, RW1, Gamma, Grouped, Normal, log_marginal
from bgnlm.latent.nested_laplace import Integrated
from bgnlm.search import Limits, ModelPrior
from tests.estimators.test_files import refused_or_usable, small_files

pd = pytest.importorskip("pandas")

N = 40
TINY = SearchConfig(n_populations=1, population_size=3, limits=Limits(max_depth=0))
QUICK = SearchConfig(n_populations=2, population_size=4, n_candidates=20)
CHOSEN = SearchConfig(n_populations=1, population_size=3, limits=Limits(max_depth=0), select_offset=True)
BOTH = (AR1("t"), Grouped("g"))
FREE = ModelPrior(latent_penalty=0.0)


@cache
def data():
    """A table with time and groups, and the linear predictor."""
    rng = np.random.default_rng(91)
    time = np.zeros(N)
    for i in range(1, N):
        time[i] = 0.85 * time[i - 1] + 0.5 * rng.normal()
    group = rng.integers(0, 5, N)
    table = pd.DataFrame(rng.normal(size=(N, 2)), columns=["a", "b"])
    table["t"] = np.arange(N)
    table["g"] = [f"s{k}" for k in group]
    eta = 0.8 + 0.8 * table["a"].to_numpy() + time + np.array([-1.2, 0.9, 0.1, -0.4, 1.1])[group]
    return table, eta


def table():
    return data()[0]


@cache
def response(family="poisson"):
    rng, eta = np.random.default_rng(92), data()[1]
    return {
        "gaussian": lambda: eta + 0.3 * rng.normal(size=N),
        "binomial": lambda: (rng.random(N) < 1.0 / (1.0 + np.exp(-eta))).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "gamma": lambda: rng.gamma(5.0, np.exp(eta) / 5.0),
        "negative_binomial": lambda: rng.poisson(np.exp(eta) * rng.gamma(3.0, 1.0 / 3.0, N)).astype(float),
    }[family]()


def poisson(latent=BOTH, **settings):
    given = {"family": "poisson", "latent": latent, "search": TINY, "n_chains": 1, "random_state": 0, **settings}
    return BGNLMRegressor(**given)


@cache
def fitted(latent=BOTH, family="poisson", search=TINY):
    return poisson(latent, family=family, search=search).fit(table(), response(family))


@cache
def classified(n_classes):
    labels = np.digitize(response(), [2.0, 6.0][: n_classes - 1])
    return BGNLMClassifier(latent=BOTH, search=TINY, n_chains=1, random_state=0).fit(table(), labels)


def new_rows(**columns):
    """One row again and again, but for some columns."""
    length = max(map(len, columns.values()))
    return table().iloc[[7] * length].assign(**columns)


def log_widths(model, new):
    ends = model.predict_interval(new, of="mean")
    return np.log(ends[:, 1] / ends[:, 0])


def assert_same(one, other, X, offset=None):
    """Every answer is the same to the last digit."""
    given = {} if offset is None else {"offset": offset}
    for using in ("average", "best", "median"):
        np.testing.assert_array_equal(one.predict(X, using=using, **given), other.predict(X, using=using, **given))
        np.testing.assert_array_equal(
            one.predict_interval(X, of="mean", using=using, **given),
            other.predict_interval(X, of="mean", using=using, **given),
        )
        assert one.expression(using) == other.expression(using)
        assert one.expression(using, "latex") == other.expression(using, "latex")
    draws = [each.sample_predictive(X, 5, random_state=1, **given) for each in (one, other)]
    np.testing.assert_array_equal(*draws)
    if isinstance(one, BGNLMRegressor):
        np.testing.assert_array_equal(one.predict_quantiles(X, **given), other.predict_quantiles(X, **given))
        for mine, theirs in zip(*(each.predict(X, return_std=True, **given) for each in (one, other)), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    for field in one.latent_columns_.fields:
        assert one.latent_effects(field).equals(other.latent_effects(field))
    np.testing.assert_array_equal(one.transform(X), other.transform(X))
    for name in ("features_", "models_", "components_"):
        assert getattr(one, name).equals(getattr(other, name)), name
    assert one.summary() == other.summary()


def saved_and_loaded(model, path):
    model.save(path)
    return bgnlm.load(path)


class TestFamilies:
    @pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "gamma", "negative_binomial"])
    def test_all_answers_are_finite_and_come_back_from_a_file(self, family, tmp_path):
        model = fitted(BOTH, family)
        mean, deviation = model.predict(table(), return_std=True)
        assert np.isfinite(mean).all()
        assert (deviation > 0).all()
        ends = model.predict_interval(table())
        assert (ends[:, 0] <= ends[:, 1]).all()
        assert np.isfinite(model.predict(table(), plug_in=False)).all()
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), table())

    def test_shares_with_trials(self, tmp_path):
        trials = np.full(N, 8.0)
        shares = np.random.default_rng(1).binomial(8, 1.0 / (1.0 + np.exp(-data()[1]))) / 8.0
        model = poisson(family="binomial").fit(table(), shares, sample_weight=trials)
        assert np.corrcoef(model.predict(table()), shares)[0, 1] > 0.5
        assert (model.predict(table(), return_std=True, trials=8)[1] < model.predict(table(), return_std=True)[1]).all()
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), table())

    @pytest.mark.parametrize("n_classes", [2, 3])
    def test_classes(self, n_classes, tmp_path):
        model = classified(n_classes)
        np.testing.assert_allclose(model.predict_proba(table()).sum(axis=1), 1.0)
        n_searches = 1 if n_classes == 2 else n_classes
        assert len(model.latent_effects("AR1(t)")) == n_searches * N
        assert ("class" in model.components_) == (n_classes > 2)
        again = saved_and_loaded(model, tmp_path / "model")
        np.testing.assert_array_equal(again.predict_proba(table()), model.predict_proba(table()))
        assert_same(model, again, table())

    def test_a_gaussian_response_in_another_unit(self):
        one = fitted(BOTH, "gaussian")
        other = poisson(family="gaussian").fit(table(), 1000.0 * response("gaussian"))
        np.testing.assert_allclose(other.models_["probability"], one.models_["probability"], atol=1e-6)
        np.testing.assert_allclose(other.predict(table()), 1000.0 * one.predict(table()), rtol=1e-6)
        deviations = [model.predict(table(), return_std=True)[1] for model in (one, other)]
        np.testing.assert_allclose(1000.0 * deviations[0], deviations[1], rtol=1e-6)
        units = {"sd": 1000.0, "correlation": 1.0}
        factors = one.components_["hyperparameter"].map(units)
        np.testing.assert_allclose(other.components_["mean"], factors * one.components_["mean"], rtol=1e-6)

    def test_the_components_explain_what_they_should(self):
        model = fitted((Grouped("g"),))
        assert model.components_["probability"][0] > 0.99
        effects = model.latent_effects("Grouped(g)").set_index("position")
        assert (effects["lower"] < effects["mean"]).all()
        assert effects.loc["s4", "mean"] > effects.loc["s0", "mean"]
        assert "Grouped(g)" in model.expression()
        assert "Grouped(g): sd" in model.summary()


class TestPositions:
    def test_the_order_of_the_rows_does_not_matter(self):
        order = np.random.default_rng(5).permutation(N)
        other = poisson().fit(table().iloc[order], response()[order])
        np.testing.assert_allclose(other.predict(table()), fitted().predict(table()), rtol=1e-9)
        np.testing.assert_allclose(
            other.components_["probability"], fitted().components_["probability"], rtol=1e-9, atol=1e-12
        )

    def test_positions_that_come_again_share_their_effect(self):
        pairs = table().assign(t=table()["t"] // 2)
        model = poisson([AR1("t")], penalty=FREE).fit(pairs, response())
        assert model.latent_effects(AR1("t"))["position"].tolist() == list(range(N // 2))
        assert np.isfinite(model.predict(pairs)).all()

    @pytest.mark.parametrize("kind", [AR1, OU, RW1])
    def test_far_positions_are_less_certain(self, kind):
        model = poisson([kind("t")], penalty=FREE).fit(table().drop(columns="g"), response())
        assert model.components_["probability"][0] > 0.5
        new = new_rows(t=[7.0, 7.5, -6.0, 50.0, 1e4]).drop(columns="g")
        best = model.predict_interval(new, of="mean", using="best")
        width = np.log(best[:, 1] / best[:, 0])
        assert (width[2:] > width[0]).all()
        assert width[4] > 0.99 * width[3]
        assert np.isfinite(model.predict(new)).all()
        draws = np.log(model.sample_predictive(new, 2000, of="mean", using="best", random_state=1))
        assert draws[:, 3].std() > draws[:, 0].std()

    def test_between_two_positions_it_is_between_them(self):
        model = poisson([RW1("t")], penalty=FREE).fit(table().drop(columns="g"), response())
        eta = np.log(model.predict(new_rows(t=[7.0, 7.5, 8.0]).drop(columns="g"), using="best"))
        assert min(eta[0], eta[2]) - 0.1 < eta[1] < max(eta[0], eta[2]) + 0.1

    def test_groups_that_are_new_are_less_certain(self):
        model = fitted((Grouped("g"),))
        known, unseen = log_widths(model, new_rows(g=["s0", "nobody"]))
        assert unseen > 1.5 * known
        effects = model.latent_effects("Grouped(g)")
        assert effects["mean"].min() < np.log(model.predict(new_rows(g=["nobody"]))[0]) < 3.0

    def test_rows_of_a_new_group_are_drawn_with_one_effect(self):
        model = fitted((Grouped("g"),))
        new = new_rows(g=["nobody", "nobody", "other"])
        draws = np.log(model.sample_predictive(new, 500, of="mean", random_state=1))
        np.testing.assert_allclose(draws[:, 0], draws[:, 1])
        assert np.corrcoef(draws[:, 0], draws[:, 2])[0, 1] < 0.7

    @pytest.mark.parametrize("kind", [AR1, RW1, OU, IID, Grouped])
    def test_one_position_says_nothing(self, kind):
        model = poisson([kind("t")]).fit(table().assign(t=5), response())
        assert model.components_["probability"].iloc[0] < 0.5
        assert np.isfinite(model.predict(table())).all()

    def test_groups_with_one_member(self):
        model = poisson([Grouped("t"), IID("g")]).fit(table(), response())
        assert np.isfinite(model.predict_interval(table())).all()

    @pytest.mark.parametrize(
        "labels",
        [
            lambda g: g.str[1:],
            lambda g: g.astype("category"),
            lambda g: g.str[1:].astype(int),
            lambda g: 0.5 * g.str[1:].astype(int),
            lambda g: pd.Categorical(g.str[1:].astype(int)),
            lambda g: g.astype(object),
        ],
        ids=["texts of numbers", "categories", "whole numbers", "numbers", "categories of numbers", "objects"],
    )
    def test_labels_of_any_kind(self, labels, tmp_path):
        X = table().assign(g=labels(table()["g"]))
        model = poisson([Grouped("g")]).fit(X, response())
        np.testing.assert_allclose(model.predict(X), fitted((Grouped("g"),)).predict(table()), rtol=1e-9)
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), X)

    def test_booleans_as_labels(self):
        X = table().assign(g=table()["g"] > "s2")
        model = poisson([Grouped("g")]).fit(X, response())
        np.testing.assert_array_equal(model.predict(X.assign(g=X["g"].astype(int))), model.predict(X))

    def test_texts_that_look_alike_as_numbers_are_different(self):
        X = table().assign(g=table()["g"].replace({"s0": "1", "s1": "01", "s2": "1.0"}))
        assert len(poisson([Grouped("g")]).fit(X, response()).latent_effects("Grouped(g)")) == 5

    def test_numbers_and_texts_are_not_mixed_up(self):
        numbers = table().assign(g=table()["g"].str[1:].astype(int))
        with pytest.raises(DataError, match=r"column of Grouped\(g\) had texts in training; got numbers. Convert"):
            fitted((Grouped("g"),)).predict(numbers)
        with pytest.raises(DataError, match=r"column of Grouped\(g\) had numbers in training; got texts. Convert"):
            poisson([Grouped("g")]).fit(numbers, response()).predict(table())

    def test_polars(self):
        pl = pytest.importorskip("polars")
        X = pl.from_pandas(table())
        model = poisson().fit(X, response())
        np.testing.assert_array_equal(model.predict(X), fitted().predict(table()))


MISSING = "X has missing values .* row 3, column '{}'.* Drop these rows: latent components need"


class TestColumns:
    @pytest.mark.parametrize("missing", ["raise", "impute"])
    @pytest.mark.parametrize(("column", "value"), [("t", np.nan), ("t", None), ("g", None), ("g", np.nan)])
    def test_what_is_missing(self, missing, column, value):
        X = table().assign(**{column: table()[column].astype(object)})
        X.loc[3, column] = value
        with pytest.raises(DataError, match=MISSING.format(column)):
            poisson(missing=missing).fit(X, response())
        with pytest.raises(DataError, match=MISSING.format(column)):
            fitted().predict(X)

    def test_a_slope_that_is_missing(self):
        X = table().copy()
        X.loc[3, "a"] = np.nan
        with pytest.raises(DataError, match=MISSING.format("a")):
            poisson([Grouped("g", slope="a")], missing="impute").fit(X, response())

    def test_infinity_and_dates(self):
        X = table().assign(t=table()["t"].astype(float))
        X.loc[3, "t"] = np.inf
        with pytest.raises(DataError, match=r"infinity; got inf in row 3, column 't'"):
            poisson().fit(X, response())
        with pytest.raises(DataError, match="Convert dates and durations to a number of days"):
            poisson().fit(table().assign(t=pd.date_range("2020-01-01", periods=N)), response())

    @pytest.mark.parametrize("column", ["g", "t"])
    def test_texts_are_no_positions(self, column):
        X = table().assign(t=(table()["t"] // 3).astype(str))
        with pytest.raises(DataError, match=rf"AR1\({column}\) is along positions, which must be numbers; got '.*' in"):
            poisson([AR1(column)]).fit(X, response())

    def test_a_column_that_is_not_there(self):
        for latent in ([AR1("time")], [Grouped("g", slope="time")]):
            with pytest.raises(DataError, match=r"latent names the column 'time', which X does not have.*a, b, t, g"):
                poisson(latent).fit(table(), response())
        with pytest.raises(DataError, match="yet now missing:\n- t"):
            fitted().predict(table().drop(columns="t"))

    def test_slopes_that_are_texts(self):
        with pytest.raises(DataError, match=r"The slope of Grouped\(t, slope=g\) must be numbers; got 's\d' in row 0"):
            poisson([Grouped("t", slope="g")]).fit(table(), response())

    def test_slopes_are_inputs_too(self, tmp_path):
        model = poisson([Grouped("g", slope="a"), Grouped("g")]).fit(table(), response())
        assert model.coding_.names == ("a", "b", *(name for name in model.coding_.names if name.startswith("t")))
        assert "a" in model.features_["expression"].tolist()
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), table())

    def test_arrays_by_numbers(self, tmp_path):
        X = table().assign(g=table()["g"].str[1:].astype(int)).to_numpy(float)
        model = poisson([AR1(2), Grouped(3)]).fit(X, response())
        np.testing.assert_allclose(model.predict(X), fitted().predict(table()), rtol=1e-9)
        assert set(model.components_["component"]) == {"AR1(2)", "Grouped(3)"}
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), X)
        named = poisson([AR1("x3"), Grouped("x4")]).fit(X, response())
        np.testing.assert_array_equal(named.predict(X), model.predict(X))
        for column in (4, -1):
            with pytest.raises(DataError, match=rf"the column {column}, which X does not have"):
                poisson([AR1(column)]).fit(X, response())

    def test_a_position_that_is_kept_as_input(self, tmp_path):
        model = poisson(keep=["t"]).fit(table(), response())
        assert set(model.coding_.names) == {"a", "b", "t"}
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), table())
        X = table()[["a", "b", "t"]].to_numpy()
        assert poisson([AR1(2)], keep=["x3"]).fit(X, response()).coding_.names == ("x1", "x2", "x3")
        assert "g=s1" in poisson(keep=["`g=s1`"]).fit(table(), response()).coding_.names

    def test_no_input_is_left(self):
        with pytest.raises(DataError, match=r"a column that is an input; .*keep=\['t'\]"):
            poisson([AR1("t")]).fit(table()[["t"]], response())

    def test_a_column_named_like_a_component(self, tmp_path):
        X = table().rename(columns={"a": "AR1(t)"})
        model = poisson().fit(X, response())
        assert "`AR1(t)`" in model.features_["expression"].tolist()
        np.testing.assert_array_equal(model.predict(X), fitted().predict(table()))
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), X)


class TestSettings:
    def test_components_that_come_twice(self):
        with pytest.raises(SettingError, match=r"latent has AR1\(t\) twice"):
            poisson([AR1("t"), AR1("t", Gamma(1.0, 0.1))]).fit(table(), response())

    @pytest.mark.parametrize("latent", [[AR1("t"), AR1(2)], [IID("g"), Grouped("g")]], ids=["number", "kind"])
    def test_components_that_are_the_same(self, latent):
        assert table().columns[2] == "t"
        with pytest.raises(SettingError, match=r"which are the same component\. Leave one out"):
            poisson(latent).fit(table(), response())

    def test_one_component_needs_no_list(self):
        one = poisson(Grouped("g")).fit(table(), response())
        np.testing.assert_array_equal(one.predict(table()), fitted((Grouped("g"),)).predict(table()))

    @pytest.mark.parametrize("latent", ["AR1(t)", None, 3, {AR1("t")}, iter([AR1("t")])])
    def test_what_is_no_list(self, latent):
        with pytest.raises(SettingError, match="latent must be a list of components; got"):
            poisson(latent).fit(table(), response())

    @pytest.mark.parametrize("component", ["AR1(t)", AR1, 3])
    def test_what_is_no_component(self, component):
        with pytest.raises(SettingError, match="latent must have components: IID, AR1"):
            poisson([component]).fit(table(), response())

    def test_effects_of_components_that_are_not_there(self):
        for component in ("AR1(x)", AR1("x"), 3):
            with pytest.raises(SettingError, match=r"component must be one of 'AR1\(t\)', 'Grouped\(g\)'; got"):
                fitted().latent_effects(component)
        with pytest.raises(SettingError, match="The model has no latent components"):
            poisson(()).fit(table()[["a", "b"]], response()).latent_effects("AR1(t)")
        with pytest.raises(SettingError, match="level must be less than 1"):
            fitted().latent_effects("AR1(t)", level=1.0)

    @pytest.mark.parametrize("most", [0, 1])
    def test_a_limit_on_components(self, most, tmp_path):
        limits = Limits(max_depth=0, max_latent=most)
        model = poisson(search=SearchConfig(n_populations=1, population_size=3, limits=limits))
        model.fit(table(), response())
        sizes = [sum("(" in name for name in features) for features in model.models_["features"]]
        assert max(sizes) == most
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), table())

    @pytest.mark.parametrize("prior", ["normal", CoefficientPrior("gaussian", variance=4.0)])
    def test_priors_of_slopes(self, prior, tmp_path):
        model = poisson(coefficient_prior=prior).fit(table(), response())
        again = saved_and_loaded(model, tmp_path / "model")
        assert_same(model, again, table())
        assert again.searches_[0].average.latent.models.slopes == model.searches_[0].average.latent.models.slopes

    def test_settings_that_do_not_go_together(self):
        with pytest.raises(SettingError, match="coefficient_prior must be 'auto' or one of"):
            poisson(coefficient_prior="g").fit(table(), response())
        with pytest.raises(SettingError, match="noise_floor is for models without latent components"):
            poisson(family="gaussian", noise_floor=0.1).fit(table(), response("gaussian"))
        with pytest.raises(SettingError, match="projection_weights must be"):
            poisson(projection_weights="bayesian").fit(table(), response())


class TestWeightsAndOffsets:
    def test_rows_without_weight_do_not_count(self):
        weights = np.ones(N)
        weights[30:] = 0.0
        with_zeros = poisson().fit(table(), response(), sample_weight=weights)
        without = poisson().fit(table()[:30], response()[:30])
        np.testing.assert_allclose(with_zeros.components_["probability"], without.components_["probability"], rtol=1e-6)
        np.testing.assert_allclose(with_zeros.predict(table()[:30]), without.predict(table()[:30]), rtol=1e-6)

    def test_weights_count_rows(self, tmp_path):
        weights = np.where(np.arange(N) < 5, 2.0, 1.0)
        weighted = poisson().fit(table(), response(), sample_weight=weights)
        repeated = poisson().fit(pd.concat([table(), table()[:5]]), np.append(response(), response()[:5]))
        np.testing.assert_allclose(weighted.predict(table()), repeated.predict(table()), rtol=1e-6)
        assert_same(weighted, saved_and_loaded(weighted, tmp_path / "model"), table())

    def test_an_offset(self, tmp_path):
        offset = table()["a"].to_numpy()
        model = poisson().fit(table(), response(), offset=offset)
        mean = model.predict(table(), offset=offset)
        np.testing.assert_allclose(model.predict(table(), offset=offset + 1.0), math.e * mean, rtol=1e-9)
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), table(), offset)

    @pytest.mark.parametrize("latent", [(), BOTH], ids=["alone", "with others"])
    @pytest.mark.parametrize("family", ["poisson", "gaussian"])
    def test_an_offset_that_can_be_chosen(self, latent, family, tmp_path):
        X, offset = table().drop(columns=["g", "t"] if not latent else []), 0.8 * table()["a"].to_numpy()
        model = poisson(latent, search=CHOSEN, family=family).fit(X, response(family), offset=offset)
        assert "offset" in model.components_["component"].tolist()
        again = saved_and_loaded(model, tmp_path / "model")
        assert_same(model, again, X, offset)
        assert again.search.select_offset

    def test_an_offset_to_choose_that_is_not_there(self):
        with pytest.raises(SettingError, match="select_offset is True, but there is no offset"):
            poisson(search=CHOSEN).fit(table(), response())


class TestHardCases:
    @pytest.mark.parametrize("kind", ["large", "large and alike"])
    def test_large_counts(self, kind):
        counts = {"large": np.round(1e6 * np.exp(0.1 * data()[1])), "large and alike": 1e6}[kind]
        y = np.broadcast_to(counts, N) + (response() if kind == "large and alike" else 0.0)
        np.testing.assert_allclose(poisson().fit(table(), y).predict(table()), y, rtol=0.02)

    def test_nothing_is_ever_counted(self):
        with pytest.raises(DataError, match="0"):
            poisson().fit(table(), np.zeros(N))

    def test_components_without_a_mode_are_in_no_model(self):
        class Nowhere(AR1):
            def log_prior(self, _):
                return -math.inf

        model = poisson([Nowhere("t"), Grouped("g")]).fit(table(), response())
        assert model.components_["component"].tolist() == ["Grouped(g)"]
        np.testing.assert_allclose(
            model.predict(table()),
            poisson([Grouped("g")]).fit(table().drop(columns="t"), response()).predict(table().drop(columns="t")),
        )

    def test_no_mode_at_all(self, monkeypatch):
        nothing = Integrated(-math.inf, (), (), 0.0)
        monkeypatch.setattr("bgnlm.latent.models.integrate", lambda *_, **__: nothing)
        with pytest.raises(DataError, match="No mode was found, not even of the model that has an intercept alone"):
            poisson().fit(table(), response())

    def test_a_median_model_without_a_mode(self, monkeypatch):
        """Its least probable parts are left out until there is one."""
        from bgnlm.latent.models import LatentModels
        from bgnlm.posterior import average

        nothing, integrated = Integrated(-math.inf, (), (), 0.0), LatentModels.integrated

        def only_without_components(self, columns, components):
            return nothing if components else integrated(self, columns, components)

        median_model = average.median_model

        def median(problem, posterior):
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(LatentModels, "integrated", only_without_components)
                return median_model(problem, posterior)

        monkeypatch.setattr("bgnlm.estimators.fitted.median_model", median)
        model = poisson([Grouped("g")]).fit(table(), response())
        assert "Grouped" in model.expression("best")
        assert "Grouped" not in model.expression("median")

    @pytest.mark.parametrize("n_rows", [2, 3])
    def test_few_rows(self, n_rows):
        model = poisson().fit(table()[:n_rows], response()[:n_rows])
        assert np.isfinite(model.predict(table())).all()


class TestWithoutAnEstimator:
    def score(self, latent, positions, family="poisson", **given):
        return log_marginal(response(family), family=family, latent=latent, positions=positions, **given)

    def test_the_order_of_the_rows_does_not_matter(self):
        order = np.random.default_rng(5).permutation(N)
        there = log_marginal(response()[order], family="poisson", latent=BOTH, positions=table().iloc[order])
        assert there == pytest.approx(self.score(BOTH, table()), rel=1e-10)

    @pytest.mark.parametrize(
        "labels", [lambda g: g.to_numpy(str), lambda g: g.astype("category"), lambda g: g.str[1:].astype(int)]
    )
    def test_labels_of_any_kind(self, labels):
        expected = self.score([Grouped("g")], {"g": list(table()["g"])})
        assert self.score([Grouped("g")], {"g": labels(table()["g"])}) == pytest.approx(expected, rel=1e-12)

    @pytest.mark.parametrize("kind", [AR1, RW1, OU, IID, Grouped])
    def test_one_position_says_nothing(self, kind):
        none = self.score((), None)
        assert self.score([kind("t")], {"t": np.ones(N)}) == pytest.approx(none, abs=0.5)

    @pytest.mark.parametrize(
        ("latent", "values", "message"),
        [
            ([AR1("t")], [*range(N - 1), np.nan], r"AR1\(t\) needs a value in every row; row 39 has none"),
            ([AR1("t")], [*range(N - 1), None], r"AR1\(t\) needs a value in every row; row 39 has none"),
            ([IID("t")], ["a"] * (N - 1) + [None], r"IID\(t\) needs a value in every row; row 39 has none"),
            ([AR1("t")], [pd.NaT, *range(N - 1)], r"AR1\(t\) needs a value in every row; row 0 has none"),
            ([IID("t")], [pd.NA, *range(N - 1)], r"IID\(t\) needs a value in every row; row 0 has none"),
            ([AR1("t")], np.array(["NaT"] * N, "M8[D]"), r"AR1\(t\) needs a value in every row; row 0 has none"),
            ([AR1("t")], np.arange(N).astype("M8[D]"), r"AR1\(t\) is along positions, which must be numbers"),
            ([AR1("t")], [np.inf, *range(N - 1)], r"AR1\(t\) needs a finite value in every row; got inf in row 0"),
            ([AR1("t")], ["a"] * N, r"AR1\(t\) is along positions, which must be numbers; got 'a' in row 0"),
            ([AR1("t")], [str(k) for k in range(N)], r"which must be numbers; got '0' in row 0"),
            (
                [Grouped("t")],
                np.array(["a", *range(N - 1)], object),
                "labels of .* all texts or all numbers; got 0 in row 1",
            ),
            ([Grouped("t")], np.ones(N, complex), "labels of .* all texts or all numbers; got"),
            ([AR1("t")], np.ones((N, 2)), r"needs one value for each row; got shape \(40, 2\)"),
            ([AR1("t")], np.ones(3), "same number of rows; got 3 and 40"),
            ([AR1("s")], np.ones(N), "positions has no column 's'; it has t"),
            ([Grouped("t", slope="s")], np.ones(N), "positions has no column 's'; it has t"),
        ],
        ids=lambda value: None if isinstance(value, list | np.ndarray) else value[:30],
    )
    def test_positions_that_are_refused(self, latent, values, message):
        with pytest.raises(DataError, match=message):
            self.score(latent, {"t": values})

    def test_positions_are_needed(self):
        with pytest.raises(DataError, match="positions must have the column 't' of AR1; got None"):
            self.score([AR1("t")], None)

    def test_a_slope_that_is_a_text(self):
        with pytest.raises(DataError, match=r"The slope of Grouped\(t, slope=g\) must be numbers; got 's\d' in row 0"):
            self.score([Grouped("t", slope="g")], table())

    def test_rows_without_weight_do_not_count(self):
        weights = (np.arange(N) < 30).astype(float)
        there = self.score(BOTH, table(), sample_weight=weights)
        here = log_marginal(response()[:30], family="poisson", latent=BOTH, positions=table()[:30])
        assert there == pytest.approx(here, abs=1e-6)


class TestFiles:
    def test_every_kind_of_component_with_its_priors(self, tmp_path):
        latent = (
            IID("g", Gamma(2.0, 0.5)),
            AR1("t", Gamma(1.0, 0.01), Normal(1.0, 0.3)),
            RW1("t", Gamma(1.0, 0.02)),
            OU("u", Gamma(1.0, 0.03), Normal(-1.0, 0.4)),
            Grouped("u", slope="a", precision_prior=Gamma(1.0, 0.04)),
        )
        X = table().assign(u=np.sqrt(np.arange(N) // 2))
        search = SearchConfig(n_populations=1, population_size=2, limits=Limits(max_depth=0, max_latent=1))
        model = poisson(latent, search=search).fit(X, response())
        again = saved_and_loaded(model, tmp_path / "model")
        assert again.latent == latent
        assert again.latent_columns_.fields == latent
        new = X.assign(t=X["t"] + 0.25, u=X["u"] - 0.1, g="nobody")
        for rows in (X, new):
            assert_same(model, again, rows)
        assert_same(model, saved_and_loaded(again, tmp_path / "again"), new)

    def test_a_search_with_features(self, tmp_path):
        model = fitted(BOTH, "poisson", QUICK)
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), table())

    @pytest.mark.parametrize("what", ["component", "prior"])
    def test_classes_of_ones_own_cannot_be_saved(self, what, tmp_path):
        class Own(AR1):
            pass

        class OwnGamma(Gamma):
            pass

        field = Own("t") if what == "component" else AR1("t", OwnGamma())
        model = poisson([field, Grouped("g")]).fit(table(), response())
        with pytest.raises(
            ModelFileError, match=r"\(t\) cannot be saved: its class, or that of one of its priors, is y"
        ):
            model.save(tmp_path / "model")
        assert not list(tmp_path.iterdir())

    def test_texts_of_any_kind(self, tmp_path):
        names = {"s0": "", "s1": "`'\"\n", "s2": "é😀", "s3": " ", "s4": "None"}
        X = table().assign(g=table()["g"].map(names)).rename(columns={"g": "a group, slope=a"})
        model = poisson([Grouped("a group, slope=a")]).fit(X, response())
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), X)

    def test_what_is_loaded_can_be_rescored_and_fitted(self, tmp_path):
        again = saved_and_loaded(fitted(), tmp_path / "model")
        mine, theirs = (each.rescore(table(), response(), penalty=FREE) for each in (fitted(), again))
        assert mine.models_.equals(theirs.models_)
        np.testing.assert_array_equal(again.fit(table(), response()).predict(table()), fitted().predict(table()))

    @pytest.mark.parametrize(
        ("name", "change"),
        [
            ("latent.0.place", lambda array: array + 1),
            ("latent.0.place", lambda array: np.zeros_like(array)),
            ("latent.0.place", lambda array: array[:-1]),
            ("latent.0.positions", lambda array: array[::-1]),
            ("latent.0.positions", lambda array: array[:0]),
            ("latent.0.positions", lambda array: np.append(array, 1e300)),
            ("latent.1.loading", lambda array: array * np.nan),
            ("latent.1.loading", lambda array: array[1:]),
            ("latent.2.place", lambda array: array[::-1]),
            ("0.latent.y", lambda array: -array),
            ("0.latent.y", lambda array: array[1:]),
            ("0.latent.y", lambda array: array + 0.5),
            ("0.latent.weights", lambda array: -array),
            ("0.latent.weights", lambda array: 0.0 * array),
            ("0.latent.offset", lambda array: array[1:]),
            ("0.average.columns", lambda array: array[1:]),
            ("0.average.columns", lambda array: array[:, 1:]),
            ("0.average.hyperparameters", lambda array: array[1:]),
            ("0.average.hyperparameters", lambda array: array + 100.0),
            ("0.average.components", lambda array: array + 3),
            ("0.average.components", lambda array: -array - 1),
            ("0.average.component_starts", lambda array: array[1:]),
            ("0.average.component_starts", lambda array: array + 1),
        ],
    )
    def test_arrays_that_do_not_fit(self, name, change, tmp_path):
        content, arrays = small_files()[-2]
        with np.errstate(all="ignore"):
            assert refused_or_usable(tmp_path / "model", content, {**arrays, name: change(arrays[name])})

    @pytest.mark.parametrize(
        ("part", "key", "value"),
        [
            ("search", "scale", 0.0),
            ("search", "scale", "1"),
            ("search", "selects_offset", 1),
            ("search", "max_components", -1),
            ("search", "max_components", 0),
            ("search", "slopes", {"precision": -1.0, "hyperprior": {"object": "Gamma"}, "standardised": True}),
            ("search", "slopes", {"precision": 1.0, "hyperprior": {"object": "Normal"}, "standardised": True}),
            ("component", "labels", ["green", "red"]),
            ("component", "component", {"object": "AR1", "column": "nowhere"}),
            ("component", "component", {"object": "Gamma"}),
            ("component", "component", {"object": "SearchConfig"}),
            ("component", "component", "AR1(weight)"),
            ("none", "latent", []),
            ("none", "latent", None),
        ],
    )
    def test_values_that_do_not_fit(self, part, key, value, tmp_path):
        content, arrays = small_files()[-2]
        other = copy.deepcopy(content)
        place = {"search": other["searches"][0]["latent"], "component": other["latent"][0], "none": other}[part]
        place[key] = value
        assert refused_or_usable(tmp_path / "model", other, arrays)


class TestScikitLearn:
    def test_clone_pickle_and_copy(self):
        model = fitted()
        assert clone(model).latent == BOTH
        for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            assert_same(model, other, table())

    def test_pickles_do_not_grow_with_use(self):
        model = poisson([Grouped("g")]).fit(table(), response())
        size = len(pickle.dumps(model))
        model.predict(table())
        assert len(pickle.dumps(model)) == size

    def test_grid_search(self):
        grid = {"latent": [[Grouped("g")], [Grouped("g", precision_prior=Gamma(1.0, 0.1))]]}
        small = SearchConfig(n_populations=1, population_size=2, limits=Limits(max_depth=0))
        search = GridSearchCV(poisson(search=small), grid, cv=2).fit(table(), response())
        assert search.best_params_["latent"] in grid["latent"]
        assert np.isfinite(search.cv_results_["mean_test_score"]).all()

    def test_set_output(self):
        model = clone(fitted()).set_output(transform="pandas").fit(table(), response())
        columns = model.transform(table())
        assert columns.columns.tolist() == model.get_feature_names_out().tolist()
        assert all("(t)" not in name and "(g)" not in name for name in columns.columns)

    def test_chains_side_by_side(self):
        one, other = (poisson(n_chains=2, n_jobs=n_jobs).fit(table(), response()) for n_jobs in (1, 2))
        assert_same_but_for_seconds(one, other)


class TestGoingOn:
    def test_warm_start(self):
        one, other = (poisson(search=QUICK, warm_start=True).fit(table(), response()) for _ in range(2))
        other = pickle.loads(pickle.dumps(other))
        for model in (one, other):
            model.fit(table(), response())
            assert len(model.diagnostics_.history[0]) == 4
        assert_same_but_for_seconds(one, other)

    @pytest.mark.parametrize(
        ("settings", "columns", "message"),
        [
            ({}, {"t": lambda t: t[::-1]}, r"latent was \['AR1\(t\) .* and is"),
            ({}, {"g": lambda g: g.str[:1]}, r"latent was .*'Grouped\(g\) .* and is"),
            ({"latent": [AR1("t", Gamma(1.0, 0.1)), Grouped("g")]}, {}, r"latent was \['AR1\(t\) .* and is"),
            ({"latent": [AR1("t"), Grouped("g", slope="a")]}, {}, r"latent was .*and is .*'Grouped\(g, slope=a\)"),
        ],
        ids=["positions", "groups", "prior", "component"],
    )
    def test_only_with_the_same_components(self, settings, columns, message, tmp_path):
        X = table().assign(**{name: change(table()[name]).to_numpy() for name, change in columns.items()})
        model = poisson(warm_start=True, search=TINY).fit(table(), response())
        with pytest.raises(DataError, match=message):
            model.set_params(**settings).fit(X, response())
        poisson(checkpoint=tmp_path / "run").fit(table(), response())
        with pytest.raises(CheckpointError, match=message):
            poisson(checkpoint=tmp_path / "run").set_params(**settings).fit(X, response())

    def test_a_checkpoint(self, tmp_path):
        short = SearchConfig(n_populations=2, population_size=4, n_candidates=20, max_seconds=0.0)
        poisson(checkpoint=tmp_path / "run", search=short).fit(table(), response())
        model = poisson(checkpoint=tmp_path / "run", search=QUICK).fit(table(), response())
        assert len(model.diagnostics_.history[0]) == 2
        assert_same_but_for_seconds(model, fitted(BOTH, "poisson", QUICK))


def assert_same_but_for_seconds(one, other):
    np.testing.assert_array_equal(one.predict(table()), other.predict(table()))
    assert one.models_.equals(other.models_)
    assert one.components_.equals(other.components_)


class TestRescore:
    def test_the_same_priors_change_nothing(self):
        assert_same_but_for_seconds(fitted().rescore(table(), response()), fitted())

    def test_other_priors_give_what_a_search_with_them_gives(self):
        settings = {"coefficient_prior": "normal", "penalty": FREE}
        np.testing.assert_allclose(
            fitted().rescore(table(), response(), **settings).predict(table()),
            poisson(**settings).fit(table(), response()).predict(table()),
            rtol=1e-6,
        )

    def test_limits_hold(self):
        limits = Limits(max_depth=0, max_latent=1)
        model = poisson(search=CHOSEN).fit(table(), response(), offset=table()["b"].to_numpy())
        model.set_params(search=SearchConfig(n_populations=1, population_size=3, limits=limits, select_offset=True))
        found = model.rescore(table(), response(), offset=table()["b"].to_numpy()).models_["features"]
        assert max(sum("(" in name for name in features) for features in found) == 1
        assert any("offset" in features and "AR1(t)" in features for features in found)

    @pytest.mark.parametrize("column", ["t", "g"])
    def test_only_with_the_training_data(self, column):
        for values in (table()[column].to_numpy()[::-1], ["x"] * N if column == "g" else table()["t"] + 0.5):
            with pytest.raises(DataError, match="rescore needs the training data"):
                fitted().rescore(table().assign(**{column: values}), response())

    def test_slopes_are_training_data_too(self):
        model = poisson([Grouped("g", slope="t"), AR1("t")]).fit(table(), response())
        with pytest.raises(DataError, match="rescore needs the training data"):
            model.rescore(table().assign(t=2 * table()["t"]), response())

    def test_classes(self):
        labels = np.digitize(response(), [2.0, 6.0])
        other = classified(3).rescore(table(), labels, penalty=FREE)
        assert other.components_["probability"].min() > classified(3).components_["probability"].max()
        assert np.isfinite(other.predict_proba(table())).all()
