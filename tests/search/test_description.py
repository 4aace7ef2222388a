"""A search in plain values: whatever changes what chains find has to be in it."""

import inspect
import json
import re
from dataclasses import fields, replace

import numpy as np
import pytest

from bgnlm.features import Input, Projection, Transform, get_transform, modify, operation_count, parse
from bgnlm.latent.fields import IID, RW1
from bgnlm.likelihood.coefficient_priors import CoefficientPrior
from bgnlm.search.config import Limits, MoveProbabilities, ProjectionWeights, SearchConfig
from bgnlm.search.description import describe, differences
from bgnlm.search.mjmcmc import MjmcmcSettings
from bgnlm.search.prior import ModelPrior, logic_complexity, operations_plus_one
from bgnlm.search.problem import define_problem
from tests.search.latent_scene import place

SMALL = SearchConfig(projection_weights=ProjectionWeights(), population_size=6, n_populations=4, n_candidates=40)
N_ROWS = 45


def _data():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N_ROWS, 3)) + 1.0
    return X[:, 0] * X[:, 1] - X[:, 2] + 0.5 * rng.normal(size=N_ROWS), X


y, X = _data()
BINOMIAL = {"y": y > 0, "family": "binomial"}
one_other = np.where(np.arange(N_ROWS) == 7, 1e-12, 0.0)


def cubed(x):
    return x**3


def dearer_projections(feature):
    return operation_count(feature) + isinstance(feature, Projection)


def dearer_when_nested(feature):
    return operation_count(feature) + (operation_count(feature) > 2)


def measured(complexity):
    return {"prior": ModelPrior(complexity=complexity)}


def keeping_mine(function):
    return {"keep": [modify(Transform("mine", function), Input("x1"))]}


def configured(**settings):
    return {"config": replace(SMALL, **settings)}


def above(quantile, function=lambda x, cut: (x > cut) * 1.0):
    return Transform("above", function, quantile=quantile)


def problem(**changes):
    """A problem that differs from the usual one."""
    settings = {"y": y, "X": X, "transforms": ["sin", "tanh"], "config": SMALL} | changes
    return define_problem(settings.pop("y"), settings.pop("X"), **settings)


# Another value for each setting: those of the search, and those within them.
OTHER_SETTINGS = {
    "population_size": 7,
    "n_populations": 5,
    "n_initial_inputs": 2,
    "n_initial_steps": 251,
    "n_explore_steps": 251,
    "n_final_steps": 1001,
    "min_models": 1,
    "keep_threshold": 0.8,
    "transform_weights": (1.0, 2.0),
    "informed": 0.25,
    "n_candidates": 41,
    "candidate_rows": 30,
    "engine": "mjmcmc",
    "n_draws": 499,
    "window": 19.0,
    "max_models": 1000,
    "patience": 3,
}
OTHER_PARTS = {
    "moves": {"new_input": 0.3, "modification": 0.1, "multiplication": 0.2, "projection": 0.4},
    "projection_weights": {
        "strategy": "deep",
        "n_starts": 5,
        "literal": True,
        "without_gradient": "refuse",
        "weight_variance": 2.0,
        "tolerance": 0.1,
        "n_weight_draws": 500,
        "sampler": "prior",
    },
    "limits": {"max_depth": 4, "max_width": 14, "max_model_size": 3, "max_operations": 9, "max_latent": 2},
    "mjmcmc": {
        "jump_probability": 0.1,
        "smallest_jump": 0.2,
        "largest_jump": 0.4,
        "randomize_rate": 0.05,
        "moves": (0.1, 0.2, 0.3, 0.4),
        "optimizers": (0.2, 0.2, 0.6),
        "burn_in": 0.3,
    },
}
CONFIGS = {name: replace(SMALL, **{name: value}) for name, value in OTHER_SETTINGS.items()} | {
    f"{part}.{name}": replace(SMALL, **{part: replace(getattr(SMALL, part), **{name: value})})
    for part, values in OTHER_PARTS.items()
    for name, value in values.items()
}
# What a message says, what is changed, and from what, if that is not the usual problem.
CHANGES = [
    *((name, {"config": config}, {}) for name, config in CONFIGS.items()),
    ("y has other values", {"y": y + one_other}, {}),
    ("y has other values", {"y": y[:-1], "X": X[:-1]}, {}),
    ("X has other values", {"X": X + one_other[:, None]}, {}),
    ("X has other values", {"X": X[:, ::-1]}, {}),
    ("X has other values", {"X": X[:, :2]}, {}),
    ("sample_weight", {"sample_weight": 1.0 + one_other}, {}),
    ("offset", {"offset": one_other}, {}),
    ("columns was .*'x1'.* and is .*'größe'", {"names": ["größe", "x2", "x3"]}, {}),
    ("columns", {"names": ["x2", "x1", "x3"]}, {}),
    ("family was 'binomial' and is 'gaussian'", {"y": y > 0}, BINOMIAL),
    ("link was 'logit' and is 'probit'", BINOMIAL | {"link": "probit"}, BINOMIAL),
    ("coefficient_prior", {"coefficient_prior": "bic"}, {}),
    ("coefficient_prior", {"coefficient_prior": CoefficientPrior("g", g=20.0)}, {"coefficient_prior": "g"}),
    ("local", BINOMIAL | {"coefficient_prior": CoefficientPrior("g", information="local")}, BINOMIAL),
    ("noise_floor", {"noise_floor": 1e-9}, {}),
    (r"transforms was \['sin', 'tanh'\] and is \['sin'\]", {"transforms": ["sin"]}, {}),
    ("transforms", {"transforms": ["sin", "tanh", "inverse"]}, {}),
    ("transforms", {"transforms": ["tanh", "sin"]}, {}),
    ("transforms sin ", {"transforms": [Transform("sin", np.cos), "tanh"]}, {}),
    ("transforms f ", {"transforms": [Transform("f", lambda x: x**4)]}, {"transforms": [Transform("f", cubed)]}),
    ("above", {"transforms": [above(0.5, lambda x, cut: x - cut)]}, {"transforms": [above(0.5)]}),
    ("above", {"transforms": [above(0.25)]}, {"transforms": [above(0.5)]}),
    ("above", {"transforms": [Transform("above", cubed)]}, {"transforms": [above(0.5)]}),
    ("penalty", {"prior": ModelPrior(penalty=2.5)}, {}),
    ("penalty", {"prior": ModelPrior(penalty="aic")}, {}),
    ("max_model_size", {"prior": ModelPrior(max_model_size=2)}, {}),
    ("weight_cost", {"prior": ModelPrior(weight_cost=0.5)}, {}),
    ("latent_penalty", {"prior": ModelPrior(latent_penalty=0.5)}, {}),
    ("latent_complexity", {"prior": ModelPrior(latent_complexity="equal")}, {}),
    ("latent was", {"latent": [place(RW1("t"), N_ROWS)]}, {"latent": [place(IID("t"), N_ROWS)]}),
    ("select_offset", configured(select_offset=True) | {"offset": X[:, 0]}, {"offset": X[:, 0], "latent": ()}),
    ("complexity", measured("oc"), {}),
    ("complexity", measured(operation_count), {}),
    ("complexity", measured(operations_plus_one), measured(operation_count)),
    ("complexity", measured(dearer_projections), measured(operation_count)),
    ("complexity", measured(dearer_when_nested), measured(operation_count)),
    ("complexity", measured(logic_complexity(3, 2)), measured(logic_complexity(3))),
    ("keep", {"keep": ["x1*x2"]}, {}),
    ("keep", {"keep": ["x2", "x1"]}, {"keep": ["x1", "x2"]}),
    ("mine", keeping_mine(np.abs), keeping_mine(cubed)),
]
NAMES = [f"{k}-{message.split()[0]}" for k, (message, _, _) in enumerate(CHANGES)]


def stored(search):
    """A description as it is read back from a manifest."""
    return json.loads(json.dumps(describe(search)))


def changed(before, now):
    return list(differences(stored(problem(**before)), stored(problem(**now))))


def test_no_setting_is_forgotten():
    """A new one has to be put into the tables above, and into what is described."""
    parts = {
        "moves": MoveProbabilities,
        "projection_weights": ProjectionWeights,
        "limits": Limits,
        "mjmcmc": MjmcmcSettings,
    }
    assert OTHER_PARTS.keys() == parts.keys()
    apart = {"max_seconds", "n_averaged", "n_pool_draws", "pool_size", "select_offset"}
    assert {*OTHER_SETTINGS, *parts, *apart} == {field.name for field in fields(SearchConfig)}
    for name, part in parts.items():
        assert OTHER_PARTS[name].keys() == {field.name for field in fields(part)}


def test_no_argument_is_forgotten():
    tried = {name for _, changes, _ in CHANGES for name in changes}
    assert tried == set(inspect.signature(define_problem).parameters)
    default = ModelPrior()
    priors = [changes["prior"] for _, changes, _ in CHANGES if "prior" in changes]
    for field in fields(ModelPrior):
        assert any(getattr(prior, field.name) != getattr(default, field.name) for prior in priors), field.name


@pytest.mark.parametrize(("message", "now", "before"), CHANGES, ids=NAMES)
def test_what_changes_the_answer_is_described(message, now, before):
    """Whichever of the two came first."""
    found = changed(before, now)
    assert len(found) >= 1
    assert any(re.search(message, text) for text in found), found
    assert len(changed(now, before)) == len(found)


@pytest.mark.parametrize(
    ("now", "before"),
    [
        ({}, {}),
        (configured(max_seconds=3.0), {}),
        ({"X": np.asfortranarray(X)}, {}),
        ({"X": X.tolist(), "y": y[:, None]}, {}),
        ({"sample_weight": np.ones(N_ROWS, int), "offset": np.zeros(N_ROWS)}, {}),
        ({"names": ("x1", "x2", "x3")}, {}),
        ({"transforms": [get_transform("sin"), "tanh"]}, {}),
        ({"transforms": [Transform("f", lambda x: x**3)]}, {"transforms": [Transform("f", cubed)]}),
        ({"keep": ["x2*x1"]}, {"keep": [parse("x1*x2")]}),
        (configured(transform_weights=[1, 2]), configured(transform_weights=(1.0, 2.0))),
        (configured(window=20), configured(window=20.0)),
        ({"prior": ModelPrior(max_model_size=2)}, configured(limits=Limits(max_model_size=2))),
        (measured(lambda f: operation_count(f)), measured(operation_count)),
        ({"names": ["\ud800", "a\n`b", "😀"]}, {"names": ["\ud800", "a\n`b", "😀"]}),
    ],
)
def test_what_changes_nothing_is_no_difference(now, before):
    assert changed(before, now) == []


@pytest.mark.parametrize(
    ("given", "plain"),
    [
        (configured(population_size=np.int64(7)), configured(population_size=7)),
        (configured(window=np.float32(16)), configured(window=16.0)),
        (
            configured(transform_weights=np.array([1.0, 2.0])),
            configured(transform_weights=(1.0, 2.0)),
        ),
        (configured(limits=Limits(max_depth=np.int32(2))), configured(limits=Limits(max_depth=2))),
        ({"prior": ModelPrior(penalty=np.int64(3))}, {"prior": ModelPrior(penalty=3.0)}),
        ({"prior": ModelPrior(max_model_size=np.int64(3))}, {"prior": ModelPrior(max_model_size=3)}),
    ],
)
def test_numbers_of_numpy_are_numbers(given, plain):
    """They pass the checks of settings, so they have to pass here."""
    assert changed(plain, given) == []


def test_functions_are_told_apart_where_the_data_are():
    far = X * 1000.0
    low, high = ([Transform("capped", lambda x, top=top: np.minimum(x, top))] for top in (1500.0, 2000.0))
    assert changed({"X": far, "transforms": low}, {"X": far, "transforms": high})


def fails_below_minus_two(x):
    if (x < -2.0).any():
        raise ValueError("not defined")
    return np.sqrt(x + 2.0)


@pytest.mark.parametrize("function", [fails_below_minus_two, np.emath.sqrt, lambda _: 1.0, lambda _: "text"])
def test_functions_that_fail_somewhere(function):
    """The search leaves such features out; to describe it is no harder."""
    transforms = ["sin", Transform("f", function)]
    assert changed({"transforms": transforms}, {"transforms": transforms}) == []
    assert changed({"transforms": transforms}, {"transforms": ["sin", Transform("f", cubed)]})


def test_a_measure_of_complexity_may_rule_features_out():
    prior = ModelPrior(complexity=lambda feature: np.inf if operation_count(feature) else 1.0)
    assert changed({"prior": prior}, {"prior": prior}) == []
    assert changed({"prior": prior}, measured(lambda _: 1.0))


def test_a_part_that_is_missing_is_a_difference():
    """As in a manifest that is damaged, or was written by a version that did not know it."""
    whole = stored(problem(sample_weight=np.full(N_ROWS, 2.0)))
    for name in whole:
        part = {key: value for key, value in whole.items() if key != name}
        for found in (list(differences(part, whole)), list(differences(whole, part))):
            assert len(found) == (whole[name] is not None)
            assert all(name in text for text in found)


@pytest.mark.parametrize("value", [None, 3, "text", [], {}, {"sin": None, "tanh": None}])
def test_a_part_that_is_something_else_is_a_difference(value):
    whole = stored(problem())
    for name in whole:
        found = list(differences(whole | {name: value}, whole))
        assert len(found) == (whole[name] != value)
