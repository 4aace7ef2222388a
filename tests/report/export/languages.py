"""Run exports in their languages, and read the JSON document with nothing but its description."""

import json
import math
import sqlite3

import numpy as np

OPERATIONS = {
    "neg": lambda x: -x,
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: float(np.divide(x, y)),
    "pow": lambda x, y: float(np.power(x, y)),
    "sqrt": lambda x: float(np.sqrt(x)),
    "abs": abs,
    "sign": lambda x: float(np.sign(x)),
    "floor": lambda x: float(np.floor(x)),
    "ceil": lambda x: float(np.ceil(x)),
    "max": lambda x, y: float(np.maximum(x, y)),
    "min": lambda x, y: float(np.minimum(x, y)),
    "clip": lambda x, low, high: min(max(x, low), high),
    "where": lambda condition, x, y: x if condition else y,
    "lt": lambda x, y: x < y,
    "le": lambda x, y: x <= y,
    "gt": lambda x, y: x > y,
    "ge": lambda x, y: x >= y,
    "eq": lambda x, y: x == y,
    "and": lambda x, y: x and y,
    "or": lambda x, y: x or y,
    "not": lambda x: not x,
    "isnan": math.isnan,
    "erf": math.erf,
    "erfc": math.erfc,
    **{
        name: getattr(np, name)
        for name in ("exp", "expm1", "log", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh")
    },
    **{f"a{name}": getattr(np, f"arc{name}") for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
}


class RefusedError(Exception):
    """A value that the model does not take."""


def computed(steps, columns):
    """Results of all steps."""
    results = []
    for name, *arguments in steps:
        if name == "column":
            results.append(columns[arguments[0]])
        elif name == "number":
            results.append(float(arguments[0]))
        else:
            results.append(OPERATIONS[name](*(results[step] for step in arguments)))
    return results


def is_missing(value):
    return value is None or value != value


def coded(document, row):
    """Columns as numbers."""
    found = {}
    for column in document["columns"]:
        value = row[column["name"]]
        gone = is_missing(value)
        if gone and column["fill"] is None:
            raise RefusedError(column["name"])
        if column["kind"] == "categorical":
            numbers = [float(not gone and str(value) == level) for level in column["levels"]]
        else:
            numbers = [float(column["fill"] if gone else value)]
            if not abs(numbers[0]) <= document["largest_input"]:
                raise RefusedError(column["name"])
        if column["indicator"]:
            numbers.append(float(gone))
        found.update(zip(column["coded"], numbers, strict=True))
    return found


def standardised(document, row):
    """Features, finite and standardised."""
    columns, found = coded(document, row), []
    with np.errstate(all="ignore"):
        results = computed(document["steps"], columns)
        for feature in document["features"]:
            value = results[feature["step"]]
            if not math.isfinite(value):
                key = "median" if math.isnan(value) else "maximum" if value > 0 else "minimum"
                value = feature[key]
            found.append(min(max((value - feature["centre"]) / feature["scale"], -1e100), 1e100))
    return found


def from_json(text, row, offset=0.0):
    """What a document predicts for a row: a number, or the probabilities of the classes."""
    document = json.loads(text)
    z, means = standardised(document, row), []
    for part in document["parts"]:
        mean = 0.0
        for model in part["models"]:
            eta = model["intercept"] + model["offset"] * offset
            eta += sum(c * z[j] for j, c in zip(model["features"], model["coefficients"], strict=True))
            with np.errstate(all="ignore"):
                mean += model["probability"] * computed(document["inverse_link"], {"eta": eta})[-1]
        means.append(mean)
    if document["classes"] is None or (document["of"] != "mean" and len(means) == 1):
        return means[0]
    if document["of"] != "mean":
        return means
    if len(means) == 1:
        return [1.0 - means[0], means[0]]
    total = sum(means)
    return [mean / total if total > 0.0 else 1.0 / len(means) for mean in means]


def function(source, name="predict"):
    names = {}
    exec(compile(source, "export", "exec"), names)
    return names[name]


def fetched(rows):
    """Rows of numbers by their first entry, NaN for NULL."""
    ordered = sorted(rows, key=lambda row: row[0])
    return np.array([[math.nan if value is None else value for value in row[1:]] for row in ordered], dtype=float)


def sqlite_table(name, columns, rows):
    database = sqlite3.connect(":memory:")
    quoted = ['"' + column.replace('"', '""') + '"' for column in columns]
    table = '"' + name.replace('"', '""') + '"'
    database.execute(f"CREATE TABLE {table} ({', '.join(quoted)})")
    marks = ", ".join("?" * len(columns))
    database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)
    return database


def onnx_outputs(content, columns):
    """Run a model on columns by name."""
    import onnxruntime

    session = onnxruntime.InferenceSession(content)
    feed = {one.name: columns[one.name] for one in session.get_inputs()}
    return session.run(None, feed)[0]
