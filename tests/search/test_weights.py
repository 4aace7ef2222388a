"""Weights of projections: strategies 1, 2 and 3."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from bgnlm import BGNLMRegressor
from bgnlm.errors import FeatureError, SettingError
from bgnlm.features import (
    Evaluator,
    Input,
    Projection,
    Transform,
    get_transform,
    learn_cut_points,
    modify,
    multiply,
    parse,
    transforms_of,
)
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.search import Limits, ModelPrior, MoveProbabilities, ProjectionWeights, SearchConfig
from bgnlm.search.problem import define_problem
from bgnlm.search.weights import WeightSetter, linear_weights

N = 300
INPUTS = [Input("x1"), Input("x2"), Input("x3")]
FAMILIES = ("gaussian", "binomial", "poisson", "gamma", "negative_binomial")
TRUE = np.array([0.4, 1.2, -0.8, 0.5])  # intercept and slopes
QUICK = SearchConfig(population_size=8, n_populations=3, n_candidates=40, moves=MoveProbabilities(projection=1.0))


@cache
def inputs():
    return np.random.default_rng(71).normal(size=(N, 3))


@cache
def response(family):
    rng = np.random.default_rng(72)
    eta = 0.2 + 1.5 * np.tanh(TRUE[0] + inputs() @ TRUE[1:])
    match family:
        case "gaussian":
            return eta + 0.3 * rng.normal(size=N)
        case "binomial":
            return (rng.random(N) < expit(2.0 * eta)).astype(float)
        case "poisson":
            return rng.poisson(np.exp(eta)).astype(float)
        case "gamma":
            return rng.gamma(4.0, np.exp(eta) / 4.0)
        case _:
            return rng.poisson(np.exp(eta) * rng.gamma(4.0, 0.25, size=N)).astype(float)


def setter(strategy, family="gaussian", y=None, X=None, weights=None, **settings):
    likelihood = check_likelihood(response(family) if y is None else y, family=family, sample_weight=weights)
    return WeightSetter(
        ProjectionWeights(strategy=strategy, **settings), likelihood, Evaluator(inputs() if X is None else X)
    )


def log_likelihood(feature, family, y=None):
    """Of a model with this feature alone, at its maximum."""
    likelihood = check_likelihood(response(family) if y is None else y, family=family, coefficient_prior="aic")
    return likelihood.population(Evaluator(inputs()).matrix([feature])).fit([0]).log_marginal


def direction(feature):
    """Of length 1; its sign is that of the first weight, because a sign may go to the outer coefficient."""
    weights = np.array(feature.weights)
    return np.sign(weights[0]) * weights / np.linalg.norm(weights)


@pytest.mark.parametrize("family", FAMILIES)
def test_each_strategy_fits_better_than_the_one_before(family):
    naive, concave, deep = (
        log_likelihood(setter(strategy, family).project(get_transform("tanh"), INPUTS), family)
        for strategy in ("naive", "concave", "deep")
    )
    assert concave > naive + 1.0
    assert deep == pytest.approx(concave, abs=0.05)  # there is one layer


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", ["tanh", "sigmoid", "atan", "erf"])
def test_concave_weights_are_those_of_a_slow_search(family, name):
    transform = get_transform(name)
    found = setter("concave", family).project(transform, INPUTS)

    def loss(weights):
        column = transform.function(weights[0] + inputs() @ weights[1:])
        return (
            -check_likelihood(response(family), family=family, coefficient_prior="aic")
            .population(column[:, None])
            .fit([0])
            .log_marginal
        )

    start = np.append(found.intercept, found.weights)
    best = minimize(loss, start, method="Nelder-Mead", options={"maxfev": 300, "xatol": 1e-3, "fatol": 1e-3})
    # The dispersion is that of the null model, which the size of a negative binomial response feels.
    assert log_likelihood(found, family) >= -best.fun - (0.5 if family == "negative_binomial" else 0.05)
    assert direction(found) == pytest.approx(TRUE[1:] / np.linalg.norm(TRUE[1:]), abs=0.25)


def test_a_projection_inside_a_projection():
    """Weights of both layers are found; with the inner ones fixed the fit is worse."""
    X, rng = inputs(), np.random.default_rng(73)
    inner = expit(0.5 + 3.0 * X[:, 0] - 2.0 * X[:, 1])
    y = np.tanh(-1.0 + 2.5 * inner + 0.8 * X[:, 2]) + 0.05 * rng.normal(size=N)
    operands = [parse("sigmoid(0.1 + 0.2*x1 + 0.3*x2)"), Input("x3")]
    concave, deep = (
        setter(strategy, y=y, n_starts=4).project(get_transform("tanh"), operands) for strategy in ("concave", "deep")
    )
    assert operands[0] in concave.operands
    assert log_likelihood(deep, "gaussian", y) > log_likelihood(concave, "gaussian", y) + 100.0
    assert transforms_of(deep) == transforms_of(concave)
    column = Evaluator(X).column(deep)
    residual = y - np.polyval(np.polyfit(column, y, 1), column)
    assert residual.std() < 0.06


@pytest.mark.parametrize("strategy", ["concave", "deep"])
def test_one_structure_is_one_feature(strategy):
    one = setter(strategy).project(get_transform("sigmoid"), INPUTS)
    other = setter(strategy).project(get_transform("sigmoid"), INPUTS[::-1])
    assert one == other
    if strategy == "deep":
        texts = ("sin(0.1 + x1 + x2)", "sin(-3 + 0.5*x1 + 0.01*x2)")
        one, other = (setter("deep").project(get_transform("tanh"), [parse(text), Input("x3")]) for text in texts)
        assert one == other


def test_a_layer_of_equal_units():
    """Two projections of the same inputs are two units; a bump needs both."""
    x = inputs()[:, 0] + 0.5 * inputs()[:, 1]
    y = np.tanh(4.0 * (x + 1.0)) - np.tanh(4.0 * (x - 1.0)) + 0.05 * np.random.default_rng(76).normal(size=N)
    units = [parse("tanh(0.5 + x1 + x2)"), parse("tanh(0.1*x1 + 0.3*x2)")]
    found = setter("deep", y=y, n_starts=6).project(get_transform("atan"), units)
    assert len(found.operands) == 2
    assert all(isinstance(operand, Projection) for operand in found.operands)
    column = Evaluator(inputs()).column(found)
    assert (y - np.polyval(np.polyfit(column, y, 1), column)).std() < 0.3 * y.std()
    again = setter("deep", y=y, n_starts=6).project(get_transform("atan"), units[::-1])
    assert again == found


def test_the_literal_form_stays_in_the_range_of_the_function():
    y = 0.5 + 0.3 * np.tanh(inputs() @ [1.0, -0.5, 0.2]) + 0.01 * np.random.default_rng(74).normal(size=N)
    tanh = get_transform("tanh")
    evaluator = Evaluator(inputs())
    literal = evaluator.column(setter("concave", y=y, literal=True).project(tanh, INPUTS))
    assert np.abs(y - literal).mean() < 0.1
    with_coefficients = evaluator.column(setter("concave", y=y).project(tanh, INPUTS))
    assert np.corrcoef(y, with_coefficients)[0, 1] > 0.998 > np.corrcoef(y, literal)[0, 1]


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
@pytest.mark.parametrize("name", ["step", "above_median", "hinge_up"])
def test_functions_without_a_derivative(family, name):
    X, rng = inputs(), np.random.default_rng(75)
    eta = 2.0 * (X @ [1.0, -1.0, 0.0] > 0.0) - 1.0 + 0.1 * rng.normal(size=N)
    y = eta if family == "gaussian" else (rng.random(N) < expit(3.0 * eta)).astype(float)
    transform = get_transform(name)
    weights = setter("concave", family, y=y)
    evaluator = Evaluator(X)
    found, start = (
        learn_cut_points(feature, evaluator)
        for feature in (weights.project(transform, INPUTS), weights._start(transform, INPUTS))
    )
    assert isinstance(found, Projection)
    assert direction(found)[1] < 0.0
    assert log_likelihood(found, family, y) >= log_likelihood(start, family, y)
    with pytest.raises(FeatureError, match="cannot be optimised by gradients"):
        setter("concave", family, y=y, without_gradient="refuse").project(transform, INPUTS)


def test_transforms_without_a_derivative_are_refused_at_once():
    weights = ProjectionWeights(strategy="deep", without_gradient="refuse")
    with pytest.raises(SettingError, match=r"got step, mine\. Leave them out, or use ProjectionWeights"):
        define_problem(
            response("gaussian"),
            inputs(),
            transforms=["tanh", "step", Transform("mine", np.sinh)],
            config=SearchConfig(projection_weights=weights),
        )
    define_problem(response("gaussian"), inputs(), transforms=["tanh"], config=SearchConfig(projection_weights=weights))


@pytest.mark.parametrize("strategy", ["naive", "concave", "deep"])
def test_rows_without_weight_do_not_count(strategy):
    weights = np.append(np.zeros(50), np.ones(N - 50))
    X, y = inputs().copy(), response("gaussian").copy()
    X[:50], y[:50] = 1e3 * X[:50], 77.0
    found = setter(strategy, y=y, X=X, weights=weights).project(get_transform("tanh"), INPUTS)
    alone = setter(strategy, y=y[50:], X=X[50:]).project(get_transform("tanh"), INPUTS)
    assert np.append(found.intercept, found.weights) == pytest.approx(
        np.append(alone.intercept, alone.weights), rel=1e-2, abs=1e-3
    )


@pytest.mark.parametrize("strategy", ["naive", "concave", "deep"])
def test_features_may_be_infinite_in_rows_without_weight(strategy):
    X, weights = inputs().copy(), np.append(0.0, np.ones(N - 1))
    X[0, 0] = 0.0
    found = setter(strategy, X=X, weights=weights).project(
        get_transform("tanh"), [parse("inverse(x1)"), Input("x2"), Input("x3")]
    )
    assert np.isfinite(found.weights).all()


@pytest.mark.parametrize("strategy", ["naive", "concave", "deep"])
def test_separated_classes_have_finite_weights(strategy):
    found = setter(strategy, "binomial", y=(inputs()[:, 0] > 0.0).astype(float)).project(
        get_transform("sigmoid"), INPUTS
    )
    assert np.isfinite(found.weights).all()
    assert abs(found.weights[0]) > 5.0 * np.abs(found.weights[1:]).max()


@pytest.mark.parametrize("family", FAMILIES)
def test_linear_weights_are_those_of_the_full_fit(family):
    likelihood = check_likelihood(
        response(family),
        family=family,
        coefficient_prior="aic",
        offset=0.1 * inputs()[:, 2],
        sample_weight=np.arange(N),
    )
    fit = likelihood.population(inputs()).fit([0, 1, 2])
    assert linear_weights(likelihood, inputs()) == pytest.approx(fit.coefficients, rel=1e-3, abs=1e-3)


def test_linear_weights_that_do_not_exist():
    X = inputs()
    likelihood = check_likelihood(response("poisson"), family="poisson")
    assert linear_weights(likelihood, np.column_stack([X[:, 0], 3.0 * X[:, 0] + 1.0])) is None
    assert linear_weights(likelihood, np.column_stack([X[:, 0], np.ones(N)])) is None
    assert linear_weights(check_likelihood(np.zeros(N), family="poisson"), X) is None


@pytest.mark.parametrize("family", ["gaussian", "poisson"])
def test_rows_where_a_function_has_no_derivative(family):
    """The derivative of the root is infinite where its argument is 0, as in all rows without any of the inputs."""
    X = inputs() * (np.arange(N) % 3 > 0)[:, None]
    X[:, 1:] -= X[:, 1:].mean(axis=0)
    X[0] = 0.0
    weights = setter("concave", family, X=X)
    found = weights.project(get_transform("sqrt_abs"), [Input("x1"), Input("x2")])
    assert np.isfinite(found.weights).all()


@pytest.mark.parametrize("strategy", ["concave", "deep"])
def test_functions_with_poles_and_values_that_overflow(strategy):
    for name in ("inverse", "abs_pow_7_2"):
        found = setter(strategy).project(get_transform(name), [Input("x1"), parse("x2*x3")])
        assert found is None or np.isfinite(found.weights).all()


@pytest.mark.parametrize("strategy", ["concave", "deep"])
@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_searches_with_fitted_weights(strategy, family):
    model = BGNLMRegressor(
        family, transforms=["tanh"], projection_weights=strategy, search=QUICK, n_chains=1, random_state=1
    )
    model.fit(inputs(), response(family))
    assert any(text.startswith("tanh(") and "+" in text for text in model.features_["expression"])
    assert np.isfinite(model.predict_interval(inputs())).all()


def test_without_projections_and_without_depth():
    """P_pr = 0 and D = 0: no weights, and none but the inputs."""
    for config, has_nonlinear in (
        (SearchConfig(n_populations=4, population_size=8, moves=MoveProbabilities(projection=0.0)), True),
        (SearchConfig(n_populations=4, population_size=8, limits=Limits(max_depth=0)), False),
    ):
        model = BGNLMRegressor(search=config, n_chains=1, random_state=1).fit(inputs(), response("gaussian"))
        features = model.posterior_.features
        assert not any(isinstance(feature, Projection) for feature in features)
        assert any(not isinstance(feature, Input) for feature in features) == has_nonlinear


def test_weights_may_cost_less():
    feature = parse("tanh(x1 + x2 + sin(x1 + x3 + 2*x2))")
    full = ModelPrior(penalty=1.0, complexity="oc").costs([feature], 100, 3)[0]
    cheap = ModelPrior(penalty=1.0, complexity="oc", weight_cost=0.25).costs([feature], 100, 3)[0]
    assert full == 6.0  # two functions and four additional weights
    assert cheap == 2.0 + 4 * 0.25
    linear = [Input("x1"), parse("x1*x2")]
    for complexity in ("multiplicity", "oc", "oc+1"):
        one, other = (ModelPrior(complexity=complexity, weight_cost=cost).costs(linear, 100, 3) for cost in (1.0, 0.5))
        assert one.tolist() == other.tolist()
    for settings, message in (
        ({"weight_cost": -1.0}, "weight_cost must be 0 or more"),
        ({"weight_cost": 0.5, "complexity": "script"}, "weight_cost is for complexities that count operations"),
    ):
        with pytest.raises(SettingError, match=message):
            ModelPrior(**settings)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"strategy": "fast"}, "strategy must be one of 'naive', 'concave', .*, 'conditional'; got 'fast'"),
        ({"n_starts": 0}, "n_starts must be 1 or more; got 0"),
        ({"literal": 1}, "literal must be True or False; got 1"),
        ({"without_gradient": "never"}, "without_gradient must be one of 'search', 'refuse'"),
    ],
)
def test_settings_that_are_not_allowed(settings, message):
    with pytest.raises(SettingError, match=message):
        ProjectionWeights(**settings)


def test_a_projection_is_made_once(monkeypatch):
    """Whatever the order of its operands."""
    X, y = np.random.default_rng(5).normal(size=(2, 60, 2))
    likelihood = check_likelihood(y[:, 0])
    setter = WeightSetter(ProjectionWeights(strategy="deep"), likelihood, Evaluator(X))
    first = setter.project(get_transform("tanh"), [Input("x1"), Input("x2")])
    monkeypatch.setattr(setter, "_projected", lambda *_: pytest.fail("it was made before"))
    assert setter.project(get_transform("tanh"), [Input("x2"), Input("x1")]) is first


def test_parts_of_a_projection_have_weights_of_their_own():
    """Also where they were fitted together with the rest of it: one structure is one feature."""
    rng = np.random.default_rng(8)
    X = rng.normal(size=(150, 3))
    y = np.tanh(X[:, 0] - 0.6 * X[:, 1]) + 0.5 * X[:, 2] + 0.3 * rng.normal(size=150)
    setter = WeightSetter(ProjectionWeights(strategy="deep"), check_likelihood(y), Evaluator(X))
    alone = setter.project(get_transform("tanh"), [Input("x1"), Input("x2")])
    assert alone is not None
    nested = setter.project(get_transform("sigmoid"), [alone, Input("x3")])
    assert nested is not None
    part = next(operand for operand in nested.operands if isinstance(operand, Projection))
    assert part != alone
    assert setter.canonical(part) == alone
    assert setter.canonical(multiply(Input("x1"), part)) == multiply(Input("x1"), alone)
    assert setter.canonical(modify(get_transform("sin"), part)) == modify(get_transform("sin"), alone)
    naive = WeightSetter(ProjectionWeights(), check_likelihood(y), Evaluator(X))
    assert naive.canonical(part) is part


def test_arguments_that_overflow_are_no_warnings():
    """The start of a fit where sums of the operands are beyond the range of numbers."""
    X = inputs() * [1e200, 1e200, 1.0]
    start = setter("deep", X=X)._start(get_transform("tanh"), [parse("x1*x2"), INPUTS[2]])
    assert isinstance(start, Projection)
    assert np.isfinite(start.weights).all()
    assert np.isfinite(start.intercept)
