"""Run the commands and the Python of pages again: ``python -m tools.transcripts docs/tutorials/command-line.md ...``.

In blocks marked ``console`` a line that begins with ``$ `` is a command, with its further lines; what follows is its
output, and is replaced by what the command prints now. The commands of a page run in one empty folder, with the
programs of this environment first on the path.

A block marked ``text`` that follows a ``python`` block is what this prints, and is replaced unless it agrees, where
``...`` agrees with anything. The tests compare these, too.
"""

import contextlib
import doctest
import io
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

BEGIN, END, PROMPT = "```console", "```", "$ "
PYTHON = re.compile(r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<output>.*?)```\n)?", re.DOTALL)
AGREEMENT = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def main(pages: list[str]) -> int:
    """Rewrite the pages."""
    for page in map(Path, pages):
        with tempfile.TemporaryDirectory() as folder:
            text = rerun(page.read_text(encoding="utf-8"), folder)
            with contextlib.chdir(folder):
                text = rerun_python(text, str(page))
            page.write_text(text, encoding="utf-8")
    return 0


def rerun_python(text: str, name: str) -> str:
    """Return a page with the outputs that its Python blocks have now, one after the other in one namespace."""
    names: dict[str, Any] = {}

    def shown(block: re.Match[str]) -> str:
        printed = printed_by(block["code"], name, names)
        if block["output"] is None or agrees(block["output"], printed):
            return block[0]
        return f"```python\n{block['code']}```\n\n```text\n{printed}```\n"

    return PYTHON.sub(shown, text)


def printed_by(code: str, name: str, names: dict[str, Any]) -> str:
    """Run a block; return what it prints."""
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        exec(compile(code, name, "exec"), names)
    return "\n".join(map(str.rstrip, printed.getvalue().splitlines())) + "\n"


def agrees(shown: str, printed: str) -> bool:
    """Whether a page shows what is printed."""
    return doctest.OutputChecker().check_output(shown, printed, AGREEMENT)


def rerun(text: str, folder: str) -> str:
    """Return a page with the outputs that its commands have now."""
    written: list[str] = []
    lines = iter(text.splitlines())
    for line in lines:
        written.append(line)
        if line != BEGIN:
            continue
        for within in lines:
            if within == END:
                written.append(within)
                break
            if within.startswith(PROMPT):
                command = [within.removeprefix(PROMPT)]
                while not is_complete("\n".join(command)):
                    command.append(next(lines))
                written += [PROMPT + command[0], *command[1:], *run("\n".join(command), folder)]
    return "\n".join(written) + "\n"


def is_complete(command: str) -> bool:
    """Whether a shell would run this as it is, or wait for another line."""
    if command.endswith("\\"):
        return False
    checked = subprocess.run(["bash", "-n", "-c", command], capture_output=True, check=False)
    return not checked.stderr


def run(command: str, folder: str) -> list[str]:
    """Run a command; return the lines it prints, errors included."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env=os.environ | {"PATH": path},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout.decode().splitlines()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
