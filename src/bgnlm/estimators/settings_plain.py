"""Settings of an estimator as values that JSON has, and back."""

from collections.abc import Iterable
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bgnlm.errors import DataError
from bgnlm.features import Feature, Transform, parse, render
from bgnlm.latent import AR1, IID, OU, RW1, Gamma, Grouped, Normal
from bgnlm.likelihood.coefficient_priors import CoefficientPrior
from bgnlm.search.config import Limits, MoveProbabilities, ProjectionWeights, SearchConfig
from bgnlm.search.mjmcmc import MjmcmcSettings
from bgnlm.search.prior import ModelPrior

COMPONENTS = (IID, AR1, RW1, OU, Grouped)
_SEARCH = (SearchConfig, Limits, MoveProbabilities, ProjectionWeights, MjmcmcSettings, ModelPrior)
_OBJECTS: dict[str, Any] = {kind.__name__: kind for kind in (*_SEARCH, *COMPONENTS, Gamma, Normal)}


def settings_to_plain(settings: dict[str, Any]) -> tuple[dict[str, Any], list[str]]:
    """Settings in plain values, and the names of those that have none: functions, generators of random numbers."""
    plain, lost = {}, []
    for name, value in settings.items():
        try:
            plain[name] = to_plain(value)
        except TypeError:
            lost.append(name)
    return plain, lost


def settings_from_plain(plain: Any, allowed: Iterable[str]) -> dict[str, Any]:
    """Read what `settings_to_plain` wrote."""
    if not isinstance(plain, dict) or not set(plain) <= set(allowed):
        raise DataError("settings must be those of the estimator")
    return {name: from_plain(value) for name, value in plain.items()}


def to_plain(value: Any) -> Any:
    """A setting as what JSON has; TypeError for what has no such form."""
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
        case _ if is_dataclass(value) and _OBJECTS.get(type(value).__name__) is type(value):
            each = {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
            return {"object": type(value).__name__, **each}
        case list() | tuple():
            return [to_plain(item) for item in value]
        case _:
            raise TypeError(value)


def from_plain(value: Any) -> Any:
    """Read what `to_plain` wrote."""
    match value:
        case {"object": kind}:
            parameters: Any = {name: from_plain(item) for name, item in value.items() if name != "object"}
            return CoefficientPrior(**parameters) if kind == "CoefficientPrior" else _OBJECTS[kind](**parameters)
        case {"feature": str(text)} if len(value) == 1:
            return parse(text)
        case {"path": str(text)} if len(value) == 1:
            return Path(text)
        case list():
            return tuple(map(from_plain, value))
        case dict():
            raise DataError("a setting is of no known kind")
        case _:
            return value
