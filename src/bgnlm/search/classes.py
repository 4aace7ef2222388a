"""Features that are one function on the training data, up to an affine map, are one class.

A fingerprint shortlists, the correlation decides. The class is represented and priced by its simplest member known;
other forms are recognised as members when they are met.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from hashlib import blake2b
from itertools import combinations
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.errors import FeatureError
from bgnlm.features import (
    Component,
    Evaluator,
    Feature,
    Modification,
    Multiplication,
    Projection,
    Transform,
    learn_cut_points,
    modify,
    multiply,
    reject_reason,
    sort_key,
)
from bgnlm.likelihood.gram import GramBuilder, UnitColumn

SAME_FUNCTION = 1e-10  # of 1 - |correlation|
_EQUAL = 1e-9  # of norms
_TOLERANCE = 2e-5  # of a fingerprint: more than units can differ that are the same function
_N_DIRECTIONS = 3
_PROBE_ROWS = 200
_ONE_ROW, _APART = 0.9, 0.5  # share of the variation of a column in a single row
_NOISE = 1e-6  # a column whose rounding errors reach this share of its variation is no feature


class Identified(NamedTuple):
    """A feature with its cut points learnt, its class and what that costs, and its column."""

    feature: Feature
    feature_class: int
    cost: float
    unit: UnitColumn


@dataclass(frozen=True, eq=False)
class ClassChanges:
    """Classes by number that were found, or for which a simpler form was."""

    numbers: IntArray
    representatives: tuple[Feature, ...]
    fingerprints: FloatArray
    costs: FloatArray


@dataclass(frozen=True, eq=False)
class ClassTable:
    """The classes known to a chain, as a value, and what each costs a model."""

    representatives: tuple[Feature, ...]
    fingerprints: FloatArray
    costs: FloatArray

    def __len__(self) -> int:
        return len(self.representatives)

    def changed(self, changes: ClassChanges) -> "ClassTable":
        """Return the table as it is after changes."""
        size = max(len(self), int(changes.numbers.max(initial=-1)) + 1)
        representatives = [*self.representatives, *changes.representatives[: size - len(self)]]
        fingerprints, costs = np.empty((size, _N_DIRECTIONS)), np.empty(size)
        fingerprints[: len(self)], costs[: len(self)] = self.fingerprints, self.costs
        fingerprints[changes.numbers], costs[changes.numbers] = changes.fingerprints, changes.costs
        for number, feature in zip(changes.numbers.tolist(), changes.representatives, strict=True):
            representatives[number] = feature
        return ClassTable(tuple(representatives), fingerprints, costs)


def table_of(components: Sequence[Component], costs: FloatArray) -> ClassTable:
    """Latent components as classes: they are no functions of the data, and have fingerprints that no function has."""
    fingerprints = np.repeat(-1.0 - np.arange(len(components), dtype=np.float64), _N_DIRECTIONS)
    return ClassTable(tuple(components), fingerprints.reshape(-1, _N_DIRECTIONS), costs)


class FeatureClasses:
    """Classes of the features met so far, on one data set.

    With `is_invariant` affine maps are the same function, as marginal likelihoods mostly have it; else equal columns.
    """

    def __init__(
        self,
        evaluator: Evaluator,
        builder: GramBuilder,
        cost: Callable[[Feature], float],
        sample_weight: FloatArray,
        known: ClassTable | None = None,
        is_invariant: bool = True,
    ) -> None:
        self._is_invariant = is_invariant
        self._evaluator = evaluator
        self._builder = builder
        self._cost = cost
        self._weights = None if (sample_weight == 1.0).all() else sample_weight
        self._probe = evaluator.some_rows(np.flatnonzero(sample_weight > 0), _PROBE_ROWS)
        self._directions = _directions(len(builder.response.values))
        self.representatives: list[Feature] = []
        self.costs: list[float] = []
        self._fingerprints = np.empty((64, _N_DIRECTIONS))
        self._class_of: dict[Feature, int] = {}
        self._by_cell: dict[int, list[int]] = {}  # classes by the first number of their fingerprints
        self._changed: set[int] = set()
        if known is not None:
            for feature, fingerprint in zip(known.representatives, known.fingerprints, strict=True):
                self._found(feature, fingerprint)
            self._changed.clear()

    def __len__(self) -> int:
        return len(self.representatives)

    def table(self) -> ClassTable:
        """Return what is known as a value."""
        return ClassTable(tuple(self.representatives), self._fingerprints[: len(self)].copy(), np.array(self.costs))

    def changes(self) -> ClassChanges:
        """Return what changed since this was last asked."""
        numbers = sorted(self._changed)
        self._changed.clear()
        return ClassChanges(
            np.array(numbers, dtype=np.int64),
            tuple(self.representatives[number] for number in numbers),
            self._fingerprints[numbers],
            self.costs_of(numbers),
        )

    def costs_of(self, classes: Iterable[int]) -> FloatArray:
        """Nats of prior that each class costs a model."""
        return np.array([self.costs[c] for c in classes], dtype=np.float64)

    def class_of(self, feature: Feature) -> int | None:
        """Class of a form met before, None for another."""
        return self._class_of.get(feature)

    def identify(self, feature: Feature) -> Identified | None:
        """Find the class of a feature, a new one if need be; None for a column that cannot enter a model."""
        try:
            learnt = learn_cut_points(feature, self._evaluator, self._weights)
            column = self._evaluator.column(learnt)
        except FeatureError:
            return None
        if reject_reason(column, self._weights) is not None:
            return None
        unit = self._builder.unit(column)
        cost = self._cost(learnt)
        if unit.norm == 0.0 or unit.noise > _NOISE or not np.isfinite(cost) or self._is_pole_at_a_row(learnt, unit):
            return None
        known = self._class_of.get(learnt)
        if known is not None:
            return Identified(learnt, known, self.costs[known], unit)
        fingerprint = np.abs(self._directions @ unit.values)
        for candidate in self._shortlist(fingerprint):
            if self._is_same(unit, candidate):
                self._class_of[learnt] = candidate
                self._simplify(candidate, learnt, cost)
                return Identified(learnt, candidate, self.costs[candidate], unit)
        simpler = self._reduced(learnt, unit)
        if simpler is not None:
            found = self.identify(simpler)
            if found is not None:
                number = self._class_of[learnt] = found.feature_class
                self._simplify(number, learnt, cost)  # fewer operations may cost more
                return found._replace(cost=self.costs[number])
        return Identified(learnt, self._found(learnt, fingerprint), cost, unit)

    def absorb(self, feature: Feature, fingerprint: FloatArray) -> int:
        """Class of a feature that another chain found on the same data, with its fingerprint there."""
        known = self._class_of.get(feature)
        if known is not None:
            return known
        close = self._shortlist(fingerprint)
        unit = self._builder.unit(self._evaluator.column(feature)) if close else None
        for candidate in close:
            if unit is not None and self._is_same(unit, candidate):
                self._class_of[feature] = candidate
                self._simplify(candidate, feature, self._cost(feature))
                return candidate
        return self._found(feature, fingerprint)

    def _is_pole_at_a_row(self, feature: Feature, unit: UnitColumn) -> bool:
        """Whether a function with a pole sets one row apart that is not apart in its argument, nor in the response.

        Such a feature fits that row and says nothing of others, but it has a pole in the midst of the data.
        """
        row = int(np.argmax(np.abs(unit.values)))
        if unit.values[row] ** 2 < _ONE_ROW or self._builder.response.values[row] ** 2 > _APART:
            return False
        if not isinstance(feature, Modification | Projection) or has_slope_at_zero(feature.transform):
            return False
        if feature.transform.quantile is not None:
            return False
        operands = feature.operands if isinstance(feature, Projection) else (feature.operand,)
        return all(self._builder.unit(self._evaluator.column(x)).values[row] ** 2 < _APART for x in operands)

    def _reduced(self, feature: Feature, unit: UnitColumn) -> Feature | None:
        """A simpler form of the same function, by one operation; None if there is none."""
        for form in reductions(feature):
            if not _may_be_same(self._probe.column(feature), self._probe.column(form)):
                continue
            column = self._evaluator.column(form)
            if reject_reason(column, self._weights) is None and self._are_same(unit, self._builder.unit(column)):
                return form
        return None

    def _shortlist(self, fingerprint: FloatArray) -> list[int]:
        cell = _cell(fingerprint)
        near = sorted(number for c in (cell - 1, cell, cell + 1) for number in self._by_cell.get(c, ()))
        return [n for n in near if np.abs(self._fingerprints[n] - fingerprint).max() < _TOLERANCE]

    def _is_same(self, unit: UnitColumn, candidate: int) -> bool:
        other = self._builder.unit(self._evaluator.column(self.representatives[candidate]))
        return self._are_same(unit, other)

    def _are_same(self, a: UnitColumn, b: UnitColumn) -> bool:
        return _are_same(a, b) and (self._is_invariant or _are_equal(a, b))

    def _simplify(self, candidate: int, feature: Feature, cost: float) -> None:
        """Let a simpler form represent its class."""
        have = (self.costs[candidate], sort_key(self.representatives[candidate]))
        if (cost, sort_key(feature)) < have:
            self.representatives[candidate], self.costs[candidate] = feature, cost
            self._changed.add(candidate)

    def _found(self, feature: Feature, fingerprint: FloatArray) -> int:
        number = len(self)
        if number == len(self._fingerprints):
            self._fingerprints = np.vstack([self._fingerprints, np.empty_like(self._fingerprints)])
        self._fingerprints[number] = fingerprint
        self.representatives.append(feature)
        self.costs.append(self._cost(feature))
        self._class_of[feature] = number
        self._by_cell.setdefault(_cell(fingerprint), []).append(number)
        self._changed.add(number)
        return number


def has_slope_at_zero(transform: Transform) -> bool:
    """Whether a function has no pole at zero: by weights, or by chance, one can be moved onto any single row."""
    if transform.derivative is None or transform.quantile is not None:
        return False
    try:
        with np.errstate(all="ignore"):
            slope = np.asarray(transform.derivative(np.zeros(2)), dtype=np.float64)
    except Exception:  # of a function of a user's own
        return False
    return slope.shape in ((), (2,)) and bool(np.isfinite(slope).all())


def _cell(fingerprint: FloatArray) -> int:
    """Interval of the width of the tolerance that the first number of a fingerprint is in."""
    return int(fingerprint[0] // _TOLERANCE)


def _may_be_same(a: FloatArray, b: FloatArray) -> bool:
    """Whether b is an affine map of a, as far as a few rows can tell."""
    usable = np.isfinite(a) & np.isfinite(b)
    if not usable.any():
        return True
    a, b = a[usable] / (np.abs(a[usable]).max() or 1.0), b[usable] / (np.abs(b[usable]).max() or 1.0)
    a, b = a - a.mean(), b - b.mean()
    along = float(a @ b) / max(float(a @ a), 1e-300)
    return bool(np.abs(b - along * a).max() <= 1e-4 * np.abs(b).max())


def _are_same(a: UnitColumn, b: UnitColumn) -> bool:
    return abs(float(np.sum(a.values * b.values))) > 1.0 - SAME_FUNCTION


def _are_equal(a: UnitColumn, b: UnitColumn) -> bool:
    """Whether columns that are the same up to an affine map are equal, but for their means."""
    return float(np.sum(a.values * b.values)) > 0.0 and abs(a.norm - b.norm) < _EQUAL * a.norm


def reductions(feature: Feature) -> Iterator[Feature]:
    """Forms with one operation less that may be the same function.

    A factor or a transform left out, or one transform of a product in place of a product of transforms, as with roots.
    """
    if isinstance(feature, Modification):
        yield feature.operand
    elif isinstance(feature, Multiplication):
        for i, factor in enumerate(feature.factors):
            others = feature.factors[:i] + feature.factors[i + 1 :]
            yield others[0] if len(others) == 1 else multiply(*others)
            if isinstance(factor, Modification):
                yield multiply(factor.operand, *others)
        for i, j in combinations(range(len(feature.factors)), 2):
            one, two = feature.factors[i], feature.factors[j]
            if not (isinstance(one, Modification) and isinstance(two, Modification)):
                continue
            if one.transform == two.transform and one.transform.quantile is None:
                others = tuple(factor for k, factor in enumerate(feature.factors) if k not in (i, j))
                joint = modify(one.transform, multiply(one.operand, two.operand))
                yield multiply(joint, *others) if others else joint


@cache
def class_key(number: int) -> int:
    """64 bits that stand for a class of a chain, whatever form represents it."""
    return int.from_bytes(blake2b(number.to_bytes(8, "little"), digest_size=8).digest(), "little")


def _directions(n_rows: int) -> FloatArray:
    """Fixed random unit vectors."""
    directions = np.random.default_rng(7).standard_normal((_N_DIRECTIONS, n_rows))
    return np.asarray(directions / np.linalg.norm(directions, axis=1, keepdims=True))
