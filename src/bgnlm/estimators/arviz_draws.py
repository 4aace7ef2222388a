"""Posterior draws of a fitted estimator in the container of ArviZ."""

import warnings
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bgnlm._typing import AnyArray, FloatArray, IntArray
from bgnlm._validation import check_choice, check_count
from bgnlm.errors import DataError, MissingExtraError
from bgnlm.estimators.base import check_target, generator
from bgnlm.estimators.fitted import USING
from bgnlm.features import Component, render
from bgnlm.posterior.average import ModelAverage
from bgnlm.posterior.predict import Draws, Rows, draw_coefficients, draw_models, draw_predictive


class _Part(NamedTuple):
    """Draws of one search."""

    average: ModelAverage
    drawn: Draws


def to_arviz(
    estimator: Any, X: Any, y: Any, n_draws: int, n_chains: int, using: str, offset: Any, random_state: Any
) -> Any:
    """Draw from the posterior, and from the posterior predictive distribution if there are rows."""
    check_choice(using, "using", USING)
    shape = (check_count(n_chains, "n_chains", low=1), check_count(n_draws, "n_draws", low=1))
    if X is None and y is not None:
        raise DataError("y is there to be compared with predictions; give the table X too.")
    az, xarray = _modules()
    rng = generator(random_state)
    parts = [_draw(rng, found.models(using), shape[0] * shape[1]) for found in estimator._found]
    events = None if len(parts) == 1 else estimator.classes_.tolist()
    groups = {"posterior": _posterior(xarray, parts, shape, events)}
    if X is not None:
        rows = estimator._rows(X, offset)
        name = _variable_name(estimator.response_name_)
        values = _predictive(rng, estimator, parts, rows)
        groups["posterior_predictive"] = _by_row(xarray, name, values.reshape(*shape, -1), ("chain", "draw"))
        if y is not None:
            groups["observed_data"] = _by_row(xarray, name, _observed(estimator, y, len(rows.X)), ())
    for group in groups.values():
        group.attrs.update(_attributes())
    return _container(az, xarray, groups)


def _container(az: Any, xarray: Any, groups: dict[str, Any]) -> Any:
    """Put groups together: since version 1 the container of ArviZ is the tree of xarray."""
    is_tree = int(az.__version__.partition(".")[0]) >= 1  # the name InferenceData is still there, with a warning
    return xarray.DataTree.from_dict(groups) if is_tree else az.InferenceData(**groups)


def _modules() -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of what its next version changes
            import arviz
            import xarray
    except ImportError as error:
        raise MissingExtraError(
            f"to_arviz needs ArviZ, which could not be imported ({error}). Run: pip install 'bgnlm[arviz]'"
        ) from error
    return arviz, xarray


def _draw(rng: np.random.Generator, average: ModelAverage, n_draws: int) -> _Part:
    models = draw_models(rng, average, n_draws)
    if average.latent is None:
        return _Part(average, draw_coefficients(rng, average, models))
    return _Part(average, Draws(models, np.empty((n_draws, 0)), np.sqrt(average.dispersions[models])))


def _posterior(xarray: Any, parts: Sequence[_Part], shape: tuple[int, int], events: list[Any] | None) -> Any:
    names = list(dict.fromkeys(name for part in parts for name in _names(part.average)))
    each = [_variables(part, names) for part in parts]
    coords = {"chain": np.arange(shape[0]), "draw": np.arange(shape[1]), "feature": names}
    variables = {}
    for key in each[0]:
        values = [one[key] for one in each]
        array = values[0] if events is None else np.stack(values, axis=1)
        dims = ["chain", "draw"] + ([] if events is None else ["class"]) + (["feature"] if key in _BY_FEATURE else [])
        variables[key] = (dims, array.reshape(*shape, *array.shape[1:]))
    return xarray.Dataset(variables, coords if events is None else {**coords, "class": events})


_BY_FEATURE = ("inclusion", "coefficient")


def _names(average: ModelAverage) -> list[str]:
    """Features, and latent components, by the names they are listed under."""
    components = [] if average.latent is None else [str(Component(one)) for one in average.latent.models.names]
    return [*dict.fromkeys(render(feature) for feature in average.known_as), *components]


def _variables(part: _Part, names: list[str]) -> dict[str, AnyArray]:
    """Number of the model, which features it has, their coefficients (0 for others), intercept and dispersion."""
    average, drawn = part
    place = {name: j for j, name in enumerate(names)}
    listed = np.array([place[render(feature)] for feature in average.known_as], np.int64)
    inclusion = np.zeros((len(drawn.models), len(names)), np.int64)
    for m in np.unique(drawn.models).tolist():
        has = [*listed[average.members_of(m)].tolist(), *(place[one] for one in average.components_of(m))]
        inclusion[np.ix_(drawn.models == m, has)] = 1
    found: dict[str, AnyArray] = {"model": drawn.models, "inclusion": inclusion}
    if average.latent is None:
        found["intercept"], found["coefficient"] = _coefficients(average, drawn.coefficients, listed, len(names))
    if average.family.name == "gaussian":
        found["sigma"] = drawn.noise
    elif average.family.has_dispersion:
        found["shape" if average.family.name == "gamma" else "size"] = average.dispersions[drawn.models]
    return found


def _coefficients(
    average: ModelAverage, drawn: FloatArray, listed: IntArray, n_names: int
) -> tuple[FloatArray, FloatArray]:
    """Intercepts and slopes on the scale of the features; draws of a feature's weights are listed as one."""
    slopes = drawn[:, 1:] / average.scales
    by_name = np.zeros((len(drawn), n_names))
    for j, where in enumerate(listed.tolist()):
        by_name[:, where] += slopes[:, j]
    return drawn[:, 0] - slopes @ average.centres, by_name


def _predictive(rng: np.random.Generator, estimator: Any, parts: Sequence[_Part], rows: Rows) -> AnyArray:
    """Responses; for classes their numbers in `classes_`."""
    of = "mean" if hasattr(estimator, "classes_") else "response"
    each = [draw_predictive(rng, part.average, rows, len(part.drawn.models), of, part.drawn) for part in parts]
    return each[0] if of == "response" else estimator._drawn_classes(rng, each)


def _observed(estimator: Any, y: Any, n_rows: int) -> AnyArray:
    values = check_target(y, n_rows)
    if not hasattr(estimator, "classes_"):
        return np.asarray(values, dtype=np.float64)
    unknown = ~np.isin(values, estimator.classes_)
    if unknown.any():
        raise DataError(f"y must have the classes of the training data; got {values[unknown][0]!r}.")
    return np.searchsorted(estimator.classes_, values)


def _variable_name(response: str) -> str:
    """The response as a variable: a slash would be a path in the container, and dimensions have names too."""
    name = response.replace("/", "_")
    return f"{name}_" if name in ("chain", "draw", "row") else name


def _by_row(xarray: Any, name: str, values: AnyArray, dims: tuple[str, ...]) -> Any:
    coords = {dim: np.arange(n) for dim, n in zip((*dims, "row"), values.shape, strict=True)}
    return xarray.Dataset({name: ([*dims, "row"], values)}, coords)


def _attributes() -> dict[str, str]:
    from bgnlm._version import __version__

    return {"inference_library": "bgnlm", "inference_library_version": __version__}
