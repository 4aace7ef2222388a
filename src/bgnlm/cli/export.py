"""`bgnlm export`: a saved model for other programs."""

from __future__ import annotations

import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from bgnlm.cli.options import DESCRIBED, add_columns
from bgnlm.cli.outputs import STANDARD_OUTPUT, check_writable, write_bytes
from bgnlm.errors import SettingError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

_KINDS = ("python", "numpy", "sql", "json", "onnx", "text", "latex", "sympy")
# As messages of the method write them, with the words around: elsewhere such a word may be a name in the table.
_OPTIONS = {
    "Give table=...": "Give --table NAME",
    "without_latent=True exports": "--without-latent exports",
    "keep is for a query; got keep=": "--keep is for a query; got ",
    "got of=": "got --of ",
    "use predict_interval.": "use `bgnlm predict`.",
}
_EXAMPLES = """\
examples:
  bgnlm export axis.bgnlm --as python --out axis.py
  bgnlm export axis.bgnlm --as sql --using best
  bgnlm export axis.bgnlm --as sql --table bodies --keep name | sqlite3 bodies.db
  bgnlm export axis.bgnlm --as json --with-uncertainty --out axis.json
"""


def add_export(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "export",
        help="write what a saved model predicts in another language",
        description="Writes a saved model as Python, NumPy, SQL, JSON, ONNX or a formula.",
        epilog=_EXAMPLES,
        formatter_class=DESCRIBED,
    )
    parser.add_argument("model", metavar="MODEL", help="a file that `bgnlm fit` wrote")
    parser.add_argument("--as", dest="kind", choices=_KINDS, required=True, help="the language")
    parser.add_argument(
        "--using",
        choices=("average", "best", "median"),
        default="average",
        help="the average over models, as `bgnlm predict` does, or a single model",
    )
    parser.add_argument(
        "--of",
        choices=("mean", "linear_predictor"),
        default="mean",
        help="the mean of the response, for classes their probabilities, or the linear predictor",
    )
    parser.add_argument("--out", metavar="FILE", default=STANDARD_OUTPUT, help="where to write it; - is the default")
    parser.add_argument("--name", help="Python and NumPy: name of the function")
    parser.add_argument("--table", help="SQL: write a query over this table, not an expression")
    add_columns(parser, "--keep", help="SQL: columns that the query returns too")
    parser.add_argument("--offset", metavar="COLUMN", help="SQL: the column of the offset")
    parser.add_argument("--digits", type=int, help="formulas: significant digits")
    parser.add_argument("--with-uncertainty", action="store_true", help="JSON: covariances of coefficients too")
    parser.add_argument("--without-latent", action="store_true", help="leave out latent components")
    parser.set_defaults(run=run_export)


def run_export(options: argparse.Namespace) -> int:
    """Load a model and write it."""
    from bgnlm.cli.model_files import load_model

    if options.out != STANDARD_OUTPUT:
        check_writable(options.out, options.model)
    elif options.kind == "onnx":
        raise SettingError("--as onnx needs a file. Give its name: --out model.onnx")
    model = load_model(options.model)
    with _arguments_as_options():
        written = model.export(
            options.kind, options.using, options.of, without_latent=options.without_latent, **_given(options)
        )
    content = written if isinstance(written, bytes) else _text(written).encode()
    if options.out == STANDARD_OUTPUT:
        sys.stdout.write(content.decode())
        sys.stdout.flush()
    else:
        write_bytes(options.out, content)
    return 0


@contextmanager
def _arguments_as_options() -> Iterator[None]:
    """Name options where a message names arguments of Python."""
    try:
        yield
    except SettingError as error:
        message = str(error)
        for argument, option in _OPTIONS.items():
            message = message.replace(argument, option, 1)
        raise SettingError(message) from error


def _given(options: argparse.Namespace) -> dict[str, Any]:
    """Options of the language that were given."""
    names = ("name", "table", "keep", "offset", "digits", "with_uncertainty")
    return {name: getattr(options, name) for name in names if getattr(options, name) not in (None, [], False)}


def _text(written: Any) -> str:
    """A text that ends with its line; formulas of several classes one below the other."""
    if isinstance(written, dict):
        return "".join(f"{one}: {formula}\n" for one, formula in written.items())
    text = str(written)
    return text if text.endswith("\n") else f"{text}\n"
