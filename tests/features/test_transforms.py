"""Every transform of the library, row by row; the register; the presets."""

from math import e, log, pi, sqrt

import numpy as np
import pytest
import sympy

from bgnlm.errors import FeatureError, SettingError
from bgnlm.features import (
    PRESETS,
    Input,
    Transform,
    get_transform,
    modify,
    register,
    registered_transforms,
    resolve_transforms,
    to_latex,
)
from bgnlm.features import transform as transform_module
from bgnlm.features.transform import _library

VALUES = {  # argument: value; threshold transforms have their cut point at 2
    "sigmoid": {0: 0.5, log(3): 0.75, -log(3): 0.25, -800: 0, 800: 1},
    "gauss": {0: 1, 1: 0.36787944117144233, -2: 0.01831563888873418},
    "tanh": {0: 0, log(3) / 2: 0.5, -log(3) / 2: -0.5},
    "atan": {1: pi / 4, -sqrt(3): -pi / 3},
    "sin": {pi / 6: 0.5, -pi / 2: -1},
    "cos": {pi / 3: 0.5, pi: -1},
    "sin_deg": {30: 0.5, -90: -1},
    "cos_deg": {60: 0.5, 180: -1},
    "exp_neg_abs": {0: 1, log(2): 0.5, -log(4): 0.25},
    "log1p_abs": {0: 0, e - 1: 1, 1 - e**2: 2},
    "cbrt_abs": {8: 2, -27: 3},
    "sqrt_abs": {9: 3, -16: 4},
    "abs_pow_2_3": {2: 4.924577653379664, -10: 199.52623149688797},
    "abs_pow_5_2": {4: 32, -9: 243},
    "abs_pow_7_2": {4: 128, -9: 2187},
    "erf": {0: 0, 1: 0.8427007929497149, -0.5: -0.5204998778130465},
    "relu": {3: 3, -2: 0},
    "gelu": {0: 0, 1: 0.8413447460685429, -1: -0.15865525393145707},
    "inverse": {4: 0.25, -2: -0.5},
    "step": {1: 1, 0.99: 0, 5: 1, -1: 0},
    "not_": {0: 1, 1: 0, 0.25: 0.75},
    "hinge_up": {5: 3, 2: 0, -1: 0},
    "hinge_down": {5: 0, 2: 0, -1: 3},
    "above_median": {5: 1, 2: 0, -1: 0},
    "below_q25": {5: 0, 2: 0, -1: 1},
    "above_q75": {5: 1, 2: 0, -1: 0},
    "fp_m2": {2: 0.25, -4: 0.0625},
    "fp_m1": {4: 0.25, -2: -0.5},
    "fp_m05": {4: 0.5, -16: 0.25},
    "fp_0": {e: 1, -(e**2): 2},
    "fp_05": {4: 2, -9: 3},
    "fp_2": {3: 9, -2: 4},
    "fp_3": {3: 27, -2: -8},
    "fp_m2_log": {e: e**-2, -e: e**-2, 1: 0},
    "fp_m1_log": {e: 1 / e, -e: -1 / e, 1: 0},
    "fp_m05_log": {e: e**-0.5, -e: e**-0.5, 1: 0},
    "fp_0_log": {e: 1, -(e**2): 4, 1: 0},
    "fp_05_log": {e: e**0.5, -e: e**0.5, 0: 0},
    "fp_1_log": {e: e, -e: -e, 0: 0},
    "fp_2_log": {e: e**2, -e: e**2, 0: 0},
    "fp_3_log": {e: e**3, -e: -(e**3), 0: 0},
}
NO_DERIVATIVE = {"step", "above_median", "below_q25", "above_q75"}
SMOOTH = {
    *["sigmoid", "gauss", "tanh", "atan", "sin", "cos", "sin_deg", "cos_deg", "erf", "gelu", "not_"],
    *["abs_pow_2_3", "abs_pow_5_2", "abs_pow_7_2", "fp_2", "fp_3", "fp_2_log", "fp_3_log"],
}
POINTS = np.array([-2.6, -1.3, -0.4, 0.7, 1.6, 2.3, 31.0])  # away from kinks and poles at 0, 1 and 2


def cut_points(transform):
    return () if transform.quantile is None else (2.0,)


def differences(transform, x, step):
    parameters = cut_points(transform)
    ahead, behind = (transform.function(x + h, *parameters) for h in (step, -step))
    return (ahead - behind) / (2 * step)


def test_every_transform_has_a_row():
    assert {transform.name for transform in registered_transforms()} == set(VALUES) == set(_library)


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    transform = get_transform(name)
    x, expected = np.array(list(VALUES[name].items()), dtype=float).T
    with np.errstate(all="ignore"):
        values = transform.function(x, *cut_points(transform))
    np.testing.assert_allclose(values, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("name", sorted(set(VALUES) - NO_DERIVATIVE))
def test_derivatives(name):
    transform = get_transform(name)
    derivative = transform.derivative(POINTS, *cut_points(transform))
    np.testing.assert_allclose(derivative, differences(transform, POINTS, 1e-5), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("name", VALUES)
def test_which_are_differentiable_and_where(name):
    transform = get_transform(name)
    assert (transform.derivative is None) == (name in NO_DERIVATIVE)
    assert transform.smooth == (name in SMOOTH)
    if transform.smooth:
        with np.errstate(all="ignore"):
            at_zero = transform.derivative(np.zeros(1))
        np.testing.assert_allclose(at_zero, differences(transform, np.zeros(1), 1e-9), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", VALUES)
def test_sympy_forms(name):
    transform = get_transform(name)
    x = sympy.Symbol("x", real=True)
    expression = transform.sympy(sympy, x, *map(sympy.Float, cut_points(transform)))
    for point in (*POINTS, *map(float, VALUES[name])):
        expected = float(expression.subs(x, sympy.Float(point, 30)).evalf(30))
        with np.errstate(all="ignore"):
            value = transform.function(np.float64(point), *cut_points(transform))
        assert value == pytest.approx(expected, rel=1e-13, abs=1e-15)


@pytest.mark.parametrize("name", VALUES)
def test_latex_forms(name):
    transform = get_transform(name)
    latex = to_latex(modify(transform, Input("q"), cut_points(transform)))
    assert "q" in latex
    assert "#" not in latex
    assert ("2" in latex) or transform.quantile is None
    assert latex.count("{") == latex.count("}")
    assert latex.count(r"\left") == latex.count(r"\right")


def test_presets_are_as_documented():
    assert set(PRESETS) == {
        *["default", "classification", "abalone", "kepler-g1", "kepler-g2", "neural", "splines", "trees"],
        *["fractional-polynomials", "logic", "none"],
    }
    assert [t.name for t in resolve_transforms("classification")] == ["gauss", "tanh", "atan", "sin"]
    assert [t.name for t in resolve_transforms("trees")] == ["above_median", "below_q25", "above_q75"]
    assert len(resolve_transforms("fractional-polynomials")) == 15
    assert len(resolve_transforms("default")) == 8
    assert resolve_transforms("none") == ()


def test_transforms_resolve_from_names_and_objects():
    cube = Transform("cube", lambda x: x**3)
    assert resolve_transforms(["sin", cube]) == (get_transform("sin"), cube)
    assert resolve_transforms(name for name in ("cos",)) == (get_transform("cos"),)


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("sin", r"Did you mean|write \['sin'\]"),
        (["sinn"], "Did you mean sin"),
        (["sin", "cos", "sin"], "got twice: sin"),
        (["sin", Transform("sin", np.cos)], "got twice: sin"),
        ([np.sin], "must be a name or a Transform"),
        (get_transform("sin"), "Write"),
        (None, "a preset's name or a list"),
    ],
)
def test_unusable_lists_of_transforms_are_refused(spec, message):
    with pytest.raises(SettingError, match=message):
        resolve_transforms(spec)


@pytest.fixture
def clean_register(monkeypatch):
    monkeypatch.setattr(transform_module, "_registered", dict(transform_module._registered))


@pytest.mark.usefixtures("clean_register")
def test_registering():
    cube = register(Transform("cube", lambda x: x**3))
    assert get_transform("cube") is cube
    with pytest.raises(FeatureError, match="registered already"):
        register(Transform("cube", np.sin))
    mine = register(Transform("sin", np.cos), replace=True)
    assert get_transform("sin") is mine
    with pytest.raises(FeatureError, match="only a Transform"):
        register(np.sin)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("two words", np.sin), "identifier"),
        (("", np.sin), "identifier"),
        ((3, np.sin), "identifier"),
        (("sin", 3), "callable"),
        (("t", np.sin, None, None, None, False, 1.5), "between 0 and 1"),
        (("t", np.sin, None, None, None, False, "0.5"), "between 0 and 1, got '0.5'"),
        (("t", np.sin, None, None, None, False, True), "between 0 and 1, got True"),
        (("t", np.sin, None, None, None, False, np.nan), "between 0 and 1, got nan"),
    ],
)
def test_what_is_no_transform_is_refused(arguments, message):
    with pytest.raises(FeatureError, match=message):
        Transform(*arguments)


def test_unknown_names_come_with_advice():
    with pytest.raises(FeatureError, match="Did you mean sigmoid"):
        get_transform("sigmoyd")
    with pytest.raises(FeatureError, match=r"by its name, got \[1\]"):
        get_transform([1])
    with pytest.raises(FeatureError, match="Known transforms: above_median"):
        get_transform("qqqqqq")


def test_transforms_are_known_by_name():
    assert Transform("sin", np.cos) == get_transform("sin")
    assert hash(Transform("sin", np.cos)) == hash(get_transform("sin"))
    assert Transform("other", np.sin) != get_transform("sin")
    assert get_transform("sin") != "sin"
    assert repr(get_transform("sin")) == "Transform('sin')"
