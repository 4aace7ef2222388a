"""The gradient of a Laplace approximation in the hyperparameters.

With x the mode, Q the prior precision, H the negative Hessian and l3 the third derivatives of the log-likelihood, a
derivative of Q by a hyperparameter, Q', changes the log integrand by

    -1/2 x' Q' x + 1/2 tr(Q^-1 Q') - 1/2 tr(H^-1 Q') - 1/2 r' Q' x   with r = H^-1 A' (l3 o diag(A H^-1 A'))

where A is the design: the last term is that of a mode that moves. Of a component nothing is needed but its precision,
which is differenced; so is the log-likelihood in the dispersion, at a linear predictor that stays where it is.
"""

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.kernels import banded, laplace_gradient, nested_laplace
from bgnlm.kernels.families import higher_terms, log_constants, row_terms

if TYPE_CHECKING:
    from bgnlm.latent.inner import Inner, InnerLaplace
    from bgnlm.latent.layout import Placed

_STEP = 1e-4  # of differences, in units of the hyperparameters


class _Moments(NamedTuple):
    """At the mode: near covariances in the band, covariance of the border, variances of rows, and r as above."""

    near: FloatArray
    border: FloatArray
    variances: FloatArray
    along: FloatArray
    across: FloatArray


def gradient(inner: "InnerLaplace", hyperparameters: FloatArray, there: "Inner") -> FloatArray:
    """Derivatives of the log integrand at a mode of fields and coefficients."""
    parts, dispersion, precision = inner.split(hyperparameters)
    moments = _moments(inner, dispersion, there)
    found: list[float] = []
    first = 1 + inner.n_slopes
    layout, field, border = inner.layout, there.mode.field, there.mode.border
    n_fields = len(layout.along)
    for c, (component, part) in enumerate(zip(layout.placed, parts, strict=True)):
        if c in layout.along:
            own = slice(layout.along.index(c), None, n_fields)
            weights = _weights(field[own], moments.along[own], moments.near[own, ::n_fields])
        else:
            own = slice(first, first + len(component.positions))
            weights = _weights(border[own], moments.across[own], _diagonals(moments.border[own, own]))
            first += len(component.positions)
        found += _of_component(component, part, weights)
    slopes = slice(1, 1 + inner.n_slopes)
    total = np.square(border[slopes]) + np.diag(moments.border)[slopes] + moments.across[slopes] * border[slopes]
    of_slopes = 0.5 * float(np.sum(1.0 - precision * inner.unit(dispersion) * inner.own_squares * total))
    if inner.has_dispersion:
        slope = _of_dispersion(inner, dispersion, there, moments) + inner.dispersion_prior.slope(np.log(dispersion))
        found.append(slope + (of_slopes if inner.unit(2.0) != 1.0 else 0.0))
    if inner.integrates_slopes:
        found.append(of_slopes + inner.slopes.hyperprior.slope(np.log(precision)))
    return np.array(found)


def _moments(inner: "InnerLaplace", dispersion: float, there: "Inner") -> _Moments:
    band, cross, schur = there.factors
    layout, n_obs = inner.layout, len(inner.y)
    design = inner.columns, layout.beside_place, layout.beside_loadings, layout.place, layout.loadings
    inverse, near, variances = np.empty_like(schur), np.zeros_like(band), np.empty(n_obs)
    laplace_gradient.invert_factor(schur, inverse)
    laplace_gradient.covariances(*design, band, cross, inverse, *inner.rows, near, np.empty_like(cross), variances)
    along, across = np.zeros(len(band)), np.zeros(len(schur))
    if inner.response.family.name != "gaussian":
        eta = inner.linear_predictor(there.mode)
        third, fourth = np.empty(n_obs), np.empty(n_obs)
        higher_terms(inner.response.family.code, dispersion, inner.y, inner.weights, eta, third, fourth)
        laplace_gradient.solve_with_rows(third * variances, *design, band, cross, schur, along, across)
    return _Moments(near, inverse.T @ inverse, variances, along, across)


def _weights(mode: FloatArray, move: FloatArray, covariances: FloatArray) -> FloatArray:
    """What each entry of a banded derivative of the precision counts for."""
    weights = np.zeros_like(covariances)
    weights[:, 0] = -0.5 * (covariances[:, 0] + mode * (mode + move))
    for d in range(1, covariances.shape[1]):
        products = mode[d:] * (mode[:-d] + 0.5 * move[:-d]) + 0.5 * move[d:] * mode[:-d]
        weights[d:, d] = -covariances[d:, d] - products
    return weights


def _diagonals(matrix: FloatArray) -> FloatArray:
    """A symmetric matrix as a band."""
    band = np.zeros_like(matrix)
    for d in range(len(matrix)):
        band[d:, d] = np.diagonal(matrix, -d)
    return band


def _of_component(component: "Placed", part: FloatArray, weights: FloatArray) -> list[float]:
    field, positions = component.field, component.positions
    found = []
    for j in range(len(part)):
        step = np.zeros(len(part))
        step[j] = _STEP
        up, down = (field.precision(part + side * step, positions) for side in (1.0, -1.0))
        total = float(np.sum(weights[:, : up.shape[1]] * (up - down)))
        total += 0.5 * float(banded.factorise_band(up.copy()) - banded.factorise_band(down.copy()))
        total += field.log_prior(part + step) - field.log_prior(part - step)
        found.append(total / (2.0 * _STEP))
    return found


def _of_dispersion(inner: "InnerLaplace", dispersion: float, there: "Inner", moments: _Moments) -> float:
    """Without its prior."""
    code, layout = inner.response.family.code, inner.layout
    eta, move = inner.linear_predictor(there.mode), np.empty(len(inner.y))
    nested_laplace.predict_rows(
        *(np.zeros(len(eta)), inner.columns, layout.beside_place, layout.beside_loadings),
        *(layout.place, layout.loadings, moments.along, moments.across, move),
    )
    values = []
    for side in (1.0, -1.0):
        near = float(dispersion * np.exp(side * _STEP))
        score, information = np.empty_like(eta), np.empty_like(eta)
        value = row_terms(code, near, inner.y, inner.weights, eta, score, information)
        value += log_constants(code, near, inner.y, inner.weights)
        values.append(value - 0.5 * float(moments.variances @ information) + 0.5 * float(move @ score))
    return float(values[0] - values[1]) / (2.0 * _STEP)
