"""Saved estimators: `save` and `load`."""

from pathlib import Path
from typing import Any

import numpy as np

from bgnlm._typing import AnyArray
from bgnlm.errors import ModelFileError
from bgnlm.estimators.base import BGNLMEstimator
from bgnlm.estimators.checked import boolean
from bgnlm.estimators.checked import number as checked_number
from bgnlm.estimators.classifier import BGNLMClassifier
from bgnlm.estimators.columns import demand
from bgnlm.estimators.inputs import Ranges, TableCoding
from bgnlm.estimators.latent_plain import columns_from_plain, columns_to_plain
from bgnlm.estimators.regressor import BGNLMRegressor
from bgnlm.estimators.searches_plain import search_from_plain, search_to_plain
from bgnlm.estimators.settings_plain import settings_from_plain, settings_to_plain
from bgnlm.persistence import damaged, read_model, write_model

_VERSION = 1
_LATENT_VERSION = 2  # has latent components, of which readers of version 1 know nothing
_DRAWN_VERSION = 3  # has models that count as often as they were drawn, which earlier readers would renormalise
_ESTIMATORS = {kind.__name__: kind for kind in (BGNLMRegressor, BGNLMClassifier)}


def save_estimator(estimator: BGNLMEstimator, path: str | Path) -> None:
    """Write a fitted estimator to a file."""
    settings, not_stored = settings_to_plain(estimator.get_params(deep=False))
    content: dict[str, Any] = {
        "estimator": type(estimator).__name__,
        "settings": settings,
        "settings_not_stored": not_stored,
        "coding": estimator.coding_.to_plain(),
        "response": estimator.response_name_,
        "has_offset": estimator.has_offset_,
        "input_ranges": {name: list(ends) for name, ends in estimator.input_ranges_.items()},
        "searches": [],
    }
    if isinstance(estimator, BGNLMClassifier):
        content["classes"] = {"type": _type_of(estimator.classes_), "values": estimator.classes_.tolist()}
    arrays: dict[str, AnyArray] = {}
    latent = estimator.searches_[0].average.latent
    if latent is not None:
        content["latent"], arrays = columns_to_plain(estimator.latent_columns_, latent.models.placed)
    for number, search in enumerate(estimator.searches_):
        plain, parts = search_to_plain(search)
        content["searches"].append(plain)
        arrays |= {f"{number}.{name}": array for name, array in parts.items()}
    is_drawn = any(len(search.posterior.counts) for search in estimator.searches_)
    version = _DRAWN_VERSION if is_drawn else _VERSION if latent is None else _LATENT_VERSION
    write_model(path, content, arrays, version)


def load(path: str | Path) -> Any:
    """Read a fitted estimator from a file that its `save` wrote.

    Nothing in the file is executed. Transforms of your own are found by their names: register them before loading,
    ``bgnlm.features.register(bgnlm.Transform(name, function))``.

    Raises
    ------
    ModelFileError
        If the file is damaged, cut off, too large, of a later version, or no model at all; or if a transform is
        missing.

    Examples
    --------
    >>> import bgnlm, numpy as np, tempfile, pathlib
    >>> X = np.arange(20.0).reshape(10, 2) ** 0.5
    >>> quick = bgnlm.SearchConfig(n_populations=2, population_size=4)
    >>> model = bgnlm.BGNLMRegressor(search=quick, n_chains=1, random_state=1).fit(X, X[:, 0] ** 2 + X[:, 1])
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "model.bgnlm"
    >>> model.save(path)
    >>> bool((bgnlm.load(path).predict(X) == model.predict(X)).all())
    True
    """
    content, arrays = read_model(path)
    try:
        return _estimator(content, arrays)
    except ModelFileError:
        raise
    except Exception as error:  # the digest was right, but what it is of is not a model
        raise damaged(path, str(error) or type(error).__name__) from error


def _estimator(content: dict[str, Any], arrays: dict[str, AnyArray]) -> Any:
    kind = _ESTIMATORS[content["estimator"]]
    coding, searches = TableCoding.from_plain(content["coding"]), content["searches"]
    demand(isinstance(searches, list) and isinstance(content["response"], str), "searches are missing")
    # Before the settings: these know which transforms are needed.
    latent, placed = columns_from_plain(content.get("latent", []), arrays, coding)
    found = [
        search_from_plain(plain, _part(arrays, number), coding.names, placed) for number, plain in enumerate(searches)
    ]
    estimator = kind(**settings_from_plain(content["settings"], kind._get_param_names()))
    has_offset = boolean(content["has_offset"], "has_offset")
    # Files of earlier versions have none.
    ranges = _ranges(content.get("input_ranges", {}), coding)
    estimator._take_over(coding, content["response"], latent, ranges, has_offset=has_offset)
    estimator._settings_lost = _names(content["settings_not_stored"])
    estimator.searches_ = tuple(found)
    if kind is BGNLMClassifier:
        estimator.classes_ = _classes(content["classes"])
        n_classes = len(estimator.classes_)
        demand(len(searches) == (1 if n_classes == 2 else n_classes), "classes that do not fit")
        demand(all(plain["family"] == "binomial" for plain in searches), "classes of another family")
    else:
        demand(len(searches) == 1, "searches that do not fit")
    return estimator


def _names(values: Any) -> set[str]:
    demand(isinstance(values, list) and all(isinstance(value, str) for value in values), "settings must be names")
    return set(values) - {"random_state"}  # another seed will do


def _ranges(plain: Any, coding: TableCoding) -> Ranges:
    demand(isinstance(plain, dict) and set(plain) <= set(coding.names), "input_ranges must be those of inputs")
    found: Ranges = {}
    for name, ends in plain.items():
        demand(isinstance(ends, list) and len(ends) == 3, "a range has three numbers")
        low, middle, high = map(checked_number, ends)
        demand(low <= middle <= high, "a range must ascend")
        found[name] = (low, middle, high)
    return found


def _part(arrays: dict[str, AnyArray], number: int) -> dict[str, AnyArray]:
    prefix = f"{number}."
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


def _type_of(classes: AnyArray) -> str:
    kinds = {"O": "text", "U": "text", "T": "text", "b": "boolean", "i": "whole", "u": "whole", "f": "number"}
    if classes.dtype.kind not in kinds:
        raise ModelFileError(
            f"Classes of type {classes.dtype} cannot be saved. Fit again with texts, numbers or Booleans as classes."
        )
    return kinds[classes.dtype.kind]


def _classes(plain: Any) -> AnyArray:
    kinds = {"text": str, "boolean": bool, "whole": int, "number": float}
    kind = kinds[plain["type"]]
    values = plain["values"]
    demand(isinstance(values, list) and all(type(value) is kind for value in values), "classes of no known kind")
    demand(len(values) >= 2 and len(set(values)) == len(values), "too few classes")
    if kind is int:
        return np.array(values, dtype=np.int64 if max(values) < 2**63 else np.uint64)
    return np.array(values)
