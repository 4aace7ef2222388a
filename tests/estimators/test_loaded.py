"""What loaded estimators know of how they were fitted."""

import numpy as np
import pytest

from bgnlm import BGNLMRegressor, SearchConfig, load
from bgnlm.errors import MissingOffsetWarning, SettingError
from bgnlm.search import ModelPrior
from bgnlm.search.prior import operations_plus_one

TINY = SearchConfig(n_populations=2, population_size=4, n_candidates=20, n_averaged=5)


def test_settings_that_a_file_cannot_hold_are_asked_for(tmp_path):
    """They must not be replaced by defaults in silence."""
    rng = np.random.default_rng(5)
    X = rng.normal(size=(30, 2))
    y = X[:, 0] + rng.normal(size=30)
    prior = ModelPrior(complexity=operations_plus_one)
    BGNLMRegressor(search=TINY, n_chains=1, random_state=0, penalty=prior).fit(X, y).save(tmp_path / "model.bgnlm")
    model = load(tmp_path / "model.bgnlm")
    for again in (lambda: model.rescore(X, y, coefficient_prior="g"), lambda: model.fit(X, y)):
        with pytest.raises(SettingError, match=r"could not hold penalty .* model.set_params\(penalty=...\)"):
            again()
    assert model.rescore(X, y, penalty="aic").penalty == "aic"
    assert len(model.set_params(penalty=prior).rescore(X, y, coefficient_prior="g").features_)


def test_an_offset_is_remembered(tmp_path):
    rng = np.random.default_rng(6)
    X, offset = rng.normal(size=(30, 2)), rng.normal(size=30)
    model = BGNLMRegressor(search=TINY, n_chains=1, random_state=0).fit(X, X[:, 0] + offset, offset=offset)
    model.save(tmp_path / "model.bgnlm")
    loaded = load(tmp_path / "model.bgnlm")
    with pytest.warns(MissingOffsetWarning):
        loaded.predict(X)
    np.testing.assert_array_equal(loaded.predict(X, offset=offset), model.predict(X, offset=offset))
