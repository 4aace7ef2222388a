"""The union of what several chains visited: one table of classes, every model once (section 3.2)."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bgnlm._typing import AnyArray, FloatArray, IntArray
from bgnlm.features import Evaluator, Feature
from bgnlm.search.chains import ChainResult
from bgnlm.search.classes import ClassTable
from bgnlm.search.problem import SearchProblem
from bgnlm.search.visited import ModelRows, distinct, feature_key, join, log_sum, no_models, rekeyed

_AT_ONCE = 1_000_000  # models; there may be many chains, and not room for all that they found


@dataclass(frozen=True, eq=False)
class FoundModels:
    """Models with the features they are made of.

    Attributes
    ----------
    features
        Simplest known form of each class.
    costs
        Nats of prior that each of them costs a model.
    rows
        The models by their classes, with their log marginal likelihoods.
    log_discarded
        Log of an upper bound of the summed p(y | m) p(m) of models that were scored but not stored.
    """

    features: tuple[Feature, ...]
    costs: FloatArray
    rows: ModelRows
    log_discarded: float

    @property
    def log_joint(self) -> FloatArray:
        """Log p(y | m) + log p(m) of each model."""
        return self.rows.log_joint(self.costs)


@dataclass(frozen=True, eq=False)
class CommonClasses:
    """One table of classes for several chains: `maps[b][c]` is the common number of class c of chain b."""

    table: ClassTable
    keys: AnyArray
    maps: tuple[IntArray, ...]

    @property
    def features(self) -> tuple[Feature, ...]:
        """Simplest known form of each class."""
        return self.table.representatives

    @property
    def costs(self) -> FloatArray:
        """Nats of prior that each class costs a model."""
        return self.table.costs


def common_classes(problem: SearchProblem, chains: Sequence[ChainResult]) -> CommonClasses:
    """Find which classes of the chains are the same; those that are in no model, stored or dropped, are left out."""
    evaluator = Evaluator(problem.X, problem.names, max_cached_bytes=2**27)
    classes = problem.classes(evaluator)
    maps = []
    for chain in chains:
        table = chain.classes
        to_common = np.full(len(table.representatives), -1)
        members = set(np.unique(chain.visited.rows().members).tolist())
        for number in sorted(members | chain.visited.discarded_classes()):
            to_common[number] = classes.absorb(table.representatives[number], table.fingerprints[number])
        maps.append(to_common)
    keys = np.array([feature_key(feature) for feature in classes.representatives], dtype=np.uint64)
    return CommonClasses(classes.table(), keys, tuple(maps))


def chain_models(common: CommonClasses, chain: ChainResult, to_common: IntArray) -> FoundModels:
    """Models of one chain in terms of the common classes, priced by their simplest forms."""
    rows = distinct(rekeyed(chain.visited.rows(), to_common, common.keys))
    savings = {
        number: float(chain.costs[number] - common.costs[to_common[number]])
        for number in np.flatnonzero(to_common >= 0).tolist()
        if chain.costs[number] > common.costs[to_common[number]]
    }
    log_discarded = chain.visited.log_discarded(savings)
    return FoundModels(common.features, common.costs, rows, log_discarded)


def unite(problem: SearchProblem, chains: Sequence[ChainResult], common: CommonClasses | None = None) -> FoundModels:
    """M* of all chains: every model once, the most probable if there are more than `max_models`."""
    if common is None:
        common = common_classes(problem, chains)
    most = problem.config.max_models
    parts, log_masses = [no_models()], []
    for part in by_chain(chains, common):
        parts.append(part.rows)
        log_masses.append(part.log_discarded)
        if sum(map(len, parts)) > max(2 * most, _AT_ONCE):
            strong, weak = _split(distinct(join(parts)), common.costs, most)
            parts = [strong]
            log_masses.append(log_sum(weak.log_joint(common.costs)))  # what is found again is counted again
    rows, weak = _split(distinct(join(parts)), common.costs, most)
    log_masses.append(log_sum(weak.log_joint(common.costs)))
    return FoundModels(common.features, common.costs, rows, float(np.logaddexp.reduce(log_masses)))


def _split(rows: ModelRows, costs: FloatArray, most: int) -> tuple[ModelRows, ModelRows]:
    """Return the most probable models, and the others."""
    order = rows.by_probability(costs)
    return rows.take(order[:most]), rows.take(order[most:])


def by_chain(chains: Sequence[ChainResult], common: CommonClasses) -> Iterator[FoundModels]:
    """M* of each chain, all in terms of the same classes."""
    for chain, table in zip(chains, common.maps, strict=True):
        yield chain_models(common, chain, table)
