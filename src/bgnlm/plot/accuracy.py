"""Responses against their predictions, and what is left of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm._validation import check_choice, check_count, check_number
from bgnlm.errors import SettingError
from bgnlm.plot.canvas import (
    BLUE,
    DARK,
    GREY,
    PALE,
    VERMILLION,
    axes_for,
    label_axes,
    legend,
    note,
    shown,
    some_note,
    tidy,
    title,
)
from bgnlm.plot.fits import classes_of, curves_of, events_of, means_of, one_search, response_of
from bgnlm.plot.inputs import Rows, take_rows

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from bgnlm._typing import BoolArray, FloatArray

_SMALLEST = 1e-15  # share at either end, beyond which residuals end
_SMOOTHED = 10  # parts of the fitted values


def predictions(
    model: Any,
    X: Any,
    y: Any,
    *,
    level: float = 0.9,
    n_points: int = 300,
    offset: Any = None,
    trials: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw responses against their predicted means, with the central interval of a new response at each.

    Crosses are responses outside of their intervals: one in ten of them should be, at a level of 0.9.

    Parameters
    ----------
    model
        A fitted regressor; for classes see `calibration` and `roc`.
    X, y
        Rows with their responses, best those that the model has not seen.
    level
        Probability of the intervals.
    n_points
        At most so many rows are drawn, always the same ones.
    offset, trials
        As for `predict_interval`.
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
    >>> ax = bgnlm.plot.predictions(model, X, y)
    >>> ax.get_xlabel()
    'predicted mean of y'
    """
    if classes_of(model):
        raise SettingError("predictions is for numbers; of classes use calibration and roc.")
    share = check_number(level, "level", above=0.0, high=0.9999)
    rows = take_rows(model, X, check_count(n_points, "n_points", low=1), offset)
    observed = response_of(model, y, rows.n_given)[rows.places]
    there = _some(trials, rows)
    fitted = means_of(model, rows.frame, rows.offset)[:, 0]
    ends = model.predict_interval(rows.frame, level=share, offset=rows.offset, trials=there)
    inside = (observed >= ends[:, 0]) & (observed <= ends[:, 1])
    ax = axes_for(ax, (5.2, 4.8))
    both = [float(min(fitted.min(), observed.min())), float(max(fitted.max(), observed.max()))]
    ax.plot(both, both, color=DARK, linewidth=0.8, linestyle="--")
    ax.vlines(fitted, ends[:, 0], ends[:, 1], color=BLUE, alpha=0.3, linewidth=0.8, zorder=1)
    _points(ax, fitted, observed, inside)
    tidy(ax)
    response = shown(model.response_name_)
    label_axes(ax, f"predicted mean of {response}", f"observed {response}")
    legend(ax, loc="upper left")
    note(ax, _in_numbers(fitted, observed, inside, share, rows))
    return ax


def _some(values: Any, rows: Rows) -> Any:
    """Take the same rows of something else."""
    return np.asarray(values)[rows.places] if values is not None and np.ndim(values) else values


def _points(ax: Axes, fitted: FloatArray, observed: FloatArray, inside: BoolArray) -> None:
    ax.plot(fitted[inside], observed[inside], "o", color=BLUE, markersize=3, label="inside of its interval")
    ax.plot(
        fitted[~inside], observed[~inside], "x", color=VERMILLION, markersize=5, markeredgewidth=1.3, label="outside"
    )


def _in_numbers(fitted: FloatArray, observed: FloatArray, inside: BoolArray, share: float, rows: Rows) -> str:
    spread = float(np.square(observed - observed.mean()).sum())
    error = float(np.square(observed - fitted).sum())
    texts = [f"R² {1 - error / spread:.3f}"] if spread > 0.0 else []
    texts.append(f"{100 * inside.mean():.1f} % in the {100 * share:.3g} % intervals")
    return "; ".join(texts + [text for text in [some_note(rows.n_given, len(observed))] if text])


def residuals(
    model: Any,
    X: Any,
    y: Any,
    *,
    kind: str = "fitted",
    n_points: int = 1000,
    offset: Any = None,
    trials: Any = None,
    target: Any = None,
    random_state: Any = 0,
    ax: Axes | None = None,
) -> Axes:
    """Draw quantile residuals: what the predicted distribution says of each response, as a standard normal number.

    Of data from the model they are standard normal, whatever the family. For counts, shares and classes, whose
    distribution has steps, they are drawn at random within the step (Dunn and Smyth).

    Parameters
    ----------
    kind
        "fitted": against the predicted mean, with averages of tenths of the rows and their standard errors doubled;
        "quantiles": against normal quantiles, with the band that 95 % of such quantiles are in.
    n_points
        At most so many rows, always the same ones.
    target
        Of more than two classes, the one that is against the rest; by default the first.
    random_state
        Seed of what is random in residuals.
    model, X, y, offset, trials, ax
        As for `predictions`; classifiers too.

    Examples
    --------
    >>> import bgnlm, numpy as np
    >>> rng = np.random.default_rng(1)
    >>> X = rng.uniform(1, 3, size=(60, 2))
    >>> y = X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=60)
    >>> quick = bgnlm.SearchConfig(n_populations=2)
    >>> model = bgnlm.BGNLMRegressor(search=quick, n_chains=2, random_state=1).fit(X, y)
    >>> ax = bgnlm.plot.residuals(model, X, y)
    >>> ax.get_xlabel()
    'predicted mean of y'
    """
    check_choice(kind, "kind", ("fitted", "quantiles"))
    rows = take_rows(model, X, check_count(n_points, "n_points", low=3), offset)
    fitted, left, words = _residuals(model, rows, y, _some(trials, rows), target, random_state)
    ax = axes_for(ax)
    title(ax, words)
    if kind == "quantiles":
        _quantiles(ax, left)
    else:
        _against_fitted(ax, fitted, left)
        what = f"predicted mean of {shown(model.response_name_)}"
        label_axes(ax, "predicted probability" if classes_of(model) else what, "quantile residual")
    note(ax, some_note(rows.n_given, len(left)))
    return ax


def _residuals(
    model: Any, rows: Rows, y: Any, trials: Any, target: Any, random_state: Any
) -> tuple[FloatArray, FloatArray, str]:
    """Predicted means, quantile residuals, and what they are of where there are several classes."""
    from scipy.special import ndtri

    rng = np.random.default_rng(random_state)
    words = ""
    if classes := classes_of(model):
        column = curves_of(model, target)[0].column
        events = events_of(model, y, rows.n_given)[rows.places, column].astype(np.float64)
        fitted = means_of(model, rows.frame, rows.offset)[:, column]
        below, above = np.where(events == 1.0, 1.0 - fitted, 0.0), np.where(events == 1.0, 1.0, 1.0 - fitted)
        words = f"class {shown(str(classes[column]))} against the rest" if len(classes) > 2 else ""
    else:
        observed = response_of(model, y, rows.n_given)[rows.places]
        fitted = means_of(model, rows.frame, rows.offset)[:, 0]
        step = _step(one_search(model).average.family.name, trials)
        above = model.predict_cdf(rows.frame, observed, offset=rows.offset, trials=trials)
        below = (
            above if step is None else model.predict_cdf(rows.frame, observed - step, offset=rows.offset, trials=trials)
        )
    place = below + (above - below) * rng.random(len(fitted))
    return fitted, np.asarray(ndtri(np.clip(place, _SMALLEST, 1.0 - _SMALLEST))), words


def _step(family: str, trials: Any) -> Any:
    """Return the distance to the next smaller response; None if there is none."""
    if family == "binomial":
        return 1.0 / np.asarray(1.0 if trials is None else trials, dtype=np.float64)
    return 1.0 if family in ("poisson", "negative_binomial") else None


def _against_fitted(ax: Axes, fitted: FloatArray, left: FloatArray) -> None:
    ax.axhline(0.0, color=DARK, linewidth=0.8)
    for end in (-1.96, 1.96):
        ax.axhline(end, color=DARK, linewidth=0.8, linestyle=":")
    ax.plot(fitted, left, ".", color=GREY, markersize=4)
    parts = [part for part in np.array_split(np.argsort(fitted, kind="stable"), _SMOOTHED) if len(part) > 2]
    if parts:
        at = [float(fitted[part].mean()) for part in parts]
        middle = [float(left[part].mean()) for part in parts]
        errors = [2.0 * float(left[part].std(ddof=1)) / np.sqrt(len(part)) for part in parts]
        ax.errorbar(at, middle, yerr=errors, color=VERMILLION, marker="o", markersize=4, linewidth=1.4)
    tidy(ax)


def _quantiles(ax: Axes, left: FloatArray) -> None:
    from scipy.special import betaincinv, ndtri

    n = len(left)
    ranks = np.arange(1.0, n + 1.0)
    expected = ndtri((ranks - 0.5) / n)
    low, high = (ndtri(betaincinv(ranks, n + 1.0 - ranks, level)) for level in (0.025, 0.975))
    ax.fill_between(expected, low, high, color=PALE, linewidth=0, label="95 % of quantiles")
    ax.plot(expected[[0, -1]], expected[[0, -1]], color=DARK, linewidth=0.8, linestyle="--")
    ax.plot(expected, np.sort(left), ".", color=BLUE, markersize=4)
    tidy(ax)
    legend(ax, loc="upper left")
    label_axes(ax, "normal quantile", "quantile residual")
