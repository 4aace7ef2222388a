"""Ways to set the weights of projections: ``python -m benchmarks.projections [--strategy ...]``.

Data from nested projections, the paper's future work; for its appendix C see `benchmarks.paper`. Each run is a line of
JSON in a file for its cell in the folder `--out`; runs that are there are not done again, so delete the folder after a
change of the settings.
"""

import argparse
import os
import time
import warnings
import zlib
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np  # noqa: E402  (the number of threads is read when NumPy loads)
from scipy.optimize import least_squares  # noqa: E402
from sklearn.compose import TransformedTargetRegressor  # noqa: E402
from sklearn.linear_model import LinearRegression  # noqa: E402
from sklearn.model_selection import GridSearchCV  # noqa: E402
from sklearn.neural_network import MLPRegressor  # noqa: E402
from sklearn.pipeline import make_pipeline  # noqa: E402
from sklearn.preprocessing import StandardScaler  # noqa: E402

from benchmarks.records import append, read  # noqa: E402
from bgnlm import BGNLMRegressor, SearchConfig, parse  # noqa: E402
from bgnlm.features import Evaluator, Feature, Input, Projection, inputs_of  # noqa: E402
from bgnlm.features.gradients import WeightFunction  # noqa: E402
from bgnlm.search import Limits, MoveProbabilities  # noqa: E402

STRATEGIES = ("naive", "concave", "deep", "bayesian")
BY_DEFAULT = STRATEGIES[:3]
_HALF = 0.5

N_INPUTS = 6
N_TEST = 5_000
ROWS = (500, 2_000)
R2 = 0.9  # of the truth
NAMES = tuple(f"x{j + 1}" for j in range(N_INPUTS))
# y = 3 times this, and noise.
TRUTHS = {
    "two": "sigmoid(0.5 + 2*x1 - 3*x2)",
    "three": "sigmoid(1 + 2*x1 - 3*x2 + 2*x3)",
    "nested": "sigmoid(2 + 2*x1 - 6*sigmoid(1 + 2*x2 - 2*x3))",
}
RECOVERY_SEARCH = SearchConfig(
    population_size=12,
    n_populations=25,
    n_candidates=60,
    patience=6,
    moves=MoveProbabilities(new_input=1, modification=1, multiplication=1, projection=3),
    limits=Limits(max_depth=3, max_width=4, max_model_size=10),
)


class Sample(NamedTuple):
    """Rows to learn from, rows to be predicted, and what is true there."""

    X: np.ndarray
    y: np.ndarray
    X_new: np.ndarray
    y_new: np.ndarray
    mean_new: np.ndarray
    noise: float  # standard deviation


def draw(truth: str, n_rows: int, seed: int) -> Sample:
    """The same data for all methods."""
    rng = np.random.default_rng([zlib.crc32(truth.encode()), n_rows, seed])
    X, X_new = rng.normal(size=(n_rows, N_INPUTS)), rng.normal(size=(N_TEST, N_INPUTS))
    mean, mean_new = (3.0 * Evaluator(some, NAMES).column(parse(TRUTHS[truth])) for some in (X, X_new))
    noise = float(mean_new.std()) * np.sqrt(1.0 / R2 - 1.0)
    y, y_new = (some + noise * rng.normal(size=len(some)) for some in (mean, mean_new))
    return Sample(X, y, X_new, y_new, mean_new, noise)


def linear(sample: Sample, _: Feature) -> np.ndarray:
    return np.asarray(LinearRegression().fit(sample.X, sample.y).predict(sample.X_new))


def network(sample: Sample, _: Feature) -> np.ndarray:
    """Two hidden layers, weight decay by cross-validation: the best of three networks on three of four data sets."""
    layers = MLPRegressor(hidden_layer_sizes=(16, 16), activation="tanh", solver="lbfgs", max_iter=500, random_state=1)
    decay = {"mlpregressor__alpha": [0.1, 1.0, 10.0, 100.0]}
    tuned = GridSearchCV(make_pipeline(StandardScaler(), layers), decay, cv=3, scoring="neg_mean_squared_error")
    both = TransformedTargetRegressor(tuned, transformer=StandardScaler()).fit(sample.X, sample.y)
    return np.asarray(both.predict(sample.X_new))


def true_structure(sample: Sample, truth: Feature) -> np.ndarray:
    """The true feature with its weights by least squares from the true ones: what is to be had at most."""
    assert isinstance(truth, Projection)
    function = WeightFunction(truth, Evaluator(sample.X, NAMES), np.ones(len(sample.y)), every_layer=True)

    def residuals(parameters: np.ndarray) -> np.ndarray:
        return sample.y - parameters[0] - parameters[1] * function.value(parameters[2:])

    found = least_squares(residuals, np.concatenate([[0.0, 3.0], function.start])).x
    feature = function.feature(found[2:])
    assert feature is not None
    return np.asarray(found[0] + found[1] * Evaluator(sample.X_new, NAMES).column(feature))


OTHERS = {"linear": linear, "network": network, "truth": true_structure}


def shape(feature: Feature) -> object:
    """A feature without its weights: nested tuples for projections of inputs and projections, its text for others."""
    match feature:
        case Input(name=name):
            return name
        case Projection(transform=transform, operands=operands):
            return transform.name, frozenset(map(shape, operands))
        case _:
            return str(feature)


def recover(truth: str, n_rows: int, method: str, seed: int) -> dict[str, Any]:
    """One data set by one method."""
    sample, target = draw(truth, n_rows, seed), parse(TRUTHS[truth])
    began = time.perf_counter()
    line: dict[str, Any] = {"seed": seed}
    if method in OTHERS:
        predicted = OTHERS[method](sample, target)
    else:
        model = BGNLMRegressor(
            transforms=("sigmoid",), projection_weights=method, n_chains=1, search=RECOVERY_SEARCH, random_state=seed
        ).fit(sample.X, sample.y)
        predicted = model.predict(sample.X_new)
        both = zip(model.posterior_.features, model.posterior_.inclusion_probabilities.tolist(), strict=True)
        probable = [feature for feature, probability in both if probability > _HALF]
        recovered = any(shape(feature) == shape(target) for feature in probable)
        used = frozenset[str]().union(*map(inputs_of, probable))
        line |= {
            "recovered": recovered,
            "alone": recovered and len(probable) == 1,
            "inputs": used == inputs_of(target),
            "probable": list(map(str, probable)),
        }
    line |= {
        "rmse": rms(sample.y_new - predicted) / rms(sample.y_new - sample.mean_new),
        "error": rms(sample.mean_new - predicted) / sample.noise,
        "seconds": round(time.perf_counter() - began, 2),
    }
    return line


def rms(values: np.ndarray) -> float:
    return float(np.sqrt(np.square(values).mean()))


def report_recovery(cells: dict[tuple[Any, ...], list[dict[str, Any]]]) -> None:
    """Shares of runs, means of errors."""
    print("recovered: a feature of probability > 0.5 is the true one, weights aside; alone: there is no other")
    print("inputs: those of the features of probability > 0.5 are the true ones")
    print("RMSE: of test responses, divided by that of the true mean; error: of the true mean, in noise sd\n")
    print(f"{'truth':<8}{'rows':>6} {'method':<10}{'runs':>5}{'recovered':>11}{'alone':>7}{'inputs':>8}", end="")
    print(f"{'RMSE':>9}{'(worst)':>9}{'error':>8}{'s/run':>8}")
    for (truth, n_rows, method), lines in cells.items():
        shares = [f"{np.mean([x[key] for x in lines]):.2f}" if key in lines[0] else "" for key in _SHARES]
        errors = np.array([line["rmse"] for line in lines])
        print(
            f"{truth:<8}{n_rows:>6} {method:<10}{len(lines):>5}{shares[0]:>11}{shares[1]:>7}{shares[2]:>8}"
            f"{errors.mean():>9.3f}{errors.max():>9.3f}{np.mean([x['error'] for x in lines]):>8.3f}"
            f"{np.mean([x['seconds'] for x in lines]):>8.1f}"
        )


_SHARES = ("recovered", "alone", "inputs")


def path_of(folder: Path, cell: tuple[Any, ...]) -> Path:
    return folder / f"{'-'.join(map(str, ('recovery', *cell)))}.jsonl"


def quietly(truth: str, n_rows: int, method: str, seed: int) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of networks that have not converged
        return recover(truth, n_rows, method, seed)


def complete(pool: ProcessPoolExecutor, path: Path, cell: tuple[Any, ...], n_runs: int) -> None:
    """Do the runs of a cell that are missing."""
    done = {line["seed"] for line in read(path)}
    todo = [seed for seed in range(n_runs) if seed not in done]
    runs = [pool.submit(quietly, *cell, seed) for seed in todo]
    for number, run in enumerate(runs, start=1):
        append(path, run.result())
        print(f"\r{path.stem}: {number} of {len(todo)} runs", end="", flush=True)
    if todo:
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--strategy", nargs="*", choices=STRATEGIES, default=BY_DEFAULT)
    parser.add_argument("--runs", type=int, default=20, help="of each cell")
    parser.add_argument("--truth", nargs="*", choices=tuple(TRUTHS), default=tuple(TRUTHS))
    parser.add_argument("--rows", nargs="*", type=int, choices=ROWS, default=ROWS)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(".cache/projections"))
    arguments = parser.parse_args()
    methods = (*STRATEGIES, *OTHERS)
    cells = [(truth, n, method) for truth in arguments.truth for n in arguments.rows for method in methods]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for cell in cells:
            if cell[-1] in (*arguments.strategy, *OTHERS):
                complete(pool, path_of(arguments.out, cell), cell, arguments.runs)
    # What earlier calls did for other strategies is shown too.
    found = {cell: read(path_of(arguments.out, cell)) for cell in cells}
    print()
    report_recovery({cell: lines for cell, lines in found.items() if lines})


if __name__ == "__main__":
    main()
