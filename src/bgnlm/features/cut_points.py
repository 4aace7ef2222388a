"""Cut points of threshold transforms, learnt from the training data: the t of splines in section 2.1."""

import numpy as np
import numpy.typing as npt

from bgnlm._typing import FloatArray
from bgnlm._validation import check_number
from bgnlm.errors import FeatureError, SettingError
from bgnlm.features.checks import not_a_feature
from bgnlm.features.evaluate import Evaluator
from bgnlm.features.nodes import (
    Component,
    Feature,
    Input,
    Modification,
    Multiplication,
    Projection,
    modify,
    multiply,
    project,
)
from bgnlm.features.table import as_column, as_weights

# Beyond this, differences between numbers could overflow.
_HUGE = 1e300


def learn_cut_points(feature: Feature, evaluator: Evaluator, sample_weight: npt.ArrayLike | None = None) -> Feature:
    """Fill in all cut points that are still missing, from the inside out; others stay as they are.

    The cut point is a quantile of the values that go into the transform; `sample_weight` is frequency.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm.features import Evaluator, Input, get_transform, learn_cut_points, modify
    >>> table = Evaluator(np.array([[1.0], [2.0], [9.0]]), ["x"])
    >>> step = learn_cut_points(modify(get_transform("above_median"), Input("x")), table)
    >>> str(step), table.column(step).tolist()
    ('above_median(x, 2.0)', [0.0, 0.0, 1.0])
    """
    if sample_weight is None and not _lacks_cut_points(feature):
        return feature
    return _learnt(feature, evaluator, as_weights(sample_weight, evaluator.n_rows))


def _lacks_cut_points(feature: Feature) -> bool:
    match feature:
        case Input() | Component():
            return False
        case Multiplication(factors=parts):
            return any(map(_lacks_cut_points, parts))
        case Modification(transform=transform, operand=operand, parameters=parameters):
            return (transform.quantile is not None and not parameters) or _lacks_cut_points(operand)
        case Projection(transform=transform, operands=parts, parameters=parameters):
            return (transform.quantile is not None and not parameters) or any(map(_lacks_cut_points, parts))
        case _:
            raise not_a_feature(feature)


def _learnt(feature: Feature, evaluator: Evaluator, weights: FloatArray) -> Feature:
    match feature:
        case Input() | Component():
            return feature
        case Multiplication(factors=factors):
            return multiply(*(_learnt(factor, evaluator, weights) for factor in factors))
        case Modification(transform=transform, operand=operand, parameters=parameters):
            modification = modify(transform, _learnt(operand, evaluator, weights), parameters)
            return _completed(modification, evaluator, weights)
        case Projection(transform=transform, operands=operands, intercept=intercept, parameters=parameters):
            learnt = [_learnt(operand, evaluator, weights) for operand in operands]
            projection = project(transform, learnt, feature.weights, intercept, parameters)
            return _completed(projection, evaluator, weights)
        case _:
            raise not_a_feature(feature)


def _completed(feature: Modification | Projection, evaluator: Evaluator, weights: FloatArray) -> Feature:
    quantile = feature.transform.quantile
    if quantile is None or feature.parameters:
        return feature
    try:
        cut_point = weighted_quantile(evaluator.argument(feature), quantile, weights)
    except FeatureError as error:
        raise FeatureError(f"the cut point of {feature} cannot be learnt: {error}") from error
    if isinstance(feature, Modification):
        return modify(feature.transform, feature.operand, (cut_point,))
    return project(feature.transform, feature.operands, feature.weights, feature.intercept, (cut_point,))


def weighted_quantile(values: npt.ArrayLike, quantile: float, sample_weight: npt.ArrayLike | None = None) -> float:
    """Quantile by linear interpolation, as if each row were repeated as often as its weight says.

    For fractional weights, lay the sorted values side by side, each as long as its weight: the quantile is
    the mean over a window of the length of one row (or of the mean weight, if that is less than one).

    Examples
    --------
    >>> from bgnlm.features import weighted_quantile
    >>> weighted_quantile([1.0, 2.0, 9.0], 0.5), weighted_quantile([1.0, 2.0, 9.0], 0.5, sample_weight=[1, 1, 5])
    (2.0, 9.0)
    """
    if check_number(quantile, "quantile", low=0.0) > 1:
        raise SettingError(f"quantile must be 1 or less, got {quantile}. Use 0.5 for the median.")
    values = as_column(values, "values")
    weights = as_weights(sample_weight, len(values))
    present = weights > 0
    values, weights = values[present], weights[present]
    if len(values) == 0 or not np.isfinite(values).all():
        raise FeatureError("a quantile needs at least one row of positive weight, and finite values in all of them.")
    order = np.argsort(values, kind="stable")
    # A power of two, so that nothing is rounded.
    scale = 4.0 if np.abs(values).max() > _HUGE else 1.0
    return scale * _quantile(values[order] / scale, weights[order], quantile)


def _quantile(values: FloatArray, weights: FloatArray, quantile: float) -> float:
    """Quantile of sorted values with positive weights."""
    ends = np.cumsum(weights)
    window = min(1.0, ends[-1] / len(ends))
    start = (ends[-1] - window) * quantile
    if np.all(weights == np.floor(weights)):
        pair = values[np.searchsorted(ends[:-1], (np.floor(start), np.floor(start) + 1), side="right")]
        return float(np.quantile(pair, start - np.floor(start)))
    begins = np.concatenate(([0.0], ends[:-1]))
    shares = np.minimum(ends, start + window) - np.maximum(begins, start)
    covered = shares > 0
    first = values[np.searchsorted(ends[:-1], start, side="right")]
    # Relative to the first value, so that a single one comes out exactly.
    return float(first + shares[covered] @ (values[covered] - first) / window)
