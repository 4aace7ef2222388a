"""Strategies 2 and 3 of section 2.1.1: maximum likelihood of b_0 + b_1 g(alpha_0 + sum alpha_k F_k)."""

import math
from typing import Any
from zlib import crc32

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.errors import FeatureError
from bgnlm.features import Evaluator, render
from bgnlm.features.gradients import WeightFunction
from bgnlm.features.nodes import Projection
from bgnlm.kernels.families import row_terms
from bgnlm.likelihood.glm import is_constant, null_model
from bgnlm.likelihood.marginal import Likelihood
from bgnlm.search.config import ProjectionWeights

# Standard deviation of a normal prior of the weights, for operands of standard deviation 1: what the data leave open
# stays finite.
_VAGUE = 30.0
_MOST_EVALUATIONS = 60
_MOST_WITHOUT_GRADIENT = 80  # for each weight
_ENOUGH = 1e-6  # relative change of the loss, or of the parameters
_FAR = 1e3  # residual, in standard deviations, of a feature that is not defined


class WeightFit:
    """Maximum likelihood of the weights of projections."""

    def __init__(self, settings: ProjectionWeights, likelihood: Likelihood, evaluator: Evaluator) -> None:
        self._settings = settings
        self._likelihood = likelihood
        self._evaluator = evaluator
        self._goodness = _Goodness(likelihood)

    def best(self, start: Projection) -> Projection | None:
        """Return the feature with the best weights that were found; None if it has no values on these data."""
        function = WeightFunction(
            start, self._evaluator, self._likelihood.weights, every_layer=self._settings.strategy != "concave"
        )
        if not function.is_differentiable and self._settings.without_gradient == "refuse":
            raise FeatureError(
                f"the weights of {start} cannot be optimised by gradients. "
                'Use ProjectionWeights(without_gradient="search"), or transforms that have a derivative.'
            )
        rng = np.random.default_rng(crc32(render(start).encode()))
        found = []
        for number in range(self._settings.n_starts):
            weights = function.start if number == 0 else rng.standard_normal(function.n_weights)
            found.append(self._optimised(function, weights))
        loss, weights = min(found, key=lambda each: each[0])
        if not math.isfinite(loss):
            return None
        found_feature = function.feature(weights)
        assert found_feature is None or isinstance(found_feature, Projection)
        return found_feature

    def _optimised(self, function: WeightFunction, weights: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-likelihood, and the weights."""
        objective = _Objective(self._goodness, function, literal=self._settings.literal)
        start = objective.start(weights)
        if start is None:
            return math.inf, weights
        if not function.is_differentiable:
            found = _without_gradient(objective, start)
        elif self._likelihood.family.name == "gaussian":
            found = _least_squares(objective, start)
        else:
            found = _by_gradient(objective, start)
        loss = objective.loss(found)
        return loss, found[objective.n_outer :]


def _least_squares(objective: "_Objective", start: FloatArray) -> FloatArray:
    from scipy.optimize import least_squares

    found = least_squares(
        objective.residuals,
        start,
        objective.jacobian,
        method="lm",
        max_nfev=_MOST_EVALUATIONS,
        ftol=_ENOUGH,
        xtol=_ENOUGH,
        gtol=_ENOUGH,
    )
    return np.asarray(found.x)


def _by_gradient(objective: "_Objective", start: FloatArray) -> FloatArray:
    from scipy.optimize import minimize

    options = {"maxfun": _MOST_EVALUATIONS, "ftol": _ENOUGH, "gtol": _ENOUGH}
    return np.asarray(minimize(objective.loss_and_gradient, start, jac=True, method="L-BFGS-B", options=options).x)


def _without_gradient(objective: "_Objective", start: FloatArray) -> FloatArray:
    from scipy.optimize import minimize

    options = {"maxfev": _MOST_WITHOUT_GRADIENT * len(start), "fatol": 1e-5, "xatol": 1e-4}
    return np.asarray(minimize(objective.loss, start, method="Nelder-Mead", options=options).x)


class _Goodness:
    """Log-likelihood of a linear predictor, per row, with the dispersion of the null model."""

    def __init__(self, likelihood: Likelihood) -> None:
        positive = likelihood.weights > 0.0
        self.used: Any = slice(None) if positive.all() else positive
        self.y, self.weights, self.offset = (
            np.ascontiguousarray(values[self.used]) for values in (likelihood.y, likelihood.weights, likelihood.offset)
        )
        self.total = float(self.weights.sum())
        self.is_gaussian = likelihood.family.name == "gaussian"
        self._family = likelihood.family
        if self.is_gaussian:
            target = self.y - self.offset
            centre = float(self.weights @ target / self.total)
            spread = math.sqrt(float(self.weights @ np.square(target - centre)) / self.total) or 1.0
            self.centre, self.roots = centre, np.sqrt(self.weights) / spread
        else:
            constant = is_constant(self._family, self.y, self.offset)
            intercept, self._dispersion = null_model(self._family, self.y, self.weights, self.offset, constant)
            self.centre = float(intercept)

    def terms(self, eta: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Log-likelihood, its first derivatives and negative second ones; not for the Gaussian family."""
        score, information = np.empty((2, len(eta)))
        value = row_terms(self._family.code, self._dispersion, self.y, self.weights, eta, score, information)
        return float(value), score, information

    def working_response(self) -> tuple[FloatArray, FloatArray]:
        """What a linear predictor should be, without offset, as seen from the null model; and its weights."""
        if self.is_gaussian:
            return self.y - self.offset, self.weights
        _, score, information = self.terms(self.centre + self.offset)
        information = np.maximum(information, 1e-12 * self.weights)
        return self.centre + score / information, information


class _Objective:
    """Minus the log-likelihood of b_0 + b_1 F(weights), or F(weights) alone; parameters are b_0, b_1, the weights."""

    def __init__(self, goodness: _Goodness, function: WeightFunction, *, literal: bool) -> None:
        self._goodness = goodness
        self._function = function
        self.n_outer = 0 if literal else 2
        self._known: tuple[bytes, FloatArray, FloatArray] | None = None

    def start(self, weights: FloatArray) -> FloatArray | None:
        """Parameters with the b_0 and b_1 that suit these weights; None if the feature has no values there."""
        column = self._function.value(weights)[self._goodness.used]
        if not np.isfinite(column).all():
            return None
        if not self.n_outer:
            return weights
        target, importance = self._goodness.working_response()
        share = importance / importance.sum()
        centred = column - share @ column
        square = float(share @ np.square(centred))
        slope = float(share @ (centred * target)) / square if square > 0.0 else 0.0
        slope = slope or 1e-3
        return np.concatenate([[share @ target - slope * (share @ column), slope], weights])

    def _predictor(self, parameters: FloatArray, *, with_gradient: bool) -> tuple[FloatArray, FloatArray]:
        """Linear predictor without offset, and its derivatives as (parameters, rows)."""
        used = self._goodness.used
        weights = parameters[self.n_outer :]
        if not with_gradient:
            column = self._function.value(weights)[used]
            return (column if not self.n_outer else parameters[0] + parameters[1] * column), np.empty((0, 0))
        key = parameters.tobytes()
        if self._known is None or self._known[0] != key:
            value = self._function.value_and_gradient(weights)
            column, gradient = value.column[used], value.gradient[..., used]
            if self.n_outer:
                gradient = np.vstack([np.ones_like(column), column, parameters[1] * gradient])
                column = parameters[0] + parameters[1] * column
            self._known = key, column, gradient
        return self._known[1], self._known[2]

    def residuals(self, parameters: FloatArray) -> FloatArray:
        """Of a Gaussian response in standard deviations, then the weights in those of their prior."""
        predictor, _ = self._predictor(parameters, with_gradient=True)
        goodness = self._goodness
        residuals = goodness.roots * (goodness.y - goodness.offset - predictor)
        if not np.isfinite(residuals).all():
            residuals = np.full(len(residuals), _FAR)
        return np.append(residuals, parameters[self.n_outer :] / _VAGUE)

    def jacobian(self, parameters: FloatArray) -> FloatArray:
        """Derivatives of the residuals."""
        _, gradient = self._predictor(parameters, with_gradient=True)
        n_weights = len(parameters) - self.n_outer
        prior = np.hstack([np.zeros((n_weights, self.n_outer)), np.eye(n_weights) / _VAGUE])
        return np.vstack([np.nan_to_num(-self._goodness.roots * gradient, posinf=0.0, neginf=0.0).T, prior])

    def loss(self, parameters: FloatArray) -> float:
        """Minus the log-likelihood per observation, and the prior of the weights."""
        predictor, _ = self._predictor(parameters, with_gradient=False)
        goodness = self._goodness
        if not np.isfinite(predictor).all():
            return math.inf
        if goodness.is_gaussian:
            fit = 0.5 * float(np.square(goodness.roots * (goodness.y - goodness.offset - predictor)).sum())
        else:
            fit = -goodness.terms(predictor + goodness.offset)[0]
        return (fit + 0.5 * float(np.square(parameters[self.n_outer :] / _VAGUE).sum())) / goodness.total

    def loss_and_gradient(self, parameters: FloatArray) -> tuple[float, FloatArray]:
        """The loss and its derivatives; not for the Gaussian family."""
        predictor, gradient = self._predictor(parameters, with_gradient=True)
        goodness = self._goodness
        if not (np.isfinite(predictor).all() and np.isfinite(gradient).all()):
            return _FAR, np.zeros_like(parameters)
        value, score, _ = goodness.terms(predictor + goodness.offset)
        scaled = parameters[self.n_outer :] / _VAGUE
        slope = -gradient @ score
        slope[self.n_outer :] += scaled / _VAGUE
        return (0.5 * float(scaled @ scaled) - value) / goodness.total, slope / goodness.total
