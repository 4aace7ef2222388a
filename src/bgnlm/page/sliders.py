"""The part of the page in which inputs can be changed: a control for each, and room for what is predicted."""

from dataclasses import dataclass
from typing import Any

from bgnlm.page.average import LEVEL, PageAverage
from bgnlm.page.html import Markup, embedded, escape, join, tag

_MOST_OPEN = 12
_NOT_SEEN = "(not seen in training)"
_MISSING = "(missing)"


@dataclass(frozen=True, kw_only=True)
class Span:
    """Smallest, middle and largest value of an input."""

    low: float
    middle: float
    high: float


def sliders(average: PageAverage, spans: dict[str, Span], labelled: set[str], weights: dict[str, float]) -> Markup:
    """Controls of the inputs that models use, the most important first, and the prediction.

    `spans` are those of numeric inputs, `labelled` the columns of groups, in which new ones may come.
    """
    document = average.document
    used = {step[1] for step in document["steps"] if step[0] == "column"}
    used |= {one["slope"] for one in document["latent"] if one["slope"]}
    columns = [one for one in document["columns"] if used.intersection((one["name"], *one["coded"]))]
    columns.sort(key=lambda one: -max((weights.get(name, 0.0) for name in one["coded"]), default=0.0))
    controls = [_control(document["columns"].index(one), one, spans) for one in columns]
    controls += [_positions(document, name, name in labelled) for name in _latent_columns(document)]
    if document["has_offset"]:
        controls.append(_offset())
    if not controls:
        controls = [tag("p", "No model that predictions average over uses an input.")]
    others = [one["name"] for one in document["columns"] if one not in columns]
    return join(
        [
            tag(
                "noscript",
                tag("p", "The sliders need JavaScript, which is switched off in this browser.", class_="note"),
            ),
            tag("div", _result(document), tag("div", *_folded(controls), class_="controls"), class_="what-if"),
            *(tag("p", note, class_="note") for note in [*average.notes, *_notes(columns, spans, others)]),
            tag("p", _about(document), class_="note"),
            Markup(f'<script type="application/json" id="bgnlm-model">{embedded(document)}</script>'),
        ]
    )


def _folded(controls: list[Markup]) -> list[Markup]:
    if len(controls) <= _MOST_OPEN:
        return controls
    more = tag("summary", f"{len(controls) - _MOST_OPEN} more inputs")
    rest = tag("div", *controls[_MOST_OPEN:], class_="controls")
    return [*controls[:_MOST_OPEN], tag("details", more, rest, class_="more")]


def _notes(columns: list[Any], spans: dict[str, Span], others: list[str]) -> list[str]:
    unknown = [one["name"] for one in columns if one["kind"] == "numeric" and one["name"] not in spans]
    notes = []
    if unknown:
        notes.append(f"No range is known of {', '.join(unknown)}: there is a number to type, and 0 to begin with.")
    if others:
        notes.append(f"Not used by the models that predictions average over: {', '.join(others)}.")
    return notes


def _about(document: dict[str, Any]) -> str:
    begin = (
        "Computed in this page from the models that predict averages over. Inputs begin at their medians, to six "
        "digits, or most frequent values."
    )
    if "uncertainty" not in document["parts"][0]:
        return begin
    if document["classes"] is not None:
        what = "of the probability of the second class"
        if len(document["classes"]) > 2:
            what = "of each class against the rest, before the probabilities are made to add up to 1"
    elif document["family"] == "gaussian":
        what = "of a new response (thin bar) and of its mean (thick)"
    else:
        what = "of the mean of the response, in which the noise of a single response is not contained"
    return f"{begin} Intervals are {100 * LEVEL:.0f} % credible intervals {what}."


def _control(number: int, one: dict[str, Any], spans: dict[str, Span]) -> Markup:
    # The script knows columns and levels by their places: names may hold what attributes cannot.
    attributes = {"class_": "control", "data_place": number, "data_column": one["name"], "data_kind": one["kind"]}
    label = tag("label", one["name"], for_=f"in-{number}")
    if one["kind"] != "numeric":
        return tag("div", label, _choice(f"in-{number}", one), **attributes)
    span = spans.get(one["name"])
    value = f"{span.middle:.6g}" if span else "0"
    box = tag("input", type="number", id=f"in-{number}", step="any", value=value)
    slide = Markup("")
    if span and span.high > span.low:
        ends = {"min": repr(span.low), "max": repr(span.high)}
        slide = tag("input", type="range", step="any", value=value, aria_label=f"{one['name']}, slider", **ends)
    missing = Markup("")
    if one["fill"] is not None:
        missing = tag("label", tag("input", type="checkbox"), " missing", class_="missing")
    return tag("div", label, box, slide, missing, **attributes)


def _choice(name: str, one: dict[str, Any]) -> Markup:
    texts = ("no", "yes") if one["kind"] == "boolean" else (one["reference"], *one["levels"])
    # Sorted, as in the pictures; the reference comes first in the model alone.
    ordered = [0, 1] if one["kind"] == "boolean" else sorted(range(len(texts)), key=texts.__getitem__)
    options = [tag("option", texts[place], value=place, selected=place == 0) for place in ordered]
    if one["fill"] is not None:
        options.append(tag("option", _MISSING, value="missing"))
    return tag("select", *options, id=name)


def _latent_columns(document: dict[str, Any]) -> list[str]:
    return list(dict.fromkeys(one["column"] for one in document["latent"]))


def _positions(document: dict[str, Any], name: str, is_labelled: bool) -> Markup:
    """A choice among the positions or groups of training."""
    number = next(k for k, one in enumerate(document["latent"]) if one["column"] == name)
    options = [tag("option", text, value=place) for place, text in enumerate(document["latent"][number]["values"])]
    if is_labelled:
        options.insert(0, tag("option", _NOT_SEEN, value="missing"))
    label = tag("label", name, for_=f"at-{number}")
    chosen = tag("select", *options, id=f"at-{number}")
    return tag("div", label, chosen, class_="control", data_place=number, data_column=name, data_kind="latent")


def _offset() -> Markup:
    label = tag("label", "offset (known part of the linear predictor)", for_="in-offset")
    box = tag("input", type="number", id="in-offset", step="any", value="0")
    return tag("div", label, box, class_="control", data_kind="offset")


def _result(document: dict[str, Any]) -> Markup:
    """Where the prediction goes."""
    classes = document["classes"]
    if classes is None:
        heading = tag("p", "predicted ", tag("strong", document["response"]), class_="result-name")
        rows = [
            tag("output", "–", id="prediction", class_="number", aria_live="polite"),
            tag("p", id="intervals", class_="intervals"),
        ]
    else:
        heading = tag("p", "probabilities of ", tag("strong", document["response"]), class_="result-name")
        rows = [
            tag(
                "div",
                *(_bar(k, one, len(classes) > 2) for k, one in enumerate(classes)),
                class_="bars",
                id="probabilities",
            )
        ]
    drawing = Markup('<svg id="curve" viewBox="0 0 480 220" role="img" aria-labelledby="curve-title"></svg>')
    caption = tag("p", "Change an input to see the prediction along it.", id="curve-title", class_="note")
    return tag("div", heading, *rows, drawing, caption, class_="result")


def _bar(number: int, one: object, is_several: bool) -> Markup:
    fill = tag("span", class_="fill several" if is_several else "fill")
    return tag(
        "div",
        tag("span", one, class_="bar-name"),
        tag("span", fill, tag("span", class_="whisker"), class_="track"),
        tag("output", "–", data_class=number),
        tag("span", class_="bar-interval"),
        class_="bar",
    )


def no_sliders(reason: str) -> Markup:
    """Say why there are none."""
    return tag("p", escape(reason), class_="note")
