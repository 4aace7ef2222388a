"""Features as LaTeX, for reports."""

import re
from collections.abc import Sequence
from itertools import pairwise

from bgnlm._validation import check_count
from bgnlm.features.checks import not_a_feature
from bgnlm.features.nodes import Component, Feature, Input, Modification, Multiplication, Projection
from bgnlm.features.text import join_terms, with_exponents
from bgnlm.features.transform import Transform

_SPECIAL = {
    "\\": r"\textbackslash{}",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    **{character: "\\" + character for character in "{}$&%#_"},
}


def to_latex(feature: Feature, digits: int = 4) -> str:
    r"""Write a feature for LaTeX's math mode (with amsmath and amssymb), numbers rounded to `digits`.

    A cut point that is not known yet appears as t.

    Examples
    --------
    >>> from bgnlm.features import parse, to_latex
    >>> print(to_latex(parse("sin(x*y)")))
    \sin\left(x \, y\right)
    """
    digits = check_count(digits, "digits", low=1)
    match feature:
        case Input(name=name) | Component(name=name):
            return latex_name(name)
        case Modification(transform=transform, operand=operand, parameters=parameters):
            return _call(transform, to_latex(operand, digits), parameters, digits)
        case Multiplication():
            return _product(with_exponents(feature), digits)
        case Projection(transform=transform, parameters=parameters):
            return _call(transform, _weighted_sum(feature, digits), parameters, digits)
        case _:
            raise not_a_feature(feature)


def _product(factors: Sequence[tuple[Feature, int]], digits: int) -> str:
    """Write factors beside each other, with a sign beside words: two of them would read as one."""
    text = _power(*factors[0], digits)
    for (before, _), (factor, exponent) in pairwise(factors):
        sign = r"\cdot" if _is_word(before) or _is_word(factor) else r"\,"
        text += f" {sign} {_power(factor, exponent, digits)}"
    return text


def _is_word(feature: Feature) -> bool:
    return isinstance(feature, Input) and len(feature.name) > 1


def _power(base: Feature, exponent: int, digits: int) -> str:
    text = to_latex(base, digits)
    if exponent == 1:
        return text
    return f"{text}^{{{exponent}}}" if isinstance(base, Input) else rf"\left({text}\right)^{{{exponent}}}"


def _weighted_sum(feature: Projection, digits: int) -> str:
    terms = [(feature.intercept, latex_number(abs(feature.intercept), digits))] if feature.intercept else []
    for operand, weight in zip(feature.operands, feature.weights, strict=True):
        number, text = latex_number(abs(weight), digits), to_latex(operand, digits)
        terms.append((weight, text if number == "1" else rf"{number} \, {text}"))
    return join_terms(terms)


def _call(transform: Transform, argument: str, parameters: tuple[float, ...], digits: int) -> str:
    cut_points = [_signed(value, digits) for value in parameters] or ["t"]
    replacements = {"#1": argument, "#2": cut_points[0]}
    # One pass, so that a "#2" within the argument stays what it is.
    return re.sub("#[12]", lambda found: replacements[found.group()], _template(transform))


def _template(transform: Transform) -> str:
    if transform.latex is not None:
        return transform.latex
    arguments = "#1" if transform.quantile is None else "#1, #2"
    return rf"\operatorname{{{_escaped(transform.name)}}}\left({arguments}\right)"


def _signed(value: float, digits: int) -> str:
    text = latex_number(abs(value), digits)
    return rf"\left(-{text}\right)" if value < 0 else text


def latex_number(value: float, digits: int) -> str:
    """Write a number with so many significant digits."""
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    return rf"{mantissa} \cdot 10^{{{int(exponent)}}}" if exponent else mantissa


def latex_name(name: str) -> str:
    """Write the name of a column."""
    if not name.isascii() or not name.isalnum():
        return rf"\text{{{_escaped(name)}}}"
    return name if len(name) == 1 and name.isalpha() else rf"\mathrm{{{name}}}"


def _escaped(text: str) -> str:
    return "".join(_SPECIAL.get(character, character) for character in _printable(text))


def _printable(text: str) -> str:
    """Write what cannot be printed, such as line ends and changes of direction, as escapes."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)
