"""Generalized linear models: time per model on one core: ``python -m benchmarks.glm``.

A warm start is the mode of the model without the last column. All times are after compilation. With the paper's data in
BGNLM_DATA the authors' score is measured on these, too.
"""

import os

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np  # noqa: E402  (the number of threads is read when NumPy loads)

from benchmarks.timing import best_time  # noqa: E402
from bgnlm import CoefficientPrior, enumerate_models  # noqa: E402
from bgnlm.datasets import load_asteroids, load_breast_cancer, load_spam  # noqa: E402
from bgnlm.likelihood.families import resolve_family  # noqa: E402
from bgnlm.likelihood.glm import GlmStatistics, glm_statistics  # noqa: E402
from bgnlm.likelihood.glm_score import GlmScore  # noqa: E402
from bgnlm.likelihood.surrogate import quadratic_surrogate  # noqa: E402

SIZES = ((143, 10), (1_536, 60), (20_000, 50))


def data(family: str, n_rows: int, n_columns: int) -> GlmStatistics:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_rows, n_columns))
    eta = X @ (rng.normal(size=n_columns) / np.sqrt(n_columns))
    if family == "binomial":
        y = (rng.random(n_rows) < 1 / (1 + np.exp(-eta))).astype(float)
    else:
        y = rng.poisson(np.exp(0.5 * eta)).astype(float)
    return glm_statistics(resolve_family(family, None), y, X, np.ones(n_rows), np.zeros(n_rows))


def per_model(statistics: GlmStatistics, prior: str, n_models: int, repeats: int) -> float:
    """Seconds per model in a walk that leaves out one column after the other and comes back: all starts are warm."""
    included = np.ones((n_models, statistics.n_columns), dtype=bool)
    for j in range(n_models // 2):
        included[2 * j, j % statistics.n_columns] = False
    score = GlmScore(CoefficientPrior(prior), statistics)
    return best_time(lambda: score.log_marginals(included), repeats) / n_models


def main() -> None:
    for family in ("binomial", "poisson"):
        print(f"{family}: one model, warm start")
        for n_rows, n_columns in SIZES:
            statistics = data(family, n_rows, n_columns)
            n_models = {143: 400, 1_536: 40, 20_000: 16}[n_rows]
            fixed = per_model(statistics, "g", n_models, 5)
            mixed = per_model(statistics, "hyper-g/n", n_models, 3)
            script = per_model(statistics, "script", n_models, 3)
            print(
                f"  n = {n_rows:>6,}, k = {n_columns}: fixed g {1e6 * fixed:9.1f} us   "
                f"g integrated {1e6 * mixed:9.1f} us   ratio {mixed / fixed:.1f}   "
                f"as the scripts {1e6 * script:9.1f} us"
            )
    enumeration()
    if os.environ.get("BGNLM_DATA"):
        as_the_scripts()


def enumeration() -> None:
    from sklearn.datasets import load_breast_cancer

    X, y = load_breast_cancer(return_X_y=True)
    rows = np.random.default_rng(1).permutation(len(y))[:143]
    X, y = X[rows, :14], 1.0 - y[rows]
    print("breast cancer (143 of its rows), 14 columns, 16,384 models")
    for prior in ("g", "auto"):
        seconds = best_time(lambda: enumerate_models(y, X, family="binomial", coefficient_prior=prior), 3)  # noqa: B023
        print(f"  exact, prior {prior!r}: {seconds:.2f} s")
    statistics = glm_statistics(resolve_family("binomial", None), y, X, np.ones(143), np.zeros(143))
    columns = np.array([0, 1, 7], dtype=np.int64)
    seconds = best_time(
        lambda: quadratic_surrogate(statistics, columns, statistics.data.null_information / 143.0).scores(), 5
    )
    print(f"  surrogate: {seconds:.4f} s, {1e6 * seconds / 2**14:.2f} us a model")


def as_the_scripts() -> None:
    """The scripts' score, which starts anew for each model, on the paper's data: random models of some size."""
    print("the authors' score on the paper's training rows")
    for load, size in ((load_breast_cancer, 10), (load_asteroids, 9), (load_spam, 57)):
        dataset = load()
        assert dataset.is_train is not None
        X, y = dataset.X.to_numpy()[dataset.is_train], (dataset.y.to_numpy() == 1)[dataset.is_train].astype(float)
        statistics = glm_statistics(resolve_family("binomial", None), y, X, np.ones(len(y)), np.zeros(len(y)))
        n_models = 10 if len(y) > 1_000 else 100
        ranks = np.argsort(np.random.default_rng(1).random((n_models, X.shape[1])), axis=1)
        score = GlmScore(CoefficientPrior("script"), statistics)
        seconds = best_time(lambda: score.log_marginals(ranks < size), 3) / n_models  # noqa: B023
        print(f"  {dataset.name}: n = {len(y):,}, k = {size}: {1e3 * seconds:.3f} ms a model")


if __name__ == "__main__":
    main()
