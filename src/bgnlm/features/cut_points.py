"""Cut points of threshold transforms, learnt from the training data: the t of splines in section 2.1."""

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.errors import FeatureError
from bgnlm.features.evaluate import Evaluator
from bgnlm.features.nodes import (
    Feature,
    Input,
    Modification,
    Multiplication,
    Projection,
    modify,
    multiply,
    project,
)


def learn_cut_points(feature: Feature, evaluator: Evaluator, sample_weight: FloatArray | None = None) -> Feature:
    """Fill in all cut points that are still missing, from the inside out; others stay as they are.

    The cut point is a quantile of the values that go into the transform; `sample_weight` is frequency.
    """
    match feature:
        case Input():
            return feature
        case Multiplication(factors=factors):
            return multiply(*(learn_cut_points(factor, evaluator, sample_weight) for factor in factors))
        case Modification(transform=transform, operand=operand, parameters=parameters):
            learnt_operand = learn_cut_points(operand, evaluator, sample_weight)
            return _completed(modify(transform, learnt_operand, parameters), evaluator, sample_weight)
        case Projection(transform=transform, operands=operands, weights=weights):
            learnt = [learn_cut_points(operand, evaluator, sample_weight) for operand in operands]
            projection = project(transform, learnt, weights, feature.intercept, feature.parameters)
            return _completed(projection, evaluator, sample_weight)


def _completed(feature: Modification | Projection, evaluator: Evaluator, sample_weight: FloatArray | None) -> Feature:
    quantile = feature.transform.quantile
    if quantile is None or feature.parameters:
        return feature
    try:
        cut_point = weighted_quantile(evaluator.argument(feature), quantile, sample_weight)
    except FeatureError as error:
        raise FeatureError(f"the cut point of {feature} cannot be learnt: {error}") from error
    if isinstance(feature, Modification):
        return modify(feature.transform, feature.operand, (cut_point,))
    return project(feature.transform, feature.operands, feature.weights, feature.intercept, (cut_point,))


def weighted_quantile(values: FloatArray, quantile: float, sample_weight: FloatArray | None = None) -> float:
    """Quantile by linear interpolation, as if each row were repeated as often as its weight says.

    For fractional weights, lay the sorted values side by side, each as long as its weight: the quantile is
    the mean over a window of the length of one row (or of the mean weight, if that is less than one).
    """
    weights = np.ones(len(values)) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    present = weights > 0
    values, weights = values[present], weights[present]
    if len(values) == 0 or not np.isfinite(values).all():
        raise FeatureError("a quantile needs at least one row of positive weight, and finite values in all of them.")
    order = np.argsort(values, kind="stable")
    values, ends = values[order], np.cumsum(weights[order])
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
