"""Exports of fitted models predict what the models do, from the columns that users have."""

import json
import math
from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

from bgnlm import BGNLMClassifier, BGNLMRegressor, SearchConfig, Transform, load
from bgnlm.errors import BgnlmWarning, FeatureError, SettingError
from bgnlm.estimators.exports import program_of
from bgnlm.latent import Grouped
from bgnlm.report.export.python_source import to_python
from bgnlm.report.export.sql import to_sql
from bgnlm.search import ProjectionWeights
from tests.naive_glm import PAIRS
from tests.report.export.languages import (
    RefusedError,
    fetched,
    from_json,
    function,
    onnx_outputs,
    sqlite_table,
    standardised,
)

QUICK = SearchConfig(n_populations=3, population_size=8, n_candidates=40)
SETTINGS = {"search": QUICK, "n_chains": 1, "random_state": 0, "missing": "impute"}
CASES = [("gaussian", None), *PAIRS, ("two", None), ("three", None)]
HOSTILE = ['b "quoted" `back`', "select", "lambda", "x0", "été\nnew line 'q' \\ {0} %s", "bgnlm_v1", "row", "offset"]
N = 60
cases = pytest.mark.parametrize(("family", "link"), CASES)
using_all = pytest.mark.parametrize("using", ["average", "best", "median"])


def table(seed=1, n=N):
    """Numbers, Booleans and categories with missing values, under names that are not harmless."""
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({name: rng.uniform(0.5, 2.0, n) for name in HOSTILE[:4]})
    X[HOSTILE[4]] = rng.choice(["u", "it's", 'a "b"', "\\n{1}"], n)
    X[HOSTILE[5]] = rng.normal(size=n)
    X[HOSTILE[6]] = rng.random(n) < 0.5
    X[HOSTILE[7]] = rng.normal(size=n)
    X.loc[[3, 9], HOSTILE[0]] = np.nan
    X.loc[5, HOSTILE[4]] = None
    return X


def linear(X):
    product = X[HOSTILE[0]].fillna(1.0) * X[HOSTILE[1]]
    return (product + (X[HOSTILE[4]] == "u") - X[HOSTILE[6]] * X[HOSTILE[5]] - 1.5).to_numpy()


@cache
def fitted(family, link=None):
    rng = np.random.default_rng(52)
    X = table()
    eta = linear(X)
    if family in ("two", "three"):
        y = np.array(["no", "it's"])[(rng.random(N) < expit(eta)).astype(int)]
        y = y if family == "two" else np.digitize(eta, [-0.5, 0.7])
        return BGNLMClassifier(**SETTINGS).fit(X, y)
    y = {
        "gaussian": lambda: eta + 0.2 * rng.normal(size=N),
        "binomial": lambda: rng.random(N) < expit(eta),
        "poisson": lambda: rng.poisson(np.exp(eta)),
        "gamma": lambda: rng.gamma(5.0, np.exp(eta) / 5.0),
        "negative_binomial": lambda: rng.poisson(np.exp(eta) * rng.gamma(3.0, 1.0 / 3.0, N)),
    }[family]()
    return BGNLMRegressor(family=family, link=link, **SETTINGS).fit(X, y)


def new_rows():
    """New rows, some far away and some with levels that training did not have."""
    X = table(seed=2, n=12)
    X.loc[0, HOSTILE[:2]] = [1e140, -1e140]
    X.loc[1, HOSTILE[1:3]] = [0.0, -3.0]
    X.loc[2, HOSTILE[4]] = "never seen"
    X.loc[4, [HOSTILE[0], HOSTILE[5]]] = [1e30, -1e60]
    return X


def predicted(model, X, **settings):
    predict = model.predict_proba if isinstance(model, BGNLMClassifier) else model.predict
    with pytest.warns(BgnlmWarning):  # unseen levels, features beyond their range
        return predict(X, **settings)


def close(found, want, tolerance=1e-9):
    assert np.asarray(found, dtype=float) == pytest.approx(want, rel=tolerance, abs=tolerance)


def values(found, model):
    """Probabilities by class as a list."""
    return [found[one] for one in model.classes_.tolist()] if isinstance(found, dict) else found


@cases
@using_all
def test_python_numpy_and_json(family, link, using):
    model, X = fitted(family, link), new_rows()
    want = predicted(model, X, using=using)
    predict = function(model.export("python", using))
    records = X.to_dict("records")
    close([values(predict(row), model) for row in records], want)
    close(function(model.export("numpy", using, name="f"), "f")(X), want)
    text = model.export("json", using)
    close([from_json(text, row) for row in records], want)


@cases
@using_all
def test_sql(family, link, using):
    duckdb = pytest.importorskip("duckdb")
    model, X = fitted(family, link), new_rows()
    want = predicted(model, X, using=using).reshape(len(X), -1)
    numbered = X.assign(id=range(len(X)))
    query = model.export("sql", using, table='my "table"', keep=["id"])
    plain = numbered.astype(object).where(numbered.notna(), None)
    rows = [[value.item() if isinstance(value, np.generic) else value for value in row] for row in plain.to_numpy()]
    sqlite = sqlite_table('my "table"', list(numbered), rows)
    close(fetched(sqlite.execute(query).fetchall()), want, 1e-6)
    with duckdb.connect() as database:
        database.register("frame", numbered)
        database.execute('CREATE TABLE "my ""table""" AS SELECT * FROM frame')
        close(fetched(database.execute(query).fetchall()), want, 1e-6)
        if using == "best" and family != "three":
            one = f'SELECT id, {model.export("sql", using)} FROM "my ""table"""'
            close(fetched(database.execute(one).fetchall())[:, 0], want[:, -1], 1e-6)
            close(fetched(sqlite.execute(one).fetchall())[:, 0], want[:, -1], 1e-6)


@cases
@using_all
def test_onnx(family, link, using):
    pytest.importorskip("onnxruntime")
    onnx = pytest.importorskip("onnx")
    model, X = fitted(family, link), new_rows()
    content = model.export("onnx", using)
    columns = {name: _for_onnx(X[name]) for name in X}
    want = predicted(model, X, using=using)
    close(onnx_outputs(content, columns), want, 1e-6)
    from onnx.reference import ReferenceEvaluator

    loaded = onnx.load_from_string(content)
    feed = {one.name: columns[one.name] for one in loaded.graph.input}
    with np.errstate(all="ignore"):
        close(ReferenceEvaluator(loaded).run(None, feed)[0], want, 1e-6)


def _for_onnx(column):
    if column.dtype.kind in "fb":
        return column.to_numpy(np.float64)
    return np.array(["" if value is None or value != value else value for value in column], dtype=object)


def small(y_of, kind=BGNLMRegressor, **settings):
    rng = np.random.default_rng(5)
    X = rng.uniform(0.5, 2.0, size=(50, 2))
    given = {**SETTINGS, "missing": "raise", **settings}
    return kind(**given).fit(X, y_of(rng, X)), X


def test_without_names_columns_go_by_their_place():
    model, X = small(lambda rng, X: X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=len(X)))
    close([function(model.export("python"))(row) for row in X], model.predict(X))
    close(function(model.export("numpy"))(X), model.predict(X))
    rows = [[i, *row] for i, row in enumerate(X.tolist())]
    found = sqlite_table("t", ["id", "x1", "x2"], rows).execute(model.export("sql", table="t", keep=["id"])).fetchall()
    close(fetched(found)[:, 0], model.predict(X))


def test_what_predict_refuses_is_refused():
    model, _ = small(lambda rng, X: X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=len(X)))
    one, many = function(model.export("python")), function(model.export("numpy"))
    for bad in (math.nan, None, math.inf, 1e200, -1e308):
        with pytest.raises(ValueError, match="column 'x1' must"):
            one([bad, 1.0])
        with pytest.raises(ValueError, match="column 'x1' must"):
            many(np.array([[bad, 1.0], [1.0, 1.0]], dtype=object))
        with pytest.raises(RefusedError):
            from_json(model.export("json"), {"x1": bad, "x2": 1.0})
        rows = [[0, bad, 1.0], [1, 1.0, 1.0]]
        found = sqlite_table("t", ["id", "x1", "x2"], rows).execute(model.export("sql", table="t", keep=["id"]))
        first, second = fetched(found.fetchall())[:, 0]
        assert math.isnan(first)
        close(second, model.predict([[1.0, 1.0]])[0])
        expression = model.export("sql", "best")
        found = sqlite_table("t", ["id", "x1", "x2"], rows).execute(f"SELECT id, {expression} FROM t")
        assert math.isnan(fetched(found.fetchall())[0, 0])
        pytest.importorskip("onnxruntime")
        columns = {"x1": np.array([math.nan if bad is None else bad, 1.0]), "x2": np.ones(2)}
        assert np.isnan(onnx_outputs(model.export("onnx"), columns)).tolist() == [True, False]


def test_missing_values_of_databases_that_know_nan():
    duckdb = pytest.importorskip("duckdb")
    rng = np.random.default_rng(8)
    X = pd.DataFrame({"a": rng.uniform(size=50), "b": rng.uniform(size=50)})
    X.loc[:5, "a"] = np.nan
    y = X["a"].fillna(2.0) * X["b"] + 0.05 * rng.normal(size=50)
    model = BGNLMRegressor(**SETTINGS).fit(X, y)
    with duckdb.connect() as database:
        database.execute("CREATE TABLE t (id INTEGER, a DOUBLE, b DOUBLE)")
        rows = [[0, math.nan, 0.5], [1, None, 0.5], [2, math.inf, 0.5], [3, 0.5, 0.5]]
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        found = fetched(database.execute(model.export("sql", table="t", keep=["id"])).fetchall())[:, 0]
    missing, present = model.predict(pd.DataFrame({"a": [np.nan, 0.5], "b": [0.5, 0.5]}))
    assert np.isnan(found[2])
    close(found[[0, 1, 3]], [missing, missing, present])


def test_an_offset():
    rng = np.random.default_rng(9)
    X = pd.DataFrame({"x": rng.normal(size=60), "offset": rng.normal(size=60)})
    exposure = rng.uniform(0, 1, 60)
    model = BGNLMRegressor(family="poisson", **SETTINGS).fit(X, rng.poisson(np.exp(X["x"] + exposure)), offset=exposure)
    want = model.predict(X, offset=exposure)
    records = X.to_dict("records")
    close([function(model.export("python"))(row, o) for row, o in zip(records, exposure, strict=True)], want)
    close(function(model.export("numpy"))(X, exposure), want)
    close([from_json(model.export("json"), row, o) for row, o in zip(records, exposure, strict=True)], want)
    rows = [[i, *values, o] for i, (values, o) in enumerate(zip(X.to_numpy().tolist(), exposure.tolist(), strict=True))]
    database = sqlite_table("t", ["id", "x", "offset", "log exposure"], rows)
    query = model.export("sql", table="t", keep=["id"], offset="log exposure")
    close(fetched(database.execute(query).fetchall())[:, 0], want)
    query = f"SELECT id, {model.export('sql', 'best', offset='log exposure')} FROM t"
    close(fetched(database.execute(query).fetchall())[:, 0], model.predict(X, offset=exposure, using="best"))
    pytest.importorskip("onnxruntime")
    columns = {"x": X["x"].to_numpy(), "offset": X["offset"].to_numpy(), "offset_": exposure}
    close(onnx_outputs(model.export("onnx"), columns), want)


@pytest.mark.parametrize("family", ["poisson", "two", "three"])
def test_the_linear_predictor_is_averaged(family):
    model, X = fitted(family), table()
    from bgnlm.posterior.predict import _located

    rows = model._rows(X)
    want = []
    for found in model.searches_:
        parts = [here.location @ found.average.probabilities for here in _located(found.average, rows)]
        want.append(np.concatenate(parts))
    want = np.array(want).T if len(want) > 1 else want[0]
    predict = function(model.export("python", of="linear_predictor"))
    close([values(predict(row), model) for row in X.to_dict("records")], want)
    close(function(model.export("numpy", of="linear_predictor"))(X), want)
    text = model.export("json", of="linear_predictor")
    close([from_json(text, row) for row in X.to_dict("records")], want)
    pytest.importorskip("onnxruntime")
    found = onnx_outputs(model.export("onnx", of="linear_predictor"), {name: _for_onnx(X[name]) for name in X})
    close(found, want)


def test_weights_that_are_averaged_over_are_a_mixture():
    settings = {
        "projection_weights": ProjectionWeights(strategy="bayesian", n_weight_draws=200),
        "transforms": ["sigmoid"],
    }
    model, X = small(lambda rng, X: rng.poisson(2 * expit(3 * X[:, 0] - 2 * X[:, 1])), family="poisson", **settings)
    for using in ("average", "best", "median"):
        close([function(model.export("python", using))(row) for row in X], model.predict(X, using=using))


def test_the_part_of_the_features_of_models_with_latent_components():
    rng = np.random.default_rng(10)
    X = pd.DataFrame({"x": rng.normal(size=60), "group": rng.integers(6, size=60).astype(str)})
    effects = rng.normal(size=6)
    y = rng.poisson(np.exp(0.5 * X["x"] + effects[X["group"].astype(int)]))
    model = BGNLMRegressor(family="poisson", latent=[Grouped("group")], **SETTINGS).fit(X, y)
    with pytest.raises(SettingError, match="without_latent=True"):
        model.export("python")
    new = X.assign(group="another")
    predict = function(model.export("python", without_latent=True))
    close([predict(row) for row in new.to_dict("records")], model.predict(new))
    with pytest.raises(SettingError, match="uncertainty"):
        model.export("json", without_latent=True, with_uncertainty=True)


def test_intervals_from_the_document_alone():
    model, X = fitted("gaussian"), table()
    document = json.loads(model.export("json", with_uncertainty=True))
    row = X.iloc[7].to_dict()
    z, parts = standardised(document, row), []
    for one in document["parts"][0]["uncertainty"]:
        unit = np.array([1.0, *(z[j] for j in one["features"])])
        size = len(unit)
        factor = np.zeros((size, size))
        for i, entries in enumerate(one["factor"]):
            factor[i, i:] = entries
        scale = math.sqrt(one["dispersion"] * (1.0 + np.square(factor.T @ unit).sum()))
        shape = stats.norm if one["degrees_of_freedom"] is None else stats.t(one["degrees_of_freedom"])
        parts.append((one["probability"], unit @ one["mean"], scale, shape))
    for level, end in zip((0.05, 0.95), model.predict_interval(X.iloc[[7]], 0.9)[0], strict=True):
        below = sum(p * shape.cdf((end - place) / scale) for p, place, scale, shape in parts)
        assert below == pytest.approx(level, abs=1e-4)  # predict merges models that are nearly the same


@pytest.mark.parametrize(("family", "link"), [("binomial", "logit"), ("poisson", "log")])
def test_intervals_of_the_mean_of_other_families(family, link):
    model, X = fitted(family, link), table()
    document = json.loads(model.export("json", with_uncertainty=True))
    z, parts = standardised(document, X.iloc[7].to_dict()), []
    for one in document["parts"][0]["uncertainty"]:
        unit = np.array([1.0, *(z[j] for j in one["features"])])
        factor = np.zeros((len(unit), len(unit)))
        for i, entries in enumerate(one["factor"]):
            factor[i, i:] = entries
        parts.append((one["probability"], unit @ one["mean"], np.linalg.norm(factor.T @ unit)))
    ends = model.predict_interval(X.iloc[[7]], 0.9, of="mean")[0]
    to_eta = {"logit": lambda mean: math.log(mean / (1 - mean)), "log": math.log}[link]
    for level, end in zip((0.05, 0.95), ends, strict=True):
        below = sum(p * stats.norm.cdf(to_eta(end), place, max(spread, 1e-12)) for p, place, spread in parts)
        assert below == pytest.approx(level, abs=2e-3)


def test_a_loaded_model_exports_the_same(tmp_path):
    model = fitted("three")
    model.save(tmp_path / "m.bgnlm")
    other = load(tmp_path / "m.bgnlm")
    for kind in ("python", "numpy", "json"):
        assert other.export(kind) == model.export(kind)
    assert other.export("sql", table="t") == model.export("sql", table="t")


def test_thousands_of_models():
    """SQLite takes neither deep expressions nor tables of more than 2,000 columns."""
    model, X = small(lambda rng, X: rng.poisson(X[:, 0] * X[:, 1]), family="poisson")
    program = program_of(model, "average", "mean", without_latent=False)
    part, n = program.parts[0], 2500
    rng = np.random.default_rng(11)
    many = replace(
        part,
        probabilities=np.full(n, 1.0 / n),
        starts=np.arange(n + 1) * 2,
        members=np.tile([0, 1], n),
        coefficients=0.3 * rng.normal(size=3 * n),
        offsets=np.ones(n),
    )
    program = replace(program, parts=(many,))
    rows = [[i, *row] for i, row in enumerate(X[:5].tolist())]
    database = sqlite_table("t", ["id", "x1", "x2"], rows)
    query = to_sql(program, table="t", keep=["id"], offset=None)
    predict = function(to_python(program, "predict"))
    close(fetched(database.execute(query).fetchall())[:, 0], [predict(row) for row in X[:5]])
    with pytest.raises(SettingError, match="Give table="):
        to_sql(program, table=None, keep=(), offset=None)


def test_formulas():
    model = fitted("gaussian")
    assert model.export("latex", "median", digits=3) == model.expression("median", "latex", 3)
    assert model.export("text", "best") == model.expression("best")
    pytest.importorskip("sympy")
    assert model.export("sympy") == model.expression("average", "sympy")


def test_what_can_be_asked_for():
    model = fitted("three")
    with pytest.raises(SettingError, match="kind must be one of 'python'"):
        model.export("fortran")
    with pytest.raises(SettingError, match="using must be one of"):
        model.export("python", "worst")
    with pytest.raises(SettingError, match="of must be one of"):
        model.export("python", of="median")
    with pytest.raises(SettingError, match="has the options name; got table"):
        model.export("python", table="t")
    with pytest.raises(SettingError, match="several classes"):
        model.export("sql")
    with pytest.raises(SettingError, match="of the mean"):
        model.export("latex", of="linear_predictor")
    with pytest.raises(SettingError, match="name must be that of a Python function"):
        model.export("numpy", name="a b")
    with pytest.raises(SettingError, match="keep is for a query"):
        fitted("gaussian").export("sql", keep=["id"])
    with pytest.raises(SettingError, match="keep must be a list"):
        fitted("gaussian").export("sql", table="t", keep="id")


def test_a_transform_of_ones_own_needs_a_form():
    bump = Transform("bump_of", lambda x: np.exp(-((3 * x - 3) ** 4)))
    model, _ = small(lambda _, X: np.exp(-((3 * X[:, 0] - 3) ** 4)), transforms=[bump])
    assert "bump_of" in model.export("text", "best")
    with pytest.raises(FeatureError, match="bump_of cannot be exported"):
        model.export("sql", "best")
