"""Populations S_t of features: which survive, what may join them, and the models over them (section 3.2)."""

import math
from dataclasses import dataclass

import numpy as np

from bgnlm._typing import BoolArray, FloatArray, IntArray
from bgnlm.features import Feature
from bgnlm.kernels.gram import inner_products
from bgnlm.likelihood.gram import GramBuilder, GramStatistics, UnitColumn
from bgnlm.search.classes import Identified

# Squared distance of a unit column from the span of others below which it depends on them.
DEPENDENT = 1e-9
_SAFELY = 100.0


@dataclass(frozen=True, eq=False)
class Population:
    """Features with their classes and the inner products of their columns."""

    features: tuple[Feature, ...]
    classes: IntArray
    statistics: GramStatistics

    def __len__(self) -> int:
        return len(self.features)

    def unit(self, j: int) -> UnitColumn:
        """Return the standardised column of one feature."""
        gram = self.statistics
        return UnitColumn(gram.data[j], float(gram.means[j]), float(gram.norms[j]), float(gram.noise[j]))


class Draft:
    """A population in the making: takes features one by one, unless they are there already or depend on others.

    A feature that depends on others takes the place of the dearest of them if it is cheaper itself: the models that can
    be made are the same, at a lower price.
    """

    def __init__(self, builder: GramBuilder, capacity: int, n_protected: int = 0) -> None:
        self._builder = builder
        self._capacity = capacity
        self._n_protected = n_protected
        self._members: list[Identified] = []
        self.origins: list[int] = []
        """Place of each member in the population that was kept from, -1 for a new one."""
        self._data = np.empty((capacity + 1, len(builder.response.values)))
        self._products = np.eye(capacity)
        self._response_products = np.zeros(capacity)
        self._factor = np.zeros((capacity, capacity))  # lower triangular, of the inner products of the columns

    def __len__(self) -> int:
        return len(self._members)

    def __contains__(self, feature_class: int) -> bool:
        return any(member.feature_class == feature_class for member in self._members)

    def keep(self, population: Population, costs: FloatArray, kept: BoolArray) -> None:
        """Begin with features of another population, whose inner products are known."""
        places = np.flatnonzero(kept)
        n, matrix = len(places), population.statistics.matrix
        for j in places.tolist():
            unit = population.unit(j)
            number, cost = int(population.classes[j]), float(costs[j])
            self._append(Identified(population.features[j], number, cost, unit), j)
        self._products[:n, :n] = matrix[np.ix_(places, places)]
        self._response_products[:n] = matrix[-1, places]
        self._factorise()

    def accept(self, candidate: Identified) -> bool:
        """Take a feature in; the answer is whether it could be."""
        if candidate.feature_class in self:
            return False
        n = len(self)
        products, along, distance = self._compare(candidate)
        if distance < DEPENDENT:
            return self._exchange(candidate, along)
        if n == self._capacity:
            return False
        self._take(candidate, products, along, distance)
        return True

    def restore(self, member: Identified) -> None:
        """Take in a feature that was accepted before, whatever rounding makes of its distance now."""
        products, along, distance = self._compare(member)
        self._take(member, products, along, max(distance, 0.1 * DEPENDENT))

    def _compare(self, candidate: Identified) -> tuple[FloatArray, FloatArray, float]:
        """Inner products with the members, in terms of their factor, and the squared distance from their span."""
        n = len(self)
        products = np.empty(n)
        inner_products(self._data[:n], candidate.unit.values, products)
        along = np.empty(n)
        for a in range(n):  # forward substitution
            along[a] = (products[a] - self._factor[a, :a] @ along[:a]) / self._factor[a, a]
        return products, along, 1.0 - float(along @ along)

    def _take(self, candidate: Identified, products: FloatArray, along: FloatArray, distance: float) -> None:
        n = len(self)
        self._factor[n, :n], self._factor[n, n] = along, math.sqrt(distance)
        self._products[n, :n] = self._products[:n, n] = products
        inner_products(self._builder.response.values[None, :], candidate.unit.values, self._response_products[n:])
        self._append(candidate, -1)

    def finish(self) -> Population:
        """Return the population."""
        n = len(self)
        units = [member.unit for member in self._members]
        statistics = self._builder.statistics(
            units, self._data[: n + 1], self._products[:n, :n], self._response_products[:n]
        )
        return Population(
            tuple(member.feature for member in self._members),
            np.array([member.feature_class for member in self._members], dtype=np.int64),
            statistics,
        )

    def _append(self, member: Identified, origin: int) -> None:
        row = self._data[len(self)]
        row[:] = member.unit.values
        self._members.append(member._replace(unit=member.unit._replace(values=row)))
        self.origins.append(origin)

    def _exchange(self, candidate: Identified, along: FloatArray) -> bool:
        """Replace the dearest member on which the candidate depends, if that is dearer than the candidate."""
        n = len(self)
        inverse = np.linalg.inv(self._factor[:n, :n])
        coefficients = along @ inverse
        distances = 1.0 / np.square(inverse).sum(axis=0)  # of each member from the span of the others, squared
        far = np.square(coefficients) * distances > _SAFELY * DEPENDENT  # the candidate, once that member is gone
        dearer = [
            (member.cost, j)
            for j, member in enumerate(self._members)
            if j >= self._n_protected and far[j] and member.cost > candidate.cost + 1e-9
        ]
        if not dearer:
            return False
        self._remove(max(dearer)[1])
        return self.accept(candidate)

    def _remove(self, j: int) -> None:
        n = len(self)
        left = np.delete(np.arange(n), j)
        self._data[: n - 1] = self._data[left]
        self._products[: n - 1, : n - 1] = self._products[np.ix_(left, left)]
        self._response_products[: n - 1] = self._response_products[left]
        del self._members[j], self.origins[j]
        for a, member in enumerate(self._members):
            self._members[a] = member._replace(unit=member.unit._replace(values=self._data[a]))
        self._factorise()

    def _factorise(self) -> None:
        n = len(self)
        self._factor[:n, :n] = np.linalg.cholesky(self._products[:n, :n])


def select_survivors(
    rng: np.random.Generator, probabilities: FloatArray, threshold: float, protected: BoolArray, is_full: bool
) -> BoolArray:
    """Filtration: what is above the threshold stays, the rest with probability proportional to its own.

    In a full population at least one feature goes, so that no population stays as it is; `protected` ones never do.
    """
    survives = rng.random(len(probabilities)) * max(threshold, 1e-300) < probabilities
    survives |= (probabilities >= threshold) | protected
    if is_full and survives.all() and not protected.all():
        doubt = np.where(protected, 0.0, 1.0 - probabilities + 1e-3)
        survives[_draw(rng, doubt)] = False
    return np.asarray(survives)


def _draw(rng: np.random.Generator, weights: FloatArray) -> int:
    cumulative = np.cumsum(weights)
    return int(np.searchsorted(cumulative, rng.random() * cumulative[-1], side="right"))
