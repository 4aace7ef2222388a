"""A page of text about a fit: what a statistician expects to see first."""

import math
from collections.abc import Sequence

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.features import Component, Feature, operation_count, render
from bgnlm.posterior.average import ModelAverage
from bgnlm.posterior.diagnostics import Diagnostics
from bgnlm.posterior.summarize import Posterior
from bgnlm.report.tables import NO_ERRORS, hyperparameters

_WORTH_SHOWING = 0.05
_MOST_FEATURES = 15
_MOST_MODELS = 5
_ALONE = 0.95  # of the mass that all chains found, in one of them
_DISAGREEMENT = 0.1
_UNCOVERED = 0.05
_UNSURE = 0.2  # nats of Monte Carlo error
_HEAVY_TAIL = 0.7  # Pareto shape


def summarize_fit(
    posterior: Posterior,
    diagnostics: Diagnostics,
    average: ModelAverage,
    weight_errors: FloatArray = NO_ERRORS,
    weight_shapes: FloatArray = NO_ERRORS,
) -> str:
    """Features and models with their probabilities, what predictions rest on, and advice."""
    lines = [
        *_features(posterior, average),
        "",
        *_components(posterior, average),
        *_models(posterior),
        "",
        *_predictions(posterior, average, n_models_averaged(average, weight_errors)),
    ]
    if weight_errors.any():
        lines.append(
            f"weights of projections are averaged over: Monte Carlo errors of the log posterior are at most "
            f"{weight_errors.max():.2g}, Pareto k is at most {weight_shapes.max():.2g}"
        )
    advice = advice_on(posterior, diagnostics, average, weight_errors, weight_shapes)
    note = ["", "to note", *(f"  {line}" for line in advice)] if advice else []
    return "\n".join([*lines, *_search(diagnostics), *note])


def _components(posterior: Posterior, average: ModelAverage) -> list[str]:
    """Latent components with their probabilities and hyperparameters."""
    if average.latent is None:
        return []
    values = hyperparameters(average)
    lines = ["probability  latent component"]
    for feature, probability in zip(posterior.features, posterior.inclusion_probabilities, strict=True):
        if isinstance(feature, Component):
            found = values.get(feature.name, {}).items()
            words = ", ".join(f"{name} {here.mean:.4g} ({here.lower:.3g} to {here.upper:.3g})" for name, here in found)
            lines.append(f"{probability:11.4f}  {feature.name}{': ' if words else ''}{words}")
    return [*lines, ""]


def _features(posterior: Posterior, average: ModelAverage) -> list[str]:
    effects = average.effects()
    shown = [
        (feature, probability)
        for feature, probability in zip(posterior.features, posterior.inclusion_probabilities, strict=True)
        if probability >= _WORTH_SHOWING and feature in effects
    ][:_MOST_FEATURES]
    lines = ["probability  coefficient          sd  operations  feature"]
    for feature, probability in shown:
        mean, deviation = effects[feature]
        lines.append(
            f"{probability:11.4f}  {mean:11.5g}  {deviation:10.4g}  {operation_count(feature):10d}"
            f"  {render(feature, 6)}"
        )
    n_others = sum(not isinstance(feature, Component) for feature in posterior.features) - len(shown)
    if not shown:
        lines.append(f"  none is more probable than {_WORTH_SHOWING:g}")
    if n_others:
        lines.append(f"  and {n_others:,} features of probability below {_least(posterior, shown):.2g}")
    return lines


def _least(posterior: Posterior, shown: Sequence[tuple[Feature, float]]) -> float:
    here = {feature for feature, _ in shown}
    both = zip(posterior.features, posterior.inclusion_probabilities.tolist(), strict=True)
    rest = [probability for feature, probability in both if feature not in here and not isinstance(feature, Component)]
    return math.ceil(max(rest, default=0.0) * 1000 + 1e-9) / 1000


def _models(posterior: Posterior) -> list[str]:
    lines = ["probability  log posterior  model"]
    log_joint = posterior.found.log_joint
    for model in range(min(_MOST_MODELS, len(posterior))):
        text = " + ".join(render(feature, 6) for feature in posterior.features_of(model)) or "(intercept only)"
        lines.append(f"{posterior.model_probabilities[model]:11.4f}  {log_joint[model]:13.3f}  {text}")
    if len(posterior.counts):
        lines.append(f"probabilities of models and features are shares of {posterior.counts.sum():,} draws")
    return lines


def n_models_averaged(average: ModelAverage, weight_errors: FloatArray = NO_ERRORS) -> int:
    """Count models, each once: an average has one entry for every draw of weights and choice of hyperparameters."""
    if len(weight_errors):
        return len(weight_errors)
    return len(average) if average.latent is None else average.latent.n_models


def _predictions(posterior: Posterior, average: ModelAverage, n_models: int) -> list[str]:
    share = f"{n_models:,} of {len(posterior):,} models, which hold {average.mass:.4f} of their probability"
    lines = [f"predictions average over {share}"]
    if average.family.name == "gaussian":
        noise = float(np.sqrt(average.probabilities @ average.dispersions))
        lines.append(f"noise standard deviation: {noise:.4g}")
    elif average.family.has_dispersion:
        word = "shape" if average.family.name == "gamma" else "size"
        lines.append(f"{word}: {float(average.probabilities @ average.dispersions):.4g}")
    return lines


def _search(diagnostics: Diagnostics) -> list[str]:
    populations = sum(len(history) for history in diagnostics.history)
    n_chains, seconds = len(diagnostics.history), f"{diagnostics.seconds:.1f} s of work"
    chains = f"{n_chains} {'chain' if n_chains == 1 else 'chains'} explored {populations:,} populations in {seconds}"
    return [f"{chains}: {diagnostics.n_scored:,} models scored, {diagnostics.n_models:,} kept"]


def advice_on(
    posterior: Posterior,
    diagnostics: Diagnostics,
    average: ModelAverage,
    weight_errors: FloatArray = NO_ERRORS,
    weight_shapes: FloatArray = NO_ERRORS,
) -> list[str]:
    """What stands against trusting a fit, and what to do about it; nothing if all is well."""
    lines = []
    unfinished = [ending for ending in diagnostics.endings if ending not in ("complete", "nothing more found")]
    if unfinished:
        lines.append(f"{len(unfinished)} chains did not come to their end ({', '.join(sorted(set(unfinished)))})")
    worst = int(np.argmax(diagnostics.disagreement)) if len(diagnostics.disagreement) else 0
    renormalises = not len(posterior.counts)  # probabilities of models drawn are not those of the chains
    if renormalises and len(diagnostics.history) > 1 and diagnostics.disagreement.max(initial=0.0) > _DISAGREEMENT:
        lines.append(
            f"chains disagree about {render(posterior.features[worst], 6)} (standard deviation of its probability "
            f"{diagnostics.disagreement[worst]:.2f}): use more chains (n_chains) or populations (n_populations)"
        )
    is_compared = not np.isnan(diagnostics.disagreement).any()  # under another prior chains are not
    if (
        renormalises
        and len(diagnostics.history) > 1
        and is_compared
        and diagnostics.chain_weights.max(initial=0.0) > _ALONE
    ):
        lines.append(
            "one chain alone found nearly all of the probability, the others ended in worse places: use more chains "
            "(n_chains) or populations (n_populations), until several find the same"
        )
    if average.mass < 1.0 - _UNCOVERED:
        lines.append("the posterior is flat: SearchConfig(n_averaged=...) averages predictions over more models")
    if len(weight_errors) and (weight_errors.max() > _UNSURE or weight_shapes.max() > _HEAVY_TAIL):
        lines.append(
            "some averages over weights are not precise: ProjectionWeights(n_weight_draws=...) allows more draws, "
            "Limits(max_depth=..., max_width=...) fewer weights"
        )
    return lines


def joined(summaries: Sequence[str], classes: Sequence[object]) -> str:
    """Put the summaries of several classes below each other."""
    return "\n\n".join(f"class {one}, against the rest\n\n{text}" for one, text in zip(classes, summaries, strict=True))
