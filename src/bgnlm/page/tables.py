"""Tables that sort and filter."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from bgnlm.features import Component, depth, operation_count, render, to_latex
from bgnlm.page.html import Markup, escape, join, tag
from bgnlm.page.mathml import to_mathml
from bgnlm.page.sections import events_of

_MOST_ROWS = 200
_DIGITS = 4


class Cell(NamedTuple):
    """What a cell shows, and the number it is sorted by, if it is one."""

    content: object
    value: float | None = None
    kind: str | None = None


def number_cell(value: float, text: str | None = None) -> Cell:
    """A cell with a number."""
    return Cell(f"{value:.{_DIGITS}g}" if text is None else text, value)


def sortable(name: str, caption: str, headers: Sequence[str], rows: Sequence[tuple[str, Sequence[Cell]]]) -> Markup:
    """A table; each row comes with a text to be found by, beside what it shows."""
    numeric = [bool(rows) and rows[0][1][k].value is not None for k in range(len(headers))]
    head = [
        tag("th", tag("button", text, type="button"), scope="col", class_="n" if is_number else None)
        for text, is_number in zip(headers, numeric, strict=True)
    ]
    body = [tag("tr", *map(_cell, cells), data_text=text) for text, cells in rows]
    box = f"filter-{name}"
    table = tag(
        "table", tag("caption", caption), tag("thead", tag("tr", *head)), tag("tbody", *body), data_filter=box, id=name
    )
    return join(
        [
            tag(
                "div",
                tag("label", "Show rows with", for_=box),
                tag("input", type="search", id=box, autocomplete="off"),
                tag("output", id=f"{box}-count", for_=box),
                class_="filter",
            ),
            tag("div", table, class_="table", tabindex="0", role="region", aria_label=caption),
        ]
    )


def _cell(cell: Cell) -> Markup:
    if cell.value is None:
        return tag("td", cell.content, class_=cell.kind)
    return tag("td", cell.content, class_="n", data_value=repr(float(cell.value)))


def plain(caption: str, headers: Sequence[str], rows: Sequence[Sequence[object]]) -> Markup:
    """A table without buttons."""
    head = tag("thead", tag("tr", *(tag("th", text, scope="col") for text in headers)))
    body = tag("tbody", *(tag("tr", *(tag("td", cell) for cell in row)) for row in rows))
    table = tag("table", tag("caption", caption), head, body)
    return tag("div", table, class_="table", tabindex="0", role="region", aria_label=caption)


def probability_cell(value: float) -> Cell:
    """A probability with its bar."""
    bar = tag("progress", value=f"{value:.4f}", max="1", aria_hidden="true")
    return Cell(join([f"{value:.4f}", bar]), value)


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
                Cell(to_mathml(to_latex(feature, _DIGITS)), kind="formula"),
                probability_cell(probability),
                number_cell(mean),
                number_cell(deviation),
                number_cell(operation_count(feature)),
                number_cell(depth(feature)),
            ]
            rows.append((render(feature, _DIGITS), [Cell(event), *cells] if several else cells))
    headers = ["feature", "probability", "coefficient", "sd", "operations", "depth"]
    caption = f"{len(rows):,} of {total:,} features, the most probable" if len(rows) < total else f"{total:,} features"
    words = f"{caption}; coefficient and its standard deviation are averaged over models, 0 where one lacks the feature"
    return sortable("features", words, ["class", *headers] if several else headers, rows)


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
    caption = f"{len(rows):,} of {total:,} models, the most probable" if len(rows) < total else f"{total:,} models"
    return sortable("models", caption, ["class", *headers] if several else headers, rows)


def components(model: Any) -> Markup:
    """Latent components with their hyperparameters."""
    table = model.components_
    rows = []
    for record in table.to_dict("records"):
        numbers = [number_cell(float(record[key])) for key in ("mean", "sd", "lower", "upper")]
        shown = [cell if cell.value == cell.value else Cell("–", 0.0) for cell in numbers]
        own = [Cell(tag("code", record["component"])), probability_cell(float(record["probability"]))]
        rows.append(("", [*([Cell(record["class"])] if "class" in record else []), *own, Cell(escape(record["hyperparameter"])), *shown]))
    headers = ["component", "probability", "hyperparameter", "mean", "sd", "5 %", "95 %"]
    return sortable("components", "Latent components", ["class", *headers] if "class" in table else headers, rows)
