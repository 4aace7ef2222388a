"""Models as formulas: what they say is what is predicted."""

from functools import cache

import numpy as np
import pytest
from scipy.special import expit, ndtr

from bgnlm import BGNLMClassifier, BGNLMRegressor, SearchConfig, Transform
from bgnlm.errors import SettingError
from bgnlm.features import parse, registered_transforms
from bgnlm.search import ModelPrior
from tests.naive_glm import PAIRS

QUICK = SearchConfig(n_populations=3, population_size=8, n_candidates=40)
CASES = [("gaussian", "identity"), *PAIRS]
cases = pytest.mark.parametrize(("family", "link"), CASES)
using_all = pytest.mark.parametrize("using", ["best", "median", "average"])
N = 40
INVERSE = {
    "inverse_logit": expit,
    "inverse_probit": ndtr,
    "inverse_cloglog": lambda eta: -np.expm1(-np.exp(eta)),
    "exp": np.exp,
}
NEW = np.random.default_rng(51).uniform(0.5, 2.0, size=(9, 3))


@cache
def fitted(family, link=None, transforms="default"):
    rng = np.random.default_rng(52)
    X = rng.uniform(0.5, 2.0, size=(N, 3))
    eta = X[:, 0] * X[:, 1] - 1.0
    y = {
        "gaussian": lambda: eta + 0.3 * rng.normal(size=N),
        "binomial": lambda: rng.random(N) < expit(eta),
        "poisson": lambda: rng.poisson(np.exp(eta)),
        "gamma": lambda: rng.gamma(5.0, np.exp(eta) / 5.0),
        "negative_binomial": lambda: rng.poisson(np.exp(eta) * rng.gamma(3.0, 1.0 / 3.0, N)),
    }[family]()
    settings = {"search": QUICK, "n_chains": 1, "random_state": 0, "transforms": transforms}
    return BGNLMRegressor(family=family, link=link, **settings).fit(X, y)


def computed(text, columns):
    """Let Python read a formula."""
    functions = {transform.name: transform.function for transform in registered_transforms()}
    names = {f"x{j + 1}": column for j, column in enumerate(columns.T)}
    with np.errstate(all="ignore"):
        return np.broadcast_to(eval(text, {}, {**functions, **INVERSE, **names}), len(columns))


@cases
@using_all
def test_sympy_agrees_with_predictions(family, link, using):
    sympy = pytest.importorskip("sympy")
    model = fitted(family, link)
    formula = model.expression(using, "sympy")
    symbols = [sympy.Symbol(f"x{j}", real=True) for j in (1, 2, 3)]
    assert formula.free_symbols <= set(symbols)
    mean = np.broadcast_to(sympy.lambdify(symbols, formula, "scipy")(*NEW.T), 9)
    assert mean == pytest.approx(model.predict(NEW, using=using), rel=1e-8, abs=1e-10)


@cases
@using_all
def test_texts_agree_with_predictions(family, link, using):
    model = fitted(family, link)
    left, right = model.expression(using, digits=17).split(" = ")
    n_models = len(model.searches_[0].models(using))
    inverse = "exp" if link == "log" else f"inverse_{link}"
    if link == "identity":
        assert left == "y"
    elif n_models == 1:
        assert left == f"{link}(E(y))"
        right = f"{inverse}({right})"
    else:
        assert left == "E(y)"
        assert right.count(f"*{inverse}(") == n_models
    assert computed(right, NEW) == pytest.approx(model.predict(NEW, using=using), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("transforms", ["trees", "splines", "fractional-polynomials", "kepler-g2", "none"])
@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_every_kind_of_transform(family, transforms):
    sympy = pytest.importorskip("sympy")
    model = fitted(family, None, transforms)
    formula = model.expression("average", "sympy")
    mean = sympy.lambdify(sympy.symbols("x1:4", real=True), formula, "scipy")(*NEW.T)
    assert mean == pytest.approx(model.predict(NEW), rel=1e-8, abs=1e-10)


@cases
@using_all
def test_latex_is_balanced(family, link, using):
    text = fitted(family, link).expression(using, "latex")
    assert text.count("{") == text.count("}")
    assert text.count(r"\left") == text.count(r"\right")
    assert " = " in text
    assert "*" not in text
    assert text.isprintable()


def test_digits():
    model = fitted("gaussian")
    short, default, long = (model.expression(digits=digits) for digits in (1, 6, 17))
    assert len(short) < len(default) < len(long)
    assert model.expression() == default
    for digits in (0, -1, 1.5, "a", None, True):
        with pytest.raises(SettingError, match="digits must be"):
            model.expression(digits=digits)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"format": "word"}, "format must be one of 'text', 'latex', 'sympy'; got 'word'"),
        ({"format": None}, "format must be one of"),
        ({"using": "all"}, "using must be one of 'average', 'best', 'median'; got 'all'"),
    ],
)
def test_forms_that_are_none(arguments, message):
    with pytest.raises(SettingError, match=message):
        fitted("gaussian").expression(**arguments)


def test_odd_names_can_be_read_back():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(53)
    names = ["a b", "x`y", "caf\u00e9 {1}", "new\nline", "100%", "a\\b"]
    X = pd.DataFrame(rng.uniform(1.0, 2.0, size=(N, 6)), columns=names)
    y = pd.Series(X["a b"] * X["x`y"] - X["new\nline"] + 0.01 * rng.normal(size=N), name="net $ & co_1")
    model = BGNLMRegressor(search=QUICK, n_chains=1, random_state=0).fit(X, y)
    for text in model.features_["expression"]:
        assert str(parse(text)) == text
    assert "\n" not in model.expression()
    assert model.expression().startswith("net $ & co_1 = ")
    latex = model.expression("average", "latex")
    assert latex.startswith(r"\text{net \$ \& co\_1} = ")
    assert latex.count("{") - latex.count(r"\{") == latex.count("}") - latex.count(r"\}")
    sympy = pytest.importorskip("sympy")
    formula = model.expression("average", "sympy")
    symbols = [sympy.Symbol(name, real=True) for name in names]
    mean = sympy.lambdify(symbols, formula, "scipy")(*X.to_numpy().T)
    assert mean == pytest.approx(model.predict(X), rel=1e-8)


def test_a_transform_of_ones_own_is_a_function_by_name():
    sympy = pytest.importorskip("sympy")
    rng = np.random.default_rng(54)
    X = rng.uniform(0.5, 2.0, size=(N, 2))
    wave = Transform("my_wave", lambda x: np.sin(3.0 * x))
    model = BGNLMRegressor(
        search=QUICK, n_chains=1, random_state=0, transforms=[wave], keep=[parse("my_wave(x1)", [wave])]
    )
    model.fit(X, np.sin(3.0 * X[:, 0]) + 0.05 * rng.normal(size=N))
    assert "my_wave(x1)" in model.expression()
    formula = model.expression(format="sympy")
    mean = sympy.lambdify(sympy.symbols("x1:3", real=True), formula, [{"my_wave": wave.function}, "scipy"])(*X.T)
    assert mean == pytest.approx(model.predict(X, using="best"), rel=1e-8)


def test_classes():
    rng = np.random.default_rng(55)
    X = rng.normal(size=(N, 2))
    settings = {"search": QUICK, "n_chains": 1, "random_state": 0}
    two = BGNLMClassifier(**settings).fit(X, X[:, 0] + rng.normal(size=N) > 0)
    left, right = two.expression(digits=17).split(") = ")
    assert left == "logit(P(y = True)"
    assert two.expression(format="latex").startswith(r"\operatorname{logit}(\mathrm{P}(y = \mathrm{True})) = ")
    assert expit(computed(right, X)) == pytest.approx(two.predict_proba(X, using="best")[:, 1])
    three = BGNLMClassifier(**settings).fit(X, np.digitize(X[:, 0] + rng.normal(size=N), [-0.5, 0.5]))
    each = three.expression("best", "text", 17)
    assert list(each) == [0, 1, 2]
    shares = np.column_stack([expit(computed(text.split(") = ")[1], X)) for text in each.values()])
    expected = shares / shares.sum(axis=1, keepdims=True)
    assert three.predict_proba(X, using="best") == pytest.approx(expected)


def test_a_model_without_features_is_its_intercept():
    rng = np.random.default_rng(56)
    X, y = rng.normal(size=(N, 2)), rng.normal(size=N)
    prior = ModelPrior(penalty=50.0, complexity="oc+1")
    model = BGNLMRegressor(search=QUICK, n_chains=1, random_state=0, penalty=prior).fit(X, y)
    for using in ("best", "median"):
        assert model.expression(using, digits=3) == f"y = {y.mean():.3g}"
