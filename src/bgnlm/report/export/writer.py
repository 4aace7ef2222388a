"""Expressions as texts in a language, from one table: the template of each operation.

An operand that a template has more than once, or that several expressions share, gets a name and is computed once.
"""

import string
from collections import Counter
from collections.abc import Callable, Iterable, Mapping

from bgnlm.errors import SettingError
from bgnlm.report.export.bounds import Bounds, all_bounds
from bgnlm.report.export.graph import Node, in_order
from bgnlm.report.export.lowering import lowered

SAFE = "!"  # ends the name of an operation that cannot leave the finite numbers
_PARTS = string.Formatter()


class Assignment:
    """A name, the text it stands for, and the other names in that text."""

    __slots__ = ("name", "text", "uses")

    def __init__(self, name: str, text: str, uses: frozenset[str]) -> None:
        self.name, self.text, self.uses = name, text, uses


class Writer:
    """Writes expressions in one language.

    Parameters
    ----------
    templates
        Of each operation, with ``{0}``, ``{1}`` for the operands. One whose name ends with `SAFE` is used where the
        operands cannot overflow, divide by zero or leave the domain. Operations without one are written in others.
    write_number
        Text of a number.
    columns
        Texts of the columns.
    bounds
        Bounds of the columns.
    prefix
        How names of shared values begin.
    longest
        Longer texts get a name; None if nothing ever does.
    most
        Texts that are longer are refused.
    """

    def __init__(
        self,
        templates: Mapping[str, str],
        write_number: Callable[[float], str],
        columns: Mapping[str, str],
        bounds: Mapping[str, Bounds],
        *,
        prefix: str,
        longest: int | None,
        most: int = 2**62,
    ) -> None:
        self._templates, self._number = templates, write_number
        self._known = {op.removesuffix(SAFE) for op in templates}
        self._columns, self._input_bounds = columns, bounds
        self._prefix, self._longest, self._most = prefix, longest, most
        self._texts: dict[Node, str] = {}
        self._uses: dict[Node, frozenset[str]] = {}
        self._named: set[Node] = set()
        self._bounds: dict[Node, Bounds] = {}
        self.assignments: list[Assignment] = []

    def write(self, roots: Iterable[Node], *, name_roots: bool = False) -> list[tuple[str, frozenset[str]]]:
        """Texts of expressions, each with the names in it; what they share is among `assignments`.

        With `name_roots` the expressions themselves get names, for what is written later.
        """
        given = list(roots)
        simple = lowered(given, self._known)
        wanted = [simple[root] for root in given]
        self._bounds.update(all_bounds(wanted, self._input_bounds))
        counts = Counter(arg for node in in_order(wanted) for arg in node.args)
        counts.update(wanted)
        named = set(wanted)
        for node in in_order(wanted):
            if node not in self._texts:
                self._write_one(node)
                if (
                    counts[node] > 1
                    or (name_roots and node in named)
                    or (self._longest is not None and len(self._texts[node]) > self._longest)
                ):
                    self._name(node)
        return [(self._texts[node], self._uses[node]) for node in wanted]

    def _write_one(self, node: Node) -> None:
        if isinstance(node.value, float):
            self._texts[node], self._uses[node] = self._number(node.value), frozenset()
            return
        if node.op == "input":
            text = self._columns[str(node.value)]
            self._texts[node], self._uses[node] = text, frozenset((text,))
            return
        template = self._template(node)
        fields = Counter(int(field) for _, field, _, _ in _PARTS.parse(template) if field is not None)
        for place, count in fields.items():
            if count > 1:
                self._name(node.args[place])
        self._texts[node] = template.format(*(self._texts[one] for one in node.args))
        if len(self._texts[node]) > self._most:
            raise SettingError(
                f"As a single expression this model takes more than {self._most:,} characters. Give table=... for a "
                "query, in which shared values are computed once."
            )
        self._uses[node] = frozenset().union(*(self._uses[one] for one in node.args))

    def _template(self, node: Node) -> str:
        safe = node.op + SAFE
        if safe in self._templates and _is_safe(node, self._bounds):
            return self._templates[safe]
        return self._templates[node.op]

    def _name(self, node: Node) -> None:
        if self._longest is None or node in self._named or not node.args:
            return
        self._named.add(node)
        name = f"{self._prefix}{len(self.assignments) + 1}"
        self.assignments.append(Assignment(name, self._texts[node], self._uses[node]))
        self._texts[node], self._uses[node] = name, frozenset((name,))


def _is_safe(node: Node, bounds: Mapping[Node, Bounds]) -> bool:
    """Whether plain functions, which may raise errors, do."""
    args = [bounds[one] for one in node.args]
    match node.op:
        case "exp" | "expm1":
            return args[0].high < 709.0 and not args[0].nan
        case "log":
            return args[0].low > 0.0 and not args[0].nan
        case "log1p":
            return args[0].low > -1.0 and not args[0].nan
        case "div":
            return not args[1].has(0.0) and not args[1].nan
        case "finite" | "sin" | "cos":
            return args[0].is_finite
        case "clip":
            return args[1].low <= args[0].low and args[0].high <= args[2].high
        case _:
            return not any(one.nan for one in args)
