"""Generalized linear models: weights, offset, dependent columns, and responses that leave nothing to estimate."""

import math
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.special import expit, gammaln

import bgnlm
from bgnlm import CoefficientPrior
from bgnlm.errors import DataError, ModelStatusWarning, SettingError
from bgnlm.likelihood.families import Family
from bgnlm.likelihood.status import ModelStatus
from tests import naive
from tests.likelihood.glm_cases import FINITE, LOCAL, PRIORS, SOME, fit_checked, unit_rows
from tests.naive_glm import PAIRS, SlowGlm, log_likelihood_rows, simulate


def _same(one, two, tolerance=1e-6):
    assert one.status is two.status
    assert one.log_marginal == pytest.approx(two.log_marginal, abs=tolerance)
    assert one.log_bayes_factor == pytest.approx(two.log_bayes_factor, abs=tolerance)
    assert one.coefficients == pytest.approx(two.coefficients, abs=1e-5)
    assert one.covariance_factor == pytest.approx(two.covariance_factor, abs=1e-5)
    assert one.dispersion == pytest.approx(two.dispersion, rel=1e-5)
    assert one.r_squared == pytest.approx(two.r_squared, abs=1e-6)


@pytest.mark.parametrize("prior", SOME)
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_frequency_weights_repeat_rows(family, link, prior):
    y, X, options = unit_rows(family, link)
    offset = options.pop("offset")
    weights = np.random.default_rng(1).integers(0, 4, size=len(y))
    repeated = np.repeat(np.arange(len(y)), weights)
    weighted = fit_checked(y, X, sample_weight=weights, offset=offset, coefficient_prior=prior, **options)
    plain = fit_checked(y[repeated], X[repeated], offset=offset[repeated], coefficient_prior=prior, **options)
    assert weighted.status is ModelStatus.OK
    _same(weighted, plain)


@pytest.mark.parametrize("prior", SOME)
@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_shares_of_trials_count_the_orders_of_successes(link, prior):
    """As many rows of zeros and ones, but for the binomial coefficients, which all models share."""
    y, X, trials, offset = simulate("binomial", link, 40, 2, seed=3)
    successes = np.round(y * trials).astype(int)
    rows = np.repeat(np.arange(40), trials.astype(int))
    single = np.concatenate([np.arange(int(t)) < s for t, s in zip(trials, successes, strict=True)]).astype(float)
    options = {"family": "binomial", "link": link, "coefficient_prior": prior}
    shares = fit_checked(y, X, sample_weight=trials, offset=offset, **options)
    plain = fit_checked(single, X[rows], offset=offset[rows], **options)
    orders = float((gammaln(trials + 1) - gammaln(successes + 1) - gammaln(trials - successes + 1)).sum())
    assert orders > 1
    assert shares.log_marginal - orders == pytest.approx(plain.log_marginal, abs=1e-6)
    assert shares.log_bayes_factor == pytest.approx(plain.log_bayes_factor, abs=1e-6)
    assert shares.coefficients == pytest.approx(plain.coefficients, abs=1e-5)


@pytest.mark.parametrize("prior", SOME)
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_zero_weights_drop_rows(family, link, prior):
    y, X, options = unit_rows(family, link)
    keep = np.arange(len(y)) % 4 != 1
    X[1] = 1e9  # would matter
    options["coefficient_prior"] = prior
    offset = options.pop("offset")
    _same(
        fit_checked(y, X, sample_weight=keep.astype(float), offset=offset, **options),
        fit_checked(y[keep], X[keep], offset=offset[keep], **options),
        1e-9,
    )


@pytest.mark.parametrize("prior", ["jeffreys", CoefficientPrior("g", g=30.0), CoefficientPrior("hyper-g")])
def test_exposure_of_counts(prior):
    """Two counts with the same columns are one count over the sum of their exposures."""
    rng = np.random.default_rng(2)
    x, exposure = rng.normal(size=(60, 1)), rng.uniform(0.5, 20.0, size=(60, 2))
    y = rng.poisson(exposure * np.exp(0.3 * x)).astype(float)
    options = {"family": "poisson", "coefficient_prior": prior}
    apart = fit_checked(y.ravel(), np.repeat(x, 2, axis=0), offset=np.log(exposure.ravel()), **options)
    joined = fit_checked(y.sum(axis=1), x, offset=np.log(exposure.sum(axis=1)), **options)
    assert apart.log_bayes_factor == pytest.approx(joined.log_bayes_factor, abs=1e-3)  # other nodes for other n
    assert apart.coefficients == pytest.approx(joined.coefficients, abs=1e-4)
    assert apart.coefficients == pytest.approx([0.0, 0.3], abs=0.1)
    without = fit_checked(y.sum(axis=1), x, **options)
    assert abs(without.log_bayes_factor - joined.log_bayes_factor) > 1.0


@pytest.mark.parametrize("prior", SOME)
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_a_constant_offset_moves_the_intercept(family, link, prior):
    y, X, options = unit_rows(family, link)
    offset = options.pop("offset")
    here = fit_checked(y, X, coefficient_prior=prior, offset=offset, **options)
    there = fit_checked(y, X, coefficient_prior=prior, offset=offset + 2.5, **options)
    assert there.log_marginal == pytest.approx(here.log_marginal, abs=1e-6)
    assert there.coefficients == pytest.approx(here.coefficients - [2.5, 0, 0, 0], abs=1e-5)


@pytest.mark.parametrize("prior", [*PRIORS, *LOCAL])
def test_units_and_origins_do_not_matter(prior):
    for family, link in (("binomial", "logit"), ("gamma", "log")):
        y, X, options = unit_rows(family, link)
        here = bgnlm.log_marginal(y, X, coefficient_prior=prior, **options)
        moved = X * [1e-130, 1e130, -7.0] + [0.0, 3e130, 1000.0]
        assert bgnlm.log_marginal(y, moved, coefficient_prior=prior, **options) == pytest.approx(here, abs=1e-6)


@pytest.mark.parametrize("prior", [*(name for name in PRIORS if name != "gaussian"), *LOCAL])
@pytest.mark.parametrize(("family", "link"), [("binomial", "probit"), ("poisson", "log"), ("negative_binomial", "log")])
def test_affine_maps_of_the_columns_do_not_matter(family, link, prior):
    y, X, options = unit_rows(family, link)
    rng = np.random.default_rng(5)
    mixed = X @ rng.normal(size=(3, 3)) + rng.normal(size=3)
    here = bgnlm.log_marginal(y, X, coefficient_prior=prior, **options)
    assert bgnlm.log_marginal(y, mixed, coefficient_prior=prior, **options) == pytest.approx(here, abs=1e-6)


@pytest.mark.parametrize("prior", [*PRIORS, *LOCAL])
@pytest.mark.parametrize(("family", "link"), [("binomial", "logit"), ("poisson", "log"), ("gamma", "log")])
def test_dependent_columns(family, link, prior):
    y, X, options = unit_rows(family, link)
    for doubled in (np.column_stack([X, X[:, 0] - 2 * X[:, 1]]), np.column_stack([X, np.full(len(y), 4.0)])):
        fit = fit_checked(y, doubled, coefficient_prior=prior, **options)
        if prior == "gaussian" and doubled[:, 3].std() > 0:  # a proper prior on each coefficient, as for the Gaussian
            assert fit.status is ModelStatus.OK
            continue
        assert fit.status is ModelStatus.RANK_DEFICIENT
        assert fit.log_marginal == -math.inf
        with pytest.warns(ModelStatusWarning, match="linearly dependent"):
            bgnlm.log_marginal(y, doubled, coefficient_prior=prior, **options)


SMALL = {
    "binomial": [0.0, 1.0, 1.0, 0.0, 1.0],
    "poisson": [0.0, 1.0, 5.0, 2.0, 3.0],
    "gamma": [0.5, 1.0, 5.0, 2.0, 3.0],
    "negative_binomial": [0.0, 1.0, 15.0, 2.0, 3.0],
}


@pytest.mark.parametrize("n_columns", [3, 4, 5, 9])
@pytest.mark.parametrize("prior", [*PRIORS, *LOCAL])
def test_as_many_columns_as_observations(prior, n_columns):
    X = np.random.default_rng(n_columns).normal(size=(5, n_columns))
    for family, y in SMALL.items():
        fit = fit_checked(y, X, family=family, coefficient_prior=prior)
        if n_columns >= 5 and prior != "gaussian":
            assert fit.status is ModelStatus.RANK_DEFICIENT
        elif n_columns == 4:
            assert fit.status in (ModelStatus.SATURATED, ModelStatus.SEPARATED)


CONSTANT = [
    ("binomial", "logit", 0.0),
    ("binomial", "logit", 1.0),
    ("binomial", "probit", 1.0),
    ("binomial", "cloglog", 0.0),
    ("poisson", "log", 0.0),
    ("negative_binomial", "log", 0.0),
    ("gamma", "log", 2.5),
]


@pytest.mark.parametrize(("family", "link", "value"), CONSTANT)
@pytest.mark.parametrize("prior", [*PRIORS, *LOCAL])
def test_responses_without_variation(prior, family, link, value):
    X = np.random.default_rng(1).normal(size=(25, 3))
    y = np.full(25, value)
    options = {"family": family, "link": link, "coefficient_prior": prior}
    fit = fit_checked(y, X, **options)
    assert fit.status is ModelStatus.CONSTANT_RESPONSE
    assert math.isfinite(fit.log_marginal)
    assert (fit.coefficients[1:] == 0).all()
    mean = Family(family, link).mean(fit.coefficients[:1])[0]
    assert mean == pytest.approx(value, abs=0.03)
    with pytest.warns(ModelStatusWarning, match="constant"):
        result = bgnlm.enumerate_models(y, X, **options)
    assert result.model_probabilities.sum() == pytest.approx(1.0)
    name = prior if isinstance(prior, str) else prior.name
    if name not in ("jeffreys", "eb-local"):  # these do not charge for columns
        assert result.names_of(0) == ()
    assert result.predict(X) == pytest.approx(np.full(25, mean))


def test_a_constant_response_with_an_offset_is_no_constant_response():
    """Gamma: equal values, but expected to differ by the offset."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(40, 1))
    offset = -0.8 * X[:, 0] + 0.1 * rng.normal(size=40)
    fit = fit_checked(np.full(40, 2.5), X, family="gamma", offset=offset)
    assert fit.status is ModelStatus.OK
    assert fit.coefficients[1] == pytest.approx(0.8, abs=0.1)
    assert fit.log_bayes_factor > 10


@pytest.mark.parametrize("prior", [FINITE, "g", "bic", "gaussian", "robust", LOCAL[0]])
def test_strong_effects_in_large_units(prior):
    """Linear predictors from -20 to 20 and columns of 1e6."""
    rng = np.random.default_rng(7)
    x = rng.uniform(-1.0, 1.0, size=(200, 2))
    eta = x @ [18.0, 3.0]
    for family, y in (
        ("binomial", (rng.random(200) < expit(eta)).astype(float)),
        ("poisson", rng.poisson(np.exp(eta)).astype(float)),
        ("gamma", rng.gamma(3.0, np.exp(eta) / 3.0)),
    ):
        plain = fit_checked(y, x, family=family, coefficient_prior=prior)
        large = fit_checked(y, 1e6 * x, family=family, coefficient_prior=prior)
        assert plain.status is ModelStatus.OK
        assert large.status is ModelStatus.OK
        assert large.log_marginal == pytest.approx(plain.log_marginal, abs=1e-5)
        assert 1e6 * large.coefficients[1:] == pytest.approx(plain.coefficients[1:], rel=1e-4)
        assert plain.log_bayes_factor > 20
        if family != "binomial" and prior not in ("g", "gaussian"):  # whose variances are too small for such effects
            assert plain.coefficients[1] == pytest.approx(18.0, rel=0.05)


@pytest.mark.parametrize("prior", [FINITE, "g", "bic", LOCAL[0]])
def test_gamma_responses_without_noise(prior):
    """The shape has no maximum: a defined number that favours the model, and no NaN."""
    X = np.random.default_rng(7).normal(size=(30, 2))
    fit = fit_checked(np.exp(1 + X @ [1.0, -0.5]), X, family="gamma", coefficient_prior=prior)
    assert fit.log_bayes_factor > 50
    if prior == "bic":
        assert fit.coefficients == pytest.approx([1.0, 1.0, -0.5], abs=1e-5)


@pytest.mark.parametrize("n", [200, 2000])
@pytest.mark.parametrize("prior", ["bic", "aic", "jeffreys"])
def test_counts_that_do_not_vary_more_than_poisson(prior, n):
    """The size has no maximum: the likelihood is that of the Poisson family, but for the largest size of 1e6."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(n, 2)), rng.binomial(10, 0.5, size=n).astype(float)
    options = {"coefficient_prior": prior}
    limit = fit_checked(y, X, family="poisson", **options)
    ours = fit_checked(y, X, family="negative_binomial", **options)
    assert ours.log_marginal == pytest.approx(limit.log_marginal, abs=2e-6 * n)
    assert ours.log_bayes_factor == pytest.approx(limit.log_bayes_factor, abs=1e-4)


@pytest.mark.parametrize("prior", [FINITE, "g", "gaussian"])
def test_a_size_without_maximum_is_no_evidence(prior):
    """Noise columns; the null model has no best size either, so both are Poisson and so is their ratio."""
    rng = np.random.default_rng(1)
    for n in (50, 200, 800):
        X, y = rng.normal(size=(n, 2)), rng.binomial(10, 0.5, size=n).astype(float)
        limit = fit_checked(y, X, family="poisson", coefficient_prior=prior)
        ours = fit_checked(y, X, family="negative_binomial", coefficient_prior=prior)
        assert ours.log_bayes_factor == pytest.approx(limit.log_bayes_factor, abs=0.02)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"y": [0.0, 1.0, 0.5, 1.0]}, DataError, "0.5 in row 2"),
        ({"y": [0.0, 1.0, 2.0, 1.0]}, DataError, "2 in row 2"),
        ({"y": [0.0, -1.0, 0.0, 1.0]}, DataError, "-1 in row 1"),
        ({"y": [0.0, 1.5, 0.0, 1.0], "sample_weight": [2, 2, 2, 2]}, DataError, "1.5 in row 1"),
        ({"y": [0.0, 1.0, -1.0, 2.0], "family": "poisson"}, DataError, "-1 in row 2"),
        ({"y": [0.0, 1.0, 1.0, 2.5], "family": "poisson"}, DataError, "2.5 in row 3"),
        ({"y": [0.0, 1.0, 1.0, 2.5], "family": "negative_binomial"}, DataError, "2.5 in row 3"),
        ({"y": [0.1, 0.0, 1.0, 2.5], "family": "gamma"}, DataError, "0 in row 1"),
        ({"y": [0.1, 1.0, 1.0, -2.5], "family": "gamma"}, DataError, "-2.5 in row 3"),
        ({"y": ["yes", "no", "no", "yes"]}, DataError, "row 0"),
        ({"y": [0.0, 1.0, math.nan, 1.0]}, DataError, "row 2"),
        ({"y": [0.0, math.inf, 1.0, 1.0], "family": "poisson"}, DataError, "row 1"),
        ({"noise_floor": 0.1}, SettingError, "noise_floor is for the Gaussian family"),
        ({"coefficient_prior": "known-variance"}, SettingError, "'known-variance' is for the Gaussian family"),
        ({"family": "gamma", "y": [1.0, 2.0, 3.0, 4.0], "coefficient_prior": "script"}, SettingError, "'script'"),
        ({"link": "cloglog", "coefficient_prior": "script"}, SettingError, "cloglog"),
        ({"link": "log"}, SettingError, "'logit', 'probit', 'cloglog'"),
        ({"family": "bernoulli"}, SettingError, "'binomial'"),
    ],
)
@pytest.mark.parametrize("function", [bgnlm.log_marginal, bgnlm.enumerate_models])
def test_bad_input_is_refused_with_advice(function, change, error, message):
    arguments = {"y": [0.0, 1.0, 1.0, 0.0], "X": [[1.0], [2.0], [2.5], [0.3]], "family": "binomial"} | change
    with pytest.raises(error, match=message):
        function(arguments.pop("y"), arguments.pop("X"), **arguments)


def test_responses_of_other_types():
    y = np.array([0, 1, 1, 0, 1, 0, 1, 1])
    x = np.arange(8.0)[:, None] ** 2
    expected = bgnlm.log_marginal(y.astype(float), x, family="binomial")
    for same in (y, y.astype(bool), y.astype(np.int8), y.tolist(), [bool(v) for v in y]):
        assert bgnlm.log_marginal(same, x, family="binomial") == expected


@pytest.mark.parametrize("prior", ["g", FINITE, "bic", "gaussian", "eb-local", LOCAL[0], LOCAL[2]])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_enumeration_agrees_with_one_model_at_a_time(family, link, prior):
    y, X, options = unit_rows(family, link, n=70)
    result = bgnlm.enumerate_models(y, X, coefficient_prior=prior, **options)
    assert len(result) == 8
    # Where g is integrated the nodes are where the model before it left them.
    tolerance = 1e-4 if prior in (FINITE, "eb-local") else 1e-6
    for i in range(8):
        columns = list(result.columns_of(i))
        alone = bgnlm.log_marginal(y, X[:, columns], coefficient_prior=prior, **options)
        assert result.log_marginal[i] == pytest.approx(alone, abs=tolerance)
        assert result.fit(i).log_marginal == pytest.approx(alone, abs=tolerance)
    assert (result.status == ModelStatus.OK).all()
    probabilities = naive.enumerate_probabilities(result.log_joint)
    assert result.model_probabilities == pytest.approx(probabilities)
    subsets = [result.columns_of(i) for i in range(8)]
    assert result.inclusion_probabilities == pytest.approx(naive.inclusion(probabilities, subsets, 3))


@pytest.mark.parametrize("prior", [FINITE, "g", "bic", "gaussian", LOCAL[0]])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_predictions_average_the_means(family, link, prior):
    y, X, options = unit_rows(family, link, n=60)
    rng = np.random.default_rng(8)
    new, offset = 3 * rng.normal(size=(20, 3)), rng.normal(size=20)
    result = bgnlm.enumerate_models(y, X, coefficient_prior=prior, **options)
    expected, average = np.zeros(20), np.zeros(4)
    for i, probability in enumerate(result.model_probabilities):
        fit, columns = result.fit(i), list(result.columns_of(i))
        eta = offset + fit.coefficients[0] + new[:, columns] @ fit.coefficients[1:]
        expected += probability * Family(family, link).mean(eta)
        average[[0, *(c + 1 for c in columns)]] += probability * fit.coefficients
    predicted = result.predict(new, offset=offset)
    assert predicted == pytest.approx(expected, rel=1e-3)
    assert result.coefficients == pytest.approx(average, abs=1e-3)
    assert result.predict(new) != pytest.approx(predicted, rel=1e-2)
    if family == "binomial":
        assert ((predicted >= 0) & (predicted <= 1)).all()
        assert ((result.predict(1e6 * new) >= 0) & (result.predict(1e6 * new) <= 1)).all()
    with pytest.raises(DataError, match="one value per row"):
        result.predict(new, offset=offset[:-1])


@pytest.mark.parametrize("variance", [0.1, 5.0])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_fit_on_the_scale_of_theunit_rows(family, link, variance):
    """Mode, covariance and dispersion for raw columns, against scipy on them."""
    y, X, options = unit_rows(family, link, n=80)
    X = X * [10.0, 0.1, 1.0] + [50.0, 0.0, -2.0]
    prior = CoefficientPrior("gaussian", variance=variance)
    fit = fit_checked(y, X, coefficient_prior=prior, **options)
    slow = SlowGlm(
        family, link, y, X - X.mean(axis=0), offset=options["offset"], precision=np.diag(X.var(axis=0)) / variance
    )
    theta = slow.mode()
    centre = np.eye(4)
    centre[0, 1:] = -X.mean(axis=0)
    assert fit.coefficients == pytest.approx(centre @ theta[:4], rel=1e-4, abs=1e-4)
    eta = options["offset"] + fit.coefficients[0] + X @ fit.coefficients[1:]
    assert eta == pytest.approx(options["offset"] + slow.design @ theta[:4], abs=1e-4)
    covariance = centre @ np.linalg.inv(-slow.hessian(theta)[:4, :4]) @ centre.T
    ours = fit.covariance_factor @ fit.covariance_factor.T
    assert ours == pytest.approx(covariance, rel=1e-4, abs=1e-7)
    assert fit.dispersion == pytest.approx(math.exp(theta[-1]) if slow.has_dispersion else 1.0, rel=1e-5)
    assert fit.degrees_of_freedom == math.inf
    assert fit.shrinkage == 1.0


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_r_squared_is_that_of_the_likelihood_ratio(family, link):
    """With the dispersion of each model, and the constants that go with it."""
    y, X, options = unit_rows(family, link, n=80)
    fit = fit_checked(y, X, coefficient_prior="bic", **options)
    slow, null = (SlowGlm(family, link, y, columns, offset=options["offset"]) for columns in (X, X[:, :0]))
    gain = slow.log_likelihood(slow.mode()) - null.log_likelihood(null.mode())
    assert gain > 1
    assert fit.r_squared == pytest.approx(1 - math.exp(-2 * gain / 80), abs=1e-6)


def test_shrinkage_of_a_given_g():
    y, X, options = unit_rows("binomial", "logit")
    for information in ("null", "local"):
        prior = CoefficientPrior("g", g=9.0, information=information)
        assert fit_checked(y, X, coefficient_prior=prior, **options).shrinkage == pytest.approx(0.9)
    # Local: the maximum likelihood estimate, shrunk about the centre.
    local = fit_checked(y, X, coefficient_prior=prior, **options)
    estimate = fit_checked(y, X, coefficient_prior="bic", **options)
    assert local.coefficients[1:] == pytest.approx(0.9 * estimate.coefficients[1:], rel=1e-6)
    factors = (fit.covariance_factor[1:] @ fit.covariance_factor[1:].T for fit in (local, estimate))
    assert next(factors) == pytest.approx(0.9 * next(factors), rel=1e-6)


@pytest.mark.parametrize("k", [62, 63, 64, 80])
def test_many_columns_at_once(k):
    """A model is a bit mask inside, which must not limit the columns of a single model."""
    rng = np.random.default_rng(k)
    X, y = rng.normal(size=(300, k)), rng.integers(0, 2, size=300).astype(float)
    fit = fit_checked(y, X, family="binomial", coefficient_prior="g")
    assert fit.status is ModelStatus.OK
    assert len(fit.coefficients) == k + 1


def test_probit_with_a_large_offset():
    """Rows that are certain beforehand say nothing, and change nothing."""
    y, X, options = unit_rows("binomial", "probit", n=60)
    options["coefficient_prior"] = "g"
    expected = fit_checked(y, X, **options | {"coefficient_prior": CoefficientPrior("g", g=62.0)})
    certain = np.append(options["offset"], [12.0, 15.0])
    rows = np.vstack([X, [[1.0, 2.0, 3.0], [-3.0, 1.0, 2.0]]])
    fit = fit_checked(np.append(y, [1.0, 1.0]), rows, **options | {"offset": certain})
    assert fit.log_bayes_factor == pytest.approx(expected.log_bayes_factor, abs=1e-3)


CHEAP = ["plain", "integers", "duplicated", "huge", "tiny", "weights", "offset", "separated", "strong"]


@settings(deadline=None, max_examples=150)
@given(
    n=st.integers(2, 14),
    p=st.integers(0, 4),
    seed=st.integers(0, 10**6),
    pair=st.sampled_from(PAIRS),
    prior=st.sampled_from([*PRIORS, *LOCAL, "script"]),
    how=st.sampled_from(CHEAP),
)
@example(n=2, p=2, seed=799959, pair=("negative_binomial", "log"), prior="hyper-g/n", how="integers")
@example(n=3, p=2, seed=461071, pair=("negative_binomial", "log"), prior=LOCAL[9], how="strong")
@example(n=4, p=2, seed=455131, pair=("negative_binomial", "log"), prior=LOCAL[3], how="offset")
@example(n=4, p=1, seed=429740, pair=("binomial", "cloglog"), prior="beta-prime", how="weights")
@example(n=3, p=4, seed=956883, pair=("binomial", "cloglog"), prior="intrinsic", how="offset")
@example(n=5, p=3, seed=129803, pair=("negative_binomial", "log"), prior="beta-prime", how="strong")
@example(n=6, p=2, seed=281808, pair=("negative_binomial", "log"), prior="tg", how="offset")
@example(n=14, p=1, seed=729618, pair=("binomial", "probit"), prior="script", how="offset")
def test_any_design_gives_defined_numbers(n, p, seed, pair, prior, how):
    if prior == "script" and (pair[0] in ("gamma", "negative_binomial") or pair[1] == "cloglog"):
        prior = FINITE
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    options = {"family": pair[0], "link": pair[1], "coefficient_prior": prior}
    eta = X.sum(axis=1) * (8.0 if how == "strong" else 1.0)
    match pair[0]:
        case "binomial":
            y = (rng.random(n) < Family(*pair).mean(eta)).astype(float)
            y = (eta > 0).astype(float) if how == "separated" else y
        case "gamma":
            y = np.exp(eta) if how == "separated" else rng.gamma(2.0, np.exp(eta))
        case _:
            y = np.where(eta < 0, 0.0, rng.poisson(np.exp(np.minimum(eta, 30.0))))
    match how:
        case "integers":
            X = np.round(X)
        case "duplicated":
            X = X[:, rng.integers(0, p, size=p)] if p else X
        case "huge":
            X = X * 1e135
        case "tiny":
            X = X * 1e-140
        case "weights":
            options["sample_weight"] = np.append(rng.exponential(size=n - 2) * (rng.random(n - 2) < 0.7), [0.6, 0.6])
        case "offset":
            options["offset"] = 5.0 * rng.normal(size=n)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ModelStatusWarning)
        fit_checked(y, X, **options)
        result = bgnlm.enumerate_models(y, X, **options)
    assert result.model_probabilities.sum() == pytest.approx(1.0)
    assert ((result.inclusion_probabilities >= 0) & (result.inclusion_probabilities <= 1 + 1e-12)).all()
    assert not np.isnan(result.log_marginal).any()
    assert np.isfinite(result.log_marginal[result.status == ModelStatus.OK]).all()
    assert np.isfinite(result.predict(X)).all()


def test_log_likelihood_of_the_reference_has_all_constants():
    """So that the comparisons above are of absolute values: the null model by its definition."""
    y, _, _ = unit_rows("poisson", "log", n=30)
    mean = y.mean()
    likelihood = log_likelihood_rows("poisson", "log", y, np.full(30, math.log(mean)), 1.0).sum()
    expected = likelihood + 0.5 * (naive.LOG_2PI - math.log(30 * mean))
    for prior in (FINITE, "g", "gaussian", *LOCAL):
        ours = bgnlm.log_marginal(y, np.empty((30, 0)), family="poisson", coefficient_prior=prior)
        assert ours == pytest.approx(expected, abs=1e-8)
