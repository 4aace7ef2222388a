"""The response given its mean: variances, distribution functions, quantiles of mixtures and draws, against scipy."""

from typing import ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from bgnlm.likelihood.families import resolve_family
from bgnlm.likelihood.response import MeanMixture, draw_response, response_variance

FAMILIES = ("binomial", "poisson", "gamma", "negative_binomial")
COUNTS = ("poisson", "negative_binomial")
SIZE = 2.5
LEVELS = (1e-4, 0.05, 0.5, 0.9, 1.0 - 1e-4)


def scipy_response(name, mean, trials=1.0, size=SIZE):
    """The distribution of scipy; a share is counted in successes."""
    match name:
        case "binomial":
            return stats.binom(trials, mean)
        case "poisson":
            return stats.poisson(mean)
        case "gamma":
            return stats.gamma(size, scale=mean / size)
        case _:
            return stats.nbinom(size, size / (size + mean))


def mixture_of(name, means, weights, trials=None):
    means = np.asarray(means, dtype=float)
    weights = np.asarray(weights, dtype=float)
    trials = np.ones(means.shape[1]) if trials is None else np.asarray(trials, dtype=float)
    return MeanMixture(resolve_family(name, None), means, weights, np.full((len(means), 1), SIZE), trials)


def example(name, n_means, n_rows=6, seed=0):
    """Means, weights and numbers of trials of a mixture."""
    rng = np.random.default_rng(seed)
    means = (
        rng.uniform(0.02, 0.98, (n_means, n_rows))
        if name == "binomial"
        else np.exp(rng.normal(0, 2, (n_means, n_rows)))
    )
    weights = rng.dirichlet(np.ones(n_means), n_rows).T
    trials = np.array([1.0, 2.0, 5.0, 40.0, 1000.0, 10**6])[:n_rows]
    return means, weights, trials


def slow_distribution(name, y, means, weights, trials):
    return sum(w * scipy_response(name, m, trials).cdf(y) for m, w in zip(means, weights, strict=True))


@pytest.mark.parametrize("n_means", [1, 7])
@pytest.mark.parametrize("name", FAMILIES)
def test_distribution_functions(name, n_means):
    means, weights, trials = example(name, n_means)
    mixture = mixture_of(name, means, weights, trials)
    for y in (0.0, 1.0, 2.0, 7.0, 100.0):
        expected = [slow_distribution(name, y, means[:, i], weights[:, i], trials[i]) for i in range(means.shape[1])]
        assert mixture.distribution(np.full(means.shape[1], y)) == pytest.approx(expected, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_means", [1, 7, 32])
@pytest.mark.parametrize("name", ["binomial", *COUNTS])
def test_quantiles_of_whole_numbers_are_the_smallest_that_do(name, n_means, level):
    means, weights, trials = example(name, n_means)
    scale = trials if name == "binomial" else np.ones(6)
    found = mixture_of(name, means, weights, trials).quantile(level) * scale
    assert np.allclose(found, np.round(found))
    for i, y in enumerate(np.round(found).tolist()):
        arguments = means[:, i], weights[:, i], trials[i]
        assert slow_distribution(name, y, *arguments) >= level - 1e-12
        assert y == 0.0 or slow_distribution(name, y - 1.0, *arguments) < level + 1e-12


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("name", ["binomial", *COUNTS])
def test_quantiles_of_one_mean_are_those_of_scipy(name, level):
    means, weights, trials = example(name, 1, seed=1)
    scale = trials if name == "binomial" else np.ones(6)
    expected = [scipy_response(name, means[0, i], trials[i]).ppf(level) for i in range(6)]
    assert mixture_of(name, means, weights, trials).quantile(level) * scale == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("n_means", [1, 7, 32])
def test_quantiles_of_gamma_responses(n_means, level):
    means, weights, _ = example("gamma", n_means)
    found = mixture_of("gamma", means, weights).quantile(level)
    for i, y in enumerate(found.tolist()):
        below = slow_distribution("gamma", y, means[:, i], weights[:, i], 1.0)
        assert below == pytest.approx(level, abs=1e-7, rel=1e-4)
    if n_means == 1:
        assert found == pytest.approx(stats.gamma.ppf(level, SIZE, scale=means[0] / SIZE), rel=1e-6)


@settings(deadline=None, max_examples=50)
@given(
    name=st.sampled_from(COUNTS),
    means=st.lists(st.floats(1e-6, 1e6), min_size=1, max_size=5),
    level=st.floats(0.001, 0.999),
)
def test_quantiles_of_any_means(name, means, level):
    weights = np.full(len(means), 1.0 / len(means))
    y = mixture_of(name, np.array(means)[:, None], weights[:, None]).quantile(level)[0]
    assert slow_distribution(name, y, means, weights, 1.0) >= level - 1e-9
    assert y == 0.0 or slow_distribution(name, y - 1.0, means, weights, 1.0) < level + 1e-9


@pytest.mark.parametrize("name", FAMILIES)
def test_a_row_does_not_depend_on_the_others(name):
    means, weights, trials = example(name, 7)
    mixture = mixture_of(name, means, weights, trials)
    together = mixture.quantile(0.8)
    alone = [mixture.take(np.array([i])).quantile(0.8)[0] for i in range(6)]
    assert together == pytest.approx(alone, rel=1e-8)


@pytest.mark.parametrize("name", FAMILIES)
def test_quantiles_ascend_with_the_level(name):
    mixture = mixture_of(name, *example(name, 7))
    values = np.array([mixture.quantile(level) for level in LEVELS])
    assert (np.diff(values, axis=0) >= 0.0).all()


def test_shares_that_are_certain():
    means, half = np.array([[0.0, 1.0, 0.0], [0.0, 1.0, 1.0]]), np.full((2, 3), 0.5)
    mixture = mixture_of("binomial", means, half, [10.0, 10.0, 10.0])
    assert mixture.quantile(0.3).tolist() == [0.0, 1.0, 0.0]
    assert mixture.quantile(0.7).tolist() == [0.0, 1.0, 1.0]


@pytest.mark.parametrize("name", COUNTS)
def test_means_next_to_nothing(name):
    assert mixture_of(name, [[0.0], [1e-300]], [[0.5], [0.5]]).quantile(0.999).tolist() == [0.0]


class _Impatient(MeanMixture):
    """Gives up where a search does not end."""

    n_calls: ClassVar = [0]

    def distribution(self, y):
        self.n_calls[0] += 1
        assert self.n_calls[0] < 2000
        return super().distribution(y)

    def take(self, rows):
        return _Impatient(self.family, self.means[:, rows], self.weights[:, rows], self.dispersions, self.trials[rows])


@pytest.mark.parametrize("mean", [1e12, 1e17, 1e20, 1e40, 1e100])
@pytest.mark.parametrize("name", COUNTS)
def test_counts_beyond_the_whole_numbers_of_a_computer(name, mean):
    _Impatient.n_calls[0] = 0
    family = resolve_family(name, None)
    mixture = _Impatient(
        family, np.array([[0.9 * mean], [1.1 * mean]]), np.full((2, 1), 0.5), np.full((2, 1), SIZE), np.ones(1)
    )
    with np.errstate(over="ignore"):
        low, high = (float(mixture.quantile(level)[0]) for level in (0.05, 0.95))
    if name == "poisson":
        assert (low, high) == pytest.approx((0.9 * mean, 1.1 * mean), rel=1e-5)
    else:
        shares = [slow_distribution("gamma", y / mean, [0.9, 1.1], [0.5, 0.5], 1.0) for y in (low, high)]
        assert shares == pytest.approx([0.05, 0.95], abs=1e-6)


@pytest.mark.parametrize("name", FAMILIES)
def test_variance_of_the_response_is_that_of_scipy(name):
    means, weights, trials = example(name, 7)
    mean, square = (means * weights).sum(axis=0), (np.square(means) * weights).sum(axis=0)
    found = response_variance(resolve_family(name, None), mean, square, square / SIZE, trials)
    scale = trials if name == "binomial" else np.ones(6)
    for i in range(6):
        each = [scipy_response(name, m, trials[i]).var() / scale[i] ** 2 for m in means[:, i]]
        assert found[i] == pytest.approx(weights[:, i] @ each, rel=1e-9)


@pytest.mark.parametrize("name", FAMILIES)
def test_draws_have_mean_and_variance_of_the_response(name):
    rng = np.random.default_rng(5)
    n_draws, mean = 40_000, 0.3 if name == "binomial" else 2.0
    trials = np.full(n_draws, 8.0)
    draws = draw_response(rng, resolve_family(name, None), np.full(n_draws, mean), SIZE, trials)
    scale = 8.0 if name == "binomial" else 1.0
    exact = scipy_response(name, mean, 8.0)
    variance = exact.var() / scale**2
    kurtosis = float(exact.stats(moments="k"))
    assert draws.mean() == pytest.approx(exact.mean() / scale, abs=4.0 * np.sqrt(variance / n_draws))
    assert draws.var() == pytest.approx(variance, rel=4.0 * np.sqrt((kurtosis + 2.0) / n_draws))


@pytest.mark.parametrize("name", FAMILIES)
def test_draws_follow_the_distribution_function(name):
    rng = np.random.default_rng(6)
    n_draws, mean = 20_000, 0.3 if name == "binomial" else 2.0
    trials = np.full(n_draws, 8.0)
    draws = draw_response(rng, resolve_family(name, None), np.full(n_draws, mean), SIZE, trials)
    scale = 8.0 if name == "binomial" else 1.0
    for y in (0.0, 1.0, 2.0, 4.0):
        share = scipy_response(name, mean, 8.0).cdf(y)
        assert (np.round(draws * scale, 9) <= y).mean() == pytest.approx(
            share, abs=4.0 * np.sqrt(share * (1.0 - share) / n_draws) + 1e-12
        )


@pytest.mark.parametrize("name", COUNTS)
def test_draws_of_means_beyond_whole_numbers(name):
    draws = draw_response(np.random.default_rng(1), resolve_family(name, None), np.full(2000, 1e30), 1e6, np.ones(2000))
    assert np.isfinite(draws).all()
    assert draws.mean() == pytest.approx(1e30, rel=1e-3)


@pytest.mark.parametrize("shape", [0.003, 0.01, 0.1])
def test_quantiles_of_a_very_uneven_gamma_distribution(shape):
    """Low quantiles are beyond the range of numbers: 0, or what is left of them."""
    mixture = MeanMixture(
        resolve_family("gamma", None),
        np.array([[1.0], [2.0]]),
        np.full((2, 1), 0.5),
        np.full((2, 1), shape),
        np.ones(1),
    )
    low, high = (float(mixture.quantile(level)[0]) for level in (0.05, 0.999))
    assert 0.0 <= low < 1e-10
    assert mixture.distribution(np.array([high]))[0] == pytest.approx(0.999, abs=1e-6)
