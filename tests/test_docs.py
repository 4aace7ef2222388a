"""Every Python block of the documents runs, one after the other in each document, and prints what is shown."""

import re
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tools.transcripts import PYTHON, agrees, printed_by, rerun, run

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")
FENCED = re.compile(r"```.*?```", re.DOTALL)
# GitHub's anchors: letters, digits, blanks as hyphens.
NOT_IN_ANCHORS = re.compile(r"[^\w\- ]")


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_run(path, tmp_path, monkeypatch):
    blocks = list(PYTHON.finditer(path.read_text(encoding="utf-8")))
    if not blocks:
        pytest.skip("no Python in this document")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        if "tcp://SCHEDULER" in block["code"]:  # needs a cluster
            continue
        printed = printed_by(block["code"], str(path), names)
        shown = block["output"]
        assert shown is None or agrees(shown, printed), f"the page shows\n{shown}\nbut now there is\n{printed}"
    assert "bgnlm" in "".join(block["code"] for block in blocks)


@pytest.mark.skipif(shutil.which("bash") is None or shutil.which("jq") is None, reason="needs bash and jq")
def test_commands_print_what_the_page_shows(tmp_path):
    """But for numbers, which differ between versions and processors: `tools.transcripts` writes those of today."""
    shown = (ROOT / "docs" / "tutorials" / "command-line.md").read_text(encoding="utf-8")
    assert shown.count("$ bgnlm") >= 10
    now, before = ([" ".join(NUMBER.sub("#", line).split()) for line in text.splitlines()]
                   for text in (rerun(shown, str(tmp_path)), shown))  # fmt: skip
    assert now == before
    assert {"axis.html", "predictions.csv"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
def test_commands_of_the_readme_run(tmp_path):
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.search(r"```sh\n(bgnlm fit .*?)```", text, re.DOTALL).group(1)
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.uniform(1, 3, size=(30, 2)), columns=["a", "b"])
    table.to_csv(tmp_path / "new.csv", index=False)
    table.assign(y=table["a"] * table["b"] + 0.1 * rng.normal(size=30)).to_csv(tmp_path / "data.csv", index=False)
    printed = run(f"set -e\n{commands}echo done", str(tmp_path))
    assert printed[-1] == "done", printed
    assert {"model.bgnlm", "predictions.csv", "report.html"} <= {path.name for path in tmp_path.iterdir()}


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target, anchor in re.findall(
        r"\]\(([^)#\s]*)(?:#([^)]*))?\)", FENCED.sub("", path.read_text(encoding="utf-8"))
    ):
        if target.startswith("http"):
            continue
        there = (path.parent / target).resolve() if target else path
        assert there.exists(), target
        if anchor and not anchor.startswith("bgnlm."):  # those are made by the build of the site, which checks them
            assert anchor in anchors(there), f"{target}#{anchor}"


def anchors(path):
    headings = re.findall(r"^#+ (.*)$", FENCED.sub("", path.read_text(encoding="utf-8")), re.MULTILINE)
    return {NOT_IN_ANCHORS.sub("", heading.lower()).strip().replace(" ", "-") for heading in headings}


def test_all_pages_are_found_from_the_site():
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]
    for page in (ROOT / "docs").rglob("*.md"):
        assert str(page.relative_to(ROOT / "docs").as_posix()) in navigation


def test_readme_links_to_the_documentation():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "docs/tutorials/first-law.md" in text
    assert "docs/index.md" in text
