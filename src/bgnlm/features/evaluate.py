"""Values of features on data: F_j(x_i) of section 2.1 of the paper, one column per feature."""

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from difflib import get_close_matches

import numpy as np
import numpy.typing as npt

from bgnlm._typing import AnyArray, FloatArray
from bgnlm._validation import LARGEST
from bgnlm.errors import DataError, FeatureError
from bgnlm.features.nodes import Feature, Input, Modification, Multiplication, Projection

# Differences below this share of a column's magnitude are rounding errors.
_ROUNDING = 1e-13


class Evaluator:
    """Computes columns of features on one table and remembers them, so that shared parts are computed once.

    Parameters
    ----------
    X
        Numbers in rows and columns; copied.
    names
        One different name per column.
    max_cached_bytes
        Memory for remembered columns. The oldest are forgotten first; no result depends on it.

    Notes
    -----
    An evaluator belongs to one thread.
    """

    def __init__(self, X: npt.ArrayLike, names: Sequence[str], *, max_cached_bytes: int = 2**30) -> None:
        self._X = _as_table(X)
        self._index = _index_names(names, self._X.shape[1])
        self._capacity = max_cached_bytes // max(1, self._X.itemsize * self.n_rows)
        self._cache: OrderedDict[Feature, FloatArray] = OrderedDict()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs in the order of their columns."""
        return tuple(self._index)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._X)

    @property
    def n_cached(self) -> int:
        """Number of columns remembered at present."""
        return len(self._cache)

    def column(self, feature: Feature) -> FloatArray:
        """Values of a feature as a read-only array; not finite where the feature is not defined."""
        if isinstance(feature, Input):
            return self._input(feature)
        column = self._cache.get(feature)
        if column is None:
            column = self._compute(feature)
            column.setflags(write=False)
            self._remember(feature, column)
        return column

    def matrix(self, features: Iterable[Feature]) -> FloatArray:
        """Columns of several features side by side, in Fortran order and free to be written to."""
        chosen = tuple(features)
        matrix = np.empty((self.n_rows, len(chosen)), order="F")
        for j, feature in enumerate(chosen):
            matrix[:, j] = self.column(feature)
        return matrix

    def argument(self, feature: Modification | Projection) -> FloatArray:
        """Values that go into the feature's transform."""
        if isinstance(feature, Modification):
            return self.column(feature.operand)
        total = np.full(self.n_rows, feature.intercept)
        with np.errstate(all="ignore"):
            for operand, weight in zip(feature.operands, feature.weights, strict=True):
                total += weight * self.column(operand)
        total.setflags(write=False)
        return total

    def _input(self, feature: Input) -> FloatArray:
        if feature.name not in self._index:
            close = get_close_matches(feature.name, self._index)
            hint = f"Did you mean {close[0]!r}?" if close else f"The columns are: {', '.join(self._index)}."
            raise FeatureError(f"there is no column {feature.name!r}. {hint}")
        return self._X[:, self._index[feature.name]]

    def _compute(self, feature: Modification | Multiplication | Projection) -> FloatArray:
        if isinstance(feature, Multiplication):
            product = self.column(feature.factors[0]).copy()
            with np.errstate(all="ignore"):
                for factor in feature.factors[1:]:
                    product *= self.column(factor)
            return product
        return _apply(feature, self.argument(feature))

    def _remember(self, feature: Feature, column: FloatArray) -> None:
        if self._capacity > 0:
            while len(self._cache) >= self._capacity:
                self._cache.popitem(last=False)
            self._cache[feature] = column


def reject_reason(column: FloatArray, sample_weight: FloatArray | None = None) -> str | None:
    """Say why a column cannot enter a model, or None if it can.

    A column is rejected if it is not finite in some row, larger than 1e150 (squares would overflow), or constant up
    to rounding: its spread is at most 1e-13 of its magnitude. Rows of weight zero do not take part.
    """
    rows = np.arange(len(column)) if sample_weight is None else np.flatnonzero(sample_weight > 0)
    if len(rows) == 0:
        return "there is no row of positive weight"
    values = column[rows]
    bad = rows[~np.isfinite(values)]
    if len(bad):
        return f"not finite in {len(bad)} of {len(rows)} rows, first in row {bad[0]} (counted from 0)"
    low, high = float(values.min()), float(values.max())
    if max(-low, high) > LARGEST:
        return f"too large: values reach {max(-low, high):.3g} in size, the limit is {LARGEST:g}"
    if high - low <= _ROUNDING * max(abs(low), abs(high)):
        return f"constant: every value is {low:.6g} up to rounding"
    return None


def _apply(feature: Modification | Projection, argument: FloatArray) -> FloatArray:
    transform = feature.transform
    if transform.quantile is not None and not feature.parameters:
        raise FeatureError(
            f"the cut point of {transform.name} in {feature} is not known yet. "
            f"Learn it from training data with learn_cut_points, or give it: {transform.name}(..., 3.2)."
        )
    try:
        with np.errstate(all="ignore"):
            result = np.asarray(transform.function(argument, *feature.parameters))
            return _as_column(result, argument.shape)
    except Exception as error:
        raise FeatureError(
            f"transform {transform.name} failed in {feature}: {error}. Its function must take a float array "
            "(which it must not change) and return one number for each element."
        ) from error


def _as_column(result: AnyArray, shape: tuple[int, ...]) -> FloatArray:
    if result.shape != shape:
        raise ValueError(
            f"it returned an array of shape {result.shape} for one of shape {shape} "
            "(use functions that work element by element, such as np.maximum in place of max)"
        )
    if result.dtype.kind not in "biuf":
        raise TypeError(f"it returned values of type {result.dtype} where real numbers are needed")
    # A copy, because the function may keep and change what it returned.
    return np.array(result, dtype=np.float64)


def _as_table(X: npt.ArrayLike) -> FloatArray:
    try:
        table = np.asarray(X)
        if table.dtype.kind not in "biufO":
            raise TypeError(f"values of type {table.dtype}")
        table = np.array(table, dtype=np.float64, order="F")
    except (TypeError, ValueError) as error:
        raise DataError(f"X must hold real numbers only, got {error}. Encode other columns as numbers.") from error
    if table.ndim != 2:
        raise DataError(
            f"X must be two-dimensional (rows, columns), got shape {table.shape}. "
            "For a single column use X.reshape(-1, 1)."
        )
    table.setflags(write=False)
    return table


def _index_names(names: Sequence[str], n_columns: int) -> dict[str, int]:
    inputs = [Input(name) for name in ([names] if isinstance(names, str) else names)]
    index = {feature.name: j for j, feature in enumerate(inputs)}
    if len(inputs) != n_columns:
        raise DataError(f"X has {n_columns} columns but {len(inputs)} names were given. Give one name per column.")
    if len(index) != n_columns:
        given = [feature.name for feature in inputs]
        twice = sorted({name for name in given if given.count(name) > 1})
        raise DataError(f"names of columns must differ, got more than once: {', '.join(twice)}. Rename them.")
    return index
