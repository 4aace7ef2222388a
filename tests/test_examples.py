"""The example scripts run, as a user would run them, and find what is there."""

import re
import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
FINDS = {
    "law": r"period = .*sqrt_abs\(",
    "classifier": r"\n\s*age\*dose\s+(1\.0|0\.9)",
    "groups": r"Grouped\(clinic\)",
    "logic": r"s1\*s2\s+(1\.0|0\.9)",
    "pipeline": r"bgnlm\s+R2 0\.9",
    "big_table": r"x1\*x2\s+(1\.0|0\.9)",
}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_example_runs(path, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_path(str(path), run_name="__main__")
    assert re.search(FINDS[path.stem], capsys.readouterr().out)


def test_every_example_is_on_the_page():
    page = (ROOT / "docs" / "tutorials" / "examples.md").read_text(encoding="utf-8")
    assert EXAMPLES
    for path in EXAMPLES:
        assert f'"examples/{path.name}"' in page
