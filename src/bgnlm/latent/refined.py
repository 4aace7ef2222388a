"""What a Laplace approximation leaves out where one chain of effects, or none, is beside a few coefficients.

With u the coefficients in units of the normal approximation, the ratio of the posterior to that approximation has a
mean rho(u) over the effects, which quadrature along the chain gives; what is left is the mean of rho over standard
normal u. That is taken one axis at a time, around the place where rho(u) times the density of u is largest.
"""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.kernels import chain_ratio
from bgnlm.kernels.families import row_terms, row_values

if TYPE_CHECKING:
    from bgnlm.latent.inner import Inner, InnerLaplace

MOST_COEFFICIENTS = 12
_N_NODES = 16
_MORE_NODES = 61
_FEW_NATS = 10.0  # that fewer nodes are enough for
_STEP = 0.02  # of differences
_ENOUGH = 0.02  # nats, twice over, to the top of a parabola
_NEAR = 0.6  # standard deviations to the largest value within which there is no need to go there
_BENT = 0.3  # nats by which a line may differ from a parabola two standard deviations away
_MAX_STEPS = 20
_ROUGH = 0.2  # standard deviations between points on a line that is not a parabola
_BELOW = 12.0  # nats below the largest value where a line ends
_LONGEST_LINE = 80
_ROOT_3 = math.sqrt(3.0)


def applies(inner: "InnerLaplace") -> bool:
    """Whether effects are one chain, or independent, or there are none; and coefficients are few."""
    is_chain = len(inner.layout.along) <= 1 and inner.layout.width <= 2
    return is_chain and inner.n_border <= MOST_COEFFICIENTS


def log_ratio(inner: "InnerLaplace", hyperparameters: FloatArray, there: "Inner") -> float:
    """Logarithm of the marginal likelihood given hyperparameters minus its Laplace approximation; NaN if it fails."""
    found = _log_mean(inner, *_ratios(inner, hyperparameters, there, _N_NODES))
    if abs(found) < _FEW_NATS or not inner.layout.along:
        return found
    return _log_mean(inner, *_ratios(inner, hyperparameters, there, _MORE_NODES))


def _log_mean(
    inner: "InnerLaplace", rho: Callable[[FloatArray], float], slopes: Callable[[FloatArray], FloatArray]
) -> float:
    """Logarithm of the mean of the ratio over standard normal coefficients."""
    size = inner.n_border

    def height(u: FloatArray) -> float:
        return rho(u) - 0.5 * float(u @ u)

    centre, axes = np.zeros(size), np.eye(size)
    gradient = slopes(centre)
    if not float(np.linalg.norm(gradient)) < _NEAR:
        centre, axes = _summit(height, slopes, gradient)
    top, ends = height(centre), _ends(height, centre, axes)
    total = top + math.log(abs(float(np.linalg.det(axes))))
    for axis, (up, down) in zip(axes.T, ends - top + 1.5, strict=True):
        if abs(up + down) < _BENT and abs(up - down) < 4.0 * _BENT:
            total += math.log((4.0 + math.exp(up) + math.exp(down)) / 6.0)
        else:
            total += _line(height, centre, axis, top)
    return total if math.isfinite(total) else math.nan


def _ratios(
    inner: "InnerLaplace", hyperparameters: FloatArray, there: "Inner", n_nodes: int
) -> tuple[Callable[[FloatArray], float], Callable[[FloatArray], FloatArray]]:
    """The logarithm of rho, and its derivative."""
    layout, code, dispersion = inner.layout, inner.response.family.code, inner.split(hyperparameters)[1]
    eta = inner.linear_predictor(there.mode)
    n_obs = len(eta)
    expansion = np.empty((3, n_obs))
    row_values(code, dispersion, inner.y, inner.weights, eta, expansion[0])
    row_terms(code, dispersion, inner.y, inner.weights, eta, expansion[1], expansion[2])
    if layout.along:
        starts, loadings = layout.starts, np.ascontiguousarray(layout.loadings[:, 0])
        deviations, correlations = np.empty(len(starts) - 1), np.zeros(len(starts) - 1)
        chain_ratio.chain_moments(there.factors.band, *inner.rows, deviations, correlations)
    else:
        starts, loadings = np.arange(n_obs + 1), np.zeros(n_obs)
        deviations = correlations = np.zeros(n_obs)
    scores = inner.border_scores(there)
    fixed = code, dispersion, inner.y, inner.weights, eta, expansion
    chain = loadings, starts, deviations, correlations, *_rule(n_nodes if layout.along else 1)

    def rho(u: FloatArray) -> float:
        return float(chain_ratio.log_mean_ratio(*fixed, scores @ u, *chain, np.empty(0)))

    def slopes(u: FloatArray) -> FloatArray:
        each = np.empty(n_obs)
        chain_ratio.log_mean_ratio(*fixed, scores @ u, *chain, each)
        return np.asarray(each @ scores)

    return rho, slopes


@lru_cache
def _rule(size: int) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Gauss-Hermite nodes and weights for the standard normal density, and orthonormal polynomials at the nodes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(size)
    basis = np.ones((size, size))
    for j in range(1, size):
        basis[j] = (nodes * basis[j - 1] - math.sqrt(j - 1.0) * basis[max(j - 2, 0)]) / math.sqrt(j)
    return nodes, weights / weights.sum(), basis


def _ends(height: Callable[[FloatArray], float], centre: FloatArray, axes: FloatArray) -> FloatArray:
    """Heights at the outer nodes of a rule with three on each axis."""
    return np.array([[height(centre + side * axis) for side in (_ROOT_3, -_ROOT_3)] for axis in axes.T])


def _summit(
    height: Callable[[FloatArray], float], slopes: Callable[[FloatArray], FloatArray], gradient: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The highest place from 0 on, given the gradient there, and axes of the normal approximation."""
    place = np.zeros(len(gradient))
    value, axes = height(place), _axes(slopes, place, gradient)
    for _ in range(_MAX_STEPS):
        step = axes @ (axes.T @ gradient)
        if float(gradient @ step) < _ENOUGH:
            break
        step *= min(1.0, 3.0 / float(np.abs(step).max()))
        while not (further := height(place + step)) > value and float(np.abs(step).max()) > 1e-3:
            step *= 0.4
        if not further > value:
            break
        place, value, before = place + step, further, gradient
        gradient = slopes(place) - place
        if float(np.abs(gradient).max()) > 0.3 * float(np.abs(before).max()):  # the curvature is another one here
            axes = _axes(slopes, place, gradient)
    return place, _axes(slopes, place, gradient)


def _axes(slopes: Callable[[FloatArray], FloatArray], place: FloatArray, gradient: FloatArray) -> FloatArray:
    """Factor of the inverse of the negative second derivatives, by differences of the gradient."""
    steps = _STEP * np.eye(len(place))
    curvature = np.array([gradient - slopes(place + step) + place + step for step in steps]) / _STEP
    values, vectors = np.linalg.eigh(0.5 * (curvature + curvature.T))
    # Triangular: those before it follow a coefficient, and one of which the data tell little has an axis of its own.
    inverse = (vectors / np.clip(values, 0.02, None)) @ vectors.T
    return np.asarray(np.linalg.cholesky(inverse[::-1, ::-1])[::-1, ::-1])


def _line(height: Callable[[FloatArray], float], centre: FloatArray, axis: FloatArray, top: float) -> float:
    """Logarithm of the integral along a line in units of that of a parabola, by the trapezoidal rule."""
    total = 1.0
    for side in (1.0, -1.0):
        for k in range(1, _LONGEST_LINE):
            value = height(centre + side * k * _ROUGH * axis) - top
            total += math.exp(min(value, 700.0))
            if not value > -_BELOW:
                break
    return math.log(total * _ROUGH / math.sqrt(2.0 * math.pi))
