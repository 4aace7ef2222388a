"""`BGNLMRegressor`: every family, every kind of table, and what scikit-learn does with an estimator."""

import pickle
from functools import cache

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import bgnlm
from bgnlm import BGNLMRegressor, SearchConfig
from bgnlm.errors import DataError, MissingOffsetWarning, ModelStatusWarning, SettingError, UnseenLevelWarning
from bgnlm.features import Evaluator, depth, operation_count, parse
from bgnlm.likelihood.families import resolve_family
from tests.naive_glm import PAIRS

QUICK = SearchConfig(n_populations=3, population_size=8, n_candidates=40)
CASES = [("gaussian", "identity"), *PAIRS]
cases = pytest.mark.parametrize(("family", "link"), CASES)
families = pytest.mark.parametrize("family", list(dict(CASES)))
N = 45


def quick(**settings):
    return BGNLMRegressor(**{"search": QUICK, "n_chains": 1, "random_state": 0, **settings})


@cache
def inputs():
    return np.random.default_rng(11).uniform(0.5, 2.0, size=(N, 3))


@cache
def response(family):
    """A response and its weights, the number of trials for shares."""
    rng = np.random.default_rng(12)
    eta = inputs()[:, 0] * inputs()[:, 1] - 1.0
    mean = np.exp(eta)
    trials = rng.integers(1, 9, N).astype(float)
    return {
        "gaussian": lambda: (eta + 0.3 * rng.normal(size=N), None),
        "binomial": lambda: (rng.binomial(trials.astype(int), 1.0 / (1.0 + np.exp(-eta))) / trials, trials),
        "poisson": lambda: (rng.poisson(mean).astype(float), None),
        "gamma": lambda: (rng.gamma(5.0, mean / 5.0), None),
        "negative_binomial": lambda: (rng.poisson(mean * rng.gamma(3.0, 1.0 / 3.0, N)).astype(float), None),
    }[family]()


@cache
def fitted(family, link=None):
    y, weights = response(family)
    return quick(family=family, link=link).fit(inputs(), y, sample_weight=weights)


@cache
def frame():
    """Numbers, categories, Booleans: the response depends on all of them."""
    rng = np.random.default_rng(13)
    columns = {
        "size": rng.uniform(1.0, 3.0, N),
        "color": rng.choice(["blue", "green", "red"], N, p=[0.3, 0.5, 0.2]).tolist(),
        "sold": (rng.random(N) < 0.5).tolist(),
    }
    y = columns["size"] + 2.0 * np.array(columns["sold"]) - 3.0 * (np.array(columns["color"]) == "red")
    return columns, y + 0.2 * rng.normal(size=N)


def as_pandas(columns):
    return pytest.importorskip("pandas").DataFrame(columns)


def as_polars(columns):
    return pytest.importorskip("polars").DataFrame(columns)


def as_arrow(columns):
    return pytest.importorskip("pyarrow").table(columns)


FRAMES = [as_pandas, as_polars, as_arrow]


@cases
def test_predictions_have_the_range_of_the_response(family, link):
    model, X = fitted(family, link), inputs()
    for using in ("average", "best", "median"):
        mean, deviation = model.predict(X, using=using, return_std=True)
        assert mean.shape == deviation.shape == (N,)
        assert np.isfinite(mean).all()
        assert (deviation > 0).all()
        if family != "gaussian":
            assert (mean > 0).all()
        if family == "binomial":
            assert (mean < 1).all()
            assert (deviation <= 0.5).all()
    assert model.score(X, response(family)[0]) > 0.1


@cases
def test_an_average_is_that_of_models_fitted_one_by_one(family, link):
    """Naive twin: fit each of the averaged models by itself, on the columns as they are."""
    model, X = fitted(family, link), inputs()
    y, weights = response(family)
    new = np.random.default_rng(14).uniform(0.5, 2.0, size=(7, 3))
    average, posterior = model.searches_[0].average, model.posterior_
    probabilities = posterior.model_probabilities[: len(average)]
    mean = np.zeros(7)
    for m, probability in enumerate(probabilities / probabilities.sum()):
        features = posterior.features_of(m)
        columns = Evaluator(X).matrix(features)
        fit = bgnlm.fit_model(y, columns, family=family, link=link, sample_weight=weights)
        eta = fit.coefficients[0] + Evaluator(new).matrix(features) @ fit.coefficients[1:]
        mean += probability * resolve_family(family, link).mean(eta)
        if m == 0:
            assert model.predict(new, using="best") == pytest.approx(mean / probability, rel=1e-5)
    assert model.predict(new) == pytest.approx(mean, rel=1e-5)


@families
def test_the_median_model_has_the_features_of_probability_one_half(family):
    model, X = fitted(family), inputs()
    y, weights = response(family)
    table = model.features_
    chosen = [parse(text) for text in table["expression"][table["probability"] >= 0.5]]
    fit = bgnlm.fit_model(y, Evaluator(X).matrix(chosen), family=family, sample_weight=weights)
    eta = fit.coefficients[0] + Evaluator(X).matrix(chosen) @ fit.coefficients[1:]
    assert model.predict(X, using="median") == pytest.approx(resolve_family(family, None).mean(eta), rel=1e-5)


@cases
def test_tables_of_features_and_models(family, link):
    model = fitted(family, link)
    features, models = model.features_, model.models_
    assert list(features) == ["expression", "probability", "complexity", "depth", "coefficient", "sd"]
    assert [dtype.kind for dtype in features.dtypes.iloc[1:]] == ["f", "i", "i", "f", "f"]
    assert all(isinstance(text, str) for text in features["expression"])
    assert features["probability"].is_monotonic_decreasing
    assert features["probability"].between(0.0, 1.0).all()
    assert np.isfinite(features["coefficient"]).all()
    assert (features["sd"] >= 0).all()
    for row in features.itertuples():
        assert row.complexity == operation_count(parse(row.expression))
        assert row.depth == depth(parse(row.expression))
    assert list(models) == ["features", "probability", "log_posterior", "size"]
    assert [dtype.kind for dtype in models.dtypes] == ["O", "f", "f", "i"]
    assert models["probability"].is_monotonic_decreasing
    assert models["probability"].sum() == pytest.approx(1.0)
    ratios = np.exp(models["log_posterior"] - models["log_posterior"][0])
    assert models["probability"].to_numpy() == pytest.approx((ratios / ratios.sum()).to_numpy())
    assert [len(names) for names in models["features"]] == models["size"].tolist()
    assert models["features"].is_unique
    by_models = {
        text: sum(p for names, p in zip(models["features"], models["probability"], strict=True) if text in names)
        for text in features["expression"]
    }
    assert features["probability"].tolist() == pytest.approx(list(by_models.values()))


@cases
def test_intervals_contain_each_other_and_quantiles_ascend(family, link):
    model, X = fitted(family, link), inputs()[:9]
    levels = np.linspace(0.02, 0.98, 13)
    for of in ("response", "mean"):
        for using in ("average", "best", "median"):
            quantiles = model.predict_quantiles(X, levels, of, using=using)
            assert quantiles.shape == (9, 13)
            assert (np.diff(quantiles, axis=1) >= 0).all()
            before = np.repeat(model.predict_quantiles(X, 0.5, of, using=using), 2, axis=1)
            for level in (0.1, 0.5, 0.9, 0.999):
                interval = model.predict_interval(X, level, of, using=using)
                assert interval.shape == (9, 2)
                assert (interval[:, 0] <= before[:, 0] + 1e-9).all()
                assert (interval[:, 1] >= before[:, 1] - 1e-9).all()
                before = interval
    mean, deviation = model.predict(X, return_std=True)
    assert (model.predict_interval(X, 0.999, "mean")[:, 0] < mean).all()
    assert (model.predict_interval(X, 0.999, "mean")[:, 1] > mean).all()
    if family == "gaussian":
        assert (np.diff(model.predict_interval(X, 0.95)) > np.diff(model.predict_interval(X, 0.95, "mean"))).all()
        assert np.diff(model.predict_interval(X, 0.6827))[:, 0] == pytest.approx(2.0 * deviation, rel=0.1)


def test_levels_in_any_order_have_their_columns():
    model, X = fitted("poisson"), inputs()[:5]
    one, other = model.predict_quantiles(X, (0.1, 0.9, 0.5)), model.predict_quantiles(X, (0.5, 0.1, 0.9))
    np.testing.assert_array_equal(one[:, [2, 0, 1]], other)


@families
@pytest.mark.parametrize("of", ["response", "mean"])
def test_draws_have_the_distribution_of_the_quantiles(family, of):
    model, X = fitted(family), inputs()[:6]
    draws = model.sample_predictive(X, 4000, of, random_state=3)
    assert draws.shape == (4000, 6)
    np.testing.assert_array_equal(draws, model.sample_predictive(X, 4000, of, random_state=3))
    assert (draws != model.sample_predictive(X, 4000, of, random_state=4)).any()
    levels = np.array([0.1, 0.5, 0.9])
    quantiles = model.predict_quantiles(X, levels, of)
    error = 4.5 * np.sqrt(levels * (1.0 - levels) / 4000)
    assert ((draws[:, :, None] <= quantiles + 1e-9).mean(axis=0) >= levels - error).all()
    assert ((draws[:, :, None] < quantiles - 1e-9).mean(axis=0) <= levels + error).all()
    mean, deviation = model.predict(X, plug_in=False), model.predict(X, return_std=True)[1]
    spread = draws.std(axis=0)
    assert np.abs(draws.mean(axis=0) - mean).max() < 6.0 * spread.max() / np.sqrt(4000) + 0.02 * mean.max()
    if of == "response":
        assert spread == pytest.approx(deviation, rel=0.15)


def test_more_trials_make_shares_more_certain():
    model, X = fitted("binomial"), inputs()[:5]
    one, many = (model.predict(X, return_std=True, trials=trials)[1] for trials in (1, [100] * 5))
    assert (many < one).all()
    assert set(np.unique(model.sample_predictive(X, 50, random_state=0))) <= {0.0, 1.0}
    quarters = model.sample_predictive(X, 50, trials=4, random_state=0)
    assert set(np.unique(quarters)) <= {0.0, 0.25, 0.5, 0.75, 1.0}
    assert set(np.unique(model.predict_interval(X, trials=4))) <= {0.0, 0.25, 0.5, 0.75, 1.0}


@cases
def test_an_offset_shifts_the_linear_predictor(family, link):
    model, X = fitted(family, link), inputs()
    offset = np.linspace(-0.9, -0.1, N)
    if family == "gaussian":
        assert model.predict(X, offset=offset) == pytest.approx(model.predict(X) + offset, abs=1e-12)
        shifted = model.predict_interval(X) + offset[:, None]
        assert model.predict_interval(X, offset=offset) == pytest.approx(shifted, abs=1e-8)
        assert model.predict(X, offset=offset, return_std=True)[1] == pytest.approx(
            model.predict(X, return_std=True)[1]
        )
    elif link == "log":
        assert model.predict(X, offset=offset) == pytest.approx(model.predict(X) * np.exp(offset), rel=1e-9)
        quantiles = model.predict_quantiles(X, of="mean") * np.exp(offset)[:, None]
        assert model.predict_quantiles(X, of="mean", offset=offset) == pytest.approx(quantiles, rel=1e-6)
    else:
        transformed = resolve_family(family, link)
        eta = np.array([transformed.linear_predictor(share) for share in model.predict(X, using="best")])
        moved = model.predict(X, using="best", offset=offset)
        assert moved == pytest.approx(transformed.mean(eta + offset), rel=1e-9)
    draws = model.sample_predictive(X, 3, "mean", offset=offset, random_state=0)
    assert (draws != model.sample_predictive(X, 3, "mean", random_state=0)).all()


def test_an_offset_in_training_is_taken_off():
    X, (y, _) = inputs(), response("gaussian")
    offset = np.sin(np.arange(N))
    one, other = quick().fit(X, y + offset, offset=offset), fitted("gaussian")
    assert one.predict(X, offset=offset) == pytest.approx(other.predict(X) + offset, abs=1e-9)
    assert one.features_["expression"].tolist() == other.features_["expression"].tolist()
    with pytest.warns(MissingOffsetWarning, match="offset=0 if that is meant"):
        without = one.score(X, y + offset)
    assert one.score(X, y + offset, offset=offset) > without
    assert one.has_offset_
    assert not other.has_offset_
    assert one.transform(X).shape == (N, len(one.get_feature_names_out()))


@pytest.mark.parametrize("family", ["binomial", "poisson", "gamma", "negative_binomial"])
def test_the_intercept_takes_up_a_constant_offset(family):
    X, (y, weights) = inputs(), response(family)
    model = quick(family=family, max_depth=0).fit(X, y, sample_weight=weights, offset=np.full(N, 0.7))
    plain = quick(family=family, max_depth=0).fit(X, y, sample_weight=weights)
    assert model.predict(X, offset=np.full(N, 0.7)) == pytest.approx(plain.predict(X), rel=1e-4)


@families
def test_weights_are_repetitions_of_rows(family):
    X, (y, weights) = inputs(), response(family)
    repeats = np.random.default_rng(15).integers(0, 4, N)
    weights = np.ones(N) if weights is None else weights
    # A search may part ways over rounding; without nonlinear features all models are there.
    one = quick(family=family, max_depth=0).fit(X, y, sample_weight=weights * repeats)
    other = quick(family=family, max_depth=0).fit(
        np.repeat(X, repeats, axis=0), np.repeat(y, repeats), sample_weight=np.repeat(weights, repeats)
    )
    assert one.features_["probability"].tolist() == pytest.approx(other.features_["probability"].tolist(), abs=1e-6)
    for using in ("average", "best", "median"):
        assert one.predict(X, using=using) == pytest.approx(other.predict(X, using=using), rel=1e-6)
    assert one.predict_interval(X) == pytest.approx(other.predict_interval(X), rel=1e-5)
    assert one.summary().splitlines()[:1] == other.summary().splitlines()[:1]


def test_rows_without_weight_do_not_count():
    X, (y, _) = inputs(), response("gaussian")
    garbage = np.vstack([X, np.full((3, 3), 1e6)])
    weights = np.append(np.ones(N), np.zeros(3))
    one = quick().fit(garbage, np.append(y, [-1e9, 0.0, 1e9]), sample_weight=weights)
    other = quick().fit(X, y)
    assert one.predict(X) == pytest.approx(other.predict(X), rel=1e-7)
    assert one.features_["expression"].tolist() == other.features_["expression"].tolist()


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        (-np.ones(N), "must not be negative; got -1 in row 0"),
        (np.ones(N - 1), f"must have one value per row, {N} in all"),
        (np.full(N, np.nan), "must be finite; got nan in row 0"),
        (np.zeros(N), "must be positive in at least 2 rows"),
        (["a"] * N, "must hold numbers only"),
        (np.full(N, 1e16), "must be at most 1e\\+15"),
        (np.full(N, 1e-3), "must add up to more than 1"),
    ],
)
def test_weights_that_are_none(weights, message):
    with pytest.raises(DataError, match=f"sample_weight {message}"):
        quick().fit(inputs(), response("gaussian")[0], sample_weight=weights)


@pytest.mark.parametrize("table", FRAMES)
def test_frames_of_any_library(table):
    columns, y = frame()
    model = quick().fit(table(columns), y)
    reference = quick().fit(as_pandas(columns), y)
    assert model.coding_.names == ("size", "color=blue", "color=red", "sold")
    assert model.feature_names_in_.tolist() == ["size", "color", "sold"]
    assert model.n_features_in_ == 3
    for new in FRAMES:
        np.testing.assert_array_equal(model.predict(new(columns)), reference.predict(as_pandas(columns)))
        other_order = dict(reversed(columns.items()))
        np.testing.assert_array_equal(model.predict(new(other_order)), reference.predict(as_pandas(columns)))
    assert "color=red" in model.used_inputs()


def test_arrays_and_lists_give_the_same():
    X, (y, _) = inputs(), response("gaussian")
    expected = fitted("gaussian").predict(X)
    for table, target in ((X.tolist(), y.tolist()), (np.asfortranarray(X), tuple(y)), (X.astype(object), y)):
        model = quick().fit(table, target)
        np.testing.assert_array_equal(model.predict(table), expected)
        assert not hasattr(model, "feature_names_in_")


def test_a_column_of_other_names_or_kinds_is_refused():
    columns, y = frame()
    model = quick().fit(as_pandas(columns), y)
    with pytest.raises(DataError, match=r"unseen at fit time:\n- colour"):
        model.predict(as_pandas({**{k: v for k, v in columns.items() if k != "color"}, "colour": columns["color"]}))
    with pytest.raises(DataError, match="'size' held numbers in training; got categories"):
        model.predict(as_pandas({**columns, "size": columns["color"]}))
    with pytest.raises(DataError, match="X has 2 features, but BGNLMRegressor is expecting 3"):
        fitted("gaussian").predict(inputs()[:, :2])
    with pytest.warns(UserWarning, match="X has feature names, but BGNLMRegressor was fitted without"):
        fitted("gaussian").predict(as_pandas({"a": [1.0], "b": [1.0], "c": [1.0]}))


def test_unseen_levels_count_as_the_most_frequent_one():
    columns, y = frame()
    model = quick().fit(as_pandas(columns), y)
    reference = model.coding_.columns[1].reference
    with pytest.warns(UnseenLevelWarning, match=r"'color': 'black' \(2 rows\)"):
        unseen = model.predict(as_pandas({"size": [1.0, 2.0], "color": ["black"] * 2, "sold": [True, False]}))
    known = model.predict(as_pandas({"size": [1.0, 2.0], "color": [reference] * 2, "sold": [True, False]}))
    np.testing.assert_array_equal(unseen, known)


def test_missing_values():
    X, (y, _) = inputs().copy(), response("gaussian")
    X[[3, 17], [1, 0]] = np.nan
    with pytest.raises(DataError, match=r"first in row 3, column 1 \(x2\); number of missing values: 2.*impute"):
        quick().fit(X, y)
    model = quick(missing="impute").fit(X, y)
    assert model.coding_.names == ("x1", "x1=missing", "x2", "x2=missing", "x3")
    filled = np.where(np.isnan(X), np.nanmedian(X, axis=0), X)
    assert np.isfinite(model.predict(X)).all()
    # Where nothing is missing it makes no difference.
    np.testing.assert_array_equal(model.predict(X)[20:], model.predict(filled)[20:])
    new = inputs()[:2].copy()
    new[0, 2] = np.nan
    assert np.isfinite(model.predict(new)).all()
    with pytest.raises(DataError, match="X has missing values"):
        fitted("gaussian").predict(new)


def test_a_column_vector_as_response():
    X, (y, _) = inputs(), response("gaussian")
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model = quick().fit(X, y[:, None])
    np.testing.assert_array_equal(model.predict(X), fitted("gaussian").predict(X))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_name_of_the_response_is_kept(library):
    series = pytest.importorskip(library).Series
    y = response("gaussian")[0]
    named = series(y, name="price") if library == "pandas" else series("price", y)
    assert quick().fit(inputs(), named).expression().startswith("price = ")
    assert quick().fit(inputs(), series(y)).expression().startswith("y = ")


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        (np.ones((1, 2)), [1.0], "needs more than one row; got n_samples = 1"),
        (np.ones((0, 2)), [], r"0 sample\(s\)"),
        (np.ones((5, 0)), np.arange(5.0), r"0 feature\(s\)"),
        (np.ones(5), np.arange(5.0), "Expected 2D array, got 1D array"),
        (np.eye(5), np.arange(4.0), "inconsistent numbers of rows: 5 and 4"),
        (np.eye(5), None, "requires y to be passed"),
        (np.eye(5), [0.0, 1.0, np.nan, 2.0, 3.0], "y must be finite; got nan in row 2"),
        (np.eye(5), [0.0, 1.0, 2.0, np.inf, 3.0], "y must be finite; got inf in row 3"),
        (np.eye(5), [0.0, 1.0, 2.0, 1e200, 3.0], r"y must stay within 1e\+140; got 1e\+200 in row 3"),
        (np.eye(5), list("abcde"), "y must hold numbers only; got 'a' in row 0"),
        (np.eye(5), np.ones((5, 2)), "y should be a 1d array"),
        (np.full((5, 2), np.inf), np.arange(5.0), "X must not contain infinity; got inf in row 0"),
        (np.eye(5) * 1e200, np.arange(5.0), r"X must stay within 1e\+140; got 1e\+200 in row 0, column 0"),
        ([["a", 1], [2, 3], ["b", 1]], np.arange(3.0), "numbers only or strings only; got 2 in row 1"),
    ],
    ids=str,
)
def test_data_that_cannot_be_used(X, y, message):
    with pytest.raises(DataError, match=message):
        quick().fit(X, y)


@pytest.mark.parametrize(
    ("family", "value", "message"),
    [
        ("binomial", 2.0, "between 0 and 1; got 2 in row 4"),
        ("binomial", 0.5, "0 or 1; got 0.5 in row 4. For shares of successes pass the number of trials"),
        ("poisson", -1.0, "whole number of 0 or more; got -1 in row 4"),
        ("poisson", 1.5, "whole number of 0 or more; got 1.5 in row 4"),
        ("negative_binomial", 0.1, "whole number of 0 or more; got 0.1 in row 4"),
        ("gamma", 0.0, "greater than 0; got 0 in row 4"),
    ],
)
def test_responses_that_a_family_cannot_have(family, value, message):
    y = np.ones(N)
    y[4] = value
    with pytest.raises(DataError, match=message):
        quick(family=family).fit(inputs(), y)


def all_of(model, X):
    """Everything a fitted model can be asked, checked for being finite."""
    for using in ("average", "best", "median"):
        assert np.isfinite(model.predict(X, using=using)).all()
        model.expression(using)
        model.expression(using, "latex")
    assert np.isfinite(model.predict_interval(X)).all()
    assert np.isfinite(model.sample_predictive(X, 5, random_state=0)).all()
    assert np.isfinite(model.transform(X)).all()
    assert model.transform(X).shape == (len(X), len(model.get_feature_names_out()))
    assert model.summary()
    assert len(model.models_)
    return model


@pytest.mark.parametrize(
    ("n", "scale_x", "scale_y"),
    [
        (2, 1, 1),
        (3, 1, 1),
        (4, 1, 1),
        (N, 1e-200, 1),
        (N, 1e100, 1),
        (N, 1, 1e100),
        (N, 1, 1e-100),
        (N, 1e139, 1e139),
    ],
)
def test_few_rows_and_unusual_units(n, scale_x, scale_y):
    X, (y, _) = inputs()[:n], response("gaussian")
    model = all_of(quick().fit(scale_x * X, scale_y * y[:n]), scale_x * X)
    if n == N and 1e-150 < scale_x < 1e120:
        assert model.score(scale_x * X, scale_y * y[:n]) > 0.5


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int64, np.uint64])
def test_whole_numbers_near_the_ends_of_their_types(dtype):
    largest = np.iinfo(dtype).max
    X = (inputs() / 2.0 * (largest * 0.99)).astype(dtype)
    all_of(quick().fit(X, response("gaussian")[0]), X)


def test_more_columns_than_rows():
    rng = np.random.default_rng(16)
    X, y = rng.normal(size=(10, 25)), rng.normal(size=10)
    all_of(quick().fit(X, y), X)


def test_an_exact_law():
    X = inputs()
    model = all_of(quick().fit(X, X[:, 0]), X)
    assert model.predict(X) == pytest.approx(X[:, 0])
    assert model.features_["expression"][0] == "x1"


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson", "negative_binomial"])
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_a_constant_response(family, value):
    with pytest.warns(ModelStatusWarning, match="CONSTANT_RESPONSE"):
        model = quick(family=family).fit(inputs(), np.full(N, value))
    assert all_of(model, inputs()).predict(inputs()) == pytest.approx(np.full(N, value), abs=0.05)


def test_constant_columns_are_named():
    X, (y, _) = np.column_stack([inputs(), np.ones(N)]), response("gaussian")
    with pytest.warns(ModelStatusWarning, match="Constant columns are in no model: x4"):
        model = quick().fit(X, y)
    assert "x4" not in model.used_inputs()
    with pytest.warns(ModelStatusWarning, match="Constant columns are in no model: x1, x2"):
        model = quick().fit(np.ones((N, 2)), y)
    with pytest.warns(ModelStatusWarning, match="There is no feature to return as a column"):
        all_of(model, np.ones((N, 2)))
    assert list(model.features_) == ["expression", "probability", "complexity", "depth", "coefficient", "sd"]
    assert [dtype.kind for dtype in model.features_.dtypes.iloc[1:]] == ["f", "i", "i", "f", "f"]
    assert model.models_["features"].tolist() == [()]
    assert model.predict(np.ones((N, 2))) == pytest.approx(np.full(N, y.mean()))


def test_questions_to_an_estimator_that_is_not_fitted():
    X, y = inputs(), response("gaussian")[0]
    model = quick()
    for ask in (
        lambda: model.predict(X),
        lambda: model.predict_interval(X),
        lambda: model.sample_predictive(X),
        lambda: model.transform(X),
        lambda: model.get_feature_names_out(),
        lambda: model.features_,
        lambda: model.models_,
        lambda: model.posterior_,
        lambda: model.diagnostics_,
        lambda: model.summary(),
        lambda: model.expression(),
        lambda: model.rescore(X, y),
        lambda: model.save("model"),
        lambda: model.used_inputs(),
    ):
        with pytest.raises(NotFittedError):
            ask()


def test_a_fit_that_fails_leaves_the_model_as_it_was():
    columns, y = frame()
    model = quick().fit(as_pandas(columns), y)
    expected = model.predict(as_pandas(columns))
    for settings, X, target, error in (
        ({"penalty": -1}, inputs(), y, SettingError),
        ({"penalty": "bic"}, inputs(), y[:-1], DataError),
        ({"family": "poisson"}, inputs(), y, DataError),
        ({"family": "gaussian", "random_state": "x"}, inputs(), y, SettingError),
    ):
        with pytest.raises(error):
            model.set_params(**settings).fit(X, target)
        np.testing.assert_array_equal(model.predict(as_pandas(columns)), expected)
        assert model.n_features_in_ == len(model.feature_names_in_) == 3


@pytest.mark.parametrize(
    ("method", "arguments", "error", "message"),
    [
        ("predict", {"using": "worst"}, SettingError, "using must be one of 'average', 'best', 'median'"),
        ("predict", {"offset": [1.0]}, DataError, f"offset must have one value per row, {N} in all"),
        ("predict", {"offset": [np.nan] * N}, DataError, "offset must be finite; got nan in row 0"),
        ("predict", {"trials": 0}, DataError, "trials must be whole numbers of 1 or more"),
        ("predict", {"trials": 1.5}, DataError, "trials must be whole numbers of 1 or more"),
        ("predict", {"trials": "a"}, DataError, "trials must be a whole number"),
        ("predict", {"trials": [1, 2]}, DataError, f"one for each of the {N} rows"),
        ("predict_interval", {"level": 0.0}, SettingError, "level must be greater than 0"),
        ("predict_interval", {"level": 1.0}, SettingError, "level must be less than 1"),
        ("predict_interval", {"level": 90}, SettingError, "level must be at most 1"),
        ("predict_interval", {"level": "a"}, SettingError, "level must be a finite number"),
        ("predict_interval", {"of": "median"}, SettingError, "of must be one of 'response', 'mean'"),
        ("predict_quantiles", {"levels": (0.5, 1.0)}, SettingError, "strictly between 0 and 1"),
        ("predict_quantiles", {"levels": [[0.5]]}, SettingError, "strictly between 0 and 1"),
        ("predict_quantiles", {"levels": "a"}, SettingError, "levels must be numbers between 0 and 1; got 'a'"),
        ("predict_quantiles", {"levels": np.nan}, SettingError, "strictly between 0 and 1"),
        ("sample_predictive", {"n_draws": 0}, SettingError, "n_draws must be 1 or more"),
        ("sample_predictive", {"n_draws": 1.5}, SettingError, "n_draws must be a whole number"),
        ("sample_predictive", {"of": "x"}, SettingError, "of must be one of 'response', 'mean'"),
        ("sample_predictive", {"random_state": -1}, SettingError, "random_state must be a whole number of 0 or more"),
        ("sample_predictive", {"random_state": "a"}, SettingError, "random_state must be a whole number of 0 or more"),
    ],
    ids=str,
)
def test_questions_that_cannot_be_answered(method, arguments, error, message):
    with pytest.raises(error, match=message):
        getattr(fitted("gaussian"), method)(inputs(), **arguments)


def test_transform_gives_the_probable_features():
    model, X = fitted("gaussian"), inputs()
    table = model.features_
    expected = table["expression"][table["probability"] >= 0.5].tolist()
    assert model.get_feature_names_out().tolist() == expected
    assert model.get_feature_names_out(["x1", "x2", "x3"]).tolist() == expected
    columns = Evaluator(X).matrix([parse(text) for text in expected])
    np.testing.assert_array_equal(model.transform(X), columns)
    np.testing.assert_array_equal(quick().fit_transform(X, response("gaussian")[0]), columns)
    with pytest.raises(DataError, match="length equal to 3; got 1"):
        model.get_feature_names_out(["x1"])


def test_transform_gives_the_most_probable_feature_if_none_is_probable():
    rng = np.random.default_rng(17)
    X, y = rng.normal(size=(N, 4)), rng.normal(size=N)
    model = quick().fit(X, y)
    assert model.features_["probability"][0] < 0.5
    assert model.get_feature_names_out().tolist() == [model.features_["expression"][0]]
    assert model.transform(X).shape == (N, 1)


def test_transform_gives_frames_where_they_are_wanted():
    pd = pytest.importorskip("pandas")
    columns, y = frame()
    model = quick().fit(as_pandas(columns), y).set_output(transform="pandas")
    out = model.transform(as_pandas(columns))
    assert isinstance(out, pd.DataFrame)
    assert out.columns.tolist() == model.get_feature_names_out().tolist()
    with pytest.raises(DataError, match="not equal to feature_names_in_"):
        model.get_feature_names_out(["a", "b", "c"])


def test_pipelines_and_searches_for_settings():
    X, (y, _) = inputs(), response("gaussian")
    pipeline = make_pipeline(StandardScaler(), quick()).fit(X, y)
    assert pipeline.score(X, y) > 0.5
    assert pipeline[:-1].get_feature_names_out().tolist() == ["x0", "x1", "x2"]
    grid = GridSearchCV(quick(), {"max_depth": [0, 2], "penalty": ["bic", 1.0]}, cv=2, error_score="raise").fit(X, y)
    assert len(grid.cv_results_["params"]) == 4
    assert grid.best_estimator_.predict(X).shape == (N,)
    scores = cross_val_score(make_pipeline(StandardScaler(), quick()), X, y, cv=KFold(3), error_score="raise")
    assert scores.shape == (3,)
    assert (scores > 0).all()
    after = make_pipeline(quick(), StandardScaler()).fit(X, y)
    assert after.transform(X).shape[1] == len(after[0].get_feature_names_out())


def test_clones_and_settings():
    model = fitted("gaussian")
    copy = clone(model)
    assert not hasattr(copy, "searches_")
    assert copy.get_params() == model.get_params()
    copy.set_params(penalty="aic", search=SearchConfig(n_populations=1), n_chains=2)
    assert (copy.penalty, copy.search.n_populations, copy.n_chains) == ("aic", 1, 2)
    assert model.penalty == "bic"
    with pytest.raises(ValueError, match="Invalid parameter 'depth'"):
        copy.set_params(depth=3)
    assert "BGNLMRegressor" in repr(model)
    assert model._repr_html_()


@cases
def test_pickles(family, link):
    model, X = fitted(family, link), inputs()
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    np.testing.assert_array_equal(again.predict_interval(X), model.predict_interval(X))
    assert again.features_.equals(model.features_)
    assert again.summary() == model.summary()


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
def test_weights_and_offsets_are_routed():
    X, (y, _) = inputs(), response("gaussian")
    weights, offset = np.linspace(0.5, 2.0, N), np.sin(np.arange(N))
    model = quick(max_depth=0).set_fit_request(sample_weight=True, offset=True)
    model.set_score_request(sample_weight=True, offset=True)
    splitter = KFold(2)
    results = cross_validate(
        model,
        X,
        y,
        cv=splitter,
        params={"sample_weight": weights, "offset": offset},
        return_estimator=True,
        error_score="raise",
    )
    for (train, test), found, score in zip(splitter.split(X), results["estimator"], results["test_score"], strict=True):
        expected = quick(max_depth=0).fit(X[train], y[train], sample_weight=weights[train], offset=offset[train])
        np.testing.assert_array_equal(found.predict(X, offset=0), expected.predict(X, offset=0))
        assert score == expected.score(X[test], y[test], sample_weight=weights[test], offset=offset[test])
    pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
    pipeline.fit(X, y, sample_weight=weights, offset=offset)
    with pytest.warns(MissingOffsetWarning):
        assert pipeline.predict(X).shape == (N,)


@pytest.mark.parametrize("make", [np.random.RandomState, np.random.default_rng])
def test_seeds_may_be_generators(make):
    X, (y, _) = inputs(), response("gaussian")
    one, other = (quick(random_state=make(5)).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(one.predict(X), other.predict(X))
    generator = make(5)
    first, second = (quick(random_state=generator).fit(X, y) for _ in range(2))
    np.testing.assert_array_equal(first.predict(X), one.predict(X))
    assert first.features_["expression"].tolist() != second.features_["expression"].tolist()


def test_the_result_does_not_depend_on_the_number_of_jobs():
    X, (y, _) = inputs(), response("gaussian")
    one, two = (quick(n_chains=2, n_jobs=n_jobs).fit(X, y) for n_jobs in (1, 2))
    np.testing.assert_array_equal(one.predict(X), two.predict(X))
    assert one.features_.equals(two.features_)
    assert quick(n_chains=2, random_state=None).fit(X, y).predict(X).shape == (N,)
