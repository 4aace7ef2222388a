"""Scores tabulated once per data set, so that compiled code evaluates any prior by one polynomial.

For each model size the score is a function of log(RSS / TSS) alone. It is approximated by piecewise
polynomials on panels that are halved until the approximation agrees with the exact value between the nodes.
"""

import copy
import itertools
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from bgnlm._typing import BoolArray, FloatArray, IntArray
from bgnlm.kernels.score_table import DEGREE, ScoreTable, table_values
from bgnlm.likelihood.coefficient_priors import MIXTURES
from bgnlm.likelihood.gaussian import GaussianScore
from bgnlm.likelihood.variance import VarianceIntegral

Function = Callable[[FloatArray], FloatArray]

_NODES = np.cos(np.pi * (np.arange(DEGREE + 1) + 0.5) / (DEGREE + 1))
_CHECKS = np.array([-0.97, -0.32, 0.52, 0.99])
_TO_COEFFICIENTS = np.linalg.inv(np.vander(_NODES, DEGREE + 1, increasing=True))
_AT_CHECKS = np.vander(_CHECKS, DEGREE + 1, increasing=True)
_WIDEST = 2.0
_NARROWEST = 1e-9
_BUCKETS_PER_UNIT = 8.0
_TOLERANCE = 1e-9
_ROUNDING = 2e-14


def tabulate(score: GaussianScore, max_size: int, lowest_residual: float) -> ScoreTable:
    """Tabulate the score of models with 0 to `max_size` columns for RSS / TSS from `lowest_residual` to 1."""
    lower = min(float(np.log(lowest_residual)), -1e-3)
    if score.noise_floor:
        score = _with_tabulated_variance(score, lower)
    sizes = [size if score.is_defined(size) else None for size in range(max_size + 1)]
    pieces = [_no_panels(lower) if size is None else _score_panels(score, size, lower) for size in sizes]
    return _assemble(pieces, lower, np.array([size is not None for size in sizes]))


class TabulatedScore:
    """A score with its table, which is built when first asked for and again only when it has to grow."""

    def __init__(self, exact: GaussianScore) -> None:
        self.exact = exact
        self._table: ScoreTable | None = None

    def table(self, max_size: int, lowest_residual: float) -> ScoreTable:
        """Return a table that covers models of up to `max_size` columns and residuals down to `lowest_residual`."""
        have = self._table
        if have is None or len(have.available) <= max_size or have.lower > np.log(lowest_residual):
            # Rounded down, so that the next population of columns hardly ever needs more.
            lower = _WIDEST * np.floor(np.log(lowest_residual) / _WIDEST)
            n_sizes = max(max_size, 0 if have is None else len(have.available) - 1)
            self._table = have = tabulate(self.exact, n_sizes, float(np.exp(lower)))
        return have

    def shrinkage(self, sizes: IntArray, residuals: FloatArray) -> FloatArray:
        """Posterior means of g / (1 + g) of many models."""
        out = np.ones(len(sizes))
        if self.exact.prior.name not in ("g", "eb-local", *MIXTURES):
            return out
        x = np.log(np.clip(residuals, 1e-300, 1.0))
        lower = min(float(x.min()), -1e-3)
        for size in np.unique(sizes).tolist():
            here = sizes == size
            panels = _panels(partial(self._shrinkage_at, size), _ends(self.exact, size, lower), 1e-9)
            values = np.empty(int(here.sum()))
            table_values(_assemble([panels], lower, np.ones(1, dtype=np.bool_)), 0, x[here], values)
            out[here] = values
        return out

    def _shrinkage_at(self, size: int, log_residual: FloatArray) -> FloatArray:
        return self.exact.shrinkage(size, np.exp(log_residual))


class _TabulatedVariance(VarianceIntegral):
    """The integral over the variance as one polynomial: the incomplete gamma function is slow."""

    def __init__(self, exact: VarianceIntegral, lower: float, rounding: float) -> None:
        self.__dict__.update(exact.__dict__)
        panels = _panels(lambda x: exact.relative(np.exp(x)), [lower, 0.0], rounding)
        self._table = _assemble([panels], lower, np.ones(1, dtype=np.bool_))

    def relative(self, quadratic: FloatArray) -> FloatArray:
        out = np.empty(np.size(quadratic))
        table_values(self._table, 0, np.log(np.ravel(quadratic)), out)
        return out.reshape(np.shape(quadratic))


def _with_tabulated_variance(score: GaussianScore, lower: float) -> GaussianScore:
    fast = copy.copy(score)
    fast.variance_integral = _TabulatedVariance(score.variance_integral, lower, _ROUNDING * score.n_obs)
    return fast


def _score_panels(score: GaussianScore, size: int, lower: float) -> tuple[FloatArray, FloatArray]:
    return _panels(
        lambda x: score.log_bayes_factor(size, np.exp(x)), _ends(score, size, lower), _ROUNDING * score.n_obs
    )


def _ends(score: GaussianScore, size: int, lower: float) -> list[float]:
    """Ends of the stretches on which the score is smooth."""
    return [lower, *sorted(x for x in score.breakpoints(size) if lower < x < 0.0), 0.0]


def _no_panels(lower: float) -> tuple[FloatArray, FloatArray]:
    return np.array([lower, 0.0]), np.zeros((1, DEGREE + 1))


def _assemble(pieces: list[tuple[FloatArray, FloatArray]], lower: float, available: BoolArray) -> ScoreTable:
    buckets = lower + np.arange(int(np.ceil(-lower * _BUCKETS_PER_UNIT))) / _BUCKETS_PER_UNIT
    first = np.cumsum([0] + [len(edges) for edges, _ in pieces])[:-1]
    starts = [
        start + np.searchsorted(edges, buckets, side="right") - 1
        for start, (edges, _) in zip(first, pieces, strict=True)
    ]
    # Between the last edge of one size and the first of the next lies a panel that is never looked up.
    gap = np.zeros((1, DEGREE + 1))
    return ScoreTable(
        lower=lower,
        buckets_per_unit=_BUCKETS_PER_UNIT,
        bucket_start=np.array(starts, dtype=np.int64),
        edges=np.concatenate([edges for edges, _ in pieces]),
        coefficients=np.vstack([np.vstack([values, gap]) for _, values in pieces]),
        available=available,
    )


def _panels(function: Function, ends: Sequence[float], rounding: float) -> tuple[FloatArray, FloatArray]:
    """Edges of the panels between `ends` in ascending order, and a row of coefficients for each panel."""
    todo = np.vstack([_split_evenly(a, b) for a, b in itertools.pairwise(ends)])
    done_panels, done_values = [], []
    while len(todo):
        values, good = _fit(function, todo, rounding)
        good |= todo[:, 1] - todo[:, 0] < _NARROWEST
        done_panels.append(todo[good])
        done_values.append(values[good])
        todo = _halve(todo[~good])
    panels = np.vstack(done_panels)
    order = panels[:, 0].argsort()
    return np.append(panels[order, 0], 0.0), np.vstack(done_values)[order]


def _split_evenly(low: float, high: float) -> FloatArray:
    edges = np.linspace(low, high, int(np.ceil((high - low) / _WIDEST)) + 1)
    return np.column_stack([edges[:-1], edges[1:]])


def _halve(panels: FloatArray) -> FloatArray:
    middle = panels.mean(axis=1)
    return np.vstack([np.column_stack([panels[:, 0], middle]), np.column_stack([middle, panels[:, 1]])])


def _fit(function: Function, panels: FloatArray, rounding: float) -> tuple[FloatArray, BoolArray]:
    """Interpolate in each panel and compare with the exact value between the nodes."""
    middle = panels.mean(axis=1)[:, None]
    half = 0.5 * (panels[:, 1] - panels[:, 0])[:, None]
    exact = function(np.minimum(middle + half * np.concatenate([_NODES, _CHECKS]), 0.0))
    # The constant goes first: the digits of a large one would drown those of the shape.
    constant = exact[:, :1]
    values = (exact[:, : DEGREE + 1] - constant) @ _TO_COEFFICIENTS.T
    error = np.abs(values @ _AT_CHECKS.T - (exact[:, DEGREE + 1 :] - constant)).max(axis=1)
    values[:, 0] += constant[:, 0]
    return values, error < _TOLERANCE + rounding + _ROUNDING * np.abs(exact).max(axis=1)
