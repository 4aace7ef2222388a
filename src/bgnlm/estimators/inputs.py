"""The table of inputs: its coding as numbers is learnt on training data and applied to any table like it."""

import warnings
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, TypeAlias

import numpy as np
import numpy.typing as npt

from bgnlm._typing import FloatArray
from bgnlm._validation import check_choice, check_weights
from bgnlm.errors import DataError, UnseenLevelWarning
from bgnlm.estimators.columns import (
    BooleanColumn,
    CategoricalColumn,
    Column,
    DataTypeError,
    GivenColumn,
    NumericColumn,
    PositionColumn,
    check_kind,
    code_column,
    coded_names,
    demand,
    given_levels,
    given_numbers,
    given_objects,
    learn_column,
    unseen_levels,
)

_KINDS: dict[str, type[Column]] = {
    "numeric": NumericColumn,
    "boolean": BooleanColumn,
    "categorical": CategoricalColumn,
    "position": PositionColumn,
}
_FILL = 'Drop these rows, fill the values, or fit with missing="impute".'
_POSITIONS_NEEDED = "Drop these rows: latent components need their positions, groups and slopes."

Ranges: TypeAlias = dict[str, tuple[float, float, float]]


@dataclass(frozen=True)
class TableCoding:
    """How the columns of a table are turned into the numbers that the search sees.

    Attributes
    ----------
    columns : tuple of NumericColumn, BooleanColumn, CategoricalColumn or PositionColumn
        One for each column of the training data.
    has_names : bool
        Whether the training data had names, all of them strings; without, columns are x1, x2, ...
    """

    columns: tuple[Column, ...]
    has_names: bool

    def __post_init__(self) -> None:
        demand(type(self.has_names) is bool, "has_names must be true or false")
        demand(type(self.columns) is tuple and all(isinstance(c, Column) for c in self.columns), "columns are needed")
        numbered = _numbered(len(self.columns))
        demand(self.has_names or self.input_names == numbered, "columns without names must be x1, x2, ...")
        _check_different(self.input_names)
        if not self.names:
            raise DataError("X must have a column that varies; each holds a single category. Add another column.")
        if twice := _repeated(self.names):
            raise DataError(
                f"coded columns must have different names; got more than once: {twice}. The name stands for a level "
                "(or for missing values) of a column: rename the level or the other column."
            )

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the coded columns."""
        return tuple(name for column in self.columns for name in coded_names(column))

    @property
    def input_names(self) -> tuple[str, ...]:
        """Names of the columns as given in training."""
        return tuple(column.name for column in self.columns)

    @property
    def names_by_input(self) -> dict[str, tuple[str, ...]]:
        """Names of the coded columns that each column is turned into."""
        return {column.name: coded_names(column) for column in self.columns}

    def encode(self, X: Any, estimator_name: str = "BGNLM") -> FloatArray:
        """Code a table like that of the training data.

        Parameters
        ----------
        X : array-like or data frame of shape (n_rows, len(input_names))
            Columns are matched by name, in any order, if there were names in training and are now; otherwise in order.
        estimator_name : str
            What messages call the model.

        Returns
        -------
        array of shape (n_rows, len(names))
            Finite numbers, in Fortran order.
        """
        table = _open_table(X, estimator_name)
        given = [table.read(place) for place in _match(self, table.names, table.shape[1], estimator_name)]
        pairs = list(zip(self.columns, given, strict=True))
        _refuse_missing([came for column, came in pairs if isinstance(column, PositionColumn)], _POSITIONS_NEEDED)
        _refuse_missing([came for column, came in pairs if column.fill is None])
        for column, came in pairs:
            check_kind(column, came)
        if unseen := [note for column, came in pairs if (note := unseen_levels(column, came))]:
            message = f"levels that training did not see are treated like the most frequent one. {'; '.join(unseen)}."
            warnings.warn(message, UnseenLevelWarning, stacklevel=3)
        coded = np.empty((table.shape[0], len(self.names)), order="F")
        np.concatenate([code_column(column, came) for column, came in pairs], axis=1, out=coded)
        return coded

    def read(self, X: Any, names: Iterable[str], estimator_name: str = "BGNLM") -> list[GivenColumn]:
        """Columns for latent components as they come, by their names in the training data."""
        table = _open_table(X, estimator_name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of names: `encode` warns
            places = list(_match(self, table.names, table.shape[1], estimator_name))
        given = [table.read(places[self.input_names.index(name)]) for name in names]
        _refuse_missing(given, _POSITIONS_NEEDED)
        return given

    def to_plain(self) -> dict[str, Any]:
        """The coding in values that JSON knows."""
        kind_of = {of_kind: kind for kind, of_kind in _KINDS.items()}
        columns = [{"kind": kind_of[type(column)]} | vars(column) for column in self.columns]
        for column in columns:
            if "levels" in column:
                column["levels"] = list(column["levels"])
        return {"has_names": self.has_names, "columns": columns}

    @classmethod
    def from_plain(cls, value: Any) -> Self:
        """Read what `to_plain` wrote; anything else is refused."""
        demand(type(value) is dict and set(value) == {"has_names", "columns"}, "it must say has_names and columns")
        demand(type(value["columns"]) is list, "columns must be a list")
        return cls(tuple(map(_column_from_plain, value["columns"])), value["has_names"])


def learn_coding(
    X: Any,
    *,
    missing: str = "raise",
    sample_weight: npt.ArrayLike | None = None,
    positions: Iterable[str | int] = (),
    kept: Collection[str] = (),
    estimator_name: str = "BGNLM",
) -> TableCoding:
    """Learn the coding of a table from training data.

    Parameters
    ----------
    X : array-like or data frame of shape (n_rows, n_columns)
        Numbers, booleans and categories.
    missing : {"raise", "impute"}
        Refuse missing values, or replace them by the median or the most frequent value. An indicator is added for
        columns in which a value is missing.
    sample_weight : array-like of shape (n_rows,), optional
        How often each row was observed.
    positions : names or numbers of columns, optional
        Those that are no inputs, because latent components are along them.
    kept : names of coded columns, optional
        Those that are inputs all the same.
    estimator_name : str
        What messages call the model.
    """
    impute = check_choice(missing, "missing", ("raise", "impute")) == "impute"
    table = _open_table(X, estimator_name)
    weights = check_weights(sample_weight, table.shape[0])
    given = [table.read(place) for place in range(table.shape[1])]
    names = table.names or _numbered(len(given))
    along = {column_name(names, position) for position in positions}
    _refuse_missing([came for name, came in zip(names, given, strict=True) if name in along], _POSITIONS_NEEDED)
    if not impute:
        _refuse_missing(given)
    apart = {name for name in along if not any(other == name or other.startswith(f"{name}=") for other in kept)}
    if apart == set(names):
        raise DataError(
            "X must have a column that is an input; latent components are along all of them. Add another column, or "
            f"name one of them in keep: keep=[{names[0]!r}]."
        )
    columns = (
        PositionColumn(name) if name in apart else learn_column(name, came, weights, impute=impute)
        for name, came in zip(names, given, strict=True)
    )
    return TableCoding(tuple(columns), has_names=table.names is not None)


def ranges_of(coding: TableCoding, design: FloatArray) -> Ranges:
    """Smallest value, median and largest value of numeric columns, given all coded ones."""
    place = {name: k for k, name in enumerate(coding.names)}
    numeric = [column.name for column in coding.columns if isinstance(column, NumericColumn)]
    each = {name: np.quantile(design[:, place[name]], [0.0, 0.5, 1.0]) for name in numeric}
    return {name: (float(low), float(middle), float(high)) for name, (low, middle, high) in each.items()}


def column_name(names: Sequence[str], column: str | int) -> str:
    """Name of a column given by its name or its number."""
    if isinstance(column, str) and column in names:
        return column
    if not isinstance(column, str) and 0 <= column < len(names):
        return names[column]
    raise DataError(
        f"latent names the column {column!r}, which X does not have. Its columns are: {', '.join(names[:20])}"
        f"{', ...' if len(names) > 20 else ''}; without names they go by their numbers, from 0."
    )


@dataclass(frozen=True)
class _Table:
    """What came: names if all are strings, shape, and how to read the column in a place."""

    names: tuple[str, ...] | None
    shape: tuple[int, int]
    read: Callable[[int], GivenColumn]


def _open_table(X: Any, estimator_name: str) -> _Table:
    """Look at a table without reading its columns yet."""
    if hasattr(X, "toarray"):
        raise DataTypeError("X must be dense, sparse data are not supported. Use X.toarray().")
    if hasattr(X, "collect"):
        raise DataTypeError(f"X must be in memory; got {type(X).__name__}. Use X.collect().")
    names = _string_names(X)
    frame = _as_frame(X)
    cells = _as_array(X) if frame is None else frame
    if 0 in cells.shape:
        what = "sample(s)" if cells.shape[0] == 0 else "feature(s)"
        raise DataError(
            f"Found array with 0 {what} (shape={cells.shape}) while a minimum of 1 is required. "
            f"Give {estimator_name} at least one row and one column."
        )

    def read(place: int) -> GivenColumn:
        label = repr(names[place]) if names else f"{place} (x{place + 1})"
        return _read_array(cells[:, place], label) if frame is None else _read_series(cells[:, place], label)

    return _Table(names, cells.shape, read)


def _string_names(X: Any) -> tuple[str, ...] | None:
    """Names of columns if they are strings; other names, numbers say, are as good as none."""
    given = getattr(X, "column_names", getattr(X, "columns", None))
    if given is None:
        return None
    names = list(given)
    types = sorted({type(name).__name__ for name in names})
    n_strings = sum(isinstance(name, str) for name in names)
    if 0 < n_strings < len(names):
        raise DataTypeError(
            "Feature names are only supported if all input features have string names, but your input has "
            f"{types} as feature name / column name types. Convert them all, by X.columns = X.columns.astype(str) say."
        )
    _check_different(map(str, names))
    if "" in names:
        raise DataError(f"the columns of X must have names that are not empty; number {names.index('')} has none.")
    return tuple(map(str, names)) if n_strings else None


def _as_frame(X: Any) -> Any:
    """A data frame in memory, of any library, behind one interface; None for anything else."""
    if isinstance(X, np.ndarray | list | tuple):
        return None
    import narwhals.stable.v1 as nw

    frame = nw.from_native(X, eager_only=True, pass_through=True)
    return frame if isinstance(frame, nw.DataFrame) else None


def _as_array(X: Any) -> npt.NDArray[Any]:
    if np.ma.is_masked(X):
        raise DataError("X must have no masked entries. Use X.filled(np.nan) for missing values.")
    try:
        cells = np.asarray(X)
        # Beside a string, numbers in lists become strings too.
        if cells.dtype.kind in "US" and not isinstance(X, np.ndarray):
            cells = np.asarray(X, dtype=object)
    except ValueError:
        raise DataError("the rows of X must have the same length. Fill up the short ones.") from None
    if cells.ndim == 1:
        raise DataError(
            "Expected 2D array, got 1D array instead. Reshape your data either using array.reshape(-1, 1) if your "
            "data has a single feature or array.reshape(1, -1) if it contains a single sample."
        )
    if cells.ndim != 2:
        found = f"{cells.ndim}D array" if cells.ndim else type(X).__name__
        raise DataError(f"Expected 2D array, got {found} instead. Give a table of rows and columns.")
    return cells


def _read_array(values: npt.NDArray[Any], label: str) -> GivenColumn:
    match values.dtype.kind:
        case "b":
            return given_numbers(values, label, "booleans")
        case "i" | "u" | "f":
            return given_numbers(values, label)
        case _:
            # Not tolist, which turns some dates into numbers.
            return given_objects(list(values), label)


def _read_series(series: Any, label: str) -> GivenColumn:
    import narwhals.stable.v1 as nw

    if series.dtype in (nw.Categorical, nw.Enum):
        return given_levels(series.to_list(), label)
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        numbers = series.cast(nw.Float64).to_numpy()
        return given_numbers(numbers, label, "booleans" if series.dtype == nw.Boolean else "numbers")
    # What a library calls strings may hold anything: its type is often a guess from the first rows.
    return given_objects(series.to_list(), label)


def _match(coding: TableCoding, names: tuple[str, ...] | None, n_columns: int, estimator_name: str) -> Iterable[int]:
    """Where each column of the training data is found in a new table."""
    expected = coding.input_names
    if coding.has_names and names is not None:
        if unknown_or_absent := _difference(expected, names):
            raise DataError(
                "The feature names should match those that were passed during fit.\n"
                f"{unknown_or_absent}Give the columns of the training data, in any order."
            )
        place_of = {name: place for place, name in enumerate(names)}
        return [place_of[name] for name in expected]
    if coding.has_names:
        message = f"X does not have valid feature names, but {estimator_name} was fitted with feature names"
        warnings.warn(message, UserWarning, stacklevel=4)
    elif names is not None:
        message = f"X has feature names, but {estimator_name} was fitted without feature names"
        warnings.warn(message, UserWarning, stacklevel=4)
    if n_columns != len(expected):
        raise DataError(
            f"X has {n_columns} features, but {estimator_name} is expecting {len(expected)} features as input. "
            "Give the columns of the training data."
        )
    return range(n_columns)


def _difference(expected: Iterable[str], names: Iterable[str]) -> str:
    """Columns that are too many and too few, in the words of scikit-learn."""
    text = ""
    for title, unmatched in (
        ("Feature names unseen at fit time", sorted(set(names).difference(expected))),
        ("Feature names seen at fit time, yet now missing", sorted(set(expected).difference(names))),
    ):
        if unmatched:
            shown = unmatched[:5] + ["..."] * (len(unmatched) > 5)
            text += f"{title}:\n" + "".join(f"- {name}\n" for name in shown)
    return text


def _refuse_missing(given: list[GivenColumn], advice: str = _FILL) -> None:
    holes = [(came.label, came.missing) for came in given]
    holes = [(label, missing) for label, missing in holes if missing.any()]
    if not holes:
        return
    row, _, label = min((int(missing.argmax()), order, label) for order, (label, missing) in enumerate(holes))
    total = sum(np.count_nonzero(missing) for _, missing in holes)
    raise DataError(
        f"X has missing values (NaN), the first in row {row}, column {label}; number of missing values: {total}, of "
        f"columns with any: {len(holes)}. {advice}"
    )


def _column_from_plain(value: Any) -> Column:
    demand(type(value) is dict and isinstance(value.get("kind"), str), "a column must say its kind")
    kind = value["kind"]
    demand(kind in _KINDS, f"the kind of a column must be one of {', '.join(_KINDS)}")
    keys = {field.name for field in fields(_KINDS[kind])}
    demand(set(value) == {"kind", *keys}, f"a {kind} column must say {', '.join(sorted(keys))} and nothing else")
    settings: dict[str, Any] = {key: tuple(value[key]) if type(value[key]) is list else value[key] for key in keys}
    return _KINDS[kind](**settings)


def _numbered(n_columns: int) -> tuple[str, ...]:
    return tuple(f"x{place + 1}" for place in range(n_columns))


def _check_different(names: Iterable[str]) -> None:
    if twice := _repeated(names):
        raise DataError(f"the columns of X must have different names; got more than once: {twice}. Rename them.")


def _repeated(names: Iterable[str]) -> str:
    return ", ".join(sorted(repr(name) for name, count in Counter(names).items() if count > 1)[:5])
