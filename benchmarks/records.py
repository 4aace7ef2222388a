"""Results as lines of JSON that are written as they come: a file for each cell of a study."""

import json
from pathlib import Path
from typing import Any


def read(path: Path) -> list[dict[str, Any]]:
    """Results that are there; what a kill has cut short does not count."""
    return [line for line in map(_parsed, path.read_text().splitlines()) if line] if path.exists() else []


def append(path: Path, line: dict[str, Any]) -> None:
    """Add a result, below what a kill may have left of another one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    is_torn = path.exists() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    with path.open("a") as file:
        file.write(("\n" if is_torn else "") + json.dumps(line) + "\n")


def _parsed(line: str) -> dict[str, Any] | None:
    try:
        value = json.loads(line)
    except json.JSONDecodeError:
        return None
    return value if isinstance(value, dict) else None
