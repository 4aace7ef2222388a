"""Features in every language compute what the evaluator does, for all transforms and for numbers of any size."""

import sqlite3

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bgnlm.errors import FeatureError
from bgnlm.features import Evaluator, Transform, modify, parse, registered_transforms
from bgnlm.report.export.bounds import all_bounds
from bgnlm.report.export.graph import evaluate, in_order
from bgnlm.report.export.json_document import to_json
from bgnlm.report.export.numpy_source import to_numpy
from bgnlm.report.export.onnx_graph import to_onnx
from bgnlm.report.export.program import Part, Program, SourceColumn, StandardFeature
from bgnlm.report.export.python_source import to_python
from bgnlm.report.export.sql import to_sql
from bgnlm.report.export.symbols import expression_of
from tests.features.strategies import tame_features

from .languages import fetched, from_json, function, onnx_outputs, sqlite_table

NAMES = ["a", "b", "a b", "sin"]
LOW, HIGH, MIDDLE = -7.0, 8.0, 0.5
EXTREMES = [0.0, 1.0, -1.0, 0.5, 2.0, -3.0, 1e-5, -1e-9, 1e3, -40.0, 64.0, 720.0, 1e30, 1e140, -1e140]
numbers = st.sampled_from(EXTREMES) | st.floats(-5, 5)
tables = st.lists(st.tuples(*[numbers] * len(NAMES)), min_size=1, max_size=6).map(np.array)
TRANSFORMS = [transform.name for transform in registered_transforms()]


def program_of(feature, names=NAMES):
    """An identity of one feature."""
    columns = [SourceColumn(name, j, "numeric", None, None, (), (name,), False) for j, name in enumerate(names)]
    part = Part(
        event=None,
        probabilities=np.ones(1),
        starts=np.array([0, 1]),
        members=np.array([0]),
        coefficients=np.array([0.0, 1.0]),
        offsets=np.ones(1),
        source=None,
    )
    return Program(
        columns=tuple(columns),
        has_names=True,
        response="y",
        family="gaussian",
        link="identity",
        using="best",
        of="mean",
        classes=None,
        has_offset=False,
        features=(StandardFeature(feature, LOW, HIGH, MIDDLE, 0.0, 1.0),),
        parts=(part,),
    )


def expected(feature, X, names=NAMES):
    """Values, and where they hang on the last digits of the numbers or on the sign of a zero."""
    columns = [Evaluator(table, names).column(feature) for table in _neighbours(X)]
    finite = [np.clip(np.nan_to_num(c, nan=MIDDLE, posinf=HIGH, neginf=LOW), -1e100, 1e100) for c in columns]
    spread = np.max(np.abs(np.array(finite) - finite[0]), axis=0)
    return finite[0], spread <= 1e-9 * (1 + np.abs(finite[0]))


def _neighbours(X):
    signs = np.where(np.arange(X.shape[1]) % 2, 1e-13, -1e-13)
    yield X
    for shift in (1e-13, -1e-13, signs, -signs):
        yield X * (1 + shift)
    for j in range(X.shape[1]):
        other = X.copy()
        other[:, j] = np.where(X[:, j] == 0.0, -0.0, X[:, j])
        yield other


def compare(found, feature, X, names=NAMES, tolerance=1e-7):
    want, is_stable = expected(feature, X, names)
    error = np.abs(np.asarray(found, dtype=float) - want)
    assert (error[is_stable] <= tolerance * (1 + np.abs(want[is_stable]))).all(), (str(feature), found, want)


def as_rows(X, names=NAMES):
    return [dict(zip(names, row, strict=True)) for row in X.tolist()]


def run_python(feature, X, names=NAMES):
    predict = function(to_python(program_of(feature, names), "predict"))
    return [predict(row) for row in as_rows(X, names)]


def run_numpy(feature, X, names=NAMES):
    return function(to_numpy(program_of(feature, names), "predict"))(dict(zip(names, X.T, strict=True)))


def run_json(feature, X, names=NAMES):
    text = to_json(program_of(feature, names), with_uncertainty=False)
    return [from_json(text, row) for row in as_rows(X, names)]


def run_sqlite(feature, X, names=NAMES):
    rows = [[i, *row] for i, row in enumerate(X.tolist())]
    database = sqlite_table("t", ["id", *names], rows)
    query = to_sql(program_of(feature, names), table="t", keep=["id"], offset=None)
    return fetched(database.execute(query).fetchall())[:, 0]


def run_duckdb(feature, X, names=NAMES):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as database:
        columns = ", ".join('"' + name.replace('"', '""') + '" DOUBLE' for name in names)
        database.execute(f"CREATE TABLE t (id INTEGER, {columns})")
        rows = [[i, *row] for i, row in enumerate(X.tolist())]
        database.executemany(f"INSERT INTO t VALUES ({', '.join('?' * (1 + len(names)))})", rows)
        query = to_sql(program_of(feature, names), table="t", keep=["id"], offset=None)
        return fetched(database.execute(query).fetchall())[:, 0]


def run_onnx(feature, X, names=NAMES):
    pytest.importorskip("onnxruntime")
    return onnx_outputs(to_onnx(program_of(feature, names)), dict(zip(names, np.ascontiguousarray(X.T), strict=True)))


LANGUAGES = [run_python, run_numpy, run_json, run_sqlite, run_duckdb, run_onnx]
every_language = pytest.mark.parametrize("run", LANGUAGES, ids=lambda run: run.__name__.removeprefix("run_"))


@every_language
@settings(deadline=None, max_examples=60)
@given(tame_features, tables)
def test_any_feature(run, feature, X):
    compare(run(feature, X), feature, X)


@every_language
@pytest.mark.parametrize("name", TRANSFORMS)
def test_every_transform_on_its_own(run, name):
    inner = f"{name}(a, 0.7)" if parse(f"{name}(a)").transform.quantile is not None else f"{name}(a)"
    X = np.array(EXTREMES)[:, None]
    feature = parse(inner)
    compare(run(feature, X, ["a"]), feature, X, ["a"])


@every_language
@pytest.mark.parametrize("transform", ["step(#)", "relu(#)", "above_median(#, 0.5)", "fp_1_log(#)"])
def test_what_is_not_defined_stays_so(run, transform):
    """0 * (1/0) is NaN, which no comparison may turn into a number."""
    text = transform.replace("#", "a*inverse(a)")
    X = np.array([[0.0], [2.0]])
    found = run(parse(text), X, ["a"])
    assert found[0] == MIDDLE
    compare(found, parse(text), X, ["a"])


@settings(deadline=None)
@given(tame_features, tables)
def test_values_lie_within_their_bounds(feature, X):
    root = expression_of(feature)
    bounds = all_bounds([root], {})
    columns = dict(zip(NAMES, X.T, strict=True))
    for node in in_order([root]):
        if node.op in ("where", "add", "mul", "div", "pow", "exp", "log", "abs", "max", "sin", "sub", "neg", "log1p"):
            value, found = np.asarray(evaluate(node, columns), dtype=float), bounds[node]
            present = value[~np.isnan(value)]
            slack = 1e-12 * max(1.0, *(abs(end) for end in found[:2] if np.isfinite(end)), 1.0)
            assert (present >= found.low - slack).all()
            assert (present <= found.high + slack).all()
            assert found.nan or not np.isnan(value).any()


@every_language
def test_a_transform_of_ones_own_with_a_sympy_form(run):
    softplus = Transform(
        "my_softplus",
        lambda x: np.where(x > 30, x, np.log1p(np.exp(np.minimum(x, 30)))),
        sympy=lambda sp, x: sp.Piecewise((x, x > 30), (sp.log(1 + sp.exp(sp.Min(x, 30))), True)),
    )
    odd = Transform(
        "my_odd",
        lambda x: np.where(
            (x > -1) & ~(x == 0.5), np.tan(x) + np.arcsinh(x) + np.sign(x), np.floor(x) + np.ceil(x / 3)
        ),
        sympy=lambda sp, x: sp.Piecewise(
            (sp.tan(x) + sp.asinh(x) + sp.sign(x), sp.And(x > -1, sp.Ne(x, 0.5))),
            (sp.floor(x) + sp.ceiling(x / sp.Rational(3)), True),
        ),
    )
    inverse = Transform(
        "my_inverse",
        lambda x: np.arcsin(x) + np.arccos(x) * np.arctanh(x) + np.arccosh(1 + x**2) + np.sinh(x) - np.cosh(x),
        sympy=lambda sp, x: sp.asin(x) + sp.acos(x) * sp.atanh(x) + sp.acosh(1 + x**2) + sp.sinh(x) - sp.cosh(x),
    )
    X = np.array([[-3.0], [-0.4], [0.3], [0.5], [0.9], [25.0], [40.0]])
    for transform in (softplus, odd, inverse):
        feature = modify(transform, parse("a"))
        compare(run(feature, X, ["a"]), feature, X, ["a"])


def test_a_transform_without_a_form_says_how_to_give_one():
    with pytest.raises(FeatureError, match=r"cube cannot be exported.*Transform\('cube', function, sympy=lambda sp, x"):
        expression_of(modify(Transform("cube", lambda x: x**3), parse("x")))
    bessel = Transform("bessel", np.sin, sympy=lambda sp, x: sp.besselj(0, x))
    with pytest.raises(FeatureError, match="do not know the function besselj of SymPy"):
        expression_of(modify(bessel, parse("x")))
    with pytest.raises(FeatureError, match="no truth value"):
        expression_of(modify(Transform("branch", np.sin, sympy=lambda _, x: x if x > 0 else -x), parse("x")))
    with pytest.raises(FeatureError, match="cut point of hinge_up"):
        expression_of(parse("hinge_up(x)"))


def test_deep_features_do_not_reach_the_limits_of_parsers():
    feature = parse("x")
    for _ in range(90):
        feature = modify(parse("gelu(x)").transform, feature)
    X = np.array([[0.5], [3.0]])
    for run in (run_python, run_numpy, run_sqlite, run_duckdb):
        compare(run(feature, X, ["x"]), feature, X, ["x"])


def test_sqlite_has_mathematics():
    assert sqlite3.connect(":memory:").execute("SELECT exp(0.0)").fetchone() == (1.0,)
