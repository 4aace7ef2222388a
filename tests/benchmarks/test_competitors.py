"""Other methods: at both levels, from training rows alone."""

import numpy as np
import pytest

pytest.importorskip("xgboost", reason="needs the extra 'benchmark'")

from benchmarks.paper.boosting import TunedBoosting
from benchmarks.paper.competitors import CLASSIFIERS, REGRESSORS

SLOW = {("RFOREST", "tuned"), ("DEEPNETS", "tuned"), ("DEEPNETS", "paper"), ("TXGBOOST", "tuned")}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", [key for key in REGRESSORS if key not in SLOW], ids="-".join)
def test_regressors_find_a_linear_mean(method, rng):
    X = rng.normal(size=(120, 3))
    y = X @ np.array([2.0, -1.0, 0.0]) + 0.1 * rng.normal(size=120)
    model = REGRESSORS[method].make(False, 1).fit(X[:100], y[:100])
    assert np.corrcoef(np.ravel(model.predict(X[100:])), y[100:])[0, 1] > 0.9


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("method", [("LASSO", "paper"), ("RIDGE", "tuned"), ("NBAYES", "paper"), ("LR", "paper")])
def test_classifiers_give_probabilities(method, rng):
    X = rng.normal(size=(120, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=120) > 0).astype(int)
    model = CLASSIFIERS[method].make(True, 1).fit(X[:100], y[:100])
    assert np.mean((model.predict_proba(X[100:])[:, 1] > 0.5) == y[100:]) > 0.7


def test_tuned_boosting_depends_on_its_seed_alone(rng):
    X = rng.normal(size=(80, 2))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    first, second = (TunedBoosting("gbtree", True, 3).fit(X, y).predict_proba(X) for _ in range(2))
    np.testing.assert_array_equal(first, second)
    np.testing.assert_allclose(first.sum(axis=1), 1.0)
