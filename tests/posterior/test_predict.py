"""Predictions against separate fits, quadrature over the mixture, and draws from it."""

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats
from scipy.special import ndtr

import bgnlm
from bgnlm import BGNLMClassifier, BGNLMRegressor, CoefficientPrior, SearchConfig
from bgnlm.features import TrainingRange, parse
from bgnlm.likelihood.families import resolve_family
from bgnlm.posterior.predict import (
    Rows,
    draw_predictive,
    predict_deviation,
    predict_mean,
    predict_quantiles,
)
from tests import naive_predict as naive
from tests.likelihood.test_response import scipy_response
from tests.naive_glm import PAIRS

CASES = [("gaussian", None), *PAIRS]
LEVELS = (0.025, 0.1, 0.5, 0.9)
LINEAR = SearchConfig(population_size=4, n_populations=1, engine="exhaustive", window=60.0)


def case(pair, n_new=5, **options):
    """An average over models, new rows with offsets, and the fits on the scale of the data."""
    y, X, models, probabilities, options = naive.example(*pair, **options)
    average = naive.average_of(y, X, models, probabilities, **options)
    rng = np.random.default_rng(9)
    spread = X.std(axis=0)
    X_new = X.mean(axis=0) + spread * rng.normal(size=(n_new, X.shape[1]))
    rows = naive.new_rows(X_new, 0.3 * rng.normal(size=n_new), rng.integers(1, 9, size=n_new))
    return average, rows, naive.fits_of(y, X, models, **options), models, probabilities


def components(pair, rows, fits, models, i, *, with_noise=False):
    return naive.components_at(
        fits, models, rows.X[i], rows.offset[i], gaussian=pair[0] == "gaussian", with_noise=with_noise
    )


@pytest.mark.parametrize("pair", CASES, ids=str)
def test_the_mean_at_the_modes(pair):
    average, rows, fits, models, probabilities = case(pair)
    family = resolve_family(*pair)
    expected = [
        probabilities @ family.mean(np.array(components(pair, rows, fits, models, i)[0])) for i in range(len(rows.X))
    ]
    assert predict_mean(average, rows) == pytest.approx(expected, rel=1e-5)


@pytest.mark.parametrize("pair", CASES, ids=str)
def test_the_mean_over_the_posterior(pair):
    average, rows, fits, models, probabilities = case(pair)
    family = resolve_family(*pair)
    found = predict_mean(average, rows, plug_in=False)
    for i in range(len(rows.X)):
        parts = zip(*components(pair, rows, fits, models, i), strict=True)
        each = [naive.normal_expectation(family.mean, place, width) for place, width in parts]
        assert found[i] == pytest.approx(probabilities @ each, rel=1e-4)


@pytest.mark.parametrize("pair", CASES, ids=str)
def test_the_standard_deviation_of_the_response(pair):
    average, rows, fits, models, probabilities = case(pair)
    family = resolve_family(*pair)
    found = predict_deviation(average, rows)
    trials = rows.trials
    for i in range(len(rows.X)):
        first = second = noise = scaled = 0.0
        for fit, p, place, width in zip(fits, probabilities, *components(pair, rows, fits, models, i), strict=True):
            if pair[0] == "gaussian":  # Student t
                df = fit.degrees_of_freedom
                mean, square = place, place**2 + width**2 * df / (df - 2.0)
                noise += p * fit.dispersion * df / (df - 2.0)
            else:
                mean = naive.normal_expectation(family.mean, place, width)
                square = naive.normal_expectation(lambda eta: family.mean(eta) ** 2, place, width)
            first, second, scaled = first + p * mean, second + p * square, scaled + p * square / fit.dispersion
        variance = second - first**2 + noise
        match pair[0]:
            case "binomial":
                variance += (first - second) / trials[i]
            case "poisson":
                variance += first
            case "gamma":
                variance += scaled
            case "negative_binomial":
                variance += first + scaled
        assert found[i] == pytest.approx(np.sqrt(variance), rel=2e-3)


@pytest.mark.parametrize("pair", CASES, ids=str)
def test_quantiles_of_the_mean(pair):
    average, rows, fits, models, probabilities = case(pair)
    family = resolve_family(*pair)
    found = predict_quantiles(average, rows, LEVELS, "mean")
    degrees = [fit.degrees_of_freedom for fit in fits]
    for i in range(len(rows.X)):
        places, widths = components(pair, rows, fits, models, i)
        width = naive.mixture_width(places, widths, probabilities)
        for level, value in zip(LEVELS, found[i], strict=True):
            exact = naive.mixture_quantile(level, places, widths, probabilities, degrees)
            low, high = family.mean(np.array([exact - 2e-3 * width, exact + 2e-3 * width]))
            assert low <= value <= high


def test_quantiles_of_a_gaussian_response():
    pair = ("gaussian", None)
    average, rows, fits, models, probabilities = case(pair)
    found = predict_quantiles(average, rows, LEVELS, "response")
    for i in range(len(rows.X)):
        places, widths = components(pair, rows, fits, models, i, with_noise=True)
        width = naive.mixture_width(places, widths, probabilities)
        for level, value in zip(LEVELS, found[i], strict=True):
            exact = naive.mixture_quantile(
                level, places, widths, probabilities, [fit.degrees_of_freedom for fit in fits]
            )
            assert value == pytest.approx(exact, abs=2e-3 * width)


@pytest.mark.parametrize("pair", PAIRS, ids=str)
def test_quantiles_of_other_responses(pair):
    """P(Y <= quantile) by quadrature over the mixture of linear predictors."""
    name = pair[0]
    average, rows, fits, models, probabilities = case(pair, n_new=3)
    family = resolve_family(*pair)
    found = predict_quantiles(average, rows, LEVELS, "response")
    sizes = np.array([[fit.dispersion] for fit in fits])
    z = np.linspace(-6.0, 6.0, 241)
    node_weights = stats.norm.pdf(z) / stats.norm.pdf(z).sum()
    for i in range(len(rows.X)):
        places, widths = (np.array(values) for values in components(pair, rows, fits, models, i))
        means = family.mean(places[:, None] + widths[:, None] * z)
        weights = probabilities[:, None] * node_weights
        scale = rows.trials[i] if name == "binomial" else 1.0

        def below(y, means=means, weights=weights, i=i):
            return float((weights * scipy_response(name, means, rows.trials[i], sizes).cdf(y)).sum())

        for level, value in zip(LEVELS, found[i] * scale, strict=True):
            if name == "gamma":
                assert below(value) == pytest.approx(level, abs=6e-3)
            else:
                y = round(value)
                assert value == pytest.approx(y, abs=1e-9)
                assert below(y) >= level - 6e-3
                assert below(y - 1.0) < level + 6e-3


N_DRAWS = 20_000


def _check_share(draws, quantiles, levels, *, atoms):
    """As many draws below a quantile as its level says, within four standard errors and what cells cost."""
    for level, row in zip(levels, quantiles.T, strict=True):
        error = 4.0 * np.sqrt(level * (1.0 - level) / len(draws)) + 3e-3
        assert ((draws <= row + 1e-9).mean(axis=0) >= level - error).all()
        assert ((draws < row - 1e-9).mean(axis=0) <= level + error).all()
        if not atoms:
            assert (draws <= row).mean(axis=0) == pytest.approx(np.full(len(row), level), abs=error)


@pytest.mark.parametrize("pair", CASES, ids=str)
def test_draws_agree_with_quantiles_and_moments(pair):
    average, rows, *_ = case(pair)
    means = draw_predictive(np.random.default_rng(1), average, rows, N_DRAWS, "mean")
    assert means.shape == (N_DRAWS, len(rows.X))
    _check_share(means, predict_quantiles(average, rows, LEVELS, "mean"), LEVELS, atoms=False)
    error = 4.0 * means.std(axis=0) / np.sqrt(N_DRAWS)
    assert (np.abs(means.mean(axis=0) - predict_mean(average, rows, plug_in=False)) < error + 1e-4).all()
    responses = draw_predictive(np.random.default_rng(2), average, rows, N_DRAWS, "response")
    atoms = pair[0] not in ("gaussian", "gamma")
    _check_share(responses, predict_quantiles(average, rows, LEVELS, "response"), LEVELS, atoms=atoms)
    deviations = predict_deviation(average, rows)
    error = 4.0 * deviations / np.sqrt(N_DRAWS)
    assert (np.abs(responses.mean(axis=0) - predict_mean(average, rows, plug_in=False)) < error).all()
    kurtosis = np.maximum(stats.kurtosis(responses, axis=0), 0.0)
    assert (
        np.abs(responses.var(axis=0) / deviations**2 - 1.0) < 5.0 * np.sqrt((kurtosis + 2.0) / N_DRAWS) + 5e-3
    ).all()


def test_draws_are_joint():
    """Two rows that are the same have the same mean in every draw; two draws do not."""
    average, rows, *_ = case(("poisson", "log"))
    twice = Rows(np.vstack([rows.X[:1]] * 2), rows.names, np.zeros(2), np.ones(2))
    draws = draw_predictive(np.random.default_rng(1), average, twice, 50, "mean")
    assert draws[:, 0] == pytest.approx(draws[:, 1], rel=1e-12)
    assert len(np.unique(draws[:, 0])) == 50
    again = draw_predictive(np.random.default_rng(1), average, twice, 50, "mean")
    assert np.array_equal(draws, again)


def test_draws_take_models_by_their_probabilities():
    average, rows, _, _, probabilities = case(("gaussian", None))
    apart = replace(average, coefficients=average.coefficients.copy(), factors=0.0 * average.factors)
    apart.coefficients[apart.starts[:-1] + np.arange(5)] = 1e6 * np.arange(5)  # intercepts tell the models apart
    draws = draw_predictive(np.random.default_rng(3), apart, rows, N_DRAWS, "mean")
    counts = np.bincount(np.round(draws[:, 0] / 1e6).astype(int), minlength=5)
    assert counts / N_DRAWS == pytest.approx(probabilities, abs=4.0 * np.sqrt(0.25 / N_DRAWS))
    assert abs(np.corrcoef(draws[:-1, 0], draws[1:, 0])[0, 1]) < 0.04  # in no order


@pytest.mark.parametrize("pair", CASES, ids=str)
def test_offsets_move_the_linear_predictor(pair):
    average, rows, *_ = case(pair)
    moved = replace(average, coefficients=average.coefficients.copy())
    moved.coefficients[moved.starts[:-1] + np.arange(5)] += 0.7
    plain, with_offset = rows._replace(offset=np.zeros(5)), rows._replace(offset=np.full(5, 0.7))
    assert predict_mean(average, with_offset) == pytest.approx(predict_mean(moved, plain))
    assert predict_deviation(average, with_offset) == pytest.approx(predict_deviation(moved, plain), rel=1e-6)
    for of in ("mean", "response"):
        assert predict_quantiles(average, with_offset, LEVELS, of) == pytest.approx(
            predict_quantiles(moved, plain, LEVELS, of), rel=1e-6
        )


def test_more_trials_leave_the_mean_alone_and_lessen_the_noise():
    average, rows, *_ = case(("binomial", "logit"))
    few, many = rows._replace(trials=np.ones(5)), rows._replace(trials=np.full(5, 1e6))
    assert np.array_equal(predict_mean(average, few), predict_mean(average, many))
    assert np.array_equal(
        predict_quantiles(average, few, LEVELS, "mean"), predict_quantiles(average, many, LEVELS, "mean")
    )
    assert (predict_deviation(average, many) < predict_deviation(average, few)).all()
    # With so many trials the share is its mean.
    assert predict_quantiles(average, many, LEVELS, "response") == pytest.approx(
        predict_quantiles(average, many, LEVELS, "mean"), abs=0.02
    )
    assert set(np.unique(predict_quantiles(average, few, LEVELS, "response"))) <= {0.0, 1.0}


@pytest.mark.parametrize("pair", CASES, ids=str)
@pytest.mark.parametrize("n_rows", [1, 2047, 2048, 2049])
def test_rows_at_the_border_of_a_part(pair, n_rows):
    average, rows, *_ = case(pair, n_new=n_rows)
    together = {
        "mean": predict_mean(average, rows),
        "integrated": predict_mean(average, rows, plug_in=False),
        "deviation": predict_deviation(average, rows),
        "low": predict_quantiles(average, rows, (0.05,), "mean")[:, 0],
        "high": predict_quantiles(average, rows, (0.95,), "response")[:, 0],
    }
    for values in together.values():
        assert values.shape == (n_rows,)
        assert np.isfinite(values).all()
    for i in {0, n_rows // 2, n_rows - 2, n_rows - 1} & set(range(n_rows)):
        one = Rows(rows.X[i : i + 1], rows.names, rows.offset[i : i + 1], rows.trials[i : i + 1])
        alone = {
            "mean": predict_mean(average, one),
            "integrated": predict_mean(average, one, plug_in=False),
            "deviation": predict_deviation(average, one),
            "low": predict_quantiles(average, one, (0.05,), "mean")[:, 0],
            "high": predict_quantiles(average, one, (0.95,), "response")[:, 0],
        }
        for name, values in alone.items():
            assert values[0] == pytest.approx(together[name][i], rel=1e-8), name


def test_draws_at_the_border_of_a_part():
    average, rows, *_ = case(("gaussian", None), n_new=2049)
    draws = draw_predictive(np.random.default_rng(1), average, rows, 5, "mean")
    last = Rows(rows.X[2045:], rows.names, rows.offset[2045:], rows.trials[2045:])
    again = draw_predictive(np.random.default_rng(1), average, last, 5, "mean")
    assert draws[:, 2045:] == pytest.approx(again, rel=1e-10)


def test_no_rows():
    average, rows, *_ = case(("poisson", "log"))
    nothing = Rows(rows.X[:0], rows.names, np.empty(0), np.empty(0))
    assert predict_mean(average, nothing).shape == (0,)
    assert predict_deviation(average, nothing).shape == (0,)
    assert predict_quantiles(average, nothing, LEVELS, "response").shape == (0, 4)
    assert draw_predictive(np.random.default_rng(1), average, nothing, 3, "response").shape == (3, 0)


@pytest.mark.parametrize("pair", CASES, ids=str)
def test_levels_in_any_order(pair):
    average, rows, *_ = case(pair)
    for of in ("mean", "response"):
        shuffled = predict_quantiles(average, rows, (0.9, 0.025, 0.5, 0.1), of)
        assert shuffled[:, [1, 3, 2, 0]] == pytest.approx(predict_quantiles(average, rows, LEVELS, of), rel=1e-7)
        assert (np.diff(shuffled[:, [1, 3, 2, 0]], axis=1) >= 0.0).all()


@pytest.mark.parametrize("pair", CASES, ids=str)
def test_the_null_model_alone(pair):
    y, X, _, _, options = naive.example(*pair)
    average = naive.average_of(y, X, [()], [1.0], **options)
    rows = naive.new_rows(X[:3], np.zeros(3), np.full(3, 20.0))
    fit = bgnlm.fit_model(y, X[:, :0], **options)
    assert predict_mean(average, rows) == pytest.approx(np.full(3, resolve_family(*pair).mean(fit.coefficients[0])))
    low, high = predict_quantiles(average, rows, (0.05, 0.95), "mean")[0]
    assert low < predict_mean(average, rows)[0] < high
    assert (
        predict_quantiles(average, rows, (0.05,), "response") < predict_quantiles(average, rows, (0.95,), "response")
    ).all()


def test_more_features_than_rows(rng):
    X = rng.normal(size=(12, 40))
    y = X[:, 0] + 0.3 * rng.normal(size=12)
    average = naive.average_of(y, X, [(0,), (0, 17), (0, 3, 39), ()], [0.6, 0.2, 0.15, 0.05])
    rows = naive.new_rows(rng.normal(size=(6, 40)))
    assert np.isfinite(predict_deviation(average, rows)).all()
    low, high = predict_quantiles(average, rows, (0.05, 0.95), "response").T
    mean = predict_mean(average, rows)
    assert ((low < mean) & (mean < high)).all()
    model = BGNLMRegressor(max_depth=0, n_chains=1, random_state=1).fit(X, y)
    assert np.isfinite(model.predict_interval(X)).all()


def test_a_model_that_cannot_be_fitted_and_has_no_probability():
    y, X, models, _, options = naive.example(k=5)
    X[:, 4] = X[:, 0] - 0.5 * X[:, 1]
    with_it = naive.average_of(y, X, [*models, (0, 1, 4)], [0.45, 0.3, 0.15, 0.06, 0.04, 0.0], **options)
    without = naive.average_of(y, X, models, [0.45, 0.3, 0.15, 0.06, 0.04], **options)
    rows = naive.new_rows(X[:5])
    assert predict_mean(with_it, rows) == pytest.approx(predict_mean(without, rows))
    assert predict_deviation(with_it, rows) == pytest.approx(predict_deviation(without, rows))
    for of in ("mean", "response"):
        assert predict_quantiles(with_it, rows, LEVELS, of) == pytest.approx(
            predict_quantiles(without, rows, LEVELS, of), rel=1e-6
        )


def test_a_known_variance_makes_the_response_normal():
    prior = CoefficientPrior("known-variance", variance=4.0)
    pair = ("gaussian", None)
    average, rows, fits, models, _ = case(pair, coefficient_prior=prior)
    alone = average.only(0)
    places, widths = np.array(
        [[part[0] for part in components(pair, rows, fits, models, i, with_noise=True)] for i in range(5)]
    ).T
    found = predict_quantiles(alone, rows, LEVELS, "response")
    assert found == pytest.approx(stats.norm.ppf(LEVELS, places[:, None], widths[:, None]), rel=1e-7)
    assert (widths > 2.0).all()


def test_the_standard_deviation_with_a_known_variance():
    prior = CoefficientPrior("known-variance", variance=4.0)
    pair = ("gaussian", None)
    average, rows, fits, models, probabilities = case(pair, coefficient_prior=prior)
    found = predict_deviation(average, rows)
    for i in range(5):
        parts = components(pair, rows, fits, models, i, with_noise=True)
        assert found[i] == pytest.approx(naive.mixture_width(*parts, probabilities), rel=1e-7)


def test_a_noise_floor_widens_intervals(rng):
    """With an exact law all noise is the floor's."""
    X = rng.normal(size=(40, 2))
    y = 1.0 + 2.0 * X[:, 0]
    rows = naive.new_rows(rng.normal(size=(4, 2)))
    floor = 0.05 * y.std()
    average = naive.average_of(y, X, [(0,), (0, 1)], [0.9, 0.1], noise_floor=0.05)
    low, high = predict_quantiles(average, rows, (0.05, 0.95), "response").T
    assert ((high - low) > 2.0 * 1.6 * floor).all()
    assert ((high - low) < 2.0 * 2.2 * floor).all()
    without = naive.average_of(y, X, [(0,), (0, 1)], [0.9, 0.1])
    assert (np.ptp(predict_quantiles(without, rows, (0.05, 0.95), "response"), axis=1) < 1e-3 * floor).all()


def test_degrees_of_freedom_that_differ_from_model_to_model():
    """BIC: a t distribution for each size of model."""
    pair = ("gaussian", None)
    average, rows, fits, models, probabilities = case(pair, n=9, coefficient_prior="bic")
    degrees = [fit.degrees_of_freedom for fit in fits]
    assert len(set(degrees)) == 4
    for of in ("mean", "response"):
        found = predict_quantiles(average, rows, LEVELS, of)
        for i in range(len(rows.X)):
            places, widths = components(pair, rows, fits, models, i, with_noise=of == "response")
            width = naive.mixture_width(places, widths, probabilities)
            for level, value in zip(LEVELS, found[i], strict=True):
                exact = naive.mixture_quantile(level, places, widths, probabilities, degrees)
                assert value == pytest.approx(exact, abs=2e-3 * width)


@pytest.mark.parametrize("n", [2, 3, 4])
def test_a_variance_that_is_infinite(n):
    """With two degrees of freedom or less there is no standard deviation, but there are quantiles."""
    rng = np.random.default_rng(n)
    X, y = rng.normal(size=(n, 2)), rng.normal(size=n)
    average = naive.average_of(y, X, [(0,), ()], [0.5, 0.5])
    rows = naive.new_rows(rng.normal(size=(3, 2)))
    deviation = predict_deviation(average, rows)
    assert np.isfinite(deviation).all() if n > 3 else np.isinf(deviation).all()
    assert np.isfinite(predict_quantiles(average, rows, (1e-4, 0.5, 0.99), "response")).all()
    assert np.isfinite(draw_predictive(rng, average, rows, 10, "response")).all()


def test_an_infinite_variance_beside_a_model_without_probability():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(3, 2)), rng.normal(size=3)
    average = naive.average_of(y, X, [(0,), (), (1,)], [0.5, 0.5, 0.0])
    rows = naive.new_rows(rng.normal(size=(3, 2)))
    assert np.isinf(predict_deviation(average, rows)).all()
    mean, deviation = np.array([average.effects()[feature] for feature in average.features]).T
    assert np.isfinite(mean).all()
    assert not np.isnan(deviation).any()


@pytest.mark.parametrize("pair", [*PAIRS], ids=str)
def test_far_from_the_training_data_predictions_are_numbers(pair):
    """A linear predictor of thousands, at rows that are hundreds of standard deviations away."""
    average, rows, *_ = case(pair)
    far = rows._replace(X=rows.X * 1e4)
    for values in (
        predict_mean(average, far),
        predict_mean(average, far, plug_in=False),
        predict_deviation(average, far),
        predict_quantiles(average, far, (0.05, 0.5, 0.95), "mean"),
        predict_quantiles(average, far, (0.05, 0.5, 0.95), "response"),
        draw_predictive(np.random.default_rng(1), average, far, 20, "response"),
    ):
        assert not np.isnan(values).any()
        assert (values >= 0.0).all()
    assert (np.diff(predict_quantiles(average, far, (0.05, 0.5, 0.95), "response"), axis=1) >= 0.0).all()


@pytest.mark.parametrize("plug_in", [True, False])
def test_probabilities_of_models_that_are_rounded_up_make_no_share_above_one(plug_in):
    average, rows, *_ = case(("binomial", "logit"))
    rounded = replace(average, probabilities=average.probabilities * (1.0 + 1e-12))
    far = rows._replace(offset=rows.offset + 1e4)
    assert predict_mean(rounded, far, plug_in=plug_in).max() == 1.0


@pytest.mark.parametrize("name", ["gamma", "negative_binomial"])
def test_models_with_different_dispersions(name):
    """The noise is a mixture too: its variance is what draws have."""
    average, rows, *_ = case((name, "log"))
    different = replace(average, dispersions=np.array([2.0, 12.0, 2.0, 12.0, 12.0]), factors=0.1 * average.factors)
    draws = draw_predictive(np.random.default_rng(4), different, rows, 3 * N_DRAWS, "response")
    kurtosis = stats.kurtosis(draws, axis=0)
    ratio = draws.var(axis=0) / predict_deviation(different, rows) ** 2
    assert (np.abs(ratio - 1.0) < 5.0 * np.sqrt((kurtosis + 2.0) / len(draws)) + 5e-3).all()
    for level, value in zip(LEVELS, predict_quantiles(different, rows, LEVELS, "response").T, strict=True):
        below, until = (draws < value).mean(axis=0), (draws <= value).mean(axis=0)
        assert (below <= level + 0.012).all()
        assert (until >= level - 0.012).all()


@pytest.mark.parametrize("family", ["gaussian", "binomial", "poisson"])
def test_the_average_over_all_linear_models_is_that_of_the_enumeration(family):
    y, X, _, _, options = naive.example(family, resolve_family(family, None).link)
    weights = options.get("sample_weight")
    listed = bgnlm.enumerate_models(y, X, family=family, sample_weight=weights)
    models = [listed.columns_of(m) for m in range(len(listed))]
    average = naive.average_of(y, X, models, listed.model_probabilities, **options)
    rows = naive.new_rows(X[:10] + 0.1)
    expected = listed.predict(rows.X)
    assert predict_mean(average, rows) == pytest.approx(expected, rel=1e-5)
    model = BGNLMRegressor(family, penalty=0.0, max_depth=0, n_chains=1, random_state=1, search=LINEAR)
    found = model.fit(X, y, sample_weight=weights).predict(rows.X)
    assert found == pytest.approx(expected, abs=2e-4 * np.std(y))  # the least probable models are left out


def test_functions_and_products_of_new_rows():
    """Features are computed anew, standardised as in training; where they are not finite, they get a value of it."""
    rng = np.random.default_rng(2)
    X = rng.uniform(1.0, 3.0, size=(50, 2))
    features = (parse("x1*x2"), parse("sin(x1)"), parse("inverse(x2)"))
    columns = np.column_stack([X[:, 0] * X[:, 1], np.sin(X[:, 0]), 1.0 / X[:, 1]])
    y = columns @ [1.0, 2.0, -1.0] + 0.1 * rng.normal(size=50)
    plain = naive.average_of(y, columns, [(0, 1, 2), (0, 2)], [0.7, 0.3])
    average = replace(plain, features=features, ranges=tuple(map(TrainingRange.of, columns.T)))
    X_new = rng.uniform(1.0, 3.0, size=(6, 2))
    new = np.column_stack([X_new[:, 0] * X_new[:, 1], np.sin(X_new[:, 0]), 1.0 / X_new[:, 1]])
    rows = Rows(X_new, ("x1", "x2"), np.zeros(6), np.ones(6))
    assert predict_mean(average, rows) == pytest.approx(predict_mean(plain, naive.new_rows(new)))
    assert predict_quantiles(average, rows, LEVELS, "mean") == pytest.approx(
        predict_quantiles(plain, naive.new_rows(new), LEVELS, "mean")
    )


def grid_predictive(y, x, g, x_new, y_new):
    """P(Y* <= y*) of y = a + b x + s e under p(a, s) = 1/s and b ~ N(0, g s^2 / Sxx), on a grid of all three."""
    n, centred = len(y), x - x.mean()
    sxx = centred @ centred
    slope, spread = centred @ y / sxx, y.std() * 1.2
    a = y.mean() + np.linspace(-9.0, 9.0, 161)[:, None, None] * spread / np.sqrt(n)
    b = slope + np.linspace(-9.0, 9.0, 161)[None, :, None] * spread / np.sqrt(sxx)
    log_s = np.log(y.std()) + np.linspace(-2.2, 3.2, 121)[None, None, :]
    s = np.exp(log_s)
    rss = np.square(y - y.mean() - slope * centred).sum()
    quadratic = rss + n * np.square(a - y.mean()) + sxx * np.square(b - slope)
    # The prior 1/s is flat in log s, in which the steps are equal.
    log_likelihood = -n * log_s - 0.5 * quadratic / s**2
    log_prior = -log_s - 0.5 * np.square(b) * sxx / (g * s**2)
    weights = np.exp(log_likelihood + log_prior - (log_likelihood + log_prior).max())
    weights /= weights.sum()
    mean = a + b * (x_new - x.mean())
    return np.array([float((weights * ndtr((value - mean) / s)).sum()) for value in y_new])


def test_the_predictive_distribution_of_a_g_prior_against_integration():
    rng = np.random.default_rng(8)
    x = rng.normal(size=12)
    y = 1.0 + 0.8 * x + rng.normal(size=12)
    g, x_new = 7.0, 1.3
    average = naive.average_of(y, x[:, None], [(0,)], [1.0], coefficient_prior=CoefficientPrior("g", g=g))
    rows = naive.new_rows(np.array([[x_new]]))
    levels = (0.01, 0.05, 0.3, 0.5, 0.8, 0.975)
    quantiles = predict_quantiles(average, rows, levels, "response")[0]
    assert grid_predictive(y, x, g, x_new, quantiles) == pytest.approx(levels, abs=5e-4)


def test_intervals_are_quantiles_and_draws_are_theirs():
    """The estimators hand on what is computed here."""
    y, X, *_ = naive.example(n=40)
    model = BGNLMRegressor(penalty=0.0, max_depth=0, n_chains=1, random_state=1, search=LINEAR).fit(X, y)
    average = model.searches_[0].average
    rows = naive.new_rows(X[:4], np.full(4, 0.5))
    for of in ("mean", "response"):
        expected = predict_quantiles(average, rows, (0.1, 0.9), of)
        assert model.predict_interval(rows.X, 0.8, of, offset=rows.offset) == pytest.approx(expected)
        assert model.predict_quantiles(rows.X, (0.9, 0.1), of, offset=rows.offset)[:, ::-1] == pytest.approx(expected)
    mean, deviation = model.predict(rows.X, offset=rows.offset, return_std=True)
    assert mean == pytest.approx(predict_mean(average, rows))
    assert deviation == pytest.approx(predict_deviation(average, rows))
    draws = model.sample_predictive(rows.X, 10, offset=rows.offset, random_state=3)
    assert np.array_equal(draws, draw_predictive(np.random.default_rng(3), average, rows, 10, "response"))


def test_intervals_of_a_classifier():
    y, X, *_ = naive.example(n=60)
    model = BGNLMClassifier(penalty=0.0, max_depth=0, n_chains=1, random_state=1, search=LINEAR).fit(
        X, y > np.median(y)
    )
    low, high = model.predict_interval(X[:9], 0.9).T
    share = model.predict_proba(X[:9], plug_in=False)[:, 1]
    assert ((low > 0.0) & (low < share) & (share < high) & (high < 1.0)).all()
    draws = model.sample_predictive(X[:9], 4000, of="mean", random_state=1)[:, :, 1]
    assert draws.mean(axis=0) == pytest.approx(share, abs=0.02)
    assert ((draws > low) & (draws < high)).mean() == pytest.approx(0.9, abs=0.02)
