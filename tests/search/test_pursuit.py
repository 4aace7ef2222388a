"""Projections that are fitted to what a model leaves."""

import math

import numpy as np
import pandas as pd
import pytest

from bgnlm import SearchConfig, find_features
from bgnlm.features import Evaluator, Feature, Input, Projection, get_transform, operation_count, parse, project
from bgnlm.features.gradients import WeightFunction
from bgnlm.search import MoveProbabilities, ProjectionWeights
from bgnlm.search.config import Limits
from bgnlm.search.generation import Generator, Urn
from bgnlm.search.informed import unexplained
from bgnlm.search.pursuit import Pursuit

N_ROWS = 400
NAMES = ["a", "b", "c", "d", "e", "f"]
INPUTS = [Input(name) for name in NAMES]
TRUTH = parse("tanh(0.5 + b - 1.5*c)")
TANH = get_transform("tanh")


def inputs(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(N_ROWS, len(NAMES)))


def response(X: np.ndarray, seed: int = 2) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(size=N_ROWS)
    return 1.0 + 2.0 * X[:, 0] + 3.0 * Evaluator(X, NAMES).column(TRUTH) + 0.3 * noise


def log_gain(share: float) -> tuple[float, float]:
    return -0.5 * N_ROWS * math.log1p(-share), 0.5 * N_ROWS / (1.0 - share)


def cost(feature: Feature) -> float:
    return 5.0 * operation_count(feature)


def pursuit_of(X: np.ndarray, y: np.ndarray, model: list[int], variance: float = 100.0) -> Pursuit:
    ones = np.ones(len(X))
    return Pursuit(Evaluator(X, NAMES), ones, unexplained(ones, y, X[:, model]), log_gain, cost, variance)


def starts(n_operands: int, seed: int = 3) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(3, n_operands + 1)) / math.sqrt(n_operands)


def residual_square(y: np.ndarray, columns: np.ndarray) -> float:
    design = np.column_stack([np.ones(len(y)), columns])
    return float(np.square(y - design @ np.linalg.lstsq(design, y, rcond=None)[0]).sum())


@pytest.mark.parametrize("name", ["tanh", "sigmoid", "gauss", "sin", "log1p_abs"])
def test_the_loss_is_that_of_least_squares_and_has_its_derivatives(name: str) -> None:
    X = inputs()
    y = response(X)
    variance = 2.0
    pursuit = pursuit_of(X, y, [0, 3], variance)
    function = WeightFunction(
        project(get_transform(name), INPUTS[1:4], [1.0, 0.5, -0.7], 0.2),
        Evaluator(X, NAMES),
        np.ones(N_ROWS),
        every_layer=False,
    )
    at = function.start + 0.1
    column = function.value(at)
    before, after = residual_square(y, X[:, [0, 3]]), residual_square(y, np.column_stack([X[:, [0, 3]], column]))
    expected = 0.5 * N_ROWS * math.log(after / before) + 0.5 * float(at @ at) / variance
    expansion = pursuit.expansion(function, at)
    assert expansion.loss == pytest.approx(expected, rel=1e-9)
    assert pursuit.loss(column, at) == pytest.approx(expected, rel=1e-9)
    for k in range(len(at)):
        step = np.zeros(len(at))
        step[k] = 1e-5
        upper, lower = (pursuit.loss(function.value(at + sign * step), at + sign * step) for sign in (1, -1))
        assert expansion.slope[k] == pytest.approx((upper - lower) / 2e-5, rel=1e-4, abs=1e-3)
    assert np.linalg.eigvalsh(expansion.curvature).min() > 0.0


def test_it_finds_what_is_there_and_leaves_out_what_is_not() -> None:
    X = inputs()
    found = pursuit_of(X, response(X), [0]).best(TANH, INPUTS, starts(len(INPUTS)))
    assert found is not None
    assert set(found.operands) == {Input("b"), Input("c")}
    evaluator = Evaluator(X, NAMES)
    assert abs(np.corrcoef(evaluator.column(found), evaluator.column(TRUTH))[0, 1]) > 0.999


def test_beside_a_model_weights_are_others_than_alone() -> None:
    X = inputs()
    y = response(X) + 4.0 * X[:, 1]
    evaluator = Evaluator(X, NAMES)
    beside, alone = (pursuit_of(X, y, model).best(TANH, INPUTS[1:3], starts(2)) for model in ([0, 1], []))
    assert beside is not None
    assert alone is not None
    truth = evaluator.column(TRUTH)
    agreement = [abs(np.corrcoef(evaluator.column(feature), truth)[0, 1]) for feature in (beside, alone)]
    assert agreement[0] > 0.99
    assert agreement[1] < 0.9


def test_a_projection_that_tells_one_row_from_the_rest_is_refused() -> None:
    X = inputs()
    y = 0.1 * np.random.default_rng(4).normal(size=N_ROWS)
    y[np.argmax(X[:, 0] + X[:, 1])] += 50.0
    pursuit = pursuit_of(X, y, [])
    assert all(pursuit.best(TANH, INPUTS[:2], starts(2, seed)) is None for seed in range(5))


def test_better_weights_replace_worse_ones_and_the_best_stay() -> None:
    X = inputs()
    pursuit = pursuit_of(X, response(X), [0])
    worse = project(TANH, INPUTS[1:3], [0.5, -2.5], 0.0)
    better = pursuit.again(worse)
    assert better is not None
    assert abs(np.corrcoef(*(Evaluator(X, NAMES).column(f) for f in (better, TRUTH)))[0, 1]) > 0.999
    assert pursuit.again(better) is None


def generator(*names: str, limits: Limits | None = None) -> Generator:
    limits = Limits(max_depth=3, max_width=4) if limits is None else limits
    transforms = [get_transform(name) for name in names]
    return Generator(INPUTS, transforms, None, MoveProbabilities(), limits, lambda *_: None)


def test_functions_with_a_pole_or_a_cut_point_are_not_fitted() -> None:
    rng = np.random.default_rng(5)
    made = generator("inverse", "cbrt_abs", "sqrt_abs", "above_median", "sigmoid")
    names = {transform.name for _ in range(200) if (transform := made.smooth_transform(rng)) is not None}
    assert names == {"sigmoid"}
    assert generator("inverse", "above_median").smooth_transform(rng) is None
    assert generator().smooth_transform(rng) is None


def test_operands_are_different_within_the_limits() -> None:
    rng = np.random.default_rng(6)
    made = generator("tanh")
    assert len(set(made.some_inputs(rng))) == 4
    assert generator("tanh", limits=Limits(max_depth=3, max_width=10)).some_inputs(rng) == INPUTS
    deep = parse("tanh(sin(tanh(a)))")
    drawn = made.some_parents(rng, Urn([deep, *INPUTS], [10.0] + [1.0] * len(INPUTS)))
    assert deep not in drawn
    assert len(set(drawn)) == len(drawn) <= 4


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_a_search_finds_projections_beside_other_features(family: str) -> None:
    rng = np.random.default_rng(7)
    X = pd.DataFrame(rng.normal(size=(600, 5)), columns=NAMES[:5])
    eta = 2.0 * X["a"] - 1.5 * X["b"] + 4.0 * np.tanh(1.5 * (X["b"] + X["c"] - X["d"]))
    y = eta + 0.5 * rng.normal(size=600) if family == "gaussian" else (rng.random(600) < 1 / (1 + np.exp(-eta))) * 1.0
    best = {}
    for strategy in ("conditional", "naive"):
        found = find_features(
            y,
            X,
            family=family,
            transforms=["tanh"],
            n_chains=1,
            random_state=1,
            config=SearchConfig(n_populations=8, projection_weights=ProjectionWeights(strategy=strategy)),
        )
        best[strategy] = float(found.posterior.found.log_joint.max())
        structures = [f.operands for f in found.posterior.features_of(0) if isinstance(f, Projection)]
        assert (INPUTS[1], INPUTS[2], INPUTS[3]) in structures or strategy == "naive"
    assert best["conditional"] > best["naive"] + 5.0
