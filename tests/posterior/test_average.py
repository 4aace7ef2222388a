"""Fitted models with their probabilities, against separate fits of the same models."""

from types import SimpleNamespace

import numpy as np
import pytest

import bgnlm
from bgnlm import CoefficientPrior, SearchConfig
from bgnlm.features import Input, parse
from bgnlm.likelihood.model_fit import upper_factor
from bgnlm.posterior import average as module
from bgnlm.posterior.average import ENOUGH_MASS, average_models, median_model
from bgnlm.posterior.predict import predict_deviation, predict_mean, predict_quantiles
from bgnlm.search.config import Limits
from bgnlm.search.prior import ModelPrior
from bgnlm.search.problem import define_problem
from tests import naive_predict as naive
from tests.naive_glm import PAIRS

CASES = [("gaussian", None), *PAIRS]
LINEAR = SearchConfig(population_size=4, n_populations=1, engine="exhaustive", limits=Limits(max_depth=0), window=60.0)


def found_of(y, X, *, penalty=0.0, config=LINEAR, **options):
    """A search of all linear models."""
    return bgnlm.find_features(
        y, X, prior=ModelPrior(penalty=penalty), config=config, n_chains=1, random_state=1, **options
    )


@pytest.mark.parametrize("pair", CASES, ids=str)
def test_coefficients_on_the_scale_of_the_features(pair):
    y, X, models, probabilities, options = naive.example(*pair)
    average = naive.average_of(y, X, models, probabilities, **options)
    for m, fit in enumerate(naive.fits_of(y, X, models, **options)):
        assert average.linear_predictor(m) == pytest.approx(fit.coefficients, rel=1e-6, abs=1e-8)


@pytest.mark.parametrize("pair", CASES, ids=str)
def test_a_search_gives_the_models_their_fits(pair):
    y, X, _, _, options = naive.example(*pair)
    found = found_of(y, X, **options)
    average = average_models(found.problem, found.posterior, 1000)
    assert average.probabilities.sum() == pytest.approx(1.0)
    assert (np.diff(average.probabilities) <= 0.0).all()
    assert np.array_equal(average.sizes, np.diff(average.starts))
    for m in range(min(len(average), 8)):
        names = {average.features[j].name for j in average.members_of(m)}
        assert names == {feature.name for feature in found.posterior.features_of(m)}
        columns = [int(average.features[j].name[1:]) - 1 for j in average.members_of(m)]
        fit = bgnlm.fit_model(y, X[:, columns], **options)
        # g is integrated over nodes that depend on the models before, which moves the last digits
        assert average.linear_predictor(m) == pytest.approx(fit.coefficients, rel=1e-4, abs=1e-6)
        assert average.dispersions[m] == pytest.approx(fit.dispersion, rel=1e-5)
        assert average.degrees[m] == fit.degrees_of_freedom
        # The covariance too, in the units of the data.
        alone = average.only(m)
        size = len(columns)
        back = np.eye(size + 1)
        back[1:, 1:] = np.diag(1.0 / alone.scales)
        back[0, 1:] = -alone.centres / alone.scales
        factor = back @ alone.factors.reshape(size + 1, size + 1)
        expected = fit.covariance_factor @ fit.covariance_factor.T
        assert factor @ factor.T == pytest.approx(expected, rel=1e-3, abs=1e-5 * np.abs(expected).max())


def test_models_beyond_nearly_all_the_probability_are_left_out():
    y, X, *_ = naive.example()
    found = found_of(y, X)
    cumulative = np.cumsum(found.posterior.model_probabilities)
    average = average_models(found.problem, found.posterior, 1000)
    assert cumulative[len(average) - 1] >= ENOUGH_MASS > cumulative[len(average) - 2]
    assert average.mass == pytest.approx(cumulative[len(average) - 1])
    three = average_models(found.problem, found.posterior, 3)
    assert len(three) == 3
    assert three.mass == pytest.approx(cumulative[2])
    assert three.probabilities == pytest.approx(found.posterior.model_probabilities[:3] / cumulative[2])
    assert len(three.features) == len({feature for m in range(3) for feature in found.posterior.features_of(m)})


def test_standardising_heeds_weights():
    y, X, *_ = naive.example(n=80)
    weights = np.random.default_rng(3).integers(0, 4, size=80).astype(float)
    X[weights == 0.0] = 1e6  # rows that do not count may be anything
    found = found_of(y, X, sample_weight=weights)
    average = average_models(found.problem, found.posterior, 100)
    for feature, centre, scale in zip(average.features, average.centres, average.scales, strict=True):
        column = np.repeat(X[:, int(feature.name[1:]) - 1], weights.astype(int))
        assert centre == pytest.approx(column.mean())
        assert scale == pytest.approx(column.std())


def test_one_model_alone():
    y, X, models, probabilities, options = naive.example("binomial", "logit")
    average = naive.average_of(y, X, models, probabilities, **options)
    rows = naive.new_rows(X[:7])
    for m, model in enumerate(models):
        alone = average.only(m)
        assert len(alone) == 1
        assert alone.mass == pytest.approx(probabilities[m])
        assert [feature.name for feature in alone.features] == [f"x{j + 1}" for j in model]
        assert alone.linear_predictor() == pytest.approx(average.linear_predictor(m), rel=1e-12)
        certain = naive.average_of(y, X, [model], [1.0], **options)
        assert predict_mean(alone, rows) == pytest.approx(predict_mean(certain, rows), rel=1e-9)
        assert predict_deviation(alone, rows) == pytest.approx(predict_deviation(certain, rows), rel=1e-9)
        levels = (0.05, 0.5)
        assert predict_quantiles(alone, rows, levels, "mean") == pytest.approx(
            predict_quantiles(certain, rows, levels, "mean"), rel=1e-9
        )


@pytest.mark.parametrize("prior", ["auto", "bic", "known-variance", "jeffreys", CoefficientPrior("g", g=5.0)])
def test_effects_of_gaussian_models(prior):
    y, X, models, probabilities, options = naive.example(coefficient_prior=prior)
    average = naive.average_of(y, X, models, probabilities, **options)
    _check_effects(average, y, X, models, probabilities, options)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_effects_of_other_models(pair):
    y, X, models, probabilities, options = naive.example(*pair)
    average = naive.average_of(y, X, models, probabilities, **options)
    _check_effects(average, y, X, models, probabilities, options)


def _check_effects(average, y, X, models, probabilities, options):
    """Mean and standard deviation of a mixture with a lump at zero, by its first two moments."""
    mean, deviation = np.array([average.effects()[feature] for feature in average.features]).T
    first, second = np.zeros((2, X.shape[1]))
    for fit, model, probability in zip(naive.fits_of(y, X, models, **options), models, probabilities, strict=True):
        df = fit.degrees_of_freedom
        scale = fit.dispersion * (1.0 if np.isinf(df) else df / (df - 2.0)) if options["family"] == "gaussian" else 1.0
        covariance = scale * fit.covariance_factor @ fit.covariance_factor.T
        for place, j in enumerate(model, start=1):
            first[j] += probability * fit.coefficients[place]
            second[j] += probability * (fit.coefficients[place] ** 2 + covariance[place, place])
    assert mean == pytest.approx(first, rel=1e-6, abs=1e-10)
    assert deviation == pytest.approx(np.sqrt(second - np.square(first)), rel=1e-6)


def test_average_coefficients():
    y, X, models, probabilities, options = naive.example()
    average = naive.average_of(y, X, models, probabilities, **options)
    intercept, slopes = 0.0, np.zeros(X.shape[1])
    for fit, model, probability in zip(naive.fits_of(y, X, models, **options), models, probabilities, strict=True):
        intercept += probability * fit.coefficients[0]
        slopes[list(model)] += probability * fit.coefficients[1:]
    found = average.mean_coefficients[1:] / average.scales
    assert found == pytest.approx(slopes, rel=1e-8, abs=1e-12)
    assert average.mean_coefficients[0] - average.centres @ found == pytest.approx(intercept, rel=1e-8)


def test_the_scale_of_coefficients_has_the_heavier_tails():
    y, X, models, probabilities, options = naive.example(n=20)
    average = naive.average_of(y, X, models, probabilities, **options)
    assert average.coefficient_scales == pytest.approx(np.sqrt(average.dispersions * 19.0 / 17.0))
    y, X, models, probabilities, options = naive.example("poisson", "log")
    assert naive.average_of(y, X, models, probabilities, **options).coefficient_scales.tolist() == [1.0] * 5


def test_a_known_variance_has_a_scale():
    y, X, models, probabilities, options = naive.example(
        coefficient_prior=CoefficientPrior("known-variance", variance=4.0)
    )
    average = naive.average_of(y, X, models, probabilities, **options)
    assert average.coefficient_scales == pytest.approx(np.full(5, 2.0))


@pytest.mark.parametrize("n", [2, 3])
def test_few_rows_have_no_variance(n):
    """One or two degrees of freedom: the standard deviation of a coefficient is infinite, and its mean a number."""
    rng = np.random.default_rng(1)
    y, X = rng.normal(size=n), rng.normal(size=(n, 1))
    average = naive.average_of(y, X, [(0,), ()], [0.6, 0.4])
    mean, deviation = np.array([average.effects()[feature] for feature in average.features]).T
    assert np.isfinite(mean).all()
    assert np.isinf(deviation).all()


def test_median_probability_model():
    y, X, *_ = naive.example()
    found = found_of(y, X)
    probable = found.posterior.inclusion_probabilities >= 0.5
    median = median_model(found.problem, found.posterior)
    assert median.features == found.posterior.features[: int(probable.sum())]
    assert probable.sum() > 0
    columns = [int(feature.name[1:]) - 1 for feature in median.features]
    assert median.linear_predictor() == pytest.approx(bgnlm.fit_model(y, X[:, columns]).coefficients, rel=1e-7)


def stub(problem, texts, probabilities):
    """A posterior of which only the features matter."""
    features = tuple(parse(text) for text in texts)
    return SimpleNamespace(features=features, inclusion_probabilities=np.asarray(probabilities, dtype=float))


def test_median_probability_model_of_nothing():
    y, X, *_ = naive.example()
    problem = define_problem(y, X, config=LINEAR)
    median = median_model(problem, stub(problem, ["x1", "x2"], [0.4, 0.1]))
    assert median.features == ()
    assert median.linear_predictor() == pytest.approx([y.mean()])
    assert predict_mean(median, naive.new_rows(X[:3])) == pytest.approx(np.full(3, y.mean()))


@pytest.mark.parametrize("family", ["gaussian", "binomial"])
def test_median_probability_model_of_features_that_depend_on_each_other(family):
    y, X, *_ = naive.example()
    X[:, 3] = X[:, 0] - 2.0 * X[:, 1]
    response = y if family == "gaussian" else (y > np.median(y)).astype(float)
    problem = define_problem(response, X, family=family, coefficient_prior="robust", config=LINEAR)
    median = median_model(problem, stub(problem, ["x1", "x2", "x4", "x3"], [0.9, 0.8, 0.7, 0.6]))
    assert median.features == (Input("x1"), Input("x2"))
    assert median.mass == 1.0


def test_models_that_cannot_be_fitted_have_no_part_in_the_average():
    y, X, *_ = naive.example()
    X[:, 3] = X[:, 0] - 2.0 * X[:, 1]
    problem = define_problem(y, X, config=LINEAR)
    features = tuple(Input(f"x{j + 1}") for j in range(4))
    models = [tuple(features[j] for j in model) for model in ((0, 2), (0, 1, 3), (2,))]
    average = module._fitted(problem, list(zip(models, (0.5, 0.3, 0.1), strict=True)))
    assert average.probabilities == pytest.approx([5 / 6, 0.0, 1 / 6])
    assert average.mass == pytest.approx(0.6)
    without = module._fitted(problem, [(models[0], 0.5), (models[2], 0.1)])
    rows = naive.new_rows(X[:5])
    for of in ("mean", "response"):
        assert predict_quantiles(average, rows, (0.1, 0.9), of) == pytest.approx(
            predict_quantiles(without, rows, (0.1, 0.9), of), rel=1e-6
        )
    assert predict_deviation(average, rows) == pytest.approx(predict_deviation(without, rows), rel=1e-12)


def test_nothing_was_found():
    """Where no model has a likelihood the mean of the response is predicted."""
    y, X, *_ = naive.example()
    problem = define_problem(y, X, config=LINEAR)
    average = average_models(problem, SimpleNamespace(model_probabilities=np.zeros(2)), 100)
    assert len(average) == 1
    assert predict_mean(average, naive.new_rows(X[:3])) == pytest.approx(np.full(3, y.mean()))


def test_constant_features_do_no_harm():
    y, X, *_ = naive.example()
    X[:, 3] = 7.0
    problem = define_problem(y, X, config=LINEAR)
    features = (Input("x1"), Input("x4"))
    average = module._fitted(problem, [(features[:1], 0.7), (features, 0.3)])
    assert average.probabilities.tolist() == [1.0, 0.0]
    assert np.isfinite(predict_mean(average, naive.new_rows(X[:3]))).all()


@pytest.mark.parametrize("n_columns", [4, 9])
def test_factors_become_upper_triangular(rng, n_columns):
    factor = rng.normal(size=(4, n_columns))
    upper = upper_factor(factor)
    assert upper.shape == (4, 4)
    assert np.array_equal(upper, np.triu(upper))
    assert upper @ upper.T == pytest.approx(factor @ factor.T)
    assert np.array_equal(upper_factor(upper), upper)


@pytest.mark.parametrize("pair", CASES, ids=str)
@pytest.mark.parametrize("prior", ["auto", "gaussian", "bic", "jeffreys"])
def test_every_prior_gives_upper_factors(pair, prior):
    y, X, _, _, options = naive.example(*pair)
    problem = define_problem(y, X, coefficient_prior=prior, config=LINEAR, **options)
    features = tuple(Input(f"x{j + 1}") for j in range(4))
    average = module._fitted(problem, [(features, 0.5), ((features[1], features[3]), 0.5)])
    for m, size in enumerate((4, 2)):
        factor = average.only(m).factors.reshape(size + 1, size + 1)
        assert np.array_equal(factor, np.triu(factor))
        assert np.isfinite(factor).all()
        assert (np.diag(factor) != 0.0).all()


def test_it_says_how_large_it_is():
    y, X, models, probabilities, options = naive.example()
    average = naive.average_of(y, X, models, probabilities, **options)
    assert len(average) == 5
    assert repr(average) == "<ModelAverage: 5 models of 4 features>"
