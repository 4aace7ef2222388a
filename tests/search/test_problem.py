"""What a user can set for a search: defaults, and messages for what makes no sense."""

import numpy as np
import pytest

from bgnlm.errors import DataError, FeatureError, SettingError
from bgnlm.features import Input, Transform, get_transform, modify, parse
from bgnlm.search.config import Limits, MoveProbabilities, ProjectionWeights, SearchConfig, resolved
from bgnlm.search.mjmcmc import MjmcmcSettings
from bgnlm.search.prior import ModelPrior
from bgnlm.search.problem import define_problem
from tests.features.strategies import Frame


def problem(n_inputs=3, **options):
    rng = np.random.default_rng(1)
    return define_problem(rng.normal(size=20), rng.normal(size=(20, n_inputs)), **options)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"population_size": 0}, "population_size must be 1 or more; got 0"),
        ({"population_size": 2.5}, "population_size must be a whole number; got 2.5"),
        ({"n_populations": 0}, "n_populations must be 1 or more"),
        ({"n_initial_inputs": 0}, "n_initial_inputs must be 1 or more"),
        ({"n_explore_steps": -1}, "n_explore_steps must be 0 or more"),
        ({"n_initial_steps": -1}, "n_initial_steps must be 0 or more"),
        ({"n_final_steps": -1}, "n_final_steps must be 0 or more"),
        ({"min_models": True}, "min_models must be a whole number"),
        ({"keep_threshold": 1.5}, "keep_threshold must be at most 1; got 1.5"),
        ({"keep_threshold": -0.5}, "keep_threshold must be 0 or more"),
        ({"informed": 2}, "informed must be at most 1"),
        ({"informed": float("nan")}, "informed must be a finite number"),
        ({"n_candidates": 0}, "n_candidates must be 1 or more"),
        ({"candidate_rows": 0}, "candidate_rows must be 1 or more"),
        ({"n_draws": 0}, "n_draws must be 1 or more"),
        ({"window": -1}, "window must be 0 or more"),
        ({"max_models": 0}, "max_models must be 1 or more"),
        ({"patience": 0}, "patience must be 1 or more"),
        ({"max_seconds": "1"}, "max_seconds must be a finite number; got '1'"),
        ({"engine": "mcmc"}, "engine must be one of 'auto', 'exhaustive', 'mjmcmc', 'surrogate'; got 'mcmc'"),
        ({"moves": (1, 2, 3, 4)}, r"Write moves=bgnlm.search.MoveProbabilities\(\.\.\.\)"),
        ({"limits": 5}, r"limits must be a Limits; got 5"),
        ({"mjmcmc": None}, "mjmcmc must be a MjmcmcSettings"),
    ],
)
def test_bad_settings_of_the_search(settings, message):
    with pytest.raises(SettingError, match=message):
        SearchConfig(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"max_depth": -1}, "max_depth must be 0 or more; got -1"),
        ({"max_width": 0}, "max_width must be 1 or more"),
        ({"max_model_size": -1}, "max_model_size must be 0 or more"),
        ({"max_operations": 1.0}, "max_operations must be a whole number"),
    ],
)
def test_bad_limits(settings, message):
    with pytest.raises(SettingError, match=message):
        Limits(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"projection": -0.1}, "projection must be 0 or more; got -0.1"),
        ({"new_input": "a"}, "new_input must be a finite number"),
        (dict.fromkeys(("new_input", "modification", "multiplication", "projection"), 0), "must not all be 0"),
    ],
)
def test_bad_probabilities_of_moves(settings, message):
    with pytest.raises(SettingError, match=message):
        MoveProbabilities(**settings)


def test_probabilities_of_moves_add_up_to_one():
    moves = MoveProbabilities(new_input=1, modification=2, multiplication=5, projection=0)
    assert (moves.new_input, moves.modification, moves.multiplication, moves.projection) == (0.125, 0.25, 0.625, 0.0)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"smallest_jump": 0.6}, "smallest_jump must not exceed largest_jump"),
        ({"randomize_rate": 0.0}, "randomize_rate must lie between 0 and 1"),
        ({"jump_probability": 1.5}, "jump_probability must be at most 1"),
    ],
)
def test_bad_settings_of_algorithm_1(settings, message):
    with pytest.raises(SettingError, match=message):
        MjmcmcSettings(**settings)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"keep": ["q"]}, FeatureError, "keep has q, but there is no column 'q'. The columns are: x1, x2, x3"),
        ({"keep": ["x1*"]}, FeatureError, "x1"),
        ({"keep": [3]}, FeatureError, "expected a feature, got 3"),
        ({"keep": ["x1", "x2"], "config": SearchConfig(population_size=2)}, SettingError, "fewer features than a pop"),
        ({"config": {"n_populations": 3}}, SettingError, "config must be a SearchConfig"),
        ({"prior": "bic"}, SettingError, "prior must be a ModelPrior; got 'bic'"),
        ({"transforms": "sine"}, SettingError, "transforms must be one of"),
        ({"transforms": ["sin", "sin"]}, SettingError, "got twice: sin"),
        ({"config": SearchConfig(transform_weights=(1.0,))}, SettingError, "each of the 8 transforms; got 1"),
        (
            {"transforms": ["sin", "cos"], "config": SearchConfig(transform_weights=(0.0, 0.0))},
            SettingError,
            "transform_weights must not all be 0",
        ),
        (
            {"transforms": ["sin", "cos"], "config": SearchConfig(transform_weights=(1.0, -1.0))},
            SettingError,
            "transform_weights must be 0 or more",
        ),
        ({"names": ["a", "b"]}, DataError, "one different name each"),
        ({"n_inputs": 0}, SettingError, "at least one column"),
        ({"family": "normal"}, SettingError, "family"),
        ({"coefficient_prior": "flat"}, SettingError, "coefficient_prior"),
        ({"noise_floor": -1.0}, SettingError, "noise_floor"),
        ({"sample_weight": np.ones(3)}, DataError, "one value per row, 20 in all"),
    ],
)
def test_bad_problems(options, error, message):
    with pytest.raises(error, match=message):
        problem(**options)


def test_rows_must_match():
    with pytest.raises(DataError, match="same number of rows; got 4 and 5"):
        define_problem(np.arange(5.0), np.eye(4))


def test_defaults():
    found = problem()
    assert found.names == ("x1", "x2", "x3")
    assert found.inputs == (Input("x1"), Input("x2"), Input("x3"))
    assert found.is_gaussian
    assert found.n_obs == 20
    assert found.keep == ()
    assert found.config == SearchConfig(
        n_populations=10,
        n_candidates=100,
        n_draws=100,
        n_averaged=300,
        n_pool_draws=0,
        pool_size=400,
        limits=Limits(max_depth=5),
        projection_weights=ProjectionWeights(strategy="naive"),
    )
    assert found.cost(parse("sin(x1)*x2")) == pytest.approx(2 * np.log(20) + 3 * np.log(3))


def test_the_search_grows_with_the_data():
    sizes = {
        "n_populations": [10, 30, 40],
        "n_candidates": [100, 180, 300],
        "n_draws": [100, 180, 500],
        "n_averaged": [300, 600, 1000],
    }
    for n_obs, *expected in zip((20, 60, 1000), *sizes.values(), strict=True):
        config = resolved(SearchConfig(), n_obs)
        assert [getattr(config, name) for name in sizes] == expected
    given = SearchConfig(
        n_populations=3,
        n_candidates=7,
        n_draws=9,
        n_averaged=5,
        n_pool_draws=0,
        pool_size=3,
        limits=Limits(max_depth=2),
        projection_weights=ProjectionWeights(strategy="deep"),
    )
    assert resolved(given, 1000) == given


def test_costs_follow_the_prior_and_the_sum_of_weights():
    assert problem(sample_weight=np.full(20, 3.0)).cost(parse("x1*x2")) == pytest.approx(np.log(60) + 2 * np.log(3))
    charged = problem(prior=ModelPrior(penalty=1.5, complexity="oc+1"))
    assert charged.cost(parse("x1*x2")) == pytest.approx(3.0)


@pytest.mark.parametrize(("n_inputs", "size"), [(1, 15), (10, 15), (12, 17), (44, 49), (45, 50), (90, 95), (200, 100)])
def test_the_size_of_a_population_follows_the_number_of_inputs(n_inputs, size):
    assert problem(n_inputs).population_size == size
    assert problem(n_inputs, config=SearchConfig(population_size=7)).population_size == 7


def test_names_of_a_data_frame_are_kept():
    frame = Frame(np.random.default_rng(1).normal(size=(9, 2)), ["a b", "c"])
    found = define_problem(np.arange(9.0), frame, keep=["`a b`*c", Input("c")])
    assert found.names == ("a b", "c")
    assert found.keep == (Input("a b") * Input("c"), Input("c"))


def test_one_name_is_one_function():
    """A feature to keep with a function of its own must not share its name with one of G."""
    mine = modify(Transform("sin", np.cbrt), Input("x1"))
    with pytest.raises(FeatureError, match="whose sin is another function than the sin of transforms"):
        problem(keep=[mine], transforms=["sin", "tanh"])
    assert problem(keep=[mine], transforms=["tanh"]).all_transforms == (get_transform("tanh"), mine.transform)
