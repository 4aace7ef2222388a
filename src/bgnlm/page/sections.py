"""What the page says in words and formulas: what was asked, the laws, advice, how to do it again."""

import platform
from collections.abc import Sequence
from importlib.metadata import version
from typing import Any

import numpy as np

from bgnlm._version import __version__
from bgnlm.page.code import changed_settings, refit_code
from bgnlm.page.html import Markup, join, preformatted, tag
from bgnlm.page.mathml import in_pieces
from bgnlm.page.rows import plain
from bgnlm.report.expressions import expression
from bgnlm.report.summary import advice_on, n_models_averaged

_DIGITS = 6
_MOST_NAMES = 30
_PACKAGES = ("numpy", "scipy", "numba", "scikit-learn", "pandas")
_FAMILIES = {
    "gaussian": "numbers with normal noise",
    "binomial": "shares of successes",
    "poisson": "counts (Poisson)",
    "gamma": "positive numbers (Gamma)",
    "negative_binomial": "counts (negative binomial)",
}


def events_of(model: Any) -> list[str | None]:
    """Whose probability each search is about; None for the mean of a number."""
    classes = getattr(model, "classes_", None)
    if classes is None:
        return [None]
    return [str(one) for one in (classes.tolist()[1:] if len(classes) == 2 else classes.tolist())]


def asked(model: Any) -> Markup:
    """The question, in words."""
    found = model.searches_[0]
    family = found.average.family
    what = "classes" if hasattr(model, "classes_") else _FAMILIES.get(family.name, family.name)
    rows: list[tuple[str, object]] = [
        ("response", join([tag("strong", model.response_name_), f": {what}, {family.link} link"])),
        ("explained by", _names(model.coding_.input_names)),
        ("observations", f"{found.n_obs:,.10g}"),
        ("prior of models", found.prior.removeprefix("models: ")),
        ("prior of coefficients", found.likelihood.removeprefix("coefficients: ")),
        ("functions", _transforms(model)),
        ("depth of features", f"at most {model.max_depth}"),
        ("search", f"{model.n_chains} chains" if model.n_chains != 1 else "1 chain"),
    ]
    if hasattr(model, "classes_"):
        rows.insert(1, ("classes", _names([str(one) for one in model.classes_.tolist()])))
    if model.latent_columns_.fields:
        from bgnlm.latent.place import describe

        rows.insert(2, ("latent components", _names([describe(one) for one in model.latent_columns_.fields])))
    if model.has_offset_:
        rows.append(("offset", "there was one in training"))
    return definitions(rows)


def definitions(rows: Sequence[tuple[str, object]]) -> Markup:
    """Terms with what they are."""
    return tag("dl", *(join([tag("dt", term), tag("dd", text)]) for term, text in rows))


def _names(names: Sequence[str]) -> Markup:
    shown = [tag("code", name) for name in names[:_MOST_NAMES]]
    more = f", and {len(names) - _MOST_NAMES} more" if len(names) > _MOST_NAMES else ""
    return join([join(shown, ", "), more])


def _transforms(model: Any) -> str:
    given = model.transforms
    if isinstance(given, str):
        return f"the set {given!r}"
    return ", ".join(getattr(one, "name", str(one)) for one in given) or "none: products alone"


def laws(model: Any) -> Markup:
    """The most probable model and the median probability model, of each class if there are several."""
    several = len(model.searches_) > 1
    parts = []
    for found, event in zip(model.searches_, events_of(model), strict=True):
        if several:
            parts.append(tag("h3", f"class {event}, against the rest"))
        parts.append(_law(model, found, event))
    return join(parts)


def _law(model: Any, found: Any, event: str | None) -> Markup:
    best, median = found.formula("best"), found.formula("median")
    same = set(best.features) == set(median.features) and best.components_of(0) == median.components_of(0)
    probability = float(found.posterior.model_probabilities[0]) if len(found.posterior) else 1.0
    words = f"The most probable model, of probability {probability:.4f}"
    if same:
        words = f"{words}; the median probability model (all features of probability at least one half) is the same"
    parts = [tag("p", f"{words}."), _typeset(formula(model, found, "best", event))]
    if not same:
        parts.append(tag("p", "The median probability model: all features of probability at least one half."))
        parts.append(_typeset(formula(model, found, "median", event)))
    return join(parts)


def _typeset(latex: str) -> Markup:
    return tag("div", in_pieces(latex), class_="law", tabindex="0")


def formula(model: Any, found: Any, using: str, event: str | None) -> str:
    """One model in LaTeX; of several with different weights, that with the most probable ones."""
    models = found.formula(using)
    return str(expression(models.only(0) if len(models) > 1 else models, "latex", model.response_name_, _DIGITS, event))


def advice(model: Any) -> list[str]:
    """What stands against trusting the fit, of all classes."""
    lines = []
    for found, event in zip(model.searches_, events_of(model), strict=True):
        about = f"class {event}: " if len(model.searches_) > 1 else ""
        found_here = advice_on(
            found.posterior, found.diagnostics, found.average, found.weight_errors, found.weight_shapes
        )
        lines += [f"{about}{line}." for line in found_here]
    return lines


def advice_list(model: Any) -> Markup:
    """Advice as a list, or that there is none to give."""
    lines = [tag("li", line[0].upper() + line[1:]) for line in advice(model)]
    if not lines and any(len(found.diagnostics.history) < 2 for found in model.searches_):
        lines = [tag("li", "Nothing stands against this fit, but there was a single chain, and nothing to compare it "
                     "with. More chains (n_chains) show whether others find the same.")]  # fmt: skip
    if not lines:
        lines = [tag("li", "Nothing stands against this fit: chains came to their ends and agree, and predictions "
                     "average over nearly all of the probability.", class_="good")]  # fmt: skip
    return tag("ul", *lines, class_="advice")


def diagnostics(model: Any) -> Markup:
    """Advice, and what it rests on."""
    rows: list[list[object]] = []
    for found, event in zip(model.searches_, events_of(model), strict=True):
        told = found.diagnostics
        largest = float(np.nanmax(told.disagreement)) if np.isfinite(told.disagreement).any() else None
        n_chains = len(told.history)
        cells: list[object] = [
            f"{n_chains}; {told.chain_weights.max(initial=0.0):.2f}",
            "not known" if n_chains < 2 or largest is None else f"{largest:.3f}",
            f"{told.n_scored:,}; {told.n_models:,}",
            f"{n_models_averaged(found.average, found.weight_errors):,}; {found.average.mass:.4f}",
        ]
        rows.append([f"class {event}", *cells] if len(model.searches_) > 1 else cells)
    headers = [
        "chains; largest share of one in the mass",
        "largest disagreement (sd of a probability between chains)",
        "models scored; kept",
        "models averaged over; their probability",
    ]
    if len(rows) == 1:
        return join([advice_list(model), definitions(list(zip(headers, rows[0], strict=True)))])
    return join([advice_list(model), plain("What the search did", ["class", *headers], rows)])


def again(model: Any) -> Markup:
    """How to fit the model once more."""
    lost = sorted(getattr(model, "_settings_lost", ()))
    parts = [preformatted(refit_code(model))]
    if lost:
        parts.append(tag("p", f"The model file could not hold {', '.join(lost)}: set it again.", class_="note"))
    if "random_state" not in changed_settings(model):
        parts.append(tag("p", "No seed was given (random_state): another run finds other numbers.", class_="note"))
    digests = ", ".join(dict.fromkeys(found.data for found in model.searches_))
    rows: list[tuple[str, object]] = [
        ("table X", join(["columns ", _names(model.coding_.input_names)])),
        ("response y", tag("code", model.response_name_)),
        ("digest of the data", tag("code", digests)),
        ("report written by", f"bgnlm {__version__}, Python {platform.python_version()}, {_versions()}"),
    ]
    return join([*parts, definitions(rows)])


def _versions() -> str:
    return ", ".join(f"{name} {version(name)}" for name in _PACKAGES)


def facts(model: Any) -> Markup:
    """Few numbers that say most."""
    found = model.searches_[0]
    probable = sum(int((one.posterior.inclusion_probabilities >= 0.5).sum()) for one in model.searches_)
    averaged = sum(n_models_averaged(one.average, one.weight_errors) for one in model.searches_)
    each = [
        (f"{found.n_obs:,.10g}", "observations"),
        (f"{len(model.coding_.input_names):,}", "columns to explain by"),
        (f"{probable:,}", "features of probability 0.5 or more"),
        (f"{averaged:,}", "models averaged over"),
        (f"{100 * min(one.average.mass for one in model.searches_):.4g} %", "of the probability found"),
    ]
    return tag("ul", *(tag("li", tag("strong", number), tag("span", what)) for number, what in each), class_="facts")
