"""Every Python block of the documents runs, one after the other in each document, and prints what is shown."""

import re
from pathlib import Path

import pytest

from tools.transcripts import PYTHON, agrees, printed_by

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "benchmarks/README.md")),
    *sorted((ROOT / "docs").rglob("*.md")),
]
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
