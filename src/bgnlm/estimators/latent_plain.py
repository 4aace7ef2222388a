"""Latent components, and models with them, as plain values and arrays, and back, with every size and range checked.

What is fitted is not stored: it follows from the training data, the components and the hyperparameters.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bgnlm._typing import AnyArray, IntArray
from bgnlm._validation import LARGEST, check_weights
from bgnlm.errors import ModelFileError
from bgnlm.estimators.checked import Arrays, array, ascends_in_lists, boolean, count, floats, lists, number, text
from bgnlm.estimators.columns import demand
from bgnlm.estimators.inputs import TableCoding, column_name
from bgnlm.estimators.latent_columns import LatentColumns
from bgnlm.estimators.settings_plain import COMPONENTS, from_plain, to_plain
from bgnlm.latent.fields import LatentField
from bgnlm.latent.hyperpriors import FARTHEST, Gamma
from bgnlm.latent.inner import LatentResponse, SlopePrior
from bgnlm.latent.layout import Placed
from bgnlm.latent.models import LatentModels
from bgnlm.latent.place import Positions, check_fields, describe, positions_of
from bgnlm.latent.posterior import Entry, LatentPosterior
from bgnlm.likelihood.families import Family


def columns_to_plain(columns: LatentColumns, placed: Sequence[Placed]) -> tuple[list[Any], dict[str, AnyArray]]:
    """Components, where the training rows are for them and what they are multiplied by there."""
    plain, arrays = [], {}
    for c, field in enumerate(columns.fields):
        values, prefix = columns.positions[c].values, f"latent.{c}"
        labels = values.tolist() if values.dtype.kind == "U" else None
        plain.append({"component": _component_to_plain(field), "labels": labels})
        if labels is None:
            arrays[f"{prefix}.positions"] = values
        arrays[f"{prefix}.place"] = placed[c].place.astype(np.int64)
        arrays[f"{prefix}.loading"] = placed[c].loading
    return plain, arrays


def columns_from_plain(plain: Any, arrays: Arrays, coding: TableCoding) -> tuple[LatentColumns, tuple[Placed, ...]]:
    """Read what `columns_to_plain` wrote."""
    demand(isinstance(plain, list), "latent must be a list")
    found = [from_plain(part["component"]) for part in plain]
    demand(all(type(field) in COMPONENTS for field in found), "a latent component of no known kind")
    fields = check_fields(found)
    positions, placed = [], []
    for c, (field, part) in enumerate(zip(fields, plain, strict=True)):
        for column in (field.column, *(() if field.slope is None else (field.slope,))):
            column_name(coding.input_names, column)
        where = _positions(field, part["labels"], arrays, f"latent.{c}.positions")
        positions.append(where)
        placed.append(_placed(field, where, arrays, f"latent.{c}"))
    demand(len({len(component.place) for component in placed}) <= 1, "components of different tables")
    by_column = {component.field.column: component for component in placed}
    same = (np.array_equal(each.place, by_column[each.field.column].place) for each in placed)
    demand(all(same), "a column with different positions")
    return LatentColumns(fields, tuple(positions)), tuple(placed)


def _component_to_plain(field: LatentField) -> Any:
    try:
        if type(field) in COMPONENTS:
            return to_plain(field)
    except TypeError:  # a prior of one's own
        pass
    known = ", ".join(kind.__name__ for kind in COMPONENTS)
    raise ModelFileError(
        f"{describe(field)} cannot be saved: its class, or that of one of its priors, is your own. Files hold {known}, "
        "with Gamma and Normal priors. Use pickle, or fit without it."
    )


def _positions(field: LatentField, labels: Any, arrays: Arrays, name: str) -> Positions:
    if labels is None:
        values = floats(arrays, name, 1)
        demand((np.abs(values) <= LARGEST).all(), "positions beyond all bounds")
    else:
        demand(field.by_label and isinstance(labels, list) and labels, "labels where numbers are needed")
        values = np.array(list(map(text, labels)))
    demand(len(values) > 0 and (values[:-1] < values[1:]).all(), "positions that do not ascend")
    return positions_of(field, values)


def _placed(field: LatentField, where: Positions, arrays: Arrays, prefix: str) -> Placed:
    place, loading = array(arrays, f"{prefix}.place", np.int64, 1), floats(arrays, f"{prefix}.loading", 1)
    demand(len(place) == len(loading) and (np.abs(loading) <= LARGEST).all(), "loadings that do not fit the positions")
    demand(np.array_equal(np.unique(place), np.arange(len(where.values))), "positions that no row has")
    return Placed(field, where.times, place, loading)


def models_to_plain(models: LatentModels) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    """The response and what models of it are like."""
    slopes, response = models.slopes, models.response
    plain = {
        "scale": models.scale,
        "selects_offset": models.selects_offset,
        "max_components": models.max_components,
        "slopes": {
            "precision": slopes.precision,
            "hyperprior": to_plain(slopes.hyperprior),
            "standardised": slopes.standardised,
        },
    }
    return plain, {f"latent.{name}": getattr(response, name) for name in ("y", "weights", "offset")}


def models_from_plain(plain: Any, arrays: Arrays, family: Family, placed: tuple[Placed, ...]) -> LatentModels:
    """Read what `models_to_plain` wrote."""
    y, weights, offset = (floats(arrays, f"latent.{name}", 1) for name in ("y", "weights", "offset"))
    demand(len(offset) == len(y), "offset and response of different lengths")
    demand(all(len(component.place) == len(y) for component in placed), "positions and response of different lengths")
    family.check_response(y, has_weights=True)
    scale, most = number(plain["scale"]), plain["max_components"]
    demand(scale > 0.0, "a scale that is not positive")
    return LatentModels(
        response=LatentResponse(family, y, check_weights(weights, len(y)), offset),
        placed=placed,
        slopes=_slopes(plain["slopes"]),
        selects_offset=boolean(plain["selects_offset"], "selects_offset"),
        max_components=None if most is None else count(most),
        scale=scale,
    )


def _slopes(plain: Any) -> SlopePrior:
    precision, hyperprior = plain["precision"], from_plain(plain["hyperprior"])
    demand(precision is None or number(precision) > 0.0, "a precision that is not positive")
    demand(type(hyperprior) is Gamma, "a prior of no known kind")
    return SlopePrior(
        None if precision is None else number(precision), hyperprior, boolean(plain["standardised"], "standardised")
    )


def posterior_to_plain(posterior: LatentPosterior, kind: str) -> dict[str, AnyArray]:
    """Columns of the features in training, components and hyperparameters of the models, one after the other."""
    entries = posterior.entries
    return {
        f"{kind}.columns": posterior.columns,
        f"{kind}.component_starts": np.append(0, np.cumsum([len(entry.components) for entry in entries])).astype(
            np.int64
        ),
        f"{kind}.components": np.array([c for entry in entries for c in entry.components], np.int64),
        f"{kind}.hyperparameters": np.array([h for entry in entries for h in entry.hyperparameters], np.float64),
    }


def posterior_from_plain(
    models: LatentModels, arrays: Arrays, kind: str, starts: IntArray, members: IntArray, n_features: int
) -> LatentPosterior:
    """Read what `posterior_to_plain` wrote; `starts` and `members` are the features of the models."""
    columns = floats(arrays, f"{kind}.columns", 2)
    demand(columns.shape == (len(models.response.y), n_features), "columns that do not fit the features")
    n_models = len(starts) - 1
    firsts, components = lists(arrays, f"{kind}.component_starts", f"{kind}.components", n_models, len(models.names))
    demand(ascends_in_lists(firsts, components), "a model that has a component twice")
    hyperparameters = floats(arrays, f"{kind}.hyperparameters", 1)
    demand((np.abs(hyperparameters) <= FARTHEST).all(), "hyperparameters beyond all bounds")
    entries, used = [], 0
    for m in range(n_models):
        own = tuple(members[starts[m] : starts[m + 1]].tolist())
        chosen = tuple(components[firsts[m] : firsts[m + 1]].tolist())
        demand(models.exists(chosen), "a model that has too many components")
        size = _n_hyperparameters(models, chosen, bool(own))
        entries.append(Entry(own, chosen, tuple(hyperparameters[used : used + size].tolist())))
        used += size
    demand(used == len(hyperparameters), "hyperparameters that do not fit the components")
    return LatentPosterior(models, columns, tuple(entries))


def _n_hyperparameters(models: LatentModels, components: Sequence[int], has_slopes: bool) -> int:
    fields = [models.placed[c].field for c in components if c < len(models.placed)]
    others = models.response.family.has_dispersion + (models.slopes.is_integrated and has_slopes)
    return sum(field.n_hyperparameters for field in fields) + others
