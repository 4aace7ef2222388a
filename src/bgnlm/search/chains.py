"""Several chains, one after the other, and what they found together (section 3.2, "Parallelization strategy")."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.errors import SettingError
from bgnlm.search.classes import ClassTable
from bgnlm.search.gmjmcmc import ChainState, Discovery, Workspace, advance, start_chain
from bgnlm.search.mjmcmc import KERNELS
from bgnlm.search.problem import SearchProblem
from bgnlm.search.visited import VisitedModels, log_sum

_FRUITLESS = 10  # explorations of the last population without another model
_STAGNANT = 1e-3  # nats of mass in one population


@dataclass(frozen=True)
class Progress:
    """Where a chain stands after a population."""

    chain: int
    n_explored: int
    best_log_joint: float
    log_mass: float
    n_models: int
    n_scored: int
    n_features: int
    seconds: float


@dataclass(eq=False)
class ChainResult:
    """What one chain found.

    Attributes
    ----------
    classes
        Features by class.
    costs
        Nats of prior that each of them costs a model.
    visited
        M* of the chain.
    history
        Its progress, one entry for each population.
    tally
        How often each kernel of Algorithm 1 was used and accepted; see `KERNELS`.
    state
        Where it ended.
    """

    visited: VisitedModels
    state: ChainState
    costs: FloatArray
    history: list[Progress] = field(default_factory=list)
    tally: IntArray = field(default_factory=lambda: np.zeros((2, len(KERNELS)), np.int64))
    n_scored: int = 0
    log_mass: float = -np.inf

    @property
    def classes(self) -> ClassTable:
        """Features by class."""
        return self.state.classes

    def absorb(self, discovery: Discovery) -> None:
        """Take in what a population brought to light."""
        self.costs = discovery.costs
        fresh = self.visited.add(discovery.models, discovery.costs)
        self.visited.discard(discovery.log_discarded, discovery.classes)
        for feature_class, saving in discovery.savings:
            self.visited.reprice(feature_class, saving)
        if discovery.savings:  # everything that has one of these features is worth more now
            fresh, self.log_mass = self.visited.rows(), -np.inf
        joint = fresh.log_marginal - fresh.sum_over_members(discovery.costs)
        self.log_mass = float(np.logaddexp(self.log_mass, log_sum(joint)))
        self.tally = self.tally + discovery.tally
        self.n_scored += discovery.n_scored


def run_chain(
    problem: SearchProblem,
    seed: np.random.SeedSequence,
    number: int = 0,
    report: Callable[[Progress], None] | None = None,
) -> ChainResult:
    """Run one chain to its end: all populations, stagnation, or the time limit."""
    config = problem.config
    began = time.perf_counter()
    work = Workspace(problem)
    state = start_chain(problem, seed, work)
    result = ChainResult(VisitedModels(config.max_models), state, np.array(work.classes.costs))
    stagnant = fruitless = 0
    while True:
        before, before_models = result.log_mass, result.visited.n_scored
        state, found = advance(problem, state, 1, work)
        result.state = state
        for discovery in found:
            result.absorb(discovery)
        seconds = time.perf_counter() - began
        result.history.append(_progress(number, result, seconds))
        if report is not None:
            report(result.history[-1])
        if config.max_seconds is not None and seconds > config.max_seconds:
            break
        if state.n_explored >= config.n_populations:
            fruitless = fruitless + 1 if result.visited.n_scored == before_models else 0
            if result.visited.n_scored >= config.min_models or fruitless >= _FRUITLESS:
                break
            continue
        stagnant = stagnant + 1 if result.log_mass - before < _STAGNANT else 0
        if config.patience is not None and stagnant >= config.patience:
            break
    result.visited.truncate(result.costs)
    return result


def run_chains(
    problem: SearchProblem,
    n_chains: int,
    random_state: int | np.random.SeedSequence | None = None,
    report: Callable[[Progress], None] | None = None,
) -> list[ChainResult]:
    """Run chains one after the other; the seed of each depends on its number alone."""
    is_seed = isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0
    if not (random_state is None or is_seed or isinstance(random_state, np.random.SeedSequence)):
        raise SettingError(f"random_state must be a whole number of 0 or more, or None; got {random_state!r}.")
    root = random_state if isinstance(random_state, np.random.SeedSequence) else np.random.SeedSequence(random_state)
    return [run_chain(problem, seed, number, report) for number, seed in enumerate(root.spawn(n_chains))]


def _progress(number: int, result: ChainResult, seconds: float) -> Progress:
    return Progress(
        chain=number,
        n_explored=result.state.n_explored,
        best_log_joint=result.state.best_log_joint,
        log_mass=result.log_mass,
        n_models=result.visited.n_scored,
        n_scored=result.n_scored,
        n_features=len(result.costs),
        seconds=seconds,
    )
