"""Model files that `bgnlm fit` wrote, and fitted models as documents for other programs."""

import dataclasses
import math
from typing import Any

import numpy as np

_MOST = 100  # features and models listed


def load_model(path: str) -> Any:
    """Load a fitted estimator."""
    import bgnlm

    return bgnlm.load(path)


def describe(model: Any, using: str = "best") -> dict[str, Any]:
    """Settings, features, models and diagnostics in values that JSON knows."""
    document = {
        "estimator": type(model).__name__,
        "settings": {**model.get_params(deep=False), "latent": _components(model)},
        "inputs": model.coding_.input_names,
        "features": _records(model.features_),
        "components": _records(model.components_),
        "models": _records(model.models_),
        "diagnostics": [_numbers(search) for search in model.searches_],
        "expression": model.expression(using=using),
    }
    if hasattr(model, "classes_"):
        document["classes"] = model.classes_
    return dict(plain(document))


def _components(model: Any) -> list[str]:
    """Latent components in words."""
    from bgnlm.latent.place import describe as in_words

    return list(map(in_words, model.latent_columns_.fields))


def _records(table: Any) -> list[dict[str, Any]]:
    """The most probable rows, of each class if there are several."""
    parts = [table] if "class" not in table else [part for _, part in table.groupby("class", sort=False)]
    return [record for part in parts for record in part.head(_MOST).to_dict("records")]


def _numbers(search: Any) -> dict[str, Any]:
    posterior, diagnostics = search.posterior, search.diagnostics
    return {
        "n_features": len(posterior.features),
        "n_models": diagnostics.n_models,
        "n_scored": diagnostics.n_scored,
        "seconds": diagnostics.seconds,
        "log_mass": posterior.log_mass,
        "discarded": posterior.discarded,
        "endings": diagnostics.endings,
        "populations": [len(history) for history in diagnostics.history],
        "chain_weights": diagnostics.chain_weights,
        "largest_disagreement": diagnostics.disagreement.max(initial=0.0),
    }


def plain(value: Any) -> Any:
    """Turn arrays, numbers of NumPy and settings into what JSON knows; what is not finite becomes null."""
    match value:
        case None | bool() | str() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case np.generic() | np.ndarray():
            return plain(value.tolist())
        case dict():
            return {str(key): plain(entry) for key, entry in value.items()}
        case list() | tuple():
            return [plain(entry) for entry in value]
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return plain({field.name: getattr(value, field.name) for field in dataclasses.fields(value)})
        case _:
            return str(value)
