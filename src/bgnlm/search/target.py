"""What a chain of models samples from: pi(m) = p(y | m) p(m), behind one function, `log_joint`.

Algorithm 1 is written once and runs in two forms. Compiled, its target is one of the named tuples below and the scorer
is chosen by the tuple's type; interpreted, it is any object with the methods of `InterpretedTarget`.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np
from numba import types
from numba.extending import overload

from bgnlm._typing import BoolArray, FloatArray
from bgnlm.kernels import gram as kernels
from bgnlm.kernels._jit import both_forms
from bgnlm.kernels.model_store import ModelStore, empty_store, enlarged, find_slot, insert, pack_bits
from bgnlm.kernels.score_table import ScoreTable, table_value
from bgnlm.likelihood.gaussian_fit import GaussianPopulation
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.likelihood.subsets import GRAM_ERROR, steepest_slope
from bgnlm.likelihood.surrogate import QuadraticSurrogate

# Nats that rounding of the Gram matrix may move a score before it is computed again from the data.
TOLERANCE = 1e-4
# Height of models that do not exist, times their size: below any likelihood, and higher the smaller they are.
_OUTSIDE = -1e12


class GramTarget(NamedTuple):
    """Gaussian models over the columns of a Gram matrix; every model scored is kept in `store`."""

    gram: Any
    triangle: Any
    noise: Any
    table: ScoreTable
    costs: Any
    max_size: int
    lowest: float
    steepest: float
    determinant_weight: float
    store: ModelStore
    columns: Any  # the rest is room to work in
    bits: Any
    work: Any


class SurrogateTarget(NamedTuple):
    """Quadratic approximation of generalized linear models, to climb on; nothing is kept."""

    matrix: Any
    prior_matrix: Any
    corner: float
    constant: float
    gains: Any  # what each column adds by itself, its price included
    sizes: Any  # what the prior gives to models of each size
    max_size: int
    columns: Any
    work: Any


class InterpretedTarget(Protocol):
    """A target for the interpreted form."""

    guide: Any
    """What local optimisation climbs and ordinary moves are tried on first, a target too; None for itself."""

    def log_joint(self, included: BoolArray) -> float:
        """Return log p(y | m) + log p(m)."""


class FunctionTarget:
    """Interpreted target: a function scores models that were not met before."""

    def __init__(
        self, score: Callable[[BoolArray], float], guide: "SurrogateTarget | InterpretedTarget | None" = None
    ) -> None:
        self.guide = guide
        self.values: dict[bytes, float] = {}
        self.n_asked = 0
        self._score = score

    def log_joint(self, included: BoolArray) -> float:
        """Return the score of a model, computed when it is asked for first."""
        self.n_asked += 1
        key = included.tobytes()
        value = self.values.get(key)
        if value is None:
            self.values[key] = value = self._score(included)
        return value


def gram_target(population: GaussianPopulation, costs: FloatArray, max_size: int, capacity: int) -> GramTarget:
    """Return the target of Gaussian models over the columns of a population."""
    statistics, score = population.statistics, population.score
    exact = score.exact
    largest = max_size if exact.ridge else min(max_size, statistics.max_rank)
    matrix, triangle = statistics.with_ridge(exact.ridge)
    return GramTarget(
        gram=matrix,
        triangle=triangle,
        noise=statistics.noise,
        table=score.table(largest, statistics.lowest_residual),
        costs=costs,
        max_size=largest,
        lowest=statistics.lowest_residual,
        steepest=steepest_slope(exact),
        determinant_weight=0.5 if exact.uses_determinant else 0.0,
        store=(store := empty_store(len(costs), capacity)),
        columns=np.empty(len(costs) + 1, np.int64),
        bits=np.empty(store.bits.shape[1], np.uint64),
        work=np.empty((len(costs), len(costs) + 1)),
    )


def with_more_room(target: GramTarget) -> GramTarget:
    """Return the same target with room for twice as many models."""
    return target._replace(store=enlarged(target.store))


def surrogate_target(
    surrogate: QuadraticSurrogate, costs: FloatArray, max_size: int, n_slots: int = 0
) -> SurrogateTarget:
    """Return the approximation with the prior of the models; `n_slots` as for `log_sizes`."""
    n_columns = len(costs)
    prior_matrix = np.zeros((n_columns + 1, n_columns + 1))
    prior_matrix[:-1, :-1], prior_matrix[-1, -1] = surrogate.prior_matrix, 1.0
    return SurrogateTarget(
        matrix=surrogate.matrix,
        prior_matrix=prior_matrix,
        corner=surrogate.corner,
        constant=surrogate.constant,
        gains=surrogate.cost - costs,
        sizes=log_sizes(np.arange(n_columns + 1), n_slots),
        max_size=max_size,
        columns=np.empty(n_columns + 1, np.int64),
        work=np.empty((n_columns, n_columns + 1)),
    )


@both_forms
def included_columns(included, columns):
    """List the columns of a model and return how many there are."""
    size = 0
    for j in range(len(included)):  # without branches: they would be mispredicted
        columns[size] = j
        size += included[j]
    return size


@both_forms
def _score_gaussian(target, included):
    """Score from the Gram matrix, or from the data where rounding could be seen."""
    columns = target.columns
    size = included_columns(included, columns)
    if size > target.max_size or not target.table.available[size]:
        return -np.inf
    found = kernels.eliminate_subset(target.gram, columns, size, GRAM_ERROR, target.work)
    residual, log_determinant = max(found[0], target.lowest), found[2]
    if found[0] == kernels.UNDECIDED or target.steepest * GRAM_ERROR > TOLERANCE * residual * found[1]:
        q, r, inverse = np.empty((size, len(target.triangle))), np.empty((size, size)), np.empty((size, size))
        refined = kernels.fit_subset(target.triangle, target.noise, columns, size, q, r, inverse, np.empty(size))
        if refined[0] == kernels.RANK_DEFICIENT:
            return -np.inf
        residual, log_determinant = max(refined[0], refined[1]), 0.0
        for a in range(size):
            log_determinant += 2.0 * math.log(r[a, a])
    value = table_value(target.table, size, math.log(min(residual, 1.0)))
    if target.determinant_weight:
        value -= target.determinant_weight * log_determinant
    for a in range(size):
        value -= target.costs[columns[a]]
    return value


@both_forms
def _gaussian_log_joint(target, included):
    store, bits = target.store, target.bits
    pack_bits(included, bits)
    store.count[1] += 1
    slot = find_slot(store, bits)
    if store.slots[slot]:
        return store.values[store.slots[slot] - 1]
    value = _score_gaussian(target, included)
    insert(store, slot, bits, value)
    return value


@both_forms
def _surrogate_log_joint(target, included):
    columns, work = target.columns, target.work
    size = included_columns(included, columns)
    if size > target.max_size:
        return -np.inf
    prior = kernels.eliminate_subset(target.prior_matrix, columns, size, GRAM_ERROR, work)
    posterior = kernels.eliminate_subset(target.matrix, columns, size, GRAM_ERROR, work)
    if prior[0] == kernels.UNDECIDED or posterior[0] == kernels.UNDECIDED:
        return -np.inf
    value = (
        target.constant + target.sizes[size] + 0.5 * (prior[2] - posterior[2] + target.corner * (1.0 - posterior[0]))
    )
    for a in range(size):
        value += target.gains[columns[a]]
    return value


def log_joint(target: Any, included: Any) -> float:
    """Log pi(m): the score of a model under the target."""
    if isinstance(target, GramTarget):
        return float(_gaussian_log_joint(target, included))
    if isinstance(target, SurrogateTarget):
        return float(_surrogate_log_joint(target, included))
    return float(target.log_joint(included))


def has_room(target: Any, n_models: int) -> bool:
    """Whether so many models more can be scored."""
    return not isinstance(target, GramTarget) or target.store.count[0] + n_models <= len(target.store.values)


def _is(kind: type, target: Any) -> bool:
    return isinstance(target, types.NamedTuple) and target.instance_class is kind


@overload(log_joint)
def _compiled_log_joint(target, included):
    if _is(GramTarget, target):
        return _gaussian_log_joint
    if _is(SurrogateTarget, target):
        return _surrogate_log_joint
    return None


@overload(has_room)
def _compiled_has_room(target, n_models):
    if _is(GramTarget, target):
        return lambda target, n_models: target.store.count[0] + n_models <= len(target.store.values)
    return lambda target, n_models: True


@both_forms
def height(target, included):
    """What optimisers climb: the score, with a slope back to models that exist."""
    value = log_joint(target, included)
    if value > _OUTSIDE:
        return value
    size = 0
    for j in range(len(included)):
        size += included[j]
    return _OUTSIDE * (1.0 + size)
