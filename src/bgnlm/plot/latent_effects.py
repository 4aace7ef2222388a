"""Latent components over their positions or groups."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm._validation import check_count
from bgnlm.errors import SettingError
from bgnlm.latent.place import describe
from bgnlm.plot.canvas import BLUE, DARK, axes_for, height_of, label_axes, label_rows, note, say, shown, tidy, title
from bgnlm.plot.fits import check_model, class_number, classes_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_GAP, _GAP_STEPS = 0.05, 10.0  # share of the whole, and median steps


def latent(
    model: Any,
    component: Any = None,
    *,
    level: float = 0.9,
    n_groups: int = 40,
    target: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw a latent component, given that it is in the model: mean and interval of its effects.

    A process is a line with a band over its positions, open where there is a wide gap between them; effects of groups
    are dots with intervals, sorted.

    Parameters
    ----------
    model
        A fitted estimator.
    component
        The component, or its name in `components_`; by default the most probable one.
    level
        Probability of the intervals.
    n_groups
        At most so many groups, those with the largest effects; a note says what is left out.
    target, ax
        As for `inclusion`.

    Examples
    --------
    >>> import bgnlm, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = np.column_stack([np.arange(60) % 6, rng.normal(size=60)])
    >>> y = 2 * (X[:, 0] == 3) + X[:, 1] + 0.1 * rng.normal(size=60)
    >>> quick = bgnlm.SearchConfig(n_populations=1)
    >>> groups = [bgnlm.latent.Grouped(0)]
    >>> model = bgnlm.BGNLMRegressor(latent=groups, search=quick, n_chains=1, random_state=1).fit(X, y)
    >>> ax = bgnlm.plot.latent(model)
    >>> len(ax.get_yticklabels())
    6
    """
    fields = check_model(model).latent_columns_.fields
    if not fields:
        raise SettingError("The model has no latent components: it was fitted with latent=().")
    names = {describe(field): field for field in fields}
    table = _of_class(model, model.components_, target)
    chosen = component if component is not None else next(n for n in table["component"] if n in names)
    effects = _of_class(model, model.latent_effects(chosen, level=level), target)
    name = chosen if isinstance(chosen, str) else describe(chosen)
    probability = float(table.loc[table["component"] == name, "probability"].max()) if len(table) else 0.0
    words = f"probability {probability if probability == probability else 0.0:.3f}; {100 * level:.3g} % intervals"
    draw = _groups if names[name].by_label else _line
    return draw(
        ax, effects, names[name], f"{words}, given that it is in the model", check_count(n_groups, "n_groups", low=1)
    )


def _of_class(model: Any, table: Any, target: Any) -> Any:
    """Return the part of a table that is about one class."""
    if "class" not in table:
        if target is not None:
            class_number(classes_of(model)[1:], target)
        return table
    classes = classes_of(model)
    one = classes[0] if target is None else classes[class_number(classes, target)]
    return table[table["class"] == one].reset_index(drop=True)


def _line(ax: Axes | None, effects: Any, field: Any, words: str, _: int) -> Axes:
    ax = axes_for(ax, (6.4, 3.6))
    if effects["mean"].isna().all():
        return say(ax, f"{shown(describe(field))} is in none of the models that are averaged over")
    ax.axhline(0.0, color=DARK, linewidth=0.8)
    for part in _pieces(effects):
        at = part["position"].to_numpy(dtype=np.float64)
        if len(part) > 1:
            ax.fill_between(at, part["lower"], part["upper"], color=BLUE, alpha=0.25, linewidth=0)
            ax.plot(at, part["mean"], color=BLUE, linewidth=1.4)
        else:
            ax.vlines(at, part["lower"], part["upper"], color=BLUE, linewidth=1.4)
            ax.plot(at, part["mean"], "o", color=BLUE, markersize=4)
    tidy(ax, "y")
    _title(ax, effects, field)
    label_axes(ax, shown(_column(field)), "effect on the linear predictor")
    note(ax, words)
    return ax


def _pieces(effects: Any) -> list[Any]:
    """Split positions where a gap is so wide that a line across it would say something that nobody knows."""
    steps = np.diff(effects["position"].to_numpy(dtype=np.float64))
    wide = (steps > _GAP * steps.sum()) & (steps > _GAP_STEPS * np.median(steps)) if len(steps) else steps > 0
    ends = [0, *(np.flatnonzero(wide) + 1).tolist(), len(effects)]
    return [effects.iloc[a:b] for a, b in pairwise(ends)]


def _groups(ax: Axes | None, effects: Any, field: Any, words: str, most: int) -> Axes:
    n = min(most, len(effects))
    ax = axes_for(ax, (5.6, height_of(n) * (0.75 if n > 20 else 1.0)))
    if effects["mean"].isna().all():
        return say(ax, f"{shown(describe(field))} is in none of the models that are averaged over")
    largest = effects.loc[effects["mean"].abs().sort_values(ascending=False, kind="stable").index[:n]]
    rows = largest.sort_values("mean", ascending=False, kind="stable")
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    ax.hlines(np.arange(n), rows["lower"], rows["upper"], color=BLUE, linewidth=1.4)
    ax.plot(rows["mean"], np.arange(n), "o", color=BLUE, markersize=4)
    tidy(ax, "x")
    label_rows(ax, [shown(_text(value), 24) for value in rows["position"]])
    if n > 20:
        ax.tick_params(axis="y", labelsize="small")
    _title(ax, effects, field)
    slope = "" if field.slope is None else f" of {shown(str(field.slope))}"
    label_axes(ax, f"effect{slope} on the linear predictor", shown(_column(field)))
    some = f"the {n} largest of {len(effects):,} effects; " if n < len(effects) else ""
    note(ax, some + words)
    return ax


def _title(ax: Axes, effects: Any, field: Any) -> None:
    words = f"; class {shown(str(effects['class'].iloc[0]))} against the rest" if "class" in effects else ""
    title(ax, shown(describe(field)) + words)


def _column(field: Any) -> str:
    return str(field.column) if isinstance(field.column, str) else f"x{field.column + 1}"


def _text(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
