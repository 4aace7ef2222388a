"""Tables of the page on the paper's examples in the documentation: ``python -m benchmarks.paper.page`` writes them."""

import re
from pathlib import Path

from benchmarks.paper import report
from benchmarks.paper.examples import EXAMPLES

PAGE = Path(__file__).parents[2] / "docs" / "explanation" / "paper.md"
RUNS = Path(__file__).parent / "results" / "runs"
_TABLE = re.compile(r"(<!-- table (?P<name>\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def filled(text: str, runs: Path = RUNS) -> str:
    """Return the page with its tables as the runs are."""
    return _TABLE.sub(lambda found: f"{found[1]}\n{tables(found['name'], runs)}\n{found[3]}", text)


def tables(name: str, runs: Path) -> str:
    """Tables of one example, without those of single features."""
    example = EXAMPLES[name]
    rows = report.ordered(example, report.rows_of(runs / name))
    parts = []
    for group in dict.fromkeys(row.group for row in rows):
        parts += [f"**{group}**", ""] if group else []
        parts += [*report.table(name, example, [row for row in rows if row.group == group]), ""]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(filled(PAGE.read_text()))
