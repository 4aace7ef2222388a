"""The report of a fitted estimator: from the estimator and data to what the page is made of."""

from collections.abc import Iterator
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bgnlm.errors import DataError, FeatureError, OutputError, SettingError
from bgnlm.estimators.exports import program_of
from bgnlm.estimators.inputs import column_name
from bgnlm.page.average import LatentColumn, PageAverage, page_average
from bgnlm.page.data import PageData
from bgnlm.page.document import PageContent, write_page
from bgnlm.page.sliders import Span
from bgnlm.persistence import write_whole


def report_of(estimator: Any, X: Any, y: Any, path: Any, offset: Any, title: str | None) -> str | None:
    """Write the page of a fitted estimator to a file, or return it if there is no path."""
    if not isinstance(path, str | PathLike | None):
        raise SettingError(f"path must be the name of a file, or None; got {path!r}.")
    if not isinstance(title, str | None):
        raise SettingError(f"title must be a text, or None; got {title!r}.")
    if path is not None:
        with _writing(path):
            _check_place(Path(path))
    data = _data(estimator, X, y, offset)
    latent = _latent(estimator)
    page = write_page(
        PageContent(
            model=estimator,
            title=title or f"What explains {estimator.response_name_}?",
            data=data,
            average=_average(estimator, latent),
            spans=_spans(estimator, data),
            labelled={one.column for one in latent if one.by_label},
        )
    )
    if path is None:
        return page
    with _writing(path):
        write_whole(Path(path), page.encode())
    return None


@contextmanager
def _writing(path: Any) -> Iterator[None]:
    """Say what stands against writing a file."""
    try:
        yield
    except OutputError:
        raise
    except (OSError, ValueError, RuntimeError) as error:  # a name with a zero byte, a circle of links
        reason = getattr(error, "strerror", None) or error
        raise OutputError(
            f"The page could not be written to {str(path)!r}: {reason}. Nothing was changed there. Name another file."
        ) from error


def _check_place(path: Path) -> None:
    """Refuse early what could not be written in the end."""
    if path.is_dir():
        raise OutputError(f"path must be a file; {str(path)!r} is a folder. Give the name of a file in it.")
    if not path.parent.is_dir():
        missing = f"there is no folder {str(path.parent)!r}"
        raise OutputError(f"path must be a file in a folder that exists; {missing}. Create it first.")


def _data(estimator: Any, X: Any, y: Any, offset: Any) -> PageData | None:
    """Rows as a data frame whose columns are in the order of the training data."""
    if X is None:
        if y is not None or offset is not None:
            raise DataError("y and offset belong to the rows of X, which is not there. Give report(X, y, ...).")
        return None
    from bgnlm.plot.inputs import take_rows

    if isinstance(X, str | PathLike):
        raise DataError(f"X must be a table; got {X!r}. The name of the page comes as path: report(path={str(X)!r}).")
    if hasattr(X, "shape") and len(X.shape) == 2 and X.shape[0] == 0:
        raise DataError("X must have rows; got none. Give at least one, or leave X out: report() needs no data.")
    estimator._rows(X, offset)  # refuses what predictions would refuse
    if offset is None and estimator.has_offset_:
        offset = 0.0  # as has just been said, once
    frame = take_rows(estimator, X, 2**62).frame
    coding = estimator.coding_
    if coding.has_names and set(coding.input_names) == set(frame.columns):
        frame = frame[list(coding.input_names)]
    return PageData(frame=frame, y=None if y is None else _response(estimator, y, len(frame)), offset=offset)


def _response(estimator: Any, y: Any, n_rows: int) -> Any:
    """Refuse what the model could not have predicted."""
    from bgnlm.estimators.base import check_target
    from bgnlm.plot.fits import events_of, response_of

    values = check_target(y, n_rows)
    if hasattr(estimator, "classes_"):
        events_of(estimator, values, n_rows)
        return values
    numbers = response_of(estimator, values, n_rows)
    estimator.searches_[0].average.family.check_response(numbers, has_weights=True)
    return numbers


def _average(estimator: Any, latent: tuple[LatentColumn, ...]) -> PageAverage | str:
    """What the sliders compute with, or why they cannot."""
    try:
        program = program_of(estimator, "average", "mean", without_latent=True)
        return page_average(program, latent)
    except (FeatureError, SettingError) as error:  # transforms of one's own
        return f"The models cannot be computed in the page. {error}"


def _latent(estimator: Any) -> tuple[LatentColumn, ...]:
    names = estimator.coding_.input_names
    columns = estimator.latent_columns_
    return tuple(
        LatentColumn(
            column=column_name(names, field.column),
            slope=None if field.slope is None else column_name(names, field.slope),
            values=tuple(map(_as_shown, where.values.tolist())),
            by_label=field.by_label,
        )
        for field, where in zip(columns.fields, columns.positions, strict=True)
    )


def _as_shown(position: Any) -> str:
    return str(position).removesuffix(".0") if isinstance(position, float) else str(position)


def _spans(estimator: Any, data: PageData | None) -> dict[str, Span]:
    """Ranges of numeric columns: those of the training data, otherwise of the rows given."""
    found = dict(estimator.input_ranges_)
    if data is not None:
        for place, name in enumerate(estimator.coding_.input_names):
            values = data.frame.iloc[:, place]
            if name not in found and values.dtype.kind in "iuf" and values.notna().any():
                found[name] = tuple(np.nanquantile(values.to_numpy(np.float64), [0.0, 0.5, 1.0]).tolist())
    return {name: Span(low=low, middle=middle, high=high) for name, (low, middle, high) in found.items()}
