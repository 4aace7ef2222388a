"""From a table and the options of `bgnlm fit` to what an estimator is fitted to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm.cli.checks import numbers, refuse_infinite, refuse_missing
from bgnlm.cli.console import quoted
from bgnlm.cli.options import LABELLED
from bgnlm.cli.tables import Table, frame_of
from bgnlm.errors import DataError, SettingError

if TYPE_CHECKING:
    import argparse

    import pandas as pd

    from bgnlm.cli.cells import Column, Kind

# More classes than this are hardly meant as such: for each there is a search of its own.
_MOST_CLASSES = 20


@dataclass(frozen=True, eq=False)
class TrainingData:
    """What `fit` of an estimator takes, the family that goes with it, and why it was chosen, if it was."""

    X: pd.DataFrame
    y: Any
    weights: Any
    offset: Any
    family: str
    reason: str


def training_data(table: Table, options: argparse.Namespace) -> TrainingData:
    """Choose and check the columns that are used."""
    names = _input_names(table, options)
    positions = _positions(table, options)
    target = _target(table, options)
    family, reason = (options.family, "") if options.family else _choose_family(table, target)
    table.require(options.categories, "--categories")
    inputs = [table.column(name, "texts" if name in options.categories else None) for name in names]
    _check_inputs(table, inputs, options.missing)
    return TrainingData(
        X=frame_of([*inputs, *positions]),
        y=_named(_classes(table, target) if family == "classification" else _response(table, target, family), target),
        weights=numbers(table, options.weights, "--weights").values if options.weights else None,
        offset=numbers(table, options.offset, "--offset").values if options.offset else None,
        family=family,
        reason=reason,
    )


def _input_names(table: Table, options: argparse.Namespace) -> list[str]:
    """Columns that explain the target: those asked for, or all that have no other part."""
    parts = {"--target": options.target, "--weights": options.weights, "--offset": options.offset}
    table.require([options.target], "--target")
    taken = {name: option for option, name in parts.items() if name}
    if len(taken) < sum(name is not None for name in parts.values()):
        raise SettingError("--target, --weights and --offset must be different columns.")
    for component in options.latent:
        for name in (component.column, component.slope):
            if taken.get(name, "--latent") != "--latent":
                raise SettingError(f"--latent must not have {quoted([name])}, which {taken[name]} names already.")
        taken[component.column] = "--latent"
    if options.select_offset and not options.offset:
        raise SettingError("--select-offset needs an offset to choose. Give the column that has it: --offset COLUMN")
    names = _chosen_names(table, options, taken)
    slopes = [component.slope for component in options.latent if component.slope]
    table.require(slopes, "--latent")
    if absent := [name for name in slopes if name not in names and name not in taken]:
        raise SettingError(f"--latent has slopes of {quoted(absent)}, which must be among the columns to explain by.")
    return names


def _chosen_names(table: Table, options: argparse.Namespace, taken: dict[str, str]) -> list[str]:
    if options.features:
        table.require(options.features, "--features")
        if twice := [name for name in options.features if name in taken]:
            raise SettingError(f"--features must not have {quoted(twice)}, which {taken[twice[0]]} names already.")
        return list(dict.fromkeys(options.features))
    table.require(options.exclude, "--exclude")
    names = [name for name in table.names if name not in taken and name not in options.exclude]
    if not names:
        raise DataError(f"{table.path} has no column left to explain {options.target!r} by. Exclude fewer.")
    return names


def _positions(table: Table, options: argparse.Namespace) -> list[Column]:
    """Columns that latent components are along."""
    along = {component.column for component in options.latent if component.kind not in LABELLED}
    names = list(dict.fromkeys(component.column for component in options.latent))
    table.require(names, "--latent")
    columns = []
    for name in names:
        kind: Kind | None = "texts" if name in options.categories else None
        columns.append(table.column(name, "numbers" if name in along else kind))
    refuse_missing(table, columns, "Latent components need their positions and groups in every row: drop the row.")
    refuse_infinite(table, columns)
    return columns


def _target(table: Table, options: argparse.Namespace) -> Column:
    is_text = options.target in options.categories
    target = table.column(options.target, "texts" if is_text else None)
    if target.missing.all():
        raise DataError(f"{table.path}: the target {options.target!r} has no values at all. Choose another column.")
    refuse_missing(table, [target], "The target must be known in every row: fill it, or drop the row.")
    refuse_infinite(table, [target])
    return target


def _choose_family(table: Table, target: Column) -> tuple[str, str]:
    if target.kind == "texts":
        n_classes = len(set(target.values))
        if n_classes > _MOST_CLASSES:
            raise DataError(
                f"{table.path}: the target {target.name!r} holds {n_classes} different texts ({target.values[0]!r} is "
                "the first). Choose another column, or --family classification, which runs a search for each of them."
            )
        return "classification", "holds texts"
    if target.kind == "booleans":
        return "classification", "holds true and false"
    if set(np.unique(target.values).tolist()) == {0.0, 1.0}:
        return "classification", "holds 0 and 1 only"
    return "gaussian", "holds numbers"


def _classes(table: Table, target: Column) -> Any:
    """Classes as texts, booleans or whole numbers."""
    if target.kind == "texts":
        return target.values.astype(str)
    if target.kind == "booleans":
        return target.values.astype(bool)
    broken = np.flatnonzero(target.values != np.floor(target.values))
    if len(broken):
        row = int(broken[0])
        raise DataError(
            f"{table.place(row)}: --family classification needs classes: texts or whole numbers; the target "
            f"{target.name!r} is {target.values[row]:g}. Use --family gaussian, or --categories {target.name}."
        )
    return target.values.astype(np.int64)


def _response(table: Table, target: Column, family: str) -> Any:
    if target.kind == "texts":
        raise DataError(
            f"{table.place(0)}: --family {family} needs numbers; the target {target.name!r} is {target.values[0]!r}. "
            "Use --family classification, or another column."
        )
    return target.values.astype(np.float64)


def _named(values: Any, target: Column) -> pd.Series[Any]:
    import pandas as pd

    return pd.Series(values, name=target.name)


def _check_inputs(table: Table, inputs: list[Column], missing: str) -> None:
    for column in inputs:
        if column.missing.all():
            raise DataError(
                f"{table.path}: column {column.name!r} has no values at all. Leave it out: --exclude {column.name}"
            )
    if missing == "raise":
        refuse_missing(
            table, inputs, "Fill it, drop the row, leave the column out (--exclude), or use --missing impute."
        )
    refuse_infinite(table, inputs)
