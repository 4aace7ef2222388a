"""Example 5: methylation counts with latent processes along the genome."""

import math
import time
from typing import Any

from benchmarks.paper.measures import Found
from benchmarks.paper.ours import REPORTED, reported
from benchmarks.paper.settings import OURS, Score, Search
from bgnlm import BGNLMRegressor, SearchConfig
from bgnlm.datasets import load_epigenetic
from bgnlm.latent import AR1, IID, OU, RW1
from bgnlm.search import Limits, ModelPrior, MoveProbabilities

# The authors' 500 sites, which are a random draw, and 500 consecutive ones, as the text has it.
SAMPLES = {"authors' sample": "paper", "first 500 sites": "first500"}
_LOG_200 = math.log(200.0)
# What a feature costs: log 200, as much for each operation, process and the offset; operations alone, as in the text;
# or the text's log n for inputs too. Coefficients: precision 0.001, or one with the prior of the text.
PRIORS: dict[str, dict[str, Any]] = {
    "script": {
        "coefficient_prior": "normal",
        "penalty": ModelPrior(complexity="oc+1", penalty=_LOG_200, latent_penalty=_LOG_200, latent_complexity="equal"),
    },
    "paper": {
        "coefficient_prior": "normal-gamma",
        "penalty": ModelPrior(complexity="oc", latent_complexity="equal"),
    },
    "paper, inputs cost": {
        "coefficient_prior": "normal-gamma",
        "penalty": ModelPrior(complexity="oc+1", latent_complexity="equal"),
    },
}
_SCRIPT_G = ("cos", "sigmoid", "tanh", "atan", "sin", "erf")
_TEXT_G = ("sigmoid", "gauss", "tanh", "atan", "sin", "cos")


def _settings(score: Score, prior: str, search: Search) -> dict[str, Any]:
    if score in OURS:
        return {"penalty": "predict"} if score == "predict" else {}
    limits = {"max_width": 15} if score == "script" else {"max_width": 15, "max_model_size": 15}
    config = SearchConfig(
        population_size=15,
        n_populations=10,
        keep_threshold=0.7,
        informed=0.5 if search == "informed" else 0.0,
        select_offset=True,
        moves=MoveProbabilities(new_input=1, modification=5, multiplication=10, projection=1),
        limits=Limits(max_depth=5, **limits),
    )
    return {"transforms": _SCRIPT_G if score == "script" else _TEXT_G, "search": config, **PRIORS[prior]}


def find_components(sample: str, score: Score, prior: str, search: Search, n_chains: int, seed: int) -> dict[str, Any]:
    """One run: probabilities of features, latent processes and the offset, which with the defaults is always in."""
    data = load_epigenetic(SAMPLES[sample], "script" if score == "script" else "text")  # type: ignore[arg-type]
    model = BGNLMRegressor(
        family="poisson",
        latent=[process("pos") for process in (AR1, RW1, OU, IID)],
        n_chains=n_chains,
        random_state=seed,
        **_settings(score, prior, search),
    )
    began = time.perf_counter()
    model.fit(data.X.assign(pos=data.position), data.y, offset=data.offset)
    seconds = time.perf_counter() - began
    components = model.components_.drop_duplicates("component")[["component", "probability"]]
    found = [Found(str(name), round(float(p), 5), 0) for name, p in components.itertuples(index=False) if p > REPORTED]
    features = reported(model.posterior_.features, model.posterior_.inclusion_probabilities)
    names = {feature.text for feature in found}
    return {
        "seconds": round(seconds, 1),
        "scored": int(model.diagnostics_.n_scored),
        "stored": int(model.diagnostics_.n_models),
        "features": sorted(found + [f for f in features if f.text not in names], key=lambda f: -f.probability),
    }
