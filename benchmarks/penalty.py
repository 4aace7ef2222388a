"""Which price of an operation predicts best: ``python -m benchmarks.penalty [DATA ...] [--prices P ...] [--jobs J]``.

Cross-validation on the training rows of the paper's prediction examples, whose test rows are not looked at, and how
many features are reported of pure noise. Each fit is a line of JSON in the folder `--out`, and those that are there
are not done again. The data are those in BGNLM_DATA.
"""

import argparse
import itertools
import os
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np  # noqa: E402  (the number of threads is read when NumPy loads)
from sklearn.metrics import accuracy_score, log_loss, root_mean_squared_error  # noqa: E402
from sklearn.model_selection import KFold, StratifiedKFold  # noqa: E402

from benchmarks.paper.data import load  # noqa: E402
from benchmarks.records import append, read  # noqa: E402
from bgnlm import BGNLMClassifier, BGNLMRegressor  # noqa: E402
from bgnlm.search import ModelPrior  # noqa: E402

PREDICTED = ("abalone", "breast_cancer", "spam", "asteroids")
NOISE = {"noise (143 x 30)": (143, 30), "noise (500 x 9)": (500, 9)}
N_FOLDS = 5
_HALF = 0.5


def prior_of(price: str) -> ModelPrior:
    """Read a price: of an operation, beside log m for each choice, or with "oc:" alone; "bic", "aic" or nats."""
    complexity, _, penalty = price.rpartition(":")
    value: float | str = penalty if penalty in ("bic", "aic") else float(penalty)
    return ModelPrior(penalty=value, complexity=complexity or "multiplicity")


def predict_fold(data: str, price: str, coefficients: str, n_chains: int, number: int) -> dict[str, Any]:
    """One of the folds; further ones are folds of another shuffle, which is another seed too."""
    sample = load(data)
    seed, fold = divmod(number, N_FOLDS)
    folds = (StratifiedKFold if sample.is_classification else KFold)(N_FOLDS, shuffle=True, random_state=seed)
    train, test = next(itertools.islice(folds.split(sample.X, sample.y), fold, None))
    kind = BGNLMClassifier if sample.is_classification else BGNLMRegressor
    model = kind(penalty=prior_of(price), coefficient_prior=coefficients, n_chains=n_chains, random_state=seed)
    began = time.perf_counter()
    model.fit(sample.X.iloc[train], sample.y[train])
    outcome = {"seconds": round(time.perf_counter() - began, 2)}
    X, y = sample.X.iloc[test], sample.y[test]
    if sample.is_classification:
        probability = model.predict_proba(X)[:, 1]
        outcome["accuracy"] = float(accuracy_score(y, probability >= _HALF))
        outcome["loss"] = float(log_loss(y, probability, labels=[0, 1]))
    else:
        outcome["loss"] = float(root_mean_squared_error(y, model.predict(X)))
    sizes = model.posterior_.inclusion_probabilities
    return outcome | {"size": float(sizes.sum())}


def count_noise(data: str, price: str, coefficients: str, n_chains: int, number: int) -> dict[str, Any]:
    """Features that are reported where the response has nothing to do with the inputs; every other one is binary."""
    rng = np.random.default_rng(number)
    X, y = rng.normal(size=NOISE[data]), rng.normal(size=NOISE[data][0])
    kind = BGNLMClassifier if number % 2 else BGNLMRegressor
    model = kind(penalty=prior_of(price), coefficient_prior=coefficients, n_chains=n_chains, random_state=number)
    began = time.perf_counter()
    model.fit(X, y > 0.0 if number % 2 else y)
    probabilities = model.posterior_.inclusion_probabilities
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "loss": int((probabilities > _HALF).sum()),
        "size": float(probabilities.sum()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.penalty", description=__doc__.splitlines()[0])
    parser.add_argument("data", nargs="*", default=[*PREDICTED, *NOISE], help=f"of {', '.join((*PREDICTED, *NOISE))}")
    parser.add_argument("--prices", nargs="+", default=["bic", "3", "2", "1", "oc:aic"])
    parser.add_argument("--coefficients", nargs="+", default=["auto"], help="priors of coefficients")
    parser.add_argument("--folds", type=int, default=N_FOLDS, help="of each cell; data sets of noise")
    parser.add_argument("--chains", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(".cache/penalty"))
    arguments = parser.parse_args()
    cells = list(itertools.product(arguments.data, arguments.prices, arguments.coefficients))
    paths = {cell: arguments.out / f"{'--'.join(cell)}--{arguments.chains}.jsonl" for cell in cells}
    with ProcessPoolExecutor(arguments.jobs) as pool:
        jobs = []
        for number, cell in itertools.product(range(arguments.folds), cells):
            if number not in {line["number"] for line in read(paths[cell])}:
                run = predict_fold if cell[0] in PREDICTED else count_noise
                jobs.append((cell, number, pool.submit(run, *cell, arguments.chains, number)))
        for cell, number, job in jobs:
            append(paths[cell], {"number": number, **job.result()})
    print(f"{'data':<20}{'price':>12}{'coefficients':>14}{'fits':>6}{'loss':>9}{'accuracy':>10}{'size':>7}{'s/fit':>7}")
    for cell in cells:
        lines = read(paths[cell])
        if lines:
            mean = {key: np.mean([line[key] for line in lines]) for key in lines[0]}
            accuracy = f"{mean['accuracy']:>10.4f}" if "accuracy" in mean else " " * 10
            figures = f"{len(lines):>6}{mean['loss']:>9.4f}{accuracy}{mean['size']:>7.1f}{mean['seconds']:>7.1f}"
            print(f"{cell[0]:<20}{cell[1]:>12}{cell[2]:>14}{figures}")


if __name__ == "__main__":
    main()
