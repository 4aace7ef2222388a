import re
import subprocess
import sys

import numpy as np
import pytest
import sympy
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from bgnlm.errors import FeatureError, MissingExtraError, SettingError
from bgnlm.features import Evaluator, Input, Transform, modify, parse, to_latex, to_sympy

from .strategies import NASTY_NAMES, any_features, tame_features

CUBE = Transform("my_cube", lambda x: x**3)


@pytest.mark.parametrize(
    ("text", "latex"),
    [
        ("x", "x"),
        ("x1", r"\mathrm{x1}"),
        ("`a b`", r"\text{a b}"),
        ("a_b", r"\text{a\_b}"),
        (
            "`$x^2$ 100% #1 {}~\\\\&`",
            r"\text{\$x\textasciicircum{}2\$ 100\% \#1 \{\}\textasciitilde{}\textbackslash{}\&}",
        ),
        ("x*y**2", r"x \, y^{2}"),
        ("sin(x)**2", r"\left(\sin\left(x\right)\right)^{2}"),
        ("sigmoid(0.5 + 2*x - 3.14159*y)", r"\sigma\left(0.5 + 2 \, x - 3.142 \, y\right)"),
        ("sigmoid(-x + 1e-7*y)", r"\sigma\left(-x + 1 \cdot 10^{-7} \, y\right)"),
        ("above_median(x, 3.2)", r"\mathbb{1}\left(x > 3.2\right)"),
        ("above_median(x)", r"\mathbb{1}\left(x > t\right)"),
        ("hinge_up(x, -1.5)", r"\max\left(0, x - \left(-1.5\right)\right)"),
        ("hinge_up(`#2`, 1)", r"\max\left(0, \text{\#2} - 1\right)"),
        ("my_cube(x)", r"\operatorname{my\_cube}\left(x\right)"),
    ],
)
def test_latex(text, latex):
    assert to_latex(parse(text, [CUBE])) == latex


@settings(deadline=None)
@given(any_features)
def test_latex_is_balanced_and_escaped(feature):
    latex = to_latex(feature)
    bare = re.sub(r"\\[{}$&%#_]", "", latex)
    assert bare.count("{") == bare.count("}")
    assert latex.count(r"\left") == latex.count(r"\right")
    assert not re.search(r"[$&%#~]", bare)
    assert "\n" not in latex


@pytest.mark.parametrize("name", NASTY_NAMES)
def test_inputs_become_real_symbols_of_their_name(name):
    symbol = to_sympy(Input(name))
    assert (symbol.name, symbol.is_real) == (name, True)


def test_sympy_forms():
    x, y = sympy.symbols("x y", real=True)
    assert to_sympy(parse("x*x*sin(y)")) == x**2 * sympy.sin(y)
    assert to_sympy(parse("tanh(x + 2*y)")) == sympy.tanh(x + 2 * y)
    assert to_sympy(parse("my_cube(0.5 + x + y)", [CUBE])) == sympy.Function("my_cube")(x + y + sympy.Float(0.5))
    assert to_sympy(parse("hinge_up(x, 2)")) == sympy.Max(0, x - 2)


def test_sympy_needs_the_cut_point():
    with pytest.raises(FeatureError, match="learn_cut_points"):
        to_sympy(parse("sin(above_median(x))"))


@settings(deadline=None, max_examples=400)
@given(tame_features, st.lists(st.floats(-2, 2).filter(lambda x: abs(x) > 0.05), min_size=4, max_size=4))
def test_evaluation_agrees_with_sympy(feature, point):
    names = ("a", "b", "a b", "sin")
    # Where a nudge of the inputs shows in the values, rounding does too.
    values = Evaluator(np.outer([1, 1 + 1e-13, 1 - 1e-13], point), names).column(feature)
    assume(np.isfinite(values).all())
    assume(np.ptp(values) <= 1e-10 * abs(values[0]))
    substitution = {sympy.Symbol(n, real=True): sympy.Float(v, 40) for n, v in zip(names, point, strict=True)}
    expected = to_sympy(feature).subs(substitution).evalf(30)
    assume(expected.is_finite)  # SymPy gives no value to exp(-1/0)
    assert values[0] == pytest.approx(float(expected), rel=1e-9, abs=1e-300)


@pytest.mark.parametrize("write", [to_latex, to_sympy])
def test_only_features_are_written(write):
    with pytest.raises(FeatureError, match="expected a feature, got 'x'"):
        write("x")
    with pytest.raises(SettingError, match="digits must be 1 or more"):
        to_latex(Input("x"), -1)


def test_missing_sympy_is_an_error_with_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "sympy", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'bgnlm\[sympy\]'"):
        to_sympy(modify(CUBE, Input("x")))


def test_import_is_light():
    program = (
        "import sys, bgnlm.features\n"
        "print([name for name in ('sympy', 'numba', 'pandas', 'scipy', 'sklearn') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
