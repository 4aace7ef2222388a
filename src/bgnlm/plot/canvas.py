"""Axes, inks and texts that all pictures share.

Names of columns are never read as formulas of matplotlib's own, whatever they hold. Inks are those of Okabe and Ito;
lines differ by dash and marker as well, so that nothing rests on colour alone.
"""

from __future__ import annotations

from textwrap import fill
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bgnlm.errors import MissingExtraError, SettingError
from bgnlm.features import Feature, Input, render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from matplotlib.axes import Axes

    from bgnlm._typing import FloatArray, IntArray

BLACK, BLUE, VERMILLION, GREEN = "#000000", "#0072B2", "#D55E00", "#009E73"
PURPLE, ORANGE, SKY = "#CC79A7", "#E69F00", "#56B4E9"
DARK, GREY, PALE = "#4D4D4D", "#999999", "#E3E3E3"
PLAIN: dict[str, Any] = {"parse_math": False, "usetex": False}
"""Texts as they are: a dollar is a dollar."""
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"
_DIGITS = 3
_MOST_TICKS = 100
_NOTE_WIDTH = 56  # characters
_LEGEND_WIDTH = 72  # characters, with the strokes
_TITLE_WIDTH = 56


class Stroke(NamedTuple):
    """How one of several lines is told from the others."""

    color: str
    linestyle: Any
    marker: str


STROKES = (
    Stroke(BLUE, "-", "o"),
    Stroke(VERMILLION, "--", "s"),
    Stroke(GREEN, "-.", "^"),
    Stroke(BLACK, ":", "D"),
    Stroke(PURPLE, (0, (6, 1, 1, 1, 1, 1)), "v"),
    Stroke(ORANGE, (0, (1, 1)), "P"),
    Stroke(SKY, (0, (8, 2)), "X"),
)


def stroke(number: int) -> Stroke:
    """Return the stroke of line `number`."""
    return STROKES[number % len(STROKES)]


def axes_for(ax: Axes | None, size: tuple[float, float] = (6.0, 4.0)) -> Axes:
    """Return the axes given, or new ones in a figure that nobody else knows."""
    try:
        from matplotlib.axes import Axes
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtraError(
            'Plots are drawn by matplotlib, which is not installed. Run: pip install "bgnlm[plot]"'
        ) from error
    if ax is None:
        return Figure(figsize=size, layout="constrained").add_subplot()
    if not isinstance(ax, Axes):
        raise SettingError(f"ax must be one matplotlib Axes, or None; got {type(ax).__name__}.")
    return ax


def tidy(ax: Axes, grid: str = "") -> None:
    """Take away what carries no information; `grid` names the axes with lines: "x", "y" or "both"."""
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)
    if grid:
        ax.grid(axis=grid, color=PALE, linewidth=0.8)  # type: ignore[arg-type]


def shown(text: str, width: int = 40) -> str:
    """Write a text in one line: what cannot be printed as escapes, the middle of long ones left out."""
    clean = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    if len(clean) <= width:
        return clean
    tail = (width - 1) // 3
    return f"{clean[: width - 1 - tail]}{_ELLIPSIS}{clean[-tail:]}"


def feature_text(feature: Feature, width: int = 46) -> str:
    """Write a feature with few digits; an input by its name alone."""
    return shown(feature.name if isinstance(feature, Input) else render(feature, _DIGITS), width)


def label_axes(ax: Axes, x: str, y: str) -> None:
    """Name both axes, as they are called."""
    ax.set_xlabel(x, **PLAIN)
    ax.set_ylabel(y, **PLAIN)


def label_rows(ax: Axes, labels: Sequence[str]) -> None:
    """Name horizontal rows, the first on top."""
    ax.set_yticks(range(len(labels)), labels, **PLAIN)
    ax.set_ylim(max(len(labels), 2) - 0.4, -0.6)
    ax.tick_params(axis="y", length=0)


def row_values(ax: Axes, values: Sequence[str], heading: str) -> None:
    """Write a column of values to the right of the rows."""
    place = {"textcoords": "offset points", "fontsize": "small", **PLAIN}
    for row, value in enumerate(values):
        ax.annotate(value, (1.0, row), (10, 0), xycoords=ax.get_yaxis_transform(), va="center", **place)
    ax.annotate(heading, (1.0, 1.0), (10, 3), xycoords="axes fraction", va="bottom", color=DARK, **place)


def note(ax: Axes, text: str) -> None:
    """Say below the picture what it leaves out, or rests on."""
    if text:
        # Long names of rows leave little room to the right of the middle of the axes.
        lines = fill(text, _NOTE_WIDTH, break_long_words=False, break_on_hyphens=False)
        ax.annotate(
            lines, (0.5, 0.0), (0, -3), xycoords=ax.xaxis.label, textcoords="offset points",
            ha="center", va="top", fontsize="small", color=DARK, **PLAIN,
        )  # fmt: skip


def say(ax: Axes, text: str) -> Axes:
    """Say in words why there is nothing to draw."""
    ax.text(0.5, 0.5, text, transform=ax.transAxes, ha="center", va="center", color=DARK, **PLAIN)
    ax.set_axis_off()
    return ax


def legend(ax: Axes, **settings: Any) -> None:
    """Explain what has a label."""
    handles, labels = ax.get_legend_handles_labels()
    if handles:
        box = ax.legend(handles, labels, frameon=False, fontsize="small", **settings)
        for text in box.get_texts():
            text.set(**PLAIN)


def legend_above(ax: Axes) -> None:
    """Explain what has a label, above the axes, with as many names in a line as there is room for."""
    longest = max((len(name) for name in ax.get_legend_handles_labels()[1]), default=0)
    n_columns = max(_LEGEND_WIDTH // (longest + 6), 1)
    legend(ax, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=n_columns, columnspacing=1.2)


def rug(ax: Axes, values: FloatArray, low: float, high: float) -> None:
    """Mark values between two ends along the lower edge, at most a hundred of them."""
    inside = values[(values >= low) & (values <= high)]
    inside = inside[some_of(len(inside), _MOST_TICKS)]
    height = np.full(len(inside), 0.012)
    ax.plot(inside, height, "|", transform=ax.get_xaxis_transform(), color=DARK, markersize=5)


def whole_ticks(ax: Axes) -> None:
    """Put ticks of the horizontal axis at whole numbers only."""
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))


def title(ax: Axes, text: str) -> None:
    """Say what the picture is of, where that is not plain."""
    if text:
        ax.set_title(fill(text, _TITLE_WIDTH), loc="left", fontsize="medium", **PLAIN)


def title_of_rows(ax: Axes, text: str) -> None:
    """Say what rows are of, above the heading of their values; names of rows leave room to the left."""
    if text:
        ax.set_title(text, loc="right", fontsize="medium", pad=18.0, **PLAIN)


def inches_of(ax: Axes) -> float:
    """Return the width of axes, before anything is laid out."""
    return float(ax.bbox.width / ax.figure.dpi)


def height_of(n_rows: int) -> float:
    """Return the height of a figure with so many rows."""
    return 1.3 + 0.26 * max(n_rows, 2)


def some_of(n: int, most: int) -> IntArray:
    """Return numbers of at most so many of n rows, always the same ones."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(0).choice(n, most, replace=False))


def some_note(n: int, most: int, what: str = "rows") -> str:
    """Say that only some were taken."""
    return f"{most:,} of {n:,} {what}, drawn at random" if n > most else ""
