"""Expressions as values: what a feature computes, in few elementary operations that every language has.

Numbers are those of IEEE 754: 1/0 is infinite, 0/0 is NaN, and a comparison with NaN is false. Equal expressions are
one object, so that a writer computes them once.
"""

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from weakref import WeakValueDictionary

import numpy as np

from bgnlm.errors import FeatureError

# How NumPy computes each operation; `where` takes a condition, `finite` is `np.nan_to_num`.
OPERATIONS: dict[str, Callable[..., Any]] = {
    "neg": np.negative,
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "sqrt": np.sqrt,
    "abs": np.abs,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": np.vectorize(math.erf, otypes=[np.float64]),
    "erfc": np.vectorize(math.erfc, otypes=[np.float64]),
    "max": np.maximum,
    "min": np.minimum,
    "clip": np.clip,
    "where": np.where,
    "lt": np.less,
    "le": np.less_equal,
    "gt": np.greater,
    "ge": np.greater_equal,
    "eq": np.equal,
    "and": np.logical_and,
    "or": np.logical_or,
    "not": np.logical_not,
    "isnan": np.isnan,
    "finite": lambda x, low, high, middle: np.nan_to_num(x, nan=middle, posinf=high, neginf=low),
}
CONDITIONS = frozenset({"lt", "le", "gt", "ge", "eq", "and", "or", "not", "isnan"})
_NO_FOLDING = CONDITIONS | {"where", "finite"}


_NODES: WeakValueDictionary[tuple[Any, ...], "Node"] = WeakValueDictionary()


class Node:
    """An operation on other nodes, a number ("const") or the value of a column ("input", by its name)."""

    __slots__ = ("__weakref__", "args", "op", "value")

    op: str
    args: tuple["Node", ...]
    value: float | str | None

    def __new__(cls, op: str, args: tuple["Node", ...] = (), value: float | str | None = None) -> "Node":
        """Find the node, or make it: equal ones are one object, so that comparing trees of any depth is cheap."""
        # Numbers by their text: 0.0 and -0.0 differ, NaN is itself.
        key = (op, args, repr(value))
        found = _NODES.get(key)
        if found is None:
            found = super().__new__(cls)
            found.op, found.args, found.value = op, args, value
            _NODES[key] = found
        return found

    def __repr__(self) -> str:
        return f"<Node {self.op} of {self.value if self.value is not None else len(self.args)}>"

    def __add__(self, other: Any) -> "Node":
        return apply("add", self, other)

    def __radd__(self, other: Any) -> "Node":
        return apply("add", other, self)

    def __sub__(self, other: Any) -> "Node":
        return apply("sub", self, other)

    def __rsub__(self, other: Any) -> "Node":
        return apply("sub", other, self)

    def __mul__(self, other: Any) -> "Node":
        return apply("mul", self, other)

    def __rmul__(self, other: Any) -> "Node":
        return apply("mul", other, self)

    def __truediv__(self, other: Any) -> "Node":
        return apply("div", self, other)

    def __rtruediv__(self, other: Any) -> "Node":
        return apply("div", other, self)

    def __pow__(self, other: Any) -> "Node":
        return apply("pow", self, other)

    def __rpow__(self, other: Any) -> "Node":
        return apply("pow", other, self)

    def __neg__(self) -> "Node":
        return apply("neg", self)

    def __pos__(self) -> "Node":
        return self

    def __abs__(self) -> "Node":
        return apply("abs", self)

    def __lt__(self, other: Any) -> "Node":
        return apply("lt", self, other)

    def __le__(self, other: Any) -> "Node":
        return apply("le", self, other)

    def __gt__(self, other: Any) -> "Node":
        return apply("gt", self, other)

    def __ge__(self, other: Any) -> "Node":
        return apply("ge", self, other)

    def __and__(self, other: Any) -> "Node":
        return apply("and", self, other)

    def __or__(self, other: Any) -> "Node":
        return apply("or", self, other)

    def __invert__(self) -> "Node":
        return apply("not", self)

    def __bool__(self) -> bool:
        raise TypeError("a condition on the argument has no truth value yet; use Piecewise")

    def __float__(self) -> float:
        if isinstance(self.value, float):
            return self.value
        raise TypeError("the argument is not a number yet; use the functions of sp")


def number(value: Any) -> Node:
    """A constant."""
    return value if isinstance(value, Node) else Node("const", value=float(value))


def column(name: str) -> Node:
    """The value of a column."""
    return Node("input", value=name)


def apply(op: str, *arguments: Any) -> Node:
    """An operation; of numbers alone it is computed at once."""
    if any(not isinstance(one, Node | int | float | np.number) for one in arguments):
        raise FeatureError(f"{op} takes numbers and expressions; got {arguments!r}.")
    args = tuple(map(number, arguments))
    if op not in _NO_FOLDING and all(one.op == "const" for one in args):
        with np.errstate(all="ignore"):
            return number(OPERATIONS[op](*(np.float64(one.value) for one in args)))
    return Node(op, args)


def total(terms: Sequence[Node]) -> Node:
    """A sum, in pairs of pairs: a chain of thousands would be too deep for parsers."""
    if len(terms) == 1:
        return terms[0]
    middle = len(terms) // 2
    return total(terms[:middle]) + total(terms[middle:])


def in_order(roots: Iterable[Node]) -> Iterator[Node]:
    """All nodes, each once, after what it is made of."""
    seen: set[Node] = set()
    for root in roots:
        stack = [(root, False)]
        while stack:
            node, is_ready = stack.pop()
            if node in seen:
                continue
            if is_ready:
                seen.add(node)
                yield node
            else:
                stack.append((node, True))
                stack.extend((one, False) for one in reversed(node.args))


def evaluate(root: Node, values: dict[str, Any]) -> Any:
    """Compute an expression with NumPy, given the values of its columns."""
    known: dict[Node, Any] = {}
    with np.errstate(all="ignore"):
        for node in in_order([root]):
            if node.op == "const":
                known[node] = node.value
            elif node.op == "input":
                known[node] = values[str(node.value)]
            else:
                known[node] = OPERATIONS[node.op](*(known[one] for one in node.args))
    return known[root]
