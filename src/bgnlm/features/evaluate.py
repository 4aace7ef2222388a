"""Values of features on data: F_j(x_i) of section 2.1 of the paper, one column per feature."""

from collections import OrderedDict
from collections.abc import Iterable
from difflib import get_close_matches
from math import isfinite

import numpy as np
import numpy.typing as npt

from bgnlm._typing import FloatArray, IntArray
from bgnlm._validation import LARGEST, check_count
from bgnlm.errors import FeatureError
from bgnlm.features.nodes import Component, Feature, Input, Modification, Multiplication, Projection, check_features
from bgnlm.features.table import as_column, as_table, as_weights, column_positions

# Differences below this share of a column's magnitude are rounding errors.
_ROUNDING = 1e-13


class Evaluator:
    """Computes columns of features on one table and remembers them, so that shared parts are computed once.

    Parameters
    ----------
    X
        Numbers in rows and columns, an array or a data frame; copied.
    names
        One different name per column. If left out, those of the data frame, or x1, x2, ... for an array.
        Columns of a data frame are found by name, in whatever order they come.
    max_cached_bytes
        Memory for remembered columns. The oldest are forgotten first; no result depends on it.

    Notes
    -----
    An evaluator belongs to one thread.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm.features import Evaluator, parse
    >>> table = Evaluator(np.array([[1.0, 2.0], [3.0, 4.0]]), ["x", "y"])
    >>> table.column(parse("x*y")).tolist()
    [2.0, 12.0]
    """

    def __init__(self, X: npt.ArrayLike, names: Iterable[str] | None = None, *, max_cached_bytes: int = 2**30) -> None:
        self._X = as_table(X)
        self._index = column_positions(X, names, self._X.shape[1])
        memory = check_count(max_cached_bytes, "max_cached_bytes")
        self._capacity = memory // max(1, self._X.itemsize * self.n_rows)
        # With the feature a column was computed from: one that is equal may hold other functions of the same name.
        self._cache: OrderedDict[Feature, tuple[Feature, FloatArray]] = OrderedDict()

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the inputs, in the order given."""
        return tuple(self._index)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self._X)

    @property
    def n_cached(self) -> int:
        """Number of columns remembered at present."""
        return len(self._cache)

    def some_rows(self, rows: IntArray, n_rows: int) -> "Evaluator":
        """Return an evaluator on at most so many of the rows given, evenly spread."""
        rows = rows[np.linspace(0, len(rows) - 1, min(n_rows, len(rows))).astype(np.int64)]
        table = np.empty((len(rows), len(self._index)))
        for j, place in enumerate(self._index.values()):
            table[:, j] = self._X[rows, place]
        return Evaluator(table, self.names, max_cached_bytes=2**24)

    def column(self, feature: Feature) -> FloatArray:
        """Values of a feature as a read-only array; not finite where the feature is not defined."""
        if isinstance(feature, Input):
            return self._input(feature)
        check_features(feature)
        if isinstance(feature, Component):
            raise FeatureError(f"{feature} is a latent component, which has no column.")
        known = self._cache.get(feature)
        if known is not None and known[0].same_functions(feature):
            return known[1]
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
            self._cache.pop(feature, None)
            while len(self._cache) >= self._capacity:
                self._cache.popitem(last=False)
            self._cache[feature] = feature, column


def reject_reason(column: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> str | None:
    """Say why a column cannot enter a model, or None if it can.

    A column is rejected if it is not finite in some row, so large that sums of squares would overflow, or constant
    up to rounding: its spread is at most 1e-13 of its magnitude. Rows of weight zero do not take part.

    Examples
    --------
    >>> from bgnlm.features import reject_reason
    >>> reject_reason([1.0, 1.0, 1.0])
    'constant: every value is 1 up to rounding'
    >>> reject_reason([1.0, 2.0, 3.0]) is None
    True
    """
    column = as_column(column, "column")
    used = np.ones(0, np.bool_) if sample_weight is None else as_weights(sample_weight, len(column)) > 0
    values = column if used.all() else column[used]
    if len(values) == 0:
        return "there is no row of positive weight"
    low, high = float(values.min()), float(values.max())
    if not (isfinite(low) and isfinite(high)):  # NaN is the extreme of what it is among
        rows = np.arange(len(column)) if used.all() else np.flatnonzero(used)
        bad = rows[~np.isfinite(values)]
        return f"not finite in {len(bad)} of {len(rows)} rows, first in row {bad[0]} (counted from 0)"
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
            column = _as_numbers(transform.function(argument, *feature.parameters), argument.shape)
    except Exception as error:
        raise FeatureError(
            f"transform {transform.name} failed in {feature}: {error}. Its function must take a float array "
            "(which it must not change) and return one number for each element."
        ) from error
    # Comparisons give False for NaN: a missing value would pass for a small one.
    column[np.isnan(argument)] = np.nan
    return column


def _as_numbers(returned: object, shape: tuple[int, ...]) -> FloatArray:
    result = np.asarray(returned)
    if result.shape != shape:
        raise ValueError(
            f"it returned an array of shape {result.shape} for one of shape {shape} "
            "(use functions that work element by element, such as np.maximum in place of max)"
        )
    if result.dtype.kind not in "biuf":
        raise TypeError(f"it returned values of type {result.dtype} where real numbers are needed")
    if np.ma.is_masked(returned):
        raise ValueError("it returned masked entries (use functions that give NaN in their place)")
    # A copy, because the function may keep and change what it returned.
    return np.array(result, dtype=np.float64)
