"""Speed of the search: ``python -m benchmarks.search [mjmcmc] [exoplanets] [breast-cancer] [rows] [million]``.

Rates say whether models are distinct and how large they are. The parts named after data sets need them in the folder
named by BGNLM_DATA. Set OPENBLAS_NUM_THREADS=1 for figures of one core.
"""

import csv
import os
import resource
import sys
import time
from pathlib import Path

import numpy as np

from benchmarks.timing import best_time
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.search.config import Limits, SearchConfig
from bgnlm.search.explore import stored_models
from bgnlm.search.mjmcmc import KERNELS, MjmcmcSettings, run_mjmcmc
from bgnlm.search.prior import ModelPrior
from bgnlm.search.problem import define_problem
from bgnlm.search.runner import run_chains
from bgnlm.search.target import gram_target


def linear_data(n_rows: int, n_columns: int, n_true: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_rows, n_columns))
    return 0.5 * X[:, :n_true].sum(axis=1) + rng.normal(size=n_rows), X


def read(name: str) -> list[dict[str, str]]:
    with Path(os.environ["BGNLM_DATA"], name).open(newline="") as file:
        return list(csv.DictReader(file))


def mjmcmc() -> None:
    """Whole loop of Algorithm 1 on 40 columns, against least squares of NumPy on models of the same sizes."""
    print("MJMCMC, 40 Gaussian columns, n = 1000, one core")
    for n_true in (10, 20):
        y, X = linear_data(1000, 40, n_true)
        models, costs = check_likelihood(y).population(X), np.full(40, np.log(1000.0))
        start = np.zeros(40, np.bool_)
        n_steps = 50_000

        def go(n_steps: int = n_steps, models=models, costs=costs, start=start):
            target = gram_target(models, costs, 40, 1000)
            return run_mjmcmc(np.random.default_rng(2), target, MjmcmcSettings(), start, n_steps)

        go(200)
        began = time.perf_counter()
        result = go()
        seconds = time.perf_counter() - began
        distinct, scored = result.target.store.count
        included = stored_models(result.target.store, 40)[0]
        design = np.column_stack([np.ones(1000), X])
        some = included[:: max(1, len(included) // 200)]

        def by_lstsq(some=some, design=design, y=y) -> None:
            for row in some:
                np.linalg.lstsq(design[:, np.append(True, row)], y, rcond=None)

        plain = len(some) / best_time(by_lstsq, 3)
        print(
            f"  true size {n_true}: {scored / seconds:,.0f} models/s scored, {distinct / seconds:,.0f}/s distinct, "
            f"mean size {included.sum(axis=1).mean():.1f}; lstsq {plain:,.0f}/s, ratio {scored / seconds / plain:,.0f}"
        )
        print("    accepted / used:", ", ".join(f"{k} {a}/{u}" for k, u, a in zip(KERNELS, *result.tally, strict=True)))


def exoplanets() -> None:
    """GMJMCMC with 40 populations of 15 features, one plain chain."""
    rows, response = read("exoplanets.csv"), "SemiMajorAxisAU"
    names = [name for name in rows[0] if name != response]
    X = np.array([[float(row[name]) for name in names] for row in rows])
    y = np.array([float(row[response]) for row in rows])
    for label, settings in (
        ("enumerated", {"engine": "exhaustive"}),
        ("MJMCMC, 250 steps, 10,000 distinct", {"engine": "mjmcmc", "min_models": 10_000, "n_final_steps": 250}),
        ("enumerated, informed", {"engine": "exhaustive", "informed": 0.5}),
    ):
        problem = define_problem(
            y,
            X,
            names=names,
            coefficient_prior="script",
            transforms="kepler-g1",
            prior=ModelPrior(complexity="oc+1"),
            config=SearchConfig(
                population_size=15,
                n_populations=40,
                **({"informed": 0.0} | settings),
                limits=Limits(max_depth=5, max_width=15, max_model_size=15, max_operations=4),
            ),
        )
        report(f"exoplanets, {label}", problem)


def report(label: str, problem, n_runs: int = 5) -> None:
    """Time chains and count their models."""
    run_chains(problem, 1, 0)
    times, models, scored = [], [], []
    for seed in range(1, n_runs + 1):
        began = time.perf_counter()
        chain = run_chains(problem, 1, seed)[0]
        times.append(time.perf_counter() - began)
        models.append(chain.visited.n_scored)
        scored.append(chain.n_scored)
    print(
        f"{label}: median {np.median(times):.2f} s, fastest {min(times):.2f} s a chain; "
        f"stored {np.median(models):,.0f} distinct models, scored {np.median(scored):,.0f}"
    )


def breast_cancer() -> None:
    """Logistic models, n = 143, 10 populations of 20 features, 7,000 distinct models scored exactly, both engines."""
    rows = [row for row in read("breast_cancer.csv") if row["split"] == "train"]
    names = [name for name in rows[0] if name not in ("split", "malignant", "id")]
    X = np.array([[float(row[name]) for name in names] for row in rows])
    y = np.array([float(row["malignant"]) for row in rows])
    for engine in ("surrogate", "mjmcmc"):
        problem = define_problem(
            y,
            X,
            names=names,
            family="binomial",
            transforms="classification",
            config=SearchConfig(
                population_size=20,
                n_populations=10,
                engine=engine,
                informed=0.0,
                min_models=7000 if engine == "surrogate" else 0,
                n_draws=800,
                n_explore_steps=1000,
                limits=Limits(max_depth=6, max_width=20, max_model_size=20),
            ),
        )
        run_chains(problem, 1, 0)
        for seed in (1, 2, 3):
            began = time.perf_counter()
            chain = run_chains(problem, 1, seed)[0]
            print(
                f"breast cancer, {engine}: {time.perf_counter() - began:.2f} s, "
                f"{chain.visited.n_scored:,} distinct exact scores, log mass found {chain.log_mass:.2f}"
            )


def rows() -> None:
    """Cost of a model does not depend on the number of rows."""
    for n_rows in (10**3, 10**4, 10**5, 10**6):
        y, X = linear_data(n_rows, 15, 5)
        models = check_likelihood(y).population(X)
        costs = np.full(15, np.log(float(n_rows)))
        start = np.zeros(15, np.bool_)
        gram_target(models, costs, 15, 2**15)

        def go(models=models, costs=costs, start=start):
            target = gram_target(models, costs, 15, 2**15)
            return run_mjmcmc(np.random.default_rng(2), target, MjmcmcSettings(), start, 5000)

        seconds = best_time(go, 3)
        scored = go().target.store.count[1]
        print(f"n = {n_rows:>9,}: {1e6 * seconds / scored:.2f} us a model scored by MJMCMC, 15 columns")


def million() -> None:
    """A million rows by 10 inputs, 20 populations of 15 features, informed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(10**6, 10))
    y = X[:, 0] * X[:, 1] + np.sin(X[:, 2]) + 0.5 * X[:, 3] + rng.normal(size=10**6)
    problem = define_problem(y, X, config=SearchConfig(population_size=15, n_populations=20))
    began = time.perf_counter()
    chain = run_chains(problem, 1, 0)[0]
    seconds = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(
        f"a million rows: {seconds:.1f} s with compilation, {chain.n_scored:,} models scored; peak memory {peak:.2f} GB"
    )


PARTS = {"mjmcmc": mjmcmc, "exoplanets": exoplanets, "breast-cancer": breast_cancer, "rows": rows, "million": million}

if __name__ == "__main__":
    for part in sys.argv[1:] or PARTS:
        PARTS[part]()
