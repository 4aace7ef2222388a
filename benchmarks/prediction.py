"""Predictions averaged over many models: ``python -m benchmarks.prediction [FAMILY ...] [--rows N] [--models M]``.

The models have about 8 of 200 features (inputs, products, functions) each, and resemble each other as those of a
posterior do. Each family is measured in a process of its own on one core, after warm-up; its peak memory is that of the
whole process (Linux). "memory before" is what Python, the kernels, the table of new rows and the fitted models take.
"""

import argparse
import os
import subprocess
import sys
from collections.abc import Callable  # noqa: TC003
from itertools import combinations
from pathlib import Path
from time import perf_counter

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np  # noqa: E402  (the number of threads is read when NumPy loads)

from bgnlm.features import Evaluator, Feature, TrainingRange, parse  # noqa: E402
from bgnlm.likelihood.marginal import check_likelihood  # noqa: E402
from bgnlm.posterior.average import ModelAverage  # noqa: E402
from bgnlm.posterior.predict import Rows, predict_deviation, predict_mean, predict_quantiles  # noqa: E402

FAMILIES = ("gaussian", "binomial", "poisson")
N_INPUTS = 20
N_FEATURES = 200
N_TRAINING = 500
NAMES = tuple(f"x{j + 1}" for j in range(N_INPUTS))
# Seconds that are asked for, and MB.
BARS = {"mean": 5.0, "std": 5.0, "interval of mean": 30.0, "interval of response": 30.0}
MOST_MEMORY = 1000.0


def features() -> tuple[Feature, ...]:
    """Inputs, functions of them, products of two, and functions of these."""
    texts = [*NAMES]
    texts += [f"{g}({name})" for g in ("sin", "tanh", "exp_neg_abs") for name in NAMES]
    products = [f"{a}*{b}" for a, b in combinations(NAMES[:13], 2)]
    texts += products + [f"{g}({product})" for g in ("sigmoid", "atan") for product in products[:21]]
    return tuple(map(parse, texts[:N_FEATURES]))


def simulate(family: str, columns: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """A response of 8 features with effects that are not all strong."""
    standard = (columns - columns.mean(axis=0)) / columns.std(axis=0)
    eta = standard[:, :: N_FEATURES // 8][:, :8] @ np.linspace(0.6, 0.1, 8)
    match family:
        case "gaussian":
            return eta + rng.normal(size=len(eta))
        case "binomial":
            return (rng.random(len(eta)) < 1.0 / (1.0 + np.exp(-eta))).astype(float)
        case _:
            return rng.poisson(np.exp(0.5 * eta)).astype(float)


def models(n_models: int, rng: np.random.Generator) -> list[list[int]]:
    """The true features, most of which each model has, and some others."""
    true, others = np.arange(0, N_FEATURES, N_FEATURES // 8)[:8], np.arange(N_FEATURES)
    found: set[tuple[int, ...]] = set()
    while len(found) < n_models:
        kept = true[rng.random(8) < 0.75]
        added = rng.choice(others, size=rng.poisson(2.0), replace=False)
        found.add(tuple(sorted({*kept.tolist(), *added.tolist()})))
    return [list(model) for model in sorted(found)]


def average_of(family: str, n_models: int) -> ModelAverage:
    """Fit the models, with the probabilities that a flat prior gives them."""
    rng = np.random.default_rng(1)
    chosen = features()
    columns = Evaluator(rng.normal(size=(N_TRAINING, N_INPUTS)), NAMES).matrix(chosen)
    likelihood = check_likelihood(simulate(family, columns, rng), family=family)
    ranges = tuple(map(TrainingRange.of, columns.T))
    centres, scales = columns.mean(axis=0), columns.std(axis=0)
    members = models(n_models, rng)
    fits = likelihood.population((columns - centres) / scales).fit_all(members)
    log_marginal = np.array([fit.log_marginal for fit in fits])
    order = np.argsort(-log_marginal)
    fits, members = [fits[m] for m in order], [members[m] for m in order]
    weights = np.exp(log_marginal[order] - log_marginal.max())
    return ModelAverage(
        family=likelihood.family,
        features=chosen,
        known_as=chosen,
        ranges=ranges,
        centres=centres,
        scales=scales,
        probabilities=weights / weights.sum(),
        mass=1.0,
        starts=np.append(0, np.cumsum([len(model) for model in members])),
        members=np.concatenate(members).astype(np.int64),
        coefficients=np.concatenate([fit.coefficients for fit in fits]),
        factors=np.concatenate([fit.covariance_factor.ravel() for fit in fits]),
        dispersions=np.array([fit.dispersion for fit in fits]),
        degrees=np.array([fit.degrees_of_freedom for fit in fits]),
    )


def new_rows(n_rows: int) -> Rows:
    X = np.random.default_rng(2).normal(size=(n_rows, N_INPUTS))
    return Rows(X, NAMES, np.zeros(n_rows), np.ones(n_rows))


def memory(what: str) -> float:
    """MB of this process, now (VmRSS) or at most (VmHWM)."""
    return int(Path("/proc/self/status").read_text().split(f"{what}:")[1].split()[0]) / 2**10


def measure(family: str, n_rows: int, n_models: int) -> None:
    average, rows = average_of(family, n_models), new_rows(n_rows)
    levels = (0.05, 0.95)
    actions: dict[str, Callable[[Rows], object]] = {
        "mean": lambda some: predict_mean(average, some),
        "std": lambda some: predict_deviation(average, some),
        "interval of mean": lambda some: predict_quantiles(average, some, levels, "mean"),
        "interval of response": lambda some: predict_quantiles(average, some, levels, "response"),
    }
    for action in actions.values():
        action(new_rows(10))
    before = memory("VmRSS")
    some = f"{n_rows:,} rows, {len(average):,} models of {np.mean(average.sizes):.1f} features on average"
    effective = 1.0 / np.square(average.probabilities).sum()
    print(f"\n{family}: {some}, {effective:.0f} of them by the inverse of the summed squared probabilities")
    for name, action in actions.items():
        began = perf_counter()
        action(rows)
        seconds = perf_counter() - began
        bar = 1.0 if (family, name) == ("gaussian", "mean") else BARS[name]
        print(f"  {name:<21} {seconds:7.2f} s   asked {bar:4.0f} s: {'reached' if seconds <= bar else 'missed'}")
    peak = memory("VmHWM")
    verdict = "reached" if peak < MOST_MEMORY else "missed"
    print(f"  {'memory before, peak':<21} {before:.0f}, {peak:.0f} MB   asked {MOST_MEMORY:.0f} MB: {verdict}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("family", nargs="*", metavar="FAMILY", help=f"any of {', '.join(FAMILIES)}; all by default")
    parser.add_argument("--rows", type=int, default=100_000)
    parser.add_argument("--models", type=int, default=1000)
    arguments = parser.parse_args()
    if unknown := set(arguments.family) - set(FAMILIES):
        parser.error(f"there is no family {sorted(unknown)[0]!r} here; choose from {', '.join(FAMILIES)}")
    if len(arguments.family) == 1:
        measure(arguments.family[0], arguments.rows, arguments.models)
        return
    sizes = ["--rows", str(arguments.rows), "--models", str(arguments.models)]
    for family in arguments.family or FAMILIES:
        subprocess.run([sys.executable, "-m", "benchmarks.prediction", family, *sizes], check=True)


if __name__ == "__main__":
    main()
