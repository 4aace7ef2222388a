"""What a notebook shows of a fitted estimator: the law, the features, advice."""

from typing import Any

from bgnlm.features import Component, render, to_latex
from bgnlm.page.html import Markup, join, tag
from bgnlm.page.mathml import in_pieces, to_mathml
from bgnlm.page.sections import advice, events_of, formula
from bgnlm.report.summary import n_models_averaged

_MOST_FEATURES = 6
_MOST_CLASSES = 4
_STYLE = """
.bgnlm-card{border:1px solid #8884;border-radius:8px;padding:.7em 1em;margin:.4em 0;max-width:60em;line-height:1.5}
.bgnlm-card h4{margin:.1em 0 .4em;font-size:1.05em}
.bgnlm-card .law{overflow-x:auto;padding:.3em 0;font-size:1.08em;line-height:2}
.bgnlm-card table{border-collapse:collapse;margin:.4em 0;display:block;overflow-x:auto}
.bgnlm-card td,.bgnlm-card th{text-align:left;padding:.15em .9em .15em 0;border:0;background:none}
.bgnlm-card .note{opacity:.75;font-size:.92em}
.bgnlm-card .advice{color:#b34700}
"""


def card(model: Any) -> Markup:
    """A compact version of the report, without scripts."""
    several = len(model.searches_) > 1
    parts = []
    for found, event in list(zip(model.searches_, events_of(model), strict=True))[:_MOST_CLASSES]:
        if several:
            parts.append(tag("p", tag("strong", f"class {event}, against the rest")))
        parts.append(tag("div", in_pieces(formula(model, found, "best", event)), class_="law"))
        parts.append(_features(found))
    if len(model.searches_) > _MOST_CLASSES:
        parts.append(tag("p", f"and {len(model.searches_) - _MOST_CLASSES} more classes", class_="note"))
    notes = [tag("p", line, class_="advice") for line in advice(model)]
    title = tag("h4", f"{type(model).__name__}: the most probable model")
    return join([Markup(f"<style>{_STYLE}</style>"), tag("div", title, *parts, *notes, class_="bgnlm-card")])


def _features(found: Any) -> Markup:
    each = zip(found.posterior.features, found.posterior.inclusion_probabilities.tolist(), strict=True)
    rows = [
        tag("tr", tag("td", f"{probability:.4f}"), tag("td", _written(feature)))
        for feature, probability in list(each)[:_MOST_FEATURES]
    ]
    table = tag("table", tag("tr", tag("th", "probability"), tag("th", "feature")), *rows)
    n_models = n_models_averaged(found.average, found.weight_errors)
    words = f"Predictions average over {n_models:,} models, {found.average.mass:.4f} of the probability found."
    return join([table, tag("p", words, class_="note")])


def _written(feature: Any) -> Markup:
    if isinstance(feature, Component):
        return tag("code", render(feature))
    return to_mathml(to_latex(feature, 4))
