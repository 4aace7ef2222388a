"""Chains side by side: ``python -m benchmarks.parallel [speed-up startup checkpoint dask chains memory]``.

Needs ``exoplanets.csv`` in the folder named by BGNLM_DATA; "dask" needs the extra `dask`.
"""

import argparse
import contextlib
import gc
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import joblib
import numpy as np

from benchmarks.recovery import exoplanets
from bgnlm.posterior.summarize import summarize
from bgnlm.search.config import SearchConfig
from bgnlm.search.problem import SearchProblem, define_problem
from bgnlm.search.runner import run_chains
from bgnlm.search.union import unite


def kepler(informed: float) -> SearchProblem:
    return exoplanets("SemiMajorAxisAU", informed)(0)


def timed(problem: SearchProblem, n_chains: int, seed: int, **options: object) -> float:
    """Seconds that chains take."""
    gc.collect()
    began = time.perf_counter()
    run_chains(problem, n_chains, seed, **options)
    return time.perf_counter() - began


def speed_up() -> None:
    """One worker and two in turns; processes are there already, as in a second search."""
    for name, informed in (("plain", 0.0), ("informed", 0.5)):
        problem = kepler(informed)
        for backend in ("threading", "loky"):
            with joblib.parallel_config(backend=backend):
                run_chains(problem, 2, 0, n_jobs=2)
                times = [[timed(problem, 16, 1, n_jobs=n_jobs) for n_jobs in (1, 2)] for _ in range(3)]
            one, two = np.min(times, axis=0)
            ratio = np.median([a / b for a, b in times])
            print(f"16 {name} Kepler chains, {backend:<9} 1 worker {one:6.2f} s, 2 workers {two:6.2f} s: {ratio:.2f}")


def startup() -> None:
    """A first search of two short chains in a process of its own, with kernels compiled before."""
    run_program(
        """
    problem = kepler(0.0)
    run_chains(problem, 1, 0)
    with cluster(sys.argv[1]):
        first, second = (timed(problem, 2, 1) for _ in range(2))
    print(f"two chains, {sys.argv[1]:<10} first search {first:5.2f} s, second {second:5.2f} s")
""",
        ("sequential", "threading", "loky", "dask"),
    )


def run_program(body: str, arguments: tuple[str, ...]) -> None:
    """Run statements in a process of their own, once for each argument."""
    head = "import sys\nfrom benchmarks.parallel import *\nif __name__ == '__main__':"
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "program.py")
        path.write_text(head + body)
        for argument in arguments:
            subprocess.run([sys.executable, str(path), argument], check=True)


@contextlib.contextmanager
def cluster(backend: str) -> Iterator[object]:
    """Two workers of a backend of joblib; for Dask, two processes that are there already."""
    if backend != "dask":
        with joblib.parallel_config(backend=backend, n_jobs=2):
            yield None
        return
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as workers,
        Client(workers) as client,
        joblib.parallel_config(backend="dask"),
    ):
        yield client


def checkpoint() -> None:
    """With and without, in turns."""
    for name, informed in (("plain", 0.0), ("informed", 0.5)):
        problem = kepler(informed)
        run_chains(problem, 1, 0)
        ratios = []
        for seed in range(9):
            with tempfile.TemporaryDirectory() as folder:
                here = Path(folder, "here")
                without = timed(problem, 4, seed)
                with_it = timed(problem, 4, seed, checkpoint=here)
                size = sum(path.stat().st_size for path in here.iterdir())
                again = timed(problem, 4, seed, checkpoint=here)
            ratios.append(with_it / without - 1.0)
        low, middle, high = np.quantile(ratios, [0.25, 0.5, 0.75])
        print(
            f"4 {name} Kepler chains, checkpoint: {middle:+.1%} time (quartiles {low:+.1%}, {high:+.1%}); "
            f"{size / 4e3:.0f} kB a chain; {again:.2f} s to read 4 chains back"
        )


def dask() -> None:
    """Bytes that come in at the workers of a cluster on this machine, for a table of 51 MB."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400_000, 16))
    y = X[:, 0] * X[:, 1] + rng.normal(size=len(X))
    config = SearchConfig(population_size=6, n_populations=2, n_initial_inputs=3, informed=0.0)
    problem = define_problem(y, X, config=config)

    def received() -> int:
        import psutil

        return int(psutil.net_io_counters().bytes_recv)

    with cluster("dask"):
        for n_chains in (2, 8, 32):
            before = received()
            run_chains(problem, n_chains, 1)
            n_bytes = (received() - before) / 1e6
            print(f"{n_chains:3d} chains, 2 Dask workers, table of {X.nbytes / 1e6:.0f} MB: {n_bytes:7.1f} MB received")


def chains() -> None:
    """All of 64 informed chains, union and summary included."""
    problem = kepler(0.5)
    run_chains(problem, 2, 0, n_jobs=2)
    began = time.perf_counter()
    summarize(unite(problem, run_chains(problem, 64, 1, n_jobs=2)))
    print(f"64 informed Kepler chains on 2 workers: {time.perf_counter() - began:.1f} s")


def weak() -> SearchProblem:
    """A hundred rows and a weak signal: chains fill their tables of models."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 30))
    return define_problem(0.2 * X[:, :6].sum(axis=1) + rng.normal(size=100), X)


def memory() -> None:
    """Largest memory of the parent, with what Python and the kernels take; Linux only."""
    run_program(
        """
    problem = weak() if sys.argv[1] == "weak" else kepler(0.5)
    run_chains(problem, 1, 0)
    peak = lambda: int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 2**10
    before, began = peak(), time.perf_counter()
    chains = run_chains(problem, 64, 1, n_jobs=2)
    searched = time.perf_counter() - began
    posterior = summarize(unite(problem, chains))
    united = time.perf_counter() - began - searched
    n_models = sum(len(chain.visited) for chain in chains)
    print(f"64 chains of 40 populations, {sys.argv[1]}: {before:.0f} MB before, {peak():.0f} MB at most; "
          f"{n_models:,} models; {searched:.0f} s, union {united:.1f} s")
""",
        ("Kepler", "weak"),
    )


PARTS = {
    "speed-up": speed_up,
    "startup": startup,
    "checkpoint": checkpoint,
    "dask": dask,
    "chains": chains,
    "memory": memory,
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", nargs="*", metavar="PART", help=f"any of {', '.join(PARTS)}; all if none is named")
    for name in parser.parse_args().part or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
