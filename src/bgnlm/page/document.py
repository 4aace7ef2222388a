"""The whole page: one HTML file with its style, its script and its pictures, which asks nothing of the network."""

from dataclasses import dataclass
from importlib.resources import files
from typing import Any

from bgnlm._version import __version__
from bgnlm.page import sections, tables
from bgnlm.page.average import PageAverage, input_weights
from bgnlm.page.data import PageData, data_summary
from bgnlm.page.html import Markup, digest_source, tag
from bgnlm.page.pictures import pictures
from bgnlm.page.sliders import Span, no_sliders, sliders

_LEAST = 0.05  # probability of the models with an input whose effect is drawn


@dataclass(frozen=True, kw_only=True, eq=False)
class PageContent:
    """What a page is made of: a fitted estimator, rows if there are any, and what sliders need or why there are none.

    `spans` are the ranges of numeric columns, `labelled` the columns of groups.
    """

    model: Any
    title: str
    data: PageData | None
    average: PageAverage | str
    spans: dict[str, Span]
    labelled: set[str]


def write_page(content: PageContent) -> str:
    """The file as text."""
    style, script = (files("bgnlm.page").joinpath(name).read_text(encoding="utf-8") for name in ("page.css", "page.js"))
    policy = (
        f"default-src 'none'; img-src data:; style-src {digest_source(style)}; script-src {digest_source(script)}; "
        "base-uri 'none'; form-action 'none'"
    )
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", http_equiv="Content-Security-Policy", content=Markup(policy)),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="generator", content=f"bgnlm {__version__}"),
        tag("title", content.title),
        Markup(f"<style>{style}</style>"),
    )
    body = tag("body", *_body(content), Markup(f"<script>{script}</script>"))
    return f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n"


def _body(content: PageContent) -> list[Markup]:
    model = content.model
    parts = _parts(content)
    links = [tag("li", tag("a", heading, href=f"#{name}")) for name, heading, _ in parts]
    header = tag(
        "header",
        tag("h1", content.title),
        tag("p", _lead(model), class_="lead"),
        tag("nav", tag("ul", *links), aria_label="Sections"),
        sections.facts(model),
    )
    each = [
        tag("section", tag("h2", heading, id=f"{name}-heading"), inside, id=name, aria_labelledby=f"{name}-heading")
        for name, heading, inside in parts
    ]
    return [header, tag("main", *each), tag("footer", f"Written by bgnlm {__version__}. This file needs no network.")]


def _lead(model: Any) -> str:
    family = model.searches_[0].average.family
    what = f"{len(model.classes_)} classes" if hasattr(model, "classes_") else f"{family.name} response"
    return f"Bayesian generalized nonlinear model: {what}, {family.link} link."


def _parts(content: PageContent) -> list[tuple[str, str, Markup]]:
    model = content.model
    weights = input_weights(tuple(found.average for found in model.searches_))
    parts = [
        ("laws", "The law" if len(model.searches_) == 1 else "The laws", sections.laws(model)),
        ("trust", "Can it be trusted?", sections.diagnostics(model)),
        ("what-if", "What if?", _what_if(content, weights)),
        ("features", "Features", tables.features(model)),
        ("models", "Models", tables.models(model)),
        ("pictures", "Pictures", pictures(model, content.data, _important(model, weights))),
        ("asked", "What was asked", sections.asked(model)),
        ("data", "Data", data_summary(model, content.data)),
        ("again", "Do it again", sections.again(model)),
    ]
    if model.latent_columns_.fields:
        parts.insert(5, ("components", "Latent components", tables.components(model)))
    return [(f"part-{name}", heading, inside) for name, heading, inside in parts]


def _what_if(content: PageContent, weights: dict[str, float]) -> Markup:
    if isinstance(content.average, str):
        return no_sliders(content.average)
    return sliders(content.average, content.spans, content.labelled, weights)


def _important(model: Any, weights: dict[str, float]) -> list[str]:
    """Columns that probable models use, the most important first."""
    largest = {
        name: max((weights.get(one, 0.0) for one in coded), default=0.0)
        for name, coded in model.coding_.names_by_input.items()
    }
    return sorted((name for name, weight in largest.items() if weight >= _LEAST), key=lambda name: -largest[name])
