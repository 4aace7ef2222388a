r"""Reads the text form of features by recursive descent, the inverse of `render`.

::

    feature    = product                            (no sum, no weight)
    sum        = [sign] term {sign term}            (inside a transform only)
    term       = factor {"*" factor}                (numbers multiply into the weight)
    factor     = number | base [("**" | "^") whole number]
    base       = input | transform "(" sum ["," cut point] ")" | "(" feature ")"
    input      = identifier | "`" any characters, \ and ` escaped by \ "`"
"""

from collections.abc import Callable, Collection, Iterable
from typing import Any

from bgnlm.errors import FeatureError
from bgnlm.features.checks import MAX_NESTING
from bgnlm.features.nodes import Component, Feature, Input, modify, multiply, power, project
from bgnlm.features.presets import resolve_transforms
from bgnlm.features.tokens import Token, error_at, tokenize
from bgnlm.features.transform import Transform, registered_transforms, unknown_transform


def parse(text: str, transforms: str | Iterable[str | Transform] = (), components: Collection[str] = ()) -> Feature:
    """Read a feature from its text form.

    Parameters
    ----------
    text
        For example ``"x1*sigmoid(0.5 + 2.0*x1 - 3.1*x2)"``. A threshold transform without a cut point,
        ``"above_median(x)"``, gives a feature whose cut point is still to be learnt.
    transforms
        Transforms of your own, besides those that are registered.
    components
        Names of latent components: such a text is the component, whatever else it could be.

    Examples
    --------
    >>> from bgnlm import parse
    >>> law = parse("cbrt_abs(period**2 * `parent mass`)")
    >>> str(law)
    'cbrt_abs(`parent mass`*period**2)'
    >>> law == parse("cbrt_abs(`parent mass` * period * period)")
    True
    """
    if not isinstance(text, str):
        raise FeatureError(f"a feature is read from a string, got {text!r}. Write for example parse('sin(x)').")
    if text in components:
        return Component(text)
    known = {transform.name: transform for transform in (*registered_transforms(), *resolve_transforms(transforms))}
    return _Parser(text, known).whole()


class _Sum:
    """A weighted sum while it is read; `plain` is its only feature, if it is nothing but that."""

    def __init__(self) -> None:
        self.intercept = 0.0
        self.operands: list[Feature] = []
        self.weights: list[float] = []

    def add(self, weight: float, operand: Feature | None) -> None:
        if operand is None:
            self.intercept += weight
        else:
            self.operands.append(operand)
            self.weights.append(weight)

    @property
    def plain(self) -> Feature | None:
        return self.operands[0] if self.weights == [1.0] and self.intercept == 0 else None


class _Parser:
    def __init__(self, text: str, transforms: dict[str, Transform]) -> None:
        self.text = text
        self.transforms = transforms
        self.tokens = list(tokenize(text))
        self.next = 0

    def whole(self) -> Feature:
        self.check_nesting()
        feature = self.feature()
        if self.token.kind != "end":
            raise self.error(self.token, f"expected an operator or the end, got {self.token}.")
        return feature

    def feature(self) -> Feature:
        start = self.token
        feature = self.sum().plain
        if feature is None:
            message = (
                "a feature is no sum and has no weight or sign, which are for the model to find. "
                "Write x for 2*x, and put a sum into a transform: sigmoid(x + y)."
            )
            raise self.error(start, message)
        return feature

    def sum(self) -> _Sum:
        total = _Sum()
        total.add(*self.term(self.sign()))
        while self.at("+", "-"):
            total.add(*self.term(self.sign()))
        return total

    def sign(self) -> float:
        sign = 1.0
        while self.at("+", "-"):
            sign = -sign if self.take().text == "-" else sign
        return sign

    def term(self, weight: float) -> tuple[float, Feature | None]:
        start = self.token
        factors: list[Feature] = []
        while True:
            if self.token.kind == "number":
                weight *= self.number()
            else:
                factors.append(self.power())
            if not self.accept("*"):
                break
        if len(factors) > 1:
            return weight, self.build(start, multiply, *factors)
        return weight, factors[0] if factors else None

    def power(self) -> Feature:
        base = self.base()
        if self.accept("**", "^"):
            exponent = self.take()
            if exponent.kind != "number" or not exponent.text.isdecimal() or len(exponent.text) > 9:
                message = f"expected a whole number from 1 on as exponent, got {exponent}."
                raise self.error(exponent, f"{message} Write inverse(x) for x**-1, sqrt_abs(x) for a root.")
            base = self.build(exponent, power, base, int(exponent.text))
        return base

    def base(self) -> Feature:
        if self.accept("("):
            feature = self.feature()
            self.close()
            return feature
        token = self.take()
        if token.kind == "name" and self.at("("):
            return self.call(token)
        if token.kind in ("name", "quoted"):
            return Input(token.text)
        raise self.error(token, f"expected a number, an input, a transform or '(', got {token}.")

    def call(self, name: Token) -> Feature:
        transform = self.transforms.get(name.text)
        if transform is None:
            raise self.error(name, unknown_transform(name.text, self.transforms))
        self.take()
        total = self.sum()
        cut_points = self.cut_points()
        self.close()
        if not total.operands:
            raise self.error(name, f"{transform.name} needs a feature to work on, got only numbers.")
        if total.plain is not None:
            return self.build(name, modify, transform, total.plain, cut_points)
        if len(set(total.operands)) == 1:
            raise self.error(name, _of_one_feature(name.text, total.operands[0]))
        return self.build(name, project, transform, total.operands, total.weights, total.intercept, cut_points)

    def cut_points(self) -> list[float]:
        found = []
        while self.accept(","):
            sign = self.sign()
            found.append(sign * self.number())
        return found

    def number(self) -> float:
        token = self.take()
        if token.kind != "number":
            raise self.error(token, f"expected a number, got {token}.")
        return float(token.text)

    @property
    def token(self) -> Token:
        return self.tokens[self.next]

    def at(self, *symbols: str) -> bool:
        return self.token.kind == "symbol" and self.token.text in symbols

    def take(self) -> Token:
        token = self.token
        self.next = min(self.next + 1, len(self.tokens) - 1)
        return token

    def accept(self, *symbols: str) -> bool:
        found = self.at(*symbols)
        if found:
            self.take()
        return found

    def close(self) -> None:
        if not self.accept(")"):
            raise self.error(self.token, f"expected an operator or ')', got {self.token}.")

    def check_nesting(self) -> None:
        nesting = 0
        for token in self.tokens:
            if token.kind == "symbol" and token.text in "()":
                nesting += 1 if token.text == "(" else -1
            if nesting > MAX_NESTING:
                raise self.error(token, f"parentheses may be nested {MAX_NESTING} deep. Write a simpler feature.")

    def build(self, place: Token, construct: Callable[..., Feature], *arguments: Any) -> Feature:
        """Construct a feature; if that is refused, point at the place in the text."""
        try:
            return construct(*arguments)
        except FeatureError as error:
            raise self.error(place, str(error)) from None

    def error(self, place: Token, message: str) -> FeatureError:
        return error_at(self.text, place.position, message)


def _of_one_feature(transform: str, feature: Feature) -> str:
    return (
        f"a sum inside {transform} needs two different features, such as {transform}(1 + 2*x - y). "
        f"Of a single one write {transform}({feature}), without weight, sign or constant; where its scale or shift "
        "matters, put it into a transform of your own: parse(text, [Transform('mine', lambda x: ...)])."
    )
