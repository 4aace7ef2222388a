"""Every Python block of the documents runs, one after the other in each document."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_blocks_run(path, tmp_path, monkeypatch):
    blocks = BLOCK.findall(path.read_text(encoding="utf-8"))
    if not blocks:
        pytest.skip("no Python in this document")
    monkeypatch.chdir(tmp_path)
    names = {}
    for block in blocks:
        if "tcp://SCHEDULER" in block:  # needs a cluster
            continue
        exec(compile(block, str(path), "exec"), names)
    assert "bgnlm" in "".join(blocks)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
        if not target.startswith("http"):
            assert (path.parent / target).exists(), target
