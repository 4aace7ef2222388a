"""Damped Fisher scoring on problems whose solution is known."""

import math

import numpy as np
import pytest

from bgnlm.search.fisher_scoring import Expansion, minimise


def least_squares(residuals, jacobian):
    """The loss of residuals in standard deviations of 0.01, near given parameters."""

    def expand(parameters):
        r, J = 100.0 * residuals(parameters), 100.0 * jacobian(parameters)
        return Expansion(0.5 * float(r @ r), J.T @ r, J.T @ J)

    return expand


@pytest.mark.parametrize("n_linear", [0, 1, 3])
def test_a_linear_problem(n_linear):
    rng = np.random.default_rng(1)
    design, y = rng.normal(size=(40, 3)), rng.normal(size=40)
    exact = np.linalg.lstsq(design, y, rcond=None)[0]
    loss, found = minimise(least_squares(lambda b: design @ b - y, lambda _: design), np.zeros(3), n_linear)
    assert found == pytest.approx(exact, abs=1e-3)
    assert loss == pytest.approx(0.5 * np.square(100.0 * (design @ exact - y)).sum(), abs=2e-3)


def test_a_bent_valley():
    expand = least_squares(
        lambda p: np.array([10.0 * (p[1] - p[0] ** 2), 1.0 - p[0]]),
        lambda p: np.array([[-20.0 * p[0], 10.0], [-1.0, 0.0]]),
    )
    loss, found = minimise(expand, np.array([-1.2, 1.0]), 0)
    assert loss < 2e-3
    assert found == pytest.approx([1.0, 1.0], abs=1e-2)


def test_a_parameter_without_influence_stays():
    expand = least_squares(lambda p: np.array([p[0] - 3.0]), lambda _: np.array([[1.0, 0.0]]))
    _, found = minimise(expand, np.array([0.0, 7.0]), 0)
    assert found == pytest.approx([3.0, 7.0], abs=1e-3)


def test_where_there_is_no_loss_it_does_not_go():
    """log(p) = -5 from a start whose first steps lead to p < 0."""
    inside = least_squares(lambda p: np.log(p) + 5.0, lambda p: np.diag(1.0 / p))

    def expand(p):
        return inside(p) if p[0] > 0.0 else Expansion(math.inf, np.zeros(1), np.eye(1))

    assert minimise(expand, np.array([20.0]), 0)[1] == pytest.approx([math.exp(-5.0)], rel=1e-2)
    loss, found = minimise(expand, np.array([-1.0]), 0)
    assert math.isinf(loss)
    assert found == -1.0
