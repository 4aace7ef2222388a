"""Stepwise selection and a walk before the first filter of the inputs."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from benchmarks.paper.presearch import inclusion, presearch, step, stepwise, walk
from bgnlm.search import ModelPrior


def test_models_that_both_selections_look_at():
    gains, seen = np.array([3.0, 1.0, -2.0]), set()

    def log_joint(models):
        seen.update(models)
        return np.array([gains[sorted(model)].sum() for model in models])

    found = inclusion(stepwise(log_joint, 3), 3)
    # Forward: 0, then 1, then 2; backward: without 2, then without 1.
    looked_at = [(), (0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)]
    assert seen == set(map(frozenset, looked_at))
    weights = {model: np.exp(gains[list(model)].sum()) for model in looked_at}
    for j in range(3):
        assert found[j] == pytest.approx(
            sum(weight for model, weight in weights.items() if j in model) / sum(weights.values())
        )


def test_a_selection_follows_the_best_neighbour_only():
    """Four inputs of which only the first two together explain anything: forward selection comes to them late."""

    def log_joint(models):
        return np.array([20.0 * ({0, 1} <= model) - len(model) for model in models])

    found = inclusion(stepwise(log_joint, 4), 4)
    assert found[:2].tolist() == pytest.approx([1.0, 1.0], abs=1e-6)
    assert found[2] < 0.5


def test_inputs_that_explain_the_response_stay():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 5)), columns=list("abcde"))
    y = (2.0 * X["b"] - 1.5 * X["d"] + rng.logistic(size=300) > 0).to_numpy(dtype=float)
    prior = ModelPrior(penalty=3.0, complexity="script")
    before = presearch(X, y, family="binomial", coefficient_prior="script", penalty=prior)
    assert before.surviving_inputs(rng, 20, 0.5) == ["b", "d"]
    assert len(before.surviving_inputs(rng, 20, 0.0)) == 5


GAINS = np.array([1.0, -0.5, 0.3, 0.0])
MODELS = [frozenset(j for j in range(4) if mask >> j & 1) for mask in range(16)]


def log_joint_of_four(models):
    return np.array([GAINS[sorted(model)].sum() - 0.4 * len(model) ** 2 for model in models])


def test_a_step_of_the_walk_leaves_the_posterior_as_it_is():
    rng, n_draws = np.random.default_rng(3), 8000
    posterior = np.exp(log_joint_of_four(MODELS))
    posterior /= posterior.sum()
    starts = rng.choice(16, size=n_draws, p=posterior)
    ends = [MODELS.index(step(rng, log_joint_of_four, MODELS[start], 4)) for start in starts]
    assert stats.chisquare(np.bincount(ends, minlength=16), n_draws * posterior).pvalue > 1e-3
    assert np.mean(starts != ends) > 0.3


def test_the_walk_remembers_what_it_looks_at():
    seen = walk(np.random.default_rng(1), log_joint_of_four, 4, 30)
    assert len(seen) > 8
    assert list(seen.values()) == pytest.approx(log_joint_of_four(seen).tolist())
