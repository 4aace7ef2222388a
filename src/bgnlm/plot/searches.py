"""What the search did: mass found over time, and how far chains agree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm._validation import check_choice
from bgnlm.errors import SettingError
from bgnlm.plot.canvas import (
    BLACK,
    BLUE,
    DARK,
    axes_for,
    feature_text,
    height_of,
    label_axes,
    label_rows,
    legend,
    legend_above,
    note,
    row_values,
    say,
    stroke,
    tidy,
    whole_ticks,
)
from bgnlm.plot.fits import OneSearch, left_out, one_search, probable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MOST_NAMED = 6  # chains that have a stroke each
_NAMES_IN_LINE = 5  # of the legend above rows
_LINEAR = 1.0  # nats


def search(model: Any, *, by: str = "populations", target: Any = None, ax: Axes | None = None) -> Axes:
    """Draw the posterior mass that each chain had found over time, below that of all chains together.

    At 0 a chain by itself has found all that was found; at -1 a share of exp(-1). Chains that end far below each other
    call for more populations. Beyond -1 the scale is logarithmic.

    Parameters
    ----------
    by
        "populations" that were explored, or "seconds".
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
    >>> ax = bgnlm.plot.search(model)
    >>> ax.get_xlabel()
    'populations explored'
    """
    check_choice(by, "by", ("populations", "seconds"))
    found = one_search(model, target)
    history = found.diagnostics.history
    ax = axes_for(ax)
    whole = _whole(found)
    for number, chain in enumerate(history):
        at = [step.n_explored if by == "populations" else step.seconds for step in chain]
        mass = np.minimum(np.array([step.log_mass for step in chain]) - whole, 0.0)
        ink, named = stroke(number), len(history) <= _MOST_NAMED
        style = {"color": ink.color, "linestyle": ink.linestyle, "marker": ink.marker} if named else {"color": DARK}
        ax.plot(
            at, np.where(np.isfinite(mass), mass, np.nan), linewidth=1.4 if named else 0.7, markersize=4,
            label=f"chain {chain[0].chain}" if named else None, **style,
        )  # fmt: skip
    if ax.dataLim.y0 > -_LINEAR:
        ax.set_ylim(-_LINEAR, 0.05)
    else:
        ax.set_yscale("symlog", linthresh=_LINEAR)
        ax.set_ylim(top=0.2)
    ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}".replace("-", "\N{MINUS SIGN}"))
    ax.axhline(0.0, color=DARK, linewidth=0.8)
    tidy(ax, "y")
    label_axes(
        ax,
        "populations explored" if by == "populations" else "seconds of the chain",
        "log mass, below that of all chains",
    )
    if by == "populations":
        whole_ticks(ax)
    legend_above(ax)
    note(ax, "; ".join(text for text in (found.title, _words(found)) if text))
    return ax


def _compared(found: OneSearch) -> bool:
    """Whether chains and posterior are of the same priors; they are not after `rescore`."""
    return bool(np.isfinite(found.diagnostics.chain_probabilities).all())


def _whole(found: OneSearch) -> float:
    """Log mass of all chains together; of the best one where the priors are others now."""
    last = [chain[-1].log_mass for chain in found.diagnostics.history]
    return float(max([*last, found.posterior.log_mass] if _compared(found) else last))


def _words(found: OneSearch) -> str:
    n_chains = len(found.diagnostics.history)
    whole = "what all chains found together" if _compared(found) else "the best chain, under the priors of the search"
    return f"0 is {whole}; {n_chains} {'chain' if n_chains == 1 else 'chains'}"


def chains(
    model: Any, *, n_features: int = 15, least: float = 0.01, target: Any = None, ax: Axes | None = None
) -> Axes:
    """Draw the probabilities of features in each chain by itself, and in all of them together.

    Chains that agree are in one place. To the right stands the standard deviation between chains, `disagreement` of
    the diagnostics, in which a chain counts by the mass it found; so does the size of its marker.

    Parameters
    ----------
    n_features, least
        At most so many features, of at least this probability in all chains together.
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
    >>> ax = bgnlm.plot.chains(model)
    >>> ax.get_xlabel()
    'posterior inclusion probability'
    """
    found = one_search(model, target)
    diagnostics, posterior = found.diagnostics, found.posterior
    if not _compared(found):
        raise SettingError("After rescore chains cannot be compared any more. Draw the model before rescore.")
    n = len(probable(found, n_features, least))
    named = len(diagnostics.chain_probabilities) <= _MOST_NAMED
    n_lines = -(-(len(diagnostics.chain_probabilities) + 1) // _NAMES_IN_LINE) if named else 1
    ax = axes_for(ax, (6.4, height_of(n) + 0.1 + 0.2 * n_lines))
    if not n:
        return say(ax, "no features: the models found have an intercept alone")
    rows, each = np.arange(n), diagnostics.chain_probabilities[:, :n]
    ax.hlines(rows, each.min(axis=0), each.max(axis=0), color=DARK, linewidth=0.8)
    for number, (probabilities, weight) in enumerate(zip(each, diagnostics.chain_weights, strict=True)):
        ink, size = stroke(number), 4.0 + 5.0 * float(np.sqrt(weight))
        ax.plot(
            probabilities, rows, linestyle="none", marker=ink.marker if named else "o", markersize=size,
            markerfacecolor="none", color=ink.color if named else BLUE,
            label=f"chain {diagnostics.history[number][0].chain}" if named else None,
        )  # fmt: skip
    ax.plot(
        posterior.inclusion_probabilities[:n], rows, linestyle="none", marker="|", markersize=14, markeredgewidth=2.0,
        color=BLACK, label="draws from the pool" if len(found.posterior.counts) else "all chains",
    )  # fmt: skip
    ax.set_xlim(-0.03, 1.03)
    tidy(ax, "x")
    label_rows(ax, [feature_text(feature) for feature in posterior.features[:n]])
    row_values(ax, [f"{value:.2f}" for value in diagnostics.disagreement[:n]], "disagreement")
    label_axes(ax, "posterior inclusion probability", "")
    legend(
        ax,
        loc="lower right",  # names of features leave room to the left
        bbox_to_anchor=(1.0, 1.0),
        borderaxespad=1.6,
        ncols=_NAMES_IN_LINE,
        columnspacing=0.9,
        handletextpad=0.3,
    )
    note(ax, "; ".join(text for text in (found.title, left_out(found, n)) if text))
    return ax
