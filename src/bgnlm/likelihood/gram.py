"""What all Gaussian models over the same columns share: centred, scaled columns and their Gram matrix."""

from dataclasses import dataclass

import numpy as np

from bgnlm._typing import FloatArray

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
    design
        The columns: centred, times the root of the weights, scaled to unit norm, one in each row.
    response
        The response in the same form.
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
    design: FloatArray
    response: FloatArray
    means: FloatArray
    norms: FloatArray
    response_mean: float
    response_norm: float

    @property
    def n_columns(self) -> int:
        """Number of columns a model can choose from."""
        return len(self.design)

    @property
    def lowest_residual(self) -> float:
        """RSS / TSS below which residuals are rounding errors of the response itself."""
        return float(self.noise[-1] ** 2)

    def with_ridge(self, ridge: float) -> FloatArray:
        """Return the matrix with `ridge` added to the diagonal of all columns that vary."""
        if not ridge:
            return self.matrix
        matrix = self.matrix.copy()
        varying = np.flatnonzero(np.diag(matrix)[:-1] > 0)
        matrix[varying, varying] += ridge
        return matrix


def gram_statistics(y: FloatArray, X: FloatArray, weights: FloatArray, offset: FloatArray) -> GramStatistics:
    """Centre, scale and multiply out once; every model is scored from the result.

    A column that does not vary becomes zero, which makes every model with it rank deficient.
    """
    used = weights > 0
    if not used.all():
        y, X, weights, offset = y[used], X[used], weights[used], offset[used]
    root = np.sqrt(weights)
    target = y - offset
    design = np.empty((X.shape[1], len(y)))
    columns = [_standardise(X[:, j], weights, root, design[j]) for j in range(X.shape[1])]
    response = np.empty(len(y))
    mean, norm, noise = _standardise(target, weights, root, response)
    constant = norm == 0.0
    scale = norm if not constant else max(_EPS * float(np.abs(target).max()), _SMALLEST_NORM)
    return GramStatistics(
        n_obs=float(weights.sum()),
        log_total=2.0 * float(np.log(scale)),
        noise=np.array([column[2] for column in columns] + [noise]),
        constant_response=constant,
        matrix=_inner_products(design, response, constant),
        design=design,
        response=response,
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


def _inner_products(design: FloatArray, response: FloatArray, constant_response: bool) -> FloatArray:
    p = len(design)
    matrix = np.empty((p + 1, p + 1))
    matrix[:p, :p] = design @ design.T
    matrix[p, :p] = matrix[:p, p] = design @ response
    matrix[p, p] = 1.0  # a constant response is one that nothing explains
    np.fill_diagonal(matrix[:p, :p], np.where(np.diag(matrix)[:p] > 0.5, 1.0, 0.0))
    if constant_response:
        matrix[p, :p] = matrix[:p, p] = 0.0
    return matrix
