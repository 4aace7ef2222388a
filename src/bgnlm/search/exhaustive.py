"""Exact posterior of all models over a few columns, by enumeration."""

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from bgnlm._typing import AnyArray, BoolArray, FloatArray, IntArray
from bgnlm._validation import check_count, check_design, check_number, check_offset, column_names, numeric_array
from bgnlm.errors import DataError, ModelStatusWarning
from bgnlm.likelihood.coefficient_priors import CoefficientPrior
from bgnlm.likelihood.gaussian_fit import GaussianPopulation
from bgnlm.likelihood.glm_fit import GlmPopulation
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.likelihood.model_fit import ModelFit
from bgnlm.likelihood.refine import refine
from bgnlm.likelihood.status import ModelStatus, advice
from bgnlm.likelihood.subsets import TOLERANCE, score_all_subsets, status_of, unpack
from bgnlm.search.prior import resolve_penalty

MAX_COLUMNS = 24
_NEGLIGIBLE_MASS = 1e-9
_WINDOW = 30.0  # nats below the best model that matter: e^-30 each, even a million of them together


@dataclass(frozen=True, eq=False, repr=False)
class EnumeratedModels:
    """All models over a set of columns, the most probable first, and the probability of each column.

    Attributes
    ----------
    names
        The columns.
    inclusion_probabilities
        Posterior probability of each column.
    model_probabilities
        Posterior probability of each model.
    log_marginal, log_model_prior
        log p(y | m) with all constants; log p(m) up to a constant.
    masks
        The models as bits, column 0 the lowest; see `included` and `columns_of`.
    status
        `ModelStatus` of each model as a small integer.
    """

    names: tuple[str, ...]
    inclusion_probabilities: FloatArray
    model_probabilities: FloatArray
    log_marginal: FloatArray
    log_model_prior: FloatArray
    masks: IntArray
    status: AnyArray
    population: GaussianPopulation | GlmPopulation

    def __len__(self) -> int:
        return len(self.masks)

    @property
    def log_joint(self) -> FloatArray:
        """Return log p(y | m) + log p(m)."""
        return self.log_marginal + self.log_model_prior

    @property
    def included(self) -> BoolArray:
        """Return the models as rows of a Boolean matrix (models, columns)."""
        return unpack(self.masks, len(self.names))

    def columns_of(self, model: int) -> tuple[int, ...]:
        """Return the columns of the model at place `model`, 0 the most probable."""
        return tuple(j for j in range(len(self.names)) if (int(self.masks[model]) >> j) & 1)

    def names_of(self, model: int) -> tuple[str, ...]:
        """Return the names of the columns of the model at place `model`."""
        return tuple(self.names[j] for j in self.columns_of(model))

    def fit(self, model: int) -> ModelFit:
        """Return coefficients, covariance factor and dispersion of the model at place `model`."""
        return self.population.fit(list(self.columns_of(model)))

    @cached_property
    def coefficients(self) -> FloatArray:
        """Coefficients averaged over the models, intercept first; a column not in a model counts as 0.

        The least probable models that together have less than 1e-9 of the probability are left out.
        """
        return self.population.average_coefficients(*self._relevant())

    def predict(self, X: Any, offset: Any = None) -> FloatArray:
        """Average of the models' means for new rows; as with `coefficients`, the least probable are left out.

        Columns of a data frame are found by their names if the models have them, whatever their order.
        """
        names = getattr(X, "columns", None)
        if names is not None and set(self.names) <= set(map(str, names)):
            X = X[list(self.names)]
        design = check_design(X)
        if design.shape[1] != len(self.names):
            raise DataError(f"X must have the {len(self.names)} columns of the models; got {design.shape[1]}.")
        return self.population.average_mean(*self._relevant(), design, check_offset(offset, len(design)))

    def _relevant(self) -> tuple[IntArray, FloatArray]:
        """Masks and probabilities of the models that together have nearly all the probability."""
        n_models = 1 + int(np.searchsorted(self.model_probabilities.cumsum(), 1.0 - _NEGLIGIBLE_MASS))
        return self.masks[:n_models], self.model_probabilities[:n_models]

    def __repr__(self) -> str:
        return f"<EnumeratedModels: {len(self):,} models over {len(self.names)} columns>"

    def __str__(self) -> str:
        shown = [name if name.isprintable() and name else repr(name) for name in self.names]
        width = max([6, *map(len, shown)])
        lines = [f"{len(self):,} models", "", f"{'column':<{width}}  probability"]
        by_probability = np.argsort(-self.inclusion_probabilities, kind="stable")
        lines += [f"{shown[j]:<{width}}  {self.inclusion_probabilities[j]:11.4f}" for j in by_probability]
        lines += ["", "probability  log marginal  model"]
        for model in range(min(5, len(self))):
            what = " + ".join(shown[j] for j in self.columns_of(model)) or "(intercept only)"
            lines.append(f"{self.model_probabilities[model]:11.4f}  {self.log_marginal[model]:12.3f}  {what}")
        return "\n".join(lines)


def enumerate_models(
    y: Any,
    X: Any,
    *,
    family: str = "gaussian",
    link: str | None = None,
    coefficient_prior: str | CoefficientPrior = "auto",
    noise_floor: float = 0.0,
    sample_weight: Any = None,
    offset: Any = None,
    penalty: float | str = 0.0,
    complexity: Sequence[float] | None = None,
    max_model_size: int | None = None,
    names: Sequence[str] | None = None,
) -> EnumeratedModels:
    """Score all linear models over the columns of `X` and return their exact posterior.

    Parameters
    ----------
    y, family, link, coefficient_prior, noise_floor, sample_weight, offset
        As in `log_marginal`.
    X
        Up to 24 columns, without the intercept, which is in every model. A data frame's names are kept.
    penalty
        Model prior: nats that a column costs per unit of its complexity: a number, "bic" (log n) or "aic" (2). 0 makes
        all models equally probable a priori.
    complexity
        Complexity of each column, 1 by default.
    max_model_size
        Largest number of columns in a model; None for no limit.
    names
        Names of the columns of an array; x1, x2, ... by default.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm import enumerate_models
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(100, 3))
    >>> y = 2 * X[:, 0] + rng.normal(size=100)
    >>> models = enumerate_models(y, X, penalty="bic")
    >>> len(models), models.names_of(0)
    (8, ('x1',))
    >>> models.inclusion_probabilities.round(2)
    array([1., 0., 0.])
    """
    likelihood = check_likelihood(
        y,
        family=family,
        link=link,
        coefficient_prior=coefficient_prior,
        noise_floor=noise_floor,
        sample_weight=sample_weight,
        offset=offset,
    )
    design = check_design(X, len(likelihood.y))
    n_columns = design.shape[1]
    if n_columns > MAX_COLUMNS:
        raise DataError(
            f"enumerate_models lists all 2^p models and takes at most {MAX_COLUMNS} columns; got {n_columns}. "
            "Pass the columns that matter."
        )
    costs = resolve_penalty(penalty, float(likelihood.weights.sum())) * _check_complexity(complexity, n_columns)
    most = n_columns if max_model_size is None else min(check_count(max_model_size, "max_model_size"), n_columns)
    return enumerate_population(likelihood.population(design), costs, column_names(X, n_columns, names), most)


def enumerate_population(
    population: GaussianPopulation | GlmPopulation, costs: FloatArray, names: tuple[str, ...], max_model_size: int
) -> EnumeratedModels:
    """Score all models of a population of columns; `costs` are the nats of prior that each column costs."""
    found = score_models(population, costs, max_model_size)
    _warn(names, population, found)
    masks = _in_given_order(found.masks, found.order)
    log_joint = found.log_marginal + found.log_prior
    if not np.isfinite(log_joint.max()):  # nothing can be scored: what is left is the model without columns
        log_joint = np.where(masks == 0, 0.0, -np.inf)
    weights = np.exp(log_joint - log_joint.max())
    weights /= weights.sum()
    order = np.argsort(-log_joint, kind="stable")
    return EnumeratedModels(
        names=names,
        inclusion_probabilities=_inclusion(weights, masks, len(names)),
        model_probabilities=weights[order],
        log_marginal=found.log_marginal[order],
        log_model_prior=found.log_prior[order],
        masks=masks[order],
        status=found.status[order],
        population=population,
    )


class ScoredModels(NamedTuple):
    """Models in any order, bit i of a mask for column `order[i]`; `n_imprecise` of those that matter are uncertain."""

    masks: IntArray
    order: IntArray
    log_marginal: FloatArray
    log_prior: FloatArray
    status: AnyArray
    n_imprecise: int


def score_models(
    population: GaussianPopulation | GlmPopulation,
    costs: FloatArray,
    max_model_size: int,
    tolerance: float = TOLERANCE,
    window: float = math.inf,
) -> ScoredModels:
    """Score all models of at most `max_model_size` columns.

    Rounding may move Gaussian scores by `tolerance` nats, and those further than `window` nats below the best by more.
    """
    if isinstance(population, GaussianPopulation):
        return _score_gaussian(population, costs, max_model_size, tolerance, window)
    return _score_glm(population, costs, max_model_size)


def _score_gaussian(
    population: GaussianPopulation, costs: FloatArray, max_model_size: int, tolerance: float, window: float
) -> ScoredModels:
    """Score all models from the Gram matrix, uncertain ones again from the data."""
    statistics, score = population.statistics, population.score
    ordered = statistics.in_pivot_order()
    log_prior = log_prior_of_subsets(costs[ordered.order])
    result = score_all_subsets(ordered, score, max_model_size, tolerance)
    result = refine(ordered, score, result, log_prior, window)
    status = status_of(ordered, result)
    best = float((result.scores + log_prior).max())
    reachable = result.best_scores + log_prior[result.uncertain] > best - _WINDOW
    n_imprecise = int(np.count_nonzero(reachable & (status[result.uncertain] == ModelStatus.IMPRECISE)))
    masks = np.arange(len(log_prior))
    log_marginal = score.exact.log_null + result.scores
    if max_model_size < len(costs):
        small = result.sizes <= max_model_size
        masks, log_marginal, log_prior, status = masks[small], log_marginal[small], log_prior[small], status[small]
    return ScoredModels(masks, ordered.order, log_marginal, log_prior, status, n_imprecise)


def _score_glm(population: GlmPopulation, costs: FloatArray, max_model_size: int) -> ScoredModels:
    """Score all models one after the other, each from its neighbour: a walk that changes one column at a time."""
    steps = np.arange(2 ** len(costs))
    masks = steps ^ (steps >> 1)
    log_prior = log_prior_of_subsets(costs)[masks]
    included = unpack(masks, len(costs))
    if max_model_size < len(costs):
        small = included.sum(axis=1) <= max_model_size
        masks, log_prior, included = masks[small], log_prior[small], included[small]
    log_marginal, status = population.score.log_marginals(included)
    return ScoredModels(masks, np.arange(len(costs)), log_marginal, log_prior, status, 0)


def log_prior_of_subsets(costs: FloatArray) -> FloatArray:
    """Log prior of all models in the order of their masks, bit by bit."""
    log_prior = np.zeros(1)
    for cost in costs:
        log_prior = np.concatenate([log_prior, log_prior - cost])
    return log_prior


def _inclusion(weights: FloatArray, masks: IntArray, n_columns: int) -> FloatArray:
    """Sum of the weights of the models that have each bit."""
    return np.array([min(float(weights @ ((masks >> j) & 1)), 1.0) for j in range(n_columns)])


def _in_given_order(models: IntArray, order: IntArray) -> IntArray:
    """Move bit i of each model to bit order[i]."""
    masks = np.zeros_like(models)
    for bit, column in enumerate(order):
        masks |= ((models >> bit) & 1) << int(column)
    return masks


def _warn(names: tuple[str, ...], population: GaussianPopulation | GlmPopulation, found: ScoredModels) -> None:
    """Say once what concerns the answer as a whole."""
    if isinstance(population, GaussianPopulation):
        is_constant, norms = population.statistics.constant_response, population.statistics.norms
    else:
        is_constant, norms = population.score.statistics.constant_response, population.score.statistics.norms
    messages = []
    if is_constant:
        status = ModelStatus.CONSTANT_RESPONSE
        messages.append(f"All models have the status {status.name}: {advice(status)}.")
    constant = [name for name, norm in zip(names, norms, strict=True) if norm == 0.0]
    if constant:
        messages.append(f"Constant columns are in no model: {', '.join(constant)}. Leave them out.")
    if found.n_imprecise:
        messages.append(f"Models of status IMPRECISE: {found.n_imprecise:,}; {advice(ModelStatus.IMPRECISE)}.")
    for message in messages:
        warnings.warn(message, ModelStatusWarning, stacklevel=4)


def _check_complexity(complexity: Any, n_columns: int) -> FloatArray:
    if complexity is None:
        return np.ones(n_columns)
    values = numeric_array(complexity, "complexity")
    if values.shape != (n_columns,):
        raise DataError(f"complexity must have one value per column, {n_columns} in all; got shape {values.shape}.")
    for value in values:
        check_number(float(value), "complexity", low=0.0, high=1e6)
    return values
