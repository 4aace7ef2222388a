"""Exports of fitted estimators: what they predict, for other programs."""

from collections.abc import Callable
from typing import Any

from bgnlm._validation import check_choice
from bgnlm.errors import SettingError
from bgnlm.estimators.columns import BooleanColumn, CategoricalColumn, NumericColumn, PositionColumn, coded_names
from bgnlm.estimators.inputs import TableCoding
from bgnlm.report.export.json_document import to_json
from bgnlm.report.export.numpy_source import to_numpy
from bgnlm.report.export.onnx_graph import to_onnx
from bgnlm.report.export.program import Program, SourceColumn, make_program
from bgnlm.report.export.python_source import to_python
from bgnlm.report.export.sql import to_sql
from bgnlm.report.expressions import FORMATS

KINDS = ("python", "numpy", "sql", "json", "onnx", *FORMATS)
OF = ("mean", "linear_predictor")
# Which options each kind has, with their defaults.
_OPTIONS: dict[str, dict[str, Any]] = {
    "python": {"name": "predict"},
    "numpy": {"name": "predict"},
    "sql": {"table": None, "keep": (), "offset": None},
    "json": {"with_uncertainty": False},
    "onnx": {},
    **{kind: {"digits": 6} for kind in FORMATS},
}
_WRITERS: dict[str, Callable[..., Any]] = {
    "python": to_python,
    "numpy": to_numpy,
    "sql": to_sql,
    "json": to_json,
    "onnx": to_onnx,
}


def export_model(estimator: Any, kind: str, using: str, of: str, without_latent: bool, options: dict[str, Any]) -> Any:
    """Write a fitted estimator in another language."""
    check_choice(kind, "kind", KINDS)
    check_choice(of, "of", OF)
    own = _OPTIONS[kind]
    unknown = sorted(set(options) - set(own))
    if unknown:
        has = f"has the options {', '.join(own)}" if own else "has no options"
        raise SettingError(f"The export {kind!r} {has}; got {', '.join(unknown)}.")
    chosen = {**own, **options}
    if kind in FORMATS:
        if of != "mean":
            raise SettingError(f"The export {kind!r} is that of expression(), of the mean; got of={of!r}.")
        return estimator.expression(using=using, format=kind, **chosen)
    _check_options(chosen)
    program = program_of(estimator, using, of, without_latent=without_latent)
    if chosen.get("with_uncertainty") and program.parts[0].source.latent is not None:
        raise SettingError("The uncertainty of models with latent components is not exported; use predict_interval.")
    return _WRITERS[kind](program, **chosen)


def _check_options(options: dict[str, Any]) -> None:
    name = options.get("name", "predict")
    if not isinstance(name, str) or not name.isidentifier():
        raise SettingError(f"name must be that of a Python function; got {name!r}.")
    for key in ("table", "offset"):
        if not isinstance(options.get(key), str | None):
            raise SettingError(f"{key} must be a text or None; got {options[key]!r}.")
    keep = options.get("keep", ())
    if isinstance(keep, str) or not all(isinstance(one, str) for one in keep):
        raise SettingError(f"keep must be a list of names of columns; got {keep!r}.")


def program_of(estimator: Any, using: str, of: str, *, without_latent: bool) -> Program:
    """What an export of an estimator computes."""
    found = estimator._found
    classes = getattr(estimator, "classes_", None)
    names = None if classes is None else tuple(classes.tolist())
    events = [None] if names is None else names[1:] if len(names) == 2 else names
    coding = estimator.coding_
    return make_program(
        [one.models(using) for one in found],
        list(events),
        source_columns(coding),
        has_names=coding.has_names,
        response=estimator.response_name_,
        using=using,
        of=of,
        classes=names,
        has_offset=estimator.has_offset_,
        without_latent=without_latent,
    )


def source_columns(coding: TableCoding) -> tuple[SourceColumn, ...]:
    """The columns of a table as exports know them; positions of latent components are left out."""
    kinds: dict[type, Any] = {NumericColumn: "numeric", BooleanColumn: "boolean", CategoricalColumn: "categorical"}
    return tuple(
        SourceColumn(
            name=one.name,
            place=place,
            kind=kinds[type(one)],
            fill=one.fill,
            reference=getattr(one, "reference", None),
            levels=getattr(one, "levels", ()),
            coded=coded_names(one),
            indicator=one.indicator,
        )
        for place, one in enumerate(coding.columns)
        if not isinstance(one, PositionColumn)
    )
