"""Dot plots: our medians and ranges beside the paper's."""

from collections.abc import Sequence
from pathlib import Path

from benchmarks.paper import printed
from benchmarks.paper.examples import Example
from benchmarks.paper.notes import MEASURES
from benchmarks.paper.report import Row, ordered

_SHOWN = {"detection": ("Pow", "FDR"), "probability": ("offset", "CG", "CHG", "RW1(pos)")}


def draw(name: str, example: Example, rows: Sequence[Row], path: Path) -> bool:
    """Draw the main measures of an example; the answer is whether there is a picture of them."""
    measures = _SHOWN.get(example.kind, (MEASURES[example.kind].main,))
    if not rows or not measures[0]:
        return False
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    some = ordered(example, rows)[::-1]
    size = (3.0 + 3.5 * len(measures), 1.2 + 0.28 * len(some))
    figure, axes = pyplot.subplots(1, len(measures), figsize=size, sharey=True, squeeze=False, layout="constrained")
    for ax, measure in zip(axes[0], measures, strict=True):
        for place, row in enumerate(some):
            ours = row.measures(example)[measure]
            theirs = printed.TABLES.get(name, {}).get((row.group, row.method), {}).get(measure)
            ax.plot([ours.low, ours.high], [place, place], "-", color="C0", lw=1.5)
            ax.plot(ours.median, place, "o", color="C0", ms=5, label="ours" if place == 0 else None)
            if theirs is not None:
                ax.plot([theirs.low, theirs.high], [place - 0.2] * 2, "-", color="C1", lw=1.0)
                ax.plot(theirs.median, place - 0.2, "D", mfc="none", color="C1", ms=5)
        ax.plot([], [], "D", mfc="none", color="C1", label="paper")
        ax.set_title(measure)
        ax.grid(axis="x", alpha=0.3)
    labels = [" ".join(filter(None, (row.group, row.method, f"({row.settings})"))) for row in some]
    axes[0][0].set_yticks(range(len(some)), labels, fontsize=8)
    axes[0][0].legend(fontsize=8, loc="best")
    figure.savefig(path, dpi=130)
    pyplot.close(figure)
    return True
