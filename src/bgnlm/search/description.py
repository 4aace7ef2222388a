"""A search in plain values: what two runs must have in common to be parts of one."""

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict
from hashlib import blake2b
from typing import Any

import numpy as np

from bgnlm.features import Input, Transform, modify, multiply, render
from bgnlm.search.problem import SearchProblem

_PROBES = np.linspace(-3.0, 3.0, 13)


def describe(problem: SearchProblem) -> dict[str, Any]:
    """Return everything that decides what chains find, but for the seed, as values that JSON has.

    Arrays and functions are represented by digests, functions by those of values they take.
    """
    likelihood, prior, config = problem.likelihood, problem.prior, asdict(problem.config)
    del config["max_seconds"]  # decides how far chains get, not what they find
    transforms = problem.transforms
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
        "transforms": {transform.name: _digest_of_function(transform) for transform in transforms},
        "penalty": prior.penalty,
        "complexity": _digest_of_measure(prior.complexity, problem) if callable(prior.complexity) else prior.complexity,
        "keep": [render(feature) for feature in problem.keep],
        **dict(_flat(config)),
    }


def differences(there: dict[str, Any], here: dict[str, Any]) -> Iterator[str]:
    """Say what differs between two descriptions."""
    for name in sorted(there.keys() | here.keys()):
        before: Any = there.get(name)
        now: Any = here.get(name)
        if before == now:
            continue
        if name in ("y", "X", "sample_weight", "offset"):
            yield f"{name} has other values"
        elif name == "transforms" and list(before) == list(now):
            changed = [transform for transform in now if before[transform] != now[transform]]
            yield f"transforms {', '.join(changed)} are other functions"
        else:
            shown = [list(value) if name == "transforms" else value for value in (before, now)]
            yield f"{name} was {shown[0]!r} and is {shown[1]!r}"


def _digest(values: Any) -> str:
    array = np.ascontiguousarray(values)
    return blake2b(repr(array.shape).encode() + array.tobytes(), digest_size=16).hexdigest()


def _digest_of_function(transform: Transform) -> str:
    with np.errstate(all="ignore"):
        arguments = () if transform.quantile is None else (0.5,)
        return _digest(np.asarray(transform.function(_PROBES.copy(), *arguments), dtype=np.float64))


def _digest_of_measure(measure: Callable[..., Any], problem: SearchProblem) -> str:
    """Digest of what a measure of complexity says of the inputs, their products and transforms."""
    inputs = [Input(name) for name in problem.names]
    features = [*inputs, *(multiply(inputs[0], other) for other in inputs)]
    features += [modify(transform, inputs[0]) for transform in problem.transforms if transform.quantile is None]
    values = [float(measure(feature)) for feature in features]
    return _digest(np.array([value if math.isfinite(value) else -1.0 for value in values]))


def _flat(settings: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield prefix + name, list(value) if isinstance(value, tuple) else value
