"""Run the checks of the project: ``python -m tools.check [lint] [types] [imports] [docs] [tests] [lowest]``."""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
import time
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PYTHON = sys.executable
TESTS = ["pytest", "-n", "2"]
# Pages show what the versions of today print, and benchmarks are run with these.
ABOUT_TODAY = ("tests/test_docs.py", "tests/benchmarks")
TESTED_EXTRAS = ("sympy", "dask", "data", "parquet", "plot", "onnx", "arviz")

Passed = bool | None
"""Whether a step passed; None if it does not apply here."""


def main(names: Sequence[str]) -> int:
    """Run the steps called ``names``, all of them if there are none; return the exit code."""
    unknown = [name for name in names if name not in STEPS]
    if unknown:
        print(f"There is no check called {', '.join(unknown)}. The checks are: {', '.join(STEPS)}.")
        return 2
    outcomes = {name: timed(STEPS[name]) for name in names or STEPS}
    print("\ncheck     result   seconds")
    for name, (passed, seconds) in outcomes.items():
        print(f"{name:<8}  {RESULTS[passed]:<7}  {seconds:7.1f}")
    return int(any(passed is False for passed, _ in outcomes.values()))


def lint() -> Passed:
    """Check the layout and the lint rules."""
    formatted = run(PYTHON, "-m", "ruff", "format", "--check", ".")
    clean = run(PYTHON, "-m", "ruff", "check", ".")
    return formatted and clean


def types() -> Passed:
    """Check the types."""
    return run(PYTHON, "-m", "mypy")


def imports() -> Passed:
    """Check the direction of the imports between the parts of the package."""
    return run(str(Path(sysconfig.get_path("scripts"), "lint-imports")))


def docs() -> Passed:
    """Build the documentation; every warning, a broken link or anchor for instance, is an error."""
    os.environ["NO_MKDOCS_2_WARNING"] = "1"  # an announcement of the theme
    return run(PYTHON, "-m", "mkdocs", "build", "--strict", "--quiet", "--clean")


def tests() -> Passed:
    """Test with what is installed."""
    return run(PYTHON, "-m", *TESTS)


def lowest() -> Passed:
    """Test with the lowest versions that ``pyproject.toml`` allows, in an environment of their own."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    oldest = project["requires-python"].removeprefix(">=")
    if oldest != f"{sys.version_info.major}.{sys.version_info.minor}":
        # Releases as old as the lower bounds are not built for newer interpreters.
        print(f"\nThe lower bounds are those for Python {oldest}; this is {sys.version.split()[0]}.")
        return None
    environment = ROOT / ".venv-lowest"
    python = str(environment / Path(PYTHON).relative_to(sys.prefix))
    tools = ["pytest", "pytest-xdist", "hypothesis", "psutil"]
    return (
        (Path(python).exists() or run(PYTHON, "-m", "venv", str(environment)))
        and run(python, "-m", "pip", "install", "--quiet", "-e", ".", *pins(project), *tools)
        and run(python, "-m", *TESTS, *(f"--ignore={path}" for path in ABOUT_TODAY))
    )


def pins(project: dict[str, Any]) -> list[str]:
    """Return the dependencies with every lower bound as the exact version."""
    extras = project["optional-dependencies"]
    requirements: list[str] = sum((extras[name] for name in TESTED_EXTRAS), project["dependencies"])
    unbounded = [requirement for requirement in requirements if ">=" not in requirement]
    if unbounded:
        raise SystemExit(f"pyproject.toml must give a lower bound (>=) for {', '.join(unbounded)}.")
    return [re.sub(">=", "==", requirement, count=1) for requirement in requirements]


def run(*command: str) -> bool:
    """Run a command in the root folder; return whether it succeeded."""
    print(f"\n$ {shlex.join(command)}", flush=True)
    return subprocess.run(command, cwd=ROOT, check=False).returncode == 0


def timed(step: Callable[[], Passed]) -> tuple[Passed, float]:
    """Return what the step returns, and the seconds it took."""
    start = time.perf_counter()
    return step(), time.perf_counter() - start


STEPS = {step.__name__: step for step in (lint, types, imports, docs, tests, lowest)}
RESULTS = {True: "passed", False: "FAILED", None: "skipped"}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
