"""A feature as a function of the weights inside it: values and derivatives, forward through its tree.

The weights of one projection are its intercept and one weight for each operand, for operands that are centred and
scaled by what they are at the start. This way all weights are of one order of magnitude.
"""

from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.errors import FeatureError
from bgnlm.features.cut_points import weighted_quantile
from bgnlm.features.evaluate import Evaluator
from bgnlm.features.measures import additional_weights
from bgnlm.features.nodes import Feature, Input, Modification, Multiplication, Projection, modify, multiply, project
from bgnlm.features.transform import Transform


class Value(NamedTuple):
    """A column, and its derivative in each weight as (weights, rows)."""

    column: FloatArray
    gradient: FloatArray


class WeightFunction:
    """The column of a projection as a function of its weights, or of those of all projections inside it too.

    Parameters
    ----------
    feature
        A projection; its weights are where operands are centred and scaled.
    evaluator
        The data.
    sample_weight
        One for each row.
    every_layer
        Whether weights of projections inside are free; otherwise only those of the outermost one.
    """

    def __init__(
        self, feature: Projection, evaluator: Evaluator, sample_weight: FloatArray, *, every_layer: bool
    ) -> None:
        self._evaluator = evaluator
        self._sample_weight = sample_weight
        self._given = feature
        self._root = _ProjectionNode(self, feature, every_layer=every_layer)
        self.n_weights = self._root.n_weights
        self.is_differentiable = self._root.is_differentiable

    @property
    def start(self) -> FloatArray:
        """The weights that the feature has."""
        return self._root.start

    def value(self, weights: FloatArray) -> FloatArray:
        """Column of the feature with these weights."""
        with np.errstate(all="ignore"):
            return self._root.value(weights)

    def value_and_gradient(self, weights: FloatArray) -> Value:
        """The column, and its derivatives."""
        with np.errstate(all="ignore"):
            return self._root.value_and_gradient(weights)

    def feature(self, weights: FloatArray) -> Projection | None:
        """Return the feature with these weights, rounded, on the scale of its operands; None if it would be another.

        So it would with a weight of 0, or with operands that have become the same.
        """
        try:
            built = self._root.feature(weights)
        except FeatureError:
            return None
        return (
            built
            if isinstance(built, Projection) and additional_weights(built) == additional_weights(self._given)
            else None
        )

    def node(self, feature: Feature, every_layer: bool) -> "_Node":
        """What computes one part of the tree; a part without free weights is a constant."""
        if not (every_layer and additional_weights(feature)):
            return _Constant(feature, self._evaluator.column(feature))
        match feature:
            case Projection():
                return _ProjectionNode(self, feature, every_layer=True)
            case Modification():
                return _ModificationNode(self, feature)
            case Multiplication():
                return _MultiplicationNode(self, feature)
            case Input():
                return _Constant(feature, self._evaluator.column(feature))

    def parameters(self, transform: Transform, argument: FloatArray) -> tuple[float, ...]:
        """Cut point of a threshold transform."""
        if transform.quantile is None:
            return ()
        return (weighted_quantile(argument, transform.quantile, self._sample_weight),)

    def centre_and_scale(self, column: FloatArray) -> tuple[float, float]:
        """Mean and standard deviation of a column."""
        used = self._sample_weight > 0.0  # elsewhere a feature may be anything
        share, values = self._sample_weight[used] / self._sample_weight.sum(), column[used]
        centre = float(share @ values)
        return centre, float(np.sqrt(share @ np.square(values - centre))) or 1.0


def round_weight(value: float) -> float:
    """Eight digits: more are noise, and would make two features of one."""
    return float(f"{value:.8g}")


class _Node(Protocol):
    n_weights: int
    is_differentiable: bool

    @property
    def start(self) -> FloatArray: ...
    def value(self, weights: FloatArray) -> FloatArray: ...
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

    def value(self, _: FloatArray) -> FloatArray:
        return self._value.column

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
        return [child.value(weights[own]) for child, own in zip(self._children, self._slices, strict=True)]

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

    def value(self, weights: FloatArray) -> FloatArray:
        return np.asarray(np.prod(self._values(weights), axis=0))

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
        parameters = self._whole.parameters(self._transform, argument)
        return np.array(self._transform.function(argument, *parameters), dtype=np.float64)

    def _slope(self, argument: FloatArray) -> FloatArray:
        assert self._transform.derivative is not None
        return np.asarray(self._transform.derivative(argument), dtype=np.float64)


class _ModificationNode(_Transformed):
    def __init__(self, whole: WeightFunction, feature: Modification) -> None:
        super().__init__(whole, feature.transform, [whole.node(feature.operand, True)], 0)

    @property
    def start(self) -> FloatArray:
        return self._children[0].start

    def value(self, weights: FloatArray) -> FloatArray:
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
        columns = [child.value(child.start) for child in children]
        self._centres, self._scales = np.array([whole.centre_and_scale(column) for column in columns]).T
        self._given = np.append(feature.intercept, feature.weights)
        # Operands that stay as they are: centred and scaled once.
        self._fixed = np.ones((len(children) + 1, len(columns[0])))
        for k, column in enumerate(columns):
            self._fixed[k + 1] = (column - self._centres[k]) / self._scales[k]
        self._moving = [k for k, child in enumerate(children) if child.n_weights]

    @property
    def start(self) -> FloatArray:
        slopes = self._given[1:] * self._scales
        own = np.append(self._given[0] + self._given[1:] @ self._centres, slopes)
        return np.concatenate([own, *self._starts()])

    def _operands(self, weights: FloatArray) -> tuple[FloatArray, list[Value]]:
        """Centred and scaled operands after a row of ones, and the parts of those that move."""
        if not self._moving:
            return self._fixed, []
        operands, parts = self._fixed.copy(), self._gradients(weights)
        for k in self._moving:
            operands[k + 1] = (parts[k].column - self._centres[k]) / self._scales[k]
        return operands, parts

    def value(self, weights: FloatArray) -> FloatArray:
        own = weights[: len(self._given)]
        if not self._moving:
            return self._transformed(own @ self._fixed)
        operands = self._fixed.copy()
        for k in self._moving:
            moved = self._children[k].value(weights[self._slices[k]])
            operands[k + 1] = (moved - self._centres[k]) / self._scales[k]
        return self._transformed(own @ operands)

    def value_and_gradient(self, weights: FloatArray) -> Value:
        own = weights[: len(self._given)]
        operands, parts = self._operands(weights)
        argument = own @ operands
        rows = [operands, *(own[k + 1] / self._scales[k] * parts[k].gradient for k in self._moving)]
        gradient = self._slope(argument) * (np.vstack(rows) if self._moving else operands)
        return Value(self._transformed(argument), gradient)

    def feature(self, weights: FloatArray) -> Feature:
        slopes = weights[1 : len(self._given)] / self._scales
        intercept = round_weight(weights[0] - slopes @ self._centres)
        return project(self._transform, self._features(weights), map(round_weight, slopes), intercept)
