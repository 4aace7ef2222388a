"""The text form: `parse` inverts `render` exactly, and refuses everything else with advice."""

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bgnlm.errors import FeatureError, SettingError
from bgnlm.features import Input, get_transform, modify, multiply, parse, project, render
from bgnlm.features.checks import MAX_NESTING

from .strategies import NASTY_NAMES, USER_TRANSFORMS, any_features

SIN, SIGMOID, ABOVE = map(get_transform, ("sin", "sigmoid", "above_median"))
X, Y = Input("x"), Input("y")


@settings(deadline=None, max_examples=500)
@given(any_features)
def test_parse_inverts_render(feature):
    text = render(feature)
    assert parse(text, USER_TRANSFORMS) == feature
    assert str(feature) == text
    assert text.isprintable()


@pytest.mark.parametrize("name", NASTY_NAMES)
def test_any_name_can_be_read_back(name):
    feature = multiply(
        Input(name), modify(SIN, Input(name)), project(SIN, (Input(name), X if name != "x" else Y), (2, 3))
    )
    assert parse(render(feature)) == feature


@pytest.mark.parametrize(
    ("feature", "text"),
    [
        (X, "x"),
        (Input("a b"), "`a b`"),
        (Input("a`\\\n\x00\u200d\U000e0001"), r"`a\`\\\n\x00\u200d\U000e0001`"),
        (Input("lambda"), "lambda"),
        (Input("1e5"), "`1e5`"),
        (modify(SIN, Input("sin")), "sin(sin)"),
        (multiply(Y, X, Y, modify(SIN, X)), "x*y**2*sin(x)"),
        (project(SIGMOID, (X, Y), (2, -3.1), 0.5), "sigmoid(0.5 + 2.0*x - 3.1*y)"),
        (project(SIGMOID, (X, Y), (-1, 1), 0), "sigmoid(-x + y)"),
        (project(SIGMOID, (X, Y), (1, -1), -1e-7), "sigmoid(-1e-07 + x - y)"),
        (project(SIGMOID, (multiply(X, Y), X), (2, 1)), "sigmoid(x + 2.0*x*y)"),
        (modify(ABOVE, X), "above_median(x)"),
        (modify(ABOVE, X, (-3.2,)), "above_median(x, -3.2)"),
        (project(ABOVE, (X, Y), (1, 2), 0, (7,)), "above_median(x + 2.0*y, 7.0)"),
    ],
)
def test_text_form(feature, text):
    assert render(feature) == text
    assert parse(text) == feature


def test_rounded_text_is_for_reading():
    feature = project(ABOVE, (X, Y), (2 / 3, 1.0000001), -1 / 3, (1e6 / 7,))
    assert render(feature, digits=3) == "above_median(-0.333 + 0.667*x + y, 1.43e+05)"


def test_only_features_have_a_text_form():
    with pytest.raises(FeatureError, match="expected a feature, got 'x'"):
        render("x")


@pytest.mark.parametrize("digits", [-1, 0, 2.5, "3"])
def test_digits_are_a_whole_number(digits):
    with pytest.raises(SettingError, match="digits must be"):
        render(X, digits)


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("  sin ( x ) ", "sin(x)"),
        ("x^3", "x*x*x"),
        ("x**1", "x"),
        ("((x))*(y*x)", "x*y*x"),
        ("(x*y)**2", "x*y*x*y"),
        ("sigmoid(x*2*y*3 + 1 + y - .5)", "sigmoid(0.5 + y + 6*x*y)"),
        ("sigmoid(x - -2e0*y)", "sigmoid(x + 2*y)"),
        ("sigmoid(y + x + y)", "sigmoid(x + 2*y)"),
        ("sigmoid(x + y + 0*z)", "sigmoid(x + y)"),
        ("above_median(x, +3)", "above_median(x, 3.0)"),
        ("`x`*`\\x79`", "x*y"),
        ("x\n*\ty", "x*y"),
    ],
)
def test_other_ways_to_write_it(text, same):
    assert parse(text) == parse(same)


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("", 0, "got the end"),
        ("x +", 3, "got the end"),
        ("x y", 2, "expected an operator or the end, got 'y'"),
        ("sin(x", 5, r"expected an operator or '\)', got the end"),
        ("sin()", 4, r"got '\)'"),
        ("sinn(x)", 0, "Did you mean sin"),
        ("`sin`(x)", 5, "expected an operator"),
        ("x + y", 0, "no sum"),
        ("-x", 0, "no sum"),
        ("3", 0, "no sum"),
        ("x*(y + z)", 3, "no sum"),
        ("2*x", 0, "Write x for"),
        ("x*sin(2*x)", 2, r"two different features, such as sin\(1 \+ 2\*x - y\).*write sin\(x\).*Transform\('mine'"),
        ("sin(x + 1)", 0, "two different features"),
        ("sin(-x*y)", 0, r"write sin\(x\*y\)"),
        ("sin(x + x)", 0, "two different features"),
        ("sin(x + 0*y)", 0, "two different features"),
        ("x/y", 1, r"no division. For x/y write x\*inverse\(y\)"),
        ("sin(x/2 + y)", 5, r"for x/2 inside a transform 0\.5\*x"),
        ("sin(3)", 0, "only numbers"),
        ("sin(x, 2)", 0, "takes 0 cut points"),
        ("above_median(x, 1, 2)", 0, "takes 1 cut points"),
        ("above_median(x, y)", 16, "expected a number, got 'y'"),
        ("above_median(x, 1e999)", 0, "finite"),
        ("sin(1e999*x + y)", 0, "finite"),
        ("x**-1", 3, r"whole number.*inverse\(x\)"),
        ("x**2.5", 3, r"whole number.*sqrt_abs\(x\)"),
        ("x**0", 3, "from 1 on"),
        ("x**2**2", 4, "expected an operator"),
        ("x**99999", 3, "at most 10000 inputs"),
        ("(x**9000)*(x**9000)", 0, "at most 10000 inputs"),
        ("sin(2**2*x + y)", 5, "expected an operator"),
        ("x & y", 2, "unexpected character '&'"),
        ("x*`y", 2, "not closed"),
        ("``", 0, "empty"),
        (r"`\q`", 1, "unknown escape"),
        (r"`\U00110000`", 1, "unknown escape"),
        ("x" + "*sin(x)" * 20 + "*)", 142, r"got '\)'"),
    ],
)
def test_errors_point_at_the_place(text, position, message):
    with pytest.raises(FeatureError, match=f"at position {position}: .*{message}") as caught:
        parse(text)
    _, line, caret = str(caught.value).split("\n")
    shown = text[max(0, position - 30) : position + 30]
    assert line == "  " + shown
    assert caret.index("^") - 2 == min(position, 30)


@pytest.mark.parametrize("opening", ["(", "sin(", "sin(x + cos(", "x*(", "sigmoid(2*"])
def test_deep_nesting_is_an_error_not_a_crash(opening):
    depth = opening.count("(")
    with pytest.raises(FeatureError, match="nested"):
        parse(opening * 5000 + "x" + ")" * 5000 * depth)
    assert MAX_NESTING >= 50


def test_only_strings_are_read():
    with pytest.raises(FeatureError, match="from a string, got 3"):
        parse(3)


def feature_or_feature_error(text):
    try:
        feature = parse(text, USER_TRANSFORMS)
    except FeatureError:
        return
    assert parse(render(feature), USER_TRANSFORMS) == feature


@settings(deadline=None, max_examples=500)
@given(st.text() | st.text("xsin()*^+-,.`\\0123e \n", max_size=30))
@example("x**" + "9" * 5000)
@example("sin(" + "9" * 5000 + "*x + y)")
@example("((x**100)**100)**100")
@example("sin(sin(sin(x**100)**100)**100)")
@example("\ud800")
def test_any_text_is_a_feature_or_a_feature_error(text):
    feature_or_feature_error(text)


@settings(deadline=None, max_examples=500)
@given(any_features, st.data())
def test_damaged_text_is_a_feature_or_a_feature_error(feature, data):
    text = render(feature)
    start = data.draw(st.integers(0, len(text)))
    stop = data.draw(st.integers(start, min(len(text), start + 3)))
    feature_or_feature_error(text[:start] + data.draw(st.text("x()*+-,`\\1. ", max_size=3)) + text[stop:])
