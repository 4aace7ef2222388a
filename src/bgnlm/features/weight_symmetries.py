"""Changes of the weights inside a feature that leave it the same function, up to an affine map.

For an odd g these are the signs of all weights of a projection, and with them that of its own weight one layer further
out; for an even g the signs alone; and for parts of one structure their exchange. They are proposed by the structure of
the feature, and the values of the feature decide.
"""

from collections.abc import Iterator
from itertools import combinations
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.features.gradients import WeightFunction
from bgnlm.features.measures import weight_count
from bgnlm.features.nodes import Component, Feature, Input, Modification, Multiplication, Projection

_MOST = 4096  # elements of the group
_PROBES = 3
_SAME = 1e-9  # of 1 - |correlation|


class SignedPermutation(NamedTuple):
    """Maps weights w to signs * w[order]."""

    order: IntArray
    signs: FloatArray

    def apply(self, weights: FloatArray) -> FloatArray:
        """Return the image of weights; they are the last axis."""
        return np.asarray(self.signs * weights[..., self.order])

    def after(self, other: "SignedPermutation") -> "SignedPermutation":
        """Return the map that does the other one first."""
        return SignedPermutation(other.order[self.order], self.signs * other.signs[self.order])


def weight_symmetries(feature: Feature, function: WeightFunction) -> list[SignedPermutation]:
    """Return the group of the symmetries of a feature with all its layers, the identity first."""
    rng = np.random.default_rng(3)
    probes = rng.standard_normal((8 * _PROBES, function.n_weights))
    columns = function.used(function.values(probes))
    usable = np.isfinite(columns).all(axis=1)
    probes, columns = probes[usable][:_PROBES], columns[usable][:_PROBES]
    identity = SignedPermutation(np.arange(function.n_weights), np.ones(function.n_weights))
    if not len(probes):
        return [identity]
    generators = [
        candidate
        for candidate in _candidates(feature, identity, 0, None)
        if _are_same(columns, function.used(function.values(candidate.apply(probes))))
    ]
    return generated(identity, generators)


def generated(identity: SignedPermutation, generators: list[SignedPermutation]) -> list[SignedPermutation]:
    """Return the group that some maps generate; should it have more than 4,096 elements, a subgroup."""
    group, chosen = [identity], list[SignedPermutation]()
    for generator in generators:
        if any(_key(generator) == _key(each) for each in group):
            continue
        larger = _closure(group, [*chosen, generator])
        if larger is not None:
            group, chosen = larger, [*chosen, generator]
    return group


def side_by_side(groups: list[list[SignedPermutation]]) -> list[SignedPermutation]:
    """Return the symmetries of several features whose weights come one after the other, the identity first.

    Should there be more than 4,096, those of a feature are left out that would be too many.
    """
    together = [SignedPermutation(np.empty(0, np.int64), np.empty(0))]
    for group in groups:
        chosen = group if len(group) * len(together) <= _MOST else group[:1]
        together = [
            SignedPermutation(np.append(one.order, len(one.order) + two.order), np.append(one.signs, two.signs))
            for one in together
            for two in chosen
        ]
    return together


def _closure(group: list[SignedPermutation], generators: list[SignedPermutation]) -> list[SignedPermutation] | None:
    """Return a group with more generators; None if it is too large."""
    found = {_key(each): each for each in group}
    newest = group
    while newest:
        made = {_key(each): each for one in newest for other in generators for each in (other.after(one),)}
        newest = [each for key, each in made.items() if key not in found]
        found.update((_key(each), each) for each in newest)
        if len(found) > _MOST:
            return None
    return list(found.values())


def _key(element: SignedPermutation) -> bytes:
    return element.order.tobytes() + element.signs.tobytes()


def _candidates(
    feature: Feature, identity: SignedPermutation, first: int, outer: int | None
) -> Iterator[SignedPermutation]:
    """Changes that may leave a part of the feature the same.

    `first` is the place of the first weight of the part, `outer` that of its weight in the projection it is part of.
    """
    match feature:
        case Input() | Component():
            return
        case Modification(operand=operand):
            yield from _candidates(operand, identity, first, outer)
        case Multiplication(factors=factors):
            places = _places(factors, first)
            for factor, place in zip(factors, places, strict=True):
                yield from _candidates(factor, identity, place, outer)
            yield from _exchanges(factors, places, identity, None)
        case Projection(operands=operands):
            own = list(range(first, first + 1 + len(operands)))
            yield _negated(identity, own)
            if outer is not None:
                yield _negated(identity, [*own, outer])
            places = _places(operands, first + len(own))
            for k, (operand, place) in enumerate(zip(operands, places, strict=True)):
                yield from _candidates(operand, identity, place, first + 1 + k)
            yield from _exchanges(operands, places, identity, first + 1)


def _places(parts: tuple[Feature, ...], first: int) -> list[int]:
    """Where the weights of each part begin."""
    counts = [weight_count(part) for part in parts]
    return [first + sum(counts[:k]) for k in range(len(parts))]


def _negated(identity: SignedPermutation, places: list[int]) -> SignedPermutation:
    signs = identity.signs.copy()
    signs[places] = -1.0
    return identity._replace(signs=signs)


def _exchanges(
    parts: tuple[Feature, ...], places: list[int], identity: SignedPermutation, slopes: int | None
) -> Iterator[SignedPermutation]:
    """Two parts with as many weights, exchanged; `slopes` is where their own weights in a projection begin."""
    for i, j in combinations(range(len(parts)), 2):
        count = weight_count(parts[i])
        if count and count == weight_count(parts[j]):
            one, two = (list(range(places[k], places[k] + count)) for k in (i, j))
            if slopes is not None:
                one, two = [*one, slopes + i], [*two, slopes + j]
            order = identity.order.copy()
            order[one], order[two] = two, one
            yield identity._replace(order=order)


def _are_same(columns: FloatArray, others: FloatArray) -> bool:
    """Whether each column is an affine map of the other."""
    if not np.isfinite(others).all():
        return False
    one, two = (each - each.mean(axis=1, keepdims=True) for each in (columns, others))
    squares = np.square(one).sum(axis=1) * np.square(two).sum(axis=1)
    return bool((np.square((one * two).sum(axis=1)) > (1.0 - _SAME) * squares).all())
