"""Run the commands of pages again: ``python -m tools.transcripts docs/tutorials/command-line.md ...``.

In blocks marked ``console`` a line that begins with ``$ `` is a command, with its further lines; what follows is its
output, and is replaced by what the command prints now. The commands of a page run in one empty folder, with the
programs of this environment first on the path.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

BEGIN, END, PROMPT = "```console", "```", "$ "


def main(pages: list[str]) -> int:
    """Rewrite the pages."""
    for page in map(Path, pages):
        with tempfile.TemporaryDirectory() as folder:
            page.write_text(rerun(page.read_text(encoding="utf-8"), folder), encoding="utf-8")
    return 0


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
