"""What all Gaussian models over the same columns share: centred, scaled columns and their Gram matrix."""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)
# A column is constant, and a response explained, when only rounding is left of it.
_CONSTANT = 1e-13
_SMALLEST_NORM = 1e-150  # squares of anything below would underflow
_PRECISION = 64.0 * _EPS
_MANY_ROWS = 20_000
_BLOCK = 4096
_FAR = 1e-4  # distance of a unit column from the span of others


@dataclass(frozen=True, eq=False)
class GramStatistics:
    """Sufficient statistics of a population of columns and a response.

    Attributes
    ----------
    n_obs
        Number of observations: the sum of the frequency weights.
    log_total
        Log of the total sum of squares of the response (less the offset) about its mean.
    noise
        Rounding errors of the unit-norm columns and, last, the response, as norms: a residual below what they
        amount to is no residual.
    constant_response
        Whether the response does not vary at all.
    matrix
        Inner products of the unit-norm columns, the response last.
    data
        The columns and, last, the response: centred, times the root of the weights, scaled to unit norm, one a row.
    order
        Row of `data` for each column.
    means, norms
        What was subtracted from and divided out of each column.
    response_mean, response_norm
        The same for the response.
    """

    n_obs: float
    log_total: float
    noise: FloatArray
    constant_response: bool
    matrix: FloatArray
    data: FloatArray
    order: IntArray
    means: FloatArray
    norms: FloatArray
    response_mean: float
    response_norm: float

    @property
    def n_columns(self) -> int:
        """Number of columns a model can choose from."""
        return len(self.means)

    @property
    def max_rank(self) -> int:
        """Largest number of columns that can be independent of each other and the intercept."""
        return min(self.n_columns, int(self.data.shape[1]) - 1)

    @property
    def lowest_residual(self) -> float:
        """RSS / TSS below which residuals are rounding errors of the response itself."""
        return float(self.noise[-1] ** 2)

    @cached_property
    def triangle(self) -> FloatArray:
        """Triangular factor of the data, columns then response: the same inner products in a few rows."""
        factor = self._triangle_in_blocks()
        if factor is None:
            rows = self.data[np.append(self.order, len(self.data) - 1)]
            factor = np.asarray(np.linalg.qr(rows.T, mode="r"))
        if self.constant_response:  # one that nothing explains
            factor = np.vstack([factor, np.append(np.zeros(self.n_columns), 1.0)])
        return np.ascontiguousarray(factor)

    def _triangle_in_blocks(self) -> FloatArray | None:
        """The same for many rows that are far from dependent, in less time and memory.

        Twice a Cholesky factor of inner products: those of the data, and those of what the first factor makes of them.
        """
        if self.data.shape[1] < _MANY_ROWS or self.constant_response:
            return None
        try:
            first = np.linalg.cholesky(self.matrix)
        except np.linalg.LinAlgError:
            return None
        if np.diag(first).min() < _FAR:
            return None
        chosen, products = np.append(self.order, len(self.data) - 1), np.zeros_like(self.matrix)
        inverse = np.linalg.inv(first)
        for low in range(0, self.data.shape[1], _BLOCK):
            block = inverse @ self.data[chosen, low : low + _BLOCK]
            products += block @ block.T
        return np.asarray(np.linalg.cholesky(products).T @ first.T)

    def with_ridge(self, ridge: float) -> tuple[FloatArray, FloatArray]:
        """Return matrix and triangle with `ridge` added to the squared norm of all columns that vary."""
        if not ridge:
            return self.matrix, self.triangle
        added = np.where(self.norms > 0, ridge, 0.0)
        matrix = self.matrix.copy()
        matrix[np.arange(self.n_columns), np.arange(self.n_columns)] += added
        below = np.column_stack([np.diag(np.sqrt(added)), np.zeros(self.n_columns)])
        return matrix, np.vstack([self.triangle, below])

    def in_pivot_order(self) -> "GramStatistics":
        """Return the same with the columns reordered so that elimination from the last to the first is most stable."""
        order = _pivot_order(self.matrix[:-1, :-1])[::-1]
        both = np.append(order, self.n_columns)
        return dataclasses.replace(
            self,
            order=self.order[order],
            matrix=np.ascontiguousarray(self.matrix[np.ix_(both, both)]),
            noise=self.noise[both],
            means=self.means[order],
            norms=self.norms[order],
        )


def _pivot_order(matrix: FloatArray) -> IntArray:
    """Columns by the pivots of elimination, the largest that is left first."""
    left = matrix.copy()
    order = np.arange(len(left))
    for step in range(len(left)):
        best = step + int(np.argmax(np.diag(left)[step:]))
        left[[step, best]] = left[[best, step]]
        left[:, [step, best]] = left[:, [best, step]]
        order[[step, best]] = order[[best, step]]
        if left[step, step] <= 0.0:
            break
        factor = left[step + 1 :, step] / left[step, step]
        left[step + 1 :, step + 1 :] -= np.outer(factor, left[step, step + 1 :])
    return order


class UnitColumn(NamedTuple):
    """A column centred, multiplied by the root of the weights and scaled to unit norm; what was taken out of it."""

    values: FloatArray
    mean: float
    norm: float  # 0 for a column that does not vary; its values are zero then
    noise: float


class GramBuilder:
    """Standardises columns and multiplies them out with each other and with one response.

    Inner products do not depend on which other columns there are, to the last digit: what is built one column at a
    time is what is built at once.
    """

    def __init__(self, y: FloatArray, weights: FloatArray, offset: FloatArray) -> None:
        used = weights > 0
        self._used = None if used.all() else used
        self._weights = self._rows(weights)
        self._root = np.sqrt(self._weights)
        target = self._rows(y) - self._rows(offset)
        self.n_obs = float(self._weights.sum())
        self.response = self._unit(target)
        self._smallest = max(_EPS * float(np.abs(target).max()), _SMALLEST_NORM)

    def unit(self, column: FloatArray) -> UnitColumn:
        """Centre and scale a column."""
        return self._unit(self._rows(column))

    def statistics(
        self, columns: Sequence[UnitColumn], data: FloatArray, products: FloatArray, response_products: FloatArray
    ) -> "GramStatistics":
        """Put columns together whose inner products with each other and with the response are known.

        `data` has their values as rows, and room for the response as the last.
        """
        data[-1] = self.response.values
        matrix = np.empty((len(data), len(data)))
        matrix[:-1, :-1] = products
        matrix[-1, :-1] = matrix[:-1, -1] = response_products
        return self._assembled(columns, data, _with_exact_diagonal(matrix))

    def statistics_of(self, X: FloatArray) -> "GramStatistics":
        """Standardise and multiply out all columns of a table."""
        data = np.empty((X.shape[1] + 1, len(self._root)))
        columns = []
        for j in range(X.shape[1]):
            columns.append(self.unit(X[:, j]))
            data[j] = columns[-1].values
            columns[-1] = columns[-1]._replace(values=data[j])
        data[-1] = self.response.values
        return self._assembled(columns, data, _with_exact_diagonal(data @ data.T))

    def _rows(self, values: FloatArray) -> FloatArray:
        return values if self._used is None else values[self._used]

    def _unit(self, column: FloatArray) -> UnitColumn:
        values = np.empty(len(column))
        return UnitColumn(values, *_standardise(column, self._weights, self._root, values))

    def _assembled(self, columns: Sequence[UnitColumn], data: FloatArray, matrix: FloatArray) -> "GramStatistics":
        constant = self.response.norm == 0.0
        return GramStatistics(
            n_obs=self.n_obs,
            log_total=2.0 * float(np.log(self._smallest if constant else self.response.norm)),
            noise=np.array([column.noise for column in columns] + [self.response.noise]),
            constant_response=constant,
            matrix=matrix,
            data=data,
            order=np.arange(len(columns)),
            means=np.array([column.mean for column in columns]),
            norms=np.array([column.norm for column in columns]),
            response_mean=self.response.mean,
            response_norm=self.response.norm,
        )


def gram_statistics(y: FloatArray, X: FloatArray, weights: FloatArray, offset: FloatArray) -> GramStatistics:
    """Centre, scale and multiply out once; every model is scored from the result.

    A column that does not vary becomes zero, which makes every model with it rank deficient.
    """
    return GramBuilder(y, weights, offset).statistics_of(X)


def _standardise(x: FloatArray, weights: FloatArray, root: FloatArray, out: FloatArray) -> tuple[float, float, float]:
    """Centre, multiply by the root of the weights, scale to unit norm; the answer is mean, norm and noise.

    A column that does not vary becomes zero, with norm 0.
    """
    largest = float(np.abs(x).max()) or 1.0
    total = weights.sum()
    np.divide(x, largest, out=out)
    size = float(np.sqrt(weights @ np.square(out)))
    mean = float(weights @ out / total)
    out -= mean
    rest = float(weights @ out / total)  # what rounding left of the mean
    out -= rest
    out *= root
    norm = float(np.linalg.norm(out))
    mean = largest * (mean + rest)
    if norm <= _CONSTANT * np.sqrt(total) or largest * norm < _SMALLEST_NORM:
        out[:] = 0.0
        return mean, 0.0, _PRECISION
    out /= norm
    return mean, largest * norm, min(_PRECISION * max(size / norm, 1.0), 0.5)


def _with_exact_diagonal(matrix: FloatArray) -> FloatArray:
    """Unit norms, zero for what does not vary; a constant response is one that nothing explains."""
    np.fill_diagonal(matrix, np.where(np.diag(matrix) > 0.5, 1.0, 0.0))
    matrix[-1, -1] = 1.0
    return matrix
