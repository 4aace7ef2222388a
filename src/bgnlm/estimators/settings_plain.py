"""Settings of an estimator as values that JSON has, and back."""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bgnlm.errors import DataError
from bgnlm.features import Feature, Transform, parse, render
from bgnlm.likelihood.coefficient_priors import CoefficientPrior
from bgnlm.search.config import Limits, MoveProbabilities, ProjectionWeights, SearchConfig
from bgnlm.search.mjmcmc import MjmcmcSettings
from bgnlm.search.prior import ModelPrior

_KINDS = (SearchConfig, Limits, MoveProbabilities, ProjectionWeights, MjmcmcSettings, ModelPrior)
_OBJECTS = {kind.__name__: kind for kind in _KINDS}


def settings_to_plain(settings: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Settings in plain values, and the names of those that have none: functions, generators of random numbers."""
    plain, lost = {}, []
    for name, value in settings.items():
        try:
            plain[name] = _to_plain(value)
        except TypeError:
            lost.append(name)
    return plain, lost


def settings_from_plain(plain: Any, allowed: Iterable[str]) -> dict[str, Any]:
    """Read what `settings_to_plain` wrote."""
    if not isinstance(plain, dict) or not set(plain) <= set(allowed):
        raise DataError("settings must be those of the estimator")
    return {name: _from_plain(value) for name, value in plain.items()}


def _to_plain(value: Any) -> Any:
    match value:
        case None | bool() | str():
            return value
        case int() | float() | np.integer() | np.floating():
            number = value.item() if isinstance(value, np.generic) else value
            if not np.isfinite(number):
                raise TypeError(value)
            return number
        case Transform(name=name):
            return name  # found again by its name
        case CoefficientPrior():
            parameters = {name: number for name, number in value.parameters if number is not None}
            return {"object": "CoefficientPrior", "name": value.name, "information": value.information, **parameters}
        case Path():
            return {"path": str(value)}
        case _ if isinstance(value, Feature):
            return {"feature": render(value)}
        case _ if is_dataclass(value) and type(value).__name__ in _OBJECTS:
            each = {field.name: _to_plain(getattr(value, field.name)) for field in fields(value)}
            return {"object": type(value).__name__, **each}
        case list() | tuple():
            return [_to_plain(item) for item in value]
        case _:
            raise TypeError(value)


def _from_plain(value: Any) -> Any:
    match value:
        case {"object": kind}:
            parameters: Any = {name: _from_plain(item) for name, item in value.items() if name != "object"}
            return CoefficientPrior(**parameters) if kind == "CoefficientPrior" else _OBJECTS[kind](**parameters)
        case {"feature": str(text)} if len(value) == 1:
            return parse(text)
        case {"path": str(text)} if len(value) == 1:
            return Path(text)
        case list():
            return tuple(map(_from_plain, value))
        case dict():
            raise DataError("a setting is of no known kind")
        case _:
            return value
