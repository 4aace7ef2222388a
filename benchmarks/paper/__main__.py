"""The paper's examples: ``python -m benchmarks.paper NAME --runs N --jobs J [--score paper|script|default|...]``.

Each run is a line of JSON in a file for its row in the folder `--out`; runs that are there are not done again, so
delete the files of rows whose settings change. At the end, and with `--runs 0` at once, all that is there becomes
tables and a plot in `benchmarks/paper/results`. The data are those in BGNLM_DATA; other methods need the
extra "benchmark".
"""

import argparse
import fnmatch
import os
import sys
from pathlib import Path

# Before anything loads NumPy; processes that are started have it from here.
for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

from benchmarks.paper import plots, report  # noqa: E402
from benchmarks.paper.examples import EXAMPLES, Cell  # noqa: E402
from benchmarks.paper.runner import complete, missing  # noqa: E402
from benchmarks.paper.settings import SCORES, SEARCHES  # noqa: E402

RESULTS = Path(__file__).parent / "results"


def main() -> int:
    """Run what is missing of an example, write its tables; the answer is 1 if runs failed."""
    arguments = parse_arguments()
    example = EXAMPLES[arguments.name]
    if "ensemble" in arguments.score and example.kind not in ("classification", "regression"):
        print(f"--score ensemble is for predictions, and {arguments.name} has none. Use default.", file=sys.stderr)
        return 2
    cells: list[Cell] = []
    for score in arguments.score:
        cells += example.rows(score, arguments.search or example.search, arguments.chains)
    chosen = [cell for cell in _different(cells) if _is_wanted(cell, arguments)]
    if arguments.list:
        for cell in chosen:
            n_missing = len(missing(arguments.out, [cell], arguments.runs))
            print(f"{cell.group:<20}{cell.method:<30}{cell.settings:<30}{n_missing:>5} runs missing")
        return 0
    n_failed = complete(arguments.out, chosen, arguments.runs, arguments.jobs)
    rows = report.write(arguments.name, example, arguments.out, arguments.results)
    plots.draw(arguments.name, example, rows, arguments.results / f"{arguments.name}.png")
    print(f"{arguments.results / arguments.name}.md")
    return int(n_failed > 0)


def parse_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.paper", description=__doc__.splitlines()[0])
    parser.add_argument("name", choices=tuple(EXAMPLES))
    parser.add_argument("--runs", type=int, default=20, help="of each row")
    parser.add_argument("--jobs", type=int, default=1, help="processes, with one thread each")
    parser.add_argument("--score", nargs="+", choices=SCORES, default=("script",))
    parser.add_argument("--search", choices=SEARCHES, help="by default that of the scripts, where it can be had")
    parser.add_argument("--methods", nargs="+", help="rows to run, with wildcards: 'BGNLM*' TXGBOOST")
    parser.add_argument("--groups", nargs="+", help="tables of an example to run: G1, 'setting 2', spam")
    parser.add_argument("--settings", nargs="+", help="rows to run by settings: library 'library, tuned'")
    parser.add_argument("--chains", nargs="+", type=int, help="in place of the paper's numbers of chains")
    parser.add_argument("--list", action="store_true", help="say what would be run")
    parser.add_argument("--out", type=Path, default=RESULTS / "runs")
    parser.add_argument("--results", type=Path, default=RESULTS)
    return parser.parse_args()


def _different(cells: list[Cell]) -> list[Cell]:
    """Other methods are the same for all scores."""
    return list({(cell.group, cell.method, cell.settings): cell for cell in cells}.values())


def _is_wanted(cell: Cell, arguments: argparse.Namespace) -> bool:
    choices = (arguments.methods, cell.method), (arguments.groups, cell.group), (arguments.settings, cell.settings)
    return all(not wanted or any(fnmatch.fnmatch(name, w) for w in wanted) for wanted, name in choices)


if __name__ == "__main__":
    sys.exit(main())
