"""Settings as the Python that makes them: only what differs from the defaults."""

import inspect
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

from bgnlm.features import Feature, Transform, render
from bgnlm.likelihood.coefficient_priors import CoefficientPrior

_TOP = ("BGNLMClassifier", "BGNLMRegressor", "CoefficientPrior", "SearchConfig")
_WIDTH = 100


class UnwritableError(ValueError):
    """A setting that has no text: a function, a generator."""


def changed_settings(model: Any) -> dict[str, Any]:
    """Settings of an estimator that are not the defaults."""
    parameters = inspect.signature(type(model)).parameters
    given = model.get_params(deep=False)
    return {name: value for name, value in given.items() if not _same(value, parameters[name].default)}


def refit_code(model: Any) -> str:
    """Python that fits the model again, given the data."""
    names: set[str] = {type(model).__name__}
    arguments = []
    for name, value in changed_settings(model).items():
        try:
            arguments.append(f"{name}={written(value, names)}")
        except UnwritableError:
            arguments.append(f"{name}=...")
    call = f"{type(model).__name__}({', '.join(arguments)})"
    if len(call) > _WIDTH:
        call = "\n".join([f"{type(model).__name__}(", *(f"    {one}," for one in arguments), ")"])
    offset = ", offset=offset" if model.has_offset_ else ""
    return f"{_imports(names)}\n\nmodel = {call}\nmodel.fit(X, y{offset})\nmodel.report(X, y, 'report.html'{offset})"


def _imports(names: set[str]) -> str:
    from bgnlm import latent

    top = sorted(name for name in names if name in _TOP)
    components = sorted(name for name in names if name not in _TOP and hasattr(latent, name))
    others = sorted(names.difference(top, components))
    each = [("bgnlm", top), ("bgnlm.latent", components), ("bgnlm.search", others)]
    return "\n".join(f"from {module} import {', '.join(found)}" for module, found in each if found)


def written(value: Any, names: set[str]) -> str:
    """A value as Python; the classes that it needs are added to `names`."""
    match value:
        case None | bool() | int() | float() | str():
            return repr(value)
        case np.generic():
            return repr(value.item())
        case Path():
            return repr(str(value))
        case Transform(name=name):
            return repr(name)
        case CoefficientPrior():
            names.add("CoefficientPrior")
            parameters = [f"{name}={number!r}" for name, number in value.parameters if number is not None]
            local = [f"information={value.information!r}"] if value.information != "null" else []
            return f"CoefficientPrior({', '.join([repr(value.name), *local, *parameters])})"
        case _ if isinstance(value, Feature):
            return repr(render(value))
        case list() | tuple():
            return f"[{', '.join(written(one, names) for one in value)}]"
        case _ if is_dataclass(value) and type(value).__module__.startswith("bgnlm."):
            return _object(value, names)
        case _:
            raise UnwritableError(type(value).__name__)


def _object(value: Any, names: set[str]) -> str:
    names.add(type(value).__name__)
    parts = []
    for field in fields(value):
        default = field.default_factory() if field.default_factory is not MISSING else field.default
        here = getattr(value, field.name)
        if field.init and not _same(here, default):
            text = written(here, names)
            parts.append(text if not field.kw_only and default is MISSING else f"{field.name}={text}")
    return f"{type(value).__name__}({', '.join(parts)})"


def _same(value: Any, default: Any) -> bool:
    try:
        return bool(value is default or value == default)
    except (TypeError, ValueError):  # arrays
        return False
