"""Exports of fitted estimators: what they predict, for other programs."""

from collections.abc import Callable
from typing import Any

from sklearn.utils.validation import check_is_fitted

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


class ExportsMixin:
    """What estimators give to other programs."""

    def export(
        self, kind: str, using: str = "average", of: str = "mean", *, without_latent: bool = False, **options: Any
    ) -> Any:
        """Write what `predict` computes, or for a classifier `predict_proba`, for other programs.

        The export takes the columns of the training data as they were given: categories, Booleans and missing values
        are coded as in `predict`. Values that `predict` refuses are refused: by an error in Python and NumPy, as NULL
        in SQL and NaN in ONNX.

        Parameters
        ----------
        kind
            "python", a module with a function of a row that needs the standard library alone; "numpy", the same for
            whole columns; "sql", an expression or a query; "json", a document for other languages; "onnx" (needs the
            extra ``onnx``); "text", "latex" or "sympy", the formulas of `expression`.
        using
            "average" over models, as `predict` does; "best", the most probable model; "median", the median
            probability model.
        of
            "mean" of the response, for a classifier the probability of each class; or "linear_predictor", averaged
            over models.
        without_latent
            Whether to leave out latent components, which are not exported.
        **options
            "python" and "numpy": `name` of the function. "sql": `table`, for a query over this table in place of an
            expression; `keep`, names of columns that the query returns too; `offset`, the column of the offset.
            "json": `with_uncertainty`, whether covariances of coefficients are there, for intervals. Formulas:
            `digits`.

        Returns
        -------
        str or bytes
            Bytes for ONNX; for "sympy" an expression.

        Examples
        --------
        >>> import bgnlm, numpy as np
        >>> X = np.arange(20.0).reshape(10, 2) ** 0.5
        >>> quick = bgnlm.SearchConfig(n_populations=2, population_size=4)
        >>> model = bgnlm.BGNLMRegressor(search=quick, n_chains=1, random_state=1).fit(X, X[:, 0] ** 2 + X[:, 1])
        >>> names = {}
        >>> exec(model.export("python"), names)
        >>> bool(abs(names["predict"](X[3]) - model.predict(X)[3]) < 1e-12)
        True
        """
        check_is_fitted(self, "searches_")
        return export_model(self, kind, using, of, without_latent, options)

    def to_arviz(
        self,
        X: Any = None,
        y: Any = None,
        *,
        n_draws: int = 1000,
        n_chains: int = 4,
        using: str = "average",
        offset: Any = None,
        random_state: Any = None,
    ) -> Any:
        """Draw from the posterior into the container of ArviZ: InferenceData, since its version 1 a DataTree.

        Needs the extra ``arviz``. The group "posterior" has the number of the drawn model (in the order of
        `models_`; of entries with weights or hyperparameters of their own where these are averaged over), which
        features it has ("inclusion"), their coefficients on the scale of the features (0 for those it lacks; not with
        latent components), the intercept, and "sigma", "shape" or "size" where the family has one. Draws are
        independent: chains are there because ArviZ counts them.

        Parameters
        ----------
        X
            Rows for "posterior_predictive": responses drawn with the same models and coefficients; for a classifier
            the numbers of classes in `classes_`.
        y
            The response at these rows, for "observed_data".
        n_draws, n_chains
            How many draws there are in each chain, and how many chains.
        using
            "average" over models, "best" or "median".
        offset
            Known part of the linear predictor of the rows.
        random_state
            Seed or generator.
        """
        from bgnlm.estimators.arviz_draws import to_arviz

        check_is_fitted(self, "searches_")
        return to_arviz(self, X, y, n_draws, n_chains, using, offset, random_state)


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
