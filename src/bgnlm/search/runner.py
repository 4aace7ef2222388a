"""Several chains side by side, through time limits, interruptions, failures (section 3.2, "Parallelization strategy").

All decisions are taken here, in the process that asked for the chains; workers only advance them.
"""

import contextlib
import signal
import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bgnlm.errors import SearchStoppedWarning, SettingError
from bgnlm.search.chains import ChainResult, Progress
from bgnlm.search.checkpoint import Checkpoint
from bgnlm.search.gmjmcmc import Discovery, Workspace, advance, start_chain, with_seed
from bgnlm.search.problem import SearchProblem
from bgnlm.search.visited import VisitedModels
from bgnlm.search.workers import Workers, hire, one_thread

_POLL = 0.1  # seconds
_ATTEMPTS = 3
_GRACE = 2.0  # seconds that slices under way have to end after an interruption

OUT_OF_TIME = "time is over"
INTERRUPTED = "interrupted"
FAILED = "failed"


@dataclass(frozen=True)
class RunProgress:
    """Where a run stands.

    Attributes
    ----------
    latest
        The chain that explored a population just now.
    n_chains
        Chains of the run.
    done
        Share of all populations of all chains.
    best_log_joint, n_models, n_features, log_mass
        Of all chains: the best, and sums, in which what several chains found counts as often.
    elapsed, seconds_left
        Seconds since the run began, and what is left of it as far as one can tell.
    """

    latest: Progress
    n_chains: int
    done: float
    best_log_joint: float
    log_mass: float
    n_models: int
    n_features: int
    elapsed: float
    seconds_left: float


Report = Callable[[RunProgress], None]


def run_chains(
    problem: SearchProblem,
    n_chains: int,
    random_state: int | np.random.SeedSequence | None = None,
    *,
    n_jobs: int | None = None,
    checkpoint: str | Path | None = None,
    report: Report | None = None,
) -> list[ChainResult]:
    """Run chains to their end; each depends on the seed and its number alone, wherever and whenever it runs.

    Parameters
    ----------
    n_jobs
        How many at a time, as in joblib.
    checkpoint
        A folder to which every population is written, and from which a run that was stopped goes on.
    report
        Called after each population.
    """
    root = _seed_sequence(random_state)
    with contextlib.ExitStack() as stack:
        stack.enter_context(one_thread())
        store = None
        if checkpoint is not None:
            store = stack.enter_context(contextlib.closing(Checkpoint(checkpoint, problem, root)))
            root = store.root
        seeds = spawned(np.random.SeedSequence() if root is None else root, n_chains)
        first = start_chain(problem, seeds[0], Workspace(problem))
        chains = [
            ChainResult(number, with_seed(first, seed), VisitedModels(problem.config.max_models))
            for number, seed in enumerate(seeds)
        ]
        run = _Run(problem, chains, store, report)
        run.restore()
        if run.waiting:
            stack.enter_context(run.heeding_interrupts())
            run.conduct(hire(problem, n_jobs))
    for chain in chains:
        chain.visited.truncate(chain.costs)
    run.raise_or_warn()
    return chains


def _seed_sequence(random_state: int | np.random.SeedSequence | None) -> np.random.SeedSequence | None:
    if random_state is None or isinstance(random_state, np.random.SeedSequence):
        return random_state
    if isinstance(random_state, int | np.integer) and not isinstance(random_state, bool) and random_state >= 0:
        return np.random.SeedSequence(int(random_state))
    raise SettingError(f"random_state must be a whole number of 0 or more, or None; got {random_state!r}.")


def spawned(root: np.random.SeedSequence, n_chains: int) -> list[np.random.SeedSequence]:
    """Seeds of chains, whatever was spawned from the root before."""
    return [np.random.SeedSequence(root.entropy, spawn_key=(*root.spawn_key, number)) for number in range(n_chains)]


@dataclass(eq=False)
class _Active:
    """A chain that is being advanced."""

    chain: ChainResult
    deadline: float
    workspace: Workspace | None
    n_failures: int = 0


class _Run:
    """The chains of a run and what happens to them."""

    def __init__(
        self, problem: SearchProblem, chains: Sequence[ChainResult], store: Checkpoint | None, report: Report | None
    ) -> None:
        self.problem = problem
        self.chains = chains
        self.waiting: deque[ChainResult] = deque()
        self._store = store
        self._report = report
        self._began = time.perf_counter()
        self._n_restored = 0
        self._is_interrupted = False
        self._errors: dict[int, Exception] = {}

    def restore(self) -> None:
        """Take over what a checkpoint has."""
        for chain in self.chains:
            if self._store is not None:
                for discovery in self._store.restore(chain.number):
                    chain.absorb(discovery, self.problem.config)
            if chain.ending is None:
                self.waiting.append(chain)
        self._n_restored = sum(len(chain.history) for chain in self.chains)

    def conduct(self, workers: Workers) -> None:
        """Advance the chains until all have ended or there is a reason to stop."""
        running: dict[Future[list[Discovery]], _Active] = {}
        try:
            if workers.n_workers > 1:
                self._explore_here(self.waiting[0])
            while (self.waiting or running) and not self._is_interrupted:
                while self.waiting and len(running) < workers.n_workers:
                    active = self._activate(workers, len(running) + len(self.waiting))
                    self._submit(workers, active, running)
                self._collect(workers, running, _POLL)
            if running:
                wait(running, timeout=_GRACE)
                self._collect(workers, running, 0.0)
        finally:
            workers.close(abandon=bool(running))

    def _explore_here(self, chain: ChainResult) -> None:
        """Explore one population in this process, so that kernels are compiled once and not by all workers at once."""
        self._absorb(chain, advance(self.problem, chain.state, 1)[1])

    def _activate(self, workers: Workers, n_left: int) -> _Active:
        """Begin with the next chain, which may take its share of the time that is left."""
        chain = self.waiting.popleft()
        now, limit = time.perf_counter(), self.problem.config.max_seconds
        deadline = np.inf
        if limit is not None:
            left = max(self._began + limit - now, 0.0)
            deadline = now + left * min(workers.n_workers / n_left, 1.0)
        return _Active(chain, deadline, workers.make_workspace())

    def _submit(self, workers: Workers, active: _Active, running: dict[Future[list[Discovery]], _Active]) -> None:
        if active.chain.ending is None:
            running[workers.submit(active.chain.state, active.workspace)] = active

    def _collect(self, workers: Workers, running: dict[Future[list[Discovery]], _Active], seconds: float) -> None:
        """Take in what is ready and send chains that have not ended on their way again."""
        for future in wait(running, timeout=seconds, return_when=FIRST_COMPLETED).done:
            active = running.pop(future)
            chain = active.chain
            try:
                found = future.result()
            except Exception as error:
                self._fail(workers, active, error)
            else:
                active.n_failures = 0
                self._absorb(chain, found)
                if chain.ending is None and time.perf_counter() >= active.deadline:
                    chain.ending = OUT_OF_TIME
            if not self._is_interrupted:
                self._submit(workers, active, running)

    def _absorb(self, chain: ChainResult, found: Sequence[Discovery]) -> None:
        for discovery in found:
            if chain.ending is not None:  # the slice went on, not knowing that this was enough
                break
            if self._store is not None:
                self._store.append(chain.number, discovery)
            progress = chain.absorb(discovery, self.problem.config)
            if self._report is not None:
                try:
                    self._report(self._overall(progress))
                except KeyboardInterrupt:
                    self._is_interrupted = True

    def _fail(self, workers: Workers, active: _Active, error: Exception) -> None:
        """Try again from the last state, which nothing can have damaged, unless that failed before."""
        active.n_failures += 1
        active.workspace = workers.make_workspace()
        if active.n_failures >= _ATTEMPTS:
            active.chain.ending = FAILED
            self._errors[active.chain.number] = error

    def _overall(self, latest: Progress) -> RunProgress:
        each = self.problem.config.n_populations
        n_done = [each if chain.ending else min(len(chain.history), each) for chain in self.chains]
        done = sum(n_done) / (each * len(self.chains))
        lasts = [chain.history[-1] for chain in self.chains if chain.history]
        elapsed = time.perf_counter() - self._began
        fresh = done - self._n_restored / (each * len(self.chains))
        left = elapsed * (1.0 - done) / fresh if fresh > 0.0 else np.inf
        limit = self.problem.config.max_seconds
        return RunProgress(
            latest=latest,
            n_chains=len(self.chains),
            done=done,
            best_log_joint=max(last.best_log_joint for last in lasts),
            log_mass=float(np.logaddexp.reduce([last.log_mass for last in lasts])),
            n_models=sum(last.n_models for last in lasts),
            n_features=sum(last.n_features for last in lasts),
            elapsed=elapsed,
            seconds_left=left if limit is None else min(left, max(limit - elapsed, 0.0)),
        )

    @contextlib.contextmanager
    def heeding_interrupts(self) -> Iterator[None]:
        """Let Ctrl-C stop the run after the populations under way; a second one raises as usual."""
        usual = signal.getsignal(signal.SIGINT)
        is_ours_to_take = threading.current_thread() is threading.main_thread() and usual is signal.default_int_handler
        if not is_ours_to_take:
            yield
            return

        def interrupt(*_: object) -> None:
            self._is_interrupted = True
            signal.signal(signal.SIGINT, usual)
            if sys.stderr.isatty():
                print("\nStopping after the populations under way; Ctrl-C again to give up at once.", file=sys.stderr)

        signal.signal(signal.SIGINT, interrupt)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, usual)

    def raise_or_warn(self) -> None:
        """Say what is missing; an error if there is nothing at all."""
        for chain in self.chains:
            if chain.ending is None:
                chain.ending = INTERRUPTED
        if not any(chain.history for chain in self.chains):
            raise next(iter(self._errors.values()), KeyboardInterrupt())
        messages = [
            f"Chain {number} failed after {len(self.chains[number].history)} populations, {_ATTEMPTS} times: {error!r}."
            for number, error in self._errors.items()
        ]
        if self._is_interrupted:
            counts = [len(chain.history) for chain in self.chains]
            messages.append(f"The search was interrupted; populations explored by each chain: {counts}.")
        if messages:
            messages.append("What was found until then is all there.")
            if self._store is not None:
                messages.append("The checkpoint has it too: the same call goes on from there.")
            warnings.warn(" ".join(messages), SearchStoppedWarning, stacklevel=4)
