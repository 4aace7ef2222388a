"""One run of BGNLM or BGLM on an example: how well it predicts, what it finds, how long it takes."""

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.paper.data import Sample, load
from benchmarks.paper.measures import Found, confusion, errors
from benchmarks.paper.settings import RECIPES, Score, Search, estimator
from bgnlm import parse
from bgnlm.datasets import load_exoplanets, make_logic
from bgnlm.features import Evaluator, Feature, operation_count
from bgnlm.search import ModelPrior
from bgnlm.search.prior import logic_complexity

REPORTED = 0.05  # least probability of a feature that is stored
_HALF = 0.5
_SAME = 1.0 - 1e-10  # correlation of features that are one function on the data
KEPLER = {
    "F1": "cbrt_abs(HostStarMassSlrMass*PeriodDays**2)",
    "F2": "cbrt_abs(HostStarRadiusSlrRad*PeriodDays**2)",
    "F3": "cbrt_abs(HostStarTempK*PeriodDays**2)",
}
MASS = {"law": "PlanetaryDensJpt*RadiusJpt**3"}


def predict(
    example: str,
    recipe: str,
    score: Score,
    search: Search,
    n_chains: int,
    seed: int,
    *,
    strategy: str = "naive",
    is_linear: bool = False,
    transforms: Any = None,
) -> dict[str, Any]:
    """Fit the training rows of an example, predict the others."""
    sample = load(example, is_standardised=example == "spam" and score != "default")
    model = estimator(
        RECIPES[recipe],
        score,
        search,
        n_inputs=sample.X.shape[1],
        n_chains=n_chains,
        seed=seed,
        strategy=strategy,
        is_linear=is_linear,
        transforms=transforms,
    )
    began = time.perf_counter()
    model.fit(sample.X, sample.y)
    fitted = time.perf_counter()
    outcome = assess(sample, model)
    return _line(model, score, began, fitted) | {
        "predicting": round(time.perf_counter() - fitted, 3),
        "outcome": outcome,
    }


def assess(sample: Sample, model: Any) -> dict[str, float]:
    """Errors of a model, ours or another one, among the test rows."""
    if not sample.is_classification:
        return errors(sample.y_new, np.ravel(model.predict(sample.X_new)))
    return dict(confusion(sample.y_new == 1, model.predict_proba(sample.X_new)[:, 1] >= _HALF))


def find_planets(
    target: str, recipe: str, score: Score, search: Search, n_chains: int, seed: int, *, transforms: Any = None
) -> dict[str, Any]:
    """Examples 4 and 7: look for a law."""
    data = load_exoplanets(target)  # type: ignore[arg-type]
    truths = KEPLER if target == "SemiMajorAxisAU" else MASS
    return _find(data.X, data.y, truths, recipe, score, search, n_chains, seed, transforms=transforms)


def find_logic(model: str, score: Score, search: Search, n_chains: int, seed: int) -> dict[str, Any]:
    """Example 8: the data are drawn anew for each seed, the same for "BGNLM" and "BLRM"."""
    data = make_logic(random_state=seed)
    truths = {text: text for text in data.truth}
    return _find(data.X, data.y, truths, "logic", score, search, n_chains, seed, is_logic=model == "BLRM")


def _find(
    X: pd.DataFrame,
    y: pd.Series,
    truths: dict[str, str],
    recipe: str,
    score: Score,
    search: Search,
    n_chains: int,
    seed: int,
    *,
    transforms: Any = None,
    is_logic: bool = False,
) -> dict[str, Any]:
    model = estimator(
        RECIPES[recipe], score, search, n_inputs=X.shape[1], n_chains=n_chains, seed=seed, transforms=transforms
    )
    if is_logic:  # conjunctions of inputs and their negations, with the prior of Bayesian logic regression
        prior = ModelPrior(penalty=1.0, complexity=logic_complexity(X.shape[1], RECIPES[recipe].depth))
        model.set_params(transforms="logic", penalty=prior)
    began = time.perf_counter()
    model.fit(X, y)
    line = _line(model, score, began, time.perf_counter())
    evaluator = Evaluator(X.to_numpy(), list(X.columns))
    return line | {
        "features": [feature._replace(truth=same(evaluator, feature, truths)) for feature in line["features"]]
    }


def same(evaluator: Evaluator, feature: Found, truths: dict[str, str]) -> str | None:
    """Name of the true feature that is the same function on the data, up to an affine map."""
    column = evaluator.column(parse(feature.text))
    for name, text in truths.items():
        if abs(np.corrcoef(column, evaluator.column(parse(text)))[0, 1]) > _SAME:
            return name
    return None


def _line(model: Any, score: Score, began: float, fitted: float) -> dict[str, Any]:
    """Probabilities are sums over the chains with weights u_b, as in the paper; by default those of the union."""
    posterior, diagnostics = model.posterior_, model.diagnostics_
    is_union = score == "default"
    probabilities = posterior.inclusion_probabilities if is_union else diagnostics.weighted_probabilities
    return {
        "seconds": round(fitted - began, 3),
        "scored": int(diagnostics.n_scored),
        "stored": int(diagnostics.n_models),
        "features": reported(posterior.features, probabilities),
    }


def reported(features: Sequence[Feature], probabilities: np.ndarray) -> list[Found]:
    """Features that could be reported, the most probable first."""
    both = sorted(zip(features, probabilities.tolist(), strict=True), key=lambda pair: -pair[1])
    return [Found(str(f), round(p, 5), int(operation_count(f))) for f, p in both if p > REPORTED]
