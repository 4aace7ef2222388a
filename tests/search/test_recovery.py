"""Whole searches: nothing in noise, a law where there is one."""

import numpy as np
import pytest

import bgnlm
from bgnlm.features import Input, parse
from bgnlm.posterior.summarize import summarize
from bgnlm.search.config import SearchConfig
from bgnlm.search.prior import ModelPrior
from bgnlm.search.problem import define_problem
from bgnlm.search.runner import run_chains
from bgnlm.search.union import unite


def search(y, X, n_chains=1, seed=1, config=None, **options):
    problem = define_problem(y, X, config=config, **options)
    return summarize(unite(problem, run_chains(problem, n_chains, seed)))


def noise(seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=100), rng.normal(size=(100, 5))


def probabilities(posterior):
    return dict(zip(posterior.features, posterior.inclusion_probabilities.tolist(), strict=True))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_nothing_is_found_in_noise_however_long_the_search(seed):
    y, X = noise(seed)
    for n_populations in (10, 40):
        found = search(y, X, seed=seed, config=SearchConfig(n_populations=n_populations))
        assert len(found.features) > 40
        assert found.inclusion_probabilities[0] < 0.5
        assert found.features_of(0) == ()


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_free_inputs_have_what_chance_gives_them_without_any_search(seed):
    y, X = noise(seed)
    linear = bgnlm.enumerate_models(y, X, penalty=0.0)
    found = probabilities(search(y, X, seed=seed, prior=ModelPrior(complexity="oc")))
    assert max(p for feature, p in found.items() if not isinstance(feature, Input)) < 0.5
    inputs = np.array([found[Input(name)] for name in linear.names])
    assert inputs == pytest.approx(linear.inclusion_probabilities, abs=0.15)


def test_noise_of_two_classes(rng):
    y, X = rng.random(100) < 0.5, rng.normal(size=(100, 4))
    config = SearchConfig(n_populations=8, population_size=9)
    found = probabilities(search(y, X, family="binomial", config=config))
    assert max(found.values()) < 0.5


def test_the_third_law_of_kepler():
    """From all columns of the table."""
    table = bgnlm.datasets.load_solar_system()
    X, y = table.drop(columns="semi_major_axis"), table["semi_major_axis"]
    inputs = list(X.columns)
    config = SearchConfig(n_populations=15)
    found = search(y, X, n_chains=3, names=inputs, noise_floor=1e-4, config=config)
    assert found.probability_of(parse("cbrt_abs(parent_mass*period**2)")) > 0.9
    assert found.discarded < 0.1
