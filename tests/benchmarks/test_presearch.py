"""Stepwise selection before the first population."""

import numpy as np
import pandas as pd
import pytest

from benchmarks.paper.presearch import stepwise_probabilities, surviving_inputs
from bgnlm.search import ModelPrior


def test_models_that_both_selections_look_at():
    gains, seen = np.array([3.0, 1.0, -2.0]), set()

    def log_joint(models):
        seen.update(models)
        return np.array([gains[sorted(model)].sum() for model in models])

    found = stepwise_probabilities(log_joint, 3)
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

    found = stepwise_probabilities(log_joint, 4)
    assert found[:2].tolist() == pytest.approx([1.0, 1.0], abs=1e-6)
    assert found[2] < 0.5


def test_inputs_that_explain_the_response_stay():
    rng = np.random.default_rng(1)
    X = pd.DataFrame(rng.normal(size=(300, 5)), columns=list("abcde"))
    y = (2.0 * X["b"] - 1.5 * X["d"] + rng.logistic(size=300) > 0).to_numpy(dtype=float)
    prior = ModelPrior(penalty=3.0, complexity="script")
    assert surviving_inputs(X, y, 0.5, family="binomial", coefficient_prior="script", penalty=prior) == ["b", "d"]
    assert len(surviving_inputs(X, y, 0.0, family="binomial", coefficient_prior="script", penalty=prior)) == 5
