"""Features as SymPy expressions, for algebra outside of bgnlm."""

from math import prod
from typing import Any

from bgnlm.errors import FeatureError, MissingExtraError
from bgnlm.features.checks import not_a_feature
from bgnlm.features.nodes import Component, Feature, Input, Modification, Multiplication, Projection


def to_sympy(feature: Feature) -> Any:
    """Write a feature as a SymPy expression in real symbols named like the inputs.

    A transform of yours without a SymPy form becomes an undefined function of its name.

    Examples
    --------
    >>> from bgnlm.features import parse, to_sympy
    >>> to_sympy(parse("sin(x)*x*y"))
    x*y*sin(x)
    """
    return _build(_import_sympy(), feature)


def _import_sympy() -> Any:
    try:
        import sympy
    except ImportError as error:
        raise MissingExtraError(
            "to_sympy needs SymPy, which is not installed. Run: pip install 'bgnlm[sympy]'"
        ) from error
    return sympy


def _build(sp: Any, feature: Feature) -> Any:
    match feature:
        case Input(name=name) | Component(name=name):
            return sp.Symbol(name, real=True)
        case Modification(operand=operand):
            return _apply(sp, feature, _build(sp, operand))
        case Multiplication(factors=factors):
            return prod((_build(sp, factor) for factor in factors), start=sp.Integer(1))
        case Projection(operands=operands, weights=weights, intercept=intercept):
            terms = (_number(sp, w) * _build(sp, operand) for operand, w in zip(operands, weights, strict=True))
            return _apply(sp, feature, sum(terms, start=_number(sp, intercept)))
        case _:
            raise not_a_feature(feature)


def _apply(sp: Any, feature: Modification | Projection, argument: Any) -> Any:
    transform = feature.transform
    if transform.quantile is not None and not feature.parameters:
        raise FeatureError(
            f"the cut point of {transform.name} in {feature} is not known yet. "
            "Learn it from training data with learn_cut_points first."
        )
    parameters = [_number(sp, value) for value in feature.parameters]
    if transform.sympy is None:
        return sp.Function(transform.name)(argument, *parameters)
    return transform.sympy(sp, argument, *parameters)


def _number(sp: Any, value: float) -> Any:
    """Keep whole numbers exact, so that weights of 1 disappear."""
    return sp.Integer(int(value)) if value.is_integer() and abs(value) < 2**53 else sp.Float(value)
