"""Kill a search again and again: ``python -m benchmarks.soak [--kills 200] [--jobs 1 2]``.

A search with a checkpoint runs as a process of its own and gets SIGKILL at a random moment, several times, and is then
left to end. Its result must be that of a search nobody disturbed, to the last bit. Prints kills and differences.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path

import numpy as np

from bgnlm.posterior.summarize import summarize
from bgnlm.search.config import SearchConfig
from bgnlm.search.problem import define_problem
from bgnlm.search.runner import run_chains
from bgnlm.search.union import unite

KILLS_PER_SEARCH = 5


def search(seed: int, n_jobs: int, checkpoint: str | None) -> str:
    """Digest of everything that was found."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 5))
    y = X[:, 0] * X[:, 1] + np.tanh(2.0 * X[:, 2]) + 0.3 * rng.normal(size=100)
    family = ("gaussian", "binomial")[seed % 2]
    engine = ("auto", "mjmcmc")[seed // 2 % 2]
    config = SearchConfig(population_size=10, n_populations=20, n_candidates=100, engine=engine)
    response = y if family == "gaussian" else (y > 0).astype(float)
    problem = define_problem(response, X, family=family, config=config)
    chains = run_chains(problem, 4, seed, n_jobs=n_jobs, checkpoint=checkpoint, report=_say_that_it_began())
    state = blake2b(digest_size=16)
    for chain in chains:
        rows = chain.visited.rows()
        for array in (rows.keys, rows.log_marginal, rows.members, chain.tally, chain.costs):
            state.update(array.tobytes())
        state.update(repr((chain.state.random_state, [str(f) for f in chain.classes.representatives])).encode())
    state.update(summarize(unite(problem, chains)).inclusion_probabilities.tobytes())
    return state.hexdigest()


def _say_that_it_began() -> Callable[[object], None]:
    began = []

    def report(_: object) -> None:
        if not began:
            began.append(True)
            print("began", flush=True)

    return report


def start(seed: int, n_jobs: int, checkpoint: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "benchmarks.soak", "--child", json.dumps([seed, n_jobs, checkpoint])]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def disturbed(draw: random.Random, seed: int, n_jobs: int) -> tuple[str, int]:
    """Digest of a search that was killed several times, and how many times that was."""
    n_kills = 0
    with tempfile.TemporaryDirectory() as folder:
        while True:
            process = start(seed, n_jobs, str(Path(folder, "checkpoint")))
            assert process.stdout is not None
            line = process.stdout.readline()
            if line == "began\n" and n_kills < KILLS_PER_SEARCH:
                time.sleep(draw.expovariate(1.0 / 0.3))
                if process.poll() is None:
                    process.kill()
                    n_kills += 1
                    process.communicate()
                    continue
            rest = process.communicate()[0]
            return (line + rest).split()[-1], n_kills


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--jobs", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(search(*json.loads(arguments.child)))
        return
    draw = random.Random(0)
    n_kills = n_searches = n_different = 0
    while n_kills < arguments.kills:
        seed, n_jobs = (
            n_searches,
            arguments.jobs[n_searches // 4 % len(arguments.jobs)],
        )  # each with all kinds of search
        with tempfile.TemporaryDirectory() as folder:
            expected = start(seed, 1, str(Path(folder, "checkpoint"))).communicate()[0].split()[-1]
        found, n = disturbed(draw, seed, n_jobs)
        n_kills, n_searches, n_different = n_kills + n, n_searches + 1, n_different + (found != expected)
        print(f"\r{n_kills} kills, {n_searches} searches, {n_different} differences", end="", flush=True)
    print()
    sys.exit(n_different > 0)


if __name__ == "__main__":
    main()
