"""A search in plain values: what two runs must have in common to be parts of one."""

from collections.abc import Iterator
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import numpy as np

from bgnlm._typing import AnyArray, FloatArray
from bgnlm.features import Feature, Input, Transform, modify, multiply, project, render
from bgnlm.latent.models import OFFSET
from bgnlm.latent.place import describe as in_words
from bgnlm.search.problem import SearchProblem

PROBES = np.linspace(-3.0, 3.0, 13)


def describe(problem: SearchProblem) -> dict[str, Any]:
    """Return everything that decides what chains find, but for the seed, as values that JSON has.

    Arrays are represented by digests, functions by those of values they take.
    """
    likelihood, prior, config = problem.likelihood, problem.prior, asdict(problem.config)
    for name in ("max_seconds", "n_averaged", "n_pool_draws", "pool_size"):
        del config[name]  # these decide how far chains get and what becomes of it
    return {
        "y": _digest(likelihood.y),
        "X": _digest(problem.X),
        "columns": list(problem.names),
        "sample_weight": _digest(likelihood.weights),
        "offset": _digest(likelihood.offset),
        "family": likelihood.family.name,
        "link": likelihood.family.link,
        "coefficient_prior": repr(likelihood.prior),
        "noise_floor": likelihood.noise_floor,
        "transforms": [transform.name for transform in problem.transforms],
        "functions": {transform.name: _digest_of_function(transform, problem) for transform in problem.all_transforms},
        "penalty": _plain(prior.penalty),
        "complexity": _digest_of_measure(problem) if callable(prior.complexity) else prior.complexity,
        "sizes": "Beta(1, 2)" if likelihood.n_slots else None,  # scores that are stored have them
        "weight_cost": prior.weight_cost,
        "latent_penalty": _plain(prior.latent_penalty),
        "latent_complexity": prior.latent_complexity,
        "latent": _latent(problem),
        "keep": [render(feature) for feature in problem.keep],
        **dict(_flat(config)),
    }


def digest_of_data(problem: SearchProblem) -> str:
    """Digest of response, inputs, weights and offset together."""
    likelihood = problem.likelihood
    parts = (likelihood.y, problem.X, likelihood.weights, likelihood.offset)
    return blake2b("".join(map(_digest, parts)).encode(), digest_size=16).hexdigest()


def values_of(transform: Transform, arguments: FloatArray) -> AnyArray:
    """What a function makes of numbers, with one half as cut point if it takes one; a user's may raise anything."""
    cut_point = () if transform.quantile is None else (0.5,)
    with np.errstate(all="ignore"):
        return np.asarray(transform.function(arguments.copy(), *cut_point))


def differences(there: dict[str, Any], here: dict[str, Any]) -> Iterator[str]:
    """Say what differs between two descriptions."""
    changed = sorted(name for name in there.keys() | here.keys() if there.get(name) != here.get(name))
    if "X" in changed or "transforms" in changed:  # other functions, or other values of theirs, follow from that
        changed = [name for name in changed if name != "functions"]
    for name in changed:
        before: Any = there.get(name)
        now: Any = here.get(name)
        if name in ("y", "X", "sample_weight", "offset"):
            yield f"{name} has other values"
        elif name == "functions" and isinstance(before, dict) and isinstance(now, dict):
            others = sorted(text for text in before.keys() | now.keys() if before.get(text) != now.get(text))
            yield f"transforms {', '.join(others)} are other functions"
        else:
            yield f"{name} was {before!r} and is {now!r}"


def _latent(problem: SearchProblem) -> list[str]:
    """Components by name, and digests of their positions and of what their distributions are like."""
    if problem.latent is None:
        return []
    found = [] if not problem.latent.selects_offset else [OFFSET]
    for component in problem.latent.placed:
        field = component.field
        values = [_digest(part) for part in (component.positions, component.place, component.loading)]
        for start in map(np.array, field.starts):
            values.append(_digest(field.precision(start, component.positions)))
            values += [_digest(field.log_prior(start + step)) for step in (0.0, 0.5, -1.0)]
        found.append(f"{in_words(field)} {blake2b(''.join(values).encode(), digest_size=8).hexdigest()}")
    return found


def _digest(values: Any) -> str:
    array = np.ascontiguousarray(values)
    return blake2b(repr(array.shape).encode() + array.tobytes(), digest_size=16).hexdigest()


def _digest_of_function(transform: Transform, problem: SearchProblem) -> str:
    """Digest of what a function makes of the columns, and of a few numbers; it may fail at some, as in the search."""
    state = blake2b(repr(transform.quantile).encode(), digest_size=16)
    for column in (PROBES, *problem.X.T):
        try:
            values = values_of(transform, column)
            state.update(_digest(values.astype(np.float64) if values.dtype.kind in "biuf" else 0.0).encode())
        except Exception as error:  # whatever a user's function raises
            state.update(type(error).__name__.encode())
    return state.hexdigest()


def _digest_of_measure(problem: SearchProblem) -> str:
    """Digest of what features of many kinds cost; costs of features that were met are compared one by one, too."""
    inputs: list[Feature] = [Input(name) for name in problem.names]
    features = [*inputs, *(multiply(inputs[0], other) for other in inputs)]
    features += [multiply(*inputs[:1] * k) for k in range(3, 9)]
    features += [multiply(*inputs[:k]) for k in range(3, min(len(inputs), 8) + 1)]
    for transform in problem.transforms:
        if transform.quantile is None:
            once = modify(transform, inputs[0])
            features += [once, modify(transform, once), modify(transform, features[len(inputs)])]
            features += [project(transform, inputs[:k], [1.0] * k) for k in (2, 3) if k <= len(inputs)]
    return _digest(np.array([problem.cost(feature) for feature in features]))


def _flat(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, _plain(value)


def _plain(value: Any) -> Any:
    """Return the value that JSON has for a number, a text, or a sequence of numbers."""
    if isinstance(value, tuple | list | np.ndarray):
        return [_plain(item) for item in value]
    return value if value is None or isinstance(value, str | bool | int | float) else float(value)
