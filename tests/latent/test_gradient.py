"""Gradients of the log integrand against differences of its values."""

import numpy as np
import pytest

from bgnlm.kernels import laplace_gradient
from bgnlm.latent import Bridge
from bgnlm.latent.fields import AR1, RW1
from bgnlm.latent.hyperpriors import Gamma
from bgnlm.latent.inner import SlopePrior
from tests.latent.cases import LAYOUTS, build
from tests.naive_latent import ALL_PAIRS, Case, placed

FIXED, INTEGRATED = SlopePrior(precision=0.1), SlopePrior(precision=None)
STANDARDISED = SlopePrior(precision=0.7, standardised=True)
POISSON = ("poisson", "log")
EXACT = 1e-16


def _both(inner, hyperparameters, step=1e-3):
    """The gradient, and central differences."""
    there = inner.evaluate(hyperparameters, inner.start(), EXACT)
    differences = [
        inner.evaluate(hyperparameters + move, there.mode, EXACT).log_integrand
        - inner.evaluate(hyperparameters - move, there.mode, EXACT).log_integrand
        for move in step * np.eye(len(hyperparameters))
    ]
    return inner.gradient(hyperparameters, there), np.array(differences) / (2 * step)


@pytest.mark.parametrize("slopes", [FIXED, INTEGRATED, STANDARDISED], ids=["fixed", "integrated", "standardised"])
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("pair", ALL_PAIRS, ids="-".join)
def test_gradient(pair, layout, slopes):
    case, hyperparameters = build(pair, layout, slopes=slopes)
    ours, expected = _both(case.inner(), hyperparameters)
    assert len(ours) == len(hyperparameters)
    assert ours == pytest.approx(expected, abs=3e-5)


class Ridge:
    """A field of one's own, with a wide band and no derivatives: all pairs of positions are alike."""

    column, slope = "pos", None
    by_label = is_pinned = False
    n_hyperparameters = 2
    starts = ((0.5, 0.0), (8.0, 0.0))
    prior = Gamma(2.0, 1.0)

    def times(self, positions):
        return positions

    def log_prior(self, hyperparameters):
        return self.prior.log_density(hyperparameters[0]) - 0.5 * float(hyperparameters[1]) ** 2

    def precision(self, hyperparameters, positions):
        share = 1.0 / (1.0 + np.exp(-hyperparameters[1]))
        n = len(positions)
        matrix = np.linalg.inv(np.exp(-hyperparameters[0]) * ((1 - share) * np.eye(n) + share))
        band = np.zeros((n, n))
        for d in range(n):
            band[d:, d] = np.diagonal(matrix, -d)
        return band

    def describe(self, hyperparameters):
        return {"sd": float(np.exp(-0.5 * hyperparameters[0]))}

    def bridge(self, hyperparameters, positions, wanted):  # noqa: ARG002
        zeros = np.zeros(len(wanted))
        return Bridge(zeros.astype(int), zeros.astype(int), zeros, zeros, zeros + np.exp(-hyperparameters[0]))


@pytest.mark.parametrize("others", [[], [RW1("pos")], [AR1("time")]], ids=["alone", "in one band", "beside"])
def test_gradient_of_a_field_of_ones_own(others):
    rng = np.random.default_rng(3)
    n = 24
    places = {"pos": np.arange(n) % 8, "time": np.arange(n)}
    components = tuple(placed(c, places[c.column]) for c in (Ridge(), *others))
    case = Case(POISSON, rng.poisson(2.0, size=n).astype(float), components, rng.normal(size=(n, 1)))
    hyperparameters = np.array([0.4, 0.3, *others[0].starts[0]] if others else [0.4, 0.3])
    ours, expected = _both(case.inner(), hyperparameters)
    assert ours == pytest.approx(expected, abs=3e-5)


def test_compiled_kernels_equal_their_interpreted_form(monkeypatch):
    case, hyperparameters = build(POISSON, "ar1, groups beside")
    inner = case.inner()
    there = inner.evaluate(hyperparameters, inner.start(), EXACT)
    compiled = inner.gradient(hyperparameters, there)
    for name in ("invert_factor", "near_covariances", "covariances", "solve_with_rows"):
        monkeypatch.setattr(laplace_gradient, name, getattr(laplace_gradient, name).py_func)
    assert inner.gradient(hyperparameters, there) == pytest.approx(compiled, abs=1e-9)
