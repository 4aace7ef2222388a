"""A feature as a function of the weights inside it: values and derivatives, forward through its tree.

The weights of one projection are its intercept and one weight for each operand, for operands that are standardised:
centred, and of standard deviation 1 whatever the weights inside them are. This way all weights are of one order of
magnitude, and a prior on them means the same in every layer.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import accumulate, pairwise
from typing import Any, NamedTuple, Protocol

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.errors import FeatureError
from bgnlm.features.cut_points import weighted_quantile
from bgnlm.features.evaluate import Evaluator
from bgnlm.features.measures import weight_count
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
from bgnlm.features.transform import Transform

_CONSTANT = 1e-13  # standard deviation of a column that does not vary, for one unit of its mean


class Value(NamedTuple):
    """A column, and its derivative in each weight as (weights, rows)."""

    column: FloatArray
    gradient: FloatArray


class WeightFunction:
    """The column of a projection as a function of its weights, or of those of all projections inside it too.

    Parameters
    ----------
    feature
        A feature with projections in it.
    evaluator
        The data.
    sample_weight
        One for each row.
    every_layer
        Whether weights of projections inside are free; otherwise only those of the outermost one, which then must be
        the last operation.
    """

    def __init__(self, feature: Feature, evaluator: Evaluator, sample_weight: FloatArray, *, every_layer: bool) -> None:
        self._evaluator = evaluator
        self._sample_weight = sample_weight
        positive = sample_weight > 0.0  # elsewhere a feature may be anything
        self._used: Any = slice(None) if positive.all() else positive
        self._share = sample_weight[self._used] / sample_weight.sum()
        self._given = feature
        self._root: _Node
        if isinstance(feature, Projection):
            self._root = _ProjectionNode(self, feature, every_layer=every_layer)
        else:
            self._root = self.node(feature, every_layer)
        self.n_weights = self._root.n_weights
        self.is_differentiable = self._root.is_differentiable

    @property
    def start(self) -> FloatArray:
        """The weights that the feature has."""
        return self._root.start

    def value(self, weights: FloatArray) -> FloatArray:
        """Column of the feature with these weights."""
        return np.asarray(self.values(weights[None, :])[0])

    def values(self, weights: FloatArray) -> FloatArray:
        """Columns of the feature, as (draws, rows), for weights as (draws, weights)."""
        with np.errstate(all="ignore"):
            return self._root.values(weights)

    def used(self, columns: FloatArray) -> FloatArray:
        """Rows that count; they are the last axis."""
        return np.asarray(columns[..., self._used])

    def value_and_gradient(self, weights: FloatArray) -> Value:
        """The column, and its derivatives."""
        with np.errstate(all="ignore"):
            return self._root.value_and_gradient(weights)

    def feature(self, weights: FloatArray) -> Feature | None:
        """Return the feature with these weights, rounded, on the scale of its operands; None if it would be another.

        So it would with a weight of 0, or with operands that have become the same.
        """
        try:
            built = self._root.feature(weights)
        except FeatureError:
            return None
        same = type(built) is type(self._given) and weight_count(built) == weight_count(self._given)
        return built if same else None

    def node(self, feature: Feature, every_layer: bool) -> "_Node":
        """What computes one part of the tree; a part without free weights is a constant."""
        if not (every_layer and weight_count(feature)):
            return _Constant(feature, self._evaluator.column(feature))
        match feature:
            case Projection():
                return _ProjectionNode(self, feature, every_layer=True)
            case Modification():
                return _ModificationNode(self, feature)
            case Multiplication():
                return _MultiplicationNode(self, feature)
            case Input() | Component():
                return _Constant(feature, self._evaluator.column(feature))

    def cut(self, transform: Transform, arguments: FloatArray) -> FloatArray:
        """Values of a threshold transform, whose cut point is a quantile of each argument."""
        if arguments.ndim > 1:
            return np.array([self.cut(transform, argument) for argument in arguments])
        cut_point = weighted_quantile(arguments, transform.quantile or 0.0, self._sample_weight)
        return np.asarray(transform.function(arguments, cut_point), dtype=np.float64)

    def mean(self, columns: FloatArray) -> FloatArray:
        """Mean of each column; columns are the last axis."""
        return np.asarray(self.used(columns) @ self._share)

    def centre_and_scale(self, columns: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Mean and standard deviation of each column; 1 in place of 0, or of what rounding leaves of it."""
        centre = self.mean(columns)
        with np.errstate(over="ignore", invalid="ignore"):  # of columns that are too large, which is noticed elsewhere
            scale = np.sqrt(self.mean(np.square(columns - centre[..., None])))
        return centre, np.where(scale > _CONSTANT * np.abs(centre), scale, 1.0)


def round_weight(value: float) -> float:
    """Eight digits: more are noise, and would make two features of one."""
    return float(f"{value:.8g}")


class _Node(Protocol):
    n_weights: int
    is_differentiable: bool

    @property
    def start(self) -> FloatArray: ...
    def values(self, weights: FloatArray) -> FloatArray: ...
    def value_and_gradient(self, weights: FloatArray) -> Value: ...
    def feature(self, weights: FloatArray) -> Feature: ...


class _Constant:
    """A part without free weights."""

    n_weights = 0
    is_differentiable = True

    def __init__(self, feature: Feature, column: FloatArray) -> None:
        self._feature = feature
        self._value = Value(column, np.empty((0, len(column))))

    @property
    def start(self) -> FloatArray:
        return np.empty(0)

    def values(self, _: FloatArray) -> FloatArray:
        return self._value.column[None, :]

    def value_and_gradient(self, _: FloatArray) -> Value:
        return self._value

    def feature(self, _: FloatArray) -> Feature:
        return self._feature


class _Inner:
    """A part that has parts with free weights; these come one after the other."""

    def __init__(self, children: Sequence[_Node], n_own: int) -> None:
        self._children = children
        ends = list(accumulate((child.n_weights for child in children), initial=n_own))
        self._slices = [slice(low, high) for low, high in pairwise(ends)]
        self.n_weights = ends[-1]

    def _values(self, weights: FloatArray) -> list[FloatArray]:
        return [child.values(weights[:, own]) for child, own in zip(self._children, self._slices, strict=True)]

    def _gradients(self, weights: FloatArray) -> list[Value]:
        return [child.value_and_gradient(weights[own]) for child, own in zip(self._children, self._slices, strict=True)]

    def _features(self, weights: FloatArray) -> list[Feature]:
        return [child.feature(weights[own]) for child, own in zip(self._children, self._slices, strict=True)]

    def _starts(self) -> list[FloatArray]:
        return [child.start for child in self._children]


class _MultiplicationNode(_Inner):
    def __init__(self, whole: WeightFunction, feature: Multiplication) -> None:
        super().__init__([whole.node(factor, True) for factor in feature.factors], 0)
        self.is_differentiable = all(child.is_differentiable for child in self._children)

    @property
    def start(self) -> FloatArray:
        return np.concatenate(self._starts())

    def values(self, weights: FloatArray) -> FloatArray:
        return reduce(np.multiply, self._values(weights))

    def value_and_gradient(self, weights: FloatArray) -> Value:
        parts = self._gradients(weights)
        columns = [part.column for part in parts]
        rows = [
            np.prod(columns[:k] + columns[k + 1 :], axis=0) * part.gradient
            for k, part in enumerate(parts)
            if len(part.gradient)
        ]
        return Value(np.prod(columns, axis=0), np.vstack(rows))

    def feature(self, weights: FloatArray) -> Feature:
        return multiply(*self._features(weights))


class _Transformed(_Inner):
    """What a transform is applied to has free weights."""

    def __init__(self, whole: WeightFunction, transform: Transform, children: Sequence[_Node], n_own: int) -> None:
        super().__init__(children, n_own)
        self._whole = whole
        self._transform = transform
        # A cut point moves with the weights in jumps.
        smooth = transform.derivative is not None and transform.quantile is None
        self.is_differentiable = smooth and all(child.is_differentiable for child in children)

    def _transformed(self, argument: FloatArray) -> FloatArray:
        if self._transform.quantile is not None:
            return self._whole.cut(self._transform, argument)
        # Functions take one column, of any length.
        return self._applied(self._transform.function, argument.ravel()).reshape(argument.shape)

    def _slope(self, argument: FloatArray) -> FloatArray:
        assert self._transform.derivative is not None
        return self._applied(self._transform.derivative, argument)

    def _applied(self, function: Callable[..., Any], argument: FloatArray) -> FloatArray:
        try:
            return np.array(np.broadcast_to(function(argument), argument.shape), dtype=np.float64)
        except Exception as error:
            raise FeatureError(
                f"transform {self._transform.name} failed: {error}. Its function and its derivative must take a float "
                "array (which they must not change) and return one number for each element."
            ) from error


class _ModificationNode(_Transformed):
    def __init__(self, whole: WeightFunction, feature: Modification) -> None:
        super().__init__(whole, feature.transform, [whole.node(feature.operand, True)], 0)

    @property
    def start(self) -> FloatArray:
        return self._children[0].start

    def values(self, weights: FloatArray) -> FloatArray:
        return self._transformed(self._values(weights)[0])

    def value_and_gradient(self, weights: FloatArray) -> Value:
        (part,) = self._gradients(weights)
        return Value(self._transformed(part.column), self._slope(part.column) * part.gradient)

    def feature(self, weights: FloatArray) -> Feature:
        return modify(self._transform, self._features(weights)[0])


class _ProjectionNode(_Transformed):
    def __init__(self, whole: WeightFunction, feature: Projection, *, every_layer: bool) -> None:
        children = [whole.node(operand, every_layer) for operand in feature.operands]
        super().__init__(whole, feature.transform, children, 1 + len(children))
        self._given = np.append(feature.intercept, feature.weights)
        self._moving = [k for k, child in enumerate(children) if child.n_weights]
        # Operands that stay as they are, standardised, after a row of ones.
        columns = np.array([child.values(child.start[None, :])[0] for child in children])
        self._centres, self._scales = whole.centre_and_scale(columns)
        self._fixed = np.vstack([np.ones(columns.shape[1]), (columns - self._centres[:, None]) / self._scales[:, None]])
        self._fixed[[k + 1 for k in self._moving]] = 0.0

    @property
    def start(self) -> FloatArray:
        slopes = self._given[1:] * self._scales
        own = np.append(self._given[0] + self._given[1:] @ self._centres, slopes)
        return np.concatenate([own, *self._starts()])

    def values(self, weights: FloatArray) -> FloatArray:
        own = weights[:, : len(self._given)]
        argument = own @ self._fixed
        for k in self._moving:
            columns = self._children[k].values(weights[:, self._slices[k]])
            centres, scales = self._whole.centre_and_scale(columns)
            argument += (own[:, k + 1] / scales)[:, None] * (columns - centres[:, None])
        return self._transformed(argument)

    def value_and_gradient(self, weights: FloatArray) -> Value:
        own = weights[: len(self._given)]
        if not self._moving:
            argument = own @ self._fixed
            return Value(self._transformed(argument), self._slope(argument) * self._fixed)
        operands, inner = self._fixed.copy(), []
        for k in self._moving:
            column, gradient = self._children[k].value_and_gradient(weights[self._slices[k]])
            centre, scale = self._whole.centre_and_scale(column)
            operands[k + 1] = unit = (column - centre) / scale
            # Centre and scale move with the weights.
            along = self._whole.mean(unit * gradient)[:, None] * unit
            inner.append(own[k + 1] / scale * (gradient - self._whole.mean(gradient)[:, None] - along))
        argument = own @ operands
        return Value(self._transformed(argument), self._slope(argument) * np.vstack([operands, *inner]))

    def feature(self, weights: FloatArray) -> Feature:
        centres, scales = self._centres.copy(), self._scales.copy()
        for k in self._moving:
            column = self._children[k].values(weights[None, self._slices[k]])[0]
            centres[k], scales[k] = self._whole.centre_and_scale(column)
        slopes = weights[1 : len(self._given)] / scales
        intercept = round_weight(weights[0] - slopes @ centres)
        return project(self._transform, self._features(weights), map(round_weight, slopes), intercept)
