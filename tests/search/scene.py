"""A small search as a program of its own, for tests that interrupt and kill it: ``python -m tests.search.scene``.

It writes the digest of its result to a file, so that results can be compared to the last bit.
"""

import argparse
import contextlib
import os
import signal
import sys
import time
import warnings
from hashlib import blake2b
from pathlib import Path

import joblib
import numpy as np

from bgnlm.errors import SearchStoppedWarning
from bgnlm.posterior.summarize import summarize
from bgnlm.search.config import SearchConfig
from bgnlm.search.problem import define_problem
from bgnlm.search.runner import run_chains
from bgnlm.search.union import unite

N_CHAINS = 3
SEED = 5


def problem(n_populations=8, **settings):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 4))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + 0.2 * rng.normal(size=60)
    config = SearchConfig(population_size=8, n_populations=n_populations, n_candidates=80, **settings)
    return define_problem(y, X, config=config)


@contextlib.contextmanager
def backend(name, n_jobs):
    """The workers of joblib by name; for "dask" a cluster of so many processes."""
    if name == "serial":
        yield None
    elif name == "dask":
        from distributed import Client, LocalCluster

        with (
            LocalCluster(n_workers=n_jobs, threads_per_worker=1, dashboard_address=":0") as cluster,
            Client(cluster) as client,
            joblib.parallel_config(backend="dask"),
        ):
            yield client
    else:
        with joblib.parallel_config(backend=name, n_jobs=n_jobs):
            yield None


def digest(problem, chains):
    """Everything that must not depend on how chains were run."""
    state = blake2b(digest_size=16)
    for chain in chains:
        rows = chain.visited.rows()
        for array in (rows.keys, rows.log_marginal, rows.starts, rows.members, chain.tally, chain.state.model):
            state.update(array.tobytes())
        for array in (chain.costs, chain.classes.fingerprints):
            state.update(array.tobytes())
        history = [(p.n_explored, p.best_log_joint, p.log_mass, p.n_models, p.n_scored) for p in chain.history]
        features = [str(feature) for feature in (*chain.classes.representatives, *chain.state.features)]
        state.update(repr((chain.ending, chain.state.random_state, history, features)).encode())
    posterior = summarize(unite(problem, chains))
    state.update(posterior.inclusion_probabilities.tobytes())
    return state.hexdigest()


def dying_write(n_writes):
    """`os.write`, but the process is killed in the middle of one."""
    write, left = os.write, [n_writes]

    def half(file, data):
        left[0] -= 1
        if not left[0]:
            write(file, data[: len(data) // 2])
            os.kill(os.getpid(), signal.SIGKILL)
        return write(file, data)

    return half


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--backend", default="serial")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--populations", type=int, default=8)
    parser.add_argument("--slowly", type=float, default=0.0, help="seconds to wait after each population")
    parser.add_argument("--die-in-write", type=int, help="be killed half-way through this write to a journal")
    parser.add_argument("--checkpoint")
    parser.add_argument("--output", required=True)
    arguments = parser.parse_args()
    search = problem(arguments.populations)
    if arguments.die_in_write is not None:
        os.write = dying_write(arguments.die_in_write)
    with backend(arguments.backend, arguments.jobs), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", SearchStoppedWarning)
        chains = run_chains(
            search,
            N_CHAINS,
            SEED,
            checkpoint=arguments.checkpoint,
            report=lambda _: (print("population", flush=True), time.sleep(arguments.slowly)),
        )
    stopped = sum(issubclass(warning.category, SearchStoppedWarning) for warning in caught)
    n_explored = [len(chain.history) for chain in chains]
    result = f"{digest(search, [chain for chain in chains if chain.history])} {stopped} {sum(n_explored)}"
    temporary = Path(arguments.output + ".partial")
    temporary.write_text(result)
    temporary.replace(arguments.output)


if __name__ == "__main__":
    sys.exit(main())
