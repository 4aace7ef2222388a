"""How new features are made from those of the population and the inputs (sections 2.1 and 3.2)."""

from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Generic, TypeVar

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.errors import FeatureError
from bgnlm.features import (
    Component,
    Evaluator,
    Feature,
    Input,
    Modification,
    Multiplication,
    Projection,
    Transform,
    depth,
    local_width,
    modify,
    multiply,
    operation_count,
)
from bgnlm.likelihood.marginal import Likelihood
from bgnlm.search.classes import has_slope_at_zero
from bgnlm.search.config import Limits, MoveProbabilities
from bgnlm.search.problem import SearchProblem
from bgnlm.search.weights import WeightSetter

FROM_POPULATION = 0.9  # share of parents that come from the population, if it has any
_LEAST_WEIGHT = 5e-2
_CANDIDATES_FROM_POPULATION = 0.8
_LEAST_CANDIDATE_WEIGHT = 0.2
_WIDER = 0.5  # probability that a projection takes one operand more
_SHORTER = 0.3  # probability that a projection is made from another one by leaving an operand out
_ATTEMPTS = 5  # to draw an operand that is not there yet

T = TypeVar("T")
MakeProjection = Callable[[Transform, Sequence[Feature]], Feature | None]


class Urn(Generic[T]):
    """Draws things by their weights."""

    def __init__(self, things: Sequence[T], weights: Sequence[float]) -> None:
        self.things = things
        self._cumulative = list(accumulate(weights))

    def draw(self, rng: np.random.Generator) -> int:
        """Return the place of one thing."""
        place = bisect_right(self._cumulative, rng.random() * self._cumulative[-1])
        return min(place, len(self.things) - 1)


def operands_of(feature: Feature) -> tuple[Feature, ...]:
    """What the last operation was applied to."""
    match feature:
        case Input() | Component():
            return ()
        case Modification(operand=operand):
            return (operand,)
        case Multiplication(factors=parts) | Projection(operands=parts):
            return parts


def _n_operands(feature: Feature) -> int:
    """Number of operands of all projections in a feature."""
    own = len(feature.operands) if isinstance(feature, Projection) else 0
    return own + sum(map(_n_operands, operands_of(feature)))


def _places_to_shorten(feature: Feature) -> int:
    """How many operands there are to leave out such that a projection is still one."""
    n_operands = _n_operands(feature)
    is_shortest = isinstance(feature, Projection) and len(feature.operands) == 2 and n_operands == 2
    return 0 if is_shortest else n_operands


class Generator:
    """Makes random features within limits."""

    def __init__(
        self,
        inputs: Sequence[Input],
        transforms: Sequence[Transform],
        transform_weights: Sequence[float] | None,
        moves: MoveProbabilities,
        limits: Limits,
        make_projection: MakeProjection,
        binary: frozenset[Feature] = frozenset(),
        canonical: Callable[[Feature], Feature] = lambda feature: feature,
    ) -> None:
        equal = [1.0] * len(transforms)
        self._inputs = inputs
        self._binary = binary
        weights = equal if transform_weights is None else transform_weights
        self._transforms = Urn(transforms, weights) if transforms else None
        fitted = [(g, w) for g, w in zip(transforms, weights, strict=True) if w > 0.0 and has_slope_at_zero(g)]
        self._to_fit = Urn([g for g, _ in fitted], [w for _, w in fitted]) if fitted else None
        self._limits = limits
        self._make_projection = make_projection
        self.canonical = canonical
        possible = {
            self._new_input: moves.new_input,
            self._modification: moves.modification if transforms else 0.0,
            self._multiplication: moves.multiplication,
            self._projection: moves.projection if transforms and limits.max_width > 1 else 0.0,
        }
        if limits.max_depth == 0 or not sum(possible.values()):
            possible = {self._new_input: 1.0}
        self.makes_projections = possible.get(self._projection, 0.0) > 0.0
        self._moves = list(possible)
        self._move_urn = list(accumulate(possible.values()))

    def parents(self, features: Sequence[Feature], probabilities: FloatArray) -> Urn[Feature]:
        """S_t and F_0 with the weights by which they become parents."""
        return self._urn(features, probabilities + _LEAST_WEIGHT, FROM_POPULATION)

    def candidate_parents(self, features: Sequence[Feature], probabilities: FloatArray) -> Urn[Feature]:
        """The same for candidates to be ranked: what the features are made of takes part, the weights are flatter."""
        parts = list(dict.fromkeys(self.canonical(part) for feature in features for part in operands_of(feature)))
        weights = np.append(probabilities, np.zeros(len(parts))) + _LEAST_CANDIDATE_WEIGHT
        return self._urn([*features, *parts], weights, _CANDIDATES_FROM_POPULATION)

    def _urn(self, features: Sequence[Feature], weights: FloatArray, share: float) -> Urn[Feature]:
        of_features = share * weights / weights.sum() if len(features) else np.empty(0)
        of_inputs = np.full(len(self._inputs), (1.0 - of_features.sum()) / len(self._inputs))
        return Urn([*features, *self._inputs], np.append(of_features, of_inputs).tolist())

    def draw(self, rng: np.random.Generator, parents: Urn[Feature]) -> Feature | None:
        """Make a feature by one operation; None if it came to nothing."""
        move = self._moves[bisect_right(self._move_urn, rng.random() * self._move_urn[-1])]
        try:
            feature = move(rng, parents)
        except FeatureError:  # too large to be of any use
            return None
        return feature if feature is not None and self.allows(feature) else None

    def extend(self, rng: np.random.Generator, feature: Feature, parents: Urn[Feature]) -> Feature | None:
        """Apply one operation more to a feature; None if it came to nothing."""
        move = self._moves[bisect_right(self._move_urn, rng.random() * self._move_urn[-1])]
        try:
            if move == self._modification:
                made: Feature | None = modify(self._transform(rng), feature)
            elif move == self._multiplication:
                made = self._product(feature, parents.things[parents.draw(rng)])
            elif move == self._projection:
                other = parents.things[parents.draw(rng)]
                made = None if other == feature else self._projected(self._transform(rng), [feature, other])
            else:
                made = feature
        except FeatureError:
            return None
        return made if made is not None and self.allows(made) else None

    def some_inputs(self, rng: np.random.Generator) -> list[Feature]:
        """As many different inputs as an operation puts together at most."""
        n_inputs = len(self._inputs)
        if n_inputs <= self._limits.max_width:
            return list(self._inputs)
        return [self._inputs[j] for j in rng.choice(n_inputs, self._limits.max_width, replace=False)]

    def some_parents(self, rng: np.random.Generator, parents: Urn[Feature]) -> list[Feature]:
        """As many different parents as an operation puts together at most, where that leaves room for one more."""
        drawn = (parents.things[parents.draw(rng)] for _ in range(2 * self._limits.max_width))
        shallow = dict.fromkeys(feature for feature in drawn if depth(feature) < self._limits.max_depth)
        return list(shallow)[: self._limits.max_width]

    def transform_to_fit(self, rng: np.random.Generator) -> Transform | None:
        """Draw one that weights inside can be fitted through; None if there is none."""
        return None if self._to_fit is None else self._to_fit.things[self._to_fit.draw(rng)]

    def can_be_fitted(self, feature: Feature) -> bool:
        """Whether a feature is a projection whose weights can be fitted, and could have been made here."""
        if not isinstance(feature, Projection) or self._to_fit is None:
            return False
        return feature.transform in self._to_fit.things and self.allows(feature)

    def allows(self, feature: Feature) -> bool:
        """Whether a feature is within the limits."""
        limits = self._limits
        return (
            depth(feature) <= limits.max_depth
            and local_width(feature) <= limits.max_width
            and (limits.max_operations is None or operation_count(feature) <= limits.max_operations)
        )

    def _new_input(self, rng: np.random.Generator, _: Urn[Feature]) -> Feature:
        return self._inputs[int(rng.random() * len(self._inputs))]

    def _modification(self, rng: np.random.Generator, parents: Urn[Feature]) -> Feature:
        return modify(self._transform(rng), parents.things[parents.draw(rng)])

    def _multiplication(self, rng: np.random.Generator, parents: Urn[Feature]) -> Feature:
        return self._product(parents.things[parents.draw(rng)], parents.things[parents.draw(rng)])

    def _product(self, *features: Feature) -> Feature:
        """Product in which an input that is 0 or 1 occurs once."""
        product = multiply(*features)
        once = set(product.factors) & self._binary
        if len(product.factors) == len(set(product.factors)) or not once:
            return product
        factors = list(once) + [factor for factor in product.factors if factor not in once]
        return factors[0] if len(factors) == 1 else multiply(*factors)

    def _projection(self, rng: np.random.Generator, parents: Urn[Feature]) -> Feature | None:
        n_operands = 2
        while n_operands < self._limits.max_width and rng.random() < _WIDER:
            n_operands += 1
        transform = self._transform(rng)
        chosen: dict[Feature, None] = {}
        for _ in range(_ATTEMPTS * n_operands):
            if len(chosen) == n_operands:
                break
            chosen[parents.things[parents.draw(rng)]] = None
        first = next(iter(chosen))
        if (n_places := _places_to_shorten(first)) and rng.random() < _SHORTER:
            place = int(rng.random() * n_places)
            is_pair = isinstance(first, Projection) and len(first.operands) == 2
            return None if is_pair and place < 2 else self._shortened(first, place)  # a projection stays one
        return self._projected(transform, list(chosen)) if len(chosen) > 1 else None

    def _shortened(self, feature: Feature, place: int) -> Feature | None:
        """Leave out one operand of a projection in a feature: the only way to be rid of one that is too many.

        An operand that is a projection of two becomes one of them.
        """
        match feature:
            case Modification(transform=transform, operand=operand):
                shorter = self._shortened(operand, place)
                return None if shorter is None else modify(transform, shorter)
            case Multiplication(factors=parts):
                rest = self._with_one_shortened(parts, place)
                return None if rest is None else multiply(*rest)
            case Projection(transform=transform, operands=parts):
                if place < len(parts):
                    left = [*parts[:place], *parts[place + 1 :]]
                else:
                    rest = self._with_one_shortened(parts, place - len(parts))
                    if rest is None:
                        return None
                    left = rest
                if len(left) == 1:
                    return self.canonical(left[0])
                return self._projected(transform, left) if len(set(left)) == len(left) else None
            case Input() | Component():
                return None

    def _with_one_shortened(self, parts: tuple[Feature, ...], place: int) -> list[Feature] | None:
        for k, part in enumerate(parts):
            n_places = _n_operands(part)
            if place < n_places:
                shorter = self._shortened(part, place)
                return None if shorter is None else [*parts[:k], shorter, *parts[k + 1 :]]
            place -= n_places
        return None

    def _projected(self, transform: Transform, operands: list[Feature]) -> Feature | None:
        if max(map(depth, operands)) >= self._limits.max_depth:
            return None
        return self._make_projection(transform, operands)

    def _transform(self, rng: np.random.Generator) -> Transform:
        assert self._transforms is not None
        return self._transforms.things[self._transforms.draw(rng)]


def make_generator(problem: SearchProblem, likelihood: Likelihood, evaluator: Evaluator) -> Generator:
    """Return the generator of a problem's features; projections get their weights from the data of the evaluator."""
    config = problem.config
    weights = WeightSetter(config.projection_weights, likelihood, evaluator)
    used = problem.X[problem.likelihood.weights > 0]
    is_binary = ((used == 0.0) | (used == 1.0)).all(axis=0)
    binary = frozenset(feature for feature, is_so in zip(problem.inputs, is_binary, strict=True) if is_so)
    return Generator(
        problem.inputs,
        problem.transforms,
        config.transform_weights,
        config.moves,
        config.limits,
        weights.project,
        binary,
        weights.canonical,
    )
