"""Columns of a table as a saved model knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm.cli.checks import numbers, refuse_infinite, refuse_missing
from bgnlm.cli.tables import Table, frame_of
from bgnlm.errors import DataError
from bgnlm.estimators.columns import BooleanColumn, CategoricalColumn, PositionColumn

if TYPE_CHECKING:
    import argparse

    from bgnlm.cli.cells import Column


def inputs_of(model: Any, table: Table) -> Any:
    """The columns that the model knows, as a data frame."""
    coding = model.coding_
    table.require(coding.input_names, "needed by the model")
    labelled = model.latent_columns_.labelled(coding)
    columns = [_column(table, column, column.name in labelled) for column in coding.columns]
    needed = [came for column, came in zip(coding.columns, columns, strict=True) if column.fill is None]
    refuse_missing(table, needed, "Fill it, drop the row, or fit with --missing impute.")
    refuse_infinite(table, columns)
    X = frame_of(columns)
    if not coding.has_names:
        X.columns = range(len(columns))
    return X


def _column(table: Table, trained: Any, has_labels: bool) -> Column:
    """Read a column as what it was in training, whatever it looks like now."""
    match trained:
        case _ if has_labels:
            return table.column(trained.name, "texts")
        case PositionColumn():  # groups may be true and false
            column = table.column(trained.name)
            return column if column.kind != "texts" else table.column(trained.name, "numbers")
        case CategoricalColumn():
            return table.column(trained.name, "texts")
        case BooleanColumn():
            return table.column(trained.name, "booleans")
        case _:
            return table.column(trained.name, "numbers")


def require_offset(model: Any, options: argparse.Namespace) -> None:
    """Refuse a model with an offset where none is given."""
    if model.has_offset_ and options.offset is None:
        raise DataError(
            f"{options.model} was fitted with an offset, which its predictions need too. Give the column that has it: "
            "--offset COLUMN"
        )


def response_of(model: Any, table: Table, name: str) -> Any:
    """The response in a table: numbers, or classes of the kind that the model has."""
    if not hasattr(model, "classes_"):
        return numbers(table, name, "--target").values
    kind = model.classes_.dtype.kind
    if kind in "iuf":
        return numbers(table, name, "--target").values.astype(model.classes_.dtype)
    table.require([name], "--target")
    column = table.column(name, "booleans" if kind == "b" else "texts")
    refuse_missing(table, [column], "The target must be known in every row: fill it, or drop the row.")
    values = column.values.astype(np.bool_ if kind == "b" else str)
    unknown = np.flatnonzero(~np.isin(values, model.classes_))
    if len(unknown):
        row = int(unknown[0])
        raise DataError(
            f"{table.place(row)}, column {name!r}: {values[row].item()!r} is none of the classes of the model. "
            "Correct it, or drop the row."
        )
    return values
