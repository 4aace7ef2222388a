"""Fits that go on after an end, a stop or another prior: warm starts, checkpoints, callbacks, `rescore`."""

import os
import pickle
import signal
from contextlib import nullcontext
from functools import cache

import numpy as np
import pytest

import bgnlm
from bgnlm import BGNLMClassifier, BGNLMRegressor, CoefficientPrior, SearchConfig
from bgnlm.errors import CheckpointError, DataError, SearchStoppedWarning, SettingError
from bgnlm.estimators import base
from bgnlm.search import Limits, ModelPrior

QUICK = SearchConfig(n_populations=3, population_size=8, n_candidates=40)
# All linear models, none left out for being improbable.
LINEAR = SearchConfig(n_populations=2, window=1000.0, limits=Limits(max_depth=0))
N = 40


def quick(**settings):
    return BGNLMRegressor(**{"search": QUICK, "n_chains": 1, "random_state": 0, **settings})


@cache
def inputs():
    return np.random.default_rng(41).uniform(0.5, 2.0, size=(N, 3))


@cache
def response(family="gaussian"):
    rng = np.random.default_rng(42)
    eta = inputs()[:, 0] * inputs()[:, 1] - 1.0
    return {
        "gaussian": lambda: eta + 0.5 * rng.normal(size=N),
        "binomial": lambda: (rng.random(N) < 1.0 / (1.0 + np.exp(-eta))).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "gamma": lambda: rng.gamma(5.0, np.exp(eta) / 5.0),
        "negative_binomial": lambda: rng.poisson(np.exp(eta) * rng.gamma(3.0, 1.0 / 3.0, N)).astype(float),
    }[family]()


@cache
def fitted():
    return quick().fit(inputs(), response())


def populations(model):
    return [len(history) for history in model.diagnostics_.history]


class TestWarmStart:
    def test_a_second_fit_goes_on(self):
        X, y = inputs(), response()
        model = quick(warm_start=True, n_chains=2).fit(X, y)
        first = model.models_
        mass = model.posterior_.log_mass
        assert populations(model) == [3, 3]
        model.fit(X, y)
        assert populations(model) == [6, 6]
        assert model.posterior_.log_mass >= mass
        assert set(first["features"][:3]) <= set(model.models_["features"])
        model.set_params(search=SearchConfig(n_populations=1, population_size=8, n_candidates=40)).fit(X, y)
        assert populations(model) == [7, 7]
        assert model.diagnostics_.endings == ("complete",) * 2

    def test_it_is_deterministic_and_survives_a_pickle(self):
        X, y = inputs(), response()
        one, other = (quick(warm_start=True, n_chains=2).fit(X, y) for _ in range(2))
        other = pickle.loads(pickle.dumps(other))
        one.fit(X, y)
        other.fit(X, y)
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
        assert one.features_.equals(other.features_)

    def test_chains_may_be_added_and_left_out(self):
        X, y = inputs(), response()
        model = quick(warm_start=True).fit(X, y)
        model.set_params(n_chains=3).fit(X, y)
        assert populations(model) == [6, 6, 6]
        model.set_params(n_chains=2).fit(X, y)
        assert populations(model) == [9, 9]

    def test_three_classes_go_on(self):
        X, labels = inputs(), np.digitize(inputs()[:, 0], [1.0, 1.5])
        model = BGNLMClassifier(search=QUICK, n_chains=1, random_state=0, warm_start=True).fit(X, labels).fit(X, labels)
        assert [len(diagnostics.history[0]) for diagnostics in model.diagnostics_] == [6, 6, 6]
        expected = model.predict(X)
        with pytest.raises(DataError, match="there are other classes now"):
            model.fit(X, labels > 0)
        with pytest.raises(DataError, match="y has other values"):
            model.fit(X, labels[::-1])
        np.testing.assert_array_equal(model.predict(X), expected)

    @pytest.mark.parametrize(
        ("settings", "change", "message"),
        [
            ({}, {"X": lambda X: X[::-1]}, "X has other values"),
            ({}, {"X": lambda X: X[:, :2]}, r"X has other values.*columns was"),
            ({}, {"y": lambda y: y + 1.0}, "y has other values"),
            ({}, {"sample_weight": np.arange(1.0, N + 1)}, "sample_weight has other values"),
            ({}, {"offset": np.ones(N)}, "offset has other values"),
            ({"penalty": "aic"}, {}, "penalty was 'bic' and is 'aic'"),
            ({"coefficient_prior": "g"}, {}, "coefficient_prior was .*robust.* and is .*'g'"),
            ({"max_depth": 2}, {}, "limits.max_depth was 5 and is 2"),
            ({"transforms": ["sin"]}, {}, "transforms was .* and is"),
            ({"keep": ["x1*x3"]}, {}, "keep was .* and is"),
            ({"noise_floor": 0.1}, {}, "noise_floor was 0.0 and is 0.1"),
        ],
        ids=lambda value: value if isinstance(value, str) else "",
    )
    def test_other_data_and_settings_are_refused(self, settings, change, message):
        X, y = inputs(), response()
        model = quick(warm_start=True).fit(X, y)
        expected, before = model.predict(X), model.get_params()
        data = {"X": X, "y": y, **{key: change[key]({"X": X, "y": y}[key]) for key in change if key in "Xy"}}
        rest = {key: value for key, value in change.items() if key not in "Xy"}
        with pytest.raises(DataError, match=rf"(?s)warm_start=True goes on.*{message}.*Use warm_start=False"):
            model.set_params(**settings).fit(**data, **rest)
        np.testing.assert_array_equal(model.predict(X), expected)
        # As it was, it still goes on.
        model.set_params(**before).fit(X, y)
        assert populations(model) == [6]

    def test_what_may_change(self):
        X, y = inputs(), response()
        model = quick(warm_start=True).fit(X, y)
        model.set_params(n_jobs=2, max_seconds=100.0, verbose=0, random_state=5).fit(X, y)
        assert populations(model) == [6]

    def test_a_fit_that_fails_leaves_the_chains_as_they_were(self, monkeypatch):
        X, y = inputs(), response()
        model, other = quick(warm_start=True).fit(X, y), quick(warm_start=True).fit(X, y)

        def fail(_):
            raise ZeroDivisionError

        with monkeypatch.context() as patch:
            patch.setattr("bgnlm.estimators.base.progress_of", lambda *_: nullcontext(fail))
            with pytest.raises(ZeroDivisionError):
                model.fit(X, y)
        np.testing.assert_array_equal(model.predict(X), other.predict(X))
        assert [len(history) for history in model.fit(X, y).diagnostics_.history] == [
            len(history) for history in other.fit(X, y).diagnostics_.history
        ]
        assert model.features_.equals(other.features_)

    def test_it_begins_anew_without(self, tmp_path):
        X, y = inputs(), response()
        model = quick(warm_start=True).fit(X, y).set_params(warm_start=False).fit(X, y)
        assert populations(model) == [3]
        np.testing.assert_array_equal(model.predict(X), fitted().predict(X))
        model.set_params(warm_start=True).fit(X, y)  # there is nothing to go on with
        assert populations(model) == [3]
        with pytest.raises(SettingError, match="has no checkpoint"):
            model.set_params(checkpoint=tmp_path).fit(X, y)


class TestCheckpoint:
    def test_the_same_fit_ends_with_the_same_result(self, tmp_path):
        X, y = inputs(), response()
        for checkpoint in (tmp_path / "here", str(tmp_path / "here")):
            model = quick(checkpoint=checkpoint).fit(X, y)
            np.testing.assert_array_equal(model.predict(X), fitted().predict(X))
        with pytest.raises(CheckpointError, match="y has other values"):
            model.fit(X, y + 1.0)
        np.testing.assert_array_equal(model.predict(X), fitted().predict(X))

    def test_each_class_has_a_folder(self, tmp_path):
        X, labels = inputs(), np.digitize(inputs()[:, 0], [1.0, 1.5])
        settings = {"search": QUICK, "n_chains": 1, "random_state": 0}
        model = BGNLMClassifier(checkpoint=tmp_path, **settings).fit(X, labels)
        assert sorted(path.name for path in tmp_path.iterdir()) == ["class-0", "class-1", "class-2"]
        again = BGNLMClassifier(checkpoint=tmp_path, **settings).fit(X, labels)
        np.testing.assert_array_equal(again.predict_proba(X), model.predict_proba(X))
        plain = BGNLMClassifier(**settings).fit(X, labels)
        np.testing.assert_array_equal(again.predict_proba(X), plain.predict_proba(X))


class Recorder:
    """A callback of scikit-learn that records what happens, and asks to stop after some populations."""

    def __init__(self, stop_after=np.inf, error=None):
        self.stop_after = stop_after
        self.error = error
        self.events = []
        self.n_populations = 0

    def setup(self, estimator, context):  # noqa: ARG002
        self.events.append(("setup", context.max_subtasks))

    def teardown(self, estimator, context):  # noqa: ARG002
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context):  # noqa: ARG002
        self.events.append(f"begin {context.task_name}")

    def on_fit_task_end(self, estimator, context):  # noqa: ARG002
        self.events.append(f"end {context.task_name}")
        self.n_populations += context.task_name == "population"
        is_over = context.task_name == "population" and self.n_populations >= self.stop_after
        if is_over and self.error is not None:
            raise self.error
        return is_over


@pytest.fixture
def callbacks():
    return pytest.importorskip("sklearn.callback", reason="this version of scikit-learn has no callbacks")


@pytest.mark.usefixtures("callbacks")
class TestCallbacks:
    def test_they_see_every_population(self):
        recorder = Recorder()
        model = quick(n_chains=2).set_callbacks(recorder).fit(inputs(), response())
        populations = ["begin population", "end population"] * 6
        assert recorder.events == [("setup", 6), "begin fit", *populations, "end fit", "teardown"]
        np.testing.assert_array_equal(
            model.predict(inputs()), quick(n_chains=2).fit(inputs(), response()).predict(inputs())
        )

    def test_the_number_of_populations_may_be_unknown(self):
        config = SearchConfig(n_populations=2, population_size=4, n_candidates=20, engine="mjmcmc", min_models=10_000)
        recorder = Recorder()
        quick(search=config).set_callbacks(recorder).fit(inputs(), response())
        assert recorder.events[0] == ("setup", None)
        assert recorder.n_populations > 2

    @pytest.mark.parametrize("error", [None, KeyboardInterrupt()])
    def test_one_that_asks_to_stop_ends_the_search(self, error):
        recorder, X = Recorder(stop_after=2, error=error), inputs()
        with pytest.warns(SearchStoppedWarning, match=r"populations explored by each chain: \[2, 0\]"):
            model = quick(n_chains=2).set_callbacks(recorder).fit(X, response())
        assert recorder.events[-1] == "teardown"
        assert model.diagnostics_.endings == ("interrupted",)
        assert "did not come to their end (interrupted)" in model.summary()
        assert np.isfinite(model.predict_interval(X)).all()
        assert len(model.features_)

    def test_an_error_of_a_callback_is_the_callers(self):
        recorder = Recorder(stop_after=2, error=ZeroDivisionError())
        with pytest.raises(ZeroDivisionError):
            quick().set_callbacks(recorder).fit(inputs(), response())
        assert recorder.events[-1] == "teardown"

    def test_the_search_goes_on_from_a_checkpoint(self, tmp_path):
        X, y = inputs(), response()
        model = quick(n_chains=2, checkpoint=tmp_path / "here")
        with pytest.warns(SearchStoppedWarning, match="The checkpoint has it too"):
            model.set_callbacks(Recorder(stop_after=2)).fit(X, y)
        recorder = Recorder()
        model.set_callbacks(recorder).fit(X, y)
        assert recorder.n_populations == 4
        whole = quick(n_chains=2).fit(X, y)
        np.testing.assert_array_equal(model.predict(X), whole.predict(X))
        assert model.features_.equals(whole.features_)


class TestRescore:
    @pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "gamma", "negative_binomial"])
    @pytest.mark.parametrize(
        "change",
        [
            {"penalty": ModelPrior(penalty="aic", complexity="oc+1")},
            {"penalty": 0.0},
            {"coefficient_prior": "g"},
            {"coefficient_prior": CoefficientPrior("hyper-g", a=3.5), "penalty": 1.0},
        ],
        ids=str,
    )
    def test_all_linear_models_have_the_probabilities_of_a_new_fit(self, family, change):
        X, y = inputs(), response(family)
        model = quick(family=family, search=LINEAR).fit(X, y)
        assert len(model.models_) == 8
        one, other = model.rescore(X, y, **change), quick(family=family, search=LINEAR, **change).fit(X, y)
        assert [set(names) for names in one.models_["features"]] == [set(names) for names in other.models_["features"]]
        assert one.models_["probability"].tolist() == pytest.approx(other.models_["probability"].tolist(), abs=1e-4)
        assert one.posterior_.log_mass == pytest.approx(other.posterior_.log_mass, abs=1e-4)
        for using in ("average", "best", "median"):
            assert one.predict(X, using=using) == pytest.approx(other.predict(X, using=using), rel=1e-4)
        assert one.features_["sd"].tolist() == pytest.approx(other.features_["sd"].tolist(), rel=1e-3, abs=1e-6)
        assert one.get_params() == other.get_params()
        assert one.summary().splitlines()[:2] == other.summary().splitlines()[:2]

    def test_against_the_enumeration(self):
        X, y = inputs(), response()
        model = quick(search=LINEAR).fit(X, y)
        for name in ("robust", "jeffreys", "bic", "eb-local", "zellner-siow"):
            exact = bgnlm.enumerate_models(y, X, coefficient_prior=name)
            probabilities = dict(zip(exact.names, exact.inclusion_probabilities, strict=True))
            table = model.rescore(X, y, coefficient_prior=name, penalty=0.0).features_
            expected = [probabilities[text] for text in table["expression"]]
            assert table["probability"].tolist() == pytest.approx(expected, abs=1e-7), name

    def test_the_same_prior_changes_nothing(self):
        X, y, model = inputs(), response(), fitted()
        for again in (model.rescore(X, y), model.rescore(X, y, penalty="bic"), model.rescore(X, y, max_models=1)):
            assert again is not model
            np.testing.assert_array_equal(again.predict(X), model.predict(X))
            assert again.features_.equals(model.features_)
            assert again.models_.equals(model.models_)
        # By name it is the same prior, and nothing is scored again.
        np.testing.assert_array_equal(model.rescore(X, y, coefficient_prior="robust").predict(X), model.predict(X))

    def test_there_and_back(self):
        X, y, model = inputs(), response(), fitted()
        back = model.rescore(X, y, coefficient_prior="g", penalty="aic").rescore(
            X, y, coefficient_prior="auto", penalty="bic"
        )
        assert back.models_["probability"].tolist() == pytest.approx(model.models_["probability"].tolist(), abs=1e-8)
        assert back.predict(X) == pytest.approx(model.predict(X))
        assert model.penalty == "bic"

    def test_a_small_change_of_a_parameter_counts(self):
        X, y = inputs(), response()
        model = quick(search=LINEAR, coefficient_prior=CoefficientPrior("g", g=1000.0)).fit(X, y)
        other = model.rescore(X, y, coefficient_prior=CoefficientPrior("g", g=1000.0001))
        assert other.posterior_.log_mass != model.posterior_.log_mass
        assert other.posterior_.log_mass == pytest.approx(model.posterior_.log_mass, abs=1e-4)

    def test_another_link_counts(self):
        X, y = inputs(), response("binomial")
        model = quick(family="binomial", search=LINEAR).fit(X, y)
        probit = model.set_params(link="probit").rescore(X, y)
        fresh = quick(family="binomial", link="probit", search=LINEAR).fit(X, y)
        assert probit.posterior_.log_mass == pytest.approx(fresh.posterior_.log_mass, abs=1e-4)
        assert probit.predict(X) == pytest.approx(fresh.predict(X), rel=1e-5)

    def test_fewer_models(self):
        X, y, model = inputs(), response(), fitted()
        few = model.rescore(X, y, coefficient_prior="g", max_models=3)
        assert len(few.models_) == 3
        assert set(few.models_["features"]) == set(model.models_["features"][:3])
        assert few.diagnostics_.n_models == 3

    def test_what_a_prior_does_not_allow_is_left_out(self):
        X, y, model = inputs(), response(), fitted()
        small = model.rescore(X, y, penalty=ModelPrior(max_model_size=1))
        assert small.models_["size"].max() == 1
        linear = model.rescore(X, y, penalty=ModelPrior(complexity=lambda f: 0.0 if "*" not in str(f) else np.inf))
        assert not [text for text in linear.features_["expression"] if "*" in text]
        assert np.isfinite(linear.predict_interval(X)).all()
        # The model without features is too improbable to be among those that were kept.
        exact = quick().fit(X, X[:, 0] * X[:, 1])
        with pytest.raises(SettingError, match="they allow none"):
            exact.rescore(X, X[:, 0] * X[:, 1], penalty=ModelPrior(complexity=lambda _: np.inf))

    def test_other_data_are_refused(self):
        model = quick(search=LINEAR).fit(inputs(), response())
        for X, y in ((inputs()[:10], response()[:10]), (inputs(), response() + 1.0)):
            with pytest.raises(DataError, match="rescore needs the training data"):
                model.rescore(X, y, penalty="aic")

    def test_weights_and_offset_are_part_of_the_data(self):
        X, y = inputs(), response()
        weights, offset = np.linspace(0.5, 1.5, N), np.sin(np.arange(N))
        model = quick(search=LINEAR).fit(X, y, sample_weight=weights, offset=offset)
        again = model.rescore(X, y, coefficient_prior="g", sample_weight=weights, offset=offset)
        fresh = quick(search=LINEAR, coefficient_prior="g").fit(X, y, sample_weight=weights, offset=offset)
        assert again.predict(X, offset=offset) == pytest.approx(fresh.predict(X, offset=offset))

    def test_classes(self):
        X, labels = inputs(), np.digitize(inputs()[:, 0] + 0.3 * response(), [1.0, 1.5])
        settings = {"search": LINEAR, "n_chains": 1, "random_state": 0}
        model = BGNLMClassifier(**settings).fit(X, labels)
        one = model.rescore(X, labels, coefficient_prior="bic", penalty=0.0)
        other = BGNLMClassifier(coefficient_prior="bic", penalty=0.0, **settings).fit(X, labels)
        np.testing.assert_array_equal(one.classes_, model.classes_)
        assert one.predict_proba(X) == pytest.approx(other.predict_proba(X), rel=1e-5)

    def test_chains_are_not_compared_any_more(self):
        X, y = inputs(), response()
        again = quick(n_chains=2).fit(X, y).rescore(X, y, penalty="aic")
        assert np.isnan(again.diagnostics_.disagreement).all()
        assert len(again.diagnostics_.history) == 2
        assert "chains disagree" not in again.summary()
        assert "nan" not in again.summary()

    @pytest.mark.parametrize(
        ("arguments", "error", "message"),
        [
            ({"penalty": -1}, SettingError, "penalty must be 0 or more"),
            ({"coefficient_prior": "x"}, SettingError, "coefficient_prior must be"),
            ({"max_models": 0}, SettingError, "max_models must be 1 or more"),
            ({"y": np.ones(3)}, DataError, f"inconsistent numbers of rows: {N} and 3"),
            ({"X": np.ones((N, 2))}, DataError, "X has 2 features"),
        ],
        ids=str,
    )
    def test_arguments_that_are_not_allowed(self, arguments, error, message):
        with pytest.raises(error, match=message):
            fitted().rescore(**{"X": inputs(), "y": response(), **arguments})


class TestInterrupts:
    def test_one_while_results_are_put_together_costs_nothing(self, monkeypatch):
        """Ctrl-C between the end of the search and the last fit."""

        usual = base.fitted

        def interrupted(result):
            os.kill(os.getpid(), signal.SIGINT)
            return usual(result)

        monkeypatch.setattr("bgnlm.estimators.base.fitted", interrupted)
        before = signal.getsignal(signal.SIGINT)
        model = quick().fit(inputs(), response())
        assert np.isfinite(model.predict(inputs())).all()
        assert signal.getsignal(signal.SIGINT) is before

    def test_the_second_is_as_usual(self, monkeypatch):
        def interrupted(_):
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

        monkeypatch.setattr("bgnlm.estimators.base.fitted", interrupted)
        with pytest.raises(KeyboardInterrupt):
            quick().fit(inputs(), response())
