"""The contribution of one feature to the linear predictor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm._validation import check_count, check_number
from bgnlm.errors import SettingError
from bgnlm.features import Feature, evaluate_on_new_data, inputs_of
from bgnlm.plot.canvas import (
    BLUE,
    DARK,
    GREY,
    axes_for,
    feature_text,
    label_axes,
    legend,
    note,
    shown,
    some_of,
    tidy,
    title,
)
from bgnlm.plot.fits import OneSearch, check_model, find_feature, one_search, response_of
from bgnlm.plot.inputs import take_rows
from bgnlm.posterior.coefficients import coefficient_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bgnlm._typing import FloatArray

_TAIL = 0.01


def feature_effect(
    model: Any,
    X: Any,
    feature: int | str | Feature = 0,
    *,
    y: Any = None,
    level: float = 0.9,
    n_grid: int = 100,
    n_rows: int = 500,
    offset: Any = None,
    target: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw what one feature adds to the linear predictor, its mean over the rows of a table being 0.

    The coefficient is that given that the feature is in the model: mean and band over the models that have it. A
    feature of a single input is drawn over the input, others over their own values.

    Parameters
    ----------
    model
        A fitted estimator.
    X
        A table: the training data, or any like it.
    feature
        Its place in `features_`, 0 the most probable; or its text.
    y
        The response: with it, partial residuals of the averaged model are drawn as dots; for the identity link.
    level
        Probability of the band.
    n_grid, n_rows
        How many places, and rows (drawn at random, always the same).
    offset
        Of the rows, for partial residuals.
    target, ax
        As for `inclusion`.
    """
    check_model(model)
    found = one_search(model, target)
    chosen = find_feature(found, feature)
    mixture = coefficient_of(found.average, chosen)
    if mixture is None:
        raise SettingError(
            f"{feature_text(chosen)} is in none of the models that are averaged over, so it has no coefficient. "
            "Take a more probable feature, or fit with SearchConfig(n_averaged=...)."
        )
    share = check_number(level, "level", above=0.0, high=0.9999)
    rows = take_rows(model, X, check_count(n_rows, "n_rows", low=2), offset)
    design = model.coding_.encode(rows.frame, estimator_name=type(model).__name__)
    values = _values(found, chosen, design, model.coding_.names)
    ax = axes_for(ax)
    title(ax, found.title)
    across, name, grid = _over(found, chosen, design, model.coding_.names, values, check_count(n_grid, "n_grid", low=2))
    ends = [mixture.quantile(0.5 + sign * share / 2) for sign in (-1, 1)]
    centred = grid - values.mean()
    bounds = np.sort([end * centred for end in ends], axis=0)
    here = np.asarray(design[:, model.coding_.names.index(name)] if name else values)
    if y is not None:
        if found.average.family.link != "identity":
            raise SettingError("y is for partial residuals, which only the identity link has. Leave it out.")
        whole = response_of(model, y, rows.n_given)[rows.places]
        left = whole - model.predict(rows.frame, offset=rows.offset) + found.posterior.probability_of(chosen) * (
            mixture.mean * (values - values.mean())
        )
        ax.plot(here, left, ".", color=GREY, markersize=4, label="partial residuals")
    ax.fill_between(across, *bounds, color=BLUE, alpha=0.25, linewidth=0)
    ax.plot(across, mixture.mean * centred, color=BLUE, linewidth=1.8)
    inside = here[(here >= across[0]) & (here <= across[-1])][some_of(len(here), len(here))[: len(here)]] if False else here
    inside = inside[(inside >= across[0]) & (inside <= across[-1])]
    ax.plot(inside, np.full(len(inside), 0.012), "|", transform=ax.get_xaxis_transform(), color=DARK, markersize=5)
    tidy(ax, "y")
    what = "contribution to the linear predictor"
    if found.average.family.link == "identity":
        what = f"contribution to {shown(model.response_name_, 24)}"
    label_axes(ax, shown(name) if name else feature_text(chosen, 60), what)
    if name and name != feature_text(chosen):
        title(ax, f"{feature_text(chosen, 60)}{'; ' if found.title else ''}{found.title}")
    if y is not None:
        legend(ax)
    probability = found.posterior.probability_of(chosen)
    note(ax, f"probability {probability:.3g}; {100 * share:.3g} % credible band, given that it is in the model")
    return ax


def _values(found: OneSearch, feature: Feature, design: FloatArray, names: tuple[str, ...]) -> FloatArray:
    average = found.average
    ranges = next(seen for known, seen in zip(average.known_as, average.ranges, strict=True) if known == feature)
    return np.asarray(evaluate_on_new_data([feature], [ranges], design, names))[:, 0]


def _over(
    found: OneSearch, feature: Feature, design: FloatArray, names: tuple[str, ...], values: FloatArray, n_grid: int
) -> tuple[FloatArray, str, FloatArray]:
    """Places on the axis, the input that they are values of if it is one, and the values of the feature there."""
    used = sorted(inputs_of(feature))
    if len(used) != 1:
        across = np.linspace(*np.quantile(values, [_TAIL, 1.0 - _TAIL]), n_grid)
        return across, "", across
    place = names.index(used[0])
    across = np.linspace(*np.quantile(design[:, place], [_TAIL, 1.0 - _TAIL]), n_grid)
    table = np.repeat(np.median(design, axis=0)[None, :], n_grid, axis=0)
    table[:, place] = across
    return across, used[0], _values(found, feature, table, names)
