"""Projections whose weights explain what a model leaves: a fifth strategy, beyond those of section 2.1.1.

The paper's strategies fit weights as if a projection were alone. Beside the features of a good model other weights
explain more: those for which g(alpha_0 + sum alpha_k F_k) explains most of the residual, as in projection pursuit
regression (Friedman and Stuetzle 1981) and in the units of a neural network. Operands that explain less than they cost
are left out again.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.features import Evaluator, Feature, Transform, project
from bgnlm.features.gradients import WeightFunction
from bgnlm.features.nodes import Projection, sort_key
from bgnlm.search.fisher_scoring import ENOUGH, Expansion, minimise

FEWEST = 2  # operands of a projection
LEFT = 1e-9  # share of a column outside the span of a model below which it adds nothing
_MUCH = 3.0  # nats
_ABOUT = 0.3  # nats that a step gains, while it is not decided which operands there are
_LARGEST_SHARE = 1.0 - 1e-12


class Unexplained(NamedTuple):
    """What a model leaves, in the metric of `root`: the residual as direction and norm, and a basis of the model."""

    root: FloatArray
    residual: FloatArray
    norm: float
    basis: FloatArray


class Pursuit:
    """Fits projections to what a model leaves.

    Parameters
    ----------
    evaluator, sample_weight
        The data: one weight above 0 for each row.
    rest
        What the model leaves of them.
    log_gain
        Nats that explaining a share of that is worth, and their derivative.
    cost
        Nats of prior that a feature costs.
    variance
        Of a normal prior of the weights, for operands that are standardised.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        sample_weight: FloatArray,
        rest: Unexplained,
        log_gain: Callable[[float], tuple[float, float]],
        cost: Callable[[Feature], float],
        variance: float,
    ) -> None:
        self._evaluator = evaluator
        self._sample_weight = sample_weight
        self._rest = rest
        self._log_gain = log_gain
        self._cost = cost
        self._precision = 1.0 / variance

    def best(self, transform: Transform, operands: Sequence[Feature], starts: FloatArray) -> Projection | None:
        """Return the projection of some of the operands that is worth most; None if there is none.

        Parameters
        ----------
        transform
            g, which has a derivative.
        operands
            What may be in the projection; they have finite columns.
        starts
            Weights to start from, an intercept first, for operands that are standardised.
        """
        operands = sorted(operands, key=sort_key)
        whole = _structure(transform, operands)
        function = self._function(whole)
        found = [self._optimised(function, weights, _ABOUT) for weights in starts]
        loss, weights = min(found, key=lambda one: one[0])
        if not math.isfinite(loss):
            return None
        while len(operands) > FEWEST:
            k = self._least_useful(function, weights)
            fewer = [*operands[:k], *operands[k + 1 :]]
            part = _structure(transform, fewer)
            smaller = self._function(part)
            loss_without, without = self._optimised(smaller, np.delete(weights, k + 1), _ABOUT)
            if loss_without - loss >= self._cost(whole) - self._cost(part):
                break
            operands, whole, function, loss, weights = fewer, part, smaller, loss_without, without
        _, weights = self._optimised(function, weights)
        return _projection(function, weights) if self._is_supported(function, weights) else None

    def again(self, projection: Projection) -> Projection | None:
        """Return a projection of the model with weights that explain much more; None if there are none.

        The model of this pursuit is the one without the projection. Weights that are a little better would make several
        features of one, which share its probability.
        """
        function = self._function(projection)
        _, weights = self._optimised(function, function.start)
        gained = self.gain(function.value(weights)) - self.gain(function.value(function.start))
        is_better = gained > _MUCH and self._is_supported(function, weights)
        return _projection(function, weights) if is_better else None

    def _function(self, projection: Projection) -> WeightFunction:
        return WeightFunction(projection, self._evaluator, self._sample_weight, every_layer=False)

    def _optimised(
        self, function: WeightFunction, weights: FloatArray, enough: float = ENOUGH
    ) -> tuple[float, FloatArray]:
        return minimise(lambda at: self.expansion(function, at), weights, 0, enough)

    def _least_useful(self, function: WeightFunction, weights: FloatArray) -> int:
        """The operand without which the loss is least, other weights being as they are."""
        losses = []
        for k in range(1, len(weights)):
            without = weights.copy()
            without[k] = 0.0
            losses.append(0.5 * self._precision * float(without @ without) - self.gain(function.value(without)))
        return int(np.argmin(losses))

    def gain(self, column: FloatArray) -> float:
        """Nats that a column is worth beside the model; minus infinity if it adds nothing."""
        left = self._left(column, _peak(column))
        if left is None:
            return -math.inf
        share = float(self._rest.residual @ left) ** 2 / float(left @ left)
        return self._log_gain(min(share, _LARGEST_SHARE))[0]

    def _left(self, column: FloatArray, peak: float) -> FloatArray | None:
        """What the model does not explain of a column whose largest value becomes 1; None if that is nothing."""
        if not 0.0 < peak < math.inf:
            return None
        rest = self._rest
        weighted = rest.root * (column / peak)
        left = weighted - rest.basis @ (rest.basis.T @ weighted)
        return left if float(left @ left) > LEFT * float(weighted @ weighted) else None

    def _is_supported(self, function: WeightFunction, weights: FloatArray) -> bool:
        """Whether as many rows as weights are told from others: with so many, a few outliers always can be."""
        column = function.value(weights)
        left = self._left(column, _peak(column))
        if left is None:
            return False
        shares = np.square(left) / float(left @ left)
        return bool(1.0 / float(shares @ (shares / self._sample_weight)) >= len(weights))

    def expansion(self, function: WeightFunction, weights: FloatArray) -> Expansion:
        """Minus the nats gained, with the curvature of least squares whose linear part is solved for."""
        rest = self._rest
        column, gradient = function.value_and_gradient(weights)
        peak = _peak(column)
        left = self._left(column, peak)
        if left is None or not np.isfinite(gradient).all():
            return Expansion(math.inf, np.zeros_like(weights), np.eye(len(weights)))
        norm = math.sqrt(float(left @ left))
        unit = left / norm
        along = float(rest.residual @ unit)
        change = gradient / (peak * norm) * rest.root
        change -= (change @ rest.basis) @ rest.basis.T
        overlap = change @ unit
        gained, derivative = self._log_gain(min(along**2, _LARGEST_SHARE))
        ascent = 2.0 * along * (change @ rest.residual - along * overlap)
        curvature = 2.0 * derivative * along**2 * (change @ change.T - np.outer(overlap, overlap))
        curvature[np.diag_indices_from(curvature)] += self._precision
        return Expansion(
            0.5 * self._precision * float(weights @ weights) - gained,
            self._precision * weights - derivative * ascent,
            curvature,
        )


def _peak(column: FloatArray) -> float:
    return float(np.abs(column).max())


def _structure(transform: Transform, operands: Sequence[Feature]) -> Projection:
    """A projection with some weights."""
    return project(transform, operands, [1.0] * len(operands), 0.0)


def _projection(function: WeightFunction, weights: FloatArray) -> Projection | None:
    feature = function.feature(weights)
    assert feature is None or isinstance(feature, Projection)
    return feature
