"""Between which numbers a value lies: guards against overflow are written only where it can happen."""

import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from bgnlm._validation import LARGEST
from bgnlm.report.export.graph import OPERATIONS, Node, in_order


class Bounds(NamedTuple):
    """Smallest and largest value, and whether it may be NaN."""

    low: float
    high: float
    nan: bool = False

    @property
    def is_finite(self) -> bool:
        """Whether it is a finite number for sure."""
        return not self.nan and math.isfinite(self.low) and math.isfinite(self.high)

    def has(self, value: float) -> bool:
        """Whether a value lies between the bounds."""
        return self.low <= value <= self.high


ANY_INPUT = Bounds(-LARGEST, LARGEST)
INDICATOR = Bounds(0.0, 1.0)
_UNKNOWN = Bounds(-math.inf, math.inf, nan=True)
_RANGES = {
    "tanh": (-1.0, 1.0),
    "erf": (-1.0, 1.0),
    "erfc": (0.0, 2.0),
    "sign": (-1.0, 1.0),
    "atan": (-math.pi / 2, math.pi / 2),
}
_RISING = ("neg", "exp", "expm1", "floor", "ceil", "asinh", "max", "min", "add", "sub")


def bounds_of(root: Node, inputs: Mapping[str, Bounds], other: Bounds = ANY_INPUT) -> Bounds:
    """Bounds of an expression, given those of its columns."""
    return all_bounds([root], inputs, other)[root]


def all_bounds(roots: list[Node], inputs: Mapping[str, Bounds], other: Bounds = ANY_INPUT) -> dict[Node, Bounds]:
    """Bounds of everything that the roots are made of."""
    known: dict[Node, Bounds] = {}
    with np.errstate(all="ignore"):
        for node in in_order(roots):
            if node.op == "input":
                known[node] = inputs.get(str(node.value), other)
            elif isinstance(node.value, float):
                known[node] = _of_number(node.value)
            else:
                known[node] = _of_operation(node.op, [known[one] for one in node.args])
    return known


def _of_number(value: float) -> Bounds:
    return _UNKNOWN if math.isnan(value) else Bounds(value, value)


def _of_operation(op: str, args: list[Bounds]) -> Bounds:
    nan = any(one.nan for one in args)
    if op in _RISING or op == "mul":
        return _corners(op, args, nan or (op == "mul" and _zero_times_infinity(*args)))
    if op in _RANGES:
        return Bounds(*_RANGES[op], nan)
    if op in _SPECIAL:
        found = _SPECIAL[op](*args)
        return Bounds(found.low, found.high, found.nan or (nan and op not in ("finite", "where")))
    return _UNKNOWN


def _corners(op: str, args: list[Bounds], nan: bool) -> Bounds:
    """Bounds of an operation that is monotone in each argument: its values at the ends."""
    ends: list[tuple[float, ...]] = [(args[0].low,), (args[0].high,)]
    if len(args) == 2:
        ends = [(a, b) for a in args[0][:2] for b in args[1][:2]]
    values = [float(OPERATIONS[op](*(np.float64(end) for end in each))) for each in ends]
    undefined = any(map(math.isnan, values))
    defined = [0.0 if math.isnan(value) else value for value in values]
    if undefined and op != "mul":
        return Bounds(-math.inf, math.inf, nan=True)
    return Bounds(min(defined), max(defined), nan)


def _zero_times_infinity(one: Bounds, other: Bounds) -> bool:
    return any(
        a.has(0.0) and not (math.isfinite(b.low) and math.isfinite(b.high)) for a, b in ((one, other), (other, one))
    )


def _quotient(above: Bounds, below: Bounds) -> Bounds:
    if below.has(0.0):
        return Bounds(-math.inf, math.inf, above.has(0.0) or not above.is_finite or not below.is_finite)
    both_infinite = not above.is_finite and not below.is_finite
    return _UNKNOWN if both_infinite else _corners("div", [above, below], nan=False)


def _power(base: Bounds, exponent: Bounds) -> Bounds:
    if exponent.low != exponent.high:
        return _UNKNOWN
    power = exponent.low
    if base.low >= 0.0:
        return _corners("pow", [base, exponent], nan=False)
    if not power.is_integer():
        return _UNKNOWN
    if power < 0.0:
        return Bounds(-math.inf, math.inf)
    ends = _corners("pow", [base, exponent], nan=False)
    return Bounds(min(ends.low, 0.0), ends.high) if power % 2 == 0 else ends


def _from_zero(op: str, least: float) -> Callable[[Bounds], Bounds]:
    """Bounds of a rising function that is defined from `least` on."""

    def found(argument: Bounds) -> Bounds:
        ends = _corners(op, [Bounds(max(argument.low, least), max(argument.high, least))], nan=False)
        return Bounds(ends.low, ends.high, argument.low < least)

    return found


def _absolute(argument: Bounds) -> Bounds:
    ends = sorted((abs(argument.low), abs(argument.high)))
    return Bounds(0.0 if argument.has(0.0) else ends[0], ends[1])


def _wave(argument: Bounds) -> Bounds:
    return Bounds(-1.0, 1.0, not argument.is_finite)


def _either(_: Bounds, one: Bounds, other: Bounds) -> Bounds:
    return Bounds(min(one.low, other.low), max(one.high, other.high), one.nan or other.nan)


def _finite(value: Bounds, low: Bounds, high: Bounds, middle: Bounds) -> Bounds:
    ends = [low.low, high.high, middle.low]
    largest = float(np.finfo(np.float64).max)
    return Bounds(min(*ends, max(value.low, -largest)), max(*ends, min(value.high, largest)))


def _clipped(value: Bounds, low: Bounds, high: Bounds) -> Bounds:
    return Bounds(min(max(value.low, low.low), high.high), max(min(value.high, high.high), low.low))


_SPECIAL: dict[str, Callable[..., Bounds]] = {
    "div": _quotient,
    "pow": _power,
    "log": _from_zero("log", 0.0),
    "log1p": _from_zero("log1p", -1.0),
    "sqrt": _from_zero("sqrt", 0.0),
    "acosh": _from_zero("acosh", 1.0),
    "abs": _absolute,
    "sin": _wave,
    "cos": _wave,
    "clip": _clipped,
    "where": _either,
    "finite": _finite,
}
