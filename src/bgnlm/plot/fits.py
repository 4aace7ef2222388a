"""What pictures ask of an estimator: the search they are about, means and draws of the response."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bgnlm._validation import check_count, check_number
from bgnlm.errors import DataError, SettingError
from bgnlm.features import Component, Feature, parse, render
from bgnlm.plot.canvas import shown

if TYPE_CHECKING:
    from bgnlm._typing import AnyArray, FloatArray

_EACH = "Give one response for each row."


class OneSearch(NamedTuple):
    """One search of an estimator, and the class it is about if there are several."""

    posterior: Any
    diagnostics: Any
    average: Any
    title: str
    n_slots: int


def check_model(model: Any) -> Any:
    """Check for a fitted estimator."""
    if not hasattr(model, "coding_") and not hasattr(model, "rescore"):
        raise SettingError(
            f"model must be a fitted BGNLMRegressor or BGNLMClassifier; got {type(model).__name__}. "
            "Of a pipeline give the last step, pipeline[-1]."
        )
    from sklearn.utils.validation import check_is_fitted

    check_is_fitted(model, "searches_")
    return model


def classes_of(model: Any) -> list[Any]:
    """Return the classes of a classifier; none for a regressor."""
    return list(getattr(check_model(model), "classes_", np.empty(0)).tolist())


def one_search(model: Any, target: Any = None) -> OneSearch:
    """Return the search of a class; without `target` the only one, or that of the first class."""
    classes = classes_of(model)
    known = classes[1:] if len(classes) == 2 else classes
    number = 0 if target is None else class_number(known, target)
    found = model.searches_[number]
    words = f"class {shown(str(known[number]))} against the rest" if len(known) > 1 else ""
    return OneSearch(found.posterior, found.diagnostics, found.average, words, found.n_slots)


def class_number(classes: list[Any], target: Any) -> int:
    """Return the place of a class."""
    if target not in classes:
        allowed = ", ".join(map(repr, classes)) if classes else "None, because the response has no classes"
        raise SettingError(f"target must be one of {allowed}; got {target!r}.")
    return classes.index(target)


class Curve(NamedTuple):
    """One mean of a response: that of a number, or the probability of a class, by its column."""

    column: int
    name: str


def curves_of(model: Any, target: Any = None) -> list[Curve]:
    """Return what there is to draw: one mean, or one probability for each class if there are more than two."""
    classes = classes_of(model)
    if not classes:
        if target is not None:
            class_number([], target)
        return [Curve(0, "")]
    if target is None and len(classes) > 2:
        return [Curve(k, shown(str(one))) for k, one in enumerate(classes)]
    number = 1 if target is None else class_number(classes, target)
    return [Curve(number, shown(str(classes[number])))]


def means_of(model: Any, X: Any, offset: Any = None) -> FloatArray:
    """Means at rows: (rows, 1), or probabilities (rows, classes)."""
    if hasattr(model, "predict_proba"):
        return np.asarray(model.predict_proba(X, offset=offset))
    return np.asarray(model.predict(X, offset=offset))[:, None]


def draws_of(model: Any, X: Any, n_draws: int, offset: Any, random_state: Any) -> FloatArray:
    """Draws of the means: (draws, rows, 1), or probabilities (draws, rows, classes)."""
    drawn = np.asarray(model.sample_predictive(X, n_draws=n_draws, of="mean", offset=offset, random_state=random_state))
    return drawn if drawn.ndim == 3 else drawn[:, :, None]


def mean_text(model: Any, curve: Curve) -> str:
    """Name what a curve is the mean of."""
    response = shown(model.response_name_)
    return f"probability of {response} = {curve.name}" if curve.name else f"mean of {response}"


def response_of(model: Any, y: Any, n_rows: int) -> FloatArray:
    """Check the response of a regressor."""
    try:
        values = np.asarray(y, dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise DataError(
            f"y must hold numbers, as {shown(model.response_name_)} did in training. Give that column of the table."
        ) from None
    if len(values) != n_rows:
        raise DataError(f"X and y have inconsistent numbers of rows: {n_rows} and {len(values)}. {_EACH}")
    if not np.isfinite(values).all():
        raise DataError("y must be finite in every row. Leave out rows without a response.")
    return values


def events_of(model: Any, y: Any, n_rows: int) -> AnyArray:
    """Return where each class was observed, (rows, classes); of a regressor of 0 and 1 as of a classifier."""
    classes = classes_of(model)
    if classes:
        labels = np.asarray(y).reshape(-1)
        if len(labels) != n_rows:
            raise DataError(f"X and y have inconsistent numbers of rows: {n_rows} and {len(labels)}. {_EACH}")
        unknown = [one for one in np.unique(labels).tolist() if one not in classes]
        if unknown:
            known = ", ".join(map(repr, classes[:10])) + (", ..." if len(classes) > 10 else "")
            raise DataError(f"y must hold the classes of the training data, {known}; got {unknown[0]!r}.")
        # As objects: texts of a fixed width would be cut.
        return np.asarray(labels.astype(object)[:, None] == np.array(classes, dtype=object), dtype=np.bool_)
    values = response_of(model, y, n_rows)
    if one_search(model).average.family.name != "binomial" or not np.isin(values, (0.0, 1.0)).all():
        raise SettingError(
            "This plot is for classes: a classifier, or a regressor of family 'binomial' with responses 0 and 1. "
            "For other responses use predictions and residuals."
        )
    return np.asarray(values == 1.0)[:, None]


def find_feature(found: OneSearch, feature: int | str | Feature) -> Feature:
    """Return a feature that was found, by its place in `features_`, its text, or itself."""
    every = features_by_probability(found)
    if not every:
        raise SettingError("There are no features: the models found have an intercept alone.")
    if isinstance(feature, int | np.integer):
        if not 0 <= feature < len(every):
            raise SettingError(f"feature must be a place in features_, 0 to {len(every) - 1}; got {feature}.")
        return every[int(feature)]
    texts = {render(one): one for one in every}
    wanted = feature if isinstance(feature, str) else render(feature)
    if wanted in texts:
        return texts[wanted]
    parsed = render(parse(wanted))
    if parsed in texts:
        return texts[parsed]
    close = ", ".join(map(render, every[:5]))
    raise SettingError(f"feature must be one that was found; got {wanted!r}. The most probable ones are: {close}.")


def probable(found: OneSearch, n_features: int, least: float) -> list[tuple[Feature, float]]:
    """Return the most probable features and components: at most so many, of at least this probability, but one."""
    n, low = check_count(n_features, "n_features", low=1), check_number(least, "least", low=0.0, high=1.0)
    both = zip(found.posterior.features, found.posterior.inclusion_probabilities.tolist(), strict=True)
    return [pair for place, pair in enumerate(list(both)[:n]) if place == 0 or pair[1] >= low]


def left_out(found: OneSearch, n_shown: int) -> str:
    """Say which features are not shown."""
    rest = found.posterior.inclusion_probabilities[n_shown:]
    if not len(rest):
        return ""
    return f"{n_shown} of {n_shown + len(rest):,} features; the others are at {rest[0]:.2g} or less"


def features_by_probability(found: OneSearch) -> list[Feature]:
    """Return the features of `features_`, in its order, without latent components."""
    return [feature for feature in found.posterior.features if not isinstance(feature, Component)]
