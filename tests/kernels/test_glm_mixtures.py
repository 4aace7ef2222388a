"""The parts of the integral over g, and walks over models, compiled and in Python."""

import math

import numpy as np
import pytest

from bgnlm import CoefficientPrior
from bgnlm.kernels import glm_mixtures as kernels
from bgnlm.kernels import glm_walk as walks
from bgnlm.likelihood.coefficient_priors import MIXTURES
from bgnlm.likelihood.families import resolve_family
from bgnlm.likelihood.glm import glm_statistics
from bgnlm.likelihood.glm_score import RANK_TOLERANCE, GlmScore
from tests.naive_glm import simulate


def _score(prior="hyper-g/n", family="binomial", n=60, k=3, **parameters):
    y, X, weights, offset = simulate(family, resolve_family(family, None).link, n, k)
    statistics = glm_statistics(resolve_family(family, None), y, X, weights, offset)
    return GlmScore(CoefficientPrior(prior, **parameters), statistics)


def _walk(score, included, state=None, function=kernels.walk_mixtures):
    """Values without constants; `state` is (start, peaks, steps)."""
    statistics = score.statistics
    start, peaks, steps = state or (statistics.start(), *np.full((2, statistics.n_columns + 1), np.nan))
    space, nodes = walks.scratch(len(statistics.data.y), statistics.n_columns), kernels.lattice(statistics.n_columns)
    values, of_g = np.full(len(included), np.nan), np.full((len(included), 3), np.nan)
    found = np.full(len(included), -1, dtype=np.int8)
    function(
        statistics.data,
        included,
        score.mixing_prior,
        statistics.dispersion,
        RANK_TOLERANCE,
        start,
        peaks,
        steps,
        space,
        nodes,
        values,
        of_g,
        found,
    )
    return values, of_g[:, 0], found


@pytest.mark.parametrize("function", [kernels.log_density, kernels.log_density.py_func])
@pytest.mark.parametrize("name", MIXTURES)
def test_density_of_x(name, function):
    """It is normalised, and the derivative of log(1/g) that comes with it is that of u."""
    prior = _score(name).mixing_prior
    x = np.arange(-120.0, 60.0, 0.05)
    terms = np.array([function(prior, 3, value) for value in x])
    assert 0.05 * np.exp(terms[:, 2]).sum() == pytest.approx(1.0, abs=1e-6)
    middle = np.abs(x) < 8
    log_u, rate = terms[middle, :2].T
    log_inverse_g = log_u - np.log1p(-np.exp(log_u))
    assert rate[1:-1] == pytest.approx(np.gradient(log_inverse_g, 0.05)[1:-1], rel=1e-3)


@pytest.mark.parametrize("function", [kernels.extrapolate, kernels.extrapolate.py_func])
@pytest.mark.parametrize("direction", [1, -1])
@pytest.mark.parametrize("known", [1, 2, 3])
def test_extrapolation_is_exact_for_polynomials(known, direction, function):
    nodes, out = kernels.lattice(1), np.full(2, np.nan)
    polynomials = [np.polynomial.Polynomial(np.arange(1.0, 2 * known + 1)), np.polynomial.Polynomial([3.0, -2.0])]
    for node in range(len(nodes.values)):
        nodes.modes[node] = [p(node - 120) for p in polynomials]
        nodes.slopes[node] = [p.deriv()(node - 120) for p in polynomials]
    function(nodes, 120 + direction, direction, known, 2, out)
    assert out == pytest.approx([p(direction) for p in polynomials], rel=1e-10)


@pytest.mark.parametrize("function", [kernels.tail, kernels.tail.py_func])
def test_tails(function):
    nodes, j = kernels.lattice(1), np.arange(241.0) - 120
    nodes.values[:] = 5.0 - 0.7 * j
    beyond, uncertainty = function(nodes, 120, 1, 5.0)
    assert beyond == pytest.approx(np.exp(-0.7 * np.arange(1, 200)).sum())
    assert uncertainty == pytest.approx(0.1 * beyond)
    assert function(nodes, 120, -1, 5.0) == (math.inf, math.inf)  # it grows
    nodes.values[:] = -0.5 * (j / 1.1) ** 2
    beyond, uncertainty = function(nodes, 124, 1, 0.0)
    exact = np.exp(nodes.values[125:] - nodes.values[124]).sum()
    assert abs(beyond - exact) * math.exp(nodes.values[124]) < uncertainty < 1e-4


@pytest.mark.parametrize("peak", [0.75, 2.5, 6.0, 40.0])
def test_step_for_the_narrowest_integrands(peak):
    """Of exp(c x - e^x) the trapezoidal rule is right to a few 1e-7 in steps as wide as `step_for` says."""
    x = np.arange(-400.0, 12.0, kernels.step_for(peak**-0.5))
    for shift in (0.0, 0.3, 0.7):
        at = x + shift * (x[1] - x[0])
        total = math.log((x[1] - x[0]) * np.exp(peak * at - np.exp(at) - math.lgamma(peak)).sum())
        assert total == pytest.approx(0.0, abs=2e-6)


def test_top_of_a_parabola():
    nodes = kernels.lattice(1)
    nodes.values[:] = 2.0 - 0.3 * (np.arange(241.0) - 118.4) ** 2
    for function in (kernels.highest, kernels.highest.py_func):
        assert function(nodes, 110, 130) == pytest.approx((118, 118.4, 2.0))
        assert function(nodes, 119, 130)[:2] == (119, 119.0)  # at the rim nothing is known beyond
    assert kernels.begin_next(nodes, 110, 118, 130) == 113
    assert kernels.begin_next(nodes, 116, 118, 130) == 116
    nodes.values[:118] *= 0.2  # falls off slowly on this side
    assert kernels.begin_next(nodes, 100, 118, 130) == 124


@pytest.mark.parametrize("prior", ["hyper-g/n", "eb-local"])
def test_the_walk_equals_its_interpreted_form(prior):
    score = _score(prior, n=25, k=2)
    included = np.array([[False, False], [True, False], [True, True], [False, True]])
    for fast, slow in zip(
        _walk(score, included), _walk(score, included, function=kernels.walk_mixtures.py_func), strict=True
    ):
        assert fast == pytest.approx(slow, rel=1e-8)


@pytest.mark.parametrize("family", ["binomial", "poisson", "gamma"])
def test_one_model_at_a_time_from_where_the_last_one_ended(family):
    score = _score(family=family)
    steps = np.arange(40) * 5 % 8
    included = ((steps[:, None] >> np.arange(3)) & 1).astype(bool)
    expected, _, found = _walk(score, included)
    assert (found == kernels.OK).all()
    state = (score.statistics.start(), *np.full((2, 4), np.nan))
    single = np.concatenate([_walk(score, included[i : i + 1], state)[0] for i in range(40)])
    assert single == pytest.approx(expected, abs=1e-12)
    # Wherever it begins, the same model has the same value.
    assert np.ptp(single.reshape(5, 8), axis=0).max() < 3e-5


def test_a_walk_recovers_from_a_bad_start():
    score = _score()
    included = np.array([[True, True, True], [True, False, True]])
    expected, _, _ = _walk(score, included)
    start, peaks, steps = score.statistics.start(), np.full(4, -80.0), np.full(4, 0.4)
    start[:] = 1e6
    values, _, found = _walk(score, included, (start, peaks, steps))
    assert (found == kernels.OK).all()
    assert values == pytest.approx(expected, abs=3e-5)
