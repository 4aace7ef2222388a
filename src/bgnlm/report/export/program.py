"""What an export computes: columns of a user's table, standardised features, and the models that are averaged over."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm._validation import LARGEST
from bgnlm.errors import SettingError
from bgnlm.features import Feature, inputs_of
from bgnlm.likelihood.families import FARTHEST
from bgnlm.posterior.average import ModelAverage
from bgnlm.posterior.predict import FARTHEST_OUT
from bgnlm.report.export.bounds import ANY_INPUT, INDICATOR, Bounds
from bgnlm.report.export.graph import Node, apply, column, number, total
from bgnlm.report.export.symbols import expression_of

ColumnKind = Literal["numeric", "boolean", "categorical"]
FARTHEST_INPUT = LARGEST


class SourceColumn(NamedTuple):
    """A column of the user's table and the numbers it is coded as.

    `fill` stands for a missing value; None where these are refused. `levels` are those that have an indicator.
    `coded` are the names of the coded columns: the value itself or one for each level, then `missing` if there is an
    indicator of missing values.
    """

    name: str
    place: int
    kind: ColumnKind
    fill: Any
    reference: str | None
    levels: tuple[str, ...]
    coded: tuple[str, ...]
    indicator: bool

    @property
    def bounds(self) -> dict[str, Bounds]:
        """Bounds of the coded columns."""
        own = ANY_INPUT if self.kind == "numeric" else INDICATOR
        return {name: INDICATOR if name != self.coded[0] or self.levels else own for name in self.coded}


class StandardFeature(NamedTuple):
    """A feature, the values it had in training, and how it is standardised."""

    feature: Feature
    minimum: float
    maximum: float
    median: float
    centre: float
    scale: float


@dataclass(frozen=True, eq=False, kw_only=True)
class Part:
    """Models that are averaged over: of the mean of the response, or of the probability of one class.

    The features of model m are `members[starts[m] : starts[m + 1]]`, places in the features of the program;
    `coefficients` are those of one model after the other, intercept first. `offsets` says how much of the offset a
    model has. `source` are the models as they were, for what is known about their coefficients.
    """

    event: Any
    probabilities: FloatArray
    starts: IntArray
    members: IntArray
    coefficients: FloatArray
    offsets: FloatArray
    source: ModelAverage

    def __len__(self) -> int:
        return len(self.probabilities)

    def model(self, m: int) -> tuple[float, float, list[tuple[int, float]]]:
        """Probability, intercept and terms of a model."""
        first, end = int(self.starts[m]), int(self.starts[m + 1])
        slopes = self.coefficients[first + m + 1 : end + m + 1].tolist()
        terms = list(zip(self.members[first:end].tolist(), slopes, strict=True))
        return float(self.probabilities[m]), float(self.coefficients[first + m]), terms


@dataclass(frozen=True, eq=False, kw_only=True)
class Program:
    """All that an export says.

    `link` is "identity" where the linear predictor is asked for; `classes` are those of a classifier, whose
    probabilities are normalised if there are more than two and the link is not "identity".
    """

    columns: tuple[SourceColumn, ...]
    has_names: bool
    response: str
    family: str
    link: str
    using: str
    of: str
    classes: tuple[Any, ...] | None
    has_offset: bool
    features: tuple[StandardFeature, ...]
    parts: tuple[Part, ...]

    @property
    def bounds(self) -> dict[str, Bounds]:
        """Bounds of the coded columns."""
        return {name: found for one in self.columns for name, found in one.bounds.items()}

    @property
    def used_columns(self) -> tuple[SourceColumn, ...]:
        """Columns that the features are made of."""
        used = {name for one in self.features for name in inputs_of(one.feature)}
        return tuple(one for one in self.columns if used.intersection(one.coded))

    def standardised(self) -> list[Node]:
        """Expressions of the features, finite and standardised."""
        bounds = self.bounds
        return [_standardised(one, expression_of(one.feature, bounds)) for one in self.features]

    @property
    def has_shares(self) -> bool:
        """Whether there are probabilities of several classes, to be normalised."""
        return self.classes is not None and self.of == "mean"


def _standardised(feature: StandardFeature, value: Node) -> Node:
    value = apply("finite", value, feature.minimum, feature.maximum, feature.median)
    return clip((value - feature.centre) / feature.scale, FARTHEST_OUT)


def clip(value: Node, limit: float) -> Node:
    """Keep a value within limits."""
    return apply("clip", value, -limit, limit)


def inverse_link(link: str, eta: Node) -> Node:
    """Mean of the response for a linear predictor."""
    match link:
        case "identity":
            return eta
        case "logit":
            return 1.0 / (1.0 + apply("exp", -eta))
        case "probit":
            return 0.5 * apply("erfc", eta * -math.sqrt(0.5))
        case "cloglog":
            return -apply("expm1", -apply("exp", clip(eta, FARTHEST)))
        case _:
            return apply("exp", clip(eta, FARTHEST))


def linear_predictor(part: Part, m: int, columns: Sequence[Node], offset: Node | None) -> Node:
    """Linear predictor of one model, given its standardised columns."""
    _, intercept, terms = part.model(m)
    pieces = [number(intercept), *(coefficient * columns[j] for j, coefficient in terms)]
    if offset is not None and part.offsets[m]:
        pieces.append(offset * float(part.offsets[m]) if part.offsets[m] != 1.0 else offset)
    return total(pieces)


OFFSET = column("\0offset")
"""The offset of a row, among columns with names that are not empty and have no such character."""


def output_names(program: Program) -> list[str]:
    """Names of the columns of predictions."""
    if program.classes is None or (program.of != "mean" and len(program.parts) == 1):
        return ["prediction"]
    word = "probability" if program.of == "mean" else "prediction"
    return [f"{word}_{one}" for one in program.classes]


def free_prefix(names: Sequence[str]) -> str:
    """How none of the names begins."""
    prefix = "bgnlm_"
    while any(name.lower().startswith(prefix) for name in names):
        prefix += "_"
    return prefix


def free_name(name: str, names: Sequence[str]) -> str:
    """A name that is none of the names."""
    while name in names:
        name += "_"
    return name


def make_program(
    averages: Sequence[ModelAverage],
    events: Sequence[Any],
    columns: tuple[SourceColumn, ...],
    *,
    has_names: bool,
    response: str,
    using: str,
    of: str,
    classes: tuple[Any, ...] | None,
    has_offset: bool,
    without_latent: bool,
) -> Program:
    """Collect the models of one or several searches; features that they share are there once."""
    if any(average.latent is not None for average in averages) and not without_latent:
        raise SettingError(
            "This model has latent components, whose effects depend on all training positions and are not exported. "
            "without_latent=True exports the part of the features: what is predicted for groups not seen in training, "
            "and far from the training positions."
        )
    places: dict[StandardFeature, int] = {}
    collapse = of == "linear_predictor" or averages[0].family.link == "identity"
    parts = []
    for average, event in zip(averages, events, strict=True):
        part = _part(average, event, places)
        parts.append(_collapsed(part) if collapse else part)
    kept, parts = _used(list(places), parts)
    return Program(
        columns=columns,
        has_names=has_names,
        response=response,
        family=averages[0].family.name,
        link="identity" if of == "linear_predictor" else averages[0].family.link,
        using=using,
        of=of,
        classes=classes,
        has_offset=has_offset,
        features=kept,
        parts=tuple(parts),
    )


def _part(average: ModelAverage, event: Any, places: dict[StandardFeature, int]) -> Part:
    each = zip(average.features, average.ranges, average.centres.tolist(), average.scales.tolist(), strict=True)
    here = [
        places.setdefault(StandardFeature(f, r.minimum, r.maximum, r.median, c, s), len(places)) for f, r, c, s in each
    ]
    members = np.array(here, np.int64)[average.members] if here else average.members
    return Part(
        event=event,
        probabilities=average.probabilities,
        starts=average.starts,
        members=members,
        coefficients=average.coefficients,
        offsets=_offsets(average),
        source=average,
    )


def _offsets(average: ModelAverage) -> FloatArray:
    """1 for models with the offset, 0 for those without, where it can be chosen."""
    latent = average.latent
    if latent is None or not latent.models.selects_offset:
        return np.ones(len(average))
    number_of_offset = len(latent.models.placed)
    return np.array([float(number_of_offset in entry.components) for entry in latent.entries])


def _collapsed(part: Part) -> Part:
    """One model whose coefficients are the averages: for a linear mean that is the same."""
    slopes: dict[int, float] = {}
    intercept = 0.0
    for m in range(len(part)):
        probability, constant, terms = part.model(m)
        intercept += probability * constant
        for j, coefficient in terms:
            slopes[j] = slopes.get(j, 0.0) + probability * coefficient
    members = sorted(slopes)
    return replace(
        part,
        probabilities=np.ones(1),
        starts=np.array([0, len(members)]),
        members=np.array(members, np.int64),
        coefficients=np.array([intercept, *(slopes[j] for j in members)]),
        offsets=np.array([part.probabilities @ part.offsets]),
    )


def _used(features: list[StandardFeature], parts: list[Part]) -> tuple[tuple[StandardFeature, ...], list[Part]]:
    """Leave out features that no model has, and number the others anew."""
    used = sorted({int(j) for part in parts for j in part.members})
    place = np.zeros(len(features) + 1, np.int64)
    place[used] = np.arange(len(used))
    return tuple(features[j] for j in used), [replace(part, members=place[part.members]) for part in parts]
