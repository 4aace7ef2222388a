"""`bgnlm predict`: a saved model applied to a new table."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from bgnlm.cli.console import quoted, tell
from bgnlm.cli.options import DESCRIBED, add_columns, add_common, share, trials

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bgnlm.cli.tables import Table

_EXAMPLES = """\
examples:
  bgnlm predict axis.bgnlm new.csv --out predictions.csv
  bgnlm predict axis.bgnlm new.csv --level 0.95 --of mean --keep name | head
  bgnlm predict claims.bgnlm new.parquet --offset log_exposure --out predictions.parquet
  bgnlm predict germination.bgnlm new.csv --trials 20 --out shares.csv

Columns written: prediction, sd (of the response), lower and upper (of the response, or of its mean); for classes:
prediction, the probability of each class, and for two classes lower and upper for the probability of the second.
"""


def add_predict(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "predict",
        help="predict the rows of a table by a saved model",
        description="Predicts the rows of a table, with the uncertainty of every prediction.",
        epilog=_EXAMPLES,
        formatter_class=DESCRIBED,
    )
    parser.add_argument("model", metavar="MODEL", help="a file that `bgnlm fit` wrote")
    parser.add_argument("data", metavar="NEW", help="a table that has the columns of the training data")
    parser.add_argument(
        "--out", default="-", metavar="FILE", help="a CSV or Parquet file; CSV on the screen by default"
    )
    parser.add_argument("--level", type=share, default=0.9, help="probability of the intervals, 0.9 by default")
    parser.add_argument("--of", choices=("response", "mean"), help="what intervals are about, the response by default")
    parser.add_argument("--using", choices=("average", "best", "median"), default="average", help="which models")
    parser.add_argument("--offset", metavar="COLUMN", help="a known part of the linear predictor")
    parser.add_argument(
        "--trials",
        type=trials,
        metavar="COLUMN|N",
        help="for shares (--family binomial): trials of each row; sd and intervals are for the share of successes in "
        "so many, by default in 1, a single success or failure",
    )
    add_columns(parser, "--keep", help="columns to copy: those that identify a row, say")
    parser.add_argument("--json", action="store_true", help="print a JSON document: predictions, or where they are")
    add_common(parser)
    parser.set_defaults(run=run_predict)


def run_predict(options: argparse.Namespace) -> int:
    """Predict and write."""
    from bgnlm.cli.checks import rows_as_lines
    from bgnlm.cli.model_files import load_model
    from bgnlm.cli.new_rows import inputs_of
    from bgnlm.cli.outputs import STANDARD_OUTPUT, as_csv, check_table_writable, write_table
    from bgnlm.cli.tables import read_table

    is_file = options.out != STANDARD_OUTPUT
    if is_file:
        check_table_writable(options.out, options.model, options.data)
    model = load_model(options.model)
    _check_options(model, options)
    table = read_table(options.data, options.na)
    table.require(options.keep, "--keep")
    X = inputs_of(model, table)
    ignored = _not_used(model, table, options)
    if ignored and not options.quiet:
        tell(f"{table.path}: not used: {', '.join(ignored)}")
    how = _how(table, options)
    with rows_as_lines(table, offset=options.offset):
        columns = _predictions(model, X, how, options)
    columns = _with_kept(table, options.keep, columns)
    if is_file:
        write_table(options.out, columns)
    if options.json:
        print(json.dumps(_document(options, len(table), ignored, None if is_file else columns), indent=2), flush=True)
    elif not is_file:
        print(as_csv(columns), end="", flush=True)
    return 0


def _not_used(model: Any, table: Table, options: argparse.Namespace) -> list[str]:
    """Names of columns that nobody asked for."""
    used = {*model.coding_.input_names, *options.keep, options.offset, options.trials}
    return [name for name in table.names if name not in used]


def _check_options(model: Any, options: argparse.Namespace) -> None:
    from bgnlm.cli.new_rows import require_offset
    from bgnlm.errors import SettingError

    if options.of == "response" and hasattr(model, "classes_"):
        raise SettingError(
            "--of response is for numbers; of classes the interval is that of a probability. Leave it out."
        )
    family = "classification" if hasattr(model, "classes_") else model.family
    if options.trials is not None and family != "binomial":
        raise SettingError(
            f"--trials is for shares (--family binomial); the model has family {family!r}. Leave it out."
        )
    require_offset(model, options)


def _how(table: Table, options: argparse.Namespace) -> dict[str, Any]:
    """Arguments that all methods that predict share."""
    from bgnlm.cli.checks import numbers

    how = {"using": options.using}
    if options.offset:
        how["offset"] = numbers(table, options.offset, "--offset").values
    if options.trials is not None:
        how["trials"] = _trials(table, options.trials) if isinstance(options.trials, str) else options.trials
    return how


def _trials(table: Table, name: str) -> Any:
    """Numbers of trials in a column."""
    from bgnlm.cli.checks import numbers
    from bgnlm.errors import DataError

    values = numbers(table, name, "--trials").values
    for row, value in enumerate(values.tolist()):
        if value < 1 or not value.is_integer():
            raise DataError(
                f"{table.place(row)}, column {name!r}: --trials needs whole numbers of 1 or more; got {value:g}. "
                "Correct it, or drop the row."
            )
    return values


def _predictions(model: Any, X: Any, how: dict[str, Any], options: argparse.Namespace) -> dict[str, Sequence[Any]]:
    if hasattr(model, "classes_"):
        return _class_predictions(model, X, how, options)
    mean, deviation = model.predict(X, return_std=True, **how)
    ends = model.predict_interval(X, level=options.level, of=options.of or "response", **how)
    columns = {"prediction": mean, "sd": deviation, "lower": ends[:, 0], "upper": ends[:, 1]}
    return {name: values.tolist() for name, values in columns.items()}


def _class_predictions(
    model: Any, X: Any, how: dict[str, Any], options: argparse.Namespace
) -> dict[str, Sequence[Any]]:
    shares = model.predict_proba(X, **how)
    columns = {"prediction": model.classes_[shares.argmax(axis=1)].tolist()}
    columns |= {f"probability_{one}": shares[:, k].tolist() for k, one in enumerate(model.classes_.tolist())}
    if len(model.classes_) == 2:
        ends = model.predict_interval(X, level=options.level, **how)
        columns |= {"lower": ends[:, 0].tolist(), "upper": ends[:, 1].tolist()}
    return columns


def _with_kept(table: Table, keep: Sequence[str], columns: dict[str, Sequence[Any]]) -> dict[str, Sequence[Any]]:
    from bgnlm.errors import DataError

    if twice := [name for name in keep if name in columns]:
        raise DataError(f"--keep must not have {quoted(twice)}: a column of the predictions has that name. Rename it.")
    return {**{name: table.raw(name) for name in keep}, **columns}


def _document(
    options: argparse.Namespace, n_rows: int, ignored: Sequence[str], columns: dict[str, Sequence[Any]] | None
) -> dict[str, Any]:
    from bgnlm.cli.model_files import plain

    document = {
        "model": options.model,
        "data": options.data,
        "rows": n_rows,
        "not_used": ignored,
        "level": options.level,
        "using": options.using,
        "file": None if columns is not None else options.out,
    }
    if columns is not None:
        rows = zip(*columns.values(), strict=True)
        document["predictions"] = [dict(zip(columns, row, strict=True)) for row in rows]
    return dict(plain(document))
