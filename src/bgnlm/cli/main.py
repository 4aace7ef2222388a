"""The command `bgnlm` and its sub-commands."""

import argparse
import os
import sys
from collections.abc import Sequence

from bgnlm._version import __version__
from bgnlm.errors import BgnlmError


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the answer is the exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        return _run(options)
    except BgnlmError as error:
        print(f"bgnlm: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("bgnlm: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        _close_output()
        return 0
    except OSError as error:  # a full disk, say
        _close_output()
        print(f"bgnlm: {error}", file=sys.stderr)
        return 1


def _close_output() -> None:
    """Send what is still buffered nowhere, or Python would try to write it at exit."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(options: argparse.Namespace) -> int:
    match options.command:
        case "demo":
            from bgnlm.cli.demo import run_demo

            print(run_demo(), flush=True)
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bgnlm", description="Bayesian generalized nonlinear models: laws with their probabilities."
    )
    parser.add_argument("--version", action="version", version=f"bgnlm {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    commands.add_parser(
        "demo",
        help="discover Kepler's third law from a table of solar-system bodies",
        description=(
            "Takes a packaged table of planets, dwarf planets, asteroids and moons, and asks which function of period, "
            "mass of the parent, own mass, radius, eccentricity and year of discovery gives the semi-major axis."
        ),
    )
    return parser
