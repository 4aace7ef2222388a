"""How often intervals hold what they promise: ``python -m benchmarks.coverage [SETUP ...] [--datasets N] [--jobs J]``.

"prior" set-ups draw model, coefficients and data from the very priors of the fit: each of the 32 models over three
inputs and two of their products is as probable as any other, and all of them are averaged over. A credible interval
then covers as often as it says, whatever the data, but for Laplace's method, g at the mean of its shrinkage, and
numerical shortcuts. Intercept and noise have improper priors in the fit. For the Gaussian family the draw of these
does not matter (intervals move and stretch with the data); for the others the intercept is drawn evenly from a range.
A g-prior with the information of the null model scales slopes by the mean of the response, so the intercept is set to
give that mean.

"fixed" set-ups have one truth and search for it with the defaults.

Coverage is averaged over fresh rows. One line of JSON for each data set is appended to a file for each set-up in the
folder `--out`; data sets that are there already are not simulated again.
"""

import argparse
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np  # noqa: E402  (the number of threads is read when NumPy loads)
from scipy.optimize import brentq  # noqa: E402

from benchmarks.records import append, read  # noqa: E402
from bgnlm import BGNLMRegressor, CoefficientPrior, SearchConfig  # noqa: E402
from bgnlm.likelihood.families import resolve_family  # noqa: E402

N_ROWS = 100
N_NEW = 20
NOMINAL = (0.5, 0.9, 0.95)
ASKED = 0.02  # of the difference to what is promised
_BATCH = 10  # data sets that a worker does at a time


class Truth(NamedTuple):
    """Data, and what is true at new rows: the mean, and a response where one is asked for."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    mean: np.ndarray
    response: np.ndarray | None


@dataclass(frozen=True)
class Setup:
    """How data come about and how they are fitted."""

    draw: Callable[[np.random.Generator], Truth]
    fit: dict[str, Any]
    asked: bool = True
    share: float = 1.0  # of the data sets


def inputs_and_products(rng: np.random.Generator, n_rows: int) -> np.ndarray:
    inputs = rng.normal(size=(n_rows, 3))
    return np.column_stack([inputs, inputs[:, 0] * inputs[:, 1], inputs[:, 1] * inputs[:, 2]])


def some_columns(rng: np.random.Generator, n_columns: int) -> np.ndarray:
    """All models are equally probable."""
    return np.flatnonzero(rng.random(n_columns) < 0.5)


def g_prior(rng: np.random.Generator, X: np.ndarray, g: float) -> np.ndarray:
    """Slopes with covariance g (X'X)^-1, columns centred."""
    root = np.linalg.cholesky(X.T @ X)
    return np.sqrt(g) * np.linalg.solve(root.T, rng.standard_normal(X.shape[1]))


def robust_g(rng: np.random.Generator, size: int) -> float:
    """Density 1/2 sqrt(L) (1 + g)^(-3/2) for 1 + g > L = (1 + n) / (1 + k)."""
    return (1.0 + N_ROWS) / (1.0 + size) / (1.0 - rng.random()) ** 2 - 1.0


def hyper_g_over_n(rng: np.random.Generator, a: float) -> float:
    """Density (a - 2) / (2n) (1 + g/n)^(-a/2)."""
    return N_ROWS * ((1.0 - rng.random()) ** (-2.0 / (a - 2.0)) - 1.0)


def gaussian(g_of: Callable[[np.random.Generator, int], float]) -> Callable[[np.random.Generator], Truth]:
    def draw(rng: np.random.Generator) -> Truth:
        X, X_new = inputs_and_products(rng, N_ROWS), inputs_and_products(rng, N_NEW)
        columns = some_columns(rng, X.shape[1])
        intercept, deviation = 5.0 * rng.normal(), 1.0 / np.sqrt(rng.gamma(3.0) / 3.0)
        centres = X[:, columns].mean(axis=0)
        slopes = deviation * g_prior(rng, X[:, columns] - centres, g_of(rng, len(columns)))
        mean, new = (intercept + (some[:, columns] - centres) @ slopes for some in (X, X_new))
        noise, new_noise = deviation * rng.normal(size=N_ROWS), deviation * rng.normal(size=N_NEW)
        return Truth(X, mean + noise, X_new, new, new + new_noise)

    return draw


def glm(
    name: str, intercepts: tuple[float, float], slope_variance: float | None = None
) -> Callable[[np.random.Generator], Truth]:
    """Slopes from the default prior, or independent normal ones of standardised columns."""
    family = resolve_family(name, None)

    def truth(rng: np.random.Generator, X: np.ndarray) -> tuple[float, np.ndarray]:
        """Intercept and slopes of centred columns."""
        while True:
            at_null = rng.uniform(*intercepts)
            if slope_variance is not None:
                return at_null, np.sqrt(slope_variance) * rng.normal(size=X.shape[1]) / X.std(axis=0)
            null = np.array([at_null])
            information = float(family.expected_information(null, 1.0)[0])
            slopes = g_prior(rng, X, hyper_g_over_n(rng, 4.0) / information)
            eta, mean = X @ slopes, float(family.mean(null)[0])
            intercept = brentq(lambda a: family.mean(a + eta).mean() - mean, -eta.max() - 50.0, -eta.min() + 50.0)  # noqa: B023
            # The intercept itself, not the null model's, has the flat prior: keep draws by how dense they lie in it.
            weight = family.mean_slope(null)[0] / family.mean_slope(intercept + eta).mean()
            if name == "poisson" or rng.random() < weight / 10.0:
                return intercept, slopes

    def draw(rng: np.random.Generator) -> Truth:
        X, X_new = inputs_and_products(rng, N_ROWS), inputs_and_products(rng, N_NEW)
        columns = some_columns(rng, X.shape[1])
        centres = X[:, columns].mean(axis=0)
        intercept, slopes = truth(rng, X[:, columns] - centres)
        mean, new = (family.mean(intercept + (some[:, columns] - centres) @ slopes) for some in (X, X_new))
        y = rng.poisson(mean) if name == "poisson" else rng.random(N_ROWS) < mean
        return Truth(X, y.astype(float), X_new, new, None)

    return draw


def fixed(mean_of: Callable[..., np.ndarray]) -> Callable[[np.random.Generator], Truth]:
    def draw(rng: np.random.Generator) -> Truth:
        X, X_new = rng.uniform(-3.0, 3.0, size=(N_ROWS, 3)), rng.uniform(-3.0, 3.0, size=(10 * N_NEW, 3))
        mean = mean_of(*X_new.T)
        return Truth(X, mean_of(*X.T) + rng.normal(size=N_ROWS), X_new, mean, mean + rng.normal(size=len(mean)))

    return draw


def all_models(**options: Any) -> dict[str, Any]:
    """Settings under which every linear model is averaged over, and all are equally probable."""
    config = SearchConfig(n_populations=1, population_size=5, engine="exhaustive")
    return {"penalty": 0.0, "max_depth": 0, "n_chains": 1, "search": config} | options


SETUPS = {
    "prior-gaussian-g": Setup(
        gaussian(lambda *_: N_ROWS), all_models(coefficient_prior=CoefficientPrior("g", g=N_ROWS))
    ),
    "prior-gaussian-robust": Setup(gaussian(robust_g), all_models()),
    "prior-logistic": Setup(glm("binomial", (-1.5, 1.5)), all_models(family="binomial")),
    "prior-poisson": Setup(glm("poisson", (0.0, 2.0)), all_models(family="poisson")),
    "prior-logistic-normal": Setup(
        glm("binomial", (-1.5, 1.5), 1.0),
        all_models(family="binomial", coefficient_prior=CoefficientPrior("gaussian", variance=1.0)),
    ),
    "prior-poisson-normal": Setup(
        glm("poisson", (0.0, 2.0), 0.25),
        all_models(family="poisson", coefficient_prior=CoefficientPrior("gaussian", variance=0.25)),
    ),
    "fixed-linear": Setup(fixed(lambda a, b, c: 1.0 + a - 0.5 * b + 0.0 * c), {}, asked=False, share=0.02),
    "fixed-product": Setup(fixed(lambda a, b, c: 0.5 * a * b + 0.5 * c), {}, asked=False, share=0.02),
    "fixed-sine": Setup(fixed(lambda a, b, c: 2.0 * np.sin(a) + 0.0 * (b + c)), {}, asked=False, share=0.02),
}


def simulate(name: str, seeds: list[int]) -> list[dict[str, Any]]:
    return [one(name, seed) for seed in seeds]


def one(name: str, seed: int) -> dict[str, Any]:
    """Share of the new rows covered, by what is predicted and the level; and how wide intervals are."""
    setup = SETUPS[name]
    truth = setup.draw(np.random.default_rng([zlib.crc32(name.encode()), seed]))
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of separation, and features that are not finite at new rows
        model = BGNLMRegressor(**setup.fit, random_state=seed).fit(truth.X, truth.y)
        covered = {"mean": ends(model, truth.X_new, "mean", truth.mean)}
        if truth.response is not None:
            covered["response"] = ends(model, truth.X_new, "response", truth.response)
    return {"seed": seed, "covered": covered, "seconds": round(time.perf_counter() - began, 4)}


def ends(model: BGNLMRegressor, X: np.ndarray, of: str, truth: np.ndarray) -> list[list[float]]:
    """For each nominal level the shares of what is below, inside and above the interval."""
    shares = []
    for level in NOMINAL:
        low, high = model.predict_interval(X, level, of).T
        below, above = float((truth < low).mean()), float((truth > high).mean())
        shares.append([round(share, 4) for share in (below, 1.0 - below - above, above)])
    return shares


def report(name: str, lines: list[dict[str, Any]]) -> None:
    """Print coverage in per cent, its Monte Carlo error, and what lies on either side."""
    for of in lines[0]["covered"]:
        shares = 100.0 * np.array([line["covered"][of] for line in lines])
        mean, error = shares.mean(axis=0), shares.std(axis=0) / np.sqrt(len(shares))
        for q, level in enumerate(NOMINAL):
            difference = mean[q, 1] - 100.0 * level
            verdict = "" if not SETUPS[name].asked else "reached" if abs(difference) <= 100.0 * ASKED else "missed"
            print(
                f"{name:<22} {of:<8} {len(lines):8,d}   {100 * level:4.0f}   {mean[q, 1]:6.2f}   {error[q, 1]:5.2f}   "
                f"{difference:+6.2f}   {mean[q, 0]:5.2f}   {mean[q, 2]:5.2f}   {verdict}"
            )


def batches(seeds: list[int]) -> Iterator[list[int]]:
    left = iter(seeds)
    while batch := list(islice(left, _BATCH)):
        yield batch


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("setup", nargs="*", metavar="SETUP", help=f"any of {', '.join(SETUPS)}; all if none is named")
    parser.add_argument("--datasets", type=int, default=4000, help="of each set-up; 1 in 50 of them for fixed truths")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(".cache/coverage"))
    arguments = parser.parse_args()
    names = arguments.setup or list(SETUPS)
    if unknown := set(names) - set(SETUPS):
        parser.error(f"there is no set-up {sorted(unknown)[0]!r}; choose from {', '.join(SETUPS)}")
    found = {}
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for name in names:
            path = arguments.out / f"{name}.jsonl"
            lines = read(path)
            done, n_datasets = {line["seed"] for line in lines}, round(arguments.datasets * SETUPS[name].share)
            todo = list(batches([seed for seed in range(n_datasets) if seed not in done]))
            for results in pool.map(simulate, [name] * len(todo), todo):
                for line in results:
                    append(path, line)
                lines += results
                print(f"\r{name}: {len(lines)} of {n_datasets} data sets", end="", flush=True)
            print(f"\r{name}: {len(lines)} data sets, {np.mean([line['seconds'] for line in lines]):.3f} s each")
            found[name] = lines
    print(f"\n{'set-up':<22} of       datasets   asked  covered   error    diff.   below   above")
    for name, lines in found.items():
        report(name, lines)


if __name__ == "__main__":
    main()
