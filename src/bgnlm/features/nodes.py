"""Features as small frozen values, canonical at birth: the three operations of section 2.1 of the paper.

Equality and hashing are structural, so a feature serves as a key wherever it is met again: in another
population, another chain or another process.
"""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from numbers import Integral
from operator import is_
from typing import Any, Self, TypeAlias, cast

from bgnlm.errors import FeatureError
from bgnlm.features.checks import check_size, checked_parameters, exact_sum, finite_numbers, not_a_feature
from bgnlm.features.transform import Elementwise, Transform

SortKey: TypeAlias = tuple[Any, ...]


class _Node:
    """What all features share: a sort key, a cached hash, limits on their size, and the operators ``*`` and ``**``."""

    __slots__ = ("_depth", "_functions", "_hash", "_key", "_leaves", "_nesting")

    _depth: int
    _functions: tuple[Elementwise, ...]
    _hash: int
    _key: SortKey
    _leaves: int
    _nesting: int

    def _seal(self, rank: int, own_operations: int, children: "tuple[Feature, ...]", *rest: Any) -> None:
        """Check the size and store the sort key, whose first entry is the operation count."""
        leaves = sum(child._leaves for child in children) or 1
        nesting = 1 + max((child._nesting for child in children), default=-1)
        check_size(leaves, nesting)
        operations = own_operations + sum(child._key[0] for child in children)
        key = (operations, rank, *rest)
        if isinstance(self, Multiplication):
            depth = len(children) - 1 + sum(child._depth for child in children)
        else:
            depth = 1 + max((child._depth for child in children), default=-1)
        own = (self.transform.function,) if isinstance(self, Modification | Projection) else ()
        functions = (*own, *(function for child in children for function in child._functions))
        _set(self, _key=key, _hash=hash(key), _depth=depth, _leaves=leaves, _nesting=nesting, _functions=functions)

    def __hash__(self) -> int:
        return self._hash

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if not isinstance(other, _Node):
            return NotImplemented
        return self._hash == other._hash and self._key == other._key

    def same_functions(self, other: "Feature") -> bool:
        """Whether an equal feature, whose transforms have the same names, also computes with the same functions."""
        return all(map(is_, self._functions, other._functions))

    def __mul__(self, other: object) -> "Multiplication":
        if not isinstance(other, Feature):
            return NotImplemented
        return multiply(cast("Feature", self), other)

    def __pow__(self, exponent: object) -> "Feature":
        if not isinstance(exponent, Integral):
            return NotImplemented
        return power(cast("Feature", self), int(exponent))

    def __str__(self) -> str:
        from bgnlm.features.text import render

        return render(cast("Feature", self))

    def __reduce__(self) -> tuple[Any, ...]:
        # Hashes of strings differ between processes: unpickling builds the feature anew.
        return type(self), tuple(getattr(self, field.name) for field in fields(cast("Any", self)))

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self


@dataclass(frozen=True, slots=True, eq=False)
class Input(_Node):
    """A column of the data, by its name (any string that is not empty).

    Examples
    --------
    >>> from bgnlm.features import Input
    >>> str(Input("x") * Input("y"))
    'x*y'
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise FeatureError(
                f"the name of an input must be a string that is not empty, got {self.name!r}. "
                "Give the column a name first."
            )
        _set(self, name=str(self.name))
        self._seal(0, 0, (), self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Component(_Node):
    """delta_k of section 4.1: a latent process, or an offset that can be chosen, by its name, such as "AR1(pos)".

    It is a part of models like a feature, but it has no column, and nothing is made of it.

    Examples
    --------
    >>> from bgnlm.features import Component
    >>> str(Component("AR1(day)"))
    'AR1(day)'
    """

    name: str

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise FeatureError(f"the name of a component must be a string that is not empty, got {self.name!r}.")
        _set(self, name=str(self.name))
        self._seal(4, 0, (), self.name)


@dataclass(frozen=True, slots=True, eq=False)
class Modification(_Node):
    """g(F): a transform of one feature; `parameters` holds the learnt cut point of a threshold transform.

    Examples
    --------
    >>> from bgnlm.features import Input, Modification, get_transform
    >>> str(Modification(get_transform("sin"), Input("x")))
    'sin(x)'
    """

    transform: Transform
    operand: "Feature"
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        _check_operands(self.operand)
        _set(self, parameters=checked_parameters(self.transform, self.parameters))
        self._seal(1, 1, (self.operand,), self.transform.name, self.operand._key, self.parameters)


@dataclass(frozen=True, slots=True, eq=False)
class Multiplication(_Node):
    """F_1 · ... · F_m: two or more factors, none of which is itself a product, in canonical order.

    Examples
    --------
    >>> from bgnlm.features import Input, Multiplication
    >>> x, y = Input("x"), Input("y")
    >>> Multiplication((y, x)) == Multiplication((x, y))
    True
    """

    factors: "tuple[Feature, ...]"

    def __post_init__(self) -> None:
        given = tuple(self.factors)
        _check_operands(*given)
        if len(given) < 2:
            raise FeatureError(f"a product needs two factors or more, got {len(given)}. Use the factor itself.")
        check_size(sum(factor._leaves for factor in given), 0)
        flat = (part for factor in given for part in _factors_of(factor))
        _set(self, factors=tuple(sorted(flat, key=sort_key)))
        keys = tuple(factor._key for factor in self.factors)
        self._seal(2, len(self.factors) - 1, self.factors, keys)


@dataclass(frozen=True, slots=True, eq=False)
class Projection(_Node):
    """g(intercept + sum of weight · F): a transform of a weighted sum of two or more different features.

    Operands are sorted, equal ones merged by adding their weights, and those of weight zero left out.

    Examples
    --------
    >>> from bgnlm.features import Input, Projection, get_transform
    >>> str(Projection(get_transform("sigmoid"), (Input("x"), Input("y")), (2.0, -1.0), intercept=0.5))
    'sigmoid(0.5 + 2.0*x - y)'
    """

    transform: Transform
    operands: "tuple[Feature, ...]"
    weights: tuple[float, ...]
    intercept: float = 0.0
    parameters: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        operands, weights = _merged(tuple(self.operands), finite_numbers(self.weights, "weights"))
        _set(self, operands=operands, weights=weights, intercept=finite_numbers((self.intercept,), "intercept")[0])
        _set(self, parameters=checked_parameters(self.transform, self.parameters))
        keys = tuple(operand._key for operand in operands)
        rest = (self.transform.name, keys, weights, self.intercept, self.parameters)
        self._seal(3, len(operands), operands, *rest)


Feature: TypeAlias = Input | Modification | Multiplication | Projection | Component
"""Any feature, and the leaves that stand for latent components.

Examples
--------
>>> from bgnlm.features import Feature, parse
>>> isinstance(parse("sin(x)"), Feature)
True
"""


def sort_key(feature: Feature) -> SortKey:
    """Key of the canonical order of features: fewer operations come first.

    Sort with ``sorted(features, key=sort_key)``; features themselves have no ``<``.

    Examples
    --------
    >>> from bgnlm.features import parse, sort_key
    >>> [str(f) for f in sorted(map(parse, ["sin(x*y)", "x*y", "x"]), key=sort_key)]
    ['x', 'x*y', 'sin(x*y)']
    """
    check_features(feature)
    return feature._key


def modify(transform: Transform, operand: Feature, parameters: Iterable[float] = ()) -> Modification:
    """Apply a transform to one feature.

    Examples
    --------
    >>> from bgnlm.features import Input, get_transform, modify
    >>> str(modify(get_transform("tanh"), Input("x")))
    'tanh(x)'
    """
    return Modification(transform, operand, tuple(parameters))


def multiply(*factors: Feature) -> Multiplication:
    """Multiply features; the result does not depend on their order or grouping.

    Examples
    --------
    >>> from bgnlm.features import Input, multiply
    >>> str(multiply(Input("x"), Input("y"), Input("x")))
    'x**2*y'
    """
    return Multiplication(factors)


def power(base: Feature, exponent: int) -> Feature:
    """Multiply a feature with itself, `exponent` factors in all.

    Examples
    --------
    >>> from bgnlm.features import Input, power
    >>> str(power(Input("x"), 3))
    'x**3'
    """
    check_features(base)
    if not isinstance(exponent, Integral) or isinstance(exponent, bool) or exponent < 1:
        raise FeatureError(
            f"an exponent must be a whole number from 1 on, got {exponent!r}. "
            "Use a transform for others: inverse for 1/x, sqrt_abs for a root."
        )
    check_size(int(exponent) * base._leaves, base._nesting)
    return base if exponent == 1 else Multiplication((base,) * exponent)


def project(
    transform: Transform,
    operands: Iterable[Feature],
    weights: Iterable[float],
    intercept: float = 0.0,
    parameters: Iterable[float] = (),
) -> Projection:
    """Apply a transform to a weighted sum of two or more different features.

    Examples
    --------
    >>> from bgnlm.features import Input, get_transform, project
    >>> str(project(get_transform("sigmoid"), [Input("x"), Input("y")], [2.0, -1.0], 0.5))
    'sigmoid(0.5 + 2.0*x - y)'
    """
    return Projection(transform, tuple(operands), tuple(weights), intercept, tuple(parameters))


def _set(node: _Node, **values: object) -> None:
    for name, value in values.items():
        object.__setattr__(node, name, value)


def _factors_of(feature: Feature) -> tuple[Feature, ...]:
    return feature.factors if isinstance(feature, Multiplication) else (feature,)


def _merged(operands: tuple[Feature, ...], weights: tuple[float, ...]) -> tuple[tuple[Feature, ...], tuple[float, ...]]:
    _check_operands(*operands)
    if len(operands) != len(weights):
        raise FeatureError(f"a projection of {len(operands)} features needs as many weights, got {len(weights)}.")
    parts: dict[Feature, list[float]] = {}
    for operand, weight in zip(operands, weights, strict=True):
        parts.setdefault(operand, []).append(weight)
    total = {operand: exact_sum(terms) for operand, terms in parts.items()}
    kept = sorted((operand for operand in total if total[operand]), key=sort_key)
    if len(kept) < 2:
        raise FeatureError(
            "a projection needs two different features or more with weights other than zero, "
            f"got {len(kept)}. For one feature use modify(transform, feature), as text sin(x)."
        )
    return tuple(kept), tuple(total[operand] for operand in kept)


def check_features(*values: Feature) -> None:
    """Refuse anything that is no feature."""
    for value in values:
        if not isinstance(value, _Node):
            raise not_a_feature(value)


def _check_operands(*values: Feature) -> None:
    check_features(*values)
    for value in values:
        if isinstance(value, Component):
            raise FeatureError(f"{value.name} is a latent component, of which no features are made. Use columns.")
