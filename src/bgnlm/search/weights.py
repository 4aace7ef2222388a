"""Weights alpha of projections (section 2.1.1): the naive ones of strategy 1, and where the other ones start."""

from collections.abc import Iterable, Sequence
from functools import cached_property
from zlib import crc32

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.features import Evaluator, Feature, Transform, learn_cut_points, modify, multiply, project, render
from bgnlm.features.gradients import round_weight
from bgnlm.features.measures import weight_count
from bgnlm.features.nodes import Component, Input, Modification, Multiplication, Projection, sort_key
from bgnlm.likelihood.glm import glm_statistics
from bgnlm.likelihood.glm_fit import g_prior_mode
from bgnlm.likelihood.marginal import Likelihood
from bgnlm.search.config import ProjectionWeights
from bgnlm.search.optimized_weights import WeightFit

# A prior this vague leaves the estimate where the data put it, and finite where classes separate.
_VAGUE = 1e4
_MOST_KEPT = 20_000  # projections that are not made again when they are asked for again


class WeightSetter:
    """Makes projections, with weights from the data."""

    def __init__(self, settings: ProjectionWeights, likelihood: Likelihood, evaluator: Evaluator) -> None:
        self._settings = settings
        self._likelihood = likelihood
        self._evaluator = evaluator
        self._made: dict[tuple[Transform, frozenset[Feature]], Projection | None] = {}

    @cached_property
    def _fit(self) -> WeightFit:
        """Strategies 2 and 3, which fit the null model first."""
        return WeightFit(self._settings, self._likelihood, self._evaluator)

    def project(self, transform: Transform, operands: Sequence[Feature]) -> Projection | None:
        """Return g(alpha_0 + sum alpha_k F_k); None if there are no such weights, or one of them is 0."""
        key = transform, frozenset(operands)
        if key not in self._made:
            if len(self._made) >= _MOST_KEPT:
                self._made.clear()
            self._made[key] = self._projected(transform, operands)
        return self._made[key]

    def canonical(self, feature: Feature) -> Feature:
        """Return the structure of a feature with the weights that it has by itself.

        What is taken out of a projection may have weights that were fitted with the rest of it.
        """
        if self._settings.strategy not in ("deep", "bayesian") or not weight_count(feature):
            return feature
        match feature:
            case Modification(transform=transform, operand=operand):
                return modify(transform, self.canonical(operand))
            case Multiplication(factors=factors):
                return multiply(*map(self.canonical, factors))
            case Projection(transform=transform, operands=operands):
                return self.project(transform, operands) or feature
            case Input() | Component():
                return feature

    def _projected(self, transform: Transform, operands: Sequence[Feature]) -> Projection | None:
        # In canonical order, so that not even rounding depends on the order in which they came.
        operands = sorted(operands, key=sort_key)
        if self._settings.strategy in ("conditional", "naive"):
            coefficients = self._naive(operands)
            if coefficients is None:
                return None
            weights = [round_weight(value) for value in coefficients]
            return project(transform, operands, weights[1:], weights[0]) if all(weights[1:]) else None
        if self._settings.strategy in ("deep", "bayesian"):
            operands = self._distinct([self._restarted(operand) for operand in operands])
        return self._fit.best(self._start(transform, sorted(operands, key=sort_key)))

    def _naive(self, operands: Sequence[Feature]) -> FloatArray | None:
        """Strategy 1: h(mu) = alpha_0 + sum alpha_k F_k; None if these weights do not exist."""
        columns = self._columns(operands)
        return linear_weights(self._likelihood, columns) if np.isfinite(columns).all() else None

    def _columns(self, operands: Sequence[Feature]) -> FloatArray:
        """Columns of features; 0 in rows without weight, where a feature may be anything."""
        columns = self._evaluator.matrix(operands)
        columns[self._likelihood.weights == 0.0] = 0.0
        return columns

    def _start(self, transform: Transform, operands: Sequence[Feature]) -> Projection:
        """A projection in the direction of the naive weights, whose argument has mean 0 and standard deviation 1."""
        coefficients = self._naive(operands)
        weights = np.ones(len(operands)) if coefficients is None else coefficients[1:]
        columns, share = self._columns(operands), self._likelihood.weights / self._likelihood.weights.sum()
        weights = np.where(weights == 0.0, 1e-3 * np.abs(weights).max() or 1.0, weights)
        with np.errstate(all="ignore"):  # products of large numbers; such a feature is refused later
            argument = columns @ weights
            mean = float(share @ argument)
            deviation = float(np.sqrt(share @ np.square(argument - mean)))
        if not 0.0 < deviation < np.inf:
            mean, deviation = 0.0, 1.0
        return project(transform, operands, (weights / deviation).tolist(), -mean / deviation)

    def _restarted(self, feature: Feature) -> Feature:
        """The feature with the weights that strategy 3 starts from, which depend on its structure alone."""
        if not weight_count(feature):
            return feature
        match feature:
            case Modification(transform=transform, operand=operand):
                again: Feature = modify(transform, self._restarted(operand))
            case Multiplication(factors=factors):
                again = multiply(*map(self._restarted, factors))
            case Projection(transform=transform, operands=operands):
                again = self._start(transform, sorted(self._distinct(map(self._restarted, operands)), key=sort_key))
            case Input() | Component():
                again = feature
        return learn_cut_points(again, self._evaluator, self._likelihood.weights)

    def _distinct(self, operands: Iterable[Feature]) -> list[Feature]:
        """Operands of which several have one structure, as in a layer of a neural network, start apart."""
        chosen: list[Feature] = []
        for operand in operands:
            rng = np.random.default_rng(crc32(render(operand).encode()))
            while operand in chosen and weight_count(operand):
                operand = learn_cut_points(_shaken(operand, rng), self._evaluator, self._likelihood.weights)
            chosen.append(operand)
        return chosen


def _shaken(feature: Feature, rng: np.random.Generator) -> Feature:
    """The same structure with other weights."""
    match feature:
        case Modification(transform=transform, operand=operand):
            return modify(transform, _shaken(operand, rng))
        case Multiplication(factors=factors):
            return multiply(*(_shaken(factor, rng) for factor in factors))
        case Projection(transform=transform, operands=operands, weights=weights, intercept=intercept):
            others = rng.normal(size=len(weights)) * np.array(weights)
            shaken = [_shaken(operand, rng) for operand in operands]
            return project(transform, shaken, others.tolist(), intercept + rng.normal())
        case Input() | Component():
            return feature


def linear_weights(likelihood: Likelihood, columns: FloatArray) -> FloatArray | None:
    """Maximum likelihood of a linear predictor: intercept and slopes; None if it does not exist."""
    if likelihood.family.name == "gaussian":
        return _least_squares(likelihood, columns)
    statistics = glm_statistics(likelihood.family, likelihood.y, columns, likelihood.weights, likelihood.offset)
    return g_prior_mode(statistics, _VAGUE * statistics.n_obs)


def _least_squares(likelihood: Likelihood, columns: FloatArray) -> FloatArray | None:
    """Intercept and slopes, from centred columns of unit norm."""
    weights = likelihood.weights
    total = weights.sum()
    target = likelihood.y - likelihood.offset
    with np.errstate(all="ignore"):
        means = weights @ columns / total
        centred = (columns - means) * np.sqrt(weights)[:, None]
        norms = np.sqrt(np.square(centred).sum(axis=0))
        if not (np.isfinite(norms).all() and (norms > 0).all()):
            return None
        mean = float(weights @ target / total)
        unit = centred / norms
        slopes = np.linalg.lstsq(unit.T @ unit, unit.T @ ((target - mean) * np.sqrt(weights)), rcond=1e-12)[0] / norms
    coefficients = np.append(mean - means @ slopes, slopes)
    return coefficients if np.isfinite(coefficients).all() else None
