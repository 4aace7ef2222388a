"""The command `bgnlm` and its sub-commands."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from typing import Any

from bgnlm._version import __version__
from bgnlm.cli.console import escape_what_cannot_be_shown, tell, warnings_as_lines
from bgnlm.cli.export import add_export
from bgnlm.cli.fit import add_fit
from bgnlm.cli.options import DESCRIBED
from bgnlm.cli.predict import add_predict
from bgnlm.cli.report import add_report
from bgnlm.cli.show import add_show
from bgnlm.errors import BgnlmError, SettingError

_EXAMPLES = """\
examples:
  bgnlm demo
  bgnlm fit planets.csv --target axis --out axis.bgnlm
  bgnlm show axis.bgnlm
  bgnlm predict axis.bgnlm new.csv --out predictions.csv
  bgnlm export axis.bgnlm --as sql
  bgnlm report axis.bgnlm --data planets.csv --out axis.html

`bgnlm COMMAND --help` explains a command. Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; the answer is the exit code: 0 done, 1 failed, 2 wrong usage, 130 interrupted."""
    escape_what_cannot_be_shown()
    parser = _parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 0
    try:
        with warnings_as_lines():
            return int(options.run(options))
    except KeyboardInterrupt:
        tell("interrupted")
        return 130
    except SettingError as error:
        tell(error)
        return 2
    except BgnlmError as error:
        tell(error)
        return 1
    except ModuleNotFoundError as error:
        tell(f"{options.command} needs the package {error.name!r}, which is not installed. Install it with pip.")
        return 1
    except BrokenPipeError:  # the reader, `head` say, has seen enough
        _close_output()
        return 0
    except OSError as error:  # a full disk, say
        _close_output()
        tell(error if error.filename is None else f"{error.filename}: {error.strerror}")
        return 1


def _close_output() -> None:
    """Send what is still buffered nowhere, or Python would try to write it at exit."""
    with contextlib.suppress(OSError, ValueError):
        try:
            sys.stdout.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="bgnlm",
        description="Bayesian generalized nonlinear models: laws with their probabilities.",
        epilog=_EXAMPLES,
        formatter_class=DESCRIBED,
    )
    parser.add_argument("--version", action="version", version=f"bgnlm {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    _add_demo(commands)
    for add in (add_fit, add_predict, add_show, add_export, add_report):
        add(commands)
    return parser


def _add_demo(commands: Any) -> None:
    parser = commands.add_parser(
        "demo",
        help="discover Kepler's third law from a table of solar-system bodies",
        description=(
            "Takes a packaged table of planets, dwarf planets, asteroids and moons, and asks which function of period, "
            "mass of the parent, own mass, radius, eccentricity and year of discovery gives the semi-major axis."
        ),
    )
    parser.set_defaults(run=_run_demo)


def _run_demo(_: argparse.Namespace) -> int:
    from bgnlm.cli.demo import run_demo

    print(run_demo(), flush=True)
    return 0
