"""Features, models and latent components as tables."""

from typing import Any

from bgnlm.features import Component, depth, operation_count, render, to_latex
from bgnlm.page.html import Markup, escape, join, tag
from bgnlm.page.mathml import to_mathml
from bgnlm.page.rows import Cell, number_cell, probability_cell, sortable
from bgnlm.page.sections import events_of

_MOST_ROWS = 200
_DIGITS = 4


def features(model: Any) -> Markup:
    """Features by probability."""
    several, rows, total = len(model.searches_) > 1, [], 0
    for found, event in zip(model.searches_, events_of(model), strict=True):
        effects = found.average.effects()
        each = zip(found.posterior.features, found.posterior.inclusion_probabilities.tolist(), strict=True)
        listed = [(one, probability) for one, probability in each if not isinstance(one, Component)]
        total += len(listed)
        for feature, probability in listed[: _MOST_ROWS // len(model.searches_)]:
            mean, deviation = effects.get(feature, (0.0, 0.0))
            cells = [
                Cell(tag("div", to_mathml(to_latex(feature, _DIGITS))), kind="formula"),
                probability_cell(probability),
                number_cell(mean),
                number_cell(deviation),
                number_cell(operation_count(feature)),
                number_cell(depth(feature)),
            ]
            rows.append((render(feature, _DIGITS), [Cell(event), *cells] if several else cells))
    headers = ["feature", "probability", "coefficient", "sd", "operations", "depth"]
    table = sortable(
        "features", _caption(len(rows), total, "feature"), ["class", *headers] if several else headers, rows
    )
    words = "Coefficients and their standard deviations are averaged over models, 0 where one lacks the feature."
    return join([table, tag("p", words, class_="note")])


def _caption(n_rows: int, total: int, what: str) -> str:
    if n_rows < total:
        return f"{n_rows:,} of {total:,} {what}s, the most probable"
    return f"{total:,} {what}{'s' if total != 1 else ''}"


def models(model: Any) -> Markup:
    """Models by probability."""
    several, rows, total = len(model.searches_) > 1, [], 0
    for found, event in zip(model.searches_, events_of(model), strict=True):
        posterior = found.posterior
        total += len(posterior)
        for m in range(min(len(posterior), _MOST_ROWS // len(model.searches_))):
            each = posterior.features_of(m)
            text = " + ".join(render(one, _DIGITS) for one in each) or "(intercept only)"
            cells = [
                number_cell(m + 1, f"{m + 1}"),
                Cell(tag("code", text), kind="wide"),
                probability_cell(float(posterior.model_probabilities[m])),
                number_cell(float(posterior.found.log_joint[m]), f"{posterior.found.log_joint[m]:.3f}"),
                number_cell(len(each)),
            ]
            rows.append(("", [Cell(event), *cells] if several else cells))
    headers = ["rank", "model", "probability", "log posterior", "size"]
    return sortable("models", _caption(len(rows), total, "model"), ["class", *headers] if several else headers, rows)


def components(model: Any) -> Markup:
    """Latent components with their hyperparameters."""
    table = model.components_
    rows = []
    for record in table.to_dict("records"):
        numbers = [number_cell(float(record[key])) for key in ("mean", "sd", "lower", "upper")]
        shown = [cell if cell.value == cell.value else Cell("–", 0.0) for cell in numbers]
        own = [Cell(tag("code", record["component"])), probability_cell(float(record["probability"]))]
        rows.append(
            (
                "",
                [
                    *([Cell(record["class"])] if "class" in record else []),
                    *own,
                    Cell(escape(record["hyperparameter"])),
                    *shown,
                ],
            )
        )
    headers = ["component", "probability", "hyperparameter", "mean", "sd", "5 %", "95 %"]
    return sortable("components", "Latent components", ["class", *headers] if "class" in table else headers, rows)
