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
from bgnlm.search.fisher_scoring import ENOUGH, Expansion, minimise

# Standard deviation of a normal prior of the weights, for operands of standard deviation 1: what the data leave open
# stays finite.
_VAGUE = 30.0
_MOST_WITHOUT_GRADIENT = 80  # for each weight
_WIDTH = 0.5  # of the simplex at the start, for operands of standard deviation 1
_LEAST = 1e-300  # loss of an exact fit, of which there is a logarithm
_AS_GOOD = 10.0 * ENOUGH  # what may be left where steps end


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
        least = min(loss for loss, _ in found)
        if not math.isfinite(least):
            return None
        # The first that is as good: rounding must not choose between weights and the same ones with another sign.
        best = function.feature(next(weights for loss, weights in found if loss <= least + _AS_GOOD))
        assert best is None or isinstance(best, Projection)
        return best

    def _optimised(self, function: WeightFunction, weights: FloatArray) -> tuple[float, FloatArray]:
        """Minus the log-likelihood, and the weights."""
        settings = self._settings
        # Where weights are parameters, with their prior: this is where they are most probable.
        precision = 1.0 / settings.weight_variance if settings.strategy == "bayesian" else 0.0
        objective = _Objective(self._goodness, function, precision, literal=settings.literal)
        start = objective.start(weights)
        if start is None:
            return math.inf, weights
        if function.is_differentiable:
            loss, found = minimise(objective.expansion, start, objective.n_outer)
        else:
            loss, found = _without_gradient(objective, objective.with_best_coefficients(start))
        return loss, found[objective.n_outer :]


def _without_gradient(objective: "_Objective", start: FloatArray) -> tuple[float, FloatArray]:
    from scipy.optimize import minimize

    # SciPy's own simplex is a twentieth of each parameter wide: too small to leave the plateau of an indicator.
    simplex = np.vstack([start, start + np.diag(np.full(len(start), _WIDTH))])
    options = {
        "maxfev": _MOST_WITHOUT_GRADIENT * len(start),
        "fatol": ENOUGH,
        "xatol": 1e-4,
        "initial_simplex": simplex,
    }
    found = minimize(objective.loss, start, method="Nelder-Mead", options=options)
    return float(found.fun), np.asarray(found.x)


class _Goodness:
    """Log-likelihood of a linear predictor, per row, with the dispersion of the null model."""

    def __init__(self, likelihood: Likelihood) -> None:
        positive = likelihood.weights > 0.0
        self.used: Any = slice(None) if positive.all() else positive
        self.y, self.weights, self.offset = (
            np.ascontiguousarray(values[self.used]) for values in (likelihood.y, likelihood.weights, likelihood.offset)
        )
        self.total = float(self.weights.sum())
        self._family = likelihood.family
        if self._family.name == "gaussian":
            target = self.y - self.offset
            self.centre = float(self.weights @ target / self.total)
            self._dispersion = float(self.weights @ np.square(target - self.centre)) / self.total or 1.0
        else:
            constant = is_constant(self._family, self.y, self.offset)
            self.centre, self._dispersion = null_model(self._family, self.y, self.weights, self.offset, constant)

    def terms(self, predictor: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Log-likelihood of a predictor without offset, its first derivatives and negative second ones."""
        eta = predictor + self.offset
        if not np.isfinite(eta).all():  # kernels cut off what is too large
            return -math.inf, np.zeros_like(eta), np.zeros_like(eta)
        if self._family.name == "gaussian":
            information, residuals = self.weights / self._dispersion, self.y - eta
            score = information * residuals
            return -0.5 * float(score @ residuals), score, information
        score, information = np.empty((2, len(eta)))
        value = row_terms(self._family.code, self._dispersion, self.y, self.weights, eta, score, information)
        return float(value), score, information

    def profile(self, loss: float) -> tuple[float, float]:
        """The loss in nats, where a Gaussian response has the variance that suits it best, and its derivative."""
        if self._family.name != "gaussian":
            return loss, 1.0
        loss = max(loss, _LEAST)
        return 0.5 * self.total * math.log(loss), 0.5 * self.total / loss

    def working_response(self) -> tuple[FloatArray, FloatArray]:
        """What a linear predictor should be, without offset, as seen from the null model; and its weights."""
        _, score, information = self.terms(np.full(len(self.y), self.centre))
        information = np.maximum(information, 1e-12 * self.weights)
        return self.centre + score / information, information


class _Objective:
    """Minus the log-likelihood of b_0 + b_1 F(weights), or F(weights) alone; parameters are b_0, b_1, the weights."""

    def __init__(self, goodness: _Goodness, function: WeightFunction, precision: float, *, literal: bool) -> None:
        self._goodness = goodness
        self._function = function
        self._precision = precision
        self.n_outer = 0 if literal else 2
        # Derivatives of the predictor as (parameters, rows), one array for all steps.
        self._design = np.empty((self.n_outer + function.n_weights, len(goodness.y)))

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

    def with_best_coefficients(self, parameters: FloatArray) -> FloatArray:
        """Return the same weights with the b_0 and b_1 of most likelihood."""
        if not self.n_outer:
            return parameters
        column = self._function.value(parameters[self.n_outer :])[self._goodness.used]
        design = np.vstack([np.ones_like(column), column])

        def expand(coefficients: FloatArray) -> Expansion:
            with np.errstate(all="ignore"):
                log_likelihood, score, information = self._goodness.terms(coefficients @ design)
            loss, factor = self._goodness.profile(-log_likelihood)
            if not math.isfinite(loss):
                return Expansion(math.inf, np.zeros(2), np.eye(2))
            return Expansion(loss, -factor * (design @ score), factor * (design * information) @ design.T)

        return np.append(minimise(expand, parameters[:2], 2)[1], parameters[2:])

    def loss(self, parameters: FloatArray) -> float:
        """Minus the logarithm of likelihood and prior; inf where they do not exist."""
        column = self._function.value(parameters[self.n_outer :])[self._goodness.used]
        with np.errstate(all="ignore"):
            fit = -self._goodness.terms(self._predictor(parameters, column))[0]
        loss, _ = self._goodness.profile(fit + self._penalty(parameters))
        loss += 0.5 * self._precision * float(np.square(parameters[self.n_outer :]).sum())
        return loss if math.isfinite(loss) else math.inf

    def expansion(self, parameters: FloatArray) -> Expansion:
        """The loss and its derivatives."""
        value = self._function.value_and_gradient(parameters[self.n_outer :])
        column = value.column[self._goodness.used]
        with np.errstate(all="ignore"):
            log_likelihood, score, information = self._goodness.terms(self._predictor(parameters, column))
            self._fill_design(parameters, column, value.gradient[..., self._goodness.used])
            slope, curvature = self._moments(score, information)
            if not np.isfinite(curvature).all():
                # A row where the function has no derivative says nothing about the direction.
                np.nan_to_num(self._design, copy=False, posinf=0.0, neginf=0.0)
                slope, curvature = self._moments(score, information)
        loss, factor = self._goodness.profile(self._penalty(parameters) - log_likelihood)
        if not (math.isfinite(loss) and np.isfinite(slope).all() and np.isfinite(curvature).all()):
            return Expansion(math.inf, np.zeros_like(parameters), np.eye(len(parameters)))
        weights = np.arange(self.n_outer, len(parameters))
        slope[weights] += parameters[weights] / _VAGUE**2
        curvature[weights, weights] += 1.0 / _VAGUE**2
        slope, curvature = factor * slope, factor * curvature
        slope[weights] += self._precision * parameters[weights]
        curvature[weights, weights] += self._precision
        loss += 0.5 * self._precision * float(np.square(parameters[weights]).sum())
        return Expansion(loss, slope, curvature)

    def _predictor(self, parameters: FloatArray, column: FloatArray) -> FloatArray:
        return parameters[0] + parameters[1] * column if self.n_outer else column

    def _fill_design(self, parameters: FloatArray, column: FloatArray, gradient: FloatArray) -> None:
        """Derivatives of the predictor."""
        if self.n_outer:
            self._design[0], self._design[1] = 1.0, column
            np.multiply(parameters[1], gradient, out=self._design[2:])
        else:
            self._design[:] = gradient

    def _moments(self, score: FloatArray, information: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Derivatives of minus the log-likelihood, and its curvature where the predictor is linear."""
        return -(self._design @ score), (self._design * information) @ self._design.T

    def _penalty(self, parameters: FloatArray) -> float:
        """Minus the logarithm of a vague prior of the weights."""
        return 0.5 * float(np.square(parameters[self.n_outer :] / _VAGUE).sum())
