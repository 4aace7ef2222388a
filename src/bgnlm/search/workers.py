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
from numbers import Integral
from pathlib import Path
from typing import Any, Protocol

import cloudpickle
import loky
from joblib.parallel import get_active_backend
from threadpoolctl import threadpool_limits

from bgnlm.errors import SettingError, WorkerError
from bgnlm.search.gmjmcmc import ChainState, Discovery, Workspace, step
from bgnlm.search.problem import SearchProblem

SLICE = 0.5  # seconds; the state of a chain travels in a few milliseconds
_WORKSPACES = 2  # that a worker keeps in case their chains come back to it
_WATCH = 1.0  # seconds
_IDLE = 60  # seconds until processes that have nothing to do are given up
_UNUSABLE = (BrokenExecutor, loky.process_executor.ShutdownExecutorError)  # what a pool says that cannot go on
# Sums must be added up in the same order everywhere, and n workers must not use n times all cores.
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)


class Workers(Protocol):
    """Something that advances chains, `n_workers` of them at a time."""

    n_workers: int

    def submit(self, state: ChainState, seconds: float) -> Future[list[Discovery]]:
        """Advance a chain for a while, at most so many seconds beyond one population."""

    def close(self, abandon: bool) -> None:
        """Let go of everything; with `abandon`, also of what is under way."""


def check_jobs(n_jobs: int | None) -> int | None:
    """Check for a number of jobs as joblib has them."""
    if n_jobs is None:
        return None
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, Integral) or n_jobs == 0:
        raise SettingError(f"n_jobs must be a whole number but 0, or None; got {n_jobs!r}. Use -1 for all cores.")
    return int(n_jobs)


def hire(problem: SearchProblem, n_jobs: int | None, n_chains: int) -> Workers:
    """Return the workers that joblib would use here for so many jobs, and no more than there are chains."""
    backend, usual = get_active_backend()
    n_workers = min(backend.effective_n_jobs(usual if n_jobs is None else n_jobs), n_chains)
    kind = type(backend).__name__
    if kind == "DaskDistributedBackend":
        from bgnlm.search.cluster import DaskWorkers

        return DaskWorkers(problem, n_workers, backend.client)
    if n_workers <= 1 or kind == "SequentialBackend":
        return LocalWorkers(problem, 1)
    if kind == "ThreadingBackend":
        return LocalWorkers(problem, n_workers)
    if kind in ("LokyBackend", "MultiprocessingBackend"):
        return ProcessWorkers(problem, n_workers)
    raise SettingError(
        f"chains cannot run on joblib's backend {kind}. Use joblib.parallel_config with 'loky', 'threading' or 'dask'."
    )


class _OneThread:
    """Keeps linear algebra to one thread while anybody wants that; the limit is one of the whole process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_users = 0
        self._limit: Any = None

    @contextlib.contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            self._n_users += 1
            if self._n_users == 1:
                self._limit = threadpool_limits(1)
        try:
            yield
        finally:
            with self._lock:
                self._n_users -= 1
                if self._n_users == 0:
                    self._limit.restore_original_limits()


one_thread = _OneThread()


class _Workspaces:
    """What chains left behind in this process, a few at a time."""

    def __init__(self, n_kept: int) -> None:
        self._n_kept = n_kept
        self._left: list[Workspace] = []
        self._lock = threading.Lock()

    def take(self, problem: SearchProblem, state: ChainState) -> Workspace:
        """Return the workspace of a chain, a new one if it is not here."""
        with self._lock:
            for work in self._left:
                if work.problem is problem and work.state is not None and state.is_same_as(work.state):
                    self._left.remove(work)
                    return work
        return Workspace(problem)

    def leave(self, work: Workspace) -> None:
        """Leave a workspace for later."""
        with self._lock:
            self._left.append(work)
            del self._left[: -self._n_kept]


def advance_for_a_while(
    problem: SearchProblem, state: ChainState, seconds: float, workspaces: _Workspaces
) -> list[Discovery]:
    """Explore populations until the time is over or the last one was explored, at least one.

    If exploring fails, what was found before is returned; the next attempt will fail at once.
    """
    began = time.perf_counter()
    found: list[Discovery] = []
    work = workspaces.take(problem, state)
    with one_thread():
        while not found or (time.perf_counter() - began < seconds and state.n_explored < problem.config.n_populations):
            try:
                state, discovery = step(work, state)
            except Exception:
                if found:
                    return found
                raise
            found.append(discovery)
    workspaces.leave(work)
    return found


class LocalWorkers:
    """Chains advance in this process, one population at a time: at once if there is one worker, else in threads."""

    def __init__(self, problem: SearchProblem, n_workers: int) -> None:
        self.n_workers = n_workers
        self._problem = problem
        self._workspaces = _Workspaces(n_workers)
        self._threads: Executor | None = ThreadPoolExecutor(n_workers) if n_workers > 1 else None

    def submit(self, state: ChainState, seconds: float) -> Future[list[Discovery]]:
        """Explore one population."""
        del seconds
        arguments = (self._problem, state, 0.0, self._workspaces)
        if self._threads is not None:
            return self._threads.submit(advance_for_a_while, *arguments)
        future: Future[list[Discovery]] = Future()
        try:
            future.set_result(advance_for_a_while(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    def close(self, abandon: bool) -> None:
        """Wait for threads, or leave them to end by themselves."""
        if self._threads is not None:
            self._threads.shutdown(wait=not abandon, cancel_futures=True)


_workspaces = _Workspaces(_WORKSPACES)  # of a process that works for another one


def advance_elsewhere(problem: SearchProblem, state: ChainState, seconds: float) -> list[Discovery]:
    """As `advance_for_a_while`; any error becomes one that can travel."""
    try:
        return advance_for_a_while(problem, state, seconds, _workspaces)
    except Exception as error:
        raise WorkerError(f"{type(error).__name__}: {error}") from None


class ProcessWorkers:
    """Chains advance in other processes of this machine, which read the problem from a file they share.

    Processes stay for the next search. If one dies, all are replaced.
    """

    def __init__(self, problem: SearchProblem, n_workers: int) -> None:
        self.n_workers = n_workers
        self._file = SharedFile(problem)
        try:
            self._pool = _take_pool(n_workers)
        except BaseException:
            self._file.remove()
            raise

    def submit(self, state: ChainState, seconds: float) -> Future[list[Discovery]]:
        """Advance a chain for a while."""
        arguments = (_advance_from_file, self._file.path, state, min(seconds, SLICE))
        try:
            future: Future[list[Discovery]] = _submit(self._pool, *arguments)
        except _UNUSABLE:
            _dismiss(self._pool)
            self._pool = _take_pool(self.n_workers)
            future = _submit(self._pool, *arguments)
        return future

    def close(self, abandon: bool) -> None:
        """Leave the processes for the next search, unless they are busy with something that nobody waits for."""
        if abandon:
            _dismiss(self._pool)
        else:
            _leave_pool(self.n_workers, self._pool)
        self._file.remove()


_idle: dict[int, Any] = {}  # pools that nobody uses, by the number of their processes; joblib's own are left to it
_idle_lock = threading.Lock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_idle.clear)  # they belong to the parent


def _take_pool(n_workers: int) -> Any:
    """Return processes that can work; they start and import while the first population is explored here."""
    with _idle_lock:
        pool = _idle.pop(n_workers, None)
    if pool is not None:
        try:
            return _started(pool, n_workers)
        except _UNUSABLE:  # a process died while nobody was looking
            _dismiss(pool)
    pool = loky.ProcessPoolExecutor(
        n_workers, timeout=_IDLE, initializer=_begin_work, initargs=(os.getpid(),), env=_ONE_THREAD
    )
    return _started(pool, n_workers)


def _started(pool: Any, n_workers: int) -> Any:
    for _ in range(n_workers):
        _submit(pool, _nothing)
    return pool


def _leave_pool(n_workers: int, pool: Any) -> None:
    with _idle_lock:
        others = [_idle.pop(number) for number in list(_idle)]
        _idle[n_workers] = pool
    for other in others:
        _dismiss(other)


def _dismiss(pool: Any) -> None:
    """Stop processes, whatever they do."""
    pool.shutdown(wait=True, kill_workers=True)


def _submit(pool: Any, *arguments: Any) -> Any:
    """Submit a task; Ctrl-C does not reach processes that this thread starts, not even while they start."""
    if not hasattr(signal, "pthread_sigmask"):
        return pool.submit(*arguments)
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return pool.submit(*arguments)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _begin_work(parent: int) -> None:
    """Prepare a process: it leaves Ctrl-C, which reaches all of them, to the parent, and ends when that ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()


def _end_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH)
    for path in list(_problem_of):  # the parent had no time to do it
        _remove(path)
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
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(pickle.dumps([len(block) for block in blocks]))
                for block in blocks:
                    file.write(b"\0" * (-file.tell() % 64))
                    file.write(block)
        except OSError as error:
            self.remove()
            raise WorkerError(
                f"The data cannot be written to {self.path}, where processes would read them: "
                f"{error.strerror or error}. Set TMPDIR to a folder with more room, or use threads or n_jobs=1."
            ) from None

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
        _remove(self.path)


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):  # some systems keep a file that somebody has mapped
        Path(path).unlink()


_problem_of: dict[str, SearchProblem] = {}


def _advance_from_file(path: str, state: ChainState, seconds: float) -> list[Discovery]:
    if path not in _problem_of:
        _problem_of.clear()
        _problem_of[path] = SharedFile.read(path)
    return advance_elsewhere(_problem_of[path], state, seconds)
