"""Several chains side by side, through time limits, interruptions, failures (section 3.2, "Parallelization strategy").

All decisions are taken here, in the process that asked for the chains; workers only advance them.
"""

import contextlib
import time
import warnings
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bgnlm.errors import SearchStoppedWarning, SettingError
from bgnlm.search.chains import ChainResult, Progress
from bgnlm.search.checkpoint import Checkpoint
from bgnlm.search.gmjmcmc import Discovery, Workspace, advance, start_chain, with_seed
from bgnlm.search.interrupts import Interrupts
from bgnlm.search.problem import SearchProblem
from bgnlm.search.visited import VisitedModels
from bgnlm.search.workers import Workers, check_jobs, hire, one_thread

_POLL = 0.1  # seconds
_ATTEMPTS = 3

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
    previous: Sequence[ChainResult] = (),
) -> list[ChainResult]:
    """Run chains to their end; each depends on the seed and its number alone, wherever and whenever it runs.

    Parameters
    ----------
    previous
        Chains of the same problem that have ended, to go on with; `n_populations` counts what they explored before.
    n_jobs
        How many at a time, as in joblib.
    checkpoint
        A folder to which every population is written, and from which a run that was stopped goes on.
    report
        Called after each population.
    """
    root, jobs = _seed_sequence(random_state), check_jobs(n_jobs)
    interrupts = Interrupts()
    with contextlib.ExitStack() as stack:
        stack.enter_context(interrupts.heeded())
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
        for chain in previous[:n_chains]:
            chains[chain.number] = chain.resumed()
        run = _Run(problem, chains, store, report, interrupts)
        run.restore()
        if run.waiting:
            run.conduct(hire(problem, jobs, len(run.waiting)))
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
    n_failures: int = 0
    is_alone: bool = False


class _Run:
    """The chains of a run and what happens to them."""

    def __init__(
        self,
        problem: SearchProblem,
        chains: Sequence[ChainResult],
        store: Checkpoint | None,
        report: Report | None,
        interrupts: Interrupts,
    ) -> None:
        self.problem = problem
        self.chains = chains
        self.waiting: deque[ChainResult] = deque()
        self._store = store
        self._report = report
        self._began = time.perf_counter()
        self._done_before = 0.0
        self._running: dict[Future[list[Discovery]], _Active] = {}
        self._ready: deque[_Active] = deque()
        self._suspects: deque[_Active] = deque()  # one of these may have killed its worker
        self._interrupts = interrupts
        self._errors: dict[int, Exception] = {}

    def restore(self) -> None:
        """Take over what a checkpoint has."""
        for chain in self.chains:
            if self._store is not None:
                for discovery in self._store.restore(chain.number):
                    chain.absorb(discovery, self.problem.config)
            if chain.ending is None:
                self.waiting.append(chain)
        self._done_before = self._share_done()

    def conduct(self, workers: Workers) -> None:
        """Advance the chains until all have ended or there is a reason to stop."""
        try:
            if workers.n_workers > 1:
                self._explore_here(self.waiting[0])
            while self._is_unfinished() and not self._interrupts.count:
                self._send_out(workers)
                self._collect()
            while self._running and self._interrupts.count < 2:  # what is under way is still wanted
                self._collect()
        finally:
            workers.close(abandon=bool(self._running))

    def _is_unfinished(self) -> bool:
        return bool(self.waiting or self._ready or self._suspects or self._running)

    def _explore_here(self, chain: ChainResult) -> None:
        """Explore one population in this process, so that kernels are compiled once and not by all workers at once."""
        try:
            _, found = advance(self.problem, chain.state, 1)
        except Exception:  # it fails again where that can be dealt with
            return
        self._absorb(chain, found)

    def _send_out(self, workers: Workers) -> None:
        """Give work to workers that have none; a chain whose worker may have died of it is advanced alone."""
        if self._suspects:
            if not self._running:
                suspect = self._suspects.popleft()
                suspect.is_alone = True
                self._submit(workers, suspect)
            return
        while (self._ready or self.waiting) and len(self._running) < workers.n_workers:
            self._submit(workers, self._ready.popleft() if self._ready else self._begin(workers))

    def _begin(self, workers: Workers) -> _Active:
        """Begin with the next chain."""
        n_left = len(self._running) + len(self.waiting)
        return _Active(self.waiting.popleft(), self._deadline(workers.n_workers / n_left))

    def _deadline(self, share: float) -> float:
        """Return when a chain that begins now has had its share of the time that is left."""
        now, limit = time.perf_counter(), self.problem.config.max_seconds
        return np.inf if limit is None else now + max(self._began + limit - now, 0.0) * min(share, 1.0)

    def _submit(self, workers: Workers, active: _Active) -> None:
        seconds = 0.0 if active.n_failures else max(active.deadline - time.perf_counter(), 0.0)
        try:
            future = workers.submit(active.chain.state, seconds)
        except Exception as error:
            future = Future()
            future.set_exception(error)
        self._running[future] = active

    def _collect(self) -> None:
        """Take in what is done; chains that have not ended are ready for more."""
        for future in wait(self._running, timeout=_POLL, return_when=FIRST_COMPLETED).done:
            active = self._running.pop(future)
            try:
                found = future.result()
            except BrokenExecutor as error:
                if active.is_alone:
                    self._fail(active, error)
                following = self._suspects
            except Exception as error:
                self._fail(active, error)
                following = self._ready
            else:
                active.n_failures, active.is_alone = 0, False
                self._absorb(active.chain, found)
                if active.chain.ending is None and time.perf_counter() >= active.deadline:
                    active.chain.ending = OUT_OF_TIME
                following = self._ready
            if active.chain.ending is None:
                following.append(active)

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
                    self._interrupts.count += 1

    def _fail(self, active: _Active, error: Exception) -> None:
        """Try again from the last state, which nothing can have damaged, unless that failed before."""
        active.n_failures += 1
        if active.n_failures >= _ATTEMPTS:
            active.chain.ending = FAILED
            self._errors[active.chain.number] = error

    def _share_done(self) -> float:
        each = self.problem.config.n_populations
        n_done = [each if chain.ending else min(len(chain.history), each) for chain in self.chains]
        return sum(n_done) / (each * len(self.chains))

    def _overall(self, latest: Progress) -> RunProgress:
        done = self._share_done()
        lasts = [chain.history[-1] for chain in self.chains if chain.history]
        elapsed = time.perf_counter() - self._began
        fresh = done - self._done_before
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

    def raise_or_warn(self) -> None:
        """Say what is missing; an error if there is nothing at all."""
        is_incomplete = any(chain.ending is None for chain in self.chains)
        for chain in self.chains:
            if chain.ending is None:
                chain.ending = INTERRUPTED
        if not any(chain.history for chain in self.chains):
            raise next(iter(self._errors.values()), KeyboardInterrupt())
        messages = [
            f"Chain {number} failed after {len(self.chains[number].history)} populations, {_ATTEMPTS} times: {error!r}."
            for number, error in self._errors.items()
        ]
        if is_incomplete:
            counts = [len(chain.history) for chain in self.chains]
            messages.append(f"The search was interrupted; populations explored by each chain: {counts}.")
        if messages:
            messages.append("What was found until then is all there.")
            if self._store is not None:
                messages.append("The checkpoint has it too: the same call goes on from there.")
            warnings.warn(" ".join(messages), SearchStoppedWarning, stacklevel=5)
