"""What a search left behind as plain values and arrays, and back, with every size and range checked."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from bgnlm._typing import AnyArray, FloatArray
from bgnlm.errors import ModelFileError
from bgnlm.estimators.columns import demand
from bgnlm.estimators.fitted import FittedSearch
from bgnlm.features import (
    Feature,
    TrainingRange,
    Transform,
    inputs_of,
    parse,
    registered_transforms,
    render,
    transforms_of,
)
from bgnlm.likelihood.families import resolve_family
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

Arrays = Mapping[str, AnyArray]


def search_to_plain(search: FittedSearch) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Everything but arrays, and the arrays by name."""
    found, average, diagnostics = search.posterior.found, search.average, search.diagnostics
    kinds = {"average": average, "median": search.median}
    if search.formulas is not None:
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
    for kind, models in kinds.items():
        arrays |= {f"{kind}.{name}": getattr(models, name) for name in _AVERAGE}
        arrays |= {f"{kind}.{name}": getattr(models, name).astype(np.int64) for name in ("starts", "members")}
        if models.mixture is not None:
            arrays[f"{kind}.mixture_coefficients"] = models.mixture.coefficients
            arrays[f"{kind}.mixture_factors"] = models.mixture.factors
        arrays[f"{kind}.mass"] = np.array(models.mass)
        arrays[f"{kind}.places"] = np.array([place[feature] for feature in models.features], np.int64)
        arrays[f"{kind}.known_as"] = np.array([place[feature] for feature in models.known_as], np.int64)
        arrays[f"{kind}.n_best"] = np.array(models.n_best)
        arrays[f"{kind}.ranges"] = np.array([[r.minimum, r.maximum, r.median] for r in models.ranges]).reshape(-1, 3)
    return plain, arrays


def search_from_plain(plain: Any, arrays: Arrays, names: Sequence[str]) -> FittedSearch:
    """Read what `search_to_plain` wrote; DataError for anything that does not fit together."""
    features = _features(plain, names)
    costs = _floats(arrays, "costs", 1, finite=False)
    demand(len(costs) <= len(features), "costs do not fit the features")
    found = _found(features[: len(costs)], costs, arrays)
    posterior = summarize(found)
    has_formulas = f"{_FORMULAS[0]}.places" in arrays
    family = resolve_family(plain["family"], plain["link"])
    formulas = None
    if has_formulas:
        best, median = (_average(family, features, arrays, kind) for kind in _FORMULAS)
        formulas = best, median
    errors = {}
    if "weight_errors" in arrays:  # files of earlier versions do not have them
        errors = {name: _floats(arrays, name, 1, finite=False) for name in ("weight_errors", "weight_shapes")}
        demand(len({len(each) for each in errors.values()}) == 1, "errors of weights that do not fit")
        demand(all(len(each) <= len(posterior) for each in errors.values()), "errors of weights that do not fit")
        demand(bool((errors["weight_errors"] >= 0.0).all()), "errors of weights below 0")
        demand(not np.isnan(errors["weight_shapes"]).any(), "shapes of weights that are no numbers")
    return FittedSearch(
        posterior=posterior,
        diagnostics=_diagnostics(plain, arrays, len(posterior.features)),
        average=_average(family, features, arrays, "average"),
        median=_average(family, features, arrays, "median"),
        n_obs=_number(plain["n_obs"]),
        n_inputs=_count(plain["n_inputs"]),
        likelihood=_text(plain["likelihood"]),
        prior=_text(plain["prior"]),
        data=_text(plain["data"]),
        formulas=formulas,
        **errors,
    )


def _features(plain: Any, names: Sequence[str]) -> tuple[Feature, ...]:
    demand(isinstance(plain["features"], list) and isinstance(plain["functions"], dict), "features must be a list")
    _check_registered(plain["functions"])
    features = tuple(parse(_text(text)) for text in plain["features"])
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
    keys, log_marginal = _array(arrays, "keys", np.uint64, 1), _floats(arrays, "log_marginal", 1)
    starts, members = _rows(arrays, "starts", "members", len(keys), len(features))
    demand(bool((costs >= 0.0).all()), "costs below 0")
    demand(len(log_marginal) == len(keys) and len(keys) > 0, "models do not fit their scores")
    ascending = np.diff(members) > 0
    ascending[starts[1:-1][(starts[1:-1] > 0) & (starts[1:-1] < len(members))] - 1] = True
    demand(ascending.all(), "a model that has a feature twice")
    log_discarded = _array(arrays, "log_discarded", np.float64, 0)
    demand(not np.isnan(log_discarded) and log_discarded < np.inf, "a mass that is no number")
    return FoundModels(features, costs, ModelRows(keys, log_marginal, starts, members), float(log_discarded))


def _average(family: Any, features: tuple[Feature, ...], arrays: Arrays, kind: str) -> ModelAverage:
    places = _array(arrays, f"{kind}.places", np.int64, 1)
    demand(((places >= 0) & (places < len(features))).all(), "a feature that is not there")
    demand(len(np.unique(places)) == len(places), "a feature that comes twice")
    probabilities, mass = _floats(arrays, f"{kind}.probabilities", 1), _floats(arrays, f"{kind}.mass", 0)
    demand(len(probabilities) > 0 and (probabilities >= 0.0).all(), "probabilities below 0")
    demand(abs(probabilities.sum() - 1.0) < 1e-6 and 0.0 <= mass <= 1.0 + 1e-9, "probabilities that are none")
    n_models, n_features = len(probabilities), len(places)
    starts, members = _rows(arrays, f"{kind}.starts", f"{kind}.members", n_models, n_features)
    sizes = np.diff(starts)
    centres, scales = (_floats(arrays, f"{kind}.{name}", 1) for name in ("centres", "scales"))
    coefficients, factors = (_floats(arrays, f"{kind}.{name}", 1) for name in ("coefficients", "factors"))
    dispersions, degrees = (_floats(arrays, f"{kind}.{name}", 1, finite=False) for name in ("dispersions", "degrees"))
    ranges = _floats(arrays, f"{kind}.ranges", 2)
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
        known_as = _array(arrays, f"{kind}.known_as", np.int64, 1)
        n_best = int(_array(arrays, f"{kind}.n_best", np.int64, 0))
    demand(len(known_as) == n_features, "names that do not fit the features")
    demand(((known_as >= 0) & (known_as < len(features))).all(), "a feature that is not there")
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
    if family.name == "gaussian":
        return average
    means, spreads = (_floats(arrays, f"{kind}.mixture_{name}", 1) for name in ("coefficients", "factors"))
    demand(len(means) == len(coefficients) and len(spreads) == len(factors), "a mixture that does not fit the models")
    return replace(average, mixture=replace(average, coefficients=means, factors=spreads))


def _diagnostics(plain: Any, arrays: Arrays, n_features: int) -> Diagnostics:
    lengths, history = _array(arrays, "history_lengths", np.int64, 1), _floats(arrays, "history", 2, finite=False)
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
        each[name] = _floats(arrays, f"diagnostics.{name}", len(shape), finite=False)
        demand(each[name].shape == shape, f"{name} of another size")
    kernels, tally = _kernels(plain["kernels"]), _array(arrays, "diagnostics.tally", np.int64, 2)
    demand(tally.shape == (2, len(kernels)), "tally of another size")
    return Diagnostics(
        history=tuple(tuple(entries[end - n : end]) for end, n in zip(ends, lengths.tolist(), strict=True)),
        endings=tuple(map(_text, endings)),
        tally=tally,
        kernels=kernels,
        n_models=_count(plain["n_models"]),
        n_scored=_count(plain["n_scored"]),
        seconds=_number(plain["seconds"]),
        **each,
    )


def _kernels(names: Any) -> tuple[str, ...]:
    """Check names of kernels, which need not be those of this version."""
    demand(isinstance(names, list), "kernels must be a list")
    kernels = tuple(map(_text, names))
    demand(len(set(kernels)) == len(kernels), "a kernel that comes twice")
    return kernels


def _rows(arrays: Arrays, starts_name: str, members_name: str, n_rows: int, n_columns: int) -> tuple[Any, Any]:
    """Check lists of places: where each begins, and the places one after the other."""
    starts = _array(arrays, starts_name, np.int64, 1)
    members = np.asarray(arrays[members_name])
    demand(members.ndim == 1 and members.dtype.kind in "iu", f"{members_name} are no places")
    members = members.astype(np.int64)
    demand(len(starts) == n_rows + 1 and starts[0] == 0 and starts[-1] == len(members), f"{starts_name} do not fit")
    demand((np.diff(starts) >= 0).all(), f"{starts_name} do not ascend")
    demand(((members >= 0) & (members < n_columns)).all(), f"{members_name} are out of range")
    return starts, members


def _array(arrays: Arrays, name: str, dtype: Any, n_dimensions: int) -> AnyArray:
    demand(name in arrays, f"{name} is missing")
    array = arrays[name]
    demand(array.dtype == dtype and array.ndim == n_dimensions, f"{name} is of another kind")
    return array


def _floats(arrays: Arrays, name: str, n_dimensions: int, *, finite: bool = True) -> FloatArray:
    array = _array(arrays, name, np.float64, n_dimensions)
    demand(not finite or np.isfinite(array).all(), f"{name} has values that are not finite")
    return array


def _text(value: Any) -> str:
    demand(isinstance(value, str), "a text is missing")
    return str(value)


def _number(value: Any) -> float:
    demand(
        isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value), "a number is missing"
    )
    return float(value)


def _count(value: Any) -> int:
    demand(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53, "a count is missing")
    return int(value)
