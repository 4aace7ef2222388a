"""Tabulated scores against the exact ones."""

import math

import numpy as np
import pytest

from bgnlm import CoefficientPrior
from bgnlm.kernels.gram import RANK_DEFICIENT, UNDECIDED, Statistics, lowest_residual, score_statistics
from bgnlm.kernels.score_table import table_value, table_values
from bgnlm.likelihood.coefficient_priors import PARAMETERS
from bgnlm.likelihood.gaussian import GaussianScore
from bgnlm.likelihood.tabulate import TabulatedScore, tabulate


def _score(name="robust", n=100, floor=0.0):
    return GaussianScore(CoefficientPrior(name), n, math.log(3.0 * n), floor)


@pytest.mark.parametrize(
    ("n", "floor", "lowest"),
    [(30, 0.0, 1e-27), (30, 0.3, 1e-27), (500, 0.01, 1e-6), (10**6, 0.0, 0.01), (10**6, 0.02, 1e-5)],
)
@pytest.mark.parametrize("name", list(PARAMETERS))
def test_tables_agree_with_the_exact_score(name, n, floor, lowest):
    score = _score(name, n, floor)
    table = tabulate(score, 6, lowest)
    rng = np.random.default_rng(1)
    x = np.append(rng.uniform(np.log(lowest), 0.0, 150), [np.log(lowest), 0.0, -1e-9])
    for size in (0, 1, 2, 6):
        exact = score.log_bayes_factor(size, np.exp(x))
        out = np.empty(len(x))
        table_values(table, size, x, out)
        tolerance = 5e-9 + 1e-13 * (n + np.abs(exact))
        assert (np.abs(out - exact) < tolerance).all()


def test_sizes_without_a_score_are_marked():
    assert tabulate(_score("bic", n=5), 6, 0.1).available.tolist() == [True] * 4 + [False] * 3


def test_compiled_equals_interpreted():
    table = tabulate(_score(), 3, 1e-3)
    for x in np.linspace(-6.9, 0.0, 37):
        assert table_value(table, 2, x) == pytest.approx(table_value.py_func(table, 2, x), rel=1e-14)


def test_values_outside_the_table_are_those_at_its_ends():
    table = tabulate(_score(), 3, 1e-3)
    assert table_value(table, 1, -50.0) == table_value(table, 1, table.lower)
    assert table_value(table, 1, 0.5) == table_value(table, 1, 0.0)


def test_a_table_grows_only_when_it_has_to():
    score = TabulatedScore(_score())
    first = score.table(3, 0.3)
    assert score.table(2, 0.4) is first
    larger = score.table(5, 0.3)
    assert len(larger.available) == 6
    deeper = score.table(2, 1e-5)
    assert len(deeper.available) == 6
    assert deeper.lower <= math.log(1e-5)


def test_rounding_never_lets_a_model_win():
    """An uncertain residual is taken at its upper end; `best_scores` is the lower end, not below the bound."""
    score = TabulatedScore(_score())
    table = score.table(2, 1e-26)
    statistics = Statistics(
        sizes=np.array([1, 1, 1, 2, 2], np.int8),
        residuals=np.array([0.3, 1e-15, RANK_DEFICIENT, 1e-3, UNDECIDED]),
        pivots=np.array([1.0, 1.0, 0.0, 1e-11, 0.0]),
        log_determinants=np.empty(0),
        determinant_weight=0.0,
        lowest=1e-25,
        error=1e-14,
        steepest=50.0,
        tolerance=1e-7,
    )

    def exact(size, residual):
        return score.exact.log_bayes_factor(size, np.array([residual]))[0]

    for function in (score_statistics, score_statistics.py_func):
        scores, models, best = np.empty(5), np.empty(3, np.int64), np.empty(3)
        assert function(statistics, table, 1e-20, scores, models, best) == 3
        assert scores[0] == pytest.approx(exact(1, 0.3), abs=1e-8)
        assert scores[1] == pytest.approx(exact(1, 1.1e-14), abs=1e-6)
        assert scores[3] == pytest.approx(exact(2, 1e-3 + 1e-3), abs=1e-6)
        assert (scores[[2, 4]] == -np.inf).all()
        assert models.tolist() == [1, 3, 4]
        assert best == pytest.approx([exact(1, 1e-20), exact(2, 1e-20), exact(2, 1e-20)], abs=1e-6)
        assert function(statistics, table, 1e-20, scores, models[:0], best[:0]) == 3


def test_the_lowest_residual_a_model_can_have():
    statistics = Statistics(
        sizes=np.array([1, 1, 2], np.int8),
        residuals=np.array([0.3, UNDECIDED, 0.2]),
        pivots=np.array([1.0, 0.0, 1e-3]),
        log_determinants=np.empty(0),
        determinant_weight=0.0,
        lowest=1e-25,
        error=1e-5,
        steepest=1.0,
        tolerance=1e-7,
    )
    assert lowest_residual(statistics) == pytest.approx(0.19)
    assert lowest_residual(statistics._replace(error=1.0)) == 1e-25


@pytest.mark.parametrize("name", ["robust", "hyper-g/n", "eb-local", "g", "bic"])
def test_tabulated_shrinkage(name):
    score = TabulatedScore(_score(name))
    sizes, residuals = np.array([0, 1, 1, 4, 4]), np.array([1.0, 0.99, 0.5, 0.3, 1e-6])
    expected = [score.exact.shrinkage(int(k), np.array([r]))[0] for k, r in zip(sizes, residuals, strict=True)]
    assert score.shrinkage(sizes, residuals) == pytest.approx(expected, abs=1e-8)
