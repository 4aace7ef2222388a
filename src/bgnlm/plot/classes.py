"""How far probabilities of classes can be believed, and how well they tell classes apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm._validation import check_count, check_number
from bgnlm.errors import DataError
from bgnlm.plot.canvas import DARK, axes_for, label_axes, legend, note, shown, some_of, stroke, tidy
from bgnlm.plot.fits import curves_of, events_of, means_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bgnlm._typing import BoolArray, FloatArray

_MOST_TICKS = 200  # of rows along an edge
_MOST_CORNERS = 400  # of a curve


def calibration(
    model: Any,
    X: Any,
    y: Any,
    *,
    n_bins: int = 10,
    level: float = 0.9,
    offset: Any = None,
    target: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw how often a class occurs against the probability that was predicted for it; legends have Brier scores.

    Rows are put together by predicted probability, as many in each bin. Bars are Wilson's intervals of the frequency.
    Ticks on top are rows of the class, below of others; for one class only.

    Parameters
    ----------
    model
        A fitted classifier, or a regressor of family "binomial" with responses 0 and 1.
    X, y
        Rows with their classes, best those that the model has not seen.
    n_bins
        How many bins, fewer where probabilities are the same.
    level
        Probability of the intervals.
    offset
        As for `predict_proba`.
    target
        The class: the second of two by default; of more classes all, each against the rest.
    ax
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import bgnlm, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(100, 2))
    >>> y = X[:, 0] + rng.normal(size=100) > 0
    >>> quick = bgnlm.SearchConfig(n_populations=2)
    >>> model = bgnlm.BGNLMClassifier(search=quick, n_chains=1, random_state=1).fit(X, y)
    >>> ax = bgnlm.plot.calibration(model, X, y)
    >>> ax.get_xlabel()
    'predicted probability of y = True'
    """
    share = check_number(level, "level", above=0.0, high=0.9999)
    n = check_count(n_bins, "n_bins", low=1)
    each = _by_class(model, X, y, offset, target)
    ax = axes_for(ax, (4.8, 4.8))
    ax.plot([0, 1], [0, 1], color=DARK, linewidth=0.8, linestyle="--")
    for number, (name, probability, event) in enumerate(each):
        ink = stroke(number)
        at, frequency, low, high = _binned(probability, event, n, share)
        brier = float(np.mean(np.square(probability - event)))
        ax.vlines(at, low, high, color=ink.color, linewidth=1.2)
        ax.plot(
            at,
            frequency,
            color=ink.color,
            linestyle=ink.linestyle,
            marker=ink.marker,
            label=f"{name}Brier score {brier:.4f}",
        )
    if len(each) == 1:
        _ticks(ax, *each[0][1:])
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.04, 1.04))
    tidy(ax)
    label_axes(ax, _axis_text(model, target), "observed frequency")
    legend(ax, loc="upper left", bbox_to_anchor=(0.0, 0.95))
    note(ax, f"{len(each[0][1]):,} rows; {100 * share:.3g} % intervals of the frequency")
    return ax


def _by_class(model: Any, X: Any, y: Any, offset: Any, target: Any) -> list[tuple[str, FloatArray, BoolArray]]:
    """Return name, predicted probability and occurrence of each class to draw."""
    if X is None or y is None:
        raise DataError("X and y must be given: the estimator keeps no data.")
    curves = curves_of(model, target)
    means = means_of(model, X, offset)
    events = events_of(model, y, len(means))
    several = len(curves) > 1
    return [(f"class {c.name}: " if several else "", means[:, c.column], events[:, c.column]) for c in curves]


def _axis_text(model: Any, target: Any) -> str:
    curves = curves_of(model, target)
    one = f" of {shown(model.response_name_)} = {curves[0].name}" if len(curves) == 1 and curves[0].name else ""
    return f"predicted probability{one}"


def _binned(
    probability: FloatArray, event: BoolArray, n_bins: int, share: float
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Mean probability and frequency of each bin, with the ends of Wilson's interval."""
    from scipy.special import ndtri

    edges = np.unique(np.quantile(probability, np.linspace(0.0, 1.0, n_bins + 1)))
    bins = np.clip(np.searchsorted(edges, probability, side="right") - 1, 0, max(len(edges) - 2, 0))
    counts = np.bincount(bins).astype(np.float64)
    used = counts > 0
    at, hits = (np.bincount(bins, weights=values)[used] for values in (probability, event.astype(np.float64)))
    counts = counts[used]
    frequency, z = hits / counts, float(ndtri(0.5 + share / 2))
    middle = (frequency + z**2 / (2 * counts)) / (1 + z**2 / counts)
    half = z / (1 + z**2 / counts) * np.sqrt(frequency * (1 - frequency) / counts + z**2 / (4 * counts**2))
    return at / counts, frequency, np.minimum(middle - half, frequency), np.maximum(middle + half, frequency)


def _ticks(ax: Axes, probability: FloatArray, event: BoolArray) -> None:
    """Mark rows along the edges: the class on top, others below."""
    for where, height in ((event, 1.025), (~event, -0.025)):
        found = probability[where]
        found = found[some_of(len(found), _MOST_TICKS)]
        ax.plot(found, np.full(len(found), height), "|", color=DARK, markersize=5, alpha=0.6)


def roc(model: Any, X: Any, y: Any, *, offset: Any = None, target: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the receiver operating characteristic: hits against false alarms; legends have the area below.

    Parameters
    ----------
    model, X, y, offset, target, ax
        As for `calibration`.

    Examples
    --------
    >>> import bgnlm, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(100, 2))
    >>> y = X[:, 0] + rng.normal(size=100) > 0
    >>> quick = bgnlm.SearchConfig(n_populations=2)
    >>> model = bgnlm.BGNLMClassifier(search=quick, n_chains=1, random_state=1).fit(X, y)
    >>> ax = bgnlm.plot.roc(model, X, y)
    >>> ax.get_xlabel()
    'false positive rate'
    """
    each = _by_class(model, X, y, offset, target)
    ax = axes_for(ax, (4.8, 4.8))
    ax.plot([0, 1], [0, 1], color=DARK, linewidth=0.8, linestyle="--")
    for number, (name, probability, event) in enumerate(each):
        if event.all() or not event.any():
            raise DataError(
                f"y must have rows of the class and others, to tell them apart; {name or 'it '}has one kind."
            )
        false, true = _curve(probability, event)
        ink, area = stroke(number), _area(false, true)
        kept = np.unique(np.linspace(0, len(false) - 1, _MOST_CORNERS).astype(int))
        ax.plot(
            false[kept],
            true[kept],
            color=ink.color,
            linestyle=ink.linestyle,
            linewidth=1.8,
            label=f"{name}AUC {area:.4f}",
        )
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.set_aspect("equal")
    tidy(ax)
    label_axes(ax, "false positive rate", "true positive rate")
    legend(ax, loc="lower right")
    note(ax, f"{len(each[0][1]):,} rows")
    return ax


def _curve(probability: FloatArray, event: BoolArray) -> tuple[FloatArray, FloatArray]:
    """Rates of false and true positives as the threshold falls, equal probabilities together."""
    order = np.argsort(-probability, kind="stable")
    ends = np.append(np.flatnonzero(np.diff(probability[order])), len(order) - 1)
    hits = np.cumsum(event[order])[ends]
    alarms = ends + 1 - hits
    return np.append(0.0, alarms / max(alarms[-1], 1)), np.append(0.0, hits / max(hits[-1], 1))


def _area(across: FloatArray, up: FloatArray) -> float:
    return float(np.sum(np.diff(across) * (up[1:] + up[:-1]) / 2.0))
