"""Data as they come from a user, checked once: the table of inputs, a column of values, weights of rows."""

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from bgnlm._typing import FloatArray
from bgnlm._validation import LARGEST, column_names, numeric_array
from bgnlm.errors import DataError
from bgnlm.features.nodes import Input


def as_table(X: npt.ArrayLike) -> FloatArray:
    """Copy numbers in rows and columns to a read-only array in Fortran order; NaN and infinity may stay."""
    table = np.array(numeric_array(X, "X"), order="F")
    if table.ndim != 2:
        raise DataError(
            f"X must be two-dimensional (rows, columns), got shape {table.shape}. "
            "For a single column use X.reshape(-1, 1)."
        )
    table.setflags(write=False)
    return table


def column_positions(X: npt.ArrayLike, names: Iterable[str] | None, n_columns: int) -> dict[str, int]:
    """Where each name is found in X: by the names a data frame has, otherwise in the order given."""
    given = _different(column_names(X, n_columns) if names is None else names)
    own = column_names(X, n_columns) if hasattr(X, "columns") else given
    if sorted(own) != sorted(given):
        raise DataError(
            "the columns of X and the names given must be the same, in any order. "
            f"Names without a column: {_listed(given, own)}; columns without a name: {_listed(own, given)}."
        )
    if len(own) != n_columns:
        raise DataError(f"X has {n_columns} columns but {len(own)} names were given. Give one name per column.")
    position = {name: j for j, name in enumerate(own)}
    return {name: position[name] for name in given}


def _different(names: Iterable[str]) -> tuple[str, ...]:
    # A set has no order that could be that of the columns.
    if not isinstance(names, Iterable) or isinstance(names, set | frozenset):
        raise DataError(f"names must be a list with one name per column, got {names!r}.")
    different = tuple(Input(name).name for name in ([names] if isinstance(names, str) else names))
    twice = sorted({name for name in different if different.count(name) > 1})
    if twice:
        raise DataError(f"names of columns must differ, got more than once: {', '.join(twice)}. Rename them.")
    return different


def _listed(names: tuple[str, ...], without: tuple[str, ...]) -> str:
    return ", ".join(sorted(set(names) - set(without))) or "none"


def as_column(values: npt.ArrayLike, name: str) -> FloatArray:
    """One number for each row; NaN and infinity may stay."""
    column = numeric_array(values, name)
    if column.ndim != 1:
        raise DataError(f"{name} must be one-dimensional, got shape {column.shape}. Pass a single column.")
    return column


def as_weights(sample_weight: npt.ArrayLike | None, n_rows: int) -> FloatArray:
    """Frequencies of rows, zero for a row that does not take part; None means one for each row."""
    if sample_weight is None:
        return np.ones(n_rows)
    weights = as_column(sample_weight, "sample_weight")
    if len(weights) != n_rows:
        raise DataError(f"sample_weight must have one value per row, {n_rows} in all, got {len(weights)}.")
    bad = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST)))
    if len(bad):
        raise DataError(
            f"sample_weight must lie between 0 and {LARGEST:g}, got {weights[bad[0]]:g} in row {bad[0]}. "
            "A weight says how often a row was observed; use 0 to leave it out."
        )
    return weights
