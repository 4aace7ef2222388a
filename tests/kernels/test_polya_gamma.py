"""Polya-Gamma variables against their moments, and one way to draw them against the other."""

import numpy as np
import pytest
from scipy.stats import ks_2samp

from bgnlm.kernels.polya_gamma import draw_all, draw_one, draw_sum, mean_of_one

N_DRAWS = 40_000


def _draws(b, z, seed=1):
    out = np.empty(N_DRAWS)
    draw_all(np.random.default_rng(seed), np.full(N_DRAWS, b), np.full(N_DRAWS, z), out)
    return out


def _variance(b, z):
    return b / 24.0 if z == 0.0 else b / (4.0 * z**3) * (np.sinh(z) - z) / np.cosh(0.5 * z) ** 2


@pytest.mark.parametrize("z", [0.0, 0.4, -3.0, 9.0])
@pytest.mark.parametrize("b", [1.0, 0.3, 2.5, 40.0])
def test_mean_and_variance(b, z):
    draws, variance = _draws(b, z), _variance(b, abs(z))
    mean = b / 4.0 if z == 0.0 else b * np.tanh(z / 2.0) / (2.0 * z)
    assert draws.min() > 0.0
    assert draws.mean() == pytest.approx(mean, abs=4.0 * np.sqrt(variance / N_DRAWS))
    assert draws.var() == pytest.approx(variance, rel=0.1)


@pytest.mark.parametrize("z", [0.0, 1.0, 6.0])
def test_both_ways_draw_from_one_distribution(z):
    rng = np.random.default_rng(2)
    sums = np.array([draw_sum(rng, 1.0, z) for _ in range(8000)])
    assert ks_2samp(_draws(1.0, z)[:8000], sums).pvalue > 1e-3
    assert ks_2samp(_draws(1.0, z + 1.0)[:8000], sums).pvalue < 1e-3


@pytest.mark.parametrize("z", [1e-9, 60.0, 700.0, -1e4])
def test_extreme_predictors(z):
    rng = np.random.default_rng(3)
    draws = np.array([draw_one(rng, z) for _ in range(2000)])
    assert np.isfinite(draws).all()
    assert draws.mean() == pytest.approx(mean_of_one(z), rel=0.1)


def test_interpreted_is_compiled():
    compiled, plain = np.random.default_rng(4), np.random.default_rng(4)
    for z in (0.3, 2.0, 8.0):
        assert draw_one(compiled, z) == pytest.approx(draw_one.py_func(plain, z), rel=1e-12)
        assert draw_sum(compiled, 1.5, z) == pytest.approx(draw_sum.py_func(plain, 1.5, z), rel=1e-12)
