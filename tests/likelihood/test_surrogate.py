"""The quadratic stand-in for generalized linear models."""

import numpy as np
import pytest

from bgnlm import CoefficientPrior
from bgnlm.likelihood.families import resolve_family
from bgnlm.likelihood.glm import glm_statistics
from bgnlm.likelihood.glm_score import GlmScore
from bgnlm.likelihood.subsets import unpack
from bgnlm.likelihood.surrogate import quadratic_surrogate

FAMILIES = ["binomial", "poisson", "gamma", "negative_binomial"]


def _statistics(family, rng, n=150):
    X = rng.normal(size=(n, 5)) @ rng.normal(size=(5, 5))
    mean = np.exp(0.3 + 0.3 * X[:, 0] - 0.2 * X[:, 2])
    y = {
        "binomial": (rng.random(n) < mean / (1 + mean)).astype(float),
        "poisson": rng.poisson(mean).astype(float),
        "gamma": rng.gamma(3.0, mean / 3.0),
        "negative_binomial": rng.poisson(mean * rng.gamma(2.0, 0.5, size=n)).astype(float),
    }[family]
    return glm_statistics(resolve_family(family, None), y, X, np.ones(n), 0.1 * rng.normal(size=n))


def unit_information(statistics, g):
    return statistics.data.null_information / g


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("model", [0, 5, 31])
@pytest.mark.parametrize("prior", [CoefficientPrior("g", g=150.0), CoefficientPrior("gaussian", variance=3.0)], ids=str)
def test_exact_for_the_model_it_is_expanded_at(family, model, prior, rng):
    statistics = _statistics(family, rng)
    columns = np.array([j for j in range(5) if model >> j & 1], dtype=np.int64)
    score = GlmScore(prior, statistics)
    surrogate = quadratic_surrogate(statistics, columns, score.normal_precision).scores()
    exact, _ = score.log_marginals(unpack(np.array([model]), 5))
    # With a dispersion the exact value has its cross terms too.
    tolerance = 1e-6 if family in ("binomial", "poisson") else 0.05
    assert surrogate[model] == pytest.approx(exact[0], abs=tolerance)


@pytest.mark.parametrize("family", FAMILIES)
def test_close_to_the_exact_scores_near_the_best_model(family, rng):
    statistics = _statistics(family, rng)
    masks = np.arange(32)
    exact, _ = GlmScore(CoefficientPrior("g", g=150.0), statistics).log_marginals(unpack(masks, 5))
    best = int(exact.argmax())
    columns = np.array([j for j in range(5) if best >> j & 1], dtype=np.int64)
    surrogate = quadratic_surrogate(statistics, columns, unit_information(statistics, 150.0)).scores()
    weights = np.exp(exact - exact.max())
    error = surrogate - exact
    centred = error - weights @ error / weights.sum()
    assert np.sqrt(weights @ centred**2 / weights.sum()) < 0.5
    assert surrogate.argmax() == best


@pytest.mark.parametrize("n_columns", [0, 1, 8, 9, 13])
def test_all_models_against_determinants(n_columns, rng):
    """However many columns there are: some come in one way, the others another way."""
    X = rng.normal(size=(100, n_columns)) @ rng.normal(size=(n_columns, n_columns))
    y = rng.integers(0, 2, size=100).astype(float)
    statistics = glm_statistics(resolve_family("binomial", None), y, X, np.ones(100), np.zeros(100))
    surrogate = quadratic_surrogate(statistics, np.arange(min(n_columns, 2)), unit_information(statistics, 100.0))
    scores = surrogate.scores()
    assert len(scores) == 2**n_columns
    for mask in {0, *rng.integers(0, len(scores), size=200).tolist(), len(scores) - 1}:
        columns = np.array([j for j in range(n_columns) if mask >> j & 1], dtype=np.int64)
        block = np.ix_(columns, columns)
        gradient = surrogate.matrix[-1, columns]
        expected = surrogate.constant + surrogate.cost[columns].sum()
        expected += 0.5 * surrogate.corner * gradient @ np.linalg.solve(surrogate.matrix[block], gradient)
        expected += 0.5 * np.linalg.slogdet(surrogate.prior_matrix[block])[1]
        expected -= 0.5 * np.linalg.slogdet(surrogate.matrix[block])[1]
        assert scores[mask] == pytest.approx(expected, abs=1e-7)


def test_size_limit_and_dependent_columns(rng):
    statistics = _statistics("poisson", rng)
    X = np.column_stack([statistics.data.design.T, statistics.data.design[0]])
    doubled = glm_statistics(statistics.family, statistics.data.y, X, np.ones(150), statistics.data.offset)
    scores = quadratic_surrogate(doubled, np.array([0]), unit_information(doubled, 50.0)).scores()
    both = np.array([mask & 1 and mask >> 5 & 1 for mask in range(64)], dtype=bool)
    assert (scores[both] == -np.inf).all()
    assert np.isfinite(scores[~both]).all()
    capped = quadratic_surrogate(statistics, np.array([0]), unit_information(statistics, 50.0)).scores(max_size=2)
    sizes = np.array([mask.bit_count() for mask in range(32)])
    assert (np.isfinite(capped) == (sizes <= 2)).all()


@pytest.mark.parametrize(
    ("scale", "weight", "variance"), [(1e5, 1.0, 6.25), (1.0, 1e8, 6.25), (1.0, 1.0, 1e8), (1.0, 1.0, 1e-8)]
)
def test_much_information_and_wide_priors_leave_all_models_their_scores(scale, weight, variance, rng):
    X = rng.normal(size=(200, 6))
    y = rng.poisson(scale * np.exp(0.3 * X[:, 0] - 0.2 * X[:, 1])).astype(float)
    statistics = glm_statistics(resolve_family("poisson", None), y, X, np.full(200, weight), np.zeros(200))
    score = GlmScore(CoefficientPrior("gaussian", variance=variance), statistics)
    scores = quadratic_surrogate(statistics, np.array([0, 1]), score.normal_precision).scores()
    assert np.isfinite(scores).all()
    exact = score.log_marginals(unpack(np.array([3]), 6))[0][0]
    assert scores[3] == pytest.approx(exact, rel=1e-9, abs=1e-6)
