"""Where the fields of a model go: interleaved in a band along one column of positions, the others in the border."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.errors import DataError
from bgnlm.latent.fields import LatentField

LARGEST_BORDER = 3000  # effects beside the band


class Placed(NamedTuple):
    """A component with the positions it is over.

    Attributes
    ----------
    field
        The component.
    positions
        Distinct positions, sorted; for groups their numbers.
    place
        Number of the position of each observation.
    loading
        What the field is multiplied by in each observation.
    """

    field: LatentField
    positions: FloatArray
    place: IntArray
    loading: FloatArray

    def loadings(self) -> FloatArray:
        """Loadings with the place taken out where the field is 0 by definition."""
        return np.where(self.place == 0, 0.0, self.loading) if self.field.is_pinned else self.loading


@dataclass(frozen=True, eq=False)
class Layout:
    """Arrays for the kernels; rows are sorted by the positions of the band.

    Attributes
    ----------
    order
        Rows of the data in the order of the layout.
    along
        Numbers of the components in the band.
    beside
        Numbers of the components in the border.
    n_positions
        Of the band.
    place, loadings, starts
        Position of each row in the band; loadings of its fields; where the rows of each position start.
    beside_place, beside_loadings
        Effect of each row in each component of the border, counted from the first effect there; its loading.
    """

    placed: tuple[Placed, ...]
    order: IntArray
    along: tuple[int, ...]
    beside: tuple[int, ...]
    n_positions: int
    place: IntArray
    loadings: FloatArray
    starts: IntArray
    n_beside: int
    beside_place: IntArray
    beside_loadings: FloatArray

    @cached_property
    def width(self) -> int:
        """Number of diagonals of the interleaved band."""
        placed = [self.placed[c] for c in self.along]
        widths = [len(one.field.precision(np.array(one.field.starts[0]), one.positions)[0]) for one in placed]
        n_fields = len(self.along)
        return max((max(widths, default=1) - 1) * n_fields, n_fields - 1, 0) + 1

    def prior_band(self, hyperparameters: Sequence[FloatArray]) -> FloatArray:
        """Precision of the fields in the band, interleaved."""
        n_fields = len(self.along)
        if not n_fields:
            return np.zeros((0, 1))
        bands = [self.placed[c].field.precision(hyperparameters[c], self.placed[c].positions) for c in self.along]
        if n_fields == 1:
            return np.ascontiguousarray(bands[0])
        both = np.zeros((self.n_positions * n_fields, self.width))
        for k, band in enumerate(bands):
            for d in range(band.shape[1]):
                both[k::n_fields, d * n_fields] = band[:, d]
        return both

    def prior_beside(self, hyperparameters: Sequence[FloatArray]) -> list[FloatArray]:
        """Banded precisions of the fields in the border."""
        return [self.placed[c].field.precision(hyperparameters[c], self.placed[c].positions) for c in self.beside]

    def beside_columns(self) -> FloatArray:
        """Loadings of the effects in the border: (rows, effects)."""
        columns = np.zeros((len(self.order), self.n_beside))
        rows = np.arange(len(self.order))
        for b in range(len(self.beside)):
            columns[rows, self.beside_place[:, b]] = self.beside_loadings[:, b]
        return columns


def lay_out(placed: Sequence[Placed], n_obs: int) -> Layout:
    """Put the components over the column with the most positions into the band."""
    sizes: dict[str | int, int] = {}
    for component in placed:
        column = component.field.column
        sizes[column] = max(sizes.get(column, 0), len(component.positions))
    along_column = max(sizes, key=lambda column: sizes[column], default=None)
    along = tuple(c for c, component in enumerate(placed) if component.field.column == along_column)
    beside = tuple(c for c in range(len(placed)) if c not in along)
    n_beside = sum(len(placed[c].positions) for c in beside)
    if n_beside > LARGEST_BORDER:
        raise DataError(
            f"The components over {', '.join(str(placed[c].field.column) for c in beside)} have {n_beside} effects "
            f"beside those along {along_column}; at most {LARGEST_BORDER} are possible. Leave some components out, or "
            "join groups."
        )
    place = placed[along[0]].place if along else np.zeros(n_obs, np.int64)
    order = np.argsort(place, kind="stable")
    n_positions = len(placed[along[0]].positions) if along else 0
    place = place[order]
    firsts = np.cumsum([0, *(len(placed[c].positions) for c in beside)])
    beside_place = np.empty((n_obs, len(beside)), np.int64)
    for b, c in enumerate(beside):
        beside_place[:, b] = firsts[b] + placed[c].place[order]
    return Layout(
        placed=tuple(placed),
        order=order,
        along=along,
        beside=beside,
        n_positions=n_positions,
        place=place,
        loadings=_loadings(placed, along, order),
        starts=np.searchsorted(place, np.arange(n_positions + 1)),
        n_beside=n_beside,
        beside_place=beside_place,
        beside_loadings=_loadings(placed, beside, order),
    )


def _loadings(placed: Sequence[Placed], chosen: Sequence[int], order: IntArray) -> FloatArray:
    loadings = np.empty((len(order), len(chosen)))
    for k, c in enumerate(chosen):
        loadings[:, k] = placed[c].loadings()[order]
    return loadings
