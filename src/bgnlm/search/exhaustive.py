"""Exact posterior of all models over a few columns, by enumeration."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from bgnlm._typing import AnyArray, BoolArray, FloatArray, IntArray
from bgnlm._validation import check_count, check_design, check_number, column_names
from bgnlm.errors import DataError, ModelStatusWarning
from bgnlm.likelihood.coefficient_priors import CoefficientPrior
from bgnlm.likelihood.gaussian import GaussianScore
from bgnlm.likelihood.gram import GramStatistics
from bgnlm.likelihood.marginal import ModelFit, check_likelihood, fit_columns
from bgnlm.likelihood.refine import refine_leaders
from bgnlm.likelihood.status import ModelStatus, advice
from bgnlm.likelihood.subsets import score_all_subsets, status_of
from bgnlm.likelihood.tabulate import TabulatedScore
from bgnlm.search.prior import resolve_penalty

MAX_COLUMNS = 24
_NEGLIGIBLE_MASS = 1e-12


@dataclass(frozen=True, eq=False)
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
    statistics: GramStatistics = field(repr=False)
    score: GaussianScore = field(repr=False)

    def __len__(self) -> int:
        return len(self.masks)

    @property
    def log_joint(self) -> FloatArray:
        """Return log p(y | m) + log p(m)."""
        return self.log_marginal + self.log_model_prior

    @property
    def included(self) -> BoolArray:
        """Return the models as rows of a Boolean matrix (models, columns)."""
        return ((self.masks[:, None] >> np.arange(len(self.names))) & 1).astype(np.bool_)

    def columns_of(self, model: int) -> tuple[int, ...]:
        """Return the columns of the model at place `model`, 0 the most probable."""
        return tuple(j for j in range(len(self.names)) if (int(self.masks[model]) >> j) & 1)

    def names_of(self, model: int) -> tuple[str, ...]:
        """Return the names of the columns of the model at place `model`."""
        return tuple(self.names[j] for j in self.columns_of(model))

    def fit(self, model: int) -> ModelFit:
        """Return coefficients, covariance factor and dispersion of the model at place `model`."""
        return fit_columns(self.statistics, self.score, list(self.columns_of(model)))

    @cached_property
    def coefficients(self) -> FloatArray:
        """Coefficients averaged over the models, intercept first; a column not in a model counts as 0.

        Models that together have less than 1e-12 of the probability are left out.
        """
        n_models = 1 + int(np.searchsorted(self.model_probabilities.cumsum(), 1.0 - _NEGLIGIBLE_MASS))
        average = np.zeros(len(self.names) + 1)
        for model in range(min(n_models, len(self))):
            places = [0, *(j + 1 for j in self.columns_of(model))]
            average[places] += self.model_probabilities[model] * self.fit(model).coefficients
        return average

    def predict(self, X: Any) -> FloatArray:
        """Average of the models' predictions for new rows (without an offset)."""
        design = np.asarray(X, dtype=np.float64)
        if design.ndim != 2 or design.shape[1] != len(self.names):
            raise DataError(f"X must have the {len(self.names)} columns of the models; got shape {design.shape}.")
        return np.asarray(self.coefficients[0] + design @ self.coefficients[1:])

    def __str__(self) -> str:
        width = max([6, *map(len, self.names)])
        lines = [f"{len(self):,} models", "", f"{'column':<{width}}  probability"]
        lines += [
            f"{name:<{width}}  {p:11.4f}" for name, p in zip(self.names, self.inclusion_probabilities, strict=True)
        ]
        lines += ["", "probability  log marginal  model"]
        for model in range(min(5, len(self))):
            what = " + ".join(self.names_of(model)) or "(intercept only)"
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
) -> EnumeratedModels:
    """Score all linear models over the columns of `X` and return their exact posterior.

    Parameters
    ----------
    y, family, link, coefficient_prior, noise_floor, sample_weight, offset
        As in `log_marginal`.
    X
        Up to 24 columns, without the intercept, which is in every model. A data frame's names are kept.
    penalty
        Nats that a column costs per unit of its complexity: a number, "bic" (log n) or "aic" (2). 0 makes all
        models equally probable a priori.
    complexity
        Complexity of each column, 1 by default.
    max_model_size
        Largest number of columns in a model; None for no limit.
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
    statistics = likelihood.statistics(design)
    costs = resolve_penalty(penalty, statistics.n_obs) * _check_complexity(complexity, n_columns)
    most = n_columns if max_model_size is None else min(check_count(max_model_size, "max_model_size"), n_columns)
    score = TabulatedScore(likelihood.score(statistics))
    return enumerate_columns(statistics, score, costs, column_names(X, n_columns), most)


def enumerate_columns(
    statistics: GramStatistics,
    score: TabulatedScore,
    costs: FloatArray,
    names: tuple[str, ...],
    max_model_size: int,
) -> EnumeratedModels:
    """Score all models over the columns of `statistics`; `costs` are the nats of prior that each column costs."""
    log_prior = np.zeros(1)
    for cost in costs:  # bit by bit, in the order of the masks
        log_prior = np.concatenate([log_prior, log_prior - cost])
    result = score_all_subsets(statistics, score, max_model_size)
    result = refine_leaders(statistics, score, result, log_prior)
    status = status_of(statistics, result)
    _warn(status)
    log_joint = result.scores + log_prior
    weights = np.exp(log_joint - log_joint.max())
    weights /= weights.sum()
    order = np.argsort(-log_joint, kind="stable")
    if max_model_size < statistics.n_columns:
        order = order[result.sizes[order] <= max_model_size]
    return EnumeratedModels(
        names=names,
        inclusion_probabilities=_inclusion(weights, statistics.n_columns),
        model_probabilities=weights[order],
        log_marginal=score.exact.log_null + result.scores[order],
        log_model_prior=log_prior[order],
        masks=order,
        status=status[order],
        statistics=statistics,
        score=score.exact,
    )


def _inclusion(weights: FloatArray, n_columns: int) -> FloatArray:
    """Sum of the weights of the models that have each bit."""
    return np.array([weights.reshape(-1, 2, 2**j)[:, 1].sum() for j in range(n_columns)])


def _warn(status: AnyArray) -> None:
    """One warning for what concerns the answer as a whole."""
    for kind in (ModelStatus.CONSTANT_RESPONSE, ModelStatus.IMPRECISE):
        count = int(np.count_nonzero(status == kind))
        if count:
            warnings.warn(f"{count:,} models have the status {kind.name}: {advice(kind)}.", ModelStatusWarning, 4)


def _check_complexity(complexity: Any, n_columns: int) -> FloatArray:
    if complexity is None:
        return np.ones(n_columns)
    values = [check_number(value, "complexity", low=0.0) for value in complexity]
    if len(values) != n_columns:
        raise DataError(f"complexity must have one value per column, {n_columns} in all; got {len(values)}.")
    return np.array(values)
