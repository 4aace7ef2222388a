"""`BGNLMClassifier`: classes of every type, two of them and more."""

import itertools
import pickle
from contextlib import contextmanager
from functools import cache

import numpy as np
import pytest
import sklearn
from sklearn.exceptions import DataConversionWarning
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bgnlm import BGNLMClassifier, BGNLMRegressor, SearchConfig
from bgnlm.errors import DataError, MissingOffsetWarning, ModelStatusWarning, SearchStoppedWarning, SettingError

QUICK = SearchConfig(n_populations=3, population_size=6, n_candidates=30)
N = 60
LINKS = ["logit", "probit", "cloglog"]


def quick(**settings):
    return BGNLMClassifier(**{"search": QUICK, "n_chains": 1, "random_state": 0, **settings})


@cache
def inputs():
    return np.random.default_rng(21).normal(size=(N, 3))


@cache
def is_second():
    noise = np.random.default_rng(22).logistic(size=N)
    return 2.0 * inputs()[:, 0] * inputs()[:, 1] + 0.5 * noise > 0


@cache
def thirds():
    noise = np.random.default_rng(23).normal(size=N)
    return np.digitize(inputs()[:, 0] + 0.4 * noise, [-0.4, 0.5])


@cache
def two(link=None):
    return quick(link=link).fit(inputs(), is_second())


@cache
def three():
    return quick().fit(inputs(), np.array(["low", "middle", "high"])[thirds()])


CLASSES = {
    "texts": np.array(["no", "yes"]),
    "objects": np.array(["no", "yes"], dtype=object),
    "Booleans": np.array([False, True]),
    "whole numbers": np.array([-7, 3]),
    "bytes": np.array([0, 255], dtype=np.uint8),
    "large numbers": np.array([0, 2**63], dtype=np.uint64),
    "floats": np.array([1.0, 2.0]),
    "odd texts": np.array(["", "\n`'\"\u00e9\U0001f600"]),
}


@pytest.mark.parametrize("kind", CLASSES)
def test_classes_of_any_type(kind):
    classes, X = CLASSES[kind], inputs()
    labels = classes[is_second().astype(int)]
    model = quick().fit(X, labels)
    np.testing.assert_array_equal(model.classes_, classes)
    assert model.classes_.dtype == classes.dtype
    np.testing.assert_array_equal(model.predict_proba(X), two().predict_proba(X))
    predicted = model.predict(X)
    assert predicted.dtype == classes.dtype
    np.testing.assert_array_equal(predicted, classes[two().predict(X).astype(int)])
    assert set(model.sample_predictive(X, 3, random_state=0).ravel().tolist()) <= set(classes.tolist())
    assert model.score(X, labels) == two().score(X, is_second()) > 0.7


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_labels_of_other_libraries(library):
    module = pytest.importorskip(library)
    labels = CLASSES["texts"][is_second().astype(int)].tolist()
    series = module.array(labels) if library == "pyarrow" else module.Series(labels)
    kinds = [series]
    if library == "pandas":
        kinds += [series.astype("category"), series.astype("string")]
    if library == "polars":
        kinds.append(series.cast(module.Categorical))
    for given in kinds:
        model = quick().fit(inputs(), given)
        assert model.classes_.tolist() == ["no", "yes"]
        np.testing.assert_array_equal(model.predict_proba(inputs()), two().predict_proba(inputs()))


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (["a"] * N, "at least two classes; got one class, 'a'"),
        ([1.0] * N, "at least two classes; got one class, 1.0"),
        ([1.0, np.nan] * (N // 2), "must name a class in every row; got nan in row 1"),
        ([1.0, np.inf] * (N // 2), "must name a class in every row; got inf in row 1"),
        (np.array(["a", "b", None] * (N // 3), dtype=object), "must name a class in every row; got None in row 2"),
        (np.array(["a", "b", np.nan] * (N // 3), dtype=object), "must name a class in every row; got nan in row 2"),
        (np.array(["a", 1, "b"] * (N // 3), dtype=object), "got 'a' in row 0 and 1 in row 1. Make them texts"),
        (np.array([b"a", b"b"] * (N // 2)), "got bytes. Decode them"),
        (np.array([(1,), (2,)] * (N // 2) + [None], dtype=object)[:-1], "y must hold texts, or numbers, or Booleans"),
        (["a", "b"], f"inconsistent numbers of rows: {N} and 2"),
        (np.ones((N, 2)), "y should be a 1d array"),
        (None, "requires y to be passed"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_labels_that_are_none(labels, message):
    with pytest.raises(DataError, match=message):
        quick().fit(inputs(), labels)


@pytest.mark.parametrize("dtype", ["string", "category"])
def test_missing_labels_of_pandas(dtype):
    pd = pytest.importorskip("pandas")
    labels = pd.Series(["a", "b", None] * (N // 3)).astype(dtype)
    with pytest.raises(DataError, match=r"must name a class in every row; got .* in row 2"):
        quick().fit(inputs(), labels)


def test_a_continuous_response_is_no_class():
    with pytest.raises(ValueError, match="Unknown label type"):
        quick().fit(inputs(), inputs()[:, 0])


def test_a_column_vector_as_labels():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model = quick().fit(inputs(), is_second()[:, None])
    np.testing.assert_array_equal(model.predict(inputs()), two().predict(inputs()))


def test_classes_that_only_rows_without_weight_have():
    labels = np.where(is_second(), "yes", "no").astype(object)
    labels[:3] = "perhaps"
    weights = np.append(np.zeros(3), np.ones(N - 3))
    model = quick().fit(inputs(), labels, sample_weight=weights)
    assert model.classes_.tolist() == ["no", "yes"]
    with pytest.raises(DataError, match="at least two classes"):
        quick().fit(inputs(), labels, sample_weight=np.where(labels == "yes", 1.0, 0.0))


@pytest.mark.parametrize("link", LINKS)
def test_two_classes_are_a_binomial_response(link):
    """The regressor of shares finds the same."""
    X, model = inputs(), two(link)
    settings = {"search": QUICK, "n_chains": 1, "random_state": 0}
    regressor = BGNLMRegressor(family="binomial", link=link, **settings).fit(X, is_second())
    for using in ("average", "best", "median"):
        shares = model.predict_proba(X, using=using)
        np.testing.assert_array_equal(shares[:, 1], regressor.predict(X, using=using))
        assert shares.sum(axis=1) == pytest.approx(np.ones(N))
        np.testing.assert_array_equal(model.predict(X, using=using), shares[:, 1] > 0.5)
        with np.errstate(divide="ignore"):
            np.testing.assert_array_equal(model.predict_log_proba(X, using=using), np.log(shares))
    np.testing.assert_array_equal(model.predict_interval(X), regressor.predict_interval(X, of="mean"))
    np.testing.assert_array_equal(model.predict_quantiles(X), regressor.predict_quantiles(X, of="mean"))
    averaged = model.predict_proba(X, plug_in=False)[:, 1]
    np.testing.assert_array_equal(averaged, regressor.predict(X, plug_in=False))
    assert model.features_.equals(regressor.features_)
    assert model.summary().splitlines()[0].startswith(f"BGNLMClassifier: binomial response, {link} link; 60 obs")


def test_an_offset_for_two_classes():
    X, offset = inputs(), np.linspace(0.1, 2.0, N)
    model = quick(max_depth=0).fit(X, is_second(), offset=offset)
    with pytest.warns(MissingOffsetWarning, match="was fitted with an offset"):
        without = model.predict_proba(X)
    assert np.array_equal(without, model.predict_proba(X, offset=np.zeros(N)))
    assert (model.predict_proba(X, offset=offset)[:, 1] > without[:, 1]).all()
    assert (model.predict_interval(X, offset=offset) > model.predict_interval(X, offset=np.zeros(N))).all()
    assert 0.0 <= model.score(X, is_second(), offset=offset) <= 1.0
    for call in (
        lambda: quick().fit(X, thirds(), offset=offset),
        lambda: three().predict_proba(X, offset=offset),
        lambda: three().predict_interval(X, offset=offset),
        lambda: three().sample_predictive(X, offset=offset),
    ):
        with pytest.raises(DataError, match="offset is for two classes"):
            call()


def test_weights_are_repetitions_of_rows():
    X, repeats = inputs(), np.random.default_rng(24).integers(0, 4, N)
    one = quick(max_depth=0).fit(X, thirds(), sample_weight=repeats)
    other = quick(max_depth=0).fit(np.repeat(X, repeats, axis=0), np.repeat(thirds(), repeats))
    assert one.predict_proba(X) == pytest.approx(other.predict_proba(X), abs=1e-6)


def test_three_classes_are_models_of_each_against_the_rest():
    X, model = inputs(), three()
    assert model.classes_.tolist() == ["high", "low", "middle"]
    each = [quick().fit(X, thirds() == number).predict_proba(X)[:, 1] for number in (2, 0, 1)]
    shares = np.column_stack(each)
    # The first search has the same seed; the others have seeds of their own.
    assert model.predict_proba(X).shape == (N, 3)
    assert model.predict_proba(X).sum(axis=1) == pytest.approx(np.ones(N))
    assert model.predict_proba(X) == pytest.approx(shares / shares.sum(axis=1, keepdims=True), abs=0.2)
    assert model.score(X, np.array(["low", "middle", "high"])[thirds()]) > 0.6
    assert set(model.predict(X)) <= set(model.classes_)


def test_tables_of_three_classes_say_the_class():
    model = three()
    assert isinstance(model.posterior_, tuple)
    assert isinstance(model.diagnostics_, tuple)
    assert len(model.posterior_) == len(model.diagnostics_) == 3
    for table, columns in (
        (model.features_, ["class", "expression", "probability", "complexity", "depth", "coefficient", "sd"]),
        (model.models_, ["class", "features", "probability", "log_posterior", "size"]),
    ):
        assert list(table) == columns
        assert table["class"].drop_duplicates().tolist() == model.classes_.tolist()
        assert table.index.tolist() == list(range(len(table)))
        assert table.groupby("class")["probability"].apply(lambda p: p.is_monotonic_decreasing).all()
    assert model.models_.groupby("class")["probability"].sum().tolist() == pytest.approx([1.0] * 3)
    for one in model.classes_:
        assert f"class {one}, against the rest" in model.summary()
    assert set(model.expression()) == {"high", "low", "middle"}
    assert model.expression()["low"].startswith("logit(P(y = low)) = ")


def test_two_classes_say_whose_probability_it_is():
    model = quick().fit(inputs(), np.array(["sick", "well"])[is_second().astype(int)])
    assert "probability of class 'well', against 'sick'" in model.summary()
    assert model.expression().startswith("logit(P(y = well)) = ")
    assert "E(" not in model.expression("average")
    logs = model.predict_log_proba(inputs(), plug_in=False)
    assert logs == pytest.approx(np.log(model.predict_proba(inputs(), plug_in=False)))


def test_uncertainty_of_three_classes():
    X, model = inputs()[:7], three()
    interval = model.predict_interval(X, 0.8)
    assert interval.shape == (7, 3, 2)
    assert (interval[:, :, 0] <= interval[:, :, 1]).all()
    assert ((interval >= 0.0) & (interval <= 1.0)).all()
    wider = model.predict_interval(X, 0.95)
    assert (wider[:, :, 0] <= interval[:, :, 0]).all()
    assert (wider[:, :, 1] >= interval[:, :, 1]).all()
    assert model.predict_quantiles(X, (0.1, 0.2, 0.9)).shape == (7, 3, 3)
    shares = model.sample_predictive(X, 2000, of="mean", random_state=1)
    assert shares.shape == (2000, 7, 3)
    assert shares.sum(axis=2) == pytest.approx(np.ones((2000, 7)))
    drawn = model.sample_predictive(X, 2000, random_state=1)
    assert drawn.shape == (2000, 7)
    frequencies = (drawn[:, :, None] == model.classes_).mean(axis=0)
    assert frequencies == pytest.approx(shares.mean(axis=0), abs=0.06)
    np.testing.assert_array_equal(drawn, model.sample_predictive(X, 2000, random_state=1))


def test_transform_gives_the_features_of_all_classes_once():
    model = three()
    names = model.get_feature_names_out().tolist()
    assert len(set(names)) == len(names)
    table = model.features_
    for one in model.classes_:
        of_class = table[table["class"] == one]
        probable = of_class["expression"][of_class["probability"] >= 0.5].tolist()
        assert set(probable or of_class["expression"].tolist()[:1]) <= set(names)
    assert model.transform(inputs()).shape == (N, len(names))


def test_three_classes_whose_columns_are_constant():
    with pytest.warns(ModelStatusWarning, match="Constant columns are in no model: x1") as caught:
        model = quick().fit(np.ones((N, 1)), thirds())
    assert len(caught) == 1  # it is the same table for all classes
    assert model.features_.shape == (0, 7)
    assert model.features_["complexity"].dtype.kind == "i"
    assert model.models_["features"].tolist() == [()] * 3
    assert model.predict_proba(np.ones((2, 1)))[0] == pytest.approx(np.bincount(thirds()) / N, abs=0.05)
    with pytest.warns(ModelStatusWarning, match="There is no feature to return as a column"):
        assert model.transform(np.ones((2, 1))).shape == (2, 0)


@pytest.mark.parametrize(
    ("ask", "error", "message"),
    [
        (lambda model: model.sample_predictive(inputs(), of="x"), SettingError, "of must be 'response' or 'mean'"),
        (lambda model: model.sample_predictive(inputs(), random_state="x"), SettingError, "random_state must be"),
        (lambda model: model.predict_interval(inputs(), 1.5), SettingError, "level must be at most 1"),
        (lambda model: model.predict_interval(inputs(), of="response"), SettingError, "of must be 'mean'"),
        (lambda model: model.predict_interval(inputs(), 1.0), SettingError, "level must be less than 1"),
        (lambda model: model.predict_quantiles(inputs(), [0.0]), SettingError, "strictly between 0 and 1"),
        (lambda model: model.predict(inputs(), using="all"), SettingError, "using must be one of"),
        (lambda model: model.predict(inputs()[:, :2]), DataError, "X has 2 features"),
        (lambda model: model.rescore(inputs(), np.zeros(N)), DataError, "at least two classes"),
        (lambda model: model.rescore(inputs(), thirds() + 5), DataError, "classes of the training data"),
        (lambda model: model.rescore(inputs(), [0, 1]), DataError, "inconsistent numbers of rows"),
    ],
)
@pytest.mark.parametrize("fitted", [two, three])
def test_questions_that_cannot_be_answered(fitted, ask, error, message):
    with pytest.raises(error, match=message):
        ask(fitted())


def test_pipelines_searches_and_pickles():
    X, labels = inputs(), np.array(["low", "middle", "high"])[thirds()]
    pipeline = make_pipeline(StandardScaler(), quick()).fit(X, labels)
    assert pipeline.predict_proba(X).shape == (N, 3)
    grid = GridSearchCV(quick(max_depth=0), {"link": LINKS[:2]}, cv=2, error_score="raise").fit(X, is_second())
    assert grid.best_params_["link"] in LINKS
    assert cross_val_score(quick(max_depth=0), X, labels, cv=2, scoring="neg_log_loss").max() < 0.0
    again = pickle.loads(pickle.dumps(three()))
    np.testing.assert_array_equal(again.predict_proba(X), three().predict_proba(X))
    assert again.summary() == three().summary()


def test_weights_are_routed():
    X, weights = inputs(), np.linspace(0.5, 2.0, N)
    with sklearn.config_context(enable_metadata_routing=True):
        model = quick(max_depth=0).set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        results = cross_validate(
            model, X, is_second(), cv=2, params={"sample_weight": weights}, return_estimator=True, error_score="raise"
        )
    assert ((results["test_score"] >= 0.0) & (results["test_score"] <= 1.0)).all()
    assert results["estimator"][0].searches_[0].n_obs != N / 2


def test_three_classes_after_an_interruption(monkeypatch):
    """The class that is searched ends as after Ctrl-C; the others are searched as short as can be, and all predict."""

    @contextmanager
    def interrupting(*_):
        calls = itertools.count()

        def report(_):
            if next(calls) == 1:
                raise KeyboardInterrupt

        yield report

    monkeypatch.setattr("bgnlm.estimators.base.progress_of", interrupting)
    model = BGNLMClassifier(search=SearchConfig(n_populations=6, population_size=8), n_chains=1, random_state=0)
    with pytest.warns(SearchStoppedWarning, match="interrupted"):
        model.fit(inputs(), thirds())
    assert model.diagnostics_[0].endings == ("interrupted",)
    populations = [len(found.history[0]) for found in model.diagnostics_]
    assert populations[0] < 6
    assert populations[1:] == [1, 1]
    assert model.predict_proba(inputs()).sum(axis=1) == pytest.approx(np.ones(N))


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    X = inputs()
    model = quick().fit(X, np.array(["low", "middle", "high"])[thirds()])
    expected = model.predict(X)
    with pytest.raises(SettingError, match="n_chains must be 1 or more"):
        model.set_params(n_chains=0).fit(X[:, :2], is_second())
    np.testing.assert_array_equal(model.predict(X), expected)
    assert model.classes_.tolist() == ["high", "low", "middle"]
