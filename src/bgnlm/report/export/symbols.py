"""From features to expressions: the SymPy form of a transform, read with a stand-in for SymPy.

A transform says what it is as ``lambda sp, x: ...``. With SymPy for ``sp`` that is a formula; with `Symbols` it is an
expression that every language of the exports can be written in. So SymPy need not be installed, nothing is rearranged,
and a transform of one's own that has a SymPy form can be exported to all languages at once.
"""

import math
from typing import Any

from bgnlm.errors import FeatureError
from bgnlm.features.checks import not_a_feature
from bgnlm.features.nodes import Component, Feature, Input, Modification, Multiplication, Projection
from bgnlm.features.transform import Transform
from bgnlm.report.export.bounds import ANY_INPUT, Bounds, bounds_of
from bgnlm.report.export.graph import Node, apply, column, in_order, number

_PLAIN = (
    *("exp", "sqrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh"),
    *("erf", "erfc", "sign", "floor"),
)
_RENAMED = {
    "Abs": "abs",
    "ceiling": "ceil",
    "Pow": "pow",
    "Not": "not",
    "Eq": "eq",
    "Lt": "lt",
    "Le": "le",
    "Gt": "gt",
    "Ge": "ge",
}
_FOLDED = {"Add": "add", "Mul": "mul", "Max": "max", "Min": "min", "And": "and", "Or": "or"}
_NUMBERS = {"pi": math.pi, "E": math.e, "oo": math.inf, "nan": math.nan}


class Symbols:
    """As much of the module SymPy as transforms need."""

    def __getattr__(self, name: str) -> Any:
        if name in _PLAIN or name in _RENAMED:
            return lambda *arguments: apply(_RENAMED.get(name, name), *arguments)
        if name in _FOLDED:
            return lambda *arguments: _folded(_FOLDED[name], arguments)
        if name in _NUMBERS:
            return number(_NUMBERS[name])
        raise AttributeError(f"exports do not know the function {name} of SymPy")

    def Integer(self, value: Any) -> Node:  # noqa: N802
        """A whole number."""
        return number(value)

    Float = S = sympify = Integer

    def Rational(self, numerator: Any, denominator: Any = 1) -> Node:  # noqa: N802
        """A ratio."""
        return number(numerator) / number(denominator)

    def log(self, argument: Any, base: Any = None) -> Node:
        """A logarithm; precise near 1 where that can be seen."""
        if base is not None:
            return self.log(argument) / self.log(base)
        if isinstance(argument, Node) and argument.op == "add" and number(1) in argument.args:
            first, second = argument.args
            return apply("log1p", second if first == number(1) else first)
        return apply("log", argument)

    ln = log

    def cbrt(self, argument: Any) -> Node:
        """The principal cube root, as in SymPy, where it is real."""
        return apply("pow", argument, 1.0 / 3.0)

    def Ne(self, one: Any, other: Any) -> Node:  # noqa: N802
        """Whether two values differ."""
        return apply("not", apply("eq", one, other))

    def Piecewise(self, *cases: tuple[Any, Any]) -> Node:  # noqa: N802
        """The value of the first case whose condition holds; NaN if none does."""
        chosen = number(math.nan)
        for value, condition in reversed(cases):
            if condition is True:
                chosen = number(value)
            elif condition is not False:
                chosen = apply("where", condition, value, chosen)
        return chosen


def _folded(op: str, arguments: tuple[Any, ...]) -> Node:
    result = number(arguments[0])
    for one in arguments[1:]:
        result = apply(op, result, one)
    return result


_SYMBOLS = Symbols()


def expression_of(feature: Feature, bounds: dict[str, Bounds] | None = None) -> Node:
    """What a feature computes from coded columns; `bounds` are those of the columns, if they are known."""
    known = {} if bounds is None else bounds
    match feature:
        case Input(name=name):
            return column(name)
        case Modification(operand=operand):
            return _transformed(feature, expression_of(operand, known), known)
        case Multiplication(factors=factors):
            product = expression_of(factors[0], known)
            for factor in factors[1:]:
                product = product * expression_of(factor, known)
            return product
        case Projection(operands=operands, weights=weights, intercept=intercept):
            argument = number(intercept)
            for operand, weight in zip(operands, weights, strict=True):
                argument = argument + weight * expression_of(operand, known)
            return _transformed(feature, argument, known)
        case Component():
            raise FeatureError(f"{feature} is a latent component, which has no column.")
        case _:
            raise not_a_feature(feature)


def _transformed(feature: Modification | Projection, argument: Node, bounds: dict[str, Bounds]) -> Node:
    transform = feature.transform
    if transform.quantile is not None and not feature.parameters:
        raise FeatureError(
            f"the cut point of {transform.name} in {feature} is not known yet. "
            "Learn it from training data with learn_cut_points first."
        )
    value = _applied(transform, argument, feature.parameters)
    if not any(node.op in ("where", "sign") for node in in_order([value])):
        return value
    # Comparisons are false for NaN: what is missing would pass for a small value.
    may_be_nan = bounds_of(argument, bounds, ANY_INPUT).nan
    return apply("where", apply("isnan", argument), math.nan, value) if may_be_nan else value


def _applied(transform: Transform, argument: Node, parameters: tuple[float, ...]) -> Node:
    example = "lambda sp, x: sp.exp(-x)" if transform.quantile is None else "lambda sp, x, t: sp.Max(0, x - t)"
    advice = f"Give it a form in SymPy's functions: Transform({transform.name!r}, function, sympy={example})."
    if transform.sympy is None:
        raise FeatureError(f"transform {transform.name} cannot be exported: it is a Python function only. {advice}")
    try:
        return number(transform.sympy(_SYMBOLS, argument, *map(number, parameters)))
    except Exception as error:
        raise FeatureError(f"transform {transform.name} cannot be exported: {error}. {advice}") from error
