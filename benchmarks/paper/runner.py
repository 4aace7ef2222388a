"""Runs of cells in processes of their own; results are written as they come, and those that are there stay."""

import multiprocessing
import re
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.paper.examples import Cell
from benchmarks.records import append, read

_SEPARATOR = re.compile(r"[^\w.+]+")


class Task(NamedTuple):
    """One run of a cell that is to be done."""

    cell: Cell
    seed: int


def path_of(folder: Path, cell: Cell) -> Path:
    """File of the runs of a cell."""
    name = "--".join(_SEPARATOR.sub("_", part) for part in (cell.group, cell.method, cell.settings) if part)
    return folder / cell.example / f"{name}.jsonl"


def missing(folder: Path, cells: Sequence[Cell], n_runs: int) -> list[Task]:
    """Runs that are not there; a cell without chance has one. The first runs of all cells come first."""
    tasks = []
    for cell in cells:
        done = {line["seed"] for line in read(path_of(folder, cell))}
        tasks += [Task(cell, seed) for seed in range(n_runs if cell.is_random else min(n_runs, 1)) if seed not in done]
    return sorted(tasks, key=lambda task: task.seed)


def run(cell: Cell, seed: int) -> dict[str, Any]:
    """One run with all that is needed to find its row again."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of separation, of constant columns, of networks that have not converged
        with np.errstate(all="ignore"):
            began = time.process_time()
            result = cell.run(seed)
            result["cpu"] = round(time.process_time() - began, 3)
    return {"group": cell.group, "method": cell.method, "settings": cell.settings, "seed": seed, **result}


def complete(folder: Path, cells: Sequence[Cell], n_runs: int, n_jobs: int) -> int:
    """Do what is missing; the answer is how many runs failed."""
    tasks = missing(folder, cells, n_runs)
    commit, n_failed = _commit(), 0
    progress = _Progress(folder, tasks, n_jobs)
    for task, future in _finished(tasks, n_jobs):
        if (error := future.exception()) is not None:
            n_failed += 1
            progress.say(f"{task.cell.method} ({task.cell.settings}), seed {task.seed}: {error!r}")
        else:
            append(path_of(folder, task.cell), future.result() | {"commit": commit})
        progress.count(task)
    return n_failed


def _finished(tasks: Sequence[Task], n_jobs: int) -> Iterator[tuple[Task, Future[dict[str, Any]]]]:
    if n_jobs == 1 or not tasks:
        yield from ((task, _done_here(task)) for task in tasks)
        return
    # Processes that start afresh: libraries with threads of their own do not survive a fork.
    with ProcessPoolExecutor(n_jobs, mp_context=multiprocessing.get_context("spawn")) as pool:
        futures = {pool.submit(run, task.cell, task.seed): task for task in tasks}
        try:
            for future in as_completed(futures):
                yield futures[future], future
        finally:
            pool.shutdown(cancel_futures=True)


def _done_here(task: Task) -> Future[dict[str, Any]]:
    future: Future[dict[str, Any]] = Future()
    try:
        future.set_result(run(task.cell, task.seed))
    except Exception as error:  # as a pool does it
        future.set_exception(error)
    return future


class _Progress:
    """A line with the runs done and the time left, by the mean time of the runs of each cell so far."""

    def __init__(self, folder: Path, tasks: Sequence[Task], n_jobs: int) -> None:
        self._folder, self._left, self._n_tasks, self._n_jobs = folder, list(tasks), len(tasks), n_jobs
        self._began = time.perf_counter()

    def count(self, task: Task) -> None:
        self._left.remove(task)
        n_done, elapsed = self._n_tasks - len(self._left), time.perf_counter() - self._began
        left = self._seconds_left(elapsed * self._n_jobs / n_done)
        times = timedelta(seconds=round(elapsed)), timedelta(seconds=round(left))
        line = f"{n_done} of {self._n_tasks} runs, {times[0]} so far, about {times[1]} left ({task.cell.method})"
        sys.stderr.write(f"\r{line:<110}" + ("" if self._left else "\n"))
        sys.stderr.flush()

    def say(self, message: str) -> None:
        sys.stderr.write(f"\n{message}\n")

    def _seconds_left(self, by_default: float) -> float:
        """Of cells without a run, `by_default` for each run."""
        expected: dict[Path, float] = {}
        for task in self._left:
            path = path_of(self._folder, task.cell)
            if path not in expected:
                seconds = [line["seconds"] for line in read(path)]
                expected[path] = float(np.mean(seconds)) if seconds else by_default
        return sum(expected[path_of(self._folder, task.cell)] for task in self._left) / self._n_jobs


def _commit() -> str:
    """State of the sources, if they are under version control."""
    command = ["git", "describe", "--always", "--dirty"]
    done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False)
    return done.stdout.strip()
