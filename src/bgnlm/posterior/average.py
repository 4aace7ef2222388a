"""Fitted models with their probabilities: all that prediction needs of a search (section 3 of the paper)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.features import Evaluator, Feature, TrainingRange
from bgnlm.likelihood.families import Family
from bgnlm.likelihood.model_fit import upper_factor
from bgnlm.likelihood.status import ModelStatus
from bgnlm.posterior.summarize import Posterior
from bgnlm.search.problem import SearchProblem

ENOUGH_MASS = 0.9999  # models beyond this share of the probability are not averaged over
_HALF = 0.5


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
    mixture
        For families other than the Gaussian: the same models with mean and covariance of their coefficients in place of
        mode and information there; what is uncertain is computed from these.
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
    mixture: "ModelAverage | None" = None

    def __len__(self) -> int:
        return len(self.probabilities)

    def __repr__(self) -> str:
        return f"<ModelAverage: {len(self):,} models of {len(self.features):,} features>"

    @cached_property
    def sizes(self) -> IntArray:
        """Number of features of each model."""
        return np.diff(self.starts)

    def members_of(self, model: int) -> IntArray:
        """Places of the features of one model."""
        return self.members[self.starts[model] : self.starts[model + 1]]

    def only(self, model: int) -> "ModelAverage":
        """Return one of the models by itself."""
        chosen, size = self.members_of(model), int(self.sizes[model])
        first = int(self.starts[model]) + model
        corner = int(np.square(self.sizes[:model] + 1).sum())
        return ModelAverage(
            family=self.family,
            features=tuple(self.features[j] for j in chosen),
            ranges=tuple(self.ranges[j] for j in chosen),
            centres=self.centres[chosen],
            scales=self.scales[chosen],
            probabilities=np.ones(1),
            mass=float(self.mass * self.probabilities[model]),
            starts=np.array([0, size]),
            members=np.arange(size),
            coefficients=self.coefficients[first : first + size + 1],
            factors=self.factors[corner : corner + (size + 1) ** 2],
            dispersions=self.dispersions[model : model + 1],
            degrees=self.degrees[model : model + 1],
            mixture=None if self.mixture is None else self.mixture.only(model),
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

    def effects(self) -> tuple[FloatArray, FloatArray]:
        """Posterior mean and standard deviation of the coefficient of each feature, 0 where a model lacks it."""
        mean, square = self.mean_coefficients[1:], np.zeros(len(self.features))
        first = corner = 0
        for m, size in enumerate(self.sizes.tolist()):
            factor = self.factors[corner : corner + (size + 1) ** 2].reshape(size + 1, size + 1)[1:]
            variance = np.square(factor).sum(axis=1) * self.coefficient_scales[m] ** 2
            slopes = self.coefficients[first + 1 : first + 1 + size]
            square[self.members_of(m)] += self.probabilities[m] * (variance + np.square(slopes))
            first, corner = first + size + 1, corner + (size + 1) ** 2
        deviation = np.sqrt(np.maximum(square - np.square(mean), 0.0))
        return mean / self.scales, deviation / self.scales

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
    cumulative = np.cumsum(posterior.model_probabilities)
    if not len(cumulative) or cumulative[-1] == 0.0:  # no model has a likelihood
        return _fitted(problem, (), [np.empty(0, np.int64)], np.ones(1))
    n_models = min(max_models, int(np.searchsorted(cumulative, ENOUGH_MASS)) + 1, len(cumulative))
    rows = posterior.found.rows
    # With the most probable feature, even if it is in none of these models.
    first = [posterior.found.features.index(feature) for feature in posterior.features[:1]]
    used = np.unique(np.append(rows.members[: rows.starts[n_models]], first)).astype(np.int64)
    models = [np.searchsorted(used, rows.members_of(m)) for m in range(n_models)]
    features = tuple(posterior.found.features[c] for c in used)
    return _fitted(problem, features, models, posterior.model_probabilities[:n_models])


def median_model(problem: SearchProblem, posterior: Posterior) -> ModelAverage:
    """Fit the median probability model: all features whose probability is at least one half.

    Should they depend on each other, the least probable is left out until they do not.
    """
    n_features = int((posterior.inclusion_probabilities >= _HALF).sum())
    while True:
        features = posterior.features[:n_features]
        model = np.arange(n_features)
        average = _fitted(problem, features, [model], np.ones(1))
        if n_features == 0 or average.mass:
            return average
        n_features -= 1


def _fitted(
    problem: SearchProblem, features: tuple[Feature, ...], models: Sequence[IntArray], probabilities: FloatArray
) -> ModelAverage:
    likelihood = problem.likelihood
    columns = Evaluator(problem.X, problem.names).matrix(features)
    ranges = tuple(TrainingRange.of(column, likelihood.weights) for column in columns.T)
    used, weights = likelihood.weights > 0, likelihood.weights / likelihood.weights.sum()
    columns[~used] = 0.0  # there a feature may be anything
    centres = weights @ columns
    columns -= centres
    scales = np.sqrt(weights @ np.square(columns))
    scales[scales == 0.0] = 1.0
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
    )
    spreads = [fit.spread for fit in fits if fit.spread is not None]
    if not spreads:
        return average
    means = np.concatenate([spread.mean for spread in spreads])
    factors = np.concatenate([upper_factor(spread.covariance_factor).ravel() for spread in spreads])
    return replace(average, mixture=replace(average, coefficients=means, factors=factors))
