"""Models by their probability, and by what they cost and explain."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm._validation import check_count
from bgnlm.features import Component, operation_count
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.plot.canvas import (
    BLUE,
    DARK,
    GREY,
    PALE,
    PLAIN,
    VERMILLION,
    axes_for,
    feature_text,
    height_of,
    inches_of,
    label_axes,
    label_rows,
    legend,
    note,
    row_values,
    say,
    some_of,
    tidy,
    title,
    title_of_rows,
    whole_ticks,
)
from bgnlm.plot.fits import one_search

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bgnlm._typing import FloatArray

_NARROWEST = 0.004  # share of the picture, of a column that is set off from its neighbours
_SHARE = 0.775  # of the width of a figure, for axes that are not laid out yet
_LETTER, _VALUES, _DIGIT, _GAP = 0.08, 0.8, 0.075, 0.06  # inches: of texts beside and above the columns
_MOST_DOTS = 400
_NAME_WIDTH = 37  # characters, of the name of a model: half of the picture
_APART = 0.045  # share of the height, of labels


def model_space(
    model: Any, *, n_models: int = 100, n_features: int = 15, target: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw the most probable models as columns, as wide as they are probable, and their features as rows.

    A block says that the model has the feature. Numbers on top are those of the rows of `models_`, from 1.

    Parameters
    ----------
    n_models, n_features
        At most so many; a note says how much of the probability is shown.
    model, target, ax
        As for `inclusion`.

    Examples
    --------
    >>> import bgnlm, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(1, 3, size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=60)
    >>> quick = bgnlm.SearchConfig(n_populations=2)
    >>> model = bgnlm.BGNLMRegressor(search=quick, n_chains=2, random_state=1).fit(X, y)
    >>> ax = bgnlm.plot.model_space(model)
    >>> ax.get_xlabel()
    'posterior probability of the models, added up'
    """
    found = one_search(model, target)
    posterior = found.posterior
    n = min(check_count(n_models, "n_models", low=1), len(posterior))
    each = [set(posterior.features_of(m)) for m in range(n)]
    used = [feature for feature in posterior.features if any(feature in one for one in each)]
    rows = used[: check_count(n_features, "n_features", low=1)]
    ax = axes_for(ax, (6.4, height_of(len(rows))))
    title_of_rows(ax, found.title)
    if not rows:
        return say(ax, "the only model found has an intercept alone")
    edges = np.append(0.0, np.cumsum(posterior.model_probabilities[:n]))
    for row, feature in enumerate(rows):
        ax.broken_barh(_runs(edges, [feature in one for one in each]), (row - 0.42, 0.84), color=BLUE, linewidth=0)
    names = [feature_text(feature) for feature in rows]
    _set_off(ax, edges, _inches(ax, names))
    tidy(ax)
    label_rows(ax, names)
    row_values(ax, [f"{posterior.probability_of(feature):.2f}" for feature in rows], "probability")
    ax.set_xlim(0.0, edges[-1] or 1.0)
    label_axes(ax, "posterior probability of the models, added up", "")
    models = f"{n:,} of {len(posterior):,} models, {edges[-1]:.4f} of the probability"
    features = f"; {len(rows)} of their {len(used):,} features" if len(rows) < len(used) else ""
    note(ax, models + features)
    return ax


def _runs(edges: FloatArray, present: list[bool]) -> list[tuple[float, float]]:
    """Return where a feature is present, as starts and widths, neighbours in one."""
    steps = np.diff(np.concatenate([[False], present, [False]]).astype(int))
    starts, ends = np.flatnonzero(steps == 1), np.flatnonzero(steps == -1)
    return [(float(edges[a]), float(edges[b] - edges[a])) for a, b in zip(starts, ends, strict=True)]


def _inches(ax: Axes, names: list[str]) -> float:
    """Return about how wide the columns are together, beside names of rows and values."""
    return max(inches_of(ax) / _SHARE - _LETTER * max(map(len, names)) - _VALUES, 0.5)


def _set_off(ax: Axes, edges: FloatArray, inches: float) -> None:
    """Draw lines between models, and number those that have room for it."""
    widths = np.diff(edges) / (edges[-1] or 1.0)
    wide = [float(edges[m + 1]) for m in range(len(widths)) if widths[m] >= _NARROWEST]
    ax.vlines(wide, 0.0, 1.0, transform=ax.get_xaxis_transform(), color=PALE, linewidth=0.6)
    numbered = [m for m in range(len(widths)) if widths[m] * inches >= _GAP + _DIGIT * len(str(m + 1))]
    for m in numbered:
        ax.annotate(
            str(m + 1), (0.5 * float(edges[m] + edges[m + 1]), 1.0), (0, 2), xycoords=ax.get_xaxis_transform(),
            textcoords="offset points", ha="center", va="bottom", fontsize="small", color=DARK,
        )  # fmt: skip


def front(model: Any, *, n_labels: int = 8, target: Any = None, ax: Axes | None = None) -> Axes:
    """Draw what models explain against what they are made of: the front of those that nothing simpler beats.

    The complexity of a model is the number of operations in its features, and one for each feature or latent
    component. What it explains is its log marginal likelihood, below that of the best.

    Parameters
    ----------
    n_labels
        At most so many models of the front are named.
    model, target, ax
        As for `inclusion`.

    Examples
    --------
    >>> import bgnlm, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(1, 3, size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=60)
    >>> quick = bgnlm.SearchConfig(n_populations=2)
    >>> model = bgnlm.BGNLMRegressor(search=quick, n_chains=2, random_state=1).fit(X, y)
    >>> ax = bgnlm.plot.front(model)
    >>> ax.get_xlabel()
    'complexity: operations and terms'
    """
    found = one_search(model, target)
    ax = axes_for(ax, (6.4, 4.4))
    title(ax, found.title)
    rows, features = found.posterior.found.rows, found.posterior.found.features
    sizes = rows.sum_over_members(np.array([1.0 + operation_count(feature) for feature in features] or [0.0]))
    exists = np.isfinite(rows.log_marginal)
    if not exists.any():
        return say(ax, "no model found has a likelihood")
    n_members = rows.sum_over_members(np.array([float(not isinstance(f, Component)) for f in features] or [0.0]))
    scores = rows.log_marginal - log_sizes(n_members.astype(np.int64), found.n_slots)
    scores -= scores[exists].max()
    places = _front(sizes, np.where(exists, scores, -np.inf))
    _cloud(ax, sizes, scores, float(scores[places].min()), exists)
    ax.plot(sizes[places], scores[places], color=BLUE, linewidth=1.4, drawstyle="steps-post")
    ax.plot(sizes[places], scores[places], "o", color=BLUE, label="best of its complexity")
    ax.plot(sizes[:1], scores[:1], "*", color=VERMILLION, markersize=13, label="most probable", zorder=4)
    ax.margins(y=0.09)  # the name of the lowest is below it
    _name(ax, found.posterior, sizes, scores, places, check_count(n_labels, "n_labels"))
    tidy(ax, "both")
    whole_ticks(ax)
    label_axes(ax, "complexity: operations and terms", "log marginal likelihood, below the best")
    legend(ax, loc="best")
    return ax


def _front(sizes: FloatArray, scores: FloatArray) -> list[int]:
    """Return the models that no simpler or equally simple one beats, the simplest first."""
    chosen: list[int] = []
    for m in np.lexsort((-scores, sizes)).tolist():
        if scores[m] > (scores[chosen[-1]] if chosen else -np.inf):
            chosen.append(m)
    return chosen


def _cloud(ax: Axes, sizes: FloatArray, scores: FloatArray, lowest: float, exists: Any) -> None:
    """Draw the other models, those that are near enough, beside each other where they have the same complexity."""
    near = np.flatnonzero(exists & (scores >= lowest - 0.05 * abs(lowest) - 1.0))
    near = near[some_of(len(near), _MOST_DOTS)]
    aside = np.random.default_rng(0).uniform(-0.25, 0.25, len(near))
    ax.plot(sizes[near] + aside, scores[near], ".", color=GREY, markersize=3, zorder=1, label="other models")


def _text(features: tuple[Any, ...]) -> str:
    """Write a model of one or two terms; of more, their number."""
    if len(features) > 2:
        return f"{len(features)} terms"
    width = _NAME_WIDTH if len(features) < 2 else (_NAME_WIDTH - 3) // 2
    return " + ".join(feature_text(feature, width) for feature in features) or "intercept alone"


def _name(ax: Axes, posterior: Any, sizes: FloatArray, scores: FloatArray, places: list[int], most: int) -> None:
    """Name models of the front, from the best downwards, where there is room."""
    span = max(float(np.ptp(scores[places])), 1e-9)
    middle, last, n_named = 0.5 * sum(ax.get_xlim()), np.inf, 0
    for m in reversed(places):
        if n_named >= most or last - scores[m] < _APART * span:
            continue
        left = bool(sizes[m] > middle)
        named = ax.annotate(
            _text(posterior.features_of(m)), (float(sizes[m]), float(scores[m])),
            (-6 if left else 7, 3 if left else -4), textcoords="offset points",
            ha="right" if left else "left", va="bottom" if left else "top",
            fontsize="small", color=DARK, zorder=5, **PLAIN,
            bbox={"boxstyle": "square,pad=0.05", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
        )  # fmt: skip
        named.set_in_layout(False)  # the picture keeps its size
        last, n_named = float(scores[m]), n_named + 1
