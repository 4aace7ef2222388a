"""How features are made: limits, moves, transforms, parents, and the weights of projections."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import chisquare

from bgnlm.features import (
    Evaluator,
    Input,
    Modification,
    Multiplication,
    Projection,
    depth,
    get_transform,
    local_width,
    modify,
    multiply,
    operation_count,
    parse,
    project,
    resolve_transforms,
)
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.search.config import Limits, MoveProbabilities, ProjectionWeights, SearchConfig
from bgnlm.search.generation import FROM_POPULATION, Generator, Urn, make_generator, operands_of
from bgnlm.search.problem import define_problem
from bgnlm.search.weights import WeightSetter
from tests import naive

A, B = Input("a"), Input("b")
SIN, TANH = get_transform("sin"), get_transform("tanh")
MOVES = {"new_input": Input, "modification": Modification, "multiplication": Multiplication, "projection": Projection}
EQUAL = MoveProbabilities(new_input=1, modification=1, multiplication=1, projection=1)


def equal_weights(transform, operands):
    return project(transform, operands, [1.0] * len(operands))


def generator(moves=EQUAL, limits=None, transforms=(SIN, TANH), weights=None, inputs=(A, B)):
    return Generator(inputs, transforms, weights, moves, limits or Limits(max_depth=5), equal_weights)


def draws(rng, maker, n_draws, features=(), probabilities=()):
    parents = maker.parents(features, np.array(probabilities, dtype=float))
    return [maker.draw(rng, parents) for _ in range(n_draws)]


def population(n_generations, seed, maker):
    """Features of growing size, each made from those before."""
    rng = np.random.default_rng(seed)
    features = [A]
    for _ in range(n_generations):
        parents = maker.parents(features, np.ones(len(features)))
        wide = maker.candidate_parents(features, np.ones(len(features)))
        made = [maker.draw(rng, parents), maker.extend(rng, features[-1], wide)]
        features += [feature for feature in made if feature is not None]
    return features


limits_drawn = st.builds(
    Limits,
    max_depth=st.integers(0, 5),
    max_width=st.integers(1, 4),
    max_operations=st.none() | st.integers(0, 6),
)
moves_drawn = st.tuples(*[st.sampled_from([0.0, 1.0, 3.0])] * 4).filter(any)


@settings(max_examples=60, deadline=None)
@given(limits=limits_drawn, seed=st.integers(0, 10**6))
def test_limits_are_respected(limits, seed):
    for feature in population(40, seed, generator(limits=limits)):
        assert depth(feature) <= limits.max_depth
        assert local_width(feature) <= limits.max_width
        assert limits.max_operations is None or operation_count(feature) <= limits.max_operations


@settings(max_examples=60, deadline=None)
@given(shares=moves_drawn, seed=st.integers(0, 10**6))
def test_a_move_of_probability_zero_never_happens(shares, seed):
    moves = MoveProbabilities(**dict(zip(MOVES, shares, strict=True)))
    allowed = {Input, *(kind for kind, share in zip(MOVES.values(), shares, strict=True) if share)}
    assert {type(feature) for feature in population(40, seed, generator(moves))} <= allowed
    made = {type(feature) for feature in draws(np.random.default_rng(seed), generator(moves), 60) if feature}
    assert made <= {kind for kind, share in zip(MOVES.values(), shares, strict=True) if share}


def test_moves_happen_as_often_as_they_should(rng):
    moves = MoveProbabilities(new_input=1, modification=2, multiplication=3, projection=4)
    made = draws(rng, generator(moves), 4000)
    counts = Counter(type(feature) for feature in made)
    counts[Projection] += counts.pop(type(None))  # both operands were the same
    found = [counts[kind] for kind in MOVES.values()]
    assert chisquare(found, 4000 * np.array([0.1, 0.2, 0.3, 0.4])).pvalue > 1e-4


@pytest.mark.parametrize("moves", [EQUAL, MoveProbabilities(new_input=0)])
def test_depth_zero_gives_inputs_only(rng, moves):
    maker = generator(moves, Limits(max_depth=0))
    assert set(draws(rng, maker, 200)) == {A, B}
    parents = maker.candidate_parents([A], np.ones(1))
    assert all(maker.extend(rng, A, parents) in (A, None) for _ in range(50))


def test_without_transforms_there_are_inputs_and_products(rng):
    made = draws(rng, generator(transforms=()), 300)
    assert {type(feature) for feature in made} == {Input, Multiplication}


def test_transforms_are_drawn_by_their_weights(rng):
    cos = get_transform("cos")
    only = MoveProbabilities(new_input=0, modification=1, multiplication=0, projection=1)
    maker = generator(only, transforms=(SIN, TANH, cos), weights=(1.0, 0.0, 3.0))
    counts = Counter(feature.transform.name for feature in draws(rng, maker, 3000) if feature is not None)
    assert set(counts) == {"sin", "cos"}
    total = counts["sin"] + counts["cos"]
    assert chisquare([counts["sin"], counts["cos"]], [total / 4, 3 * total / 4]).pvalue > 1e-4


def test_transforms_are_equally_likely_by_default(rng):
    only = MoveProbabilities(new_input=0, modification=1, multiplication=0, projection=0)
    counts = Counter(feature.transform.name for feature in draws(rng, generator(only), 2000))
    assert chisquare([counts["sin"], counts["tanh"]]).pvalue > 1e-4


def test_every_small_feature_can_be_made(rng):
    expected = {A, B, multiply(A, A), multiply(A, B), multiply(B, B)}
    for transform in (SIN, TANH):
        expected |= {modify(transform, A), modify(transform, B), equal_weights(transform, [A, B])}
    limits = Limits(max_depth=1)
    assert set(draws(rng, generator(limits=limits), 1500)) - {None} == expected
    features = [modify(SIN, A), A]
    assert set(draws(rng, generator(limits=limits), 5000, features, [1.0, 0.0])) - {None} == expected


def test_features_become_parents_by_their_probabilities(rng):
    only = MoveProbabilities(new_input=0, modification=1, multiplication=0, projection=0)
    features = [multiply(A, A), multiply(A, B), multiply(B, B)]
    made = draws(rng, generator(only), 6000, features, [1.0, 0.5, 0.0])
    counts = Counter(feature.operand for feature in made)
    weights = np.array([1.05, 0.55, 0.05])
    expected = [*(FROM_POPULATION * weights / weights.sum()), *[(1 - FROM_POPULATION) / 2] * 2]
    assert chisquare([counts[f] for f in (*features, A, B)], 6000 * np.array(expected)).pvalue > 1e-4


def test_parts_of_features_become_parents_of_candidates():
    feature = parse("sin(a*b)*tanh(a)")
    urn = generator().candidate_parents([feature], np.ones(1))
    assert set(urn.things) == {feature, parse("sin(a*b)"), parse("tanh(a)"), A, B}


@pytest.mark.parametrize(
    ("text", "operands"),
    [("a", ()), ("sin(a*b)", ("a*b",)), ("a*sin(b)", ("a", "sin(b)")), ("sin(a + 2*b)", ("a", "b"))],
)
def test_operands(text, operands):
    assert operands_of(parse(text)) == tuple(map(parse, operands))


def test_an_urn_draws_by_weights(rng):
    urn = Urn("abc", [1.0, 0.0, 3.0])
    counts = np.bincount([urn.draw(rng) for _ in range(2000)], minlength=3)
    assert counts[1] == 0
    assert chisquare(counts[[0, 2]], [500, 1500]).pvalue > 1e-4


def test_one_operation_more(rng):
    maker, feature = generator(), parse("sin(a)*b")
    parents = maker.candidate_parents([feature], np.ones(1))
    made = {maker.extend(rng, feature, parents) for _ in range(500)} - {None}
    assert feature in made
    assert modify(TANH, feature) in made
    assert multiply(feature, A) in made
    assert equal_weights(SIN, [feature, A]) in made
    for longer in made - {feature}:
        inside = longer.factors if isinstance(longer, Multiplication) else operands_of(longer)
        assert feature in inside or set(feature.factors) <= set(inside)


def test_projections_may_take_more_than_two_operands(rng):
    inputs = tuple(map(Input, "abcdef"))
    only = MoveProbabilities(new_input=0, modification=0, multiplication=0, projection=1)
    maker = generator(only, Limits(max_depth=5, max_width=4), inputs=inputs)
    assert {local_width(feature) for feature in draws(rng, maker, 500) if feature} == {2, 3, 4}


@pytest.mark.parametrize(
    ("text", "shorter"),
    [
        ("tanh(a + b + c)", {"tanh(a + b)", "tanh(a + c)", "tanh(b + c)"}),
        ("tanh(a + b)", set()),
        ("sin(tanh(a + b + c))", {"sin(tanh(a + b))", "sin(tanh(a + c))", "sin(tanh(b + c))"}),
        ("tanh(a + sin(b + c))", {"tanh(a + b)", "tanh(a + c)"}),
        (
            "tanh(a + b + sin(a + c))",
            {"tanh(a + b)", "tanh(a + sin(a + c))", "tanh(b + sin(a + c))", "tanh(a + b + c)"},
        ),
        ("c*tanh(a + b + c)", {"c*tanh(a + b)", "c*tanh(a + c)", "c*tanh(b + c)"}),
        ("a*b", set()),
    ],
)
def test_a_projection_can_lose_an_operand(rng, text, shorter):
    """And stays what it is: a projection of two has none to lose, and no operand comes twice."""
    feature, c = parse(text), Input("c")
    maker = generator(MoveProbabilities(new_input=0, modification=0, multiplication=0, projection=1), inputs=(A, B, c))
    # Others are at least as wide or deep.
    made = {str(each) for each in draws(rng, maker, 3_000, [feature], [1.0]) if each is not None}
    expected = {str(parse(each)) for each in shorter}
    own = expected & made
    assert own == expected
    if isinstance(feature, Projection):
        assert all(isinstance(parse(each), Projection) for each in made)


@pytest.fixture
def data(rng):
    X = rng.normal(size=(80, 3)) @ rng.normal(size=(3, 3)) + 4.0
    return X, X @ [0.5, -0.4, 0.0], rng.integers(0, 4, 80).astype(float), 0.3 * rng.normal(size=80)


def naive_projection(likelihood, evaluator, transform, operands):
    return WeightSetter(ProjectionWeights(), likelihood, evaluator).project(transform, operands)


def weights_of(projection):
    return np.append(projection.intercept, projection.weights)


def test_weights_of_a_projection_are_those_of_least_squares(data, rng):
    X, signal, weights, offset = data
    y = signal + rng.normal(size=80) + offset
    likelihood = check_likelihood(y, sample_weight=weights, offset=offset)
    operands = [Input("x1"), parse("x2*x3"), parse("sin(x3)")]
    evaluator = Evaluator(X)
    found = naive_projection(likelihood, evaluator, TANH, operands)
    expected = naive.least_squares(y - offset, evaluator.matrix(found.operands), weights)[0]
    assert weights_of(found) == pytest.approx(expected, rel=1e-6)
    assert found.transform == TANH


def negative_log_likelihood(family, y, design, weights, offset):
    def value(coefficients):
        eta = design @ coefficients + offset
        terms = np.logaddexp(0, eta) if family == "binomial" else np.exp(eta)
        return weights @ (terms - y * eta)

    return value


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_weights_of_a_projection_maximise_the_likelihood(data, rng, family):
    X, signal, weights, offset = data
    mean = 1 / (1 + np.exp(-signal)) if family == "binomial" else np.exp(0.3 * signal)
    y = rng.binomial(1, mean) if family == "binomial" else rng.poisson(mean)
    likelihood = check_likelihood(y, family=family, sample_weight=weights, offset=offset)
    found = naive_projection(likelihood, Evaluator(X), SIN, list(map(Input, ("x1", "x2", "x3"))))
    design = np.column_stack([np.ones(80), X])
    target = negative_log_likelihood(family, y, design, weights, offset)
    best = minimize(target, np.zeros(4), method="BFGS", options={"gtol": 1e-8, "maxiter": 1000})
    assert weights_of(found) == pytest.approx(best.x, rel=1e-3, abs=1e-3)
    assert target(weights_of(found)) <= best.fun + 1e-6


def test_separated_classes_have_finite_weights(rng):
    X = rng.normal(size=(50, 2))
    likelihood = check_likelihood(X[:, 0] > 0, family="binomial")
    found = naive_projection(likelihood, Evaluator(X), SIN, [Input("x1"), Input("x2")])
    assert np.isfinite(weights_of(found)).all()
    assert found.weights[0] > 0


def test_operands_without_finite_columns_make_no_projection(rng):
    X = np.column_stack([np.append(0.0, rng.normal(size=9)), rng.normal(size=10), np.ones(10)])
    likelihood = check_likelihood(rng.normal(size=10))
    assert naive_projection(likelihood, Evaluator(X), SIN, [parse("inverse(x1)"), Input("x2")]) is None
    assert naive_projection(likelihood, Evaluator(X), SIN, [Input("x2"), Input("x3")]) is None


def test_the_generator_of_a_problem(data, rng):
    X, signal, *_ = data
    config = SearchConfig(moves=EQUAL, limits=Limits(max_depth=2, max_width=3), transform_weights=(0.0, 1.0))
    problem = define_problem(signal, X, transforms=["sin", "tanh"], config=config)
    maker = make_generator(problem, problem.likelihood, Evaluator(X))
    made = [feature for feature in draws(rng, maker, 300) if feature is not None]
    projections = [feature for feature in made if isinstance(feature, Projection)]
    assert {feature.transform.name for feature in made if hasattr(feature, "transform")} == {"tanh"}
    assert projections
    for feature in projections:
        design = Evaluator(X).matrix(feature.operands)
        assert weights_of(feature) == pytest.approx(naive.least_squares(signal, design)[0], rel=1e-5, abs=1e-6)


def test_the_default_transforms_are_those_of_the_preset(data):
    X, signal, *_ = data
    assert define_problem(signal, X).transforms == resolve_transforms("default")
