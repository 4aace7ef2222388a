"""How the paper's text and its authors' scripts set each example, and how their settings become ours.

Scores. "script": likelihood, prior, limit on operations and G as the scripts ran. "paper": the literal text: Jeffreys'
prior, inputs free, D, L and Q. "default": what the library does if only data and family are given. "predict": the same
with ``penalty="predict"``. "ensemble": that with chains of equal weight, and what cross-validation among the training
rows says of weights of projections, transforms, priors of slopes and models drawn from a pool.

Searches. "mjmcmc": Algorithms 1 and 2, lengths of the scripts, plain generation of features. "plain": the same
populations, in each of which all models are scored where there are not too many (or drawn by a quadratic
approximation). "informed": the library's own search within the example's G and limits.
"""

from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

from bgnlm import BGNLMClassifier, BGNLMRegressor, CoefficientPrior, SearchConfig
from bgnlm.features.presets import PRESETS
from bgnlm.search import Limits, ModelPrior, MoveProbabilities

Score = Literal["script", "paper", "default", "predict", "ensemble"]
Search = Literal["mjmcmc", "plain", "informed"]
SCORES: tuple[Score, ...] = ("script", "paper", "default", "predict", "ensemble")
OURS = ("default", "predict", "ensemble")  # scores that are not of the authors
SEARCHES: tuple[Search, ...] = ("mjmcmc", "plain", "informed")

_MOST_ENUMERATED = 16  # linear models: all are scored up to so many inputs
_EQUAL = MoveProbabilities(new_input=1, modification=1, multiplication=1, projection=1)
_PRODUCTS = MoveProbabilities(new_input=1, modification=5, multiplication=10, projection=1)
_WITHOUT_PRODUCTS = MoveProbabilities(new_input=1, modification=1, multiplication=0, projection=1)

_CLASSIFICATION = {
    "script": {"coefficient_prior": "script", "penalty": ModelPrior(penalty=1.0, complexity="script")},
    "paper": {"coefficient_prior": "jeffreys", "penalty": ModelPrior(penalty="aic", complexity="oc")},
}
_LAW = {
    "script": {"coefficient_prior": "script", "penalty": ModelPrior(complexity="oc+1")},
    "paper": {"coefficient_prior": "jeffreys", "penalty": ModelPrior(complexity="oc")},
}


@dataclass(frozen=True, kw_only=True)
class Recipe:
    """Settings of one example.

    Attributes
    ----------
    family
        "binomial" or "gaussian".
    transforms
        G in the scripts and in the text.
    priors
        Of coefficients and of models, in the scripts and in the text; {} for the library's.
    size
        Q, L and the population size.
    depth
        D of the text.
    operations
        Largest operation count in the scripts (their limit is on one more).
    n_populations, n_steps, n_final_steps, min_models
        Populations, MJMCMC steps in each and in the last, which goes on until so many models are known.
    keep_threshold
        rho_del.
    first_filter
        Probability, by stepwise selection and a short walk, of inputs that stay in all populations of the scripts;
        None where that makes no difference.
    moves
        Probabilities of the ways to make features.
    n_averaged
        Models that predictions average over.
    ensemble, n_alike
        What the chains of an ensemble have in place of the default's, by cross-validation among the training rows, and
        how many there are.
    """

    family: str = "gaussian"
    transforms: dict[str, Any]
    priors: dict[str, dict[str, Any]]
    size: int
    depth: int
    operations: int
    n_populations: int
    n_steps: int
    n_final_steps: int
    min_models: int = 0
    keep_threshold: float
    first_filter: float | None = None
    moves: MoveProbabilities = field(default=_PRODUCTS)
    n_averaged: int = 1000
    ensemble: dict[str, Any] = field(default_factory=dict)
    n_alike: int = 32


_classification = partial(
    Recipe,
    family="binomial",
    transforms={"script": "classification", "paper": "classification"},
    priors=_CLASSIFICATION,
    n_steps=100,
    moves=_EQUAL,
)
_long = partial(
    Recipe,
    size=15,
    operations=4,
    n_populations=40,
    n_steps=250,
    n_final_steps=250,
    min_models=10_000,
    keep_threshold=0.9,
)
_exoplanets = partial(_long, priors=_LAW, depth=5)
_without_products = partial(
    _exoplanets,
    transforms={"script": "neural", "paper": "neural"},
    depth=300,
    operations=300,
    moves=_WITHOUT_PRODUCTS,
)
_BREAST_CANCER = _classification(
    size=20,
    depth=6,
    operations=5,
    n_populations=10,
    n_final_steps=100,
    min_models=7_000,
    keep_threshold=0.5,
    first_filter=0.4,
)
# The scripts stop at 20,000 and 7,000 evaluations of models here, some eight of which make a step of theirs, and one a
# step of ours: 600 of their steps are left for the last population of the first, as many evaluations for the second.
_SPAM = _classification(
    size=100,
    depth=6,
    operations=59,
    n_populations=10,
    n_final_steps=600,
    keep_threshold=0.5,
    first_filter=0.4,
    ensemble={
        "coefficient_prior": CoefficientPrior("gaussian", variance=0.5**2),
        "search": SearchConfig(n_populations=10, n_pool_draws=200),
    },
    n_alike=8,
)
_ASTEROIDS = _classification(
    size=15, depth=4, operations=3, n_populations=5, n_final_steps=6500, keep_threshold=0.1, first_filter=0.18
)


def _with_thresholds(recipe: Recipe) -> Recipe:
    """G and the indicators that the paper suggests for the spam data."""
    functions = (*PRESETS["classification"], *PRESETS["trees"])
    return replace(recipe, transforms={"script": functions, "paper": functions})


def _abalone(script_penalty: float | str, text_penalty: str) -> Recipe:
    script = ModelPrior(penalty=script_penalty, complexity="oc+1")
    text = ModelPrior(penalty=text_penalty, complexity="oc")
    return _long(
        transforms={"script": "abalone", "paper": "abalone"},
        priors={
            "script": {"coefficient_prior": "script", "penalty": script},
            "paper": {"coefficient_prior": "jeffreys", "penalty": text},
        },
        depth=6,
        ensemble={"projection_weights": "conditional"},
    )


def _logic(transforms: dict[str, Any], priors: dict[str, dict[str, Any]], moves: MoveProbabilities) -> Recipe:
    return Recipe(
        transforms=transforms,
        priors=priors,
        size=40,
        depth=4,
        operations=3,
        n_populations=60,
        n_steps=250,
        n_final_steps=250,
        min_models=20_000,
        keep_threshold=0.7,
        moves=moves,
    )


_LOG_2 = 0.6931471805599453
_SMOOTH = ("sigmoid", "gauss", "tanh", "atan", "sin", "cos")
RECIPES: dict[str, Recipe] = {
    "breast_cancer": _BREAST_CANCER,
    "spam": _SPAM,
    "spam+thresholds": _with_thresholds(_SPAM),
    "asteroids": _ASTEROIDS,
    "abalone-aic": _abalone(_LOG_2, "aic"),  # r = 1/2 in the script
    "abalone-bic": _abalone("bic", "bic"),
    "planets-g1": _exoplanets(
        transforms={"script": "kepler-g1", "paper": ("sigmoid", "sin", "cos", "tanh", "atan", "cbrt_abs")}
    ),
    "planets-g2": _exoplanets(
        transforms={
            "script": "kepler-g2",
            "paper": ("sigmoid", "sin", "exp_neg_abs", "log1p_abs", "cbrt_abs", "abs_pow_2_3", "abs_pow_7_2"),
        }
    ),
    "sigmoid-1": _exoplanets(transforms={"script": "neural", "paper": "neural"}),
    "sigmoid-2": _without_products(),
    "sigmoid-3": _without_products(
        priors={
            "script": {"coefficient_prior": "script", "penalty": ModelPrior(penalty=0.0, complexity="oc+1")},
            "paper": {"coefficient_prior": "jeffreys", "penalty": ModelPrior(penalty=0.0, complexity="oc")},
        }
    ),
    "logic": _logic(
        {"script": ("cos", "sigmoid", "tanh", "atan", "sin", "erf"), "paper": _SMOOTH},
        {
            "script": {"coefficient_prior": "bic", "penalty": ModelPrior(complexity="oc")},
            "paper": {"coefficient_prior": "jeffreys", "penalty": ModelPrior(complexity="oc")},
        },
        _PRODUCTS,
    ),
}


def estimator(
    recipe: Recipe,
    score: Score,
    search: Search,
    *,
    n_inputs: int,
    n_chains: int,
    seed: int,
    strategy: str | None = None,
    is_linear: bool = False,
    transforms: Any = None,
) -> BGNLMRegressor | BGNLMClassifier:
    """BGNLM, or BGLM if it is linear, with the settings of an example; `transforms` for G in place of the default's."""
    kind = BGNLMClassifier if recipe.family == "binomial" else BGNLMRegressor
    settings: dict[str, Any] = {"n_chains": n_chains, "random_state": seed}
    if score in OURS:
        settings |= {} if strategy is None else {"projection_weights": strategy}
        settings |= {} if score == "default" else {"penalty": "predict"}
        settings |= recipe.ensemble if score == "ensemble" else {}
        settings |= {} if transforms is None else {"transforms": transforms}
        settings |= {"max_depth": 0} if is_linear else {}
        return kind(**settings)
    settings |= {"transforms": recipe.transforms[score], "projection_weights": strategy or "naive"}
    settings |= recipe.priors[score]
    if strategy == "bayesian":  # a model takes as many fits as there are draws of its weights
        recipe = replace(recipe, n_final_steps=300, min_models=0, n_averaged=300)
    return kind(**settings, search=_linear(recipe, n_inputs) if is_linear else _search(recipe, score, search))


def _limits(recipe: Recipe, score: Score) -> Limits:
    if score == "script":  # L and Q are not enforced
        return Limits(max_depth=recipe.operations, max_width=recipe.size, max_operations=recipe.operations)
    return Limits(max_depth=recipe.depth, max_width=recipe.size, max_model_size=recipe.size)


def _search(recipe: Recipe, score: Score, search: Search) -> SearchConfig:
    if search == "informed":
        return SearchConfig(limits=_limits(recipe, score), n_averaged=recipe.n_averaged)
    return SearchConfig(
        population_size=recipe.size,
        n_populations=recipe.n_populations,
        n_initial_steps=recipe.n_steps,
        n_explore_steps=recipe.n_steps,
        n_final_steps=recipe.n_final_steps,
        min_models=recipe.min_models,
        keep_threshold=recipe.keep_threshold,
        informed=0.0,
        engine="mjmcmc" if search == "mjmcmc" else "auto",
        n_draws=500,
        moves=recipe.moves,
        limits=_limits(recipe, score),
        n_averaged=recipe.n_averaged,
    )


def _linear(recipe: Recipe, n_inputs: int) -> SearchConfig:
    """D = 0: one population of all inputs, all of whose models are scored if there are not too many."""
    is_enumerated = n_inputs <= _MOST_ENUMERATED
    return SearchConfig(
        population_size=n_inputs,
        n_populations=1,
        n_final_steps=recipe.n_populations * recipe.n_steps,
        min_models=0 if is_enumerated else recipe.min_models or 7_000,
        engine="exhaustive" if is_enumerated else "mjmcmc",
        window=1e6,
        limits=Limits(max_depth=0, max_width=1),
        n_averaged=recipe.n_averaged,
    )
