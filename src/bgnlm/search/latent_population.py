"""Models over the columns of a population and latent components: exact scores, and an approximation to guide the way.

A model is a row of flags: of the columns, then of the components.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from bgnlm._typing import BoolArray, FloatArray
from bgnlm.features import Feature, sort_key
from bgnlm.latent.models import Components, LatentModels
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.likelihood.subsets import unpack
from bgnlm.likelihood.surrogate import QuadraticSurrogate
from bgnlm.search.exhaustive import log_prior_of_subsets
from bgnlm.search.mjmcmc import climb_compiled, log_joint_compiled
from bgnlm.search.optimizers import GREEDY
from bgnlm.search.target import SurrogateTarget, surrogate_target

LatentKey = tuple[tuple[Feature, ...], Components]


@dataclass(frozen=True, eq=False)
class LatentPopulation:
    """All models over some columns and the components.

    Attributes
    ----------
    latent
        Scores models.
    features, columns
        Of the population; see `comparable`.
    costs
        Nats of prior that each column costs a model, then each component.
    max_size
        Q, the number of columns a model can have.
    n_slots
        See `log_sizes`.
    known
        Log marginal likelihoods of models scored before: they depend on the model alone, to the last bit.
    """

    latent: LatentModels
    features: tuple[Feature, ...]
    columns: FloatArray
    costs: FloatArray
    max_size: int
    n_slots: int
    known: dict[LatentKey, float]

    @property
    def n_columns(self) -> int:
        """Number of columns."""
        return len(self.features)

    @property
    def n_components(self) -> int:
        """Number of components."""
        return len(self.costs) - len(self.features)

    @property
    def n_models(self) -> int:
        """Number of models that exist."""
        n_sets = sum(math.comb(self.n_columns, size) for size in range(self.max_size + 1))
        return n_sets * len(self.component_sets)

    @cached_property
    def component_sets(self) -> list[Components]:
        """Sets of components that a model can have."""
        numbers = range(self.n_components)
        every = (chosen for size in range(self.n_components + 1) for chosen in combinations(numbers, size))
        return [chosen for chosen in every if self.latent.exists(chosen)]

    @cached_property
    def _ranks(self) -> list[int]:
        """Place of each column in canonical order, so that not even rounding depends on the order of a population."""
        order = sorted(range(self.n_columns), key=lambda j: sort_key(self.features[j]))
        return [order.index(j) for j in range(self.n_columns)]

    def split(self, included: BoolArray) -> tuple[list[int], Components]:
        """Columns and components of a model by their numbers."""
        columns, components = included[: self.n_columns], included[self.n_columns :]
        return np.flatnonzero(columns).tolist(), tuple(np.flatnonzero(components).tolist())

    def flags(self, columns: BoolArray, components: Components) -> BoolArray:
        """Return a model by the flags of its columns and its components."""
        included = np.zeros(len(self.costs), np.bool_)
        included[: self.n_columns] = columns
        included[self.n_columns + np.array(components, np.int64)] = True
        return included

    def exists(self, included: BoolArray) -> bool:
        """Whether a model is within the limits."""
        columns, components = self.split(included)
        return len(columns) <= self.max_size and self.latent.exists(components)

    def all_models(self) -> Iterator[BoolArray]:
        """Every model that exists."""
        columns = unpack(np.arange(2**self.n_columns), self.n_columns)
        for chosen in columns[columns.sum(axis=1) <= self.max_size]:
            for components in self.component_sets:
                yield self.flags(chosen, components)

    def log_joint(self, included: BoolArray) -> float:
        """Log p(y | m) + log p(m) of a model, exactly; -inf for one that does not exist."""
        if not self.exists(included):
            return -math.inf
        columns, components = self.split(included)
        columns.sort(key=self._ranks.__getitem__)
        key = tuple(self.features[j] for j in columns), components
        if key not in self.known:
            self.known[key] = _log_marginal(self.latent, self.columns[:, columns], components)
        sizes = float(log_sizes(len(columns), self.n_slots))
        return self.known[key] + sizes - float(included @ self.costs)

    def guide(self, reference: Sequence[int]) -> "LatentGuide":
        """Approximation of all models that is exact where the columns are those of `reference`."""
        return LatentGuide(self, reference)

    def surrogate(
        self, reference: Sequence[int], components: Components, candidates: FloatArray | None = None
    ) -> QuadraticSurrogate | None:
        """Approximation of models with these components, exact where the columns are those of `reference`.

        Over all columns, or over those of `reference` and then candidates. None where that model cannot be scored.
        """
        model = self.flags(np.isin(np.arange(self.n_columns), reference), components)
        if not self.exists(model):
            return None
        design, places = self.columns, reference
        if candidates is not None:
            design, places = np.column_stack([design[:, list(reference)], candidates]), range(len(reference))
        try:
            with np.errstate(all="ignore"):
                surrogate = self.latent.surrogate(design, components, places)
        except np.linalg.LinAlgError:
            return None
        return surrogate if surrogate is not None and np.isfinite(surrogate.matrix).all() else None

    def gains(self, included: BoolArray, candidates: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Approximate nats that each candidate column adds: to a model, and to its components alone."""
        columns, components = self.split(included)
        candidates = comparable(candidates, self.latent)
        return self._gains(columns, components, candidates), self._gains([], components, candidates)

    def _gains(self, columns: list[int], components: Components, candidates: FloatArray) -> FloatArray:
        size, n_candidates = len(columns), candidates.shape[1]
        values = np.full(n_candidates, -np.inf)
        surrogate = self.surrogate(columns, components, candidates)
        if surrogate is None:
            return values
        target: Any = surrogate_target(surrogate, np.zeros(size + n_candidates), size + 1)
        included = np.arange(size + n_candidates) < size
        before = float(log_joint_compiled(target, included))
        for j in range(n_candidates):
            included[size + j] = True
            values[j] = log_joint_compiled(target, included) - before
            included[size + j] = False
        values[np.isnan(values)] = -np.inf
        return values


class LatentGuide:
    """Quadratic approximations for each set of components, made when it is met first; a target to climb on."""

    guide = None

    def __init__(self, models: LatentPopulation, reference: Sequence[int]) -> None:
        self._models, self._reference = models, list(reference)
        self._surrogates: dict[Components, QuadraticSurrogate | None] = {}
        self._targets: dict[Components, SurrogateTarget] = {}

    def log_joint(self, included: BoolArray) -> float:
        """Approximate log joint of a model; -inf for one that does not exist."""
        models = self._models
        components = models.split(included)[1]
        target = self._target(components) if models.exists(included) else None
        if target is None:
            return -math.inf
        return float(log_joint_compiled(target, included[: models.n_columns])) + self._log_prior(components)

    def scores(self, components: Components) -> FloatArray:
        """Approximate log joint of all models with these components, in the order of the masks of their columns."""
        models = self._models
        surrogate = self._surrogate(components)
        if surrogate is None:
            return np.full(2**models.n_columns, -np.inf)
        scores = surrogate.scores(models.max_size) + log_prior_of_subsets(models.costs[: models.n_columns])
        sizes = log_prior_of_subsets(np.full(models.n_columns, -1.0)).astype(np.int64)
        return np.asarray(scores + log_sizes(sizes, models.n_slots) + self._log_prior(components))

    def climb(self, rng: np.random.Generator, included: BoolArray) -> BoolArray:
        """Climb over the columns, from a model, as far as the approximation goes up."""
        models = self._models
        target = self._target(models.split(included)[1])
        if target is None:
            return included
        peak = climb_compiled(rng, target, GREEDY, included[: models.n_columns])
        return np.append(peak, included[models.n_columns :])

    def _log_prior(self, components: Components) -> float:
        return -float(self._models.costs[self._models.n_columns :][list(components)].sum())

    def _target(self, components: Components) -> SurrogateTarget | None:
        if components not in self._targets:
            surrogate = self._surrogate(components)
            if surrogate is None:
                return None
            models = self._models
            self._targets[components] = surrogate_target(
                surrogate, models.costs[: models.n_columns], models.max_size, models.n_slots
            )
        return self._targets[components]

    def _surrogate(self, components: Components) -> QuadraticSurrogate | None:
        if components not in self._surrogates:
            self._surrogates[components] = self._models.surrogate(self._reference, components)
        return self._surrogates[components]


def comparable(columns: FloatArray, latent: LatentModels) -> FloatArray:
    """Centred columns, which is the same to a flat intercept, and 0 in rows without weight, where they may be anything.

    Where the prior is on slopes of standardised columns, these. A column by itself, so that it is the same to the last
    bit whatever is beside it.
    """
    weights = latent.response.weights
    used, share = weights > 0, weights / weights.sum()
    result = np.zeros(columns.shape, order="F")
    for j in range(columns.shape[1]):
        column = np.where(used, columns[:, j], 0.0)
        column = np.where(used, column - np.sum(share * column), 0.0)
        scale = math.sqrt(np.sum(share * np.square(column))) if latent.slopes.standardised else 1.0
        result[:, j] = column / (scale or 1.0)
    return result


def _log_marginal(latent: LatentModels, columns: FloatArray, components: Components) -> float:
    """Log p(y | m); -inf where columns are so large, or so much alike, that it cannot be computed."""
    try:
        with np.errstate(all="ignore"):
            value = latent.log_marginal(columns, components)
    except np.linalg.LinAlgError:
        return -math.inf
    return value if math.isfinite(value) else -math.inf
