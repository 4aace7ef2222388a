"""Algorithm 1 of the paper: mode-jumping MCMC over the models of one population, mixed with ordinary moves."""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numba.extending import overload

from bgnlm._typing import BoolArray, IntArray
from bgnlm._validation import check_number
from bgnlm.errors import SettingError
from bgnlm.kernels._jit import both_forms, jit
from bgnlm.search.optimizers import OPTIMIZERS, climb, most_models_of_a_climb
from bgnlm.search.proposals import MOVES, large_jump, log_randomize, ordinary_move, randomize
from bgnlm.search.target import GramTarget, SurrogateTarget, has_room, log_joint, with_more_room

KERNELS = (*MOVES, *OPTIMIZERS)
USED, ACCEPTED = range(2)
_ADAPT_EVERY = 20
_LEAST_WEIGHT = 0.2


@dataclass(frozen=True, kw_only=True)
class MjmcmcSettings:
    """How Algorithm 1 proposes.

    Parameters
    ----------
    jump_probability
        Share of mode jumps; the rest are ordinary moves.
    smallest_jump, largest_jump
        Shares of the columns that a large jump flips.
    randomize_rate
        Probability with which the small randomisation flips a column; None for one flip on average, at most 0.1.
    moves
        Probabilities of flip, swap, add, delete among the ordinary moves.
    optimizers
        Probabilities of simulated annealing, greedy climbing and multiple-try MCMC among the mode jumps.
    burn_in
        Share of the steps during which the weights adapt by which ordinary moves choose columns.

    Examples
    --------
    >>> from bgnlm import SearchConfig
    >>> from bgnlm.search import MjmcmcSettings
    >>> config = SearchConfig(engine="mjmcmc", mjmcmc=MjmcmcSettings(jump_probability=0.1))
    >>> config.mjmcmc.jump_probability
    0.1
    """

    jump_probability: float = 0.05
    smallest_jump: float = 0.25
    largest_jump: float = 0.45
    randomize_rate: float | None = None
    moves: tuple[float, float, float, float] = (0.4, 0.3, 0.15, 0.15)
    optimizers: tuple[float, float, float] = (0.3, 0.4, 0.3)
    burn_in: float = 0.25

    def __post_init__(self) -> None:
        for name in ("jump_probability", "smallest_jump", "largest_jump", "burn_in"):
            check_number(getattr(self, name), name, low=0.0, high=1.0)
        if self.smallest_jump > self.largest_jump:
            raise SettingError(
                f"smallest_jump must not exceed largest_jump; got {self.smallest_jump} and {self.largest_jump}."
            )
        if self.randomize_rate is not None and not 0.0 < check_number(self.randomize_rate, "randomize_rate") < 1.0:
            raise SettingError(f"randomize_rate must lie between 0 and 1, both excluded; got {self.randomize_rate}.")
        for name, kernels in (("moves", MOVES), ("optimizers", OPTIMIZERS)):
            object.__setattr__(self, name, _check_probabilities(getattr(self, name), name, kernels))

    def compiled(self, n_columns: int) -> "Proposals":
        """Return the same as numbers and arrays, for a population of so many columns."""
        rate = min(1.0 / max(n_columns, 1), 0.1) if self.randomize_rate is None else self.randomize_rate
        return Proposals(
            self.jump_probability,
            self.smallest_jump,
            self.largest_jump,
            rate,
            np.array(self.moves, dtype=np.float64),
            np.array(self.optimizers, dtype=np.float64),
        )


class Proposals(NamedTuple):
    """Settings of one population in the form that compiled code takes."""

    jump_probability: float
    smallest_jump: float
    largest_jump: float
    randomize_rate: float
    moves: Any
    optimizers: Any


def _check_probabilities(values: Any, name: str, kernels: tuple[str, ...]) -> tuple[float, ...]:
    numbers = tuple(check_number(value, name, low=0.0) for value in values) if isinstance(values, Iterable) else ()
    if len(numbers) != len(kernels) or not sum(numbers) > 0.0:
        raise SettingError(
            f"{name} must be {len(kernels)} probabilities, for {', '.join(kernels)}, not all zero; got {values!r}."
        )
    return tuple(number / sum(numbers) for number in numbers)


@both_forms
def pick(rng, probabilities):
    """Draw an index by its probability."""
    left = rng.random()
    for i in range(len(probabilities)):
        left -= probabilities[i]
        if left < 0.0:
            return i
    return int(np.argmax(probabilities))


@both_forms
def mode_jump(rng, target, proposals, optimizer, model, log_model):
    """Algorithm 1: the next model, its log joint, and whether it is the proposal."""
    jumped = large_jump(rng, model, proposals.smallest_jump, proposals.largest_jump)  # line 1
    peak = climb_guided(rng, target, optimizer, jumped)  # line 2
    proposal = randomize(rng, peak, proposals.randomize_rate)  # line 3
    back_jumped = large_jump(rng, proposal, proposals.smallest_jump, proposals.largest_jump)  # line 4
    back_peak = climb_guided(rng, target, optimizer, back_jumped)
    log_proposal = log_joint(target, proposal)
    log_ratio = (
        log_proposal
        - log_model
        + log_randomize(proposals.randomize_rate, model, back_peak)
        - log_randomize(proposals.randomize_rate, proposal, peak)
    )
    if math.log(1.0 - rng.random()) < log_ratio:  # line 5
        return proposal, log_proposal, True
    return model, log_model, False


@both_forms
def ordinary_step(rng, target, proposals, move, weights, model, log_model):
    """Metropolis-Hastings with a move to a neighbour; tried on the guide first if there is one (delayed acceptance)."""
    proposal, log_ratio = ordinary_move(rng, model, weights, move, proposals.moves)
    if log_ratio == -np.inf:
        return model, log_model, False
    if is_guided(target):
        gain = log_guide(target, proposal) - log_guide(target, model)
        if not math.log(1.0 - rng.random()) < gain + log_ratio:
            return model, log_model, False
        log_ratio = -gain  # what the first stage has used does not count again
    log_proposal = log_joint(target, proposal)
    if math.log(1.0 - rng.random()) < log_proposal - log_model + log_ratio:
        return proposal, log_proposal, True
    return model, log_model, False


@both_forms
def step(rng, target, proposals, weights, model, log_model, tally):
    """One iteration: a mode jump or an ordinary move; `tally` counts use and acceptance of every kernel."""
    if rng.random() < proposals.jump_probability:
        optimizer = pick(rng, proposals.optimizers)
        kernel = len(MOVES) + optimizer
        model, log_model, accepted = mode_jump(rng, target, proposals, optimizer, model, log_model)
    else:
        kernel = pick(rng, proposals.moves)
        model, log_model, accepted = ordinary_step(rng, target, proposals, kernel, weights, model, log_model)
    tally[USED, kernel] += 1
    tally[ACCEPTED, kernel] += accepted
    return model, log_model


@both_forms
def adapt(visits, n_visits, weights):
    """Ordinary moves choose the columns that are in doubt more often."""
    for j in range(len(weights)):
        share = (visits[j] + 1.0) / (n_visits + 2.0)
        weights[j] = _LEAST_WEIGHT + 4.0 * share * (1.0 - share)


@both_forms
def run(rng, target, proposals, model, log_model, first_step, n_steps, burn_in, weights, visits, tally):
    """Iterate from `first_step` to `n_steps` or as far as there is room for models; where it ended is returned.

    Until step `burn_in` the weights of the columns adapt; then they stay as they are.
    """
    if math.isnan(log_model):
        log_model = log_joint(target, model)
    if len(model) == 0:
        return model, log_model, n_steps
    most = 2 * most_models_of_a_climb(len(model)) + 1
    for i in range(first_step, n_steps):
        if not has_room(target, most):
            return model, log_model, i
        model, log_model = step(rng, target, proposals, weights, model, log_model, tally)
        for j in range(len(model)):
            visits[j] += model[j]
        if i < burn_in and (i + 1) % _ADAPT_EVERY == 0:
            adapt(visits, i + 1, weights)
    return model, log_model, n_steps


run_compiled = jit(run)
climb_compiled = jit(climb)


@jit
def log_joint_compiled(target, included):
    """Log pi(m) of a compiled target."""
    return log_joint(target, included)


def climb_guided(rng: Any, target: Any, optimizer: int, included: BoolArray) -> BoolArray:
    """q_o on the target itself or, where that is costly, on the approximation that guides it."""
    if not is_guided(target):
        return np.asarray(climb(rng, target, optimizer, included))
    form = climb_compiled if isinstance(target.guide, SurrogateTarget) else climb
    return np.asarray(form(rng, target.guide, optimizer, included))


def is_guided(target: Any) -> bool:
    """Whether the target has an approximation to guide the way."""
    return getattr(target, "guide", None) is not None


def log_guide(target: Any, included: BoolArray) -> float:
    """Log joint of the approximation."""
    form = log_joint_compiled if isinstance(target.guide, SurrogateTarget) else log_joint
    return float(form(target.guide, included))


@overload(climb_guided)
def _compiled_climb(rng, target, optimizer, included):
    return climb


@overload(is_guided)
def _compiled_is_guided(target):
    return lambda target: False


@overload(log_guide)
def _compiled_log_guide(target, included):
    return lambda target, included: 0.0


@dataclass(frozen=True, eq=False)
class MjmcmcRun:
    """Where a run of Algorithm 1 ended and what it did; the models it scored are with its target."""

    target: Any
    model: BoolArray
    log_model: float
    visits: IntArray
    tally: IntArray


def run_mjmcmc(
    rng: np.random.Generator, target: Any, settings: MjmcmcSettings, start: BoolArray, n_steps: int
) -> MjmcmcRun:
    """Run Algorithm 1 from a model, compiled if the target can be."""
    n_columns = len(start)
    proposals = settings.compiled(n_columns)
    burn_in = int(settings.burn_in * n_steps)
    weights, visits = np.ones(n_columns), np.zeros(n_columns, np.int64)
    tally = np.zeros((2, len(KERNELS)), np.int64)
    form = run_compiled if isinstance(target, GramTarget) else run
    model, log_model, done = np.array(start, dtype=np.bool_), np.nan, 0
    while True:
        model, log_model, done = form(
            rng, target, proposals, model, log_model, done, n_steps, burn_in, weights, visits, tally
        )
        if done == n_steps:
            return MjmcmcRun(target, model, float(log_model), visits, tally)
        target = with_more_room(target)
