"""Exports as SQL: a query that computes shared values once, or a single expression.

NULL stands for NaN. Where a database has NaN as a value (DuckDB, which takes it for the largest number of all),
comparisons that could meet it are guarded.
"""

import math
from collections.abc import Sequence

from bgnlm._validation import LARGEST
from bgnlm.errors import SettingError
from bgnlm.report.export.graph import Node, apply, total
from bgnlm.report.export.program import (
    OFFSET,
    Part,
    Program,
    SourceColumn,
    free_prefix,
    inverse_link,
    linear_predictor,
    output_names,
)
from bgnlm.report.export.writer import Assignment, Writer

_LONGEST = 4000
_TOO_LONG = 1_000_000
_MODELS_AT_ONCE = 200  # whose linear predictors are held side by side: tables have limits on columns
_INFINITY = "1e999"
_TEMPLATES = {
    "neg": "(-{0})",
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": (
        "CASE WHEN {1} <> 0e0 THEN {0} / {1} WHEN {1} = 0e0 AND {0} > 0e0 AND {0} <= 1e999 THEN 1e999 "
        "WHEN {1} = 0e0 AND {0} < 0e0 THEN -1e999 END"
    ),
    "div!": "({0} / {1})",
    "pow": "power({0}, {1})",
    "sqrt": "CASE WHEN {0} >= 0e0 THEN sqrt({0}) END",
    "abs": "abs({0})",
    "exp": "exp({0})",
    "log": "CASE WHEN {0} > 0e0 THEN ln({0}) WHEN {0} = 0e0 THEN -1e999 END",
    "log!": "ln({0})",
    "sin": "CASE WHEN abs({0}) < 1e999 THEN sin({0}) END",
    "sin!": "sin({0})",
    "cos": "CASE WHEN abs({0}) < 1e999 THEN cos({0}) END",
    "cos!": "cos({0})",
    "asin": "CASE WHEN abs({0}) <= 1e0 THEN asin({0}) END",
    "acos": "CASE WHEN abs({0}) <= 1e0 THEN acos({0}) END",
    "atan": "atan({0})",
    "sinh": "sinh({0})",
    "cosh": "cosh({0})",
    "tanh": "tanh({0})",
    "asinh": "asinh({0})",
    "acosh": "CASE WHEN {0} >= 1e0 THEN acosh({0}) END",
    "floor": "floor({0})",
    "ceil": "ceil({0})",
    "max": "CASE WHEN {0} >= {1} THEN {0} WHEN {1} >= {0} THEN {1} END",
    "max!": "CASE WHEN {0} >= {1} THEN {0} ELSE {1} END",
    "min": "CASE WHEN {1} >= {0} THEN {0} WHEN {0} >= {1} THEN {1} END",
    "min!": "CASE WHEN {0} <= {1} THEN {0} ELSE {1} END",
    "clip": "CASE WHEN {0} < {1} THEN {1} WHEN {0} > {2} THEN {2} ELSE {0} END",
    "clip!": "{0}",
    "where": "CASE WHEN {0} THEN {1} ELSE {2} END",
    **{
        op: f"({{0}} {sign} {{1}} AND {{0}} <= 1e999 AND {{1}} <= 1e999)"
        for op, sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">=", "eq": "="}.items()
    },
    **{f"{op}!": f"({{0}} {sign} {{1}})" for op, sign in {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}.items()},
    "eq!": "({0} = {1})",
    "and": "({0} AND {1})",
    "or": "({0} OR {1})",
    "not": "(CASE WHEN {0} THEN 0 ELSE 1 END = 1)",
    "isnan": "({0} IS NULL OR {0} > 1e999)",
    "finite": (
        "CASE WHEN {0} > -1e999 AND {0} < 1e999 THEN {0} WHEN {0} = 1e999 THEN {2} WHEN {0} = -1e999 THEN {1} "
        "ELSE {3} END"
    ),
    "finite!": "{0}",
}


def to_sql(program: Program, *, table: str | None, keep: Sequence[str], offset: str | None) -> str:
    """A query over `table` with the predictions and the columns to keep; without a table, an expression."""
    if table is None:
        return _expression(program, keep, offset)
    prefix = free_prefix([*(one.name for one in program.columns), *keep, table, offset or ""])
    stages = _Stages([quoted(name) for name in keep])
    raw = {one.name: f"{prefix}r{place}" for place, one in enumerate(program.used_columns)}
    for one in program.used_columns:
        stages.add(Assignment(raw[one.name], _raw(one), frozenset()))
    texts = {coded: text for one in program.used_columns for coded, text in _coded(one, raw[one.name]).items()}
    columns = {coded: f"{prefix}c{place}" for place, coded in enumerate(texts)}
    if offset is not None:
        columns[str(OFFSET.value)] = f"{prefix}o"
        stages.add(Assignment(f"{prefix}o", _double(quoted(offset)), frozenset()))
    used = frozenset(raw.values())
    for coded, text in texts.items():
        stages.add(Assignment(columns[coded], text, used))
    writer = Writer(_TEMPLATES, write_number, columns, program.bounds, prefix=f"{prefix}v", longest=_LONGEST)
    outputs, groups = _outputs(program, offset, writer)
    for place, assignment in enumerate(writer.assignments):
        if place in groups:
            stages.begin_group()
        stages.add(assignment)
    refused = " OR ".join(found for one in program.used_columns if (found := _refused(one, raw[one.name])))
    if refused:
        stages.add(Assignment(f"{prefix}ok", f"CASE WHEN {refused} THEN 0 ELSE 1 END", used))
        outputs = [
            (name, f"CASE WHEN {prefix}ok = 1 THEN {text} END", uses | {f"{prefix}ok"}) for name, text, uses in outputs
        ]
    return stages.query(quoted(table), [(quoted(name), text, uses) for name, text, uses in outputs], f"{prefix}s")


def _expression(program: Program, keep: Sequence[str], offset: str | None) -> str:
    if len(program.parts) > 1:
        raise SettingError("An expression has one value, several classes have more. Give table=... for a query.")
    if keep:
        raise SettingError(f"keep is for a query; got keep={list(keep)!r} without a table. Give table=...")
    columns = {name: f"({text})" for one in program.used_columns for name, text in _coded(one, _raw(one)).items()}
    if offset is not None:
        columns[str(OFFSET.value)] = _double(quoted(offset))
    writer = Writer(_TEMPLATES, write_number, columns, program.bounds, prefix="", longest=None, most=_TOO_LONG)
    _, text, _ = _outputs(program, offset, writer)[0][-1]
    refused = " OR ".join(found for one in program.used_columns if (found := _refused(one, _raw(one))))
    return f"CASE WHEN {refused} THEN NULL ELSE {text} END" if refused else text


def _outputs(
    program: Program, offset: str | None, writer: Writer
) -> tuple[list[tuple[str, str, frozenset[str]]], set[int]]:
    """Names of the predictions, their texts and the names in these; and where a new group of models begins."""
    columns = program.standardised()
    writer.write(columns, name_roots=True)
    with_offset = None if offset is None else OFFSET
    means, groups = [], set()
    for part in program.parts:
        sums = []
        for models in _grouped(part):
            groups.add(len(writer.assignments))
            terms = [inverse_link(program.link, linear_predictor(part, m, columns, with_offset)) for m in models]
            if len(part) > 1:
                terms = [float(part.probabilities[m]) * term for m, term in zip(models, terms, strict=True)]
            sums.append(total(terms))
            writer.write(sums[-1:], name_roots=True)
        means.append(total(sums))
    texts = writer.write(_shares(program, means))
    return [(name, *text) for name, text in zip(output_names(program), texts, strict=True)], groups


def _grouped(part: Part) -> list[list[int]]:
    """Models that count, some at a time."""
    models = [m for m in range(len(part)) if part.probabilities[m]]
    return [models[first : first + _MODELS_AT_ONCE] for first in range(0, len(models), _MODELS_AT_ONCE)]


def _shares(program: Program, means: list[Node]) -> list[Node]:
    if not program.has_shares:
        return means
    if len(means) == 1:
        return [1.0 - means[0], means[0]]
    everything = total(means)
    return [apply("where", everything > 0.0, mean / everything, 1.0 / len(means)) for mean in means]


class _Stages:
    """Values in the order in which they can be computed: each in a subquery after those that it needs."""

    def __init__(self, keep: list[str]) -> None:
        self._keep, self._first = keep, 0
        self._stage: dict[str, int] = {}
        self._each: list[list[Assignment]] = []

    def begin_group(self) -> None:
        """Compute what follows after what is there: side by side it would be too wide."""
        self._first = len(self._each)

    def add(self, one: Assignment) -> None:
        """Take a value whose needs are there."""
        stage = max(self._first, 1 + max((self._stage[name] for name in one.uses), default=-1))
        self._stage[one.name] = stage
        while len(self._each) <= stage:
            self._each.append([])
        self._each[stage].append(one)

    def query(self, table: str, outputs: list[tuple[str, str, frozenset[str]]], prefix: str) -> str:
        """Write all of it; a value is passed on as long as it is needed."""
        needed = [frozenset().union(*(uses for _, _, uses in outputs))]
        for stage in reversed(self._each):
            own = {one.name for one in stage}
            needed.append((needed[-1] - own).union(*(one.uses for one in stage)))
        needed.reverse()
        source, parts = table, []
        for number_of, stage in enumerate(self._each):
            passed = sorted(needed[number_of] & self._stage.keys(), key=lambda name: (self._stage[name], name))
            listed = [*self._keep, *passed, *(f"{one.text} AS {one.name}" for one in stage)]
            parts.append(f"{prefix}{number_of} AS MATERIALIZED (SELECT {', '.join(listed)} FROM {source})")
            source = f"{prefix}{number_of}"
        listed = [*self._keep, *(f"{text} AS {name}" for name, text, _ in outputs)]
        start = "WITH " + ",\n".join(parts) + "\n" if parts else ""
        return f"{start}SELECT {', '.join(listed)} FROM {source}"


def _raw(one: SourceColumn) -> str:
    """A column of the table as it is."""
    return f"CAST({quoted(one.name)} AS VARCHAR)" if one.kind == "categorical" else _double(quoted(one.name))


def _double(text: str) -> str:
    return f"CAST({text} AS DOUBLE PRECISION)"


def _coded(one: SourceColumn, raw: str) -> dict[str, str]:
    """Texts of the coded columns."""
    gone = f"{raw} IS NULL" if one.kind == "categorical" else f"{raw} IS NULL OR {raw} > {_INFINITY}"
    texts = []
    if one.kind == "categorical":
        texts = [f"CASE WHEN {raw} = {literal(level)} THEN 1e0 ELSE 0e0 END" for level in one.levels]
    elif one.fill is not None:
        texts = [f"CASE WHEN {gone} THEN {write_number(float(one.fill))} ELSE {raw} END"]
    else:
        texts = [raw]
    if one.indicator:
        texts.append(f"CASE WHEN {gone} THEN 1e0 ELSE 0e0 END")
    return dict(zip(one.coded, texts, strict=True))


def _refused(one: SourceColumn, raw: str) -> str:
    """The condition for values that `predict` refuses."""
    conditions = [] if one.fill is not None else [f"{raw} IS NULL"]
    if one.kind == "boolean":
        conditions.append(f"({raw} <= {_INFINITY} AND {raw} NOT IN (0e0, 1e0))")
        conditions += [] if one.fill is not None else [f"{raw} > {_INFINITY}"]
    if one.kind == "numeric":
        limit = write_number(LARGEST)
        above = f"{raw} > {limit}" if one.fill is None else f"({raw} > {limit} AND {raw} <= {_INFINITY})"
        conditions += [above, f"{raw} < -{limit}"]
    return " OR ".join(conditions)


def quoted(name: str) -> str:
    """A name in SQL."""
    if "\0" in name or not name:
        raise SettingError(f"SQL has no names like {name!r}. Rename the column, or export another way.")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise SettingError(f"SQL has no names like {name!r}, which is no Unicode. Rename the column.") from None
    return '"' + name.replace('"', '""') + '"'


def literal(text: str) -> str:
    """A text in SQL."""
    return "'" + text.replace("'", "''") + "'"


def write_number(value: float) -> str:
    """A number in SQL that is taken for a floating-point one."""
    if math.isnan(value):
        return "NULL"
    if math.isinf(value):
        return f"({'-' if value < 0 else ''}{_INFINITY})"
    text = repr(value)
    text = text if "e" in text else f"{text}e0"
    return f"({text})" if text.startswith("-") else text
