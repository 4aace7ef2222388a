"""Symbolic regression for Kepler's third law, by gplearn as in Example 4."""

import time
from typing import Any

import numpy as np

from benchmarks.paper.ours import KEPLER
from bgnlm import parse
from bgnlm.datasets import load_exoplanets
from bgnlm.features import Evaluator

# The paper's two choices of inputs: x1 and x2.
INPUTS = {
    "x1": ("PeriodDays", "HostStarMassSlrMass", "HostStarRadiusSlrRad", "HostStarTempK"),
    "x2": (
        "PeriodDays",
        "Eccentricity",
        "HostStarMassSlrMass",
        "HostStarRadiusSlrRad",
        "HostStarMetallicity",
        "HostStarTempK",
    ),
}
POPULATION, GENERATIONS, PARSIMONY = 40_000, 50, 0.1
_DAYS = 15_000.0  # by which the authors' script divides the period
_SAME = 1.0 - 1e-6  # correlation with the law, of a program that may add small terms


def regress(inputs: str, seed: int, population: int = POPULATION, generations: int = GENERATIONS) -> dict[str, Any]:
    """One run: the program found, and which of the three laws it is up to an affine map."""
    from gplearn.functions import make_function
    from gplearn.genetic import SymbolicRegressor

    data = load_exoplanets()
    X = data.X[list(INPUTS[inputs])].assign(PeriodDays=data.X["PeriodDays"] / _DAYS)
    root = make_function(function=_cube_root, name="cbrt", arity=1)
    model = SymbolicRegressor(
        population_size=population,
        generations=generations,
        function_set=("add", "sub", "mul", "div", root),
        metric="rmse",
        parsimony_coefficient=PARSIMONY,
        feature_names=list(X.columns),
        random_state=seed,
    )
    began = time.perf_counter()
    model.fit(X.to_numpy(), data.y.to_numpy())
    seconds = time.perf_counter() - began
    evaluator = Evaluator(data.X.to_numpy(), list(data.X.columns))
    truth = _law(model.predict(X.to_numpy()), evaluator)
    text, n_operations = str(model._program), sum(1 for node in model._program.program if hasattr(node, "arity"))
    return {"seconds": round(seconds, 1), "features": [(text, 1.0, n_operations, truth)]}


def _law(predicted: np.ndarray, evaluator: Evaluator) -> str | None:
    """The law that the program is closest to, if it is that law."""
    if not np.isfinite(predicted).all() or np.ptp(predicted) == 0.0:
        return None
    close = {name: abs(np.corrcoef(predicted, evaluator.column(parse(text)))[0, 1]) for name, text in KEPLER.items()}
    best = max(close, key=lambda name: close[name])
    return best if close[best] > _SAME else None


def _cube_root(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.cbrt(np.abs(values)))
