"""Functions that a language lacks, in those that it has."""

import math
from collections.abc import Callable, Collection, Iterable

from bgnlm.report.export.graph import Node, apply, in_order, number

# exp(t^2) erfc(t) / y for t >= 0, as a polynomial in s = 2 y - 1 with y = 2 / (2 + t): a Chebyshev interpolant, good to
# about 2e-15; the constant comes first.
ERFC_COEFFICIENTS = (
    *(0.5107913526210117, 0.3435803422069067, 0.13973604627794914, 0.01822111575329492),
    *(-0.010755330940908886, -0.0032395925295271534, 0.0015453059557186107, 0.0004186479710660508),
    *(-0.00033153601371393716, -1.71852541704069e-05, 7.223098558594817e-05, -1.7076638145079572e-05),
    *(-1.0831436166846611e-05, 8.06710621122023e-06, -6.050557593208622e-07, -1.835078540898153e-06),
    *(1.0739744686311663e-06, 1.5720540066794157e-08, -3.7163646958410467e-07, 1.497143526022312e-07),
    *(6.610183151765426e-08, -5.145629434357736e-08, -4.946607757245824e-09, 6.597367302900275e-09),
)
_HALVINGS = 2
_ATAN_TERMS = 12


def lowered(roots: Iterable[Node], known: Collection[str]) -> dict[Node, Node]:
    """The same expressions in operations that are known, for each of the roots."""
    roots = list(roots)
    found: dict[Node, Node] = {}
    for node in in_order(roots):
        here = Node(node.op, tuple(found[one] for one in node.args), node.value) if node.args else node
        if here.op in known or here.op in ("const", "input"):
            found[node] = here
        else:
            other = _RULES[here.op](*here.args)
            found[node] = lowered([other], known)[other]
    return found


def _erfc(x: Node) -> Node:
    t = abs(x)
    y = 2.0 / (2.0 + t)
    s = 2.0 * y - 1.0
    tail = apply("exp", -(t * t)) * y * _polynomial(list(map(number, ERFC_COEFFICIENTS)), s)
    return apply("where", x < 0.0, 2.0 - tail, tail)


def _polynomial(coefficients: list[Node], s: Node) -> Node:
    """A polynomial by pairs of pairs (Estrin's scheme): parsers of SQL do not take deep ones."""
    power = 1.0
    while len(coefficients) > 1:
        factor = apply("pow", s, power) if power > 1.0 else s
        if len(coefficients) % 2:
            coefficients = [*coefficients, number(0.0)]
        pairs = zip(coefficients[::2], coefficients[1::2], strict=True)
        coefficients = [low if high == number(0.0) else low + high * factor for low, high in pairs]
        power *= 2.0
    return coefficients[0]


def _erf(x: Node) -> Node:
    return 1.0 - apply("erfc", x)


def _atan(x: Node) -> Node:
    """Halve the angle until its series is short."""
    t = abs(x)
    is_large = t > 1.0
    part = apply("where", is_large, 1.0 / t, t)
    for _ in range(_HALVINGS):
        part = part / (1.0 + apply("sqrt", 1.0 + part * part))
    series = _polynomial([number((-1.0) ** k / (2 * k + 1)) for k in range(_ATAN_TERMS)], part * part)
    angle = 2.0**_HALVINGS * part * series
    angle = apply("where", is_large, math.pi / 2 - angle, angle)
    return apply("where", x < 0.0, -angle, angle)


def _asin(x: Node) -> Node:
    return apply("atan", x / apply("sqrt", 1.0 - x * x))


def _asinh(x: Node) -> Node:
    t = abs(x)
    value = apply("log", t + apply("sqrt", t * t + 1.0))
    # Squares of large numbers overflow.
    value = apply("where", t > 1e8, apply("log", t) + math.log(2.0), value)
    return apply("where", x < 0.0, -value, value)


def _acosh(x: Node) -> Node:
    value = apply("log", x + apply("sqrt", x * x - 1.0))
    return apply("where", x > 1e8, apply("log", x) + math.log(2.0), value)


def _sign(x: Node) -> Node:
    return apply("where", x > 0.0, 1.0, apply("where", x < 0.0, -1.0, x))


def _finite(x: Node, low: Node, high: Node, middle: Node) -> Node:
    """Replace what is not finite."""
    chosen = apply("where", x > -math.inf, x, apply("where", apply("isnan", x), middle, low))
    return apply("where", x < math.inf, chosen, apply("where", apply("isnan", x), middle, high))


_RULES: dict[str, Callable[..., Node]] = {
    "neg": lambda x: 0.0 - x,
    "erf": _erf,
    "erfc": _erfc,
    "atan": _atan,
    "asin": _asin,
    "acos": lambda x: math.pi / 2 - apply("asin", x),
    "cos": lambda x: 1.0 - 2.0 * apply("pow", apply("sin", x / 2.0), 2.0),
    "tan": lambda x: apply("sin", x) / apply("cos", x),
    "sinh": lambda x: (apply("exp", x) - apply("exp", -x)) / 2.0,
    "cosh": lambda x: (apply("exp", x) + apply("exp", -x)) / 2.0,
    "asinh": _asinh,
    "acosh": _acosh,
    "atanh": lambda x: apply("log", (1.0 + x) / (1.0 - x)) / 2.0,
    "expm1": lambda x: apply("exp", x) - 1.0,
    "log1p": lambda x: apply("log", 1.0 + x),
    "sqrt": lambda x: apply("pow", x, 0.5),
    "sign": _sign,
    "finite": _finite,
    "max": lambda a, b: apply("where", (a >= b) | apply("isnan", a), a, b),
    "min": lambda a, b: apply("where", (a <= b) | apply("isnan", a), a, b),
}
