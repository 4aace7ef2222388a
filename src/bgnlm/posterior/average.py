"""Fitted models with their probabilities: all that prediction needs of a search (section 3 of the paper)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.errors import DataError
from bgnlm.features import Component, Evaluator, Feature, TrainingRange, sort_key
from bgnlm.features.measures import weight_count
from bgnlm.latent.inner import standards
from bgnlm.latent.models import LatentModels
from bgnlm.latent.posterior import Entry, LatentPosterior, leading_nodes
from bgnlm.likelihood.families import Family
from bgnlm.likelihood.model_fit import upper_factor
from bgnlm.likelihood.status import ModelStatus
from bgnlm.posterior.summarize import Posterior
from bgnlm.search.problem import SearchProblem

ENOUGH_MASS = 0.9999  # models beyond this share of the probability are not averaged over
ENOUGH_OF_LATENT = 0.99  # the same with latent components
_MOST_LATENT_MODELS = 100
ENOUGH_OF_AVERAGES = 0.999  # the same where each model is an average over weights, many times as costly
_HALF = 0.5
# Draws of the weights of one model: so many times its probability.
_DRAWS, _FEWEST_DRAWS, _MOST_DRAWS = 200, 4, 100


@dataclass(frozen=True, eq=False, repr=False)
class ModelAverage:
    """Models, fitted, and the probabilities with which they are averaged.

    Attributes
    ----------
    family
        Distribution and link of the response.
    features, ranges
        What the models are made of, and the values they had in training.
    centres, scales
        Columns are standardised by these before coefficients apply.
    probabilities
        Of the models; they add up to 1.
    mass
        Posterior probability of these models together.
    starts, members
        The features of model m are `members[starts[m] : starts[m + 1]]`.
    coefficients
        Of one model after the other, intercept first.
    factors
        Covariance factors of the coefficients, one after the other, by rows; see `ModelFit`.
    dispersions, degrees
        Of each model; see `ModelFit`.
    known_as
        For features that are one draw of their weights: the feature they are listed as; otherwise the features.
    n_best
        How many of the models are the most probable one, with different weights; they come first.
    mixture
        For families other than the Gaussian: the same models with mean and covariance of their coefficients in place of
        mode and information there; what is uncertain is computed from these.
    latent
        Where models can have latent components: what they say beside the coefficients, each model with one choice of
        hyperparameters after the other.
    """

    family: Family
    features: tuple[Feature, ...]
    ranges: tuple[TrainingRange, ...]
    centres: FloatArray
    scales: FloatArray
    probabilities: FloatArray
    mass: float
    starts: IntArray
    members: IntArray
    coefficients: FloatArray
    factors: FloatArray
    dispersions: FloatArray
    degrees: FloatArray
    known_as: tuple[Feature, ...]
    n_best: int = 1
    mixture: "ModelAverage | None" = None
    latent: LatentPosterior | None = None

    def __len__(self) -> int:
        return len(self.probabilities)

    def __repr__(self) -> str:
        return f"<ModelAverage: {len(self):,} models of {len(self.features):,} features>"

    @cached_property
    def sizes(self) -> IntArray:
        """Number of features of each model."""
        return np.diff(self.starts)

    def components_of(self, model: int) -> tuple[str, ...]:
        """Names of the latent components of one model."""
        if self.latent is None:
            return ()
        return tuple(self.latent.models.names[c] for c in self.latent.entries[model].components)

    def members_of(self, model: int) -> IntArray:
        """Places of the features of one model."""
        return self.members[self.starts[model] : self.starts[model + 1]]

    def only(self, model: int) -> "ModelAverage":
        """Return one of the models by itself."""
        return self._between(model, model + 1)

    def best(self) -> "ModelAverage":
        """Return the most probable model by itself, with all its weights."""
        return self._between(0, self.n_best)

    def _between(self, first: int, end: int) -> "ModelAverage":
        """Return some of the models, with probabilities that add up to 1."""
        low, high = int(self.starts[first]), int(self.starts[end])
        corners = np.append(0, np.cumsum(np.square(self.sizes + 1)))
        chosen = np.unique(self.members[low:high])
        probabilities, n_models = self.probabilities[first:end], end - first
        total = float(probabilities.sum())
        return ModelAverage(
            family=self.family,
            features=tuple(self.features[j] for j in chosen),
            ranges=tuple(self.ranges[j] for j in chosen),
            centres=self.centres[chosen],
            scales=self.scales[chosen],
            probabilities=probabilities / total if total else np.full(n_models, 1.0 / n_models),
            mass=float(self.mass * total),
            starts=self.starts[first : end + 1] - low,
            members=np.searchsorted(chosen, self.members[low:high]),
            coefficients=self.coefficients[low + first : high + end],
            factors=self.factors[corners[first] : corners[end]],
            dispersions=self.dispersions[first:end],
            degrees=self.degrees[first:end],
            known_as=tuple(self.known_as[j] for j in chosen),
            n_best=n_models,
            mixture=None if self.mixture is None else self.mixture._between(first, end),
            latent=None if self.latent is None else self.latent.between(first, end).with_columns(chosen),
        )

    def linear_predictor(self, model: int = 0) -> FloatArray:
        """Return intercept and slopes of one model on the scale of the features."""
        chosen, first = self.members_of(model), int(self.starts[model]) + model
        slopes = self.coefficients[first + 1 : first + 1 + len(chosen)] / self.scales[chosen]
        return np.append(self.coefficients[first] - slopes @ self.centres[chosen], slopes)

    @cached_property
    def mean_coefficients(self) -> FloatArray:
        """Average of intercept and slopes for standardised columns; a feature that a model lacks counts as 0."""
        is_slope = np.ones(len(self.coefficients), np.bool_)
        is_slope[self.starts[:-1] + np.arange(len(self))] = False
        weights = np.repeat(self.probabilities, self.sizes)
        slopes = np.bincount(self.members, weights=weights * self.coefficients[is_slope], minlength=len(self.features))
        return np.append(self.probabilities @ self.coefficients[~is_slope], slopes)

    def effects(self) -> dict[Feature, tuple[float, float]]:
        """Posterior mean and standard deviation of the coefficient of each feature, 0 where a model lacks it."""
        mean, square = self.mean_coefficients[1:] / self.scales, np.zeros(len(self.features))
        first = corner = 0
        for m, size in enumerate(self.sizes.tolist()):
            factor = self.factors[corner : corner + (size + 1) ** 2].reshape(size + 1, size + 1)[1:]
            variance = np.square(factor).sum(axis=1) * self.coefficient_scales[m] ** 2
            slopes = self.coefficients[first + 1 : first + 1 + size]
            square[self.members_of(m)] += self.probabilities[m] * (variance + np.square(slopes))
            first, corner = first + size + 1, corner + (size + 1) ** 2
        names = list(dict.fromkeys(self.known_as))
        place = {feature: j for j, feature in enumerate(names)}
        listed = [place[feature] for feature in self.known_as]
        means = np.bincount(listed, weights=mean, minlength=len(names))
        roots, units = np.sqrt(square) / self.scales, np.zeros(len(names))
        np.maximum.at(units, listed, roots)
        units[(units == 0.0) | np.isinf(units)] = 1.0  # squares in other units may overflow
        squares = np.bincount(listed, weights=np.square(roots / units[listed]), minlength=len(names))
        deviations = units * np.sqrt(np.maximum(squares - np.square(means / units), 0.0))
        return dict(zip(names, zip(means.tolist(), deviations.tolist(), strict=True), strict=True))

    @cached_property
    def coefficient_scales(self) -> FloatArray:
        """Standard deviation of the noise as coefficients see it, heavier tails included; 1 for other families."""
        if self.family.name != "gaussian":
            return np.ones(len(self))
        # Infinite where tails have no variance; infinite degrees of freedom are those of a known variance.
        inflation = np.where(np.isinf(self.degrees) | (self.probabilities == 0.0), 1.0, np.inf)
        finite = (self.degrees > 2.0) & np.isfinite(self.degrees)
        inflation[finite] = self.degrees[finite] / (self.degrees[finite] - 2.0)
        return np.sqrt(self.dispersions * inflation)


def average_models(problem: SearchProblem, posterior: Posterior, max_models: int) -> ModelAverage:
    """Fit the most probable models, as many as matter."""
    n_models = _n_that_matter(problem, posterior, max_models)
    if not n_models:  # no model has a likelihood
        return _fitted(problem, [((), 1.0)])
    models = [(posterior.features_of(m), float(posterior.model_probabilities[m])) for m in range(n_models)]
    n_selected = max(int((posterior.inclusion_probabilities >= _HALF).sum()), 1)
    return _fitted(problem, models, posterior.features[:n_selected])


def _n_that_matter(problem: SearchProblem, posterior: Posterior, max_models: int) -> int:
    cumulative = np.cumsum(posterior.model_probabilities)
    if not len(cumulative) or cumulative[-1] == 0.0:
        return 0
    if problem.latent is not None:
        return min(
            max_models, _MOST_LATENT_MODELS, int(np.searchsorted(cumulative, ENOUGH_OF_LATENT)) + 1, len(cumulative)
        )
    has_weights = problem.averages is not None and any(map(weight_count, posterior.features))
    enough = ENOUGH_OF_AVERAGES if has_weights else ENOUGH_MASS
    return min(max_models, int(np.searchsorted(cumulative, enough)) + 1, len(cumulative))


def weight_errors(problem: SearchProblem, posterior: Posterior, max_models: int) -> FloatArray:
    """Return Monte Carlo standard error and Pareto shape of each model that is averaged over; 0 without weights."""
    errors = np.zeros((_n_that_matter(problem, posterior, max_models), 2))
    for m in range(len(errors)):
        features = posterior.features_of(m)
        if problem.averages is not None and any(map(weight_count, features)):
            score = problem.averages.score(features)
            errors[m] = score.standard_error, score.pareto_k
    return errors


def median_model(problem: SearchProblem, posterior: Posterior) -> ModelAverage:
    """Fit the median probability model: all features whose probability is at least one half.

    Should they depend on each other, the least probable is left out until they do not.
    """
    n_features = int((posterior.inclusion_probabilities >= _HALF).sum())
    while True:
        average = _fitted(problem, [(posterior.features[:n_features], 1.0)])
        if n_features == 0 or average.mass:
            return average
        n_features -= 1


def at_best_weights(problem: SearchProblem, model: ModelAverage) -> ModelAverage:
    """Fit one model with the most probable weights of its projections."""
    features = tuple(dict.fromkeys(model.known_as))
    if problem.averages is not None and any(map(weight_count, features)):
        features = problem.averages.at_best(features)
    return _with_fits(problem, features, features, [np.arange(len(features))], np.ones(1), 1)


def _fitted(
    problem: SearchProblem, models: Sequence[tuple[tuple[Feature, ...], float]], also: tuple[Feature, ...] = ()
) -> ModelAverage:
    """Fit models with their probabilities; where weights are averaged over, each with several draws of them.

    The features in `also` are listed even if they are in none of these models.
    """
    if problem.latent is not None:
        return _with_latent(problem, problem.latent, models, also)
    entries: list[tuple[tuple[Feature, ...], float]] = []
    known_as: dict[Feature, Feature] = {}
    for number, (model, probability) in enumerate(models):
        drawn = [model]
        if problem.averages is not None and any(map(weight_count, model)):
            n_draws = int(min(max(_DRAWS * probability, _FEWEST_DRAWS), _MOST_DRAWS))
            drawn = problem.averages.drawn(model, n_draws) or drawn
        for features in drawn:
            known_as.update(zip(features, model, strict=True))
            entries.append((features, probability / len(drawn)))
        if number == 0:
            n_best = len(entries)
    for feature in also:
        known_as.setdefault(feature, feature)
    features = tuple(sorted(known_as, key=sort_key))
    place = {feature: j for j, feature in enumerate(features)}
    members = [np.array([place[feature] for feature in model], np.int64) for model, _ in entries]
    probabilities = np.array([probability for _, probability in entries])
    return _with_fits(problem, features, tuple(known_as[f] for f in features), members, probabilities, n_best)


def _with_fits(
    problem: SearchProblem,
    features: tuple[Feature, ...],
    known_as: tuple[Feature, ...],
    models: Sequence[IntArray],
    probabilities: FloatArray,
    n_best: int,
) -> ModelAverage:
    likelihood = problem.likelihood
    columns, ranges = _training_columns(problem, features)
    centres, scales = standards(columns, likelihood.weights)
    columns -= centres
    columns /= scales
    fits = likelihood.plain.population(columns).fit_all([model.tolist() for model in models], with_spread=True)
    exists = np.array([fit.status is not ModelStatus.RANK_DEFICIENT for fit in fits])
    total = float(probabilities[exists].sum())
    average = ModelAverage(
        family=likelihood.family,
        features=features,
        ranges=ranges,
        centres=centres,
        scales=scales,
        probabilities=np.where(exists, probabilities, 0.0) / total if total else probabilities,
        mass=total,
        starts=np.append(0, np.cumsum([len(model) for model in models])),
        members=np.concatenate([*models, np.empty(0, np.int64)]).astype(np.int64),
        coefficients=np.concatenate([fit.coefficients for fit in fits]),
        factors=np.concatenate([upper_factor(fit.covariance_factor).ravel() for fit in fits]),
        dispersions=np.array([fit.dispersion for fit in fits]),
        degrees=np.array([fit.degrees_of_freedom for fit in fits]),
        known_as=known_as,
        n_best=n_best,
    )
    spreads = [fit.spread for fit in fits if fit.spread is not None]
    if not spreads:
        return average
    means = np.concatenate([spread.mean for spread in spreads])
    factors = np.concatenate([upper_factor(spread.covariance_factor).ravel() for spread in spreads])
    return replace(average, mixture=replace(average, coefficients=means, factors=factors))


def _training_columns(
    problem: SearchProblem, features: tuple[Feature, ...]
) -> tuple[FloatArray, tuple[TrainingRange, ...]]:
    weights = problem.likelihood.weights
    columns = Evaluator(problem.X, problem.names).matrix(features)
    ranges = tuple(TrainingRange.of(column, weights) for column in columns.T)
    columns[weights == 0] = 0.0  # there a feature may be anything
    return columns, ranges


def _with_latent(
    problem: SearchProblem,
    latent: LatentModels,
    models: Sequence[tuple[tuple[Feature, ...], float]],
    also: tuple[Feature, ...],
) -> ModelAverage:
    """Fit models with latent components, each with the hyperparameters that matter most."""
    listed = {feature for model, _ in models for feature in model} | set(also)
    features = tuple(sorted((f for f in listed if not isinstance(f, Component)), key=sort_key))
    columns, ranges = _training_columns(problem, features)
    centres, scales = standards(columns, problem.likelihood.weights)
    place: dict[Feature, int] = {feature: j for j, feature in enumerate(features)}
    number: dict[Feature, int] = {component: c for c, component in enumerate(problem.components)}
    entries, probabilities = [], []
    for rank, (model, probability) in enumerate(models):
        members = tuple(sorted(place[feature] for feature in model if feature in place))
        components = tuple(sorted(number[feature] for feature in model if feature in number))
        nodes = latent.integrated(columns[:, list(members)], components).nodes
        for hyperparameters, weight in leading_nodes(nodes) if nodes else ():
            entries.append(Entry(members, components, tuple(hyperparameters.tolist())))
            probabilities.append(probability * weight)
        if rank == 0:
            n_best = max(len(entries), 1)
    if not entries:
        return _without_modes(problem, latent, models, also)
    posterior = LatentPosterior(latent, columns, tuple(entries))
    fits = [posterior.coefficients(e) for e in range(len(entries))]
    total = float(sum(probabilities))
    return ModelAverage(
        family=problem.likelihood.family,
        features=features,
        ranges=ranges,
        centres=centres,
        scales=scales,
        probabilities=np.array(probabilities) / total,
        mass=total,
        starts=np.append(0, np.cumsum([len(entry.columns) for entry in entries])).astype(np.int64),
        members=np.array([c for entry in entries for c in entry.columns], dtype=np.int64),
        coefficients=np.concatenate([fit.mode for fit in fits]),
        factors=np.concatenate([upper_factor(fit.factor).ravel() for fit in fits]),
        dispersions=np.array([fit.dispersion for fit in fits]),
        degrees=np.full(len(fits), np.inf),
        known_as=features,
        n_best=n_best,
        latent=posterior,
    )


def _without_modes(
    problem: SearchProblem,
    latent: LatentModels,
    models: Sequence[tuple[tuple[Feature, ...], float]],
    also: tuple[Feature, ...],
) -> ModelAverage:
    """Return the model of the intercept in place of models that have no mode; none of their probability is left."""
    if not any(model for model, _ in models):
        raise DataError(
            "No mode was found, not even of the model that has an intercept alone. Check the response, its weights and "
            "its offset: are they on reasonable scales?"
        )
    return replace(_with_latent(problem, latent, [((), 1.0)], also), mass=0.0)
