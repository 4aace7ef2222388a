"""Ways to set the weights of projections: ``python -m benchmarks.projections recovery | paper [--strategy ...]``.

`recovery`: data from nested projections, the paper's future work. `paper`: appendix C, the printed tables of the four
strategies; needs the paper's data in BGNLM_DATA. Each run is a line of JSON in a file for its cell in the folder
`--out`; runs that are there are not done again, so delete the folder after a change of the settings.
"""

import argparse
import json
import os
import time
import warnings
import zlib
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
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

from benchmarks.coverage import read  # noqa: E402
from bgnlm import BGNLMClassifier, BGNLMRegressor, SearchConfig, parse  # noqa: E402
from bgnlm.datasets import Dataset, load_asteroids, load_breast_cancer, load_spam  # noqa: E402
from bgnlm.features import Evaluator, Feature, Input, Projection, inputs_of  # noqa: E402
from bgnlm.features.gradients import WeightFunction  # noqa: E402
from bgnlm.features.measures import additional_weights  # noqa: E402
from bgnlm.search import Limits, ModelPrior, MoveProbabilities  # noqa: E402

STRATEGIES = ("naive", "concave", "deep", "bayesian")
BY_DEFAULT = STRATEGIES[:3]
_HALF = 0.5

# ---------------------------------------------------------------------------------------------------- recovery

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

# ------------------------------------------------------------------------------------------------------- paper

MEASURES = ("ACC", "FNR", "FPR")
WITHIN = 0.005  # of the accuracy that is printed


@dataclass(frozen=True)
class Example:
    """A classification example of the paper, and what appendix C prints for it: median, minimum, maximum."""

    load: Callable[[], Dataset]
    size: int  # Q, L, and the population size
    depth: int  # D
    n_populations: int  # in the authors' scripts, as the threshold that follows
    keep_threshold: float
    printed: dict[str, tuple[tuple[float, float, float], ...]]
    standardised: bool = False


EXAMPLES = {
    "breast_cancer": Example(
        load_breast_cancer,
        20,
        6,
        10,
        0.5,
        {
            "naive": ((0.9695, 0.9554, 0.9789), (0.0536, 0.0479, 0.0809), (0.0148, 0.0037, 0.0326)),
            "concave": ((0.9671, 0.9531, 0.9789), (0.0536, 0.0422, 0.0862), (0.0184, 0.0000, 0.0361)),
            "deep": ((0.9695, 0.9507, 0.9789), (0.0536, 0.0479, 0.0862), (0.0148, 0.0000, 0.0361)),
            "bayesian": ((0.9671, 0.9577, 0.9789), (0.0536, 0.0305, 0.0756), (0.0184, 0.0000, 0.0361)),
        },
    ),
    "spam": Example(
        load_spam,
        100,
        6,
        10,
        0.5,
        {
            "naive": ((0.9243, 0.9113, 0.9328), (0.0927, 0.0808, 0.1116), (0.0552, 0.0465, 0.0658)),
            "concave": ((0.9243, 0.9100, 0.9357), (0.0927, 0.0780, 0.1103), (0.0545, 0.0445, 0.0686)),
            "deep": ((0.9237, 0.9100, 0.9321), (0.0924, 0.0766, 0.1122), (0.0548, 0.0474, 0.0714)),
            "bayesian": ((0.9237, 0.9113, 0.9315), (0.0931, 0.0821, 0.1077), (0.0562, 0.0470, 0.0714)),
        },
        standardised=True,
    ),
    "asteroid": Example(
        load_asteroids,
        15,
        4,
        5,
        0.1,
        {
            "naive": ((0.9998, 0.9942, 1.0000), (0.0002, 0.0001, 0.0082), (0.0002, 0.0000, 0.0072)),
            "concave": ((0.9998, 0.9933, 1.0000), (0.0002, 0.0001, 0.0089), (0.0002, 0.0000, 0.0048)),
            "deep": ((0.9998, 0.9959, 1.0000), (0.0002, 0.0001, 0.0056), (0.0002, 0.0000, 0.0042)),
            "bayesian": ((0.9998, 0.9932, 0.9999), (0.0002, 0.0001, 0.0097), (0.0002, 0.0000, 0.0042)),
        },
    ),
}
# The tables were made with the scripts' score and prior; the text of the paper has Jeffreys' prior and a = e^-2. The
# last one is ours: coefficients that are kept small, and the paper's complexity with a = 1/n.
SCORES: dict[str, dict[str, Any]] = {
    "script": {"coefficient_prior": "script", "penalty": ModelPrior(penalty=1.0, complexity="script")},
    "text": {"coefficient_prior": "jeffreys", "penalty": ModelPrior(penalty=2.0, complexity="oc")},
    "gaussian": {"coefficient_prior": "gaussian", "penalty": ModelPrior(complexity="oc")},
}
DIFFERENT = """\
As in the paper: split, score and prior (of its scripts, or of its text), G, D, L, Q, number of populations and of steps
in each, threshold to keep features, equal probabilities of the four moves, one chain, plain generation of features.
Different: populations have room for all inputs, which the scripts only start from (breast cancer: 30 for 20); up to 20
features 500 models are drawn by the quadratic approximation in place of MJMCMC (asteroids); 300 steps in the last
population, not until so many models are found; a feature within D may have more operations than the scripts allow;
projections join two features or more, where in the scripts most come to one input; all models visited take part, not
those of the last population alone, and predictions average over the 300 most probable.
FNR and FPR as printed: FN / (FN + positives), FP / (FP + negatives)."""


def classify(data: str, score: str, strategy: str, seed: int) -> dict[str, Any]:
    """One chain of an example: counts of errors among the test rows."""
    example = EXAMPLES[data]
    dataset = example.load()
    assert dataset.is_train is not None
    X = dataset.X.to_numpy()
    if example.standardised:
        X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    y, is_train = dataset.y.to_numpy() == 1, dataset.is_train
    config = SearchConfig(
        population_size=max(example.size, X.shape[1]),  # the scripts start from all inputs
        n_populations=example.n_populations,
        keep_threshold=example.keep_threshold,
        informed=0.0,
        n_draws=500,
        n_initial_steps=100,
        n_explore_steps=100,
        n_final_steps=300,
        n_averaged=300,
        moves=MoveProbabilities(new_input=1, modification=1, multiplication=1, projection=1),
        limits=Limits(max_depth=example.depth, max_width=example.size, max_model_size=example.size),
    )
    began = time.perf_counter()
    model = BGNLMClassifier(
        transforms="classification",
        projection_weights=strategy,
        n_chains=1,
        search=config,
        random_state=seed,
        **SCORES[score],
    ).fit(X[is_train], y[is_train])
    predicted, actual = model.predict_proba(X[~is_train])[:, 1] >= _HALF, y[~is_train]
    features = model.posterior_.features
    probable = [f for f, p in zip(features, model.posterior_.inclusion_probabilities, strict=True) if p > 0.1]
    return {
        "seed": seed,
        "FN": int((actual & ~predicted).sum()),
        "FP": int((predicted & ~actual).sum()),
        "positives": int(actual.sum()),
        "negatives": int((~actual).sum()),
        "probable": len(probable),
        "projections": [str(feature) for feature in probable if additional_weights(feature)],
        "seconds": round(time.perf_counter() - began, 2),
    }


def rates(line: dict[str, Any]) -> tuple[float, float, float]:
    wrong = line["FN"] + line["FP"]
    return (
        1.0 - wrong / (line["positives"] + line["negatives"]),
        line["FN"] / (line["FN"] + line["positives"]),
        line["FP"] / (line["FP"] + line["negatives"]),
    )


def report_paper(cells: dict[tuple[Any, ...], list[dict[str, Any]]]) -> None:
    """Medians, least and largest values beside those printed."""
    print(f"{DIFFERENT}\n")
    print(f"{'data':<14}{'score':<10}{'strategy':<10}{'runs':>5}  ", end="")
    print("".join(f"{name:<26}{'printed':<26}" for name in MEASURES) + "projections  s/run")
    for (data, score, strategy), lines in cells.items():
        found = np.array([rates(line) for line in lines])
        ours = [(np.median(column), column.min(), column.max()) for column in found.T]
        printed = EXAMPLES[data].printed[strategy]
        cell = [f"{spread(a):<26}{spread(b):<26}" for a, b in zip(ours, printed, strict=True)]
        # Printed values have four digits.
        verdict = "reached" if ours[0][0] >= printed[0][0] - WITHIN - 5e-5 else "missed"
        print(
            f"{data:<14}{score:<10}{strategy:<10}{len(lines):>5}  {''.join(cell)}"
            f"{np.mean([len(line['projections']) for line in lines]):>11.2f}"
            f"{np.mean([line['seconds'] for line in lines]):>7.1f}  {verdict}"
        )


def spread(values: Iterable[float]) -> str:
    return "{:.4f} ({:.4f}, {:.4f})".format(*values)


# ----------------------------------------------------------------------------------------------------- commands


def path_of(folder: Path, part: str, cell: tuple[Any, ...]) -> Path:
    return folder / f"{'-'.join(map(str, (part, *cell)))}.jsonl"


def quietly(function: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of separation, and of networks that have not converged
        return function(*arguments)


def complete(
    pool: ProcessPoolExecutor, path: Path, function: Callable[..., dict[str, Any]], cell: tuple[Any, ...], n_runs: int
) -> None:
    """Do the runs of a cell that are missing."""
    done = {line["seed"] for line in read(path)}
    todo = [seed for seed in range(n_runs) if seed not in done]
    runs = [pool.submit(quietly, function, *cell, seed) for seed in todo]
    for number, run in enumerate(runs, start=1):
        line = run.result()
        with path.open("a") as file:
            file.write(json.dumps(line) + "\n")
        print(f"\r{path.stem}: {number} of {len(todo)} runs", end="", flush=True)
    if todo:
        print()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part", choices=("recovery", "paper"))
    parser.add_argument("--strategy", nargs="*", choices=STRATEGIES, default=BY_DEFAULT)
    parser.add_argument("--runs", type=int, default=20, help="of each cell")
    parser.add_argument("--truth", nargs="*", choices=tuple(TRUTHS), default=tuple(TRUTHS))
    parser.add_argument("--rows", nargs="*", type=int, choices=ROWS, default=ROWS)
    parser.add_argument("--data", nargs="*", choices=tuple(EXAMPLES), default=("breast_cancer", "asteroid"))
    parser.add_argument("--score", choices=tuple(SCORES), default="script")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(".cache/projections"))
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    cells: list[tuple[Any, ...]]
    if arguments.part == "recovery":
        function, report, methods = recover, report_recovery, (*STRATEGIES, *OTHERS)
        cells = [(truth, n, method) for truth in arguments.truth for n in arguments.rows for method in methods]
    else:
        function, report = classify, report_paper
        cells = [(data, arguments.score, strategy) for data in arguments.data for strategy in STRATEGIES]
    with ProcessPoolExecutor(arguments.jobs) as pool:
        for cell in cells:
            if cell[-1] in (*arguments.strategy, *OTHERS):
                complete(pool, path_of(arguments.out, arguments.part, cell), function, cell, arguments.runs)
    # What earlier calls did for other strategies is shown too.
    found = {cell: read(path_of(arguments.out, arguments.part, cell)) for cell in cells}
    print()
    report({cell: lines for cell, lines in found.items() if lines})


if __name__ == "__main__":
    main()
