"""Gaussian models per second on one core: ``python -m benchmarks.gaussian [--rows N ...]``.

All models counted are distinct, and each is scored completely: from the Gram matrix to its log marginal likelihood
under the default prior. The Gram matrix and the table of the prior are made once per data set and timed apart.
"""

import argparse
import os
from time import perf_counter

for _variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"

import numpy as np  # noqa: E402  (the number of threads is read when NumPy loads)

from benchmarks.timing import best_time  # noqa: E402
from bgnlm import CoefficientPrior  # noqa: E402
from bgnlm.likelihood.gaussian import GaussianScore  # noqa: E402
from bgnlm.likelihood.gram import GramStatistics, gram_statistics  # noqa: E402
from bgnlm.likelihood.subsets import score_all_subsets, score_subsets  # noqa: E402
from bgnlm.likelihood.tabulate import TabulatedScore  # noqa: E402

REPEATS = 5


def data(n_rows: int, n_columns: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(1)
    X = rng.normal(size=(n_rows, n_columns))
    return X[:, :5].sum(axis=1) + rng.normal(size=n_rows) * 2.0, X


def subsets_of_size(size: int, n_columns: int, n_models: int) -> np.ndarray:
    """Distinct random subsets as rows of Booleans."""
    rng = np.random.default_rng(2)
    included = np.zeros((n_models, n_columns), dtype=bool)
    np.put_along_axis(included, np.argsort(rng.random((n_models, n_columns)), axis=1)[:, :size], True, axis=1)
    return np.unique(included, axis=0)


def lstsq_rate(y: np.ndarray, X: np.ndarray, included: np.ndarray) -> float:
    """Models per second by ``numpy.linalg.lstsq``, each from the data."""
    full = np.column_stack([np.ones(len(y)), X])
    n_models = 200 if len(y) < 10_000 else 3
    start = perf_counter()
    for row in included[:n_models]:
        np.linalg.lstsq(full[:, np.append(True, row)], y, rcond=None)
    return n_models / (perf_counter() - start)


def scorer(statistics: GramStatistics) -> TabulatedScore:
    return TabulatedScore(GaussianScore(CoefficientPrior("robust"), statistics.n_obs, statistics.log_total))


def measure(n_rows: int) -> None:
    print(f"\nn = {n_rows:,} rows")
    for n_columns, what in ((40, "separate subsets of size 8"), (15, "all models of 15 columns"), (20, "... of 20")):
        y, X = data(n_rows, n_columns)
        weights, offset = np.ones(n_rows), np.zeros(n_rows)
        gram_seconds = best_time(lambda: gram_statistics(y, X, weights, offset), 2)  # noqa: B023
        statistics = gram_statistics(y, X, weights, offset)
        score = scorer(statistics)
        if n_columns == 40:
            included = subsets_of_size(8, n_columns, 300_000)
            n_models = len(included)
            seconds = best_time(lambda: score_subsets(statistics, score, included), REPEATS)  # noqa: B023
            slow = included
        else:
            n_models = 2**n_columns
            seconds = best_time(lambda: score_all_subsets(statistics, score, n_columns), REPEATS)  # noqa: B023
            slow = np.random.default_rng(3).random((200, n_columns)) < 0.5
        lower = score.table(0, 1.0).lower
        table_seconds = best_time(
            lambda: scorer(statistics).table(8 if n_columns == 40 else n_columns, float(np.exp(lower))),  # noqa: B023
            2,
        )
        rate, plain = n_models / seconds, lstsq_rate(y, X, slow)
        print(
            f"  {what:<27} {n_models:>9,} models  {rate / 1e6:6.1f} million/s   lstsq {plain:10,.1f}/s   "
            f"ratio {rate / plain:13,.0f}   Gram {gram_seconds:.4f} s   table {table_seconds:.3f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000, 1_000_000])
    for n_rows in parser.parse_args().rows:
        measure(n_rows)


if __name__ == "__main__":
    main()
