"""What all Gaussian models over the same columns share: centred, scaled columns and their Gram matrix."""

import dataclasses
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bgnlm._typing import FloatArray, IntArray

_EPS = float(np.finfo(np.float64).eps)
# A column is constant, and a response explained, when only rounding is left of it.
_CONSTANT = 1e-13
_SMALLEST_NORM = 1e-150  # squares of anything below would underflow
_PRECISION = 64.0 * _EPS


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
        rows = self.data[np.append(self.order, len(self.data) - 1)]
        factor = np.asarray(np.linalg.qr(rows.T, mode="r"))
        if self.constant_response:  # one that nothing explains
            factor = np.vstack([factor, np.append(np.zeros(self.n_columns), 1.0)])
        return np.ascontiguousarray(factor)

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


def gram_statistics(y: FloatArray, X: FloatArray, weights: FloatArray, offset: FloatArray) -> GramStatistics:
    """Centre, scale and multiply out once; every model is scored from the result.

    A column that does not vary becomes zero, which makes every model with it rank deficient.
    """
    used = weights > 0
    if not used.all():
        y, X, weights, offset = y[used], X[used], weights[used], offset[used]
    root = np.sqrt(weights)
    target = y - offset
    n_columns = X.shape[1]
    data = np.empty((n_columns + 1, len(y)))
    columns = [_standardise(X[:, j], weights, root, data[j]) for j in range(n_columns)]
    mean, norm, noise = _standardise(target, weights, root, data[-1])
    constant = norm == 0.0
    scale = norm if not constant else max(_EPS * float(np.abs(target).max()), _SMALLEST_NORM)
    return GramStatistics(
        n_obs=float(weights.sum()),
        log_total=2.0 * float(np.log(scale)),
        noise=np.array([column[2] for column in columns] + [noise]),
        constant_response=constant,
        matrix=_inner_products(data),
        data=data,
        order=np.arange(n_columns),
        means=np.array([column[0] for column in columns]),
        norms=np.array([column[1] for column in columns]),
        response_mean=mean,
        response_norm=norm,
    )


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


def _inner_products(data: FloatArray) -> FloatArray:
    matrix = data @ data.T
    # Exact where rounding is not: unit norms, zero for what does not vary. A constant response is one nothing explains.
    np.fill_diagonal(matrix, np.where(np.diag(matrix) > 0.5, 1.0, 0.0))
    matrix[-1, -1] = 1.0
    return np.asarray(matrix)
