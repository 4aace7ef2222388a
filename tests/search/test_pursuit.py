"""Projections that are fitted to what a model leaves."""

import math
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from bgnlm import BGNLMRegressor, SearchConfig, find_features, load
from bgnlm.features import (
    Evaluator,
    Feature,
    Input,
    Projection,
    Transform,
    get_transform,
    operation_count,
    parse,
    project,
)
from bgnlm.features.gradients import WeightFunction
from bgnlm.search import MoveProbabilities, ProjectionWeights
from bgnlm.search.config import Limits
from bgnlm.search.generation import Generator, Urn, has_slope_at_zero
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
    assert pursuit.gain(column) == pytest.approx(0.5 * N_ROWS * math.log(before / after), rel=1e-9)
    for k in range(len(at)):
        step = np.zeros(len(at))
        step[k] = 1e-5
        upper, lower = (pursuit.expansion(function, at + sign * step).loss for sign in (1, -1))
        assert expansion.slope[k] == pytest.approx((upper - lower) / 2e-5, rel=1e-4, abs=1e-3)
    # Gauss and Newton: squares of the derivatives of the residual, whose linear part is solved for.
    design = np.column_stack([np.ones(N_ROWS), X[:, [0, 3]]])
    jacobian = np.column_stack(
        [
            (_residual(y, design, function.value(at + h)) - _residual(y, design, function.value(at - h))) / 2e-5
            for h in 1e-5 * np.eye(len(at))
        ]
    )
    # The part of Kaufman's approximation: what the columns of the model and of the projection explain is left out.
    whole = np.linalg.qr(np.column_stack([design, column]))[0]
    jacobian -= whole @ (whole.T @ jacobian)
    gauss_newton = N_ROWS / after * jacobian.T @ jacobian + np.eye(len(at)) / variance
    assert expansion.curvature == pytest.approx(gauss_newton, rel=1e-3, abs=1e-3 * gauss_newton.max())


def _residual(y: np.ndarray, design: np.ndarray, column: np.ndarray) -> np.ndarray:
    whole = np.column_stack([design, column])
    return np.asarray(y - whole @ np.linalg.lstsq(whole, y, rcond=None)[0])


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


def test_rows_count_by_their_weights() -> None:
    X = inputs()[:40]
    y = response(inputs())[:40]
    often = np.where(np.arange(40) < 3, 40.0, 1e-6)  # three rows that were seen forty times
    copies = np.repeat(np.arange(40), often.astype(int))
    start = project(TANH, INPUTS[1:3], [1.0, 1.0], 0.0)
    found = []
    for rows, weights in ((np.arange(40), often), (copies, np.ones(len(copies)))):
        root = np.sqrt(weights)
        rest = unexplained(root, root * y[rows], np.empty((len(rows), 0)))
        pursuit = Pursuit(Evaluator(X[rows], NAMES), weights, rest, log_gain, cost, 100.0)
        function = WeightFunction(start, Evaluator(X[rows], NAMES), weights, every_layer=False)
        found.append((pursuit.gain(function.value(np.ones(3))), pursuit._is_supported(function, np.ones(3))))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-3)
    assert found[0][1] is found[1][1] is True


@pytest.mark.parametrize(("n_told", "is_supported"), [(2, False), (4, True)])
def test_rows_that_are_told_from_the_rest_are_as_many_as_weights(n_told: int, is_supported: bool) -> None:
    X = np.zeros((N_ROWS, len(NAMES)))
    X[:n_told, :2] = 1.0
    X[n_told:, :2] = 1e-3 * inputs()[n_told:, :2]
    pursuit = pursuit_of(X, X[:, 0] + 0.01 * inputs()[:, 5], [])
    function = WeightFunction(
        project(TANH, INPUTS[:2], [1.0, 1.0], 0.0), Evaluator(X, NAMES), np.ones(N_ROWS), every_layer=False
    )
    assert pursuit._is_supported(function, function.start) is is_supported


@pytest.mark.parametrize("unit", [1e-160, 1e-90, 1.0, 1e90])
def test_the_scale_of_a_function_does_not_matter(unit: float) -> None:
    X = inputs()
    scaled = Transform("scaled", lambda x: unit * np.tanh(x), derivative=lambda x: unit / np.cosh(x) ** 2)
    found = pursuit_of(X, response(X), [0]).best(scaled, INPUTS, starts(len(INPUTS)))
    assert found is not None
    assert set(found.operands) == {Input("b"), Input("c")}


def test_a_function_that_is_no_good_is_not_fitted() -> None:
    slopes = [
        lambda x: 3 * x**2 if x > 0 else 0.0,
        lambda _: np.ones(7),
        lambda x: 1 / (x - x),
        lambda x: np.sqrt(-1.0 - x),
    ]
    assert not any(has_slope_at_zero(Transform("own", np.tanh, derivative=slope)) for slope in slopes)
    assert has_slope_at_zero(Transform("own", lambda x: 2 * x, derivative=lambda _: 2.0))


def test_better_weights_replace_worse_ones_and_the_best_stay() -> None:
    X = inputs()
    pursuit = pursuit_of(X, response(X), [0])
    worse = project(TANH, INPUTS[1:3], [0.5, -2.5], 0.0)
    better = pursuit.again(worse)
    assert better is not None
    assert abs(np.corrcoef(*(Evaluator(X, NAMES).column(f) for f in (better, TRUTH)))[0, 1]) > 0.999
    assert pursuit.again(better) is None
    # A prior that draws weights to 0 is no reason for weights that explain less.
    assert pursuit_of(X, response(X), [0], variance=0.01).again(TRUTH) is None


def generator(*names: str, limits: Limits | None = None) -> Generator:
    limits = Limits(max_depth=3, max_width=4) if limits is None else limits
    transforms = [get_transform(name) for name in names]
    return Generator(INPUTS, transforms, None, MoveProbabilities(), limits, lambda *_: None)


def test_functions_with_a_pole_or_a_cut_point_are_not_fitted() -> None:
    rng = np.random.default_rng(5)
    made = generator("inverse", "cbrt_abs", "sqrt_abs", "above_median", "sigmoid")
    assert {transform.name for _ in range(20) if (transform := made.transform_to_fit(rng))} == {"sigmoid"}
    assert generator("inverse", "above_median").transform_to_fit(rng) is None
    assert generator().transform_to_fit(rng) is None
    assert made.can_be_fitted(parse("sigmoid(1 + 2*a - b)"))
    assert not made.can_be_fitted(parse("inverse(1 + 2*a - b)"))
    assert not made.can_be_fitted(parse("tanh(1 + 2*a - b)"))  # not in G
    assert not made.can_be_fitted(parse("sigmoid(1 + a + b + c + d + e)"))  # too wide
    assert not made.can_be_fitted(parse("a*b"))


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


def test_the_result_depends_on_the_seed_alone_and_is_kept_in_files(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    X = pd.DataFrame(rng.normal(size=(150, 4)), columns=NAMES[:4])
    y = X["a"] + 3.0 * np.tanh(2.0 * (X["b"] - X["c"])) + 0.3 * rng.normal(size=150)
    settings = {"projection_weights": "conditional", "n_chains": 2, "search": SearchConfig(n_populations=5)}
    one, two, rows = (
        BGNLMRegressor(**settings, n_jobs=n_jobs, random_state=1).fit(X, y, sample_weight=weights)
        for n_jobs, weights in ((1, None), (2, None), (1, np.ones(150)))
    )
    assert any(isinstance(feature, Projection) for feature in one.posterior_.features_of(0))
    for other in (two, rows):
        assert other.posterior_.features == one.posterior_.features
        assert (other.posterior_.model_probabilities == one.posterior_.model_probabilities).all()
    one.save(tmp_path / "model.bgnlm")
    again = load(tmp_path / "model.bgnlm")
    assert again.projection_weights == "conditional"
    assert (again.predict(X) == one.predict(X)).all()
