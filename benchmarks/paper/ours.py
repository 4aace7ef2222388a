"""One run of BGNLM or BGLM on an example: how well it predicts, what it finds, how long it takes."""

import time
from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.paper.data import Sample, load
from benchmarks.paper.measures import Found, confusion, errors
from benchmarks.paper.presearch import Presearch, presearch
from benchmarks.paper.settings import OURS, RECIPES, Score, Search, estimator
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
    strategy: str | None = None,
    is_linear: bool = False,
    is_filtered: bool = True,
    transforms: Any = None,
) -> dict[str, Any]:
    """Fit the training rows of an example, predict the others."""
    sample = load(example, is_standardised=example == "spam" and score not in OURS)

    def chains(number: int, first_seed: int) -> Any:
        model = estimator(
            RECIPES[recipe],
            score,
            search,
            n_inputs=sample.X.shape[1],
            n_chains=number,
            seed=first_seed,
            strategy=strategy,
            is_linear=is_linear,
            transforms=transforms,
        )
        if score == "script" and search != "informed" and is_filtered and not is_linear:
            model.set_params(keep=_kept(example, recipe, first_seed))
        return model.fit(sample.X, sample.y)

    began = time.perf_counter()
    if n_chains > 1 and (score == "ensemble" or (sample.is_classification and score not in OURS)):
        each = [chains(1, seed * n_chains + number) for number in range(n_chains)]
        model = WeightedChains(each, is_equal=score == "ensemble")
        line = model.line
    else:
        model = chains(n_chains, seed)
        line = _line(model, score)
    fitted = time.perf_counter()
    outcome = assess(sample, model)
    return line | {
        "seconds": round(fitted - began, 3),
        "predicting": round(time.perf_counter() - fitted, 3),
        "outcome": outcome,
    }


class WeightedChains:
    """Chains put together as in the paper, by the share u_b of the mass that each has found, or all alike.

    A model that several chains have found counts several times. Where the classes can be told apart with certainty, so
    that only its size counts for a model, that makes a difference: the union of the chains prefers the smallest models,
    which few chains have found. Chains that are all alike are averaged even if one of them has found more than others.
    """

    def __init__(self, chains: Sequence[Any], *, is_equal: bool = False) -> None:
        masses = np.array([0.0 if is_equal else chain.posterior_.log_mass for chain in chains])
        shares = np.exp(masses - masses.max())
        self.chains, self.shares = chains, (shares / shares.sum()).tolist()

    def predict_proba(self, X: pd.DataFrame) -> np.ndarray:
        """Weighted mean of the probabilities of the classes."""
        return self._mean([chain.predict_proba(X) for chain in self.chains])

    def predict(self, X: pd.DataFrame) -> np.ndarray:
        """Weighted mean of the predictions."""
        return self._mean([chain.predict(X) for chain in self.chains])

    def _mean(self, predictions: Sequence[np.ndarray]) -> np.ndarray:
        return np.asarray(np.tensordot(self.shares, np.array(predictions), 1))

    @property
    def line(self) -> dict[str, Any]:
        """What a run stores, but for the time it took."""
        probabilities: dict[Feature, float] = defaultdict(float)
        for share, chain in zip(self.shares, self.chains, strict=True):
            found = chain.posterior_
            for feature, probability in zip(found.features, found.inclusion_probabilities, strict=True):
                probabilities[feature] += share * float(probability)
        return {
            "scored": sum(int(chain.diagnostics_.n_scored) for chain in self.chains),
            "stored": sum(int(chain.diagnostics_.n_models) for chain in self.chains),
            "features": reported(list(probabilities), np.array(list(probabilities.values()))),
        }


def _kept(example: str, recipe: str, seed: int) -> list[str]:
    """Inputs that a chain of the scripts keeps in all populations: none where their filter makes no difference."""
    settings = RECIPES[recipe]
    if settings.first_filter is None:
        return []
    rng = np.random.default_rng(seed)
    return _presearch(example, recipe).surviving_inputs(rng, settings.n_steps, settings.first_filter)


@cache
def _presearch(example: str, recipe: str) -> Presearch:
    sample = load(example, is_standardised=example == "spam")
    return presearch(sample.X, sample.y, family=RECIPES[recipe].family, **RECIPES[recipe].priors["script"])


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
    line = _line(model, score) | {"seconds": round(time.perf_counter() - began, 3)}
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


def _line(model: Any, score: Score) -> dict[str, Any]:
    """Probabilities are sums over the chains with weights u_b, as in the paper; by default those of the union."""
    posterior, diagnostics = model.posterior_, model.diagnostics_
    is_union = score in OURS
    probabilities = posterior.inclusion_probabilities if is_union else diagnostics.weighted_probabilities
    return {
        "scored": int(diagnostics.n_scored),
        "stored": int(diagnostics.n_models),
        "features": reported(posterior.features, probabilities),
    }


def reported(features: Sequence[Feature], probabilities: np.ndarray) -> list[Found]:
    """Features that could be reported, the most probable first."""
    both = sorted(zip(features, probabilities.tolist(), strict=True), key=lambda pair: -pair[1])
    return [Found(str(f), round(p, 5), int(operation_count(f))) for f, p in both if p > REPORTED]
