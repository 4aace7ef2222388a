"""Models that have some columns in common and differ in the values of the others."""

import math
import warnings

import numpy as np

from bgnlm._typing import BoolArray, FloatArray
from bgnlm._validation import LARGEST
from bgnlm.errors import ModelStatusWarning
from bgnlm.kernels.score_table import table_values
from bgnlm.likelihood.gaussian_fit import GaussianPopulation
from bgnlm.likelihood.gram import gram_statistics
from bgnlm.likelihood.marginal import Likelihood
from bgnlm.likelihood.tabulate import TabulatedScore

_LEFT = 1e-12  # share of a squared column outside the span of the others below which it depends on them
_NEAR = 1e-6  # share of the squared response below which a residual is computed row by row
_AT_ONCE = 24  # models whose columns are taken together as one population
_MOST_NUMBERS = 2**16  # taken together, so that they stay close to the processor


class VaryingColumns:
    """Scores models with the same fixed columns.

    Parameters
    ----------
    likelihood
        The response.
    fixed
        Columns that all models have: (rows, columns).
    score
        For the Gaussian family: the score of models of this response, whatever the columns.
    """

    def __init__(self, likelihood: Likelihood, fixed: FloatArray, score: TabulatedScore | None = None) -> None:
        self.n_rows = len(fixed)
        self._likelihood = likelihood
        self._used = likelihood.weights > 0.0
        self._fixed = np.where(self._used[:, None], fixed, 0.0)
        self._by_residual: _Residuals | None = None
        if likelihood.family.name == "gaussian":
            residuals = _Residuals(likelihood, self._fixed, score)
            if residuals.decide:
                self._by_residual = residuals

    def log_marginals(self, varying: FloatArray) -> FloatArray:
        """Score models given by their other columns, as (models, columns, rows); -inf for those that have no score."""
        varying = np.where(self._used, varying, 0.0)  # elsewhere a feature may be anything
        largest = np.abs(varying).max(axis=(1, 2), initial=0.0)
        out = np.full(len(varying), -np.inf)
        usable = np.flatnonzero(largest <= LARGEST)  # not so if there is a NaN
        most = max(_MOST_NUMBERS // max(varying[0].size, 1), 1) if self._by_residual else _AT_ONCE
        for start in range(0, len(usable), most):
            chosen = usable[start : start + most]
            if self._by_residual is not None:
                out[chosen] = self._by_residual.log_marginals(varying[chosen])
            else:
                out[chosen] = self._as_population(varying[chosen])
        return np.where(np.isnan(out), -np.inf, out)

    def _as_population(self, varying: FloatArray) -> FloatArray:
        """All columns as one population, of which each model takes its own."""
        n_models, n_varying, n_rows = varying.shape
        n_fixed = self._fixed.shape[1]
        columns = np.column_stack([self._fixed, varying.reshape(-1, n_rows).T])
        population = self._likelihood.population(columns)
        own = n_fixed + np.arange(n_models * n_varying).reshape(n_models, n_varying)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ModelStatusWarning)
            if isinstance(population, GaussianPopulation):
                return population.log_marginals([[*range(n_fixed), *each] for each in own.tolist()])
            included: BoolArray = np.zeros((n_models, columns.shape[1]), np.bool_)
            included[:, :n_fixed] = True
            included[np.arange(n_models)[:, None], own] = True
            return population.score.log_marginals(included)[0]


class _Residuals:
    """Gaussian models whose scores are functions of the residual sum of squares: all by one projection."""

    def __init__(self, likelihood: Likelihood, fixed: FloatArray, score: TabulatedScore | None) -> None:
        gram = gram_statistics(likelihood.y, fixed, likelihood.weights, likelihood.offset)
        self._score = likelihood.tabulated_score(gram) if score is None else score
        self._lowest = gram.lowest_residual
        exact = self._score.exact
        root = np.sqrt(likelihood.weights)
        design = np.column_stack(
            [np.ones(len(fixed)), (fixed - gram.means) / np.where(gram.norms > 0, gram.norms, 1.0)]
        )
        self._basis, triangle = np.linalg.qr(design * root[:, None])
        pivots = np.abs(np.diag(triangle))
        target = root * (likelihood.y - likelihood.offset)
        target = target - self._basis[:, :1] @ (self._basis[:, :1].T @ target)
        total = float(np.linalg.norm(target))
        is_plain = not (exact.uses_determinant or exact.ridge)
        self.decide = is_plain and not gram.constant_response and bool((pivots[1:] > math.sqrt(_LEFT)).all())
        self._root = root
        target /= total or 1.0
        self._rest = target - self._basis @ (self._basis.T @ target)
        self._left = float(self._rest @ self._rest)

    def log_marginals(self, varying: FloatArray) -> FloatArray:
        """Score models by their other columns."""
        n_models, n_varying, n_rows = varying.shape
        size = self._basis.shape[1] - 1 + n_varying
        out = np.full(n_models, -np.inf)
        if not self._score.exact.is_defined(size):
            return out
        scale = np.abs(varying).max(axis=2, keepdims=True)
        columns = varying / np.where(scale > 0.0, scale, 1.0) * self._root
        flat = columns.reshape(-1, n_rows)
        along = flat @ self._basis
        squares = np.einsum("ij,ij->i", flat, flat)
        spread = (squares - np.square(along[:, 0])).reshape(n_models, n_varying)
        flat -= along @ self._basis.T
        gram = columns @ columns.transpose(0, 2, 1)
        exists = (spread > _LEFT * squares.reshape(spread.shape)).all(axis=1)
        exists &= (_pivots(gram) > _LEFT * spread).all(axis=1)
        columns, gram = columns[exists], gram[exists]
        explained = columns @ self._rest
        slopes = np.linalg.solve(gram, explained[:, :, None])[:, :, 0]
        residuals = self._left - np.einsum("ij,ij->i", slopes, explained)
        for m in np.flatnonzero(residuals < _NEAR * self._left).tolist():  # where subtraction leaves too few digits
            residuals[m] = np.square(self._rest - slopes[m] @ columns[m]).sum()
        residuals = np.clip(residuals, self._lowest, 1.0)
        values = np.empty(len(residuals))
        table_values(self._score.table(size, self._lowest), size, np.log(residuals), values)
        out[exists] = values + self._score.exact.log_null
        return out


def _pivots(gram: FloatArray) -> FloatArray:
    """Squared norms of what each column leaves of the ones before it."""
    left = gram.copy()
    size = gram.shape[1]
    pivots = np.empty((len(gram), size))
    for k in range(size):
        pivots[:, k] = left[:, k, k]
        safe = np.where(pivots[:, k] > 0.0, pivots[:, k], math.inf)
        left -= left[:, :, k, None] * left[:, None, k, :] / safe[:, None, None]
    return pivots
