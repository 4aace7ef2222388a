"""`bgnlm report`: a saved model as a page for the browser."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from bgnlm.cli.console import tell
from bgnlm.cli.options import DESCRIBED, add_common
from bgnlm.cli.outputs import STANDARD_OUTPUT, check_writable, write_bytes
from bgnlm.errors import SettingError

if TYPE_CHECKING:
    import argparse

_EXAMPLES = """\
examples:
  bgnlm report axis.bgnlm --out axis.html
  bgnlm report axis.bgnlm --data bodies.csv --out axis.html
  bgnlm report claims.bgnlm --data new.csv --target claims --offset log_exposure --out claims.html

The page is one file that needs no server and no network. With data it has effects of inputs too; with the response
among them, which is found by its name, also residuals, or calibration of classes.
"""


def add_report(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "report",
        help="write a page about a saved model: laws, tables, pictures, predictions to play with",
        description="Writes what a saved model says as one HTML file.",
        epilog=_EXAMPLES,
        formatter_class=DESCRIBED,
    )
    parser.add_argument("model", metavar="MODEL", help="a file that `bgnlm fit` wrote")
    parser.add_argument("--out", metavar="FILE", default=STANDARD_OUTPUT, help="where to write it; - is the default")
    parser.add_argument("--data", metavar="TABLE", help="rows to show: the training data, or new ones")
    parser.add_argument("--target", metavar="COLUMN", help="the response in the table; by default by its name")
    parser.add_argument("--offset", metavar="COLUMN", help="a known part of the linear predictor")
    parser.add_argument("--title", help="heading of the page")
    add_common(parser)
    parser.set_defaults(run=run_report)


def run_report(options: argparse.Namespace) -> int:
    """Load a model and write its page."""
    from bgnlm.cli.model_files import load_model

    if options.out != STANDARD_OUTPUT:
        check_writable(options.out, options.model, options.data)
    if options.data is None and (options.target or options.offset):
        raise SettingError("--target and --offset are columns of a table. Give it: --data TABLE")
    model = load_model(options.model)
    page = model.report(title=options.title) if options.data is None else _with_data(model, options)
    if options.out == STANDARD_OUTPUT:
        sys.stdout.write(page)
        sys.stdout.flush()
    else:
        write_bytes(options.out, page.encode())
    return 0


def _with_data(model: Any, options: argparse.Namespace) -> str:
    from bgnlm.cli.checks import numbers, rows_as_lines
    from bgnlm.cli.new_rows import inputs_of, require_offset, response_of
    from bgnlm.cli.tables import read_table

    require_offset(model, options)
    table = read_table(options.data, options.na)
    X = inputs_of(model, table)
    target = options.target or (model.response_name_ if model.response_name_ in table.names else None)
    if target is None and not options.quiet:
        tell(f"{table.path}: no column {model.response_name_!r}, so that nothing is compared with the response")
    y = None if target is None else response_of(model, table, target)
    offset = numbers(table, options.offset, "--offset").values if options.offset else None
    with rows_as_lines(table, offset=options.offset, target=target):
        return str(model.report(X, y, offset=offset, title=options.title))
