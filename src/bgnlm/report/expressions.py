"""Models as formulas with their coefficients: text, LaTeX, SymPy."""

from typing import Any

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm._validation import check_choice, check_count
from bgnlm.features import Feature, render, to_latex, to_sympy
from bgnlm.features.latex import latex_name, latex_number
from bgnlm.features.text import join_terms
from bgnlm.posterior.average import ModelAverage

FORMATS = ("text", "latex", "sympy")
_HALF = 0.5


def expression(models: ModelAverage, form: str, response: str = "y", digits: int = 6, event: str | None = None) -> Any:
    """Write one model, or an average of several, as a formula of the mean of the response.

    Parameters
    ----------
    form
        "text" or "latex": an equation, rounded to `digits`. Of a generalized linear model the linear predictor is
        written; of an average of several the mean, term by term, because the mean of linear predictors is another
        thing. "sympy": the mean as an expression, with all digits.
    response
        Name of the response.
    event
        For classes: the one whose probability is the mean.
    """
    check_choice(form, "format", FORMATS)
    check_count(digits, "digits", low=1)
    if form == "sympy":
        return _sympy(models)
    if models.family.link == "identity":
        linear = _linear(models.features, _averaged(models), _probable_components(models), form, digits)
        return f"{_name(response, form)} = {linear}"
    mean = _mean(response, event, form)
    if len(models) == 1:
        link = rf"\operatorname{{{models.family.link}}}" if form == "latex" else models.family.link
        left = f"{link}({mean})"
        return f"{left} = {_linear(*_model(models, 0), form, digits)}"
    inverse = _inverse(models.family.link, form)
    terms = [
        (1.0, f"{_number(float(p), form, digits)}{_times(form)}{inverse}({_linear(*_model(models, m), form, digits)})")
        for m, p in enumerate(models.probabilities)
    ]
    return f"{mean} = {join_terms(terms)}"


def _inverse(link: str, form: str) -> str:
    """Name the inverse of a link."""
    if link == "log":
        return r"\exp" if form == "latex" else "exp"
    return rf"\operatorname{{{link}}}^{{-1}}" if form == "latex" else f"inverse_{link}"


def _mean(response: str, event: str | None, form: str) -> str:
    symbol, inside = ("E", _name(response, form)) if event is None else ("P", _equation(response, event, form))
    return rf"\mathrm{{{symbol}}}({inside})" if form == "latex" else f"{symbol}({inside})"


def _equation(response: str, event: str, form: str) -> str:
    return f"{_name(response, form)} = {_name(event, form)}"


def _averaged(models: ModelAverage) -> FloatArray:
    """Coefficients of the average on the scale of the features, intercept first."""
    slopes = models.mean_coefficients[1:] / models.scales
    return np.append(models.mean_coefficients[0] - slopes @ models.centres, slopes)


def _probable_components(models: ModelAverage) -> tuple[str, ...]:
    """Latent components of probability at least one half."""
    if models.latent is None:
        return ()
    share = dict.fromkeys(models.latent.models.names, 0.0)
    for m, probability in enumerate(models.probabilities.tolist()):
        for name in models.components_of(m):
            share[name] += probability
    return tuple(name for name, probability in share.items() if probability >= _HALF)


def _model(models: ModelAverage, m: int) -> tuple[tuple[Feature, ...], FloatArray, tuple[str, ...]]:
    return tuple(models.features[j] for j in models.members_of(m)), models.linear_predictor(m), models.components_of(m)


def _linear(
    features: tuple[Feature, ...], coefficients: FloatArray, components: tuple[str, ...], form: str, digits: int
) -> str:
    write = to_latex if form == "latex" else render
    terms = [(float(coefficients[0]), _number(abs(float(coefficients[0])), form, digits))]
    for feature, coefficient in zip(features, coefficients[1:].tolist(), strict=True):
        terms.append((coefficient, f"{_number(abs(coefficient), form, digits)}{_times(form)}{write(feature, digits)}"))
    terms += [(1.0, _name(component, form)) for component in components]
    return join_terms(terms)


def _times(form: str) -> str:
    return r" \, " if form == "latex" else "*"


def _number(value: float, form: str, digits: int) -> str:
    return latex_number(value, digits) if form == "latex" else f"{value:.{digits}g}"


def _name(response: str, form: str) -> str:
    return latex_name(response) if form == "latex" else response


def _sympy(models: ModelAverage) -> Any:
    """Return the mean of the response as a SymPy expression."""
    symbols = [to_sympy(feature) for feature in models.features]
    import sympy as sp

    def linear(features: Any, coefficients: FloatArray, components: tuple[str, ...]) -> Any:
        terms = [sp.Float(c) * f for f, c in zip(features, coefficients[1:].tolist(), strict=True)]
        return sum([*terms, *map(sp.Symbol, components)], start=sp.Float(float(coefficients[0])))

    if models.family.link == "identity":
        return linear(symbols, _averaged(models), _probable_components(models))

    # SymPy would take numbers out of powers, exp(x - 800) to 0 * exp(x) in a float.
    def exp(power: Any) -> Any:
        return sp.exp(power, evaluate=False)

    def times(number: Any, value: Any) -> Any:
        return sp.Mul(number, value, evaluate=False)

    inverse = {
        "logit": lambda eta: 1 / (1 + exp(-eta)),
        "probit": lambda eta: (1 + sp.erf(eta / sp.sqrt(2))) / 2,
        "cloglog": lambda eta: sp.Add(1, times(-1, exp(times(-1, exp(eta)))), evaluate=False),
        "log": exp,
    }[models.family.link]
    means = [
        inverse(linear([symbols[j] for j in models.members_of(m)], models.linear_predictor(m), models.components_of(m)))
        for m in range(len(models))
    ]
    if len(means) == 1:
        return means[0]
    weighted = (times(sp.Float(float(p)), mean) for p, mean in zip(models.probabilities, means, strict=True))
    return sp.Add(*weighted, evaluate=False)
