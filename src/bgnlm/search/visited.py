"""M*: every model scored exactly in any population, identified by its set of features (section 3 of the paper).

A model is stored with its log marginal likelihood and its features, not with its prior, because the price of a feature
falls when a simpler form of it is found. Memory is bounded: the most probable models are kept, and what was dropped is
bounded from above.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b

import numpy as np

from bgnlm._typing import AnyArray, BoolArray, FloatArray, IntArray
from bgnlm.features import Feature, render

_SLACK = 1.25  # models beyond the limit, as a factor, before the least probable are dropped


def feature_key(feature: Feature) -> int:
    """64 bits that stand for a feature, the same in every process."""
    return int.from_bytes(blake2b(render(feature).encode(), digest_size=8).digest(), "little")


def log_sum(values: FloatArray) -> float:
    """Log of a sum of exponentials; -inf for nothing."""
    largest = float(values.max(initial=-np.inf))
    if not np.isfinite(largest):
        return largest
    return largest + float(np.log(np.exp(values - largest).sum()))


@dataclass(frozen=True, eq=False)
class ModelRows:
    """Models as rows: `members[starts[i] : starts[i + 1]]` are the classes of model i, in ascending order."""

    keys: AnyArray
    log_marginal: FloatArray
    starts: AnyArray
    members: AnyArray

    def __len__(self) -> int:
        return len(self.keys)

    @property
    def sizes(self) -> AnyArray:
        """Number of features of each model."""
        return np.diff(self.starts)

    def members_of(self, model: int) -> AnyArray:
        """Classes of one model."""
        return self.members[self.starts[model] : self.starts[model + 1]]

    def take(self, models: IntArray) -> "ModelRows":
        """Return some of the models, in the order given."""
        sizes = self.sizes[models]
        starts = _starts(sizes)
        places = np.repeat(self.starts[models] - starts[:-1], sizes) + np.arange(starts[-1])
        return ModelRows(self.keys[models], self.log_marginal[models], starts, self.members[places])

    def sum_over_members(self, values: FloatArray) -> FloatArray:
        """Sum of a value of each class over the classes of each model."""
        totals = np.zeros(len(self))
        with_members = np.flatnonzero(self.sizes)
        if len(with_members):
            totals[with_members] = np.add.reduceat(values[self.members], self.starts[with_members])
        return totals

    def log_joint(self, costs: FloatArray) -> FloatArray:
        """Log p(y | m) + log p(m) of each model, given what each class costs."""
        return self.log_marginal - self.sum_over_members(costs)

    def by_probability(self, costs: FloatArray) -> IntArray:
        """Return the models, the most probable first, ties by key: the same in whatever order they came."""
        return np.lexsort((self.keys, -self.log_joint(costs)))

    def sum_by_member(self, weights: FloatArray, n_classes: int) -> FloatArray:
        """Sum of the weights of the models that have each class."""
        sums = np.bincount(self.members, weights=np.repeat(weights, self.sizes), minlength=n_classes)
        return sums.astype(np.float64)


def no_models() -> ModelRows:
    """Return an empty set of models."""
    return ModelRows(np.empty(0, np.uint64), np.empty(0), _starts(np.empty(0, np.int64)), np.empty(0, np.uint16))


def join(parts: Sequence[ModelRows]) -> ModelRows:
    """Put models one after the other."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([part.sizes for part in parts])
    return ModelRows(
        np.concatenate([part.keys for part in parts]),
        np.concatenate([part.log_marginal for part in parts]),
        _starts(sizes),
        np.concatenate([part.members for part in parts]),
    )


def rows_of(included: BoolArray, classes: IntArray, class_keys: AnyArray, log_marginal: FloatArray) -> ModelRows:
    """Models of a population, given as rows of Booleans, by the classes of its columns."""
    order = np.argsort(classes, kind="stable")
    included, classes = included[:, order], classes[order]
    keys = np.zeros(len(included), np.uint64)
    for j, key in enumerate(class_keys[order]):
        keys[included[:, j]] ^= key
    columns = np.nonzero(included)[1]
    return ModelRows(keys, log_marginal, _starts(included.sum(axis=1)), _compact(classes[columns]))


def _starts(sizes: AnyArray) -> AnyArray:
    """Where each model begins, and the end, in as few bytes as will do: there may be millions."""
    total = int(sizes.sum())
    starts = np.zeros(len(sizes) + 1, np.int32 if total < 2**31 else np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


def _compact(numbers: AnyArray) -> AnyArray:
    """Numbers of classes in as few bytes as will do."""
    return numbers.astype(np.uint16 if numbers.max(initial=0) < 2**16 else np.int32)


class VisitedModels:
    """The distinct models of a chain, at most about `max_models` of them, and the mass of what was dropped.

    Attributes
    ----------
    n_scored
        Distinct models stored so far, dropped ones included.
    """

    def __init__(self, max_models: int) -> None:
        self.max_models = max_models
        self.n_scored = 0
        self._parts: list[ModelRows] = [no_models()]
        self._known = np.empty(0, np.uint64)  # keys of everything that was ever added, sorted
        # Mass of models scored but not stored, and the classes these may have: one entry for each time.
        self._discarded: list[tuple[float, frozenset[int]]] = []

    def copy(self) -> "VisitedModels":
        """Return one that may grow by itself."""
        other = VisitedModels(self.max_models)
        other.n_scored, other._known = self.n_scored, self._known
        other._parts, other._discarded = list(self._parts), list(self._discarded)
        return other

    def __len__(self) -> int:
        return sum(map(len, self._parts))

    def rows(self) -> ModelRows:
        """All models stored."""
        self._parts = [join(self._parts)]
        return self._parts[0]

    def add(self, models: ModelRows, costs: FloatArray) -> ModelRows:
        """Store the models that were never added before and return them; `costs` are those of all classes."""
        places = np.searchsorted(self._known, models.keys)
        found = np.zeros(len(models), np.bool_)
        inside = places < len(self._known)
        found[inside] = self._known[places[inside]] == models.keys[inside]
        fresh = models.take(np.flatnonzero(~found))
        if len(fresh):
            self._parts.append(fresh)
            self._known = np.sort(np.concatenate([self._known, fresh.keys]), kind="stable")
            self.n_scored += len(fresh)
            if len(self) > _SLACK * self.max_models:
                self.truncate(costs)
        return fresh

    def discard(self, log_mass: float, classes: IntArray) -> None:
        """Count mass of models over these classes as dropped."""
        if log_mass > -np.inf:
            self._discarded.append((log_mass, frozenset(classes.tolist())))

    def reprice(self, feature_class: int, saving: float) -> None:
        """A class has become cheaper: what was dropped may have weighed that much more."""
        self._discarded = [
            (mass + saving if feature_class in classes else mass, classes) for mass, classes in self._discarded
        ]

    def discarded_classes(self) -> frozenset[int]:
        """Classes that dropped models may have."""
        return frozenset().union(*(classes for _, classes in self._discarded))

    def log_discarded(self, savings: dict[int, float] | None = None) -> float:
        """Log of an upper bound of the summed p(y | m) p(m) of models scored but not stored.

        With `savings`, as if classes were cheaper by so many nats.
        """
        cheaper = savings or {}
        masses = [
            mass + sum(cheaper[c] for c in cheaper.keys() & classes) if cheaper else mass
            for mass, classes in self._discarded
        ]
        return float(np.logaddexp.reduce(masses)) if masses else -np.inf

    def truncate(self, costs: FloatArray) -> None:
        """Keep the most probable models, ties by key: the same ones in whatever order they came, at given prices."""
        rows = self.rows()
        if len(rows) <= self.max_models:
            return
        order = rows.by_probability(costs)
        dropped = rows.take(order[self.max_models :])
        self.discard(log_sum(dropped.log_joint(costs)), np.unique(dropped.members))
        kept = rows.take(np.sort(order[: self.max_models]))
        self._parts = [kept]


def rekeyed(rows: ModelRows, class_of: IntArray, class_keys: AnyArray) -> ModelRows:
    """Models with other numbers for their classes; those in which two classes became one are left out."""
    members = class_of[rows.members]
    model = np.repeat(np.arange(len(rows)), rows.sizes)
    order = np.lexsort((members, model))
    members = members[order]
    twice = (members[1:] == members[:-1]) & (model[1:] == model[:-1])
    keys = np.zeros(len(rows), np.uint64)
    np.bitwise_xor.at(keys, model, class_keys[members])
    renamed = replace(rows, keys=keys, members=_compact(members))
    if not twice.any():
        return renamed
    good = np.ones(len(rows), np.bool_)
    good[model[1:][twice]] = False
    return renamed.take(np.flatnonzero(good))


def distinct(rows: ModelRows) -> ModelRows:
    """One row for each model, in the order of their keys.

    Of several log marginals, which differ by rounding, the largest is taken.
    """
    order = np.lexsort((-rows.log_marginal, rows.keys))
    keys = rows.keys[order]
    first = np.ones(len(keys), np.bool_)
    first[1:] = keys[1:] != keys[:-1]
    return rows.take(order[first])
