"""Exports as Python: a function that needs nothing but the standard library."""

import re
from collections.abc import Mapping

from bgnlm.features import render
from bgnlm.report.export.graph import column
from bgnlm.report.export.program import Program, SourceColumn, inverse_link
from bgnlm.report.export.writer import Writer

_LONGEST = 100
_TEMPLATES = {
    "neg": "(-{0})",
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "_div({0}, {1})",
    "div!": "({0} / {1})",
    "pow": "_pow({0}, {1})",
    "sqrt": "_try(math.sqrt, {0})",
    "abs": "abs({0})",
    "exp": "_grow(math.exp, {0})",
    "exp!": "math.exp({0})",
    "expm1": "_grow(math.expm1, {0})",
    "expm1!": "math.expm1({0})",
    "log": "_log({0})",
    "log!": "math.log({0})",
    "log1p": "_log1p({0})",
    "log1p!": "math.log1p({0})",
    "sin": "_try(math.sin, {0})",
    "sin!": "math.sin({0})",
    "cos": "_try(math.cos, {0})",
    "cos!": "math.cos({0})",
    "tan": "_try(math.tan, {0})",
    "asin": "_try(math.asin, {0})",
    "acos": "_try(math.acos, {0})",
    "atan": "math.atan({0})",
    "tanh": "math.tanh({0})",
    "asinh": "math.asinh({0})",
    "acosh": "_try(math.acosh, {0})",
    "floor": "_floor({0})",
    "ceil": "(-_floor(-{0}))",
    "erf": "math.erf({0})",
    "erfc": "math.erfc({0})",
    "max": "_max({0}, {1})",
    "min": "_min({0}, {1})",
    "clip": "min(max({0}, {1}), {2})",
    "clip!": "{0}",
    "where": "({1} if {0} else {2})",
    "lt": "({0} < {1})",
    "le": "({0} <= {1})",
    "gt": "({0} > {1})",
    "ge": "({0} >= {1})",
    "eq": "({0} == {1})",
    "and": "({0} and {1})",
    "or": "({0} or {1})",
    "not": "(not {0})",
    "isnan": "math.isnan({0})",
    "finite": "_finite({0}, {1}, {2}, {3})",
    "finite!": "{0}",
}
_HELPERS = {
    "_is_missing": '''\
def _is_missing(value):
    """None, NaN and what pandas calls NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or value != value
''',
    "_number": '''\
def _number(value, name, fill):
    """Read a number."""
    if _is_missing(value):
        if fill is None:
            raise ValueError(f"column {name!r} must have a value")
        return fill
    value = float(value)
    if not abs(value) <= LARGEST:
        raise ValueError(f"column {name!r} must be a number within {LARGEST:g}, got {value!r}")
    return value
''',
    "_boolean": '''\
def _boolean(value, name, fill):
    """Read true or false, or 1 or 0."""
    value = _number(value, name, fill)
    if value not in (0.0, 1.0):
        raise ValueError(f"column {name!r} must be true or false, got {value!r}")
    return value
''',
    "_level": '''\
def _level(value, name, fill):
    """Read a category."""
    if _is_missing(value):
        if fill is None:
            raise ValueError(f"column {name!r} must have a value")
        return fill
    return str(value)
''',
    "_missing": '''\
def _missing(value):
    """1 where there is no value."""
    return float(_is_missing(value))
''',
    "_finite": '''\
def _finite(value, low, high, middle):
    """Put a value seen in training in place of one that is not finite."""
    if math.isfinite(value):
        return value
    return middle if math.isnan(value) else high if value > 0.0 else low
''',
    "_div": '''\
def _div(a, b):
    """Divide, also by zero."""
    if b != 0.0:
        return a / b
    return math.nan if a == 0.0 or a != a or b != b else math.copysign(math.inf, a) * math.copysign(1.0, b)
''',
    "_pow": '''\
def _pow(a, b):
    """Raise to a power, also where it is infinite."""
    try:
        return math.pow(a, b)
    except OverflowError:
        return -math.inf if a < 0.0 and b % 2.0 == 1.0 else math.inf
    except ValueError:
        if a != 0.0:
            return math.nan
        return math.copysign(math.inf, a) if b % 2.0 == 1.0 else math.inf
''',
    "_grow": '''\
def _grow(function, x):
    """Apply a function, infinity where it is too large."""
    try:
        return function(x)
    except OverflowError:
        return math.inf
''',
    "_log": '''\
def _log(x):
    """Take the logarithm, also of zero."""
    return math.log(x) if x > 0.0 else -math.inf if x == 0.0 else math.nan
''',
    "_log1p": '''\
def _log1p(x):
    """Take the logarithm of 1 + x, also of zero."""
    return math.log1p(x) if x > -1.0 else -math.inf if x == -1.0 else math.nan
''',
    "_try": '''\
def _try(function, x):
    """Apply a function, NaN where it is not defined."""
    try:
        return function(x)
    except ValueError:
        return math.nan
''',
    "_floor": '''\
def _floor(x):
    """Round down."""
    return float(math.floor(x)) if math.isfinite(x) else x
''',
    "_max": '''\
def _max(a, b):
    """The larger one; NaN if one of them is."""
    return a if a >= b or a != a else b
''',
    "_min": '''\
def _min(a, b):
    """The smaller one; NaN if one of them is."""
    return a if a <= b or a != a else b
''',
}
_READERS = {"numeric": "_number", "boolean": "_boolean", "categorical": "_level"}


def to_python(program: Program, name: str) -> str:
    """Source text of a module with one function of a row and its offset."""
    reading, texts = read_columns(program, _READERS, "row", "float({value} == {level})")
    writer = Writer(_TEMPLATES, write_number, texts, program.bounds, prefix="v", longest=_LONGEST)
    body = [*reading, *feature_lines(program, writer)]
    link = Writer(_TEMPLATES, write_number, {"eta": "eta"}, {}, prefix="v", longest=None)
    mean_text = link.write([inverse_link(program.link, column("eta"))])[0][0]
    mean = f'def _mean(eta):\n    """Mean of the response for a linear predictor."""\n    return {mean_text}\n'
    tables = [_table(program, k) for k in range(len(program.parts)) if len(program.parts[k]) > 1]
    if tables:
        body.append(f"z = ({''.join(f'z{j}, ' for j in range(len(program.features)))})")
    for k in range(len(program.parts)):
        body += _average(program, k)
    body += _result(program)
    lines = "\n".join(f"    {line}" for line in body)
    function = f'def {name}(row, offset=0.0):\n    """{describe(program)}"""\n{lines}\n'
    needed = [*tables, *([] if program.link == "identity" else [mean]), function]
    return module("import math\n", _HELPERS, needed)


def feature_lines(program: Program, writer: Writer) -> list[str]:
    """Lines that compute the standardised features, each with its text as a comment."""
    columns = writer.write(program.standardised())
    shared = [f"{one.name} = {one.text}" for one in writer.assignments]
    each = enumerate(zip(columns, program.features, strict=True))
    return [*shared, *(f"z{j} = {text}  # {render(feature.feature, 6)}" for j, ((text, _), feature) in each)]


def describe(program: Program) -> str:
    """One line about a function, without characters that could end its text."""
    what = {"average": "an average over models", "best": "the best model", "median": "the median probability model"}
    subject = "mean" if program.classes is None else "probabilities of the classes"
    subject = subject if program.of == "mean" else "linear predictor"
    response = re.sub(r"[^\w .,=-]", "?", program.response)
    return f"{subject.capitalize()} of {response}: {what[program.using]}, {program.family}."


def module(imports: str, helpers: Mapping[str, str], parts: list[str]) -> str:
    """A module of the given parts, with the helpers that they need, directly or not."""
    needed: list[str] = []
    text = "\n".join(parts)
    while True:
        more = [key for key in helpers if key not in needed and re.search(rf"\b{key}\b", text)]
        if not more:
            break
        needed += more
        text += "\n".join(helpers[key] for key in more)
    written = [helpers[key] for key in helpers if key in needed]
    limit = ["LARGEST = 1e140\n"] if any("LARGEST" in one for one in written) else []
    return "\n\n".join([imports, *limit, *written, *parts])


def read_columns(
    program: Program, readers: Mapping[str, str], row: str, is_level: str
) -> tuple[list[str], dict[str, str]]:
    """Lines that read the columns, and the texts that stand for the coded columns."""
    lines, texts = [], {}
    for number_of, one in enumerate(program.used_columns):
        cell = f"{row}[{one.name!r}]" if program.has_names else f"{row}{_place(row, one)}"
        value = f"x{number_of}"
        lines.append(f"{value} = {readers[one.kind]}({cell}, {one.name!r}, {_fill(one)})")
        own = list(one.coded[:-1] if one.indicator else one.coded)
        if one.kind == "categorical":
            for k, (coded, level) in enumerate(zip(own, one.levels, strict=True)):
                texts[coded] = f"{value}_{k}"
                lines.append(f"{value}_{k} = {is_level.format(value=value, level=repr(level))}")
        else:
            texts[own[0]] = value
        if one.indicator:
            texts[one.coded[-1]] = f"{value}_missing"
            lines.append(f"{value}_missing = _missing({cell})")
    return lines, texts


def _place(row: str, one: SourceColumn) -> str:
    return f"[{one.place}]" if row == "row" else f"[:, {one.place}]"


def _fill(one: SourceColumn) -> str:
    return repr(float(one.fill)) if one.fill is not None and one.kind != "categorical" else repr(one.fill)


def _table(program: Program, k: int) -> str:
    """Probability, intercept, share of the offset, and terms of each model."""
    part = program.parts[k]
    rows = []
    for m in range(len(part)):
        probability, intercept, terms = part.model(m)
        if probability:
            inside = "".join(f"({j}, {coefficient!r}), " for j, coefficient in terms)
            rows.append(f"    ({probability!r}, {intercept!r}, {float(part.offsets[m])!r}, ({inside.rstrip(' ')})),\n")
    return f"MODELS{k} = (\n{''.join(rows)})\n"


def _average(program: Program, k: int) -> list[str]:
    part = program.parts[k]
    share = "offset" if part.offsets[0] == 1.0 else f"{float(part.offsets[0])!r} * offset"
    mean = "{}" if program.link == "identity" else "_mean({})"
    if len(part) == 1:
        _, intercept, terms = part.model(0)
        sums = [f"eta += {coefficient!r} * z{j}" for j, coefficient in terms]
        return [f"eta = {share} + {intercept!r}", *sums, f"p{k} = {mean.format('eta')}"]
    return [
        f"p{k} = 0.0",
        f"for probability, intercept, share, terms in MODELS{k}:",
        "    eta = share * offset + intercept",
        "    for j, coefficient in terms:",
        "        eta += coefficient * z[j]",
        f"    p{k} += probability * {mean.format('eta')}",
    ]


def _result(program: Program) -> list[str]:
    n_parts = len(program.parts)
    if program.classes is None or (program.of != "mean" and n_parts == 1):
        return ["return p0"]
    labels = [repr(one) for one in program.classes]
    if program.of != "mean":
        return [f"return {{{', '.join(f'{label}: p{k}' for k, label in enumerate(labels))}}}"]
    if n_parts == 1:
        return [f"return {{{labels[0]}: 1.0 - p0, {labels[1]}: p0}}"]
    shares = ", ".join(f"{label}: p{k} / total if total > 0.0 else {1.0 / n_parts!r}" for k, label in enumerate(labels))
    return [f"total = {' + '.join(f'p{k}' for k in range(n_parts))}", f"return {{{shares}}}"]


def write_number(value: float) -> str:
    """A number in Python."""
    if value != value or value in (float("inf"), float("-inf")):
        return {"inf": "math.inf", "-inf": "(-math.inf)", "nan": "math.nan"}[repr(value)]
    return repr(value) if value >= 0.0 and repr(value)[0] != "-" else f"({value!r})"
