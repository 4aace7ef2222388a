"""`bgnlm fit`: from a table to a file with a fitted model."""

from __future__ import annotations

import json
from time import perf_counter
from typing import TYPE_CHECKING, Any

from bgnlm.cli.console import counted, is_watched, tell
from bgnlm.cli.options import DESCRIBED, add_columns, add_common, component, jobs, number, penalty, whole_number

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from bgnlm.cli.options import ComponentOption
    from bgnlm.cli.tables import Table
    from bgnlm.cli.training_data import TrainingData

_INTERRUPTED = 130
_FAMILIES = ("gaussian", "binomial", "poisson", "gamma", "negative_binomial", "classification")
_EXAMPLES = """\
examples:
  bgnlm fit planets.csv --target axis --noise-floor 0.01 --out axis.bgnlm
  bgnlm fit patients.csv --target sick --exclude name id --missing impute --seed 1 --out sick.bgnlm
  bgnlm fit claims.parquet --target claims --family poisson --offset log_exposure --jobs 2 --out claims.bgnlm
  bgnlm fit trial.csv --target seizures --family poisson --latent "AR1(week)" --latent "Grouped(subject, slope=dose)" \\
      --out trial.bgnlm

Tables are CSV (also .csv.gz, .tsv; comma, semicolon or tab; UTF-8; `-` reads standard input) or Parquet. The first line
has the names of the columns. Columns of texts are categories. Ctrl-C stops the search and saves what was found.
"""


def add_fit(commands: Any) -> None:
    """Add the command to the parser."""
    parser = commands.add_parser(
        "fit",
        help="search for the features that explain a column of a table, and save the model",
        description="Searches for the features that explain the target, prints what was found, and saves the model.",
        epilog=_EXAMPLES,
        formatter_class=DESCRIBED,
    )
    parser.add_argument("data", metavar="DATA", help="the table")
    parser.add_argument("--out", required=True, metavar="FILE", help="where the model is saved, model.bgnlm say")
    parser.add_argument("--json", action="store_true", help="print a JSON document in place of the summary")
    add_common(parser)
    _add_columns(parser.add_argument_group("columns"))
    _add_model(parser.add_argument_group("model"))
    _add_search(parser.add_argument_group("search"))
    parser.set_defaults(run=run_fit)


def _add_columns(group: Any) -> None:
    group.add_argument("--target", required=True, metavar="COLUMN", help="the column to explain")
    either = group.add_mutually_exclusive_group()
    add_columns(either, "--features", help="the columns to explain it by; all others by default")
    add_columns(either, "--exclude", help="columns to leave out")
    add_columns(group, "--categories", help="columns that are categories, even if they look like numbers")
    group.add_argument("--offset", metavar="COLUMN", help="a known part of the linear predictor")
    group.add_argument("--weights", metavar="COLUMN", help="how often each row was observed; for shares the trials")
    group.add_argument("--missing", choices=("raise", "impute"), default="raise", help="refuse or fill missing inputs")


def _add_model(group: Any) -> None:
    group.add_argument("--family", choices=_FAMILIES, help="by default classification for texts, true/false and 0/1")
    group.add_argument("--link", help="identity; logit, probit, cloglog; log: by default what is usual for the family")
    group.add_argument("--transforms", default="default", metavar="NAMES", help="a preset, or names with commas")
    group.add_argument("--penalty", type=penalty, default="bic", help="bic, aic, predict, or nats per operation")
    group.add_argument("--coefficient-prior", default="auto", metavar="NAME", help="robust, hyper-g/n, jeffreys, ...")
    group.add_argument("--noise-floor", type=number(0.0, 1.0), default=0.0, metavar="X", help="as a share of sd(y)")
    group.add_argument(
        "--projection-weights",
        choices=("naive", "concave", "deep", "bayesian", "conditional"),
        default="naive",
        help="how they are fitted; bayesian averages over them, conditional fits what the best model leaves",
    )
    group.add_argument(
        "--latent",
        type=component,
        action="append",
        default=[],
        metavar="COMPONENT",
        help="a latent Gaussian component that models may have: AR1(time), RW1(time), OU(time), IID(row), "
        "Grouped(subject), Grouped(subject, slope=dose); again for more. The column is then no input",
    )
    group.add_argument("--select-offset", action="store_true", help="models may do without the offset")
    group.add_argument("--max-depth", type=whole_number(0), default=5, metavar="D", help="0 for linear models")


def _add_search(group: Any) -> None:
    group.add_argument("--populations", type=whole_number(1), metavar="T", help="populations that a chain explores")
    group.add_argument("--chains", type=whole_number(1), default=4, metavar="B", help="chains, 4 by default")
    group.add_argument("--jobs", type=jobs, metavar="J", help="chains that run at a time, -1 for all cores")
    group.add_argument("--max-seconds", type=number(0.0), metavar="S", help="stop after so much time")
    group.add_argument("--seed", type=whole_number(0), metavar="N", help="the same seed gives the same result")
    group.add_argument("--checkpoint", metavar="FOLDER", help="write progress there, and go on from there")


def run_fit(options: argparse.Namespace) -> int:
    """Fit, save and describe a model; 1 if it had to be saved elsewhere, 130 after an interruption."""
    from bgnlm.cli.checks import rows_as_lines
    from bgnlm.cli.outputs import check_model_writable
    from bgnlm.cli.tables import read_table
    from bgnlm.cli.training_data import training_data
    from bgnlm.search.interrupts import Interrupts

    start = perf_counter()
    check_model_writable(options.out, options.data)
    table = read_table(options.data, options.na)
    data = training_data(table, options)
    if not options.quiet:
        _tell_choices(table, data, options)
    model = _estimator(options, data.family)
    with rows_as_lines(table, target=options.target, weights=options.weights, offset=options.offset):
        model.fit(data.X, data.y, sample_weight=data.weights, offset=data.offset)
    interrupts = Interrupts()
    with interrupts.held_back():
        file = _save(model, options.out)
    _print_result(model, options, file, perf_counter() - start)
    return _ending(model, options.out, interrupts.count > 0) if file == options.out else 1


def _tell_choices(table: Table, data: TrainingData, options: argparse.Namespace) -> None:
    if n_unnamed := table.n_unnamed:
        tell(f"{table.path}: {counted(n_unnamed, 'column')} without a name left out")
    if data.reason:
        tell(f"family: {data.family}, because {options.target!r} {data.reason}; --family chooses another")


def _estimator(options: argparse.Namespace, family: str) -> Any:
    from bgnlm import BGNLMClassifier, BGNLMRegressor, SearchConfig
    from bgnlm.errors import SettingError

    config = {"n_populations": options.populations, "select_offset": options.select_offset}
    config = {name: value for name, value in config.items() if value}
    settings = {
        "link": options.link,
        "transforms": _transforms(options.transforms),
        "coefficient_prior": options.coefficient_prior,
        "penalty": options.penalty,
        "max_depth": options.max_depth,
        "projection_weights": options.projection_weights,
        "latent": _components(options.latent),
        "missing": options.missing,
        "n_chains": options.chains,
        "n_jobs": options.jobs,
        "max_seconds": options.max_seconds,
        "search": SearchConfig(**config) if config else None,
        "checkpoint": options.checkpoint,
        "random_state": options.seed,
        "verbose": int(is_watched() and not options.quiet),
    }
    if family != "classification":
        return BGNLMRegressor(family=family, noise_floor=options.noise_floor, **settings)
    if options.noise_floor:
        raise SettingError("--noise-floor is for --family gaussian; got it with classification. Leave it out.")
    return BGNLMClassifier(**settings)


def _components(wanted: Sequence[ComponentOption]) -> list[Any]:
    """Latent components with their usual priors."""
    from bgnlm import latent

    kinds = [(getattr(latent, kind), column, slope) for kind, column, slope in wanted]
    return [kind(column) if slope is None else kind(column, slope=slope) for kind, column, slope in kinds]


def _transforms(text: str) -> str | list[str]:
    """A preset's name, or names of transforms."""
    from bgnlm.errors import SettingError
    from bgnlm.features import resolve_transforms
    from bgnlm.features.presets import PRESETS

    if text in PRESETS:
        return text
    names = [name.strip() for name in text.split(",") if name.strip()]
    try:
        resolve_transforms(names)
    except SettingError as error:
        raise SettingError(f"--transforms: {error} Presets are: {', '.join(PRESETS)}.") from None
    return names


def _save(model: Any, out: str) -> str | None:
    """Return the file that has the model: another than `out` if that cannot be written, None if nothing can."""
    from bgnlm.cli.outputs import save_elsewhere, save_model
    from bgnlm.errors import ModelFileError

    try:
        save_model(model, out)
        return out
    except (ModelFileError, OSError) as error:
        failure = f"could not write {out}: {_reason(error)}"
    try:
        file = save_elsewhere(model)
    except (ModelFileError, OSError) as error:
        tell(f"{failure}; the model is not saved, because temporary files cannot be written either: {_reason(error)}")
        return None
    tell(f"{failure}; the model was saved as {file}")
    return file


def _reason(error: Exception) -> str:
    """Why a file cannot be written, without its name."""
    cause = error.__cause__ or error
    return getattr(cause, "strerror", None) or str(cause)


def _print_result(model: Any, options: argparse.Namespace, file: str | None, seconds: float) -> None:
    from bgnlm.cli.model_files import describe

    if options.json:
        print(json.dumps({**describe(model), "file": file, "seconds": seconds}, indent=2), flush=True)
    else:
        print(model.summary(), flush=True)


def _ending(model: Any, out: str, saving_was_interrupted: bool) -> int:
    if any("interrupted" in search.diagnostics.endings for search in model.searches_):
        tell(f"interrupted: the model found until then is saved in {out}")
    elif saving_was_interrupted:
        tell(f"interrupted: the search had ended, and the model is saved in {out}")
    else:
        return 0
    return _INTERRUPTED
