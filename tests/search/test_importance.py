"""Integrals by importance sampling, where the integral is known."""

import math

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid

from bgnlm.features.weight_symmetries import SignedPermutation, generated
from bgnlm.search import importance
from bgnlm.search.importance import (
    Mode,
    Proposal,
    around,
    climb,
    distinct_modes,
    integrate,
    log_normal,
    pareto_shape,
)

CONSTANT = -1234.5  # log of all integrals: likelihoods are far from 1
TOLERANCE = 0.05


def identity(size):
    return SignedPermutation(np.arange(size), np.ones(size))


def signs(size):
    """The group of a change of all signs."""
    return [identity(size), identity(size)._replace(signs=-np.ones(size))]


def found(log_density, starts, symmetries=None, seed=0, deviation=1.0, tolerance=TOLERANCE, most_draws=20_000):
    """All steps one after the other, as for a model."""
    symmetries = [identity(len(starts[0]))] if symmetries is None else symmetries
    modes = [climb(log_density, np.asarray(start, float), deviation) for start in starts]
    proposal = around(distinct_modes([mode for mode in modes if mode is not None], symmetries), symmetries, deviation)
    return integrate(log_density, proposal, np.random.default_rng(seed), tolerance, most_draws)


def check(log_density, starts, symmetries=None, n_seeds=30, largest=1.0, **settings):
    """The true value is within two standard errors, nearly always, and these are as small as they should be."""
    results = [found(log_density, starts, symmetries, seed, **settings) for seed in range(n_seeds)]
    values = np.array([result.log_value for result in results])
    errors = np.array([result.standard_error for result in results])
    assert errors.max() <= largest * settings.get("tolerance", TOLERANCE)
    assert (np.abs(values - CONSTANT) <= 2.0 * errors).mean() >= 0.8, (values - CONSTANT) / errors
    assert abs(values.mean() - CONSTANT) <= 4.0 * errors.mean() / math.sqrt(n_seeds)
    return results


def covariance(size, seed):
    root = np.random.default_rng(seed).normal(size=(size, size)) + np.eye(size)
    return 0.05 * root @ root.T / size + 0.01 * np.eye(size)


def normal_mixture(size, middles, shares=(0.7, 0.3)):
    parts = [
        (math.log(share), stats.multivariate_normal(middle, covariance(size, k)))
        for k, (middle, share) in enumerate(zip(middles, shares, strict=True))
    ]

    def log_density(weights):
        each = [share + np.reshape(part.logpdf(weights), len(weights)) for share, part in parts]
        return CONSTANT + np.logaddexp.reduce(each)

    return log_density


@pytest.mark.parametrize("size", [1, 2, 3, 5])
def test_mixtures_of_normal_distributions(size):
    middles = np.random.default_rng(size).normal(size=(2, size))
    check(normal_mixture(size, middles), middles + 0.1)


def test_a_mode_that_was_not_looked_for_is_covered_by_the_prior():
    check(normal_mixture(1, [[1.0], [-1.2]]), [[1.1]], tolerance=0.01, largest=2.0)


@pytest.mark.parametrize("size", [1, 3])
def test_heavy_tails(size):
    distribution = stats.multivariate_t(np.full(size, 0.3), 0.04 * np.eye(size), df=3)
    check(lambda weights: CONSTANT + np.reshape(distribution.logpdf(weights), len(weights)), [np.zeros(size)])


@pytest.mark.parametrize("width", [0.3, 0.15])
def test_a_curved_ridge(width):
    """The second weight follows the square of the first: normal distributions at the mode hardly cover it."""

    def log_density(weights):
        first, second = weights.T
        return CONSTANT + stats.norm.logpdf(first, 0.0, 0.7) + stats.norm.logpdf(second, np.square(first), width)

    check(log_density, [np.zeros(2)], n_seeds=15, largest=2.0)


def test_a_box():
    """No density outside, no slope inside."""

    def log_density(weights):
        inside = ((weights > [0.1, -0.6]) & (weights < [0.9, 0.2])).all(axis=1)
        return np.where(inside, CONSTANT - 2.0 * math.log(0.8), np.nan)

    check(log_density, [[0.3, 0.0]])


def test_steps():
    heights = np.array([0.1, 3.0, 1.0, 0.0, 0.5])  # of stretches of length 0.4 from -1 on

    def log_density(weights):
        place = np.clip(np.floor((weights[:, 0] + 1.0) / 0.4).astype(int) + 1, 0, 6)
        with np.errstate(divide="ignore"):
            return CONSTANT + np.log(np.concatenate([[0.0], heights / (0.4 * heights.sum()), [0.0]]))[place]

    check(log_density, [[-0.5]])


@pytest.mark.parametrize("distance", [0.1, 0.6, 8.0])
def test_symmetric_modes(distance):
    """From one mode, whether the other one is far away or so close that both are one."""
    middle = distance * np.array([0.6, -0.8])
    log_density = normal_mixture(2, [middle, -middle], (0.5, 0.5))

    def symmetric(weights):
        return np.logaddexp(log_density(weights), log_density(-weights)) - math.log(2.0)

    results = check(symmetric, [middle], signs(2))
    assert all(len(result.modes) == 1 for result in results)
    if distance == 8.0:  # out of reach of the prior: one of two modes is half of the integral
        alone = found(symmetric, [middle])
        assert alone.log_value == pytest.approx(CONSTANT - math.log(2.0), abs=0.2)
        drawn = results[0].resampled(np.random.default_rng(1), 50)
        assert (drawn @ middle > 0.0).all()


def test_permutations_of_weights():
    """Two units that can be exchanged, each of any sign: eight images."""
    size = 4
    exchange = identity(size)._replace(order=np.array([2, 3, 0, 1]))
    flips = [identity(size)._replace(signs=np.repeat(pair, 2)) for pair in ([-1.0, 1.0], [1.0, -1.0])]
    group = generated(identity(size), [exchange, *flips])
    middle = np.array([1.0, 0.5, -0.4, 0.8])
    log_density = normal_mixture(size, [each.apply(middle) for each in group], [1.0 / 8.0] * 8)

    def symmetric(weights):
        return np.logaddexp.reduce([log_density(each.apply(weights)) for each in group]) - math.log(8.0)

    check(symmetric, [middle], group, n_seeds=15)


def test_the_mode_and_its_hessian():
    precision = np.linalg.inv(covariance(3, 5))
    middle = np.array([0.5, -1.0, 2.0])

    def log_density(weights):
        return -0.5 * np.einsum("ij,jk,ik->i", weights - middle, precision, weights - middle)

    mode = climb(log_density, np.zeros(3), 1.0)
    assert mode.point == pytest.approx(middle, abs=0.02)
    assert mode.factor @ mode.factor.T == pytest.approx(covariance(3, 5), rel=1e-6)
    expected = 0.5 * np.linalg.slogdet(2.0 * np.pi * covariance(3, 5))[1]
    assert mode.log_mass == pytest.approx(expected, abs=0.02)


def test_the_hessian_of_a_function_that_is_no_parabola():
    """Log density -cosh(w / s) / s has the second derivative -1 / s^3 at 0."""
    for scale in (1.0, 0.1, 0.01):
        mode = climb(lambda weights, s=scale: -(np.cosh(weights[:, 0] / s) / s), np.array([scale]), 1.0)
        assert mode.point[0] == pytest.approx(0.0, abs=0.1 * scale**1.5)
        assert mode.factor[0, 0] ** 2 == pytest.approx(scale**3, rel=0.02)


def test_directions_without_a_maximum_count_as_those_of_the_prior():
    mode = climb(lambda weights: -0.5 * np.square(weights[:, 0] / 0.1), np.array([0.05, 0.7]), 2.0)
    assert np.sqrt(np.diag(mode.factor @ mode.factor.T)) == pytest.approx([0.1, 2.0 * math.sqrt(2.0)], rel=1e-3)


def test_a_climb_needs_a_start():
    assert climb(lambda weights: np.full(len(weights), -np.inf), np.zeros(2), 1.0) is None
    assert climb(lambda weights: np.full(len(weights), np.nan), np.zeros(2), 1.0) is None


def test_distinct_modes():
    best, image, other, negligible = (
        Mode(np.array([place]), np.array([[0.1]]), height)
        for place, height in ((1.0, 0.0), (-1.01, -0.1), (0.3, -1.0), (3.0, -20.0))
    )
    assert distinct_modes([negligible, other, image, best], signs(1)) == (best, other)
    assert distinct_modes([best, image], [identity(1)]) == (best, image)
    assert distinct_modes([], signs(1)) == ()


def test_the_density_of_the_proposal():
    """It integrates to 1, is symmetric, and is that of draws and their images."""
    modes = (Mode(np.array([0.8]), np.array([[0.2]]), 0.0), Mode(np.array([-0.1]), np.array([[0.5]]), -1.0))
    proposal = around(modes, signs(1), 1.5)
    grid = np.linspace(-30.0, 30.0, 30_001)[:, None]
    density = np.exp(proposal.log_density(grid))
    assert trapezoid(density, grid[:, 0]) == pytest.approx(1.0, abs=1e-4)
    assert density == pytest.approx(density[::-1], rel=1e-9)
    rng = np.random.default_rng(1)
    draws = proposal.draw(rng, 20_000)
    draws *= rng.choice([-1.0, 1.0], size=draws.shape)
    cumulative = np.cumsum(density) * (grid[1, 0] - grid[0, 0])
    assert stats.kstest(draws[:, 0], lambda x: np.interp(x, grid[:, 0], cumulative)).pvalue > 1e-3
    folded = proposal.folded(draws)
    assert np.abs(folded) == pytest.approx(np.abs(draws))
    close = (np.abs(folded) > 0.6) & (np.abs(folded) < 1.0)
    assert (folded[close] > 0.0).all()


def test_without_modes_the_proposal_is_the_prior():
    deviation = 0.7
    proposal = around((), signs(2), deviation)
    assert isinstance(proposal, Proposal)
    draws = proposal.draw(np.random.default_rng(1), 4000)
    assert draws.std(axis=0) == pytest.approx([deviation] * 2, rel=0.05)
    assert proposal.log_density(draws) == pytest.approx(log_normal(draws, deviation))
    assert log_normal(draws, deviation) == pytest.approx(stats.norm.logpdf(draws, scale=deviation).sum(axis=1))

    def log_density(weights):
        likelihood = stats.norm.logpdf(weights, 0.3, 0.5).sum(axis=1)
        return CONSTANT - constant + likelihood + log_normal(weights, deviation)

    constant = 2.0 * stats.norm.logpdf(0.3, scale=math.hypot(0.5, deviation))
    rngs = map(np.random.default_rng, range(30))
    results = [integrate(log_density, around((), [identity(2)], deviation), rng, 0.05, 20_000) for rng in rngs]
    scores = np.array([(result.log_value - CONSTANT) / result.standard_error for result in results])
    assert (np.abs(scores) <= 2.0).mean() >= 0.8
    assert all(result.modes == () for result in results)


@pytest.mark.parametrize("nothing", [np.nan, -np.inf])
def test_nothing_finite(nothing):
    def log_density(weights):
        return np.full(len(weights), nothing)

    mode = Mode(np.zeros(2), np.eye(2), 0.0)
    for modes in ((), (mode,)):
        result = integrate(log_density, around(modes, signs(2), 1.0), np.random.default_rng(1), 0.05, 500)
        assert result.log_value == -math.inf
        assert result.standard_error == math.inf
        assert result.pareto_k == math.inf
        assert result.effective_size == 0.0
        assert len(result.draws) == 500
        assert result.resampled(np.random.default_rng(1), 7).shape == (7, 2)


def test_undefined_in_places():
    """Half of a normal distribution: NaN elsewhere counts as no density."""

    def log_density(weights):
        value = CONSTANT + math.log(2.0) + stats.norm.logpdf(weights[:, 0], 0.0, 0.3)
        return np.where(weights[:, 0] > 0.0, value, np.nan)

    results = check(log_density, [[0.2]])
    assert all((result.draws[np.isfinite(result.log_weights)] > 0.0).all() for result in results)


def test_the_same_random_numbers_give_the_same_result():
    log_density = normal_mixture(3, np.eye(3)[:2])
    one, same, other = (found(log_density, np.eye(3)[:2], seed=seed) for seed in (1, 1, 2))
    assert one.log_value == same.log_value
    np.testing.assert_array_equal(one.draws, same.draws)
    assert one.log_value != other.log_value


def test_no_more_draws_than_allowed():
    log_density = normal_mixture(2, np.eye(2))
    for most in (100, 137, 1000):
        result = found(log_density, [[1.0, 0.0]], tolerance=1e-6, most_draws=most)
        assert len(result.draws) == len(result.log_weights) == most


def test_more_draws_make_the_error_smaller():
    log_density = normal_mixture(2, np.eye(2))
    errors = [found(log_density, np.eye(2), tolerance=tolerance).standard_error for tolerance in (0.1, 0.03, 0.01)]
    assert errors[0] <= 0.1
    assert errors[1] <= 0.03
    assert errors[2] <= 0.01


def test_draws_from_the_posterior():
    middle = np.array([0.5, -1.0])
    log_density = normal_mixture(2, [middle, middle], (0.5, 0.5))
    mixed = 0.5 * (covariance(2, 0) + covariance(2, 1))
    result = found(log_density, [middle], tolerance=0.005, most_draws=50_000)
    drawn = result.resampled(np.random.default_rng(2), 20_000)
    assert drawn.mean(axis=0) == pytest.approx(middle, abs=0.02)
    assert np.cov(drawn.T) == pytest.approx(mixed, rel=0.1, abs=0.005)


@pytest.mark.parametrize("shape", [-0.4, 0.0, 0.3, 0.7, 1.2])
def test_the_shape_of_a_tail(shape):
    """Of draws from a generalized Pareto distribution every tail has its shape; a prior of ten draws at 0.5."""
    samples = [stats.genpareto(shape).rvs(size=20_000, random_state=seed) for seed in range(20)]
    shapes = [pareto_shape(draws) for draws in samples]
    n_tail = int(3.0 * math.sqrt(20_000))
    towards = (n_tail * shape + 10.0 * 0.5) / (n_tail + 10.0)
    assert np.mean(shapes) == pytest.approx(towards, abs=0.06)
    largest = np.sort(samples[0])[-n_tail - 1 :]
    most_likely = stats.genpareto.fit(largest[1:] - largest[0], floc=0.0)[0]
    assert shapes[0] == pytest.approx((n_tail * most_likely + 10.0 * 0.5) / (n_tail + 10.0), abs=0.08)


def test_shapes_of_weights_that_tell_nothing():
    assert pareto_shape(np.ones(10)) == math.inf  # too few
    assert pareto_shape(np.ones(1000)) == 0.0
    assert pareto_shape(np.append(np.zeros(999), 1.0)) == math.inf  # one draw is all there is
    draws = stats.genpareto(0.4).rvs(size=2000, random_state=1)
    assert pareto_shape(1e-250 * draws) == pytest.approx(pareto_shape(draws), abs=1e-6)
    assert not math.isnan(pareto_shape(np.random.default_rng(1).choice([0.0, 1.0], size=500)))


def test_a_cell_is_as_good_as_all_images(monkeypatch):
    """Of many symmetries one cell is integrated over, here of eight: signs of two weights, and their exchange."""
    generators = [identity(2)._replace(signs=np.array([-1.0, 1.0])), identity(2)._replace(order=np.array([1, 0]))]
    group = generated(identity(2), generators)
    assert len(group) == 8

    def log_density(weights):
        """Normal distributions around (+-1, +-0.2) and (+-0.2, +-1), so close that cells share them."""
        centres = np.array([each.apply(np.array([1.0, 0.2])) for each in group])
        squares = np.square(weights[:, None, :] - centres).sum(axis=2) / 0.3**2
        return np.logaddexp.reduce(-0.5 * squares, axis=1) - np.log(len(group) * 2.0 * np.pi * 0.3**2)

    results = []
    for most in (16, 1):
        monkeypatch.setattr(importance, "_FEW", most)
        mode = climb(log_density, np.array([0.9, 0.3]), 1.0)
        proposal = around((mode,), group, 1.0)
        assert proposal.is_of_a_cell is (most == 1)
        results.append(integrate(log_density, proposal, np.random.default_rng(3), 0.02, 20_000))
    for integral in results:
        assert integral.standard_error <= 0.02
        assert abs(integral.log_value) < 3.0 * integral.standard_error
    # Weights in the cell are as they are, others are brought into it.
    draws = np.random.default_rng(1).normal(size=(500, 2))
    inside = proposal.folded(draws)
    assert proposal.folded(inside) == pytest.approx(inside)
    assert log_density(inside) == pytest.approx(log_density(draws))
    assert np.isfinite(proposal.log_density(inside)).all()
