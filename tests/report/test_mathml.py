"""Formulas as MathML: well formed, complete, and nothing in a name is markup."""

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bgnlm.features import Input, parse, to_latex
from bgnlm.features.nodes import modify
from bgnlm.features.transform import registered_transforms
from bgnlm.page.mathml import in_pieces, to_mathml


def tree(markup):
    return ElementTree.fromstring(f"<all>{markup}</all>".replace("&#x27;", "'"))


def text(markup):
    return "".join(tree(markup).itertext())


def test_structure():
    root = tree(to_mathml(to_latex(parse("cbrt_abs(mass*period**2)"))))
    power = root.find(".//math/mrow/msup")
    assert "".join(power[0].itertext()) == "|mass·period2|"
    assert "".join(power[1].itertext()) == "1/3"
    assert [one.text for one in power.findall(".//msup/mrow/mn")] == ["2"]


def test_fraction_and_function():
    assert tree(to_mathml(r"\frac{1}{\sin\left(x\right)}")).find(".//mfrac/mrow/mrow/mo").text == "("
    assert text(to_mathml(r"\mathbb{1}\left(x > 2.5\right)")) == "𝟙(x>2.5)"
    assert text(to_mathml(r"3 \cdot 10^{-5} \, x")) == "3·10−5x"


def test_equations_break_before_signs_only():
    pieces = tree(
        in_pieces(r"\operatorname{logit}(\mathrm{P}(y = 1)) = -2 + 3 \, \exp\left(-x + 1\right) - 4 \, x")
    ).findall("math")
    assert ["".join(piece.itertext()) for piece in pieces] == ["logit(P(y=1))=", "−2", "+3exp(−x+1)", "−4x"]


def test_names_are_no_space():
    """Beside texts, which count as space, signs would lose theirs."""
    root = tree(in_pieces(r"\text{semi\_major\_axis} = 2 \, \text{a} - \mathrm{b}"))
    assert root.findall(".//mtext") == []
    assert [(one.text, one.get("mathvariant")) for one in root.findall(".//mi")] == [
        ("semi_major_axis", None),
        ("a", "normal"),
        ("b", "normal"),
    ]


@pytest.mark.parametrize("transform", registered_transforms(), ids=lambda one: one.name)
def test_every_transform_of_the_library_is_typeset(transform):
    markup = to_mathml(to_latex(modify(transform, Input("speed"), () if transform.quantile is None else (1.5,))))
    assert "speed" in text(markup)
    assert "\\" not in text(markup)


@given(st.text(min_size=1, max_size=20))
def test_names_are_never_markup(name):
    root = tree(to_mathml(to_latex(Input(name))))
    assert {one.tag for one in root.iter()} <= {"all", "math", "mrow", "mi", "mtext"}


@given(st.text(alphabet="\\{}()^_|<>&leftrightfracx1 +-=", max_size=30))
def test_no_text_is_an_error(latex):
    tree(in_pieces(latex))
    tree(to_mathml(latex))


def test_special_characters_come_back():
    assert text(to_mathml(to_latex(Input("a_b^c~{d}$%#&\\<i>|")))) == "a_b^c~{d}$%#&\\<i>|"


def test_words_that_are_multiplied_have_a_sign_between_them():
    assert text(to_mathml(to_latex(parse("height*weight**2")))) == "height·weight2"
    assert text(to_mathml(to_latex(parse("x*y")))) == "xy"


@pytest.mark.parametrize(("name", "seen"), [("rtl\u202eabc", "rtl\\u202eabc"), ("new\nline", "new\\nline")])
def test_what_cannot_be_printed_is_an_escape(name, seen):
    assert text(to_mathml(to_latex(Input(name)))) == seen
