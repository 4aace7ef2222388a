"""The whole search in one call."""

from dataclasses import replace

import numpy as np
import pytest

import bgnlm
from bgnlm.errors import DataError, ModelStatusWarning, SettingError
from bgnlm.features import parse
from bgnlm.latent import RW1

CONFIG = bgnlm.SearchConfig(population_size=8, n_populations=8, n_candidates=100)


@pytest.fixture(scope="module")
def law():
    rng = np.random.default_rng(3)
    X = rng.uniform(1.0, 5.0, size=(80, 3))
    return X[:, 0] * X[:, 1] + 0.1 * rng.normal(size=80), X


@pytest.fixture(scope="module")
def found(law):
    return bgnlm.find_features(*law, config=CONFIG, n_chains=3, random_state=1)


def test_a_product_is_found_with_its_probability(found):
    assert found.posterior.features_of(0) == (parse("x1*x2"),)
    assert found.posterior.probability_of(parse("x1*x2")) > 0.99
    assert found.posterior.probability_of(parse("sin(x3)")) == 0.0
    assert found.posterior.model_probabilities.sum() == pytest.approx(1.0)
    assert found.fit(0).coefficients == pytest.approx([0.0, 1.0], abs=0.1)


def test_the_result_depends_on_the_seed_alone(law, found):
    again = bgnlm.find_features(*law, config=CONFIG, n_chains=3, random_state=1)
    other = bgnlm.find_features(*law, config=CONFIG, n_chains=3, random_state=2)
    assert again.posterior.features == found.posterior.features
    assert (again.posterior.model_probabilities == found.posterior.model_probabilities).all()
    assert other.posterior.features != found.posterior.features


def test_more_chains_begin_with_the_same_ones(law, found):
    fewer = bgnlm.find_features(*law, config=CONFIG, n_chains=2, random_state=1)
    assert [chain.log_mass for chain in fewer.chains] == [chain.log_mass for chain in found.chains[:2]]


def test_diagnostics_say_what_the_chains_did(law):
    config = bgnlm.SearchConfig(population_size=8, n_populations=4, engine="mjmcmc", n_explore_steps=600)
    found = bgnlm.find_features(*law, config=config, n_chains=2, random_state=1)
    diagnostics = found.diagnostics
    assert diagnostics.chain_weights.sum() == pytest.approx(1.0)
    assert diagnostics.chain_probabilities.shape == (2, len(found.posterior.features))
    assert (diagnostics.disagreement >= 0.0).all()
    assert (diagnostics.tally[0] > 0).all()
    assert (diagnostics.tally[1] <= diagnostics.tally[0]).all()
    assert (diagnostics.tally[1] > 0).sum() > 3
    assert [len(history) for history in diagnostics.history] == [4, 4]
    masses = [[progress.log_mass for progress in history] for history in diagnostics.history]
    assert all(masses[i] == sorted(masses[i]) for i in range(2))
    assert diagnostics.n_models == len(found.posterior) <= diagnostics.n_scored
    text = str(found)
    for word in ("x1*x2", "probability", "log mass", *diagnostics.kernels):
        assert word in text


def test_progress_is_reported_after_each_population(law):
    seen = []
    bgnlm.find_features(*law, config=CONFIG, n_chains=2, random_state=1, progress=seen.append)
    assert [(progress.latest.chain, progress.latest.n_explored) for progress in seen] == [
        (b, t) for b in (0, 1) for t in range(1, 9)
    ]


def test_a_time_limit_gives_a_prefix_of_the_same_chain(law, found):
    config = bgnlm.SearchConfig(population_size=8, n_populations=8, n_candidates=100, max_seconds=0.0)
    stopped = bgnlm.find_features(*law, config=config, n_chains=1, random_state=1).chains[0].history
    assert len(stopped) == 1
    assert stopped[0].log_mass == found.chains[0].history[0].log_mass


@pytest.mark.parametrize("family", ["binomial", "poisson"])
def test_other_families(family):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(300, 3))
    eta = 2.0 * X[:, 0] * X[:, 1]
    y = rng.poisson(np.exp(0.5 * eta)) if family == "poisson" else rng.random(300) < 1.0 / (1.0 + np.exp(-eta))
    config = bgnlm.SearchConfig(population_size=6, n_populations=6, n_candidates=100)
    found = bgnlm.find_features(y, X, family=family, config=config, n_chains=2, random_state=1)
    assert found.posterior.probability_of(parse("x1*x2")) > 0.9


def test_settings_are_checked_before_anything_runs(law):
    with pytest.raises(SettingError, match="n_chains must be 1 or more"):
        bgnlm.find_features(*law, n_chains=0)
    with pytest.raises(SettingError, match="at most 24 features"):
        bgnlm.find_features(*law, config=bgnlm.SearchConfig(engine="exhaustive", population_size=30))
    with pytest.raises(SettingError, match="keep must be a list"):
        bgnlm.find_features(*law, keep="x1")


def test_a_feature_to_keep_stays_though_an_input_depends_on_it(law):
    y, X = law
    X = np.column_stack([X[:, :2], X[:, 0] * X[:, 1] - X[:, 0]])
    found = bgnlm.find_features(y, X, keep=["x1*x2"], config=CONFIG, n_chains=1, random_state=1)
    assert parse("x1*x2") in found.chains[0].state.features


def test_models_that_were_dropped_are_not_counted_again(law):
    plain = bgnlm.SearchConfig(population_size=5, n_populations=6, engine="mjmcmc", informed=0.0)
    few = bgnlm.SearchConfig(population_size=5, n_populations=6, engine="mjmcmc", informed=0.0, max_models=5)
    one, other = (bgnlm.find_features(*law, config=c, n_chains=1, random_state=1).chains[0] for c in (plain, few))
    assert len(other.visited) == 5 < len(one.visited)
    assert other.visited.n_scored == one.visited.n_scored
    assert other.log_mass <= one.log_mass + 1e-9


@pytest.mark.parametrize("prior", ["auto", "bic", "jeffreys"])
def test_informed_generation_where_classes_separate(prior):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(60, 3))
    config = bgnlm.SearchConfig(population_size=5, n_populations=4, n_candidates=50)
    found = bgnlm.find_features(
        X[:, 0] > 0, X, family="binomial", coefficient_prior=prior, config=config, n_chains=1, random_state=1
    )
    assert np.isfinite(found.posterior.log_mass)
    assert found.posterior.model_probabilities.sum() == pytest.approx(1.0)


@pytest.mark.parametrize("scale", [1e-120, 1e130])
def test_units_of_the_response_do_not_matter(law, scale):
    y, X = law
    # Weights of projections have the units of the response, so there are none here.
    config = replace(CONFIG, moves=bgnlm.search.MoveProbabilities(projection=0.0))
    one = bgnlm.find_features(y, X, config=config, n_chains=1, random_state=1).posterior
    other = bgnlm.find_features(scale * y, X, config=config, n_chains=1, random_state=1).posterior
    probabilities = [other.probability_of(feature) for feature in one.features]
    assert probabilities == pytest.approx(one.inclusion_probabilities, abs=1e-6)


def test_zeros_and_ones_as_inputs(law):
    y, X = law
    binary = (X.mean(axis=0) < X).astype(float)
    found = bgnlm.find_features(y, binary, config=CONFIG, n_chains=1, random_state=1)
    assert found.posterior.probability_of(parse("x1")) > 0.9


def test_what_cannot_matter_is_said(law):
    y, X = law
    with pytest.warns(ModelStatusWarning, match="Constant columns are in no model: x4"):
        bgnlm.find_features(y, np.column_stack([X, np.ones(80)]), config=CONFIG, n_chains=1, random_state=1)
    with pytest.warns(ModelStatusWarning, match="CONSTANT_RESPONSE"):
        bgnlm.find_features(np.ones(80), X, config=CONFIG, n_chains=1, random_state=1)


@pytest.mark.parametrize("seed", [-1, "a", 1.5, np.random.default_rng(1)])
def test_a_seed_is_a_whole_number(law, seed):
    with pytest.raises(SettingError, match="random_state must be a whole number"):
        bgnlm.find_features(*law, config=CONFIG, random_state=seed)


def test_chains_at_a_time_and_checkpoints(law, found, tmp_path):
    options = {"config": CONFIG, "n_chains": 3, "random_state": 1}
    for more in ({"n_jobs": 2}, {"checkpoint": tmp_path / "here"}, {"checkpoint": str(tmp_path / "here"), "n_jobs": 2}):
        again = bgnlm.find_features(*law, **options, **more)
        assert again.posterior.features == found.posterior.features
        assert (again.posterior.model_probabilities == found.posterior.model_probabilities).all()
        assert (again.diagnostics.chain_probabilities == found.diagnostics.chain_probabilities).all()
    assert found.diagnostics.endings == ("complete",) * 3
    assert str(found).count("complete") == 3


def test_latent_components():
    """A walk is found beside a feature, and positions are no inputs."""
    rng = np.random.default_rng(5)
    n = 80
    t, X = np.arange(n), rng.normal(size=(n, 2))
    y = rng.poisson(np.exp(1.0 + X[:, 0] + 1.5 * np.sin(t / 8)))
    config = bgnlm.SearchConfig(n_populations=2, population_size=3)
    settings = {"family": "poisson", "config": config, "n_chains": 1, "random_state": 1}
    found = bgnlm.find_features(y, X, latent=[RW1("t")], positions={"t": t}, **settings)
    probabilities = dict(zip(map(str, found.posterior.features), found.posterior.inclusion_probabilities, strict=True))
    assert probabilities["RW1(t)"] > 0.99
    assert probabilities["x1"] > 0.99
    with pytest.raises(DataError, match="positions must have the column 't'"):
        bgnlm.find_features(y, X, latent=[RW1("t")], **settings)
