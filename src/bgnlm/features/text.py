"""Features as text that `parse` reads back, such as x**2*sin(z) or sigmoid(0.5 + 2.0*x - y)."""

from bgnlm._validation import check_count
from bgnlm.features.checks import not_a_feature
from bgnlm.features.nodes import Component, Feature, Input, Modification, Multiplication, Projection

_ESCAPES = {"\\": "\\\\", "`": "\\`", "\n": "\\n", "\t": "\\t", "\r": "\\r"}


def render(feature: Feature, digits: int | None = None) -> str:
    """Write a feature as text; `parse` gives back the same feature.

    With `digits`, numbers are rounded to so many significant digits, for reading only.

    Examples
    --------
    >>> from bgnlm.features import parse, render
    >>> render(parse("y * x * sin(x)"))
    'x*y*sin(x)'
    >>> render(parse("sin(0.123456*x + y)"), digits=2)
    'sin(0.12*x + y)'
    """
    if digits is not None:
        digits = check_count(digits, "digits", low=1)
    match feature:
        case Input(name=name):
            return name if name.isidentifier() else _quoted(name)
        case Component(name=name):
            return name
        case Modification(transform=transform, operand=operand, parameters=parameters):
            return _call(transform.name, render(operand, digits), parameters, digits)
        case Multiplication():
            return _product(feature, digits)
        case Projection(transform=transform, parameters=parameters):
            return _call(transform.name, _weighted_sum(feature, digits), parameters, digits)
        case _:
            raise not_a_feature(feature)


def _call(name: str, argument: str, parameters: tuple[float, ...], digits: int | None) -> str:
    return f"{name}({', '.join([argument, *(_number(value, digits) for value in parameters)])})"


def _product(feature: Multiplication, digits: int | None) -> str:
    parts = []
    for factor, exponent in with_exponents(feature):
        text = render(factor, digits)
        parts.append(text if exponent == 1 else f"{text}**{exponent}")
    return "*".join(parts)


def with_exponents(feature: Multiplication) -> list[tuple[Feature, int]]:
    """Different factors of a product with the number of times they occur; equal ones are neighbours."""
    counts: dict[Feature, int] = {}
    for factor in feature.factors:
        counts[factor] = counts.get(factor, 0) + 1
    return list(counts.items())


def _weighted_sum(feature: Projection, digits: int | None) -> str:
    terms = [(feature.intercept, _number(abs(feature.intercept), digits))] if feature.intercept else []
    for operand, weight in zip(feature.operands, feature.weights, strict=True):
        number, text = _number(abs(weight), digits), render(operand, digits)
        terms.append((weight, text if number in ("1", "1.0") else f"{number}*{text}"))
    return join_terms(terms)


def join_terms(terms: list[tuple[float, str]]) -> str:
    """Join terms by the signs of their weights: ``-a + b - c``."""
    text = "".join(f" {'-' if weight < 0 else '+'} {term}" for weight, term in terms)
    return "-" + text[3:] if text.startswith(" -") else text[3:]


def _number(value: float, digits: int | None) -> str:
    return repr(value) if digits is None else f"{value:.{digits}g}"


def _quoted(name: str) -> str:
    return f"`{''.join(map(_escaped, name))}`"


def _escaped(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
