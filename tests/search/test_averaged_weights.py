"""Models averaged over the weights of their projections: against quadrature, and against draws from the prior."""

import math
import pickle
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.special import expit

from bgnlm.features import Evaluator, Input, get_transform, learn_cut_points, parse
from bgnlm.features.gradients import WeightFunction
from bgnlm.features.weight_symmetries import SignedPermutation
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.likelihood.varying import VaryingColumns
from bgnlm.search.averaged_weights import AverageOverWeights
from bgnlm.search.config import ProjectionWeights
from bgnlm.search.importance import around, climb, distinct_modes, integrate, log_normal
from bgnlm.search.weights import WeightSetter

NAMES = ("x1", "x2", "x3")
TRUE = "tanh(0.4 + 1.2*x1 - 0.8*x2)"
REPETITIONS = 50
TOLERANCE = 0.05
LIMIT = 7.0  # standard deviations of the prior up to which weights are integrated over


@cache
def data(family, n, seed=91):
    """Inputs, and a response that is a projection of two of them."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    eta = 1.5 * np.tanh(0.4 + 1.2 * X[:, 0] - 0.8 * X[:, 1])
    y = eta + 0.5 * rng.normal(size=n) if family == "gaussian" else (rng.random(n) < expit(2.0 * eta)).astype(float)
    return X, y


def averages(family="gaussian", n=40, weights=None, prior="auto", rows=None, **settings):
    X, y = data(family, n)
    if rows is not None:
        X, y = X[rows], y[rows]
    likelihood = check_likelihood(y, family=family, sample_weight=weights, coefficient_prior=prior)
    return AverageOverWeights(ProjectionWeights(strategy="bayesian", **settings), likelihood, X, NAMES)


class Quadrature:
    """Nodes and log weights of the integral over N(0, 1) weights."""

    def __init__(self, nodes, log_weights):
        self.nodes = nodes
        self.log_weights = log_weights + log_normal(nodes, 1.0)

    def log_value(self, log_marginals):
        return float(np.logaddexp.reduce(log_marginals(self.nodes) + self.log_weights))


def plain(size, n_nodes):
    """Trapezoids; no node is at 0, where a projection is constant."""
    step = 2.0 * LIMIT / n_nodes
    line = (np.arange(n_nodes) + 0.5) * step - LIMIT
    nodes = np.stack(np.meshgrid(*[line] * size, indexing="ij"), axis=-1).reshape(-1, size)
    return Quadrature(nodes, np.full(len(nodes), size * math.log(step)))


def polar(n_intercepts, n_lengths, n_angles):
    """Two slopes by length and angle: for short ones a projection is linear, and the angle alone matters.

    With an intercept before them if there are nodes for it.
    """
    points, shares = leggauss(n_lengths)
    lengths, shares = 0.5 * LIMIT * (points + 1.0), 0.5 * LIMIT * shares
    angles = (np.arange(n_angles) + 0.5) * 2.0 * np.pi / n_angles
    step = 2.0 * LIMIT / max(n_intercepts, 1)
    intercepts = (np.arange(n_intercepts) + 0.5) * step - LIMIT if n_intercepts else np.zeros(1)
    a, r, t = (each.ravel() for each in np.meshgrid(intercepts, lengths, angles, indexing="ij"))
    nodes = np.column_stack([a, r * np.cos(t), r * np.sin(t)])
    areas = np.tile(np.repeat(np.log(shares * lengths * 2.0 * np.pi / n_angles), n_angles), len(intercepts))
    return Quadrature(nodes, areas + math.log(step)) if n_intercepts else Quadrature(nodes[:, 1:], areas)


def signs(size):
    identity = SignedPermutation(np.arange(size), np.ones(size))
    return [identity, identity._replace(signs=-identity.signs)]


class ByHand:
    """y = b_0 + b_1 tanh(design @ alpha), with as many weights alpha as there are columns."""

    def __init__(self, family, design, y):
        self.design = design
        self.scores = VaryingColumns(check_likelihood(y, family=family), np.empty((len(y), 0)))
        starts = np.random.default_rng(92).normal(size=(3, design.shape[1]))
        modes = [climb(self.log_density, start, 1.0) for start in starts]
        group = signs(design.shape[1])
        self.proposal = around(distinct_modes(modes, group), group, 1.0)

    def log_marginals(self, weights):
        return self.scores.log_marginals(np.tanh(weights @ self.design.T)[:, None, :])

    def log_density(self, weights):
        return self.log_marginals(weights) + log_normal(weights, 1.0)

    def integrated(self, seed, proposal=None):
        proposal = self.proposal if proposal is None else proposal
        return integrate(self.log_density, proposal, np.random.default_rng(seed), TOLERANCE, 10_000)


def by_hand(family, kind, n=60):
    X, y = data(family, n)
    x = X[:, 0] - 0.66 * X[:, 1]
    return ByHand(
        family, {"slope": x[:, None], "intercept": np.column_stack([np.ones(n), x]), "slopes": X[:, :2]}[kind], y
    )


CASES = {
    ("gaussian", "slope"): plain(1, 2000),
    ("gaussian", "intercept"): plain(2, 120),
    ("gaussian", "slopes"): polar(0, 60, 60),
    ("binomial", "slope"): plain(1, 300),
    ("binomial", "intercept"): plain(2, 60),
}


@pytest.mark.parametrize(("family", "kind"), CASES)
def test_integrals_over_one_and_two_weights(family, kind):
    """Standard errors are as asked for, and the true value is within two of them nearly always."""
    model = by_hand(family, kind)
    expected = CASES[family, kind].log_value(model.log_marginals)
    found = [model.integrated(seed) for seed in range(REPETITIONS)]
    errors = np.array([each.standard_error for each in found])
    scores = np.array([each.log_value - expected for each in found]) / errors
    assert errors.max() <= TOLERANCE
    assert (np.abs(scores) <= 2.0).mean() >= 0.9


def test_one_image_of_the_mode_is_half_of_the_integral():
    """Weights of the other sign are the same function; a proposal around one mode alone loses log 2."""
    model = by_hand("gaussian", "slopes", n=400)
    proposal = model.proposal
    alone = replace(proposal, shares=proposal.shares / proposal.shares.sum(), symmetries=proposal.symmetries[:1])
    expected = polar(0, 60, 200).log_value(model.log_marginals)
    for seed in range(5):
        assert model.integrated(seed).log_value == pytest.approx(expected, abs=0.2)
        assert model.integrated(seed, alone).log_value == pytest.approx(expected - math.log(2.0), abs=0.2)


@cache
def three_weights(family, n):
    """Quadrature of the model with the projection TRUE and nothing else."""
    weighted = averages(family, n)
    likelihood = weighted._likelihood
    scores = VaryingColumns(likelihood, np.empty((n, 0)))
    function = weighted._weighted(parse(TRUE)).function
    quadrature = polar(56, 32, 40)
    half = quadrature.nodes[:, 2] > 0.0
    nodes, log_weights = quadrature.nodes[half], quadrature.log_weights[half] + math.log(2.0)
    values = np.concatenate(
        [scores.log_marginals(function.values(part)[:, None, :]) for part in np.array_split(nodes, 20)]
    )
    return nodes, values + log_weights


def test_a_projection_of_two_inputs():
    """Features of one structure that differ in the weights they are shown with: other starts, other random numbers."""
    _, log_values = three_weights("gaussian", 40)
    expected = np.logaddexp.reduce(log_values)
    weighted = averages()
    found = [weighted.score((parse(f"tanh(0.4 + {1.2 + 0.01 * k:.2f}*x1 - 0.8*x2)"),)) for k in range(REPETITIONS)]
    errors = np.array([each.standard_error for each in found])
    scores = np.array([each.log_marginal - expected for each in found]) / errors
    assert errors.max() <= TOLERANCE
    assert (np.abs(scores) <= 2.0).mean() >= 0.9


def test_draws_are_those_of_the_posterior():
    nodes, log_values = three_weights("gaussian", 40)
    weighted, feature = averages(tolerance=0.01), parse(TRUE)
    model = weighted.score((feature,))
    shares = np.exp(log_values - np.logaddexp.reduce(log_values))
    nodes = weighted._weighted(feature).alike(nodes)
    mean = shares @ nodes
    covariance = (nodes - mean).T @ (shares[:, None] * (nodes - mean))
    drawn = model.weights[feature]
    deviations = np.sqrt(np.diag(covariance))
    assert drawn.shape == (100, 3)
    assert drawn.mean(axis=0) == pytest.approx(mean, abs=3.5 * deviations.max() / 10.0)
    assert drawn.std(axis=0) == pytest.approx(deviations, rel=0.3)
    assert np.corrcoef(drawn.T) == pytest.approx(covariance / np.outer(deviations, deviations), abs=0.3)
    best = model.best_weights[feature]
    heights = _log_densities(weighted, feature, np.vstack([best, nodes]))
    assert heights[0] > heights[1:].max() - 0.01
    assert heights[0] == pytest.approx(model.best_log_marginal + log_normal(best[None, :], 1.0)[0])


def _log_densities(weighted, feature, nodes):
    scores = VaryingColumns(weighted._likelihood, np.empty((40, 0)))
    columns = weighted._weighted(feature).function.values(nodes)[:, None, :]
    return scores.log_marginals(columns) + log_normal(nodes, 1.0)


@pytest.mark.parametrize(("family", "n"), [("gaussian", 100), ("binomial", 40)])
def test_draws_from_the_prior_give_the_same(family, n):
    """As the paper has it; this takes many draws."""
    feature = parse(TRUE)
    one = averages(family, n, tolerance=0.03).score((feature,))
    other = averages(family, n, sampler="prior", n_weight_draws=200_000, tolerance=0.03).score((feature,))
    if family == "gaussian":  # where the data say more about the weights than the prior does
        assert one.n_draws < other.n_draws
    assert abs(one.log_marginal - other.log_marginal) < 3.0 * math.hypot(one.standard_error, other.standard_error)
    heights = [
        each.best_log_marginal + log_normal(each.best_weights[feature][None, :], 1.0)[0] for each in (one, other)
    ]
    assert heights[0] - 0.5 < heights[1]  # draws come close to the mode


def test_another_variance_of_the_weights():
    """With little variance all projections are linear: then their average is that over directions."""
    wide, narrow = (averages(weight_variance=variance).score((parse(TRUE),)) for variance in (1.0, 1e-4))
    nodes = polar(0, 2, 400).nodes[:400]
    weighted = averages()
    X = Evaluator(data("gaussian", 40)[0]).matrix([Input("x1"), Input("x2")])
    columns = (X - X.mean(axis=0)) / X.std(axis=0) @ nodes.T
    values = VaryingColumns(weighted._likelihood, np.empty((40, 0))).log_marginals(columns.T[:, None, :])
    expected = np.logaddexp.reduce(values) - math.log(len(values))
    assert narrow.log_marginal == pytest.approx(expected, abs=4.0 * narrow.standard_error)
    assert abs(wide.log_marginal - expected) > 0.2


MODELS = [
    (Input("x3"), parse(TRUE), parse("x1*x2")),
    (parse(TRUE), parse("sigmoid(0.1 + x1 + x3)")),
    (Input("x1"), parse("x3*gauss(0.2 + 0.5*x1 + x2)"), parse("sigmoid(0.1 + x1 + x3)")),
]


def test_one_model_has_one_score():
    """Whatever the order of its features, and whatever was scored before."""
    forwards, backwards = averages(), averages()
    one = [forwards.score(model) for model in MODELS]
    other = [backwards.score(model[::-1]) for model in MODELS[::-1]][::-1]
    for a, b in zip(one, other, strict=True):
        assert a.log_marginal == b.log_marginal
        assert a.standard_error == b.standard_error
        assert a.weights.keys() == b.weights.keys()
        assert all(np.array_equal(a.weights[feature], b.weights[feature]) for feature in a.weights)


def test_pickles():
    weighted = averages()
    value = weighted.score(MODELS[0]).log_marginal
    again = pickle.loads(pickle.dumps(weighted))
    assert again.score(MODELS[0]).log_marginal == value


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_weights_of_rows_are_repetitions(family):
    counts = np.random.default_rng(93).integers(0, 3, size=40)
    repeated = averages(family, rows=np.repeat(np.arange(40), counts))
    weighted = averages(family, weights=counts.astype(float))
    one, other = (each.score((parse(TRUE), Input("x3"))) for each in (repeated, weighted))
    error = math.hypot(one.standard_error, other.standard_error)
    assert one.log_marginal == pytest.approx(other.log_marginal, abs=1e-6 if family == "gaussian" else 3.0 * error)


@pytest.mark.parametrize("prior", ["gaussian", "bic", "zellner-siow"])
def test_other_priors_of_the_coefficients(prior):
    """One weight more than is known by heart: the average is below the best, and above what the best makes of it."""
    model = averages(prior=prior).score((parse(TRUE),))
    assert model.standard_error <= TOLERANCE
    assert model.log_marginal < model.best_log_marginal < model.log_marginal + 8.0


def test_weights_are_alike_in_all_models():
    """They could have either sign; that of the feature they are shown as is taken."""
    weighted, feature = averages(n=100), parse(TRUE)
    start = weighted._weighted(feature).function.start
    for model in [(feature,), *(model for model in MODELS if feature in model)]:
        found = weighted.score(model)
        assert found.best_weights[feature] @ start > 0.0
        assert (found.weights[feature] @ start > 0.0).mean() > 0.95
    negated = parse("tanh(-0.4 - 1.2*x1 + 0.8*x2)")
    assert weighted.score((negated,)).best_weights[negated] @ start < 0.0


def test_features_with_drawn_weights():
    weighted = averages()
    for model in MODELS:
        drawn = weighted.drawn(model, 7)
        assert len(drawn) == 7
        assert len(set(drawn)) > 3
        evaluator = Evaluator(data("gaussian", 40)[0], NAMES)
        for features in drawn:
            for feature, given in zip(features, model, strict=True):
                assert type(feature) is type(given)
                assert np.isfinite(evaluator.column(feature)).all()
        best = weighted.at_best(model)
        scores = VaryingColumns(weighted._likelihood, np.empty((40, 0)))
        value = scores.log_marginals(evaluator.matrix(best).T[None])[0]
        assert value == pytest.approx(weighted.score(model).best_log_marginal, abs=1e-5)


@pytest.mark.parametrize("name", ["hinge_up", "above_median"])
def test_cut_points_are_learnt_with_the_weights(name):
    X, _ = data("gaussian", 40)
    evaluator = Evaluator(X, NAMES)
    feature = learn_cut_points(parse(TRUE.replace("tanh", name)), evaluator)
    assert feature.transform == get_transform(name)
    weighted = averages()
    model = weighted.score((feature,))
    assert math.isfinite(model.log_marginal)
    for (drawn,), weights in zip(weighted.drawn((feature,), 100), model.weights[feature], strict=True):
        assert drawn.parameters
        assert evaluator.column(drawn) == pytest.approx(weighted.column(feature, weights), abs=1e-6)
    (best,) = weighted.at_best((feature,))
    assert best.parameters


def test_a_model_that_has_no_score():
    """Where a projection depends on the columns next to it whatever its weights are."""
    X = np.random.default_rng(94).choice([-1.0, 1.0], size=(30, 3))
    X[:, 2] = X[:, 0] * X[:, 1]
    weighted = AverageOverWeights(
        ProjectionWeights(strategy="bayesian", n_weight_draws=200), check_likelihood(X[:, 0] + X[:, 2]), X, NAMES
    )
    model = weighted.score((*map(Input, NAMES), parse("tanh(0.3 + x1 + 0.5*x2)")))
    assert model.log_marginal == -math.inf
    assert model.standard_error == math.inf
    assert model.best_log_marginal == -math.inf


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_representatives_are_where_weights_are_most_probable(family):
    """And what averaging costs is then known without draws, also where there is little noise."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(200, 3))
    mean = 2.0 * np.tanh(1.5 * X[:, 0] - 0.8 * X[:, 1])
    y = mean + 0.1 * rng.normal(size=200)
    if family == "binomial":
        y = (rng.random(200) < 1.0 / (1.0 + np.exp(-2.0 * mean))).astype(float)
    likelihood, settings = check_likelihood(y, family=family), ProjectionWeights(strategy="bayesian")
    setter = WeightSetter(settings, likelihood, Evaluator(X))
    feature = setter.project(get_transform("tanh"), [Input("x1"), Input("x2")])
    assert feature is not None
    averages = AverageOverWeights(settings, likelihood, X, ("x1", "x2", "x3"))
    score = averages.score((feature,))
    function = WeightFunction(feature, Evaluator(X), np.ones(200), every_layer=True)
    assert function.start == pytest.approx(score.best_weights[feature], abs=0.1 if family == "gaussian" else 0.4)
    assert averages.price(feature) == pytest.approx(score.best_log_marginal - score.log_marginal, abs=1.0)
