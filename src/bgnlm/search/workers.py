"""Where chains are advanced: in this thread, in others, in processes of this machine, or on a Dask cluster.

Which of them, and how many, is joblib's to say: `n_jobs` and ``joblib.parallel_config``. All are futures to the caller.
A task is a slice of a chain: its state goes out, its next discoveries come back, and nothing is kept in between, so
that a slice that was lost is simply sent again.
"""

import contextlib
import mmap
import os
import pickle
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Protocol

import cloudpickle
import loky
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

from bgnlm._validation import check_count
from bgnlm.errors import SettingError
from bgnlm.search.gmjmcmc import ChainState, Discovery, Workspace, step
from bgnlm.search.problem import SearchProblem

_SLICE = 0.25  # seconds; the state of a chain travels in a few milliseconds
_RESUMPTIONS = 10.0  # a slice takes at least so many times what it takes to resume the chain
_WATCH = 1.0  # seconds
_IDLE = 60  # seconds until processes that have nothing to do are given up
# Sums must be added up in the same order everywhere, and n workers must not use n times all cores.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


class Workers(Protocol):
    """Something that advances chains, `n_workers` of them at a time."""

    n_workers: int

    def submit(self, state: ChainState, workspace: Workspace | None) -> "Future[list[Discovery]]":
        """Advance a chain for a while; the workspace is one that was left there, if it is at hand."""

    def make_workspace(self) -> Workspace | None:
        """Return a workspace for another chain, if workers can use one."""

    def close(self, abandon: bool) -> None:
        """Let go of everything; with `abandon`, also of what is under way."""


def hire(problem: SearchProblem, n_jobs: int | None) -> Workers:
    """Return the workers that joblib would use here for so many jobs."""
    if n_jobs is not None and (n_jobs == 0 or isinstance(n_jobs, bool) or not isinstance(n_jobs, int)):
        raise SettingError(
            f"n_jobs must be a whole number other than 0, or None; got {n_jobs!r}. Use -1 for all cores."
        )
    backend, usual = get_active_backend()
    n_workers = check_count(backend.effective_n_jobs(usual if n_jobs is None else n_jobs), "n_jobs", low=1)
    kind = type(backend).__name__
    if kind == "DaskDistributedBackend":
        return DaskWorkers(problem, n_workers, backend.client)
    if n_workers == 1 or kind == "SequentialBackend":
        return LocalWorkers(problem, 1)
    if kind == "ThreadingBackend":
        return LocalWorkers(problem, n_workers)
    if kind in ("LokyBackend", "MultiprocessingBackend"):
        return ProcessWorkers(problem, n_workers)
    raise SettingError(
        f"chains cannot run on joblib's backend {kind}. Use joblib.parallel_config with 'loky', 'threading' or 'dask'."
    )


@contextlib.contextmanager
def one_thread() -> Iterator[None]:
    """Keep linear algebra to one thread."""
    with threadpool_limits(1):
        yield


class LocalWorkers:
    """Chains advance in this process, one population at a time: at once if there is one worker, else in threads."""

    def __init__(self, problem: SearchProblem, n_workers: int) -> None:
        self.n_workers = n_workers
        self._problem = problem
        self._threads: Executor | None = ThreadPoolExecutor(n_workers) if n_workers > 1 else None

    def make_workspace(self) -> Workspace:
        """Return a workspace for another chain."""
        return Workspace(self._problem)

    def submit(self, state: ChainState, workspace: Workspace | None) -> "Future[list[Discovery]]":
        """Explore one population."""
        work = workspace or self.make_workspace()
        if self._threads is not None:
            return self._threads.submit(_one_population, work, state)
        future: Future[list[Discovery]] = Future()
        try:
            future.set_result(_one_population(work, state))
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self, abandon: bool) -> None:
        """Wait for threads, or leave them to end by themselves."""
        if self._threads is not None:
            self._threads.shutdown(wait=not abandon, cancel_futures=True)


def _one_population(work: Workspace, state: ChainState) -> list[Discovery]:
    return [step(work, state)[1]]


def advance_for_a_while(problem: SearchProblem, state: ChainState, seconds: float) -> list[Discovery]:
    """Explore populations until the time is over or the last one was explored, at least one."""
    began = time.perf_counter()
    found: list[Discovery] = []
    with one_thread():
        work = Workspace(problem)
        work.resume(state)
        enough = max(seconds, _RESUMPTIONS * (time.perf_counter() - began))
        while not found or (time.perf_counter() - began < enough and state.n_explored < problem.config.n_populations):
            state, discovery = step(work, state)
            found.append(discovery)
    return found


class ProcessWorkers:
    """Chains advance in other processes of this machine, which read the problem from a file they share.

    Processes stay for the next search; one that dies takes its slice with it, and all are replaced.
    """

    def __init__(self, problem: SearchProblem, n_workers: int) -> None:
        self.n_workers = n_workers
        self._file = SharedFile(problem)
        for _ in range(n_workers):  # they start and import while the first population is explored here
            _processes(n_workers).submit(_nothing)

    def make_workspace(self) -> None:
        """Return nothing: a workspace stays where it is."""

    def submit(self, state: ChainState, workspace: Workspace | None) -> "Future[list[Discovery]]":
        """Advance a chain for a while."""
        del workspace
        try:
            return self._submit(state)
        except BrokenExecutor:
            _dismiss()
            return self._submit(state)

    def _submit(self, state: ChainState) -> "Future[list[Discovery]]":
        pool = _processes(self.n_workers)
        future: Future[list[Discovery]] = pool.submit(_advance_from_file, self._file.path, state, _SLICE)
        return future

    def close(self, abandon: bool) -> None:
        """Keep the processes for the next search, unless they are busy with something that nobody waits for."""
        if abandon:
            _dismiss()
        self._file.remove()


_pools: dict[int, Any] = {}  # the processes that stay, by their number; joblib's own are left to it


def _processes(n_workers: int) -> Any:
    if n_workers not in _pools:
        _dismiss()
        _pools[n_workers] = loky.ProcessPoolExecutor(
            n_workers, timeout=_IDLE, initializer=_begin_work, initargs=(os.getpid(),), env=_ONE_THREAD
        )
    return _pools[n_workers]


def _dismiss() -> None:
    """Stop all processes, whatever they do."""
    while _pools:
        _pools.popitem()[1].shutdown(wait=True, kill_workers=True)


def _begin_work(parent: int) -> None:
    """Prepare a process: it leaves Ctrl-C, which reaches all of them, to the parent, and ends when that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os._exit(1)


def _nothing() -> None:
    """Do nothing, in a process that has imported all this."""


class SharedFile:
    """A problem in a file that other processes of the machine map into their memory: one copy for all of them."""

    def __init__(self, problem: SearchProblem) -> None:
        buffers: list[pickle.PickleBuffer] = []
        head = cloudpickle.dumps(problem, protocol=5, buffer_callback=buffers.append)
        blocks = [head, *(buffer.raw() for buffer in buffers)]
        handle, self.path = tempfile.mkstemp(prefix="bgnlm-", suffix=".problem")
        with os.fdopen(handle, "wb") as file:
            file.write(pickle.dumps([len(block) for block in blocks]))
            for block in blocks:
                file.write(b"\0" * (-file.tell() % 64))
                file.write(block)

    @staticmethod
    def read(path: str) -> SearchProblem:
        """Map a file; what is written to the arrays stays in this process."""
        with Path(path).open("rb") as file:
            lengths = pickle.load(file)
            place = file.tell()
            mapped = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY))
        blocks = []
        for length in lengths:
            place += -place % 64
            blocks.append(mapped[place : place + length])
            place += length
        problem: SearchProblem = pickle.loads(blocks[0], buffers=blocks[1:])
        return problem

    def remove(self) -> None:
        """Remove the file; who has mapped it keeps it."""
        Path(self.path).unlink(missing_ok=True)


_problem_of: dict[str, SearchProblem] = {}


def _advance_from_file(path: str, state: ChainState, seconds: float) -> list[Discovery]:
    if path not in _problem_of:
        _problem_of.clear()
        _problem_of[path] = SharedFile.read(path)
    return advance_for_a_while(_problem_of[path], state, seconds)


class DaskWorkers:
    """Chains advance on a Dask cluster. The problem is sent to each of its workers once."""

    def __init__(self, problem: SearchProblem, n_workers: int, client: Any) -> None:
        self.n_workers = n_workers
        self._problem = problem
        self._client = client
        self._futures = client.get_executor(pure=False)
        self._sent = self._send()

    def _send(self) -> Any:
        return self._client.scatter([self._problem], broadcast=True, hash=False)[0]

    def make_workspace(self) -> None:
        """Return nothing: a workspace stays where it is."""

    def submit(self, state: ChainState, workspace: Workspace | None) -> "Future[list[Discovery]]":
        """Advance a chain for a while."""
        del workspace
        if self._sent.status != "finished":  # all workers that had it are gone
            self._sent = self._send()
        future: Future[list[Discovery]] = self._futures.submit(advance_for_a_while, self._sent, state, _SLICE)
        return future

    def close(self, abandon: bool) -> None:
        """Take back what is under way and leave the cluster as it was."""
        self._futures.shutdown(wait=not abandon)
        self._sent.release()
