"""Models with latent components: ``python -m benchmarks.latent speed | simulation``.

`speed`: one model by nested Laplace. `simulation`: whether components and features are found, and how often intervals
at held-out positions cover; each data set is a line of JSON in the folder `--out`, and those that are there are not
done again. Example 5 of the paper is in `benchmarks.paper`.
"""

import argparse
import os
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np  # noqa: E402  (the number of threads is read when NumPy loads)
import pandas as pd  # noqa: E402

from benchmarks.records import append, read  # noqa: E402
from bgnlm import BGNLMRegressor, SearchConfig  # noqa: E402
from bgnlm.latent import AR1, IID, OU, RW1, Grouped  # noqa: E402
from bgnlm.latent.fields import LatentField  # noqa: E402
from bgnlm.latent.inner import InnerLaplace, LatentResponse, SlopePrior  # noqa: E402
from bgnlm.latent.layout import lay_out  # noqa: E402
from bgnlm.latent.nested_laplace import integrate  # noqa: E402
from bgnlm.latent.place import place  # noqa: E402
from bgnlm.likelihood.families import resolve_family  # noqa: E402

_HALF = 0.5


SIZES = (500, 5_000, 50_000)
FIELDS: tuple[LatentField, ...] = (AR1("t"), RW1("t"), OU("t"), IID("t"))
SEVERAL: tuple[tuple[str, tuple[LatentField, ...], int], ...] = (
    ("poisson", (RW1("t"), IID("t")), 500),
    ("poisson", (AR1("t"), RW1("t")), 500),
    ("poisson", (AR1("t"), Grouped("g")), 500),
    ("poisson", FIELDS, 500),
    ("gaussian", (AR1("t"),), 300),
    ("gaussian", (AR1("t"), Grouped("g")), 300),
    ("poisson", (Grouped("a"), Grouped("b")), 2000),
    ("gaussian", (Grouped("a"), Grouped("b")), 2000),
)


def speed(_: argparse.Namespace) -> None:
    """One Poisson model with three coefficients: from nothing, and from the modes of the model with two of them."""
    print(f"{'rows':>7} {'field':<6}{'cold ms':>9}{'warm ms':>9}{'without correction':>20}   (asked at 500: 60, 8)")
    rng = np.random.default_rng(1)
    for n in SIZES:
        effect = autoregression(rng, n, 0.9, 0.7)
        X = rng.normal(size=(n, 3))
        y = rng.poisson(np.exp(0.3 + X @ np.array([0.3, -0.2, 0.1]) + effect)).astype(float)
        response = LatentResponse(resolve_family("poisson", None), y, np.ones(n), np.zeros(n))
        for field in FIELDS:
            layout = lay_out([place(field, np.arange(n, dtype=float))[0]], n)
            both = [InnerLaplace(response, layout, columns, SlopePrior()) for columns in (X, X[:, :2])]
            modes = integrate(both[1]).modes
            repeat = 20 if n == SIZES[0] else 3
            times = [
                timed(lambda: integrate(both[0]), repeat),  # noqa: B023  (called at once)
                timed(lambda: integrate(both[0], known=modes), repeat),  # noqa: B023
                timed(lambda: integrate(both[0], known=modes, corrected=False), repeat),  # noqa: B023
            ]
            print(f"{n:>7} {type(field).__name__:<6}{times[0]:>9.1f}{times[1]:>9.1f}{times[2]:>20.1f}")
    several(rng)


def several(rng: np.random.Generator) -> None:
    """Models with several components, and with crossed groups of hundreds of levels; three coefficients."""
    print(f"\n{'rows':>7} {'family':<10}{'components':<36}{'cold ms':>9}{'warm ms':>9}")
    for family, fields, n in SEVERAL:
        X, t = rng.normal(size=(n, 3)), np.arange(n, dtype=float)
        columns = {
            "t": t,
            "g": rng.integers(12, size=n),
            "a": rng.integers(200, size=n),
            "b": rng.integers(150, size=n),
        }
        eta = 0.3 + X @ np.array([0.3, -0.2, 0.1]) + autoregression(rng, n, 0.9, 0.7)
        for name in ("g", "a", "b"):
            eta = eta + 0.5 * rng.normal(size=200)[columns[name]]
        y = rng.poisson(np.exp(eta)).astype(float) if family == "poisson" else eta + 0.5 * rng.normal(size=n)
        response = LatentResponse(resolve_family(family, None), y, np.ones(n), np.zeros(n))
        layout = lay_out([place(field, columns[str(field.column)].astype(float))[0] for field in fields], n)
        both = [InnerLaplace(response, layout, columns, SlopePrior()) for columns in (X, X[:, :2])]
        modes = integrate(both[1]).modes
        cold = timed(lambda: integrate(both[0]), 3)  # noqa: B023  (called at once)
        warm = timed(lambda: integrate(both[0], known=modes), 3)  # noqa: B023
        names = ", ".join(f"{type(field).__name__}({field.column})" for field in fields)
        print(f"{n:>7} {family:<10}{names:<36}{cold:>9.0f}{warm:>9.0f}")


def timed(function: Callable[[], Any], repeat: int) -> float:
    """Median milliseconds of processor time."""
    times = []
    for _ in range(repeat):
        began = time.process_time()
        function()
        times.append(1e3 * (time.process_time() - began))
    return float(np.median(times))


def autoregression(rng: np.random.Generator, n: int, correlation: float, deviation: float) -> np.ndarray:
    """A stationary AR1 process."""
    noise = deviation * rng.normal(size=n)
    values = np.empty(n)
    values[0] = noise[0]
    for i in range(1, n):
        values[i] = correlation * values[i - 1] + np.sqrt(1.0 - correlation**2) * noise[i]
    return values


N_ROWS, N_HELD_OUT, N_GROUPS = 300, 60, 12
SIMULATION_SEARCH = SearchConfig(population_size=10, n_populations=6)
COMPONENTS = ("AR1(t)", "Grouped(g)", "IID(t)")
# Effects of single rows are noise, which a Gaussian response has anyway.
OFFERED: dict[str, list[LatentField]] = {
    "poisson": [AR1("t"), Grouped("g"), IID("t")],
    "gaussian": [AR1("t"), Grouped("g")],
}


def simulate(family: str, kind: str, seed: int) -> dict[str, Any]:
    """One data set: y depends on a product and, for the kind "latent", on an AR1 process and on groups."""
    rng = np.random.default_rng([seed, kind == "latent", family == "poisson"])
    n = N_ROWS + N_HELD_OUT
    X, groups = rng.normal(size=(n, 4)), rng.integers(N_GROUPS, size=n)
    eta = 0.5 + 0.5 * X[:, 0] * X[:, 1]
    if kind == "latent":
        eta = eta + autoregression(rng, n, 0.9, 0.7) + 0.6 * rng.normal(size=N_GROUPS)[groups]
    y = rng.poisson(np.exp(eta)) if family == "poisson" else eta + 0.5 * rng.normal(size=n)
    table = pd.DataFrame(X, columns=list("abcd")).assign(t=np.arange(n), g=[f"g{j}" for j in groups])
    held_out = np.sort(rng.choice(n, N_HELD_OUT, replace=False))
    train = np.setdiff1d(np.arange(n), held_out)
    began = time.perf_counter()
    model = BGNLMRegressor(
        family=family,
        latent=OFFERED[family],
        n_chains=1,
        search=SIMULATION_SEARCH,
        random_state=seed,
    ).fit(table.iloc[train], y[train])
    seconds = time.perf_counter() - began
    new = table.iloc[held_out]
    of_mean, of_response = (model.predict_interval(new, of=of) for of in ("mean", "response"))
    mean = np.exp(eta) if family == "poisson" else eta
    probabilities = dict(zip(model.components_["component"], model.components_["probability"], strict=True))
    features = dict(zip(model.features_["expression"], model.features_["probability"], strict=True))
    return {
        "seed": seed,
        "components": {name: float(probabilities.get(name, 0.0)) for name in COMPONENTS},
        "feature": float(features.get("a*b", 0.0)),
        "false": sum(p > _HALF for name, p in features.items() if name != "a*b"),
        "mean": int(np.sum((mean[held_out] >= of_mean[:, 0]) & (mean[held_out] <= of_mean[:, 1]))),
        "response": int(np.sum((y[held_out] >= of_response[:, 0]) & (y[held_out] <= of_response[:, 1]))),
        "seconds": round(seconds, 1),
    }


def simulation(arguments: argparse.Namespace) -> None:
    """Shares of data sets in which a component has probability above one half; coverage of 90 % intervals."""
    cells = [(family, kind) for family in ("poisson", "gaussian") for kind in ("latent", "none")]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for cell in cells:
            path = arguments.out / f"{'-'.join(cell)}.jsonl"
            done = {line["seed"] for line in read(path)}
            todo = [seed for seed in range(arguments.runs) if seed not in done]
            for run in [pool.submit(simulate, *cell, seed) for seed in todo]:
                append(path, run.result())
    print(f"{'family':<10}{'kind':<8}{'runs':>5}", "".join(f"{name:>12}" for name in COMPONENTS), end="")
    print(f"{'a*b':>7}{'false':>7}{'mean':>8}{'response':>10}{'s/run':>7}")
    for family, kind in cells:
        lines = read(arguments.out / f"{family}-{kind}.jsonl")
        if not lines:
            continue
        found = [np.mean([line["components"][name] > _HALF for line in lines]) for name in COMPONENTS]
        shares = "".join(f"{share:>12.2f}" for share in found)
        n_rows = N_HELD_OUT * len(lines)
        print(
            f"{family:<10}{kind:<8}{len(lines):>5} {shares}{np.mean([x['feature'] > _HALF for x in lines]):>7.2f}"
            f"{np.mean([x['false'] for x in lines]):>7.2f}{sum(x['mean'] for x in lines) / n_rows:>8.3f}"
            f"{sum(x['response'] for x in lines) / n_rows:>10.3f}{np.mean([x['seconds'] for x in lines]):>7.1f}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parts = {"speed": speed, "simulation": simulation}
    parser.add_argument("part", choices=tuple(parts))
    parser.add_argument("--runs", type=int, default=20, help="data sets of each kind")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(".cache/latent"))
    arguments = parser.parse_args()
    parts[arguments.part](arguments)


if __name__ == "__main__":
    main()
