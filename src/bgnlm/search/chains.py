"""One chain: what it found, population by population, and when it ends (section 3.2)."""

from dataclasses import dataclass, field, replace

import numpy as np

from bgnlm._typing import FloatArray, IntArray
from bgnlm.search.classes import ClassTable
from bgnlm.search.config import SearchConfig
from bgnlm.search.gmjmcmc import ChainState, Discovery, Workspace, start_chain, step
from bgnlm.search.mjmcmc import KERNELS
from bgnlm.search.problem import SearchProblem
from bgnlm.search.visited import VisitedModels, log_sum

_FRUITLESS = 10  # explorations of the last population without another model
_STAGNANT = 1e-3  # nats of mass in one population

COMPLETE = "complete"
STAGNANT = "nothing more found"


@dataclass(frozen=True)
class Progress:
    """Where a chain stands after a population.

    Attributes
    ----------
    chain, n_explored, n_populations
        Number of the chain, populations it explored, and how many it is to explore.
    best_log_joint, log_mass
        Of the most probable model of the chain, and of all its models together.
    n_models, n_scored, n_features
        Distinct models, models scored, and features met by the chain.
    seconds
        Time the chain took.
    """

    chain: int
    n_explored: int
    n_populations: int
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
    number
        Its number; together with the seed it decides everything.
    visited
        M* of the chain.
    state
        Where it is.
    history
        Its progress, one entry for each population.
    tally
        How often each kernel of Algorithm 1 was used and accepted; see `KERNELS`.
    ending
        Why it ended; None while it goes on.
    """

    number: int
    state: ChainState
    visited: VisitedModels
    history: list[Progress] = field(default_factory=list)
    tally: IntArray = field(default_factory=lambda: np.zeros((2, len(KERNELS)), np.int64))
    n_scored: int = 0
    log_mass: float = -np.inf
    ending: str | None = None
    _n_stagnant: int = 0
    _n_fruitless: int = 0

    @property
    def classes(self) -> ClassTable:
        """Features by class."""
        return self.state.classes

    @property
    def costs(self) -> FloatArray:
        """Nats of prior that each class costs a model."""
        return self.state.classes.costs

    def resumed(self) -> "ChainResult":
        """Return a copy that goes on after the ending."""
        return replace(
            self,
            visited=self.visited.copy(),
            history=list(self.history),
            ending=None,
            _n_stagnant=0,
            _n_fruitless=0,
        )

    def absorb(self, discovery: Discovery, config: SearchConfig) -> Progress:
        """Take in what a population brought to light."""
        mass_before, models_before = self.log_mass, self.visited.n_scored
        self._store(discovery)
        self.tally = self.tally + discovery.tally
        self.n_scored += discovery.n_scored
        self.history.append(self._progress(discovery, config))
        self.ending = self._reason_to_end(config, self.log_mass - mass_before, self.visited.n_scored - models_before)
        return self.history[-1]

    def _store(self, discovery: Discovery) -> None:
        known = self.costs
        self.state = self.state.after(discovery)
        fresh = self.visited.add(discovery.models, self.costs)
        self.visited.discard(discovery.log_discarded, discovery.classes)
        savings = known - self.costs[: len(known)]
        for number in np.flatnonzero(savings).tolist():
            self.visited.reprice(number, float(savings[number]))
        if savings.any():  # everything that has one of these features is worth more now
            fresh, self.log_mass = self.visited.rows(), -np.inf
        self.log_mass = float(np.logaddexp(self.log_mass, log_sum(fresh.log_joint(self.costs))))

    def _reason_to_end(self, config: SearchConfig, gain: float, n_fresh: int) -> str | None:
        if self.state.n_explored >= config.n_populations:
            self._n_fruitless = 0 if n_fresh else self._n_fruitless + 1
            is_enough = self.visited.n_scored >= config.min_models or self._n_fruitless >= _FRUITLESS
            return COMPLETE if is_enough else None
        self._n_stagnant = self._n_stagnant + 1 if gain < _STAGNANT else 0
        return STAGNANT if config.patience is not None and self._n_stagnant >= config.patience else None

    def _progress(self, discovery: Discovery, config: SearchConfig) -> Progress:
        return Progress(
            chain=self.number,
            n_explored=self.state.n_explored,
            n_populations=config.n_populations,
            best_log_joint=self.state.best_log_joint,
            log_mass=self.log_mass,
            n_models=self.visited.n_scored,
            n_scored=self.n_scored,
            n_features=len(self.classes),
            seconds=(self.history[-1].seconds if self.history else 0.0) + discovery.seconds,
        )


def run_chain(problem: SearchProblem, seed: np.random.SeedSequence, number: int = 0) -> ChainResult:
    """Run one chain to its end, whatever time it takes."""
    work = Workspace(problem)
    chain = ChainResult(number, start_chain(problem, seed, work), VisitedModels(problem.config.max_models))
    while chain.ending is None:
        _, discovery = step(work, chain.state)
        chain.absorb(discovery, problem.config)
    chain.visited.truncate(chain.costs)
    return chain
