"""Discoveries as bytes: a line of JSON, and arrays as they are in memory (little-endian)."""

import json
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from bgnlm._typing import AnyArray
from bgnlm.features import Feature
from bgnlm.search.classes import ClassChanges
from bgnlm.search.gmjmcmc import Discovery
from bgnlm.search.visited import ModelRows


def encode(found: Discovery, render: Callable[[Feature], str]) -> bytes:
    """Write a discovery."""
    values = {
        "random_state": found.random_state,
        "features": [render(feature) for feature in found.features],
        "representatives": [render(feature) for feature in found.changes.representatives],
        "n_scored": found.n_scored,
    }
    arrays = {
        "keys": found.models.keys,
        "log_marginal": found.models.log_marginal,
        "starts": found.models.starts,
        "members": found.models.members,
        "classes": found.classes,
        "tally": found.tally,
        "model": found.model,
        "numbers": found.changes.numbers,
        "fingerprints": found.changes.fingerprints,
        "costs": found.changes.costs,
        "scalars": np.array([found.log_discarded, found.best_log_joint, found.seconds]),
    }
    return pack(values, arrays)


def decode(data: bytes, parse: Callable[[str], Feature]) -> Discovery:
    """Read a discovery."""
    values, arrays = unpack(data)
    log_discarded, best_log_joint, seconds = arrays["scalars"].tolist()
    return Discovery(
        models=ModelRows(arrays["keys"], arrays["log_marginal"], arrays["starts"], arrays["members"]),
        classes=arrays["classes"],
        log_discarded=log_discarded,
        best_log_joint=best_log_joint,
        n_scored=values["n_scored"],
        tally=arrays["tally"],
        seconds=seconds,
        random_state=values["random_state"],
        features=tuple(map(parse, values["features"])),
        model=arrays["model"],
        changes=ClassChanges(
            arrays["numbers"],
            tuple(map(parse, values["representatives"])),
            arrays["fingerprints"],
            arrays["costs"],
        ),
    )


def pack(values: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> bytes:
    """Put plain values and arrays into one piece."""
    little = {name: _little_endian(array) for name, array in arrays.items()}
    layout = {name: (array.dtype.str, array.shape) for name, array in little.items()}
    head = json.dumps({"values": values, "arrays": layout}).encode()
    return b"\n".join([head, b"".join(array.tobytes() for array in little.values())])


def unpack(data: bytes) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """Take apart what `pack` put together."""
    head, body = data.split(b"\n", 1)
    content = json.loads(head)
    arrays, place = {}, 0
    for name, (dtype, shape) in content["arrays"].items():
        size = int(np.prod(shape)) * np.dtype(dtype).itemsize
        values = np.frombuffer(body[place : place + size], dtype=dtype).reshape(shape)
        arrays[name] = values.astype(values.dtype.newbyteorder("="))
        place += size
    return content["values"], arrays


def _little_endian(array: AnyArray) -> AnyArray:
    return np.ascontiguousarray(array.astype(array.dtype.newbyteorder("<"), copy=False))
