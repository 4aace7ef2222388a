"""Maximum likelihood where a linear predictor is not linear in its parameters: Fisher scoring, damped.

With the curvature of the likelihood in the predictor and the predictor's first derivatives each step is one of weighted
least squares; the damping is that of Levenberg and Marquardt.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray

_MOST_STEPS = 60
ENOUGH = 2e-3  # gain of a step in nats
_FIRST_DAMPING = 1.0
_GROWTH = 4.0  # of the damping where a step fails, twice as much each time in a row
_LEAST_DAMPING = 1e-8  # above what rounding leaves of a curvature of 0
_OF_LINEAR = 1e-3  # damping of parameters in which the predictor is linear, relative to that of others
_LEAST_SCALE = 1e-12  # of a parameter without influence, relative to that with the most


class Expansion(NamedTuple):
    """Minus a log-likelihood, its derivatives, and a curvature that is never negative."""

    loss: float
    slope: FloatArray
    curvature: FloatArray


def minimise(
    expand: Callable[[FloatArray], Expansion], start: FloatArray, n_linear: int, enough: float = ENOUGH
) -> tuple[float, FloatArray]:
    """Return the smallest loss that was found, and its parameters.

    Parameters
    ----------
    expand
        The loss near given parameters; inf where there is none.
    start
        Where to begin.
    n_linear
        The predictor is linear in so many of the first parameters: these can follow the others wherever they go.
    enough
        Steps end where they gain no more than this.
    """
    parameters, here = start, expand(start)
    relative = np.where(np.arange(len(start)) < n_linear, _OF_LINEAR, 1.0)
    damping, growth, scale = _FIRST_DAMPING, _GROWTH, np.zeros(len(start))
    for _ in range(_MOST_STEPS):
        # The largest so far: a direction that has become flat is no reason to leap.
        scale = np.maximum(scale, here.curvature.diagonal())
        scale = np.maximum(scale, _LEAST_SCALE * scale.max())
        step = np.linalg.solve(here.curvature + np.diag(damping * relative * scale), -here.slope)
        promised = -float(step @ (here.slope + 0.5 * here.curvature @ step))
        if not promised > enough:
            break
        there = expand(parameters + step)
        gained = here.loss - there.loss
        if gained > 0.0:
            parameters, here = parameters + step, there
            # Less where the expansion kept its promise, up to twice as much where it did not (Nielsen 1999).
            damping *= max(0.1, 1.0 - (2.0 * min(gained / promised, 1.0) - 1.0) ** 3)
            damping, growth = max(damping, _LEAST_DAMPING), _GROWTH
            if gained < enough:
                break
        else:
            damping, growth = damping * growth, 2.0 * growth
    return here.loss, parameters
