"""Effects of inputs: the response averaged over the rows of a table in which one or two columns are set."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bgnlm._validation import check_choice, check_count, check_number
from bgnlm.errors import SettingError
from bgnlm.plot.canvas import (
    PLAIN,
    axes_for,
    inches_of,
    label_axes,
    legend,
    legend_above,
    note,
    rug,
    shown,
    some_note,
    stroke,
    tidy,
)
from bgnlm.plot.fits import Curve, curves_of, draws_of, mean_text, means_of
from bgnlm.plot.inputs import Rows, Values, input_place, take_rows, values_at

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bgnlm._typing import AnyArray, FloatArray

_ROOM = 0.1  # of the axis, for the name of one of few values
_MOST_LEVELS = 6  # of a second input that has a line for each
_MANY = 20  # names of categories that are written small
_LETTER = 0.085  # inches, of a letter
_SLANTED = 0.24  # inches along the axis, of a name aslant
_UPRIGHT = 0.18  # inches, of a small upright name
_LABEL = (0.12, 0.05)  # shares of width and height, of the number of a contour


class Profile(NamedTuple):
    """Averages over rows at each of some values, (values, curves); ends of intervals or None."""

    mean: FloatArray
    low: FloatArray | None
    high: FloatArray | None


def effect(
    model: Any,
    X: Any,
    inputs: str | int | tuple[str | int, str | int],
    *,
    level: float = 0.9,
    show: str = "mean",
    grid: Any = None,
    n_grid: int | None = None,
    n_rows: int = 100,
    n_draws: int = 500,
    offset: Any = None,
    target: Any = None,
    random_state: Any = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw the effect of one input, or of two, averaged over models and over the rows of a table (partial dependence).

    The columns of the inputs are set to one value after the other, the others stay as they are, and the means of the
    response are averaged. The band is the central interval of that average under draws of models and coefficients; the
    noise is not in it.

    Parameters
    ----------
    model
        A fitted estimator.
    X
        The table to average over: the training data, or any like it.
    inputs
        Name (or number, from 0) of a column, or two of them. Two with many values each are drawn as contours, with the
        rows as dots: where there are none, the picture is the model's guess. Otherwise there is a line for each level;
        a category of more than six levels has a band of colour for each.
    level
        Probability of the band.
    show
        Of two inputs: "mean", or "width" of its interval.
    grid
        Values of a single input; by default from its 1 % to its 99 % quantile, or all if they are few.
    n_grid, n_rows, n_draws, random_state
        How many values, rows (drawn at random, always the same) and draws; the seed of the draws.
    offset
        Of the rows, as for `predict`.
    target
        The class whose probability is drawn: the second of two by default; of more classes all.
    ax
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import bgnlm, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(1, 3, size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=60)
    >>> quick = bgnlm.SearchConfig(n_populations=2)
    >>> model = bgnlm.BGNLMRegressor(search=quick, n_chains=2, random_state=1).fit(X, y)
    >>> ax = bgnlm.plot.effect(model, X, "x1", n_draws=50)
    >>> ax.get_xlabel()
    'x1'
    """
    rows = take_rows(model, X, check_count(n_rows, "n_rows", low=1), offset)
    names = list(inputs) if isinstance(inputs, tuple | list) else [inputs]
    if len(names) not in (1, 2) or len(set(names)) != len(names):
        raise SettingError(f"inputs must be one column or two different ones; got {inputs!r}.")
    places = [input_place(model, rows, name) for name in names]
    task = _Task(
        model,
        rows,
        check_number(level, "level", above=0.0, high=0.9999),
        check_count(n_draws, "n_draws", low=1),
        random_state,
        curves_of(model, target),
    )
    if len(names) == 1:
        values = values_at(model, rows, places[0], check_count(n_grid or 40, "n_grid", low=2), grid)
        return _lines(task, axes_for(ax, (_length(values, 6.0), 4.0)), places[0], values)
    if grid is not None:
        raise SettingError("grid is for a single input. Leave it out.")
    check_choice(show, "show", ("mean", "width"))
    return _pair(task, ax, places, check_count(n_grid or 25, "n_grid", low=2), show)


class _Task(NamedTuple):
    model: Any
    rows: Rows
    level: float
    n_draws: int
    random_state: Any
    curves: list[Curve]

    def profile(self, settings: dict[int, AnyArray], *, with_band: bool = True) -> Profile:
        """Average over the rows."""
        table, offset = self.rows.repeated(settings)
        n_values = len(next(iter(settings.values())))
        columns = [curve.column for curve in self.curves]
        means = means_of(self.model, table, offset)
        mean = means.reshape(n_values, -1, means.shape[1]).mean(axis=1)[:, columns]
        if not with_band:
            return Profile(mean, None, None)
        drawn = draws_of(self.model, table, self.n_draws, offset, self.random_state)
        averages = drawn.reshape(self.n_draws, n_values, -1, drawn.shape[2]).mean(axis=2)[:, :, columns]
        low, high = np.quantile(averages, [0.5 - self.level / 2, 0.5 + self.level / 2], axis=0)
        return Profile(mean, low, high)

    def name(self, place: int) -> str:
        """Name of the input in a place."""
        names = self.model.coding_.input_names
        given = self.rows.frame.columns[place]
        return shown(str(given) if self.model.coding_.has_names and given in names else names[place])

    @property
    def what(self) -> str:
        """What is averaged."""
        if len(self.curves) > 1:
            return f"probability of the class ({shown(self.model.response_name_)})"
        return mean_text(self.model, self.curves[0])

    @property
    def words(self) -> str:
        """What the picture rests on."""
        taken = some_note(self.rows.n_given, len(self.rows.frame))
        return f"averaged over {taken or f'{self.rows.n_given:,} rows'}"


def _column(rows: Rows, place: int) -> Any:
    return rows.frame.iloc[:, place]


def _lines(task: _Task, ax: Axes, place: int, values: Values) -> Axes:
    """One line with a band for each class."""
    profile = task.profile({place: values.given})
    for number, curve in enumerate(task.curves):
        _line(ax, values, profile, number, number, curve.name if len(task.curves) > 1 else "", len(task.curves))
    _rug(ax, task, place, values)
    _label_values(ax, values)
    tidy(ax, "y")
    label_axes(ax, task.name(place), task.what)
    _legend(ax, values)
    note(ax, f"{100 * task.level:.3g} % credible band; {task.words}")
    return ax


def _line(ax: Axes, values: Values, profile: Profile, column: int, number: int, name: str, of: int) -> None:
    """Draw a mean with its band, or dots with intervals where values are few."""
    assert profile.low is not None
    assert profile.high is not None
    ink, mean = stroke(number), profile.mean[:, column]
    low, high = profile.low[:, column], profile.high[:, column]
    label = f"class {name}" if name and "=" not in name else name
    if not values.few:
        ax.fill_between(values.at, low, high, color=ink.color, alpha=0.22, linewidth=0)
        ax.plot(values.at, mean, color=ink.color, linestyle=ink.linestyle, linewidth=1.8, label=label or None)
        return
    span = float(np.ptp(values.at)) or 1.0
    at = values.at + 0.02 * span * (number - 0.5 * (of - 1))
    ax.vlines(at, low, high, color=ink.color, linewidth=1.6)
    joined = ink.linestyle if values.labels is None else "none"
    ax.plot(at, mean, color=ink.color, linestyle=joined, linewidth=0.8, marker=ink.marker, label=label or None)


def _rug(ax: Axes, task: _Task, place: int, values: Values) -> None:
    """Mark where rows are, along the lower edge."""
    if values.labels is None and not values.few:
        rug(ax, np.asarray(_column(task.rows, place), dtype=np.float64), float(values.at[0]), float(values.at[-1]))


def _label_values(ax: Axes, values: Values, axis: str = "x") -> None:
    if values.labels is not None:
        texts = [shown(label, 16) for label in values.labels]
        place = _slanted(ax, texts) if axis == "x" else {}
        size = "small" if len(texts) > _MANY else "medium"
        (ax.set_xticks if axis == "x" else ax.set_yticks)(values.at, texts, fontsize=size, **place, **PLAIN)
        (ax.set_xlim if axis == "x" else ax.set_ylim)(values.at[0] - 0.5, values.at[-1] + 0.5)
    elif values.few and axis == "x":
        places = _apart(values.at)
        ax.set_xticks(places, [f"{value:.4g}" for value in places])
        ax.margins(x=0.15)


def _slanted(ax: Axes, texts: list[str]) -> dict[str, Any]:
    """Turn names that would be written over each other side by side; upright ones need the least room."""
    room = inches_of(ax) / len(texts)
    lengths = [len(text) for text in texts]
    if all(0.5 * (a + b) + 1.5 <= room / _LETTER for a, b in pairwise(lengths)):
        return {}
    if room < _SLANTED:
        return {"rotation": 90}
    return {"rotation": 35, "ha": "right", "rotation_mode": "anchor"}


def _length(values: Values, usual: float) -> float:
    """Return the length of a side that has room for the names of many categories."""
    return usual if values.labels is None else max(usual, 1.5 + _UPRIGHT * len(values.labels))


def _legend(ax: Axes, values: Values) -> None:
    """Explain lines where they leave room; dots with intervals, which may be anywhere, from above."""
    (legend_above if values.few else legend)(ax)


def _apart(places: FloatArray) -> list[float]:
    """Leave out places whose names would be written over each other."""
    chosen: list[float] = []
    for place in places.tolist():
        if not chosen or place - chosen[-1] >= _ROOM * np.ptp(places):
            chosen.append(place)
    return chosen


def _pair(task: _Task, ax: Axes | None, places: list[int], n_grid: int, show: str) -> Axes:
    """Two inputs: contours, or a line for each level of the one that has few."""
    if len(task.curves) > 1:
        raise SettingError("Of several classes two inputs show one at a time. Say which: target=...")
    values = [values_at(task.model, task.rows, place, n_grid) for place in places]
    if values[0].few and not values[1].few:
        values, places = values[::-1], places[::-1]
    if values[1].few and len(values[1].at) <= _MOST_LEVELS and show == "mean":
        return _line_by_level(task, axes_for(ax, (_length(values[0], 6.0), 4.0)), places, values)
    size = _length(values[0], 6.0), _length(values[1], 4.6)
    return _contours(task, axes_for(ax, size), places, values, show)


def _line_by_level(task: _Task, ax: Axes, places: list[int], values: list[Values]) -> Axes:
    first, second = values
    n_first, n_second = len(first.given), len(second.given)
    profile = task.profile({places[0]: np.tile(first.given, n_second), places[1]: np.repeat(second.given, n_first)})
    name = task.name(places[1])
    levels = second.labels or [f"{level:g}" for level in second.at.tolist()]
    for k, level in enumerate(levels):
        part = slice(k * n_first, (k + 1) * n_first)
        assert profile.low is not None
        assert profile.high is not None
        one = Profile(profile.mean[part], profile.low[part], profile.high[part])
        _line(ax, first, one, 0, k, f"{name} = {shown(level, 16)}", n_second)
    _rug(ax, task, places[0], first)
    _label_values(ax, first)
    tidy(ax, "y")
    label_axes(ax, task.name(places[0]), task.what)
    _legend(ax, first)
    note(ax, f"{100 * task.level:.3g} % credible bands; {task.words}")
    return ax


def _contours(task: _Task, ax: Axes, places: list[int], values: list[Values], show: str) -> Axes:
    across, up = (one.given for one in values)
    settings = {places[0]: np.tile(across, len(up)), places[1]: np.repeat(up, len(across))}
    profile = task.profile(settings, with_band=show == "width")
    heights = profile.mean if profile.low is None or profile.high is None else profile.high - profile.low
    surface = heights[:, 0].reshape(len(up), len(across))
    what = task.what if show == "mean" else f"width of the {100 * task.level:.3g} % interval"
    if float(np.ptp(surface)) > 1e-12 * max(float(np.abs(surface).max()), 1e-300):
        has_levels = any(one.labels is not None for one in values)
        filled = (_bands if has_levels else _surface)(ax, values, surface)
        bar = ax.figure.colorbar(filled, ax=ax)
        bar.set_label(what, **PLAIN)
        bar.outline.set_visible(False)
    else:
        ax.text(0.5, 0.5, f"{what}: {surface.flat[0]:.4g} everywhere", transform=ax.transAxes, ha="center", **PLAIN)
    pale = _dots(ax, task, places, values)
    for axis, one in zip("xy", values, strict=True):
        _label_values(ax, one, axis)
    tidy(ax)
    label_axes(ax, task.name(places[0]), task.name(places[1]))
    note(ax, f"{task.words}{'; pale: beyond these rows' if pale else ''}")
    return ax


def _surface(ax: Axes, values: list[Values], surface: FloatArray) -> Any:
    """Draw heights over two numbers."""
    filled = ax.contourf(values[0].at, values[1].at, surface, levels=12, cmap="cividis")
    levels = np.asarray(filled.levels)[::2]
    inks = ["white" if k < len(levels) / 2 else "black" for k in range(len(levels))]
    lines = ax.contour(values[0].at, values[1].at, surface, levels=levels, colors=inks, linewidths=0.7)
    _set_apart(list(ax.clabel(lines, fontsize="x-small", fmt="%.3g")), values)
    return filled


def _set_apart(labels: list[Any], values: list[Values]) -> None:
    """Take away numbers of contours that would be written over others."""
    unit = np.array([np.ptp(one.at) for one in values])
    kept: list[FloatArray] = []
    for label in labels:
        place = np.asarray(label.get_position()) / unit
        if any((np.abs(place - other) < _LABEL).all() for other in kept):
            label.remove()
        else:
            kept.append(place)


def _bands(ax: Axes, values: list[Values], surface: FloatArray) -> Any:
    """Draw heights of categories as fields, since between two names there is nothing."""
    across, up = (_edges(one.at) for one in values)
    filled = ax.pcolormesh(across, up, surface, cmap="cividis")
    if values[1].labels is not None:
        ax.hlines(up[1:-1], across[0], across[-1], color="white", linewidth=1.0)
    if values[0].labels is not None:
        ax.vlines(across[1:-1], up[0], up[-1], color="white", linewidth=1.0)
    return filled


def _edges(places: FloatArray) -> FloatArray:
    """Return ends of fields around places: halfway to the neighbours, at the outer ends as far as inside."""
    if len(places) == 1:
        return np.array([places[0] - 0.5, places[0] + 0.5])
    between = 0.5 * (places[1:] + places[:-1])
    return np.concatenate([[2 * places[0] - between[0]], between, [2 * places[-1] - between[-1]]])


def _dots(ax: Axes, task: _Task, places: list[int], values: list[Values]) -> bool:
    """Mark where rows are, those inside the picture, and make pale what is beyond them; return whether that is so."""
    if any(one.labels is not None for one in values):
        return False
    found = np.column_stack([np.asarray(_column(task.rows, place), dtype=np.float64) for place in places])
    inside = np.all([(found[:, k] >= one.at[0]) & (found[:, k] <= one.at[-1]) for k, one in enumerate(values)], axis=0)
    ax.plot(*found[inside].T, "o", markersize=3, markerfacecolor="black", markeredgecolor="white", markeredgewidth=0.4)
    beyond = _beyond(found[np.isfinite(found).all(axis=1)], *(one.at for one in values))
    if not beyond.any():
        return False
    ax.contourf(*(one.at for one in values), beyond, levels=[0.5, 1.5], colors="white", alpha=0.55)
    return True


def _beyond(found: FloatArray, across: FloatArray, up: FloatArray) -> FloatArray:
    """Return 1 where a place is outside of the convex hull of the rows; 0 everywhere if they have none."""
    from scipy.spatial import Delaunay, QhullError

    unit = np.array([np.ptp(across), np.ptp(up)])
    places = np.stack(np.meshgrid(across, up), axis=-1) / unit
    try:
        return np.asarray(Delaunay(found / unit).find_simplex(places) < 0, dtype=np.float64)
    except (QhullError, ValueError):  # rows on a line, or too few
        return np.zeros(places.shape[:2])
