"""The contribution of one feature to the linear predictor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bgnlm._validation import check_count, check_number
from bgnlm.errors import SettingError
from bgnlm.features import Feature, Input, evaluate_on_new_data, inputs_of
from bgnlm.plot.canvas import (
    BLUE,
    GREY,
    axes_for,
    feature_text,
    label_axes,
    legend,
    note,
    rug,
    shown,
    tidy,
    title,
)
from bgnlm.plot.fits import OneSearch, find_feature, one_search, response_of
from bgnlm.plot.inputs import Rows, take_rows
from bgnlm.posterior.coefficients import CoefficientMixture, coefficient_of

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

    Examples
    --------
    >>> import bgnlm, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(1, 3, size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=60)
    >>> quick = bgnlm.SearchConfig(n_populations=2)
    >>> model = bgnlm.BGNLMRegressor(search=quick, n_chains=2, random_state=1).fit(X, y)
    >>> ax = bgnlm.plot.feature_effect(model, X, 0)
    >>> ax.get_xlabel() != ''
    True
    """
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
    names = model.coding_.names
    design = model.coding_.encode(rows.frame, estimator_name=type(model).__name__)
    values = _values(found, chosen, design, names)
    over = _over(found, chosen, design, names, values, check_count(n_grid, "n_grid", low=2))
    here = design[:, names.index(over.name)] if over.name else values
    ax = axes_for(ax)
    if y is not None:
        part = found.posterior.probability_of(chosen) * mixture.mean * (values - values.mean())
        left = _left(model, found, rows, y) + part
        ax.plot(here, left, ".", color=GREY, markersize=4, label="partial residuals")
        legend(ax)
    _curve(ax, mixture, over, float(values.mean()), share)
    rug(ax, here, float(over.across[0]), float(over.across[-1]))
    tidy(ax, "y")
    _label(ax, model, found, chosen, over.name)
    probability = found.posterior.probability_of(chosen)
    note(ax, f"probability {probability:.3f}; {100 * share:.3g} % credible band, given that it is in the model")
    return ax


class _Over(NamedTuple):
    """Places on the axis, the input that they are values of if it is a single one, and the feature there."""

    across: FloatArray
    name: str
    values: FloatArray


def _curve(ax: Axes, mixture: CoefficientMixture, over: _Over, middle: float, share: float) -> None:
    """Draw the mean contribution and its band."""
    centred = over.values - middle
    ends = np.sort([mixture.quantile(0.5 + sign * share / 2) * centred for sign in (-1, 1)], axis=0)
    ax.fill_between(over.across, *ends, color=BLUE, alpha=0.25, linewidth=0)
    ax.plot(over.across, mixture.mean * centred, color=BLUE, linewidth=1.8)


def _left(model: Any, found: OneSearch, rows: Rows, y: Any) -> FloatArray:
    """Return residuals of the averaged mean."""
    if found.average.family.link != "identity":
        raise SettingError("y is for partial residuals, which only the identity link has. Leave it out.")
    return np.asarray(response_of(model, y, rows.n_given)[rows.places] - model.predict(rows.frame, offset=rows.offset))


def _label(ax: Axes, model: Any, found: OneSearch, chosen: Feature, name: str) -> None:
    identity = found.average.family.link == "identity"
    what = shown(model.response_name_, 24) if identity else "the linear predictor"
    text = feature_text(chosen, 60)
    label_axes(ax, shown(name) or text, f"contribution to {what}")
    own = [] if isinstance(chosen, Input) or text == ax.get_xlabel() else [text]
    title(ax, "; ".join([*own, *([found.title] if found.title else [])]))


def _values(found: OneSearch, feature: Feature, design: FloatArray, names: tuple[str, ...]) -> FloatArray:
    average = found.average
    ranges = next(seen for known, seen in zip(average.known_as, average.ranges, strict=True) if known == feature)
    return np.asarray(evaluate_on_new_data([feature], [ranges], design, names))[:, 0]


def _over(
    found: OneSearch, feature: Feature, design: FloatArray, names: tuple[str, ...], values: FloatArray, n_grid: int
) -> _Over:
    used = sorted(inputs_of(feature))
    if len(used) != 1:
        across = _between(values, n_grid)
        return _Over(across, "", across)
    place = names.index(used[0])
    across = _between(design[:, place], n_grid)
    table = np.repeat(np.median(design, axis=0)[None, :], n_grid, axis=0)
    table[:, place] = across
    return _Over(across, used[0], _values(found, feature, table, names))


def _between(values: FloatArray, n_grid: int) -> FloatArray:
    low, high = np.quantile(values, [_TAIL, 1.0 - _TAIL]).tolist()
    if not low < high:
        low, high = float(values.min()), float(values.max())
    return np.linspace(low, high if low < high else low + 1.0, n_grid)
