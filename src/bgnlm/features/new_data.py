"""Features on rows that were not seen in training, where a feature may overflow or not be defined."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
import numpy.typing as npt

from bgnlm._typing import FloatArray
from bgnlm.errors import FeatureError, FeatureRangeWarning
from bgnlm.features.cut_points import weighted_quantile
from bgnlm.features.evaluate import Evaluator
from bgnlm.features.nodes import Feature
from bgnlm.features.table import as_column, as_weights


@dataclass(frozen=True, slots=True)
class TrainingRange:
    """Smallest, largest and middle value of a feature in the training data.

    Examples
    --------
    >>> from bgnlm.features import TrainingRange
    >>> TrainingRange.of([1.0, 2.0, 9.0])
    TrainingRange(minimum=1.0, maximum=9.0, median=2.0)
    """

    minimum: float
    maximum: float
    median: float

    @classmethod
    def of(cls, column: npt.ArrayLike, sample_weight: npt.ArrayLike | None = None) -> Self:
        """Range of a finite column; rows of weight zero do not count."""
        values = as_column(column, "column")
        weights = as_weights(sample_weight, len(values))
        median = weighted_quantile(values, 0.5, weights)
        present = values[weights > 0]
        return cls(float(present.min()), float(present.max()), median)


class NewColumns:
    """Columns of features on new rows, finite throughout, some rows after the other; what was set is told at the end.

    Where a feature is not finite it gets a value seen in training: the maximum for infinity, the minimum for
    minus infinity, the median where it is not defined (NaN). One `FeatureRangeWarning` names all features
    concerned, with the number of rows. Finite values are kept however far they are from the training data.
    """

    def __init__(self, features: Sequence[Feature], ranges: Sequence[TrainingRange]) -> None:
        if len(features) != len(ranges):
            raise FeatureError(f"{len(features)} features need as many training ranges, got {len(ranges)}.")
        self._features, self._ranges = features, ranges
        self._n_bad = np.zeros(len(features), np.int64)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None and self._n_bad.any():
            warnings.warn(self._message(), FeatureRangeWarning, stacklevel=3)

    def evaluate(self, X: npt.ArrayLike, names: Iterable[str] | None = None) -> FloatArray:
        """Evaluate on further rows; `X` and `names` as for `Evaluator`."""
        matrix = Evaluator(X, names).matrix(self._features)
        for j, seen in enumerate(self._ranges):
            n_bad = int(np.count_nonzero(~np.isfinite(matrix[:, j])))
            if n_bad:
                np.nan_to_num(matrix[:, j], copy=False, nan=seen.median, posinf=seen.maximum, neginf=seen.minimum)
                self._n_bad[j] += n_bad
        return matrix

    def _message(self) -> str:
        concerned = [
            f"{self._features[j]} ({n_bad} {'row' if n_bad == 1 else 'rows'})"
            for j, n_bad in enumerate(self._n_bad.tolist())
            if n_bad
        ]
        return (
            "not finite on new data and set to the maximum (inf), minimum (-inf) or median (NaN) of the training "
            f"data: {', '.join(concerned)}. Check these rows for values far outside the training data."
        )


def evaluate_on_new_data(
    features: Sequence[Feature],
    ranges: Sequence[TrainingRange],
    X: npt.ArrayLike,
    names: Iterable[str] | None = None,
) -> FloatArray:
    """Columns of features on new rows, finite throughout, as `NewColumns` has them.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm.features import TrainingRange, evaluate_on_new_data, parse
    >>> inverse = parse("inverse(x)")
    >>> seen = TrainingRange.of([0.1, 0.5, 1.0])
    >>> evaluate_on_new_data([inverse], [seen], np.array([[2.0], [4.0]]), ["x"]).tolist()
    [[0.5], [0.25]]
    """
    with NewColumns(features, ranges) as new:
        return new.evaluate(X, names)
