"""Exports as JSON: everything a program in another language needs to predict, intervals included."""

import json
import math
from typing import Any

import numpy as np

from bgnlm._version import __version__
from bgnlm.features import render
from bgnlm.posterior.average import ModelAverage
from bgnlm.report.export.graph import Node, column, in_order
from bgnlm.report.export.program import FARTHEST_INPUT, Part, Program, SourceColumn, StandardFeature, inverse_link
from bgnlm.report.export.symbols import expression_of

FORMAT, VERSION = "bgnlm-export", 1


def to_json(program: Program, *, with_uncertainty: bool) -> str:
    """The document as text; the schema is in docs/reference/json-export.md."""
    return json.dumps(to_document(program, with_uncertainty=with_uncertainty), allow_nan=False, ensure_ascii=True)


def to_document(program: Program, *, with_uncertainty: bool) -> dict[str, Any]:
    """The document in values that JSON knows."""
    bounds = program.bounds
    roots = [expression_of(one.feature, bounds) for one in program.features]
    steps, places = _steps(roots)
    mean = inverse_link(program.link, column("eta"))
    return {
        "format": FORMAT,
        "version": VERSION,
        "written_by": f"bgnlm {__version__}",
        "response": program.response,
        "family": program.family,
        "link": program.link,
        "inverse_link": _steps([mean])[0],
        "using": program.using,
        "of": program.of,
        "classes": None if program.classes is None else list(program.classes),
        "has_offset": program.has_offset,
        "has_names": program.has_names,
        "largest_input": FARTHEST_INPUT,
        "columns": [_column(one) for one in program.columns],
        "steps": steps,
        "features": [_feature(one, places[root]) for one, root in zip(program.features, roots, strict=True)],
        "parts": [_part(program, part, with_uncertainty) for part in program.parts],
    }


def _steps(roots: list[Node]) -> tuple[list[Any], dict[Node, int]]:
    """Expressions step by step: a number, a column, or an operation on the results of earlier steps."""
    places: dict[Node, int] = {}
    steps: list[Any] = []
    for node in in_order(roots):
        places[node] = len(steps)
        if node.op == "input":
            steps.append(["column", node.value])
        elif isinstance(node.value, float):
            steps.append(["number", _number(node.value)])
        else:
            steps.append([node.op, *(places[one] for one in node.args)])
    return steps, places


def _number(value: float) -> float | str:
    """A number; what JSON has no numbers for is a text."""
    return value if math.isfinite(value) else {"inf": "inf", "-inf": "-inf", "nan": "nan"}[repr(value)]


def _column(one: SourceColumn) -> dict[str, Any]:
    return {
        "name": one.name,
        "kind": one.kind,
        "fill": one.fill,
        "reference": one.reference,
        "levels": list(one.levels),
        "indicator": one.indicator,
        "coded": list(one.coded),
    }


def _feature(one: StandardFeature, step: int) -> dict[str, Any]:
    numbers = {name: getattr(one, name) for name in ("minimum", "maximum", "median", "centre", "scale")}
    return {"text": render(one.feature), "step": step, **numbers}


def _part(program: Program, part: Part, with_uncertainty: bool) -> dict[str, Any]:
    models = []
    for m in range(len(part)):
        probability, intercept, terms = part.model(m)
        models.append(
            {
                "probability": probability,
                "intercept": intercept,
                "features": [j for j, _ in terms],
                "coefficients": [coefficient for _, coefficient in terms],
                "offset": float(part.offsets[m]),
            }
        )
    event = part.event.item() if isinstance(part.event, np.generic) else part.event
    document = {"event": event, "models": models}
    if with_uncertainty:
        document["uncertainty"] = _uncertainty(program, part)
    return document


def _uncertainty(program: Program, part: Part) -> list[dict[str, Any]]:
    """Of each model: posterior mean and covariance factor of its coefficients, dispersion, degrees of freedom."""
    source = part.source.mixture or part.source
    places = _places(program, source)
    found, first, corner = [], 0, 0
    for m, size in enumerate(source.sizes.tolist()):
        end = corner + (size + 1) ** 2
        degrees = float(source.degrees[m])
        found.append(
            {
                "probability": float(source.probabilities[m]),
                "features": [places[j] for j in source.members_of(m).tolist()],
                "mean": source.coefficients[first : first + size + 1].tolist(),
                "factor": _upper(source.factors[corner:end].reshape(size + 1, size + 1)),
                "dispersion": float(source.dispersions[m]),
                "degrees_of_freedom": degrees if math.isfinite(degrees) else None,
            }
        )
        first, corner = first + size + 1, end
    return found


def _places(program: Program, source: ModelAverage) -> dict[int, int]:
    """Where the features of an average are among those of the program."""
    number_of = {one: j for j, one in enumerate(program.features)}
    each = zip(source.features, source.ranges, source.centres.tolist(), source.scales.tolist(), strict=True)
    keys = [StandardFeature(f, r.minimum, r.maximum, r.median, c, s) for f, r, c, s in each]
    return {j: number_of[key] for j, key in enumerate(keys) if key in number_of}


def _upper(factor: Any) -> list[list[float]]:
    """Rows of an upper triangular matrix, from the diagonal on."""
    return [row[i:].tolist() for i, row in enumerate(factor)]
