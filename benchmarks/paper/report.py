"""Tables of what has been run, beside what the paper prints: Markdown and CSV."""

import csv
import platform
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.paper import printed
from benchmarks.paper.examples import Example
from benchmarks.paper.measures import (
    Found,
    Spread,
    detection,
    found_in,
    frequencies,
    mean_complexities,
    rates,
    spread,
)
from benchmarks.paper.notes import MEASURES, SETTINGS
from benchmarks.records import read
from bgnlm import parse

_PACKAGES = ("bgnlm", "numpy", "scipy", "numba", "scikit-learn", "xgboost", "gplearn", "interpret-core")
_MOST_FREQUENT = 10
_LISTED = ("detection", "probability", "frequency")  # features are what these are about


@dataclass(frozen=True)
class Row:
    """All runs of a cell."""

    group: str
    method: str
    settings: str
    lines: list[dict[str, Any]]

    @property
    def seconds(self) -> float:
        """Mean time of a run by the clock."""
        return float(np.mean([line["seconds"] for line in self.lines]))

    @property
    def cpu(self) -> float:
        """Median time of a run by the processor, data and predictions included; the first run may compile."""
        return float(np.median([line["cpu"] for line in self.lines]))

    @property
    def models_per_second(self) -> float | None:
        """Models scored in a second of the processor; None for other methods."""
        if "scored" not in self.lines[0]:
            return None
        return sum(line["scored"] for line in self.lines) / max(sum(line["cpu"] for line in self.lines), 1e-9)

    @property
    def found(self) -> list[list[Found]]:
        """Features of each run; none for other methods."""
        return [found_in(line) for line in self.lines]

    def measures(self, example: Example) -> dict[str, Spread]:
        """What the tables of an example show; for detection means, without a range."""
        runs = [_measures(line, example) for line in self.lines]
        values = {name: [run[name] for run in runs] for name in runs[0]}
        if example.kind == "detection":
            means = {name: float(np.mean(some)) for name, some in values.items()}
            return {name: Spread(mean, mean, mean) for name, mean in means.items()}
        return {name: spread(some) for name, some in values.items()}


def _measures(line: dict[str, Any], example: Example) -> dict[str, float]:
    match example.kind:
        case "classification":
            return rates(line["outcome"])
        case "regression":
            return dict(line["outcome"])
        case "detection":
            return detection(found_in(line), example.truths, example.threshold, example.any_will_do)
        case "probability":
            known = {feature.text: feature.probability for feature in found_in(line)}
            return {name: known.get(name, 0.0) for name in ("offset", "CG", "CHG", "RW1(pos)")}
        case "frequency":
            return {}


def rows_of(folder: Path) -> list[Row]:
    """All cells of an example that have runs."""
    cells: dict[tuple[str, str, str], dict[int, dict[str, Any]]] = defaultdict(dict)
    for path in sorted(folder.glob("*.jsonl")):
        for line in read(path):
            cells[line["group"], line["method"], line["settings"]][line["seed"]] = line
    return [Row(*key, [lines[seed] for seed in sorted(lines)]) for key, lines in cells.items()]


def write(name: str, example: Example, folder: Path, results: Path) -> list[Row]:
    """Write the tables of an example, and return its rows."""
    rows = rows_of(folder / name)
    results.mkdir(parents=True, exist_ok=True)
    (results / f"{name}.md").write_text(markdown(name, example, rows))
    with (results / f"{name}.csv").open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows(values(name, example, rows))
    return rows


def values(name: str, example: Example, rows: Sequence[Row]) -> list[list[Any]]:
    """The numbers of all tables, one measure of one row in a line."""
    header = ["group", "method", "settings", "runs", "measure", "median", "min", "max"]
    lines: list[list[Any]] = [[*header, "paper median", "paper min", "paper max", "seconds per run", "CPU seconds"]]
    for row in ordered(example, rows):
        paper = printed.TABLES.get(name, {}).get((row.group, row.method), {})
        for measure, ours in row.measures(example).items():
            theirs = paper.get(measure, ("", "", ""))
            start = [row.group, row.method, row.settings, len(row.lines), measure]
            lines.append([*start, *(f"{x:.6g}" for x in ours), *theirs, round(row.seconds, 3), round(row.cpu, 3)])
    return lines


def ordered(example: Example, rows: Sequence[Row]) -> list[Row]:
    """By group, the best first, as in the paper."""
    main, sign = MEASURES[example.kind].main, MEASURES[example.kind].sign
    if not main:
        return sorted(rows, key=lambda row: (row.group, row.method, row.settings))
    return sorted(rows, key=lambda row: (row.group, sign * row.measures(example)[main].median, row.method))


def markdown(name: str, example: Example, rows: Sequence[Row]) -> str:
    """The whole page."""
    parts = [f"# {example.title}", "", MEASURES[example.kind].words.format(threshold=example.threshold), ""]
    for group in dict.fromkeys(row.group for row in ordered(example, rows)):
        some = [row for row in ordered(example, rows) if row.group == group]
        parts += [f"## {group}", ""] if group else []
        if example.kind != "frequency":
            parts += [*table(name, example, some), ""]
        parts += _frequency_table(name, group, example, some)
    if name in printed.COMPLEXITIES:
        parts += _complexity_table(name, example, rows)
    return "\n".join([*parts, *_provenance(rows)]) + "\n"


def table(name: str, example: Example, rows: Sequence[Row]) -> list[str]:
    """Measures of some rows beside those that the paper prints."""
    paper = printed.TABLES.get(name, {})
    measures = list(rows[0].measures(example))
    in_paper = [m for m in measures if any(m in paper.get((row.group, row.method), {}) for row in rows)]
    columns = [name for m in measures for name in ([m, "paper"] if m in in_paper else [m])]
    lines = _header(["method", "settings", "runs", *columns, "s/run", "CPU s", "models/s"])
    for row in rows:
        theirs, cells = paper.get((row.group, row.method), {}), []
        for measure, ours in row.measures(example).items():
            cells += [str(ours)] + ([str(theirs.get(measure, ""))] if measure in in_paper else [])
        rate = row.models_per_second
        ends = [f"{row.seconds:.1f}", f"{row.cpu:.1f}", "" if rate is None else f"{rate:,.0f}"]
        lines.append(_line([row.method, row.settings, len(row.lines), *cells, *ends]))
    return lines


def _frequency_table(name: str, group: str, example: Example, rows: Sequence[Row]) -> list[str]:
    """Runs that report features: those that the paper lists, and the most frequent ones of each row."""
    method, theirs = printed.FREQUENCIES.get((name, group), (None, {}))
    some = [row for row in rows if any(row.found) and (row.method == method or example.kind in _LISTED)]
    if not some:
        return []
    paper = {str(parse(text)): n for text, n in theirs.items()}
    counts = [frequencies(row.found, example.threshold) for row in some]
    ours = [{text: n for text, n, _ in listed} for listed in counts]
    shown = dict.fromkeys([*paper, *(text for listed in counts for text, _, _ in listed[:_MOST_FREQUENT])])
    parts = [f"Runs that report a feature with a probability above {example.threshold:g}.", ""]
    titles = [f"{row.method}, {row.settings}, of {len(row.lines)}" for row in some]
    parts += _header(["feature", *([f"{method}, paper, of 100"] if paper else []), *titles])
    for text in sorted(shown, key=lambda text: (-paper.get(text, 0), *(-n.get(text, 0) for n in ours), text)):
        parts.append(_line([f"`{text}`", *([paper.get(text, "")] if paper else []), *(n.get(text, 0) for n in ours)]))
    others = [sum(text not in shown for text in n) for n in ours]
    return [*parts, _line(["others, different ones", *([""] if paper else []), *others]), ""]


def _complexity_table(name: str, example: Example, rows: Sequence[Row]) -> list[str]:
    """Mean numbers of features by complexity; the complexity of an input is 1, of a product of two or g(x) 2."""
    theirs = printed.COMPLEXITIES[name]
    parts = [f"## Complexity of features of probability above {example.threshold:g}: mean number in a run", ""]
    parts += _header(["method", "settings", *map(str, range(1, 10)), "10 or more", "all"])
    for row in rows:
        if any(row.found):
            means = mean_complexities(row.found, example.threshold)
            parts.append(_line([row.method, row.settings, *(f"{x:.2f}" for x in means), f"{sum(means):.2f}"]))
    for method, means in theirs.items():
        filled = [*means, *[0.0] * (10 - len(means))]
        parts.append(_line([method, "paper", *(f"{x:.2f}" for x in filled), f"{sum(means):.2f}"]))
    return [*parts, ""]


def _provenance(rows: Sequence[Row]) -> list[str]:
    names = sorted({row.settings for row in rows})
    parts = ["## Settings", ""] + [f"- {name}: {SETTINGS[name]}" for name in names if name in SETTINGS]
    seconds = sum(line["cpu"] for row in rows for line in row.lines)
    commits = sorted({line["commit"] for row in rows for line in row.lines if line.get("commit")})
    versions = [f"{package} {_version(package)}" for package in _PACKAGES]
    sources = ", ".join(commits) or "unknown"
    return [
        *parts,
        "",
        "Seeds are 0, 1, ..., one for each run; methods without chance have one run.",
        f"{seconds / 60.0:.1f} minutes of processor time in all; s/run is by the clock.",
        f"{', '.join(versions)}; Python {platform.python_version()}; sources {sources}.",
    ]


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _header(names: Sequence[str]) -> list[str]:
    return [_line(names), "|" + "---|" * len(names)]


def _line(cells: Sequence[Any]) -> str:
    return "| " + " | ".join(map(str, cells)) + " |"
