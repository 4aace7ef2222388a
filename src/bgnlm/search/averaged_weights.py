"""Strategy 4: weights of projections are parameters, and models are averaged over them (section 4.2).

A model is then a set of structures. Each is represented by the feature with one particular choice of weights, which
depends on the structure alone; a projection's own weights are N(0, sigma_alpha^2) on operands that are standardised.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise
from threading import RLock
from typing import NamedTuple
from zlib import crc32

import numpy as np

from bgnlm._typing import BoolArray, FloatArray
from bgnlm.features import Evaluator, Feature, learn_cut_points, render
from bgnlm.features.gradients import WeightFunction
from bgnlm.features.measures import weight_count
from bgnlm.features.weight_symmetries import SignedPermutation, side_by_side, weight_symmetries
from bgnlm.kernels.families import row_terms
from bgnlm.likelihood.gaussian_fit import GaussianPopulation
from bgnlm.likelihood.glm_fit import GlmPopulation
from bgnlm.likelihood.gram import gram_statistics
from bgnlm.likelihood.marginal import Likelihood
from bgnlm.likelihood.varying import VaryingColumns
from bgnlm.search.config import ProjectionWeights
from bgnlm.search.importance import Mode, around, climb, distinct_modes, integrate, log_normal

_TRIED = 60  # draws from the prior among which further modes are looked for
_STARTS = 3  # of the search for modes
_KEPT = 100  # draws from the posterior
_MOST_NUMBERS = 2**22  # columns of draws in memory at a time
_CACHED_BYTES = 2**26
_MOST_FEATURES = 200  # that are ready as functions of their weights
_IMPOSSIBLE = 1e6  # nats; the price of a feature that has no values


class WeightedFeature(NamedTuple):
    """A feature as a function of its weights, and the changes of these that do not matter."""

    function: WeightFunction
    symmetries: list[SignedPermutation]

    def alike(self, weights: FloatArray) -> FloatArray:
        """Of all weights that make the same function, those that are closest to the representative's."""
        images = np.array([each.apply(weights) for each in self.symmetries])
        distances = np.square(images - self.function.start).sum(axis=-1)
        return np.asarray(np.take_along_axis(images, distances.argmin(axis=0)[None, ..., None], axis=0)[0])


@dataclass(frozen=True, eq=False)
class AveragedModel:
    """The score of one model.

    Attributes
    ----------
    log_marginal
        Log p(y | m), averaged over the weights.
    standard_error
        Its Monte Carlo standard error.
    pareto_k, n_draws
        Of the importance sampling; see `Integral`.
    best_log_marginal
        Log p(y | m, weights) at the most probable weights.
    best_weights
        These, for each feature that has any.
    weights
        Draws from the posterior of the weights, likewise: (draws, weights).
    """

    log_marginal: float
    standard_error: float
    pareto_k: float
    n_draws: int
    best_log_marginal: float
    best_weights: dict[Feature, FloatArray]
    weights: dict[Feature, FloatArray]


class AverageOverWeights:
    """Scores models by averaging over the weights of the projections in them; one model always has one score."""

    def __init__(
        self, settings: ProjectionWeights, likelihood: Likelihood, X: FloatArray, names: tuple[str, ...]
    ) -> None:
        self._settings = settings
        self._deviation = math.sqrt(settings.weight_variance)
        self._likelihood = likelihood
        self._evaluator = Evaluator(X, names, max_cached_bytes=_CACHED_BYTES)
        self._given = settings, likelihood, X, names
        empty = likelihood.population(np.empty((len(X), 0)))
        self._score = empty.score if isinstance(empty, GaussianPopulation) else None
        self._features: dict[Feature, WeightedFeature] = {}
        self._prices: dict[Feature, float] = {}
        self._known: dict[frozenset[Feature], AveragedModel] = {}
        self._lock = RLock()  # chains in threads share what they score

    def __reduce__(self) -> tuple[type["AverageOverWeights"], tuple[object, ...]]:
        return type(self), self._given

    def score(self, features: Sequence[Feature]) -> AveragedModel:
        """Score a model that has features with weights."""
        key = frozenset(features)
        with self._lock:
            if key not in self._known:
                self._known[key] = self._scored(features)
            return self._known[key]

    def drawn(self, features: Sequence[Feature], n_draws: int) -> list[tuple[Feature, ...]]:
        """Return the features of a model with weights drawn from their posterior, so many times."""
        score = self.score(features)
        if not math.isfinite(score.log_marginal):
            return []
        weights = score.weights
        n_kept = len(next(iter(weights.values())))
        models = []
        for draw in (np.arange(n_draws) * n_kept // n_draws).tolist():
            made = {feature: self._made(feature, each[draw]) for feature, each in weights.items()}
            if all(feature is not None for feature in made.values()):
                models.append(tuple(made.get(feature) or feature for feature in features))
        return models

    def at_best(self, features: Sequence[Feature]) -> tuple[Feature, ...]:
        """Return the features of a model with the most probable weights; as they are if that makes others of them."""
        weights = self.score(features).best_weights
        made = {feature: self._made(feature, each) for feature, each in weights.items()}
        return tuple(made.get(feature) or feature for feature in features)

    def price(self, feature: Feature) -> float:
        """Nats that averaging over its weights costs a feature, about: the share of the prior that the data leave."""
        with self._lock:
            if feature not in self._prices:
                self._prices[feature] = self._priced(self._weighted(feature))
            return self._prices[feature]

    def _priced(self, weighted: WeightedFeature) -> float:
        likelihood, function = self._likelihood, weighted.function
        n_obs = float(likelihood.weights.sum())
        if not function.is_differentiable:
            return 0.5 * function.n_weights * math.log(max(n_obs, 2.0))
        used = likelihood.weights > 0.0
        column, gradient = function.value_and_gradient(function.start)
        column, gradient = np.where(used, column, 0.0), np.where(used, gradient, 0.0)
        if not (np.isfinite(column).all() and np.isfinite(gradient).all()):
            return _IMPOSSIBLE
        fit = likelihood.population(column[:, None]).fit([0])
        information = likelihood.weights / fit.dispersion if fit.dispersion > 0.0 else likelihood.weights
        if likelihood.family.name != "gaussian":
            eta = likelihood.offset + fit.coefficients[0] + fit.coefficients[1] * column
            score, information = np.empty((2, len(eta)))
            row_terms(likelihood.family.code, fit.dispersion, likelihood.y, likelihood.weights, eta, score, information)
        derivatives = np.vstack([np.ones_like(column), column, fit.coefficients[1] * gradient])
        whole = (derivatives * information) @ derivatives.T
        # What is known about the weights when the coefficients follow them.
        outer = whole[2:, :2] @ np.linalg.pinv(whole[:2, :2], hermitian=True) @ whole[:2, 2:]
        variance = self._settings.weight_variance
        ratio = np.linalg.slogdet(np.eye(function.n_weights) + variance * (whole[2:, 2:] - outer))[1]
        unlikely = float(np.square(function.start).sum()) / variance
        price = 0.5 * (float(ratio) + unlikely) - math.log(len(weighted.symmetries))
        return max(price, 0.0) if math.isfinite(price) else _IMPOSSIBLE

    def plugged_in(self, columns: FloatArray) -> GaussianPopulation | GlmPopulation:
        """Return all models over columns with weights that are taken as known."""
        if self._score is None:
            return self._likelihood.population(columns)
        likelihood = self._likelihood
        return GaussianPopulation(
            gram_statistics(likelihood.y, columns, likelihood.weights, likelihood.offset), self._score
        )

    def column(self, feature: Feature, weights: FloatArray) -> FloatArray:
        """Column of a feature with other weights."""
        with self._lock:
            return self._weighted(feature).function.value(weights)

    def _made(self, feature: Feature, weights: FloatArray) -> Feature | None:
        """Return a feature with other weights; None if they make another one of it."""
        with self._lock:
            made = self._weighted(feature).function.feature(weights)
            return made and learn_cut_points(made, self._evaluator, self._likelihood.weights)

    def _weighted(self, feature: Feature) -> WeightedFeature:
        if feature not in self._features:
            if len(self._features) >= _MOST_FEATURES:
                self._features.clear()
            function = WeightFunction(feature, self._evaluator, self._likelihood.weights, every_layer=True)
            self._features[feature] = WeightedFeature(function, weight_symmetries(feature, function))
        return self._features[feature]

    def _scored(self, features: Sequence[Feature]) -> AveragedModel:
        """Average over the weights, by random numbers that depend on the model alone."""
        settings, deviation = self._settings, self._deviation
        features = sorted(features, key=render)  # not even rounding depends on the order in which they came
        free = [feature for feature in features if weight_count(feature)]
        fixed = self._evaluator.matrix([feature for feature in features if not weight_count(feature)])
        model = _Model(
            {feature: self._weighted(feature) for feature in free},
            VaryingColumns(self._likelihood, fixed, self._score),
            deviation,
        )
        rng = np.random.default_rng(crc32("\n".join(map(render, features)).encode()))
        symmetries = model.symmetries
        modes: tuple[Mode, ...] = ()
        if settings.sampler == "importance":
            found = [climb(model.log_density, start, deviation) for start in self._starts(model, free, rng)]
            modes = distinct_modes([mode for mode in found if mode is not None], symmetries)
        integral = integrate(
            model.log_density, around(modes, symmetries, deviation), rng, settings.tolerance, settings.n_weight_draws
        )
        drawn = integral.resampled(rng, _KEPT)
        # Draws of the prior are weighted by the likelihood alone.
        heights = integral.log_weights + log_normal(integral.draws, deviation)
        best = modes[0].point if modes else integral.draws[int(heights.argmax())]
        return AveragedModel(
            log_marginal=integral.log_value,
            standard_error=integral.standard_error,
            pareto_k=integral.pareto_k,
            n_draws=len(integral.draws),
            best_log_marginal=float(model.log_marginals(best[None, :])[0]),
            best_weights=model.split(best),
            weights=model.split(rng.permutation(drawn)),
        )

    def _starts(self, model: "_Model", free: Sequence[Feature], rng: np.random.Generator) -> list[FloatArray]:
        """Where to look for modes: at the representatives' weights, and at the best of some draws of the prior."""
        given = np.concatenate([self._weighted(feature).function.start for feature in free])
        starts = [np.clip(given, -4.0 * self._deviation, 4.0 * self._deviation)]
        tried = self._deviation * rng.standard_normal((_TRIED, len(given)))
        if len(free) > 1:
            # Some features as they are best alone: what one of them can add is seen when the others are in place.
            tried = np.where(model.some_features(rng, _TRIED), starts[0], tried)
        heights = np.nan_to_num(model.log_density(tried), nan=-np.inf)
        best = np.argsort(-heights, kind="stable")[: max(_STARTS - len(starts), 1)]
        return [*starts, *tried[best]]


class _Model:
    """One model as a function of the weights in all its features."""

    def __init__(self, free: dict[Feature, WeightedFeature], scores: VaryingColumns, deviation: float) -> None:
        self._free = free
        self._scores = scores
        self._deviation = deviation
        ends = accumulate((weighted.function.n_weights for weighted in free.values()), initial=0)
        self._slices = [slice(low, high) for low, high in pairwise(ends)]
        self.n_weights = self._slices[-1].stop

    @property
    def symmetries(self) -> list[SignedPermutation]:
        """Those of each feature, whatever the others do."""
        return side_by_side([weighted.symmetries for weighted in self._free.values()])

    def log_marginals(self, weights: FloatArray) -> FloatArray:
        """Log p(y | m, weights) for several draws."""
        out = np.empty(len(weights))
        n_rows = self._scores.n_rows
        most = max(_MOST_NUMBERS // (len(self._free) * n_rows), 1)
        for start in range(0, len(weights), most):
            chosen = weights[start : start + most]
            columns = np.empty((len(chosen), len(self._free), n_rows))
            for place, (weighted, own) in enumerate(zip(self._free.values(), self._slices, strict=True)):
                columns[:, place] = weighted.function.values(chosen[:, own])
            out[start : start + most] = self._scores.log_marginals(columns)
        return out

    def log_density(self, weights: FloatArray) -> FloatArray:
        """Log p(y | m, weights) + log p(weights)."""
        return self.log_marginals(weights) + log_normal(weights, self._deviation)

    def some_features(self, rng: np.random.Generator, n_draws: int) -> BoolArray:
        """Places of the weights of features chosen at random: (draws, weights)."""
        sizes = [own.stop - own.start for own in self._slices]
        return np.repeat(rng.random((n_draws, len(sizes))) < 0.5, sizes, axis=1)

    def split(self, weights: FloatArray) -> dict[Feature, FloatArray]:
        """Weights of each feature, alike in all models; they are the last axis."""
        return {
            feature: weighted.alike(weights[..., own])
            for (feature, weighted), own in zip(self._free.items(), self._slices, strict=True)
        }
