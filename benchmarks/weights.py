"""What a projection costs, by the way its weights are set: ``python -m benchmarks.weights``."""

import os
import statistics
import time

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np  # noqa: E402  (the number of threads is read when NumPy loads)

from bgnlm.features import Evaluator, Feature, get_transform, parse  # noqa: E402
from bgnlm.likelihood.marginal import check_likelihood  # noqa: E402
from bgnlm.search import ProjectionWeights  # noqa: E402
from bgnlm.search.averaged_weights import AverageOverWeights  # noqa: E402
from bgnlm.search.weights import WeightSetter  # noqa: E402

ROWS = (200, 2_000, 20_000)
REPEATS = 9
# Milliseconds at 2,000 rows. With "bayesian" the model of the new projection alone is averaged over its weights too.
ASKED = {"naive": 1.0, "concave": 10.0, "deep": 50.0, "bayesian": None}
# Five inputs each; the deep one has two layers.
ONE_LAYER = ("x1", "x2", "x3", "x4", "x5")
TWO_LAYERS = ("x1", "x2", "x3", "sigmoid(0.2 + x4 + 0.5*x5)")


def response(family: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    eta = 2.0 * np.tanh(0.3 + X[:, 0] - 0.7 * X[:, 1] + 0.5 * X[:, 2]) - 1.0
    match family:
        case "gaussian":
            return eta + 0.3 * rng.normal(size=len(X))
        case "binomial":
            return (rng.random(len(X)) < 1.0 / (1.0 + np.exp(-2.0 * eta))).astype(float)
        case _:
            return rng.poisson(np.exp(0.5 * eta)).astype(float)


def milliseconds(strategy: str, family: str, n_rows: int) -> float:
    """Median over functions and repetitions, one new projection each."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_rows, 5))
    likelihood = check_likelihood(response(family, X, rng), family=family)
    operands: list[Feature] = [parse(text) for text in (TWO_LAYERS if strategy == "deep" else ONE_LAYER)]
    settings = ProjectionWeights(strategy=strategy)  # type: ignore[arg-type]
    evaluator, names = Evaluator(X), tuple(ONE_LAYER)

    def make(name: str) -> None:
        projection = WeightSetter(settings, likelihood, evaluator).project(get_transform(name), operands)
        if strategy == "bayesian" and projection is not None:
            AverageOverWeights(settings, likelihood, X, names).score((projection,))

    make("tanh")
    seconds = []
    for name in ("tanh", "sigmoid", "gauss"):
        for _ in range(REPEATS // 3):
            began = time.perf_counter()
            make(name)
            seconds.append(time.perf_counter() - began)
    return 1e3 * statistics.median(seconds)


def main() -> None:
    print("milliseconds for a new projection of 5 inputs")
    print(f"{'':<10} {'':<10}" + "".join(f"{n_rows:>10,}" for n_rows in ROWS))
    for strategy, asked in ASKED.items():
        for family in ("gaussian", "binomial", "poisson"):
            each = [milliseconds(strategy, family, n_rows) for n_rows in ROWS]
            reached = ""
            if asked is not None:
                reached = f"   asked at 2,000 rows {asked:g}: {'reached' if each[1] <= asked else 'missed'}"
            print(f"{strategy:<10} {family:<10}" + "".join(f"{value:10.2f}" for value in each) + reached, flush=True)


if __name__ == "__main__":
    main()
