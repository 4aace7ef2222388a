"""Features with their probabilities, complexities and coefficients."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm._validation import check_number
from bgnlm.features import Component, Feature, operation_count
from bgnlm.plot.canvas import (
    BLUE,
    DARK,
    GREY,
    axes_for,
    feature_text,
    height_of,
    label_axes,
    label_rows,
    note,
    row_values,
    say,
    tidy,
    title_of_rows,
)
from bgnlm.plot.fits import left_out, one_search, probable
from bgnlm.posterior.coefficients import coefficient_of

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HALF = 0.5
_NOTHING = "no features: the models found have an intercept alone"


def inclusion(
    model: Any, *, n_features: int = 20, least: float = 0.01, target: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw the probabilities of features, with the number of operations each is made of.

    Features of probability at least one half, which make the median probability model, are dark. Latent components
    are hatched.

    Parameters
    ----------
    model
        A fitted estimator.
    n_features, least
        At most so many features, of at least this probability; a note says what is left out.
    target
        Of more than two classes, the one to draw; by default the first.
    ax
        Where to draw; by default in a new figure.

    Examples
    --------
    >>> import numpy as np, bgnlm
    >>> X = np.random.default_rng(1).normal(size=(50, 2))
    >>> model = bgnlm.BGNLMRegressor(n_chains=1, search=bgnlm.SearchConfig(n_populations=2), random_state=1)
    >>> ax = bgnlm.plot.inclusion(model.fit(X, X[:, 0]))
    >>> ax.get_xlabel()
    'posterior inclusion probability'
    """
    found = one_search(model, target)
    rows = probable(found, n_features, least)
    ax = axes_for(ax, (6.4, height_of(len(rows))))
    title_of_rows(ax, found.title)
    if not rows:
        return say(ax, _NOTHING)
    probabilities = np.array([probability for _, probability in rows])
    shades = [BLUE if probability >= _HALF else GREY for probability in probabilities]
    bars = ax.barh(np.arange(len(rows)), probabilities, height=0.7, color=shades)
    for bar, (feature, _) in zip(bars, rows, strict=True):
        if isinstance(feature, Component):
            bar.set(hatch="////", edgecolor="white", linewidth=0.0)
    ax.axvline(_HALF, color=DARK, linewidth=0.8, linestyle="--")
    ax.set_xlim(0.0, 1.0)
    tidy(ax, "x")
    label_rows(ax, [feature_text(feature) for feature, _ in rows])
    row_values(ax, [_complexity(feature) for feature, _ in rows], "operations")
    label_axes(ax, "posterior inclusion probability", "")
    note(ax, left_out(found, len(rows)))
    return ax


def _complexity(feature: Feature) -> str:
    return "latent" if isinstance(feature, Component) else str(operation_count(feature))


def coefficients(
    model: Any,
    *,
    n_features: int = 15,
    least: float = 0.01,
    level: float = 0.9,
    standardized: bool = True,
    target: Any = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw coefficients of the most probable features, given that they are in the model: mean and central interval.

    Markers are filled where the probability is at least one half; it stands to the right.

    Parameters
    ----------
    n_features, least
        At most so many features, of at least this probability and in the models that are averaged over.
    level
        Probability of the interval.
    standardized
        Whether a coefficient is that of the feature divided by its standard deviation in training, so that
        coefficients can be compared.
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
    >>> ax = bgnlm.plot.coefficients(model)
    >>> ax.get_xlabel()
    'coefficient of the standardized feature'
    """
    found = one_search(model, target)
    share = check_number(level, "level", above=0.0, high=0.9999)
    every = [(feature, coefficient_of(found.average, feature)) for feature, _ in probable(found, n_features, least)]
    rows = [(feature, mixture) for feature, mixture in every if mixture is not None]
    ax = axes_for(ax, (6.4, height_of(len(rows))))
    title_of_rows(ax, found.title)
    if not rows:
        return say(ax, _NOTHING)
    ax.axvline(0.0, color=DARK, linewidth=0.8)
    for row, (feature, mixture) in enumerate(rows):
        unit = mixture.scale if standardized else 1.0
        low, high = (unit * mixture.quantile(0.5 + sign * share / 2) for sign in (-1, 1))
        filled = found.posterior.probability_of(feature) >= _HALF
        ax.plot([low, high], [row, row], color=BLUE, linewidth=1.8, solid_capstyle="butt")
        ax.plot([unit * mixture.mean], [row], "o", color=BLUE, markerfacecolor=BLUE if filled else "white")
    tidy(ax, "x")
    label_rows(ax, [feature_text(feature) for feature, _ in rows])
    row_values(ax, [f"{found.posterior.probability_of(feature):.2f}" for feature, _ in rows], "probability")
    label_axes(ax, f"coefficient{' of the standardized feature' if standardized else ''}", "")
    note(ax, f"mean and {100 * share:.3g} % interval, given that the feature is in the model")
    return ax
