"""Chains on a Dask cluster; needs the extra `dask`."""

import contextlib
from concurrent.futures import Future
from typing import Any
from uuid import uuid4

from distributed import WorkerPlugin, get_worker

from bgnlm.search.gmjmcmc import ChainState, Discovery
from bgnlm.search.problem import SearchProblem
from bgnlm.search.workers import SLICE, advance_elsewhere


class _ProblemPlugin(WorkerPlugin):
    """Brings the problem to every worker once, also to those that join later.

    Scattered data would not do: Dask drops copies that are not in use just now, and sends them again.
    """

    def __init__(self, problem: SearchProblem) -> None:
        self.name = f"bgnlm-{uuid4()}"
        self.problem = problem


def _advance_on_worker(name: str, state: ChainState, seconds: float) -> list[Discovery]:
    plugin: Any = get_worker().plugins[name]
    return advance_elsewhere(plugin.problem, state, seconds)


class DaskWorkers:
    """Chains advance on a cluster; Dask gives the work of workers that die to others."""

    def __init__(self, problem: SearchProblem, n_workers: int, client: Any) -> None:
        self.n_workers = n_workers
        self._client = client
        self._futures = client.get_executor(pure=False)
        plugin = _ProblemPlugin(problem)
        self._name = plugin.name
        client.register_plugin(plugin)

    def submit(self, state: ChainState, seconds: float) -> Future[list[Discovery]]:
        """Advance a chain for a while."""
        arguments = (_advance_on_worker, self._name, state, min(seconds, SLICE))
        future: Future[list[Discovery]] = self._futures.submit(*arguments)
        return future

    def close(self, abandon: bool) -> None:
        """Take back what is under way and leave the cluster as it was, if it is still there."""
        with contextlib.suppress(Exception):
            self._futures.shutdown(wait=not abandon)
            self._client.unregister_worker_plugin(self._name)
