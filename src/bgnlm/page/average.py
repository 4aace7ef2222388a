"""The averaged models as the page carries them: the JSON export, smaller where it may be, with latent effects."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bgnlm.posterior.average import ModelAverage
from bgnlm.report.export.json_document import to_document
from bgnlm.report.export.program import Part, Program

LEVEL = 0.9
_DIGITS = 11  # of what only intervals are computed from
_MOST_NUMBERS = 300_000  # of covariance factors, or of latent effects: about four megabytes


@dataclass(frozen=True, kw_only=True, eq=False)
class LatentColumn:
    """A latent component: its column, slope, values in training as texts, and whether these are labels."""

    column: str
    slope: str | None
    values: tuple[str, ...]
    by_label: bool


@dataclass(frozen=True, kw_only=True, eq=False)
class PageAverage:
    """What the page computes with, and what it cannot do, in words."""

    document: dict[str, Any]
    notes: tuple[str, ...] = ()


def page_average(program: Program, latent: tuple[LatentColumn, ...]) -> PageAverage:
    """Everything the sliders need."""
    has_latent = program.parts[0].source.latent is not None
    document = to_document(program, with_uncertainty=not has_latent)
    document = {key: value for key, value in document.items() if key not in ("format", "version", "written_by")}
    document["level"], document["latent"] = LEVEL, []
    for feature in document["features"]:
        del feature["text"]
    if not has_latent:
        return PageAverage(document=document, notes=_thinned(document))
    notes = ["Intervals of models with latent components are not computed in the page; predict_interval gives them."]
    if sum(len(part.source) for part in program.parts) * sum(len(one.values) for one in latent) > _MOST_NUMBERS:
        notes.append(
            "There are too many positions to carry: predictions are those of the features alone, as for a group that "
            "training did not see."
        )
    else:
        document["latent"] = [_latent(program, c, one) for c, one in enumerate(latent)]
    return PageAverage(document=document, notes=tuple(notes))


def _latent(program: Program, number: int, one: LatentColumn) -> dict[str, Any]:
    effects = [_effects(part, number, len(one.values)) for part in program.parts]
    return {"column": one.column, "slope": one.slope, "values": list(one.values), "effects": effects}


def _effects(part: Part, number: int, n_positions: int) -> list[list[float]]:
    """A component over its positions in each model; averaged where the page has one model for all of them."""
    latent = part.source.latent
    assert latent is not None
    each = np.zeros((len(part.source), n_positions))
    for m in range(len(each)):
        effect = latent.effect(m, number)
        if effect is not None:
            each[m] = effect.mean
    if len(part) != len(each):  # a linear mean: one model whose coefficients are the averages
        each = part.source.probabilities[None, :] @ each
    return [_rounded(row) for row in each.tolist()]


def _thinned(document: dict[str, Any]) -> tuple[str, ...]:
    """Round what intervals are computed from, and leave out the least probable models if there is too much of it."""
    left_out = 0.0
    for part in document["parts"]:
        part["uncertainty"], kept = _heaviest(part["uncertainty"], _MOST_NUMBERS // len(document["parts"]))
        left_out = max(left_out, 1.0 - kept)
        for model in part["uncertainty"]:
            model["mean"], model["factor"] = _rounded(model["mean"]), [_rounded(row) for row in model["factor"]]
    if left_out == 0.0:
        return ()
    words = f"Intervals in the page leave out the least probable models, {left_out:.2g} of the probability, to keep it "
    return (f"{words}small; predictions do not.",)


def _heaviest(models: list[dict[str, Any]], most: int) -> tuple[list[dict[str, Any]], float]:
    """The most probable models that there is room for, and their share of the probability."""
    order = sorted(range(len(models)), key=lambda m: -float(models[m]["probability"]))
    sizes = np.cumsum([sum(map(len, models[m]["factor"])) for m in order])
    n_kept = max(int((sizes <= most).sum()), 1)
    kept = [models[m] for m in order[:n_kept] if models[m]["probability"] > 0.0]
    share = float(sum(model["probability"] for model in kept))
    if n_kept == len(models):
        return kept, 1.0
    return [{**model, "probability": model["probability"] / share} for model in kept], share


def _rounded(values: list[float]) -> list[float]:
    return [float(f"{value:.{_DIGITS}g}") for value in values]


def input_weights(averages: tuple[ModelAverage, ...]) -> dict[str, float]:
    """How much each coded input has to do with predictions: the probability of the models that use it."""
    from bgnlm.features import inputs_of

    found: dict[str, float] = {}
    for average in averages:
        uses = [inputs_of(feature) for feature in average.features]
        for m, probability in enumerate(average.probabilities.tolist()):
            for name in {name for j in average.members_of(m).tolist() for name in uses[j]}:
                found[name] = found.get(name, 0.0) + probability
    return found
