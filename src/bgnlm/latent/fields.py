"""Latent Gaussian components: the processes of section 4.1 and Example 5 of the paper, and effects of groups.

A component is a small value that names a column and can tell its precision. Hyperparameters live on an unbounded
scale, in INLA's parametrisations; `describe` gives them in natural units.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from bgnlm._typing import BoolArray, FloatArray, IntArray
from bgnlm._validation import check_number
from bgnlm.errors import DataError, SettingError
from bgnlm.kernels import banded
from bgnlm.latent.hyperpriors import FARTHEST, PAPER_CORRELATION, PAPER_DECAY, PAPER_PRECISION, Gamma, Normal

_WHOLE = 1e-6  # share of a step, or of a distance, that numbers of steps are rounded by


class Bridge(NamedTuple):
    """A field at positions where it was not fitted, given its values at the neighbours.

    Attributes
    ----------
    left, right
        Numbers of the neighbours among the known positions; where there is none, any number with weight 0.
    left_weight, right_weight
        Of the conditional mean.
    variance
        Conditional variance.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm.latent import RW1, Bridge
    >>> known, wanted = np.array([0.0, 2.0, 4.0]), np.array([1.0, 5.0])
    >>> bridge = RW1("day").bridge(np.array([0.0]), known, wanted)
    >>> isinstance(bridge, Bridge)
    True
    >>> bridge.left_weight.tolist(), bridge.right_weight.tolist()
    ([0.5, 1.0], [0.5, 0.0])
    """

    left: IntArray
    right: IntArray
    left_weight: FloatArray
    right_weight: FloatArray
    variance: FloatArray


@runtime_checkable
class LatentField(Protocol):
    """What a latent component has to tell; users can write their own.

    `by_label`: whether the values of the column are labels, in no order, instead of positions. `is_pinned`: whether the
    field is 0 at the first position by definition.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm.latent import RW1, LatentField
    >>> field: LatentField = RW1("day")
    >>> field.column, field.n_hyperparameters
    ('day', 1)
    >>> field.precision(np.array([0.0]), np.array([0.0, 1.0, 2.0])).shape
    (3, 2)
    """

    by_label: ClassVar[bool]
    is_pinned: ClassVar[bool]

    @property
    def column(self) -> str | int:
        """Name of the column with the positions or groups, or its number for arrays."""

    @property
    def slope(self) -> str | int | None:
        """Column that the field is multiplied by; None for none."""

    @property
    def n_hyperparameters(self) -> int:
        """v(delta), the complexity."""

    @property
    def starts(self) -> tuple[tuple[float, ...], ...]:
        """Hyperparameters to search from: the component present, and nearly absent."""

    def times(self, positions: FloatArray) -> FloatArray:
        """Where the sorted distinct positions are for the field, which is what the methods below are given."""

    def log_prior(self, hyperparameters: FloatArray) -> float:
        """Log density of the hyperparameters on their unbounded scale."""

    def precision(self, hyperparameters: FloatArray, positions: FloatArray) -> FloatArray:
        """Banded precision matrix over sorted positions: entry [t, d] is that of (t, t - d)."""

    def describe(self, hyperparameters: FloatArray) -> dict[str, float]:
        """Hyperparameters by name, in natural units; standard deviations have names that begin with "sd"."""

    def bridge(self, hyperparameters: FloatArray, positions: FloatArray, wanted: FloatArray) -> Bridge:
        """Return the field elsewhere, given where it is known."""


def _check(field: "IID | AR1 | RW1 | OU | Grouped") -> None:
    for name, value in (("column", field.column), ("slope", field.slope)):
        if name == "slope" and value is None:
            continue
        if isinstance(value, bool) or not isinstance(value, str | int | np.integer) or value == "":
            raise SettingError(
                f"{name} of {type(field).__name__} must be the name of a column, or its number; got {value!r}."
            )
    if not isinstance(field.precision_prior, Gamma):
        raise SettingError(f"precision_prior must be a Gamma; got {field.precision_prior!r}. Write Gamma(1, 5e-5).")


class _IndependentEffects:
    """What effects of labels have in common: they are normal, and do not depend on each other."""

    precision_prior: Gamma

    by_label: ClassVar[bool] = True
    is_pinned: ClassVar[bool] = False
    n_hyperparameters: ClassVar[int] = 1

    @property
    def starts(self) -> tuple[tuple[float, ...], ...]:
        """Present, and nearly absent."""
        return ((0.5,), (self.precision_prior.mode,))

    def times(self, positions: FloatArray) -> FloatArray:
        """The positions themselves."""
        return positions

    def log_prior(self, hyperparameters: FloatArray) -> float:
        """Log density of the log precision."""
        return _log_gamma_prior(self.precision_prior, hyperparameters)

    def precision(self, hyperparameters: FloatArray, positions: FloatArray) -> FloatArray:
        """Diagonal."""
        return np.full((len(positions), 1), math.exp(hyperparameters[0]))

    def describe(self, hyperparameters: FloatArray) -> dict[str, float]:
        """Standard deviation of the effects."""
        return {"sd": math.exp(-0.5 * hyperparameters[0])}

    def bridge(self, hyperparameters: FloatArray, positions: FloatArray, wanted: FloatArray) -> Bridge:  # noqa: ARG002
        """Nothing is known of a label that was not seen."""
        return _unknown(len(wanted), math.exp(-hyperparameters[0]))


@dataclass(frozen=True)
class IID(_IndependentEffects):
    """Independent normal effects, one for each position.

    Examples
    --------
    >>> from bgnlm import BGNLMRegressor
    >>> from bgnlm.latent import IID
    >>> BGNLMRegressor(family="poisson", latent=[IID("row")]).latent[0].column
    'row'
    """

    column: str | int
    precision_prior: Gamma = PAPER_PRECISION

    slope: ClassVar[None] = None

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class Grouped(_IndependentEffects):
    """Effects of groups: random intercepts, or with `slope` random slopes of that column.

    Several of them over one column are independent of each other, and so are those over crossed columns.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm.latent import Grouped, log_marginal
    >>> school = np.repeat(["a", "b", "c", "d"], 5)
    >>> score = np.repeat([1.0, 4.0, 2.0, 7.0], 5) + np.tile([-0.2, -0.1, 0.0, 0.1, 0.2], 4)
    >>> log_marginal(score, latent=[Grouped("school")], positions={"school": school}) > log_marginal(score)
    True
    """

    column: str | int
    slope: str | int | None = None
    precision_prior: Gamma = PAPER_PRECISION

    def __post_init__(self) -> None:
        _check(self)


@dataclass(frozen=True)
class RW1:
    """Random walk of order 1: increments are N(0, distance / tau).

    It begins at 0, which together with a flat intercept is the same as effects that add up to 0; the density is
    normalised, so that marginal likelihoods of models with and without it can be compared.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm.latent import RW1, log_marginal
    >>> day = np.arange(30.0)
    >>> level = np.sin(day / 5)
    >>> log_marginal(level, latent=[RW1("day")], positions={"day": day}) > log_marginal(level)
    True
    """

    column: str | int
    precision_prior: Gamma = PAPER_PRECISION

    by_label: ClassVar[bool] = False
    is_pinned: ClassVar[bool] = True
    slope: ClassVar[None] = None
    n_hyperparameters: ClassVar[int] = 1

    def __post_init__(self) -> None:
        _check(self)

    @property
    def starts(self) -> tuple[tuple[float, ...], ...]:
        """Present, and nearly absent."""
        return ((2.0,), (self.precision_prior.mode,))

    def times(self, positions: FloatArray) -> FloatArray:
        """The positions themselves."""
        return positions

    def log_prior(self, hyperparameters: FloatArray) -> float:
        """Log density of the log precision."""
        return _log_gamma_prior(self.precision_prior, hyperparameters)

    def precision(self, hyperparameters: FloatArray, positions: FloatArray) -> FloatArray:
        """Tridiagonal; the first position, where the walk is 0, has a place that nothing depends on."""
        steps = math.exp(hyperparameters[0]) / np.diff(positions)
        band = np.zeros((len(positions), 2))
        band[1:, 0] = steps
        band[1:-1, 0] += steps[1:]
        band[2:, 1] = -steps[1:]
        band[0, 0] = 1.0
        return band

    def describe(self, hyperparameters: FloatArray) -> dict[str, float]:
        """Standard deviation of an increment over distance 1."""
        return {"sd of increments": math.exp(-0.5 * hyperparameters[0])}

    def bridge(self, hyperparameters: FloatArray, positions: FloatArray, wanted: FloatArray) -> Bridge:
        """Brownian bridge inside, Brownian motion beyond the ends."""
        left, right, before, after = _neighbours(positions, wanted)
        inside = np.isfinite(before) & np.isfinite(after)
        nearest = np.where(np.isfinite(before), before, after)
        one, other = np.where(inside, before, 0.0), np.where(inside, after, 1.0)
        right_weight = np.where(inside, one / (one + other), np.where(np.isfinite(after), 1.0, 0.0))
        distance = np.where(inside, one * other / (one + other), nearest)
        return Bridge(left, right, 1.0 - right_weight, right_weight, distance * math.exp(-hyperparameters[0]))


@dataclass(frozen=True)
class AR1:
    """Autoregressive process of order 1.

    Hyperparameters: logarithm of the marginal precision, and log((1 + rho) / (1 - rho)).

    Parameters
    ----------
    step
        Distance that is one step; positions must be whole numbers of steps apart. "rank" if the next larger position is
        one step ahead, however far it is. None for a series with gaps, whose step is the smallest distance, if the
        positions are at more than half of the places of such a series; for "rank" otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm.latent import AR1
    >>> AR1("day").times(np.array([0.0, 1.0, 2.0, 5.0])).tolist()
    [0.0, 1.0, 2.0, 5.0]
    >>> AR1("day", step="rank").times(np.array([0.0, 1.0, 2.0, 5.0])).tolist()
    [0.0, 1.0, 2.0, 3.0]
    """

    column: str | int
    precision_prior: Gamma = PAPER_PRECISION
    correlation_prior: Normal = PAPER_CORRELATION
    step: float | Literal["rank"] | None = None

    by_label: ClassVar[bool] = False
    is_pinned: ClassVar[bool] = False
    slope: ClassVar[None] = None
    n_hyperparameters: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _check(self)
        if not isinstance(self.correlation_prior, Normal):
            raise SettingError(f"correlation_prior must be a Normal; got {self.correlation_prior!r}.")
        if isinstance(self.step, str) and self.step != "rank":
            raise SettingError(f"step must be a distance, 'rank' or None; got {self.step!r}.")
        if self.step is not None and self.step != "rank":
            check_number(self.step, "step", above=0.0)

    @property
    def starts(self) -> tuple[tuple[float, ...], ...]:
        """Present, and nearly absent."""
        return ((0.5, 2.0), (self.precision_prior.mode, self.correlation_prior.mean))

    def times(self, positions: FloatArray) -> FloatArray:
        """Steps from the first position."""
        ranks = np.arange(len(positions), dtype=np.float64)
        if self.step == "rank" or len(positions) == 1:
            return ranks
        step = self.step or float(np.diff(positions).min())
        exact = (positions - positions[0]) / step
        steps: FloatArray = np.round(exact)
        is_whole = np.abs(exact - steps) <= _WHOLE * np.maximum(steps, 1.0)
        if self.step is None:
            return steps if is_whole.all() and len(steps) > 0.5 * (steps[-1] + 1.0) else ranks
        if not is_whole.all() or not np.diff(steps).all():
            odd = float(positions[int(np.argmax(~is_whole | (np.diff(steps, prepend=-1.0) == 0.0)))])
            raise DataError(
                f"AR1({self.column}) has steps of {step:g} from {positions[0]:g}; got position {odd:g}, which is not a "
                "whole number of them away. Use OU for positions at any distance, or step='rank'."
            )
        return steps

    def log_prior(self, hyperparameters: FloatArray) -> float:
        """Log density of both."""
        value = _log_gamma_prior(self.precision_prior, hyperparameters)
        return value + self.correlation_prior.log_density(float(hyperparameters[1]))

    def precision(self, hyperparameters: FloatArray, positions: FloatArray) -> FloatArray:
        """Tridiagonal; over several steps the correlation is a power."""
        slope = abs(float(hyperparameters[1]))
        decay = -math.log1p(2.0 / math.expm1(slope)) if slope else -math.inf  # log |rho|, also where that is near 1
        precision = math.exp(hyperparameters[0])
        return np.asarray(banded.markov_band(positions, precision, decay, bool(hyperparameters[1] < 0.0)))

    def describe(self, hyperparameters: FloatArray) -> dict[str, float]:
        """Marginal standard deviation and correlation of neighbours."""
        return {"sd": math.exp(-0.5 * hyperparameters[0]), "correlation": math.tanh(0.5 * hyperparameters[1])}

    def bridge(self, hyperparameters: FloatArray, positions: FloatArray, wanted: FloatArray) -> Bridge:
        """Given both neighbours; fractions of a step count as such."""
        left, right, before, after = _neighbours(positions, wanted)
        rho = math.tanh(0.5 * hyperparameters[1])
        inside = np.isfinite(before) & np.isfinite(after)
        between = _power(rho, np.where(inside, before + after, np.inf))
        return _stationary_bridge(
            left, right, _power(rho, before), _power(rho, after), inside, between, hyperparameters[0]
        )


@dataclass(frozen=True)
class OU:
    """Ornstein-Uhlenbeck process: correlation exp(-phi distance).

    Hyperparameters: logarithm of the marginal precision, and log phi.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm.latent import OU
    >>> sorted(OU("day").describe(np.array([0.0, 0.0])))
    ['phi', 'sd']
    """

    column: str | int
    precision_prior: Gamma = PAPER_PRECISION
    decay_prior: Normal = PAPER_DECAY

    by_label: ClassVar[bool] = False
    is_pinned: ClassVar[bool] = False
    slope: ClassVar[None] = None
    n_hyperparameters: ClassVar[int] = 2

    def __post_init__(self) -> None:
        _check(self)
        if not isinstance(self.decay_prior, Normal):
            raise SettingError(f"decay_prior must be a Normal; got {self.decay_prior!r}.")

    @property
    def starts(self) -> tuple[tuple[float, ...], ...]:
        """Present, and nearly absent."""
        return ((0.5, self.decay_prior.mean - 1.0), (self.precision_prior.mode, self.decay_prior.mean))

    def times(self, positions: FloatArray) -> FloatArray:
        """The positions themselves."""
        return positions

    def log_prior(self, hyperparameters: FloatArray) -> float:
        """Log density of both."""
        value = _log_gamma_prior(self.precision_prior, hyperparameters)
        return value + self.decay_prior.log_density(float(hyperparameters[1]))

    def precision(self, hyperparameters: FloatArray, positions: FloatArray) -> FloatArray:
        """Tridiagonal."""
        precision, phi = math.exp(hyperparameters[0]), math.exp(hyperparameters[1])
        return np.asarray(banded.markov_band(positions, precision, -phi, False))

    def describe(self, hyperparameters: FloatArray) -> dict[str, float]:
        """Marginal standard deviation and decay of the correlation."""
        return {"sd": math.exp(-0.5 * hyperparameters[0]), "phi": math.exp(hyperparameters[1])}

    def bridge(self, hyperparameters: FloatArray, positions: FloatArray, wanted: FloatArray) -> Bridge:
        """Given both neighbours."""
        left, right, before, after = _neighbours(positions, wanted)
        inside = np.isfinite(before) & np.isfinite(after)
        phi = math.exp(hyperparameters[1])
        to_left, to_right = np.exp(-phi * before), np.exp(-phi * after)
        between = np.where(inside, to_left * to_right, 0.0)
        return _stationary_bridge(left, right, to_left, to_right, inside, between, hyperparameters[0])


def _log_gamma_prior(prior: Gamma, hyperparameters: FloatArray) -> float:
    if max(map(abs, hyperparameters)) > FARTHEST:
        return -math.inf
    return prior.log_density(float(hyperparameters[0]))


def _neighbours(positions: FloatArray, wanted: FloatArray) -> tuple[IntArray, IntArray, FloatArray, FloatArray]:
    """Nearest positions on both sides, and the distances to them, infinite where there is none."""
    place = np.searchsorted(positions, wanted)
    left, right = np.maximum(place - 1, 0), np.minimum(place, len(positions) - 1)
    before = np.where(place > 0, wanted - positions[left], np.inf)
    after = np.where(place < len(positions), positions[right] - wanted, np.inf)
    return left, right, before, after


def _power(rho: float, steps: FloatArray) -> FloatArray:
    """Correlation over a fraction of a step, or several steps; a negative one swings."""
    size = np.where(np.isfinite(steps), abs(rho) ** np.where(np.isfinite(steps), steps, 0.0), 0.0)
    if rho >= 0.0:
        return np.asarray(size)
    return np.asarray(size * np.cos(np.pi * np.where(np.isfinite(steps), steps, 0.0)))


def _stationary_bridge(
    left: IntArray,
    right: IntArray,
    to_left: FloatArray,
    to_right: FloatArray,
    inside: BoolArray,
    between: FloatArray | float,
    log_precision: float,
) -> Bridge:
    """A stationary process given its neighbours, from the correlations with and between them."""
    between = np.where(inside, between, 0.0)
    unexplained = np.maximum(1.0 - between**2, 1e-14)
    left_weight = (to_left - between * to_right) / unexplained
    right_weight = (to_right - between * to_left) / unexplained
    share = np.clip(1.0 - left_weight * to_left - right_weight * to_right, 0.0, 1.0)
    return Bridge(left, right, left_weight, right_weight, share * math.exp(-log_precision))


def _unknown(n: int, variance: float) -> Bridge:
    nowhere, nothing = np.zeros(n, np.int64), np.zeros(n)
    return Bridge(nowhere, nowhere, nothing, nothing, np.full(n, variance))
