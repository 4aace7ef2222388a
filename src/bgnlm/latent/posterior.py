"""What models with latent components say about new rows, about the components and about their hyperparameters."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.errors import DataError
from bgnlm.kernels import banded, nested_laplace
from bgnlm.latent.inner import Inner, InnerLaplace
from bgnlm.latent.layout import Placed
from bgnlm.latent.models import Components, LatentModels
from bgnlm.latent.nested_laplace import Node
from bgnlm.latent.place import UNKNOWN, NewPlaces

_NODE_MASS = 0.99  # of the posterior of the hyperparameters
_MOST_NODES = 12
_HELD = 2e7  # numbers kept of the fits, before they are computed again when needed


class Entry(NamedTuple):
    """A model with given hyperparameters: numbers of its columns, its components, hyperparameters."""

    columns: tuple[int, ...]
    components: Components
    hyperparameters: tuple[float, ...]


class Coefficients(NamedTuple):
    """Intercept and slopes of standardised columns: mode, and factor of their covariance."""

    mode: FloatArray
    factor: FloatArray
    dispersion: float


class Effect(NamedTuple):
    """A latent component over its positions: posterior mean and standard deviation given one entry."""

    mean: FloatArray
    deviation: FloatArray


def leading_nodes(nodes: Sequence[Node]) -> list[tuple[FloatArray, float]]:
    """The hyperparameters that matter most, with weights that add up to 1."""
    ordered = sorted(nodes, key=lambda node: -node.log_weight)
    weights = np.exp([node.log_weight for node in ordered])
    enough = int(np.searchsorted(np.cumsum(weights), _NODE_MASS * weights.sum())) + 1
    chosen = ordered[: min(enough, _MOST_NODES)]
    total = float(weights[: len(chosen)].sum())
    return [(node.place, float(weight) / total) for node, weight in zip(chosen, weights[: len(chosen)], strict=True)]


@dataclass(frozen=True, eq=False)
class LatentPosterior:
    """Entries of a mixture, computed from the training data when they are asked for.

    Attributes
    ----------
    models
        Response and components.
    columns
        Columns of the features in training.
    entries
        Models with hyperparameters, one after the other.
    """

    models: LatentModels
    columns: FloatArray
    entries: tuple[Entry, ...]

    def between(self, first: int, end: int) -> "LatentPosterior":
        """Return some of the entries."""
        return replace(self, entries=self.entries[first:end])

    def with_columns(self, chosen: IntArray) -> "LatentPosterior":
        """Return the same with some of the columns alone, which all entries have to do with."""
        place = {int(column): j for j, column in enumerate(chosen)}
        entries = [entry._replace(columns=tuple(place[c] for c in entry.columns)) for entry in self.entries]
        return replace(self, columns=self.columns[:, chosen], entries=tuple(entries))

    def __getstate__(self) -> dict[str, object]:
        return {name: value for name, value in vars(self).items() if name != "_fits"}

    @cached_property
    def _fits(self) -> dict[int, tuple[InnerLaplace, Inner]]:
        return {}

    def fit(self, number: int) -> tuple[InnerLaplace, Inner]:
        """The mode and the curvature there of one entry."""
        if number in self._fits:
            return self._fits[number]
        entry = self.entries[number]
        inner = self.models.inner(self.columns[:, list(entry.columns)], entry.components)
        fit = inner, inner.evaluate(np.array(entry.hyperparameters), inner.start())
        if not np.isfinite(fit[1].log_integrand):  # its factors are not those of a mode
            raise DataError(f"No mode was found of a model with hyperparameters {entry.hyperparameters}. Fit again.")
        size = sum(part.size for part in (*fit[1].factors, *fit[1].mode)) + inner.n_border * len(inner.y)
        if size * len(self.entries) < _HELD:
            self._fits[number] = fit
        return fit

    def coefficients(self, number: int) -> Coefficients:
        """Intercept and slopes of one entry."""
        inner, there = self.fit(number)
        size = 1 + inner.n_slopes
        schur = np.tril(there.factors.schur)
        half = np.linalg.inv(schur)[:, :size]  # the inverse of the Schur complement is half' half
        factor = np.linalg.cholesky(half.T @ half)
        dispersion = inner.split(np.array(self.entries[number].hyperparameters))[1]
        if inner.response.family.name == "gaussian":  # the factor is in units of the noise
            unit = self.models.scale
            return Coefficients(unit * there.mode.border[:size], factor * np.sqrt(dispersion), unit**2 / dispersion)
        return Coefficients(there.mode.border[:size], factor, dispersion)

    def locate(
        self, number: int, unit: FloatArray, offset: FloatArray, places: Sequence[NewPlaces]
    ) -> tuple[FloatArray, FloatArray]:
        """Mean and variance of the linear predictor of new rows, given standardised columns (columns, rows)."""
        inner, there = self.fit(number)
        nodes, loadings, border, extra = self._loadings(number, inner, unit, places)
        variance = np.empty(len(offset))
        nested_laplace.predictive_variances(*there.factors, nodes, loadings, border, variance)
        mean = self._offset(number, offset) + self.models.scale * _mean(there, nodes, loadings, border)
        return mean, self.models.scale**2 * (variance + extra)

    def mean(self, number: int, unit: FloatArray, offset: FloatArray, places: Sequence[NewPlaces]) -> FloatArray:
        """The first of what `locate` gives, by itself."""
        inner, there = self.fit(number)
        nodes, loadings, border, _ = self._loadings(number, inner, unit, places)
        return self._offset(number, offset) + self.models.scale * _mean(there, nodes, loadings, border)

    def draw(
        self,
        rng: np.random.Generator,
        number: int,
        n_draws: int,
        unit: FloatArray,
        offset: FloatArray,
        places: Sequence[NewPlaces],
    ) -> FloatArray:
        """Draw linear predictors of new rows, jointly: (draws, rows)."""
        inner, there = self.fit(number)
        band, cross, schur = there.factors
        border = np.asarray(np.linalg.solve(np.tril(schur).T, rng.standard_normal((len(schur), n_draws))))
        field = np.ascontiguousarray(rng.standard_normal((len(band), n_draws)) - cross @ border)
        banded.solve_upper(band, field)
        field += there.mode.field[:, None]
        border += there.mode.border[:, None]
        n_columns = 1 + inner.n_slopes
        eta = border[0] + unit.T @ border[1:n_columns]
        n_fields, first = len(inner.layout.along), n_columns
        for c, (component, places_here, hyperparameters) in enumerate(self._present(number, inner, places)):
            if c in inner.layout.along:
                known = field[inner.layout.along.index(c) :: n_fields]
            else:
                known = border[first : first + len(component.positions)]
                first += len(component.positions)
            if component.field.is_pinned:
                known = np.vstack([np.zeros(n_draws), known[1:]])
            eta = eta + places_here.loading[:, None] * _continue(rng, component, hyperparameters, known, places_here)
        return np.asarray(self._offset(number, offset) + self.models.scale * eta.T)

    def effect(self, number: int, component: int) -> Effect | None:
        """A component of one entry over its positions; None if the entry is without it."""
        entry = self.entries[number]
        if component not in entry.components:
            return None
        inner, there = self.fit(number)
        placed = self.models.placed[component]
        n_positions = len(placed.positions)
        nowhere = NewPlaces(np.zeros(n_positions, np.int64), placed.positions, np.zeros(n_positions))
        places = [nowhere] * len(self.models.placed)
        places[component] = NewPlaces(np.arange(n_positions), placed.positions, np.ones(n_positions))
        nodes, loadings, border, _ = self._loadings(number, inner, np.zeros((inner.n_slopes, n_positions)), places)
        border[0] = 0.0
        mean = _mean(there, nodes, loadings, border)
        variance = np.empty(n_positions)
        nested_laplace.predictive_variances(*there.factors, nodes, loadings, border, variance)
        return Effect(self.models.scale * mean, self.models.scale * np.sqrt(variance))

    def hyperparameters(self, number: int) -> dict[int, FloatArray]:
        """Hyperparameters of one entry on their unbounded scale, by component."""
        inner = self.models.inner(np.empty((len(self.models.response.y), 0)), self.entries[number].components)
        parts = inner.split(np.array(self.entries[number].hyperparameters))[0]
        fields = [c for c in self.entries[number].components if c < len(self.models.placed)]
        return dict(zip(fields, parts, strict=True))

    def natural(self, component: int, hyperparameters: FloatArray) -> dict[str, float]:
        """Hyperparameters of a component by name, in units of the response."""
        values = self.models.placed[component].field.describe(hyperparameters)
        scale = self.models.scale
        return {name: scale * value if name.startswith("sd") else value for name, value in values.items()}

    @property
    def n_models(self) -> int:
        """Number of models, whatever their hyperparameters."""
        return len({(entry.columns, entry.components) for entry in self.entries})

    def _offset(self, number: int, offset: FloatArray) -> FloatArray:
        left_out = self.models.selects_offset and len(self.models.placed) not in self.entries[number].components
        return np.zeros_like(offset) if left_out else offset

    def _present(
        self, number: int, inner: InnerLaplace, places: Sequence[NewPlaces]
    ) -> list[tuple[Placed, NewPlaces, FloatArray]]:
        """Components of an entry with the places of new rows and their hyperparameters."""
        parts = inner.split(np.array(self.entries[number].hyperparameters))[0]
        fields = [c for c in self.entries[number].components if c < len(self.models.placed)]
        return [(self.models.placed[c], places[c], part) for c, part in zip(fields, parts, strict=True)]

    def _loadings(
        self, number: int, inner: InnerLaplace, unit: FloatArray, places: Sequence[NewPlaces]
    ) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Fields that new rows load on with their loadings, columns of the border, and variance beyond both."""
        n_rows, layout = unit.shape[1], inner.layout
        n_fields = len(layout.along)
        nodes, loadings = np.zeros((n_rows, 2 * n_fields), np.int64), np.zeros((n_rows, 2 * n_fields))
        border, extra = np.zeros((inner.n_border, n_rows)), np.zeros(n_rows)
        border[0], border[1 : 1 + inner.n_slopes] = 1.0, unit
        first = 1 + inner.n_slopes
        for c, (component, here, hyperparameters) in enumerate(self._present(number, inner, places)):
            two, weights, variance = _neighbours(component, hyperparameters, here)
            extra += np.square(here.loading) * variance
            for side in range(2):
                loading = here.loading * weights[side]
                if component.field.is_pinned:
                    loading = np.where(two[side] == 0, 0.0, loading)
                if c in layout.along:
                    k = layout.along.index(c)
                    nodes[:, 2 * k + side], loadings[:, 2 * k + side] = two[side] * n_fields + k, loading
                else:
                    np.add.at(border, (first + two[side], np.arange(n_rows)), loading)
            if c in layout.beside:
                first += len(component.positions)
        return nodes, loadings, np.ascontiguousarray(border), extra


def _mean(there: Inner, nodes: IntArray, loadings: FloatArray, border: FloatArray) -> FloatArray:
    """Linear predictors of new rows at the mode."""
    mean = border.T @ there.mode.border
    return np.asarray(mean + (loadings * there.mode.field[nodes]).sum(axis=1) if nodes.shape[1] else mean)


def _neighbours(
    component: Placed, hyperparameters: FloatArray, here: NewPlaces
) -> tuple[IntArray, FloatArray, FloatArray]:
    """For each row two positions, their weights, and the variance given the field there."""
    two, weights = np.zeros((2, len(here.place)), np.int64), np.zeros((2, len(here.place)))
    variance = np.zeros(len(here.place))
    known = here.place != UNKNOWN
    two[0, known], weights[0, known] = here.place[known], 1.0
    if not known.all():
        bridge = component.field.bridge(hyperparameters, component.positions, here.times[~known])
        two[0, ~known], two[1, ~known] = bridge.left, bridge.right
        weights[0, ~known], weights[1, ~known] = bridge.left_weight, bridge.right_weight
        variance[~known] = bridge.variance
    return two, weights, variance


def _continue(
    rng: np.random.Generator, component: Placed, hyperparameters: FloatArray, known: FloatArray, here: NewPlaces
) -> FloatArray:
    """Values of a drawn field in new rows: (rows, draws). Positions between the same neighbours one after the other."""
    values = known[np.maximum(here.place, 0)]
    new = here.place == UNKNOWN
    if not new.any():
        return values
    times, rows = np.unique(here.times[new], return_inverse=True)
    drawn = np.empty((len(times), known.shape[1]))
    right = np.searchsorted(component.positions, times)
    for j, time in enumerate(times.tolist()):
        around, beside = [], []
        if j and right[j - 1] == right[j] and not component.field.by_label:
            around.append(times[j - 1])
            beside.append(drawn[j - 1])
        elif right[j] > 0:
            around.append(component.positions[right[j] - 1])
            beside.append(known[right[j] - 1])
        if right[j] < len(component.positions):
            around.append(component.positions[right[j]])
            beside.append(known[right[j]])
        bridge = component.field.bridge(hyperparameters, np.array(around), np.array([time]))
        mean = bridge.left_weight[0] * beside[bridge.left[0]] + bridge.right_weight[0] * beside[bridge.right[0]]
        drawn[j] = mean + np.sqrt(bridge.variance[0]) * rng.standard_normal(known.shape[1])
    values = values.copy()
    values[new] = drawn[rows]
    return values
