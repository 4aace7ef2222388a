"""Exports as NumPy: a function of whole columns that needs nothing else."""

from bgnlm.report.export.graph import column
from bgnlm.report.export.program import Program, inverse_link
from bgnlm.report.export.python_source import describe, feature_lines, module, read_columns, write_number
from bgnlm.report.export.writer import Writer

_LONGEST = 100
_SAME = (
    *("sqrt", "abs", "sign", "floor", "ceil", "exp", "expm1", "log", "log1p"),
    *("sin", "cos", "tan", "sinh", "cosh", "tanh", "isnan"),
)
_TEMPLATES = {
    **{op: f"np.{op}({{0}})" for op in _SAME},
    **{f"a{op}": f"np.arc{op}({{0}})" for op in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "where": "np.where({0}, {1}, {2})",
    "neg": "(-{0})",
    "add": "({0} + {1})",
    "sub": "({0} - {1})",
    "mul": "({0} * {1})",
    "div": "({0} / {1})",
    "pow": "np.power({0}, {1})",
    "max": "np.maximum({0}, {1})",
    "min": "np.minimum({0}, {1})",
    "clip": "np.clip({0}, {1}, {2})",
    "clip!": "{0}",
    "lt": "({0} < {1})",
    "le": "({0} <= {1})",
    "gt": "({0} > {1})",
    "ge": "({0} >= {1})",
    "eq": "({0} == {1})",
    "and": "({0} & {1})",
    "or": "({0} | {1})",
    "not": "(~{0})",
    "finite": "np.nan_to_num({0}, nan={3}, posinf={2}, neginf={1})",
    "finite!": "{0}",
}
_HELPERS = {
    "_is_missing": '''\
def _is_missing(values):
    """Where there is no value: None, NaN and what pandas calls NA."""
    return np.array([v is None or type(v).__name__ in ("NAType", "NaTType") or v != v for v in values], dtype=bool)
''',
    "_numbers": '''\
def _numbers(values, name, fill):
    """Read a column of numbers."""
    try:
        numbers = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        numbers = np.array([np.nan if gone else float(v) for v, gone in zip(values, _is_missing(values))])
    if fill is None and np.isnan(numbers).any():
        raise ValueError(f"column {name!r} must have values in all rows")
    numbers = np.where(np.isnan(numbers), np.nan if fill is None else fill, numbers)
    if not (np.abs(numbers) <= LARGEST).all():
        raise ValueError(f"column {name!r} must hold numbers within {LARGEST:g}")
    return numbers
''',
    "_booleans": '''\
def _booleans(values, name, fill):
    """Read a column of Booleans, or of 1 and 0."""
    numbers = _numbers(values, name, fill)
    if not np.isin(numbers, (0.0, 1.0)).all():
        raise ValueError(f"column {name!r} must hold true and false")
    return numbers
''',
    "_levels": '''\
def _levels(values, name, fill):
    """Read a column of categories as texts."""
    gone = _is_missing(values)
    if fill is None and gone.any():
        raise ValueError(f"column {name!r} must have values in all rows")
    return np.array([fill if absent else str(v) for v, absent in zip(values, gone)], dtype=object)
''',
    "_missing": '''\
def _missing(values):
    """1 where there is no value."""
    return _is_missing(values).astype(np.float64)
''',
}
_READERS = {"numeric": "_numbers", "boolean": "_booleans", "categorical": "_levels"}


def to_numpy(program: Program, name: str) -> str:
    """Source text of a module with one function of a table and the offset of its rows."""
    reading, texts = read_columns(program, _READERS, "X", "np.asarray({value} == {level}, dtype=np.float64)")
    writer = Writer(_TEMPLATES, _number, texts, program.bounds, prefix="v", longest=_LONGEST)
    body = [*reading, *feature_lines(program, writer)]
    body += _rows(program)
    link = Writer(_TEMPLATES, _number, {"eta": "eta"}, {}, prefix="v", longest=_LONGEST)
    mean_text = link.write([inverse_link(program.link, column("eta"))])[0][0]
    inner = "".join(f"    {one.name} = {one.text}\n" for one in link.assignments)
    mean = f'def _mean(eta):\n    """Mean of the response for linear predictors."""\n{inner}    return {mean_text}\n'
    for k in range(len(program.parts)):
        body += _average(program, k)
    body += _result(program)
    lines = "\n".join(f"        {line}" for line in body)
    text = f'def {name}(X, offset=0.0):\n    """{describe(program)}"""\n    with np.errstate(all="ignore"):\n{lines}\n'
    tables = [_table(program, k) for k in range(len(program.parts))]
    needed = [*tables, *([] if program.link == "identity" else [mean]), text]
    return module("import numpy as np\n", _HELPERS, needed)


def _rows(program: Program) -> list[str]:
    if not program.features:
        first = repr(program.columns[0].name) if program.has_names else ":, 0"
        return [f"z = np.empty((len(X[{first}]), 0))"]
    return [f"z = np.column_stack([{', '.join(f'z{j}' for j in range(len(program.features)))}])"]


def _table(program: Program, k: int) -> str:
    """Probability, intercept, share of the offset, features and slopes of each model."""
    part, rows = program.parts[k], []
    for m in range(len(part)):
        probability, intercept, terms = part.model(m)
        if probability:
            places, slopes = [j for j, _ in terms], [coefficient for _, coefficient in terms]
            rows.append(f"    ({probability!r}, {intercept!r}, {float(part.offsets[m])!r}, {places!r}, {slopes!r}),\n")
    return f"MODELS{k} = (\n{''.join(rows)})\n"


def _average(program: Program, k: int) -> list[str]:
    mean = "eta" if program.link == "identity" else "_mean(eta)"
    return [
        f"p{k} = np.zeros(len(z))",
        f"for probability, intercept, share, places, slopes in MODELS{k}:",
        "    eta = share * np.asarray(offset) + intercept + z[:, places] @ np.array(slopes, dtype=np.float64)",
        f"    p{k} += probability * {mean}",
    ]


def _result(program: Program) -> list[str]:
    n_parts = len(program.parts)
    if program.classes is None or (program.of != "mean" and n_parts == 1):
        return ["return p0"]
    stacked = f"np.column_stack([{', '.join(f'p{k}' for k in range(n_parts))}])"
    if program.of != "mean":
        return [f"return {stacked}"]
    if n_parts == 1:
        return ["return np.column_stack([1.0 - p0, p0])"]
    return [
        f"shares = {stacked}",
        "totals = shares.sum(axis=1, keepdims=True)",
        f"return np.where(totals > 0.0, shares / np.where(totals > 0.0, totals, 1.0), {1.0 / n_parts!r})",
    ]


def _number(value: float) -> str:
    return write_number(value).replace("math.", "np.")
