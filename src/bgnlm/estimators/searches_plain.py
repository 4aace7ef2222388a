"""What a search left behind as plain values and arrays, and back, with every size and range checked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bgnlm._typing import AnyArray, FloatArray, IntArray
from bgnlm.errors import ModelFileError
from bgnlm.estimators.checked import Arrays, array, ascends_in_lists, count, floats, lists, number, text
from bgnlm.estimators.columns import demand
from bgnlm.estimators.fitted import FittedSearch
from bgnlm.estimators.latent_plain import models_from_plain, models_to_plain, posterior_from_plain, posterior_to_plain
from bgnlm.features import (
    Component,
    Feature,
    TrainingRange,
    Transform,
    inputs_of,
    parse,
    registered_transforms,
    render,
    transforms_of,
)
from bgnlm.latent.layout import Placed
from bgnlm.latent.models import LatentModels
from bgnlm.likelihood.families import Family, resolve_family
from bgnlm.posterior.average import ModelAverage
from bgnlm.posterior.diagnostics import Diagnostics
from bgnlm.posterior.summarize import summarize
from bgnlm.search.chains import Progress
from bgnlm.search.description import PROBES, values_of
from bgnlm.search.union import FoundModels
from bgnlm.search.visited import ModelRows

_FORMULAS = ("best_formula", "median_formula")
_SMALLEST = np.finfo(np.float64).tiny  # below it a number may have no finite reciprocal
_AVERAGE = ("centres", "scales", "probabilities", "coefficients", "factors", "dispersions", "degrees")
_DIAGNOSTICS = ("chain_weights", "chain_probabilities", "weighted_probabilities", "disagreement", "tally")
_PROGRESS = (
    "chain",
    "n_explored",
    "n_populations",
    "best_log_joint",
    "log_mass",
    "n_models",
    "n_scored",
    "n_features",
    "seconds",
)
_WHOLE = ("chain", "n_explored", "n_populations", "n_models", "n_scored", "n_features")


def search_to_plain(search: FittedSearch) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Everything but arrays, and the arrays by name."""
    found, average, diagnostics = search.posterior.found, search.average, search.diagnostics
    kinds = {"average": average, "median": search.median}
    if search.formulas is not None and average.latent is None:  # those with latent components are parts of these
        kinds |= dict(zip(_FORMULAS, search.formulas, strict=True))
    # After those that were found, these with other weights.
    others = (feature for models in kinds.values() for feature in (*models.features, *models.known_as))
    features = list(dict.fromkeys((*found.features, *others)))
    place = {feature: j for j, feature in enumerate(features)}
    plain = {
        "family": average.family.name,
        "link": average.family.link,
        "n_obs": search.n_obs,
        "n_inputs": search.n_inputs,
        "likelihood": search.likelihood,
        "prior": search.prior,
        "data": search.data,
        "features": [render(feature) for feature in features],
        "functions": {transform.name: _probed(transform) for f in found.features for transform in transforms_of(f)},
        "endings": list(diagnostics.endings),
        "kernels": list(diagnostics.kernels),
        "n_models": diagnostics.n_models,
        "n_scored": diagnostics.n_scored,
        "seconds": diagnostics.seconds,
    }
    arrays = {
        "costs": found.costs,
        "keys": found.rows.keys,
        "log_marginal": found.rows.log_marginal,
        "starts": np.asarray(found.rows.starts, np.int64),
        "members": np.asarray(found.rows.members, np.int32),
        "log_discarded": np.array(found.log_discarded),
        "counts": search.posterior.counts.astype(np.int64),
        "history_lengths": np.array([len(history) for history in diagnostics.history], np.int64),
        "history": np.array(
            [
                [float(getattr(entry, name)) for name in _PROGRESS]
                for history in diagnostics.history
                for entry in history
            ]
        ).reshape(-1, len(_PROGRESS)),
        "weight_errors": search.weight_errors,
        "weight_shapes": search.weight_shapes,
        **{f"diagnostics.{name}": getattr(diagnostics, name) for name in _DIAGNOSTICS},
    }
    if average.latent is not None:
        plain["latent"], parts = models_to_plain(average.latent.models)
        arrays |= parts
    for kind, models in kinds.items():
        arrays |= {f"{kind}.{name}": getattr(models, name) for name in _AVERAGE}
        arrays |= {f"{kind}.{name}": getattr(models, name).astype(np.int64) for name in ("starts", "members")}
        if models.mixture is not None:
            arrays[f"{kind}.mixture_coefficients"] = models.mixture.coefficients
            arrays[f"{kind}.mixture_factors"] = models.mixture.factors
        if models.latent is not None:
            arrays |= posterior_to_plain(models.latent, kind)
        arrays[f"{kind}.mass"] = np.array(models.mass)
        arrays[f"{kind}.places"] = np.array([place[feature] for feature in models.features], np.int64)
        arrays[f"{kind}.known_as"] = np.array([place[feature] for feature in models.known_as], np.int64)
        arrays[f"{kind}.n_best"] = np.array(models.n_best)
        arrays[f"{kind}.ranges"] = np.array([[r.minimum, r.maximum, r.median] for r in models.ranges]).reshape(-1, 3)
    return plain, arrays


def search_from_plain(
    plain: Any, arrays: Arrays, names: Sequence[str], placed: tuple[Placed, ...] = ()
) -> FittedSearch:
    """Read what `search_to_plain` wrote; DataError for anything that does not fit together.

    `placed` are the latent components over the positions of the training data.
    """
    family = resolve_family(plain["family"], plain["link"])
    latent = models_from_plain(plain["latent"], arrays, family, placed) if "latent" in plain else None
    demand(latent is not None or not placed, "latent components without models")
    features = _features(plain, names, () if latent is None else latent.names)
    costs = floats(arrays, "costs", 1, finite=False)
    demand(len(costs) <= len(features), "costs do not fit the features")
    found = _found(features[: len(costs)], costs, arrays)
    counts = _counts(arrays, len(found.rows))
    posterior = summarize(found, counts if len(counts) else None)
    average, median = (_average(family, features, arrays, kind, latent) for kind in ("average", "median"))
    errors = {}
    if "weight_errors" in arrays:  # files of earlier versions do not have them
        errors = {name: floats(arrays, name, 1, finite=False) for name in ("weight_errors", "weight_shapes")}
        demand(len({len(each) for each in errors.values()}) == 1, "errors of weights that do not fit")
        demand(all(len(each) <= len(posterior) for each in errors.values()), "errors of weights that do not fit")
        demand(bool((errors["weight_errors"] >= 0.0).all()), "errors of weights below 0")
        demand(not np.isnan(errors["weight_shapes"]).any(), "shapes of weights that are no numbers")
    return FittedSearch(
        posterior=posterior,
        diagnostics=_diagnostics(plain, arrays, len(posterior.features)),
        average=average,
        median=median,
        n_obs=number(plain["n_obs"]),
        n_inputs=count(plain["n_inputs"]),
        likelihood=text(plain["likelihood"]),
        prior=text(plain["prior"]),
        data=text(plain["data"]),
        formulas=_formulas(average, median, features, arrays),
        **errors,
    )


def _counts(arrays: Arrays, n_models: int) -> IntArray:
    """How often models were drawn; files of earlier versions do not say, since models were not drawn."""
    counts = array(arrays, "counts", np.int64, 1) if "counts" in arrays else np.empty(0, np.int64)
    demand(len(counts) in (0, n_models), "counts of models that do not fit")
    demand(bool(((counts >= 0) & (counts < 2**31)).all()), "counts of models out of range")
    demand(len(counts) == 0 or bool(counts.any()), "no model was drawn")
    return counts


def _formulas(
    average: ModelAverage, median: ModelAverage, features: tuple[Feature, ...], arrays: Arrays
) -> tuple[ModelAverage, ModelAverage] | None:
    if average.latent is not None:
        return average.only(0), median.only(0)
    if f"{_FORMULAS[0]}.places" not in arrays:
        return None
    best, most_probable = (_average(average.family, features, arrays, kind) for kind in _FORMULAS)
    return best, most_probable


def _features(plain: Any, names: Sequence[str], components: Sequence[str]) -> tuple[Feature, ...]:
    demand(isinstance(plain["features"], list) and isinstance(plain["functions"], dict), "features must be a list")
    _check_registered(plain["functions"])
    features = tuple(parse(text(written), components=components) for written in plain["features"])
    known = set(names)
    demand(all(inputs_of(feature) <= known for feature in features), "a feature of unknown inputs")
    demand(len(set(features)) == len(features), "a feature that comes twice")
    for transform in dict.fromkeys(transform for feature in features for transform in transforms_of(feature)):
        _check_function(transform, plain["functions"].get(transform.name))
    return features


def _check_registered(functions: Mapping[str, Any]) -> None:
    known = {transform.name for transform in registered_transforms()}
    missing = [repr(name)[:60] for name in functions if name not in known]
    if missing:
        raise ModelFileError(
            f"The model has transforms that are not registered here: {', '.join(missing[:10])}. Register them before "
            "loading: bgnlm.features.register(bgnlm.Transform(name, function))."
        )


def _probed(transform: Transform) -> list[float | None]:
    """Values of a function at a few places; None where there is none, as it may be for other places only."""
    try:
        values = values_of(transform, PROBES).astype(np.float64)
    except Exception:  # whatever a user's function raises
        return [None] * len(PROBES)
    return [float(value) if np.isfinite(value) else None for value in values.ravel()]


def _check_function(transform: Transform, there: Any) -> None:
    here = _probed(transform)
    same = isinstance(there, list) and len(there) == len(here) and all(map(_is_close, there, here))
    if not same:
        raise ModelFileError(
            f"The transform {transform.name!r} is another function here than when the model was saved. "
            "Register the one of that time under this name before loading."
        )


def _is_close(a: Any, b: float | None) -> bool:
    if a is None or b is None or not isinstance(a, int | float):
        return a is b
    return math.isclose(a, b, rel_tol=1e-9, abs_tol=1e-12)


def _found(features: tuple[Feature, ...], costs: FloatArray, arrays: Arrays) -> FoundModels:
    keys, log_marginal = array(arrays, "keys", np.uint64, 1), floats(arrays, "log_marginal", 1)
    starts, members = lists(arrays, "starts", "members", len(keys), len(features))
    demand(bool((costs >= 0.0).all()), "costs below 0")
    demand(len(log_marginal) == len(keys) and len(keys) > 0, "models do not fit their scores")
    demand(ascends_in_lists(starts, members), "a model that has a feature twice")
    log_discarded = array(arrays, "log_discarded", np.float64, 0)
    demand(not np.isnan(log_discarded) and log_discarded < np.inf, "a mass that is no number")
    return FoundModels(features, costs, ModelRows(keys, log_marginal, starts, members), float(log_discarded))


def _average(
    family: Family, features: tuple[Feature, ...], arrays: Arrays, kind: str, latent: LatentModels | None = None
) -> ModelAverage:
    places = array(arrays, f"{kind}.places", np.int64, 1)
    demand(((places >= 0) & (places < len(features))).all(), "a feature that is not there")
    demand(len(np.unique(places)) == len(places), "a feature that comes twice")
    probabilities, mass = floats(arrays, f"{kind}.probabilities", 1), floats(arrays, f"{kind}.mass", 0)
    demand(len(probabilities) > 0 and (probabilities >= 0.0).all(), "probabilities below 0")
    demand(abs(probabilities.sum() - 1.0) < 1e-6 and 0.0 <= mass <= 1.0 + 1e-9, "probabilities that are none")
    n_models, n_features = len(probabilities), len(places)
    starts, members = lists(arrays, f"{kind}.starts", f"{kind}.members", n_models, n_features)
    sizes = np.diff(starts)
    centres, scales = (floats(arrays, f"{kind}.{name}", 1) for name in ("centres", "scales"))
    coefficients, factors = (floats(arrays, f"{kind}.{name}", 1) for name in ("coefficients", "factors"))
    dispersions, degrees = (floats(arrays, f"{kind}.{name}", 1, finite=False) for name in ("dispersions", "degrees"))
    ranges = floats(arrays, f"{kind}.ranges", 2)
    demand(ranges.shape == (n_features, 3), "ranges that do not fit the features")
    demand(len(centres) == n_features == len(scales) and (scales > 0.0).all(), "scales that do not fit the features")
    demand(len(coefficients) == (sizes + 1).sum(), "coefficients that do not fit the models")
    demand(len(factors) == np.square(sizes + 1).sum(), "covariances that do not fit the models")
    demand(len(dispersions) == n_models == len(degrees), "dispersions that do not fit the models")
    demand(np.isfinite(dispersions).all() and (dispersions >= 0.0).all(), "a dispersion below 0")
    demand(family.name == "gaussian" or (dispersions >= _SMALLEST).all(), "a dispersion of 0")
    demand((degrees >= 0.0).all(), "degrees of freedom below 0")
    known_as, n_best = places, 1
    if f"{kind}.known_as" in arrays:  # files of earlier versions do not have it
        known_as = array(arrays, f"{kind}.known_as", np.int64, 1)
        n_best = int(array(arrays, f"{kind}.n_best", np.int64, 0))
    demand(len(known_as) == n_features, "names that do not fit the features")
    demand(((known_as >= 0) & (known_as < len(features))).all(), "a feature that is not there")
    demand(not any(isinstance(features[j], Component) for j in (*places, *known_as)), "a component that has a column")
    demand(0 < n_best <= n_models, "more models than there are")
    average = ModelAverage(
        family=family,
        features=tuple(features[j] for j in places),
        ranges=tuple(TrainingRange(*row) for row in ranges.tolist()),
        centres=centres,
        scales=scales,
        probabilities=probabilities,
        mass=float(mass),
        starts=starts,
        members=members,
        coefficients=coefficients,
        factors=factors,
        dispersions=dispersions,
        degrees=degrees,
        known_as=tuple(features[j] for j in known_as),
        n_best=n_best,
    )
    if latent is not None:
        posterior = posterior_from_plain(latent, arrays, kind, starts, members, n_features)
        return replace(average, latent=posterior)
    if family.name == "gaussian":
        return average
    means, spreads = (floats(arrays, f"{kind}.mixture_{name}", 1) for name in ("coefficients", "factors"))
    demand(len(means) == len(coefficients) and len(spreads) == len(factors), "a mixture that does not fit the models")
    return replace(average, mixture=replace(average, coefficients=means, factors=spreads))


def _diagnostics(plain: Any, arrays: Arrays, n_features: int) -> Diagnostics:
    lengths, history = array(arrays, "history_lengths", np.int64, 1), floats(arrays, "history", 2, finite=False)
    demand(len(lengths) > 0 and (lengths > 0).all() and lengths.sum() == len(history), "a history that does not fit")
    demand(history.shape[1] == len(_PROGRESS) and not np.isnan(history).any(), "a history that does not fit")
    whole = history[:, [_PROGRESS.index(name) for name in _WHOLE]]
    demand(((whole >= 0) & (whole < 2.0**53)).all(), "a history of no counts")
    endings = plain["endings"]
    demand(isinstance(endings, list) and len(endings) == len(lengths), "endings that do not fit")
    entries = [
        Progress(**{name: int(value) if name in _WHOLE else value for name, value in zip(_PROGRESS, row, strict=True)})
        for row in history.tolist()
    ]
    ends = np.cumsum(lengths).tolist()
    shapes = {"chain_weights": (len(lengths),), "chain_probabilities": (len(lengths), n_features)}
    each = {}
    for name in ("chain_weights", "chain_probabilities", "weighted_probabilities", "disagreement"):
        shape = shapes.get(name, (n_features,))
        each[name] = floats(arrays, f"diagnostics.{name}", len(shape), finite=False)
        demand(each[name].shape == shape, f"{name} of another size")
    kernels, tally = _kernels(plain["kernels"]), array(arrays, "diagnostics.tally", np.int64, 2)
    demand(tally.shape == (2, len(kernels)), "tally of another size")
    return Diagnostics(
        history=tuple(tuple(entries[end - n : end]) for end, n in zip(ends, lengths.tolist(), strict=True)),
        endings=tuple(map(text, endings)),
        tally=tally,
        kernels=kernels,
        n_models=count(plain["n_models"]),
        n_scored=count(plain["n_scored"]),
        seconds=number(plain["seconds"]),
        **each,
    )


def _kernels(names: Any) -> tuple[str, ...]:
    """Check names of kernels, which need not be those of this version."""
    demand(isinstance(names, list), "kernels must be a list")
    kernels = tuple(map(text, names))
    demand(len(set(kernels)) == len(kernels), "a kernel that comes twice")
    return kernels
