"""The columns of a table that latent components are along: learnt in training, found again in new rows."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bgnlm._typing import AnyArray
from bgnlm.errors import DataError, SettingError
from bgnlm.estimators.columns import GivenColumn
from bgnlm.estimators.inputs import TableCoding, column_name
from bgnlm.latent.fields import IID, Grouped, LatentField
from bgnlm.latent.layout import Placed
from bgnlm.latent.place import NewPlaces, Positions, column_values, describe, place_new, positions_of


@dataclass(frozen=True, eq=False)
class LatentColumns:
    """Components, and the positions or groups of each in training."""

    fields: tuple[LatentField, ...]
    positions: tuple[Positions, ...]

    def labelled(self, coding: TableCoding) -> set[str]:
        """Names of the columns whose values are texts."""
        each = zip(self.fields, self.positions, strict=True)
        return {
            column_name(coding.input_names, field.column) for field, where in each if where.values.dtype.kind == "U"
        }

    def placed(self, X: Any, coding: TableCoding) -> tuple[Placed, ...]:
        """Components over the positions of the training data."""
        found = zip(self.fields, self.positions, self.places(X, coding), strict=True)
        return tuple(Placed(field, where.times, new.place, new.loading) for field, where, new in found)

    def places(self, X: Any, coding: TableCoding) -> tuple[NewPlaces, ...]:
        """Where the rows of a table are for each component."""
        found = []
        for field, where in zip(self.fields, self.positions, strict=True):
            values = _values(field, X, coding)
            _check_kind(field, where, values)
            found.append(place_new(where, values, _slope(field, X, coding)))
        return tuple(found)


def check_different(fields: tuple[LatentField, ...], coding: TableCoding) -> None:
    """Refuse components that are one and the same: by name and by number, or IID and Grouped over one column."""
    seen: dict[tuple[object, ...], LatentField] = {}
    for field in fields:
        kind = Grouped if isinstance(field, IID) else type(field)
        columns = (column_name(coding.input_names, c) for c in (field.column, field.slope) if c is not None)
        other = seen.setdefault((kind, *columns), field)
        if other is not field:
            raise SettingError(
                f"latent has {describe(other)} and {describe(field)}, which are the same component. Leave one out."
            )


def learn_latent(fields: tuple[LatentField, ...], X: Any, coding: TableCoding) -> LatentColumns:
    """Learn the positions and groups of a table."""
    return LatentColumns(fields, tuple(positions_of(field, _values(field, X, coding)) for field in fields))


def _values(field: LatentField, X: Any, coding: TableCoding) -> AnyArray:
    given = coding.read(X, [column_name(coding.input_names, field.column)])[0]
    return column_values(field, _as_given(given))


def _slope(field: LatentField, X: Any, coding: TableCoding) -> AnyArray | None:
    if field.slope is None:
        return None
    given = coding.read(X, [column_name(coding.input_names, field.slope)])[0]
    return column_values(field, _as_given(given), is_slope=True)


def _check_kind(field: LatentField, where: Positions, values: AnyArray) -> None:
    """Refuse texts where training had numbers, and the other way round: none of them would be known."""
    wanted, came = ("numbers" if each.dtype.kind == "f" else "texts" for each in (where.values, values))
    if wanted != came:
        raise DataError(f"The column of {describe(field)} had {wanted} in training; got {came}. Convert it.")


def _as_given(given: GivenColumn) -> AnyArray:
    return np.array(given.levels)[given.values] if given.kind == "categories" else given.values
