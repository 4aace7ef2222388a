"""Row by row: log-likelihoods and their derivatives, compiled and in Python, against scipy, mpmath and differences."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special, stats
from scipy.integrate import quad

from bgnlm.kernels import families as kernels
from bgnlm.likelihood.families import LINKS, Family
from tests.naive_glm import PAIRS, WITH_DISPERSION, mp_log_density, responses, scipy_log_density

MODERATE = np.linspace(-4.0, 3.0, 15)


def _rows(family, link, y, weights, eta, dispersion=1.0, function=kernels.row_terms):
    score, information = np.full((2, len(y)), np.nan)
    total = function(LINKS[family][link], dispersion, y, weights, eta, score, information)
    return total, score, information


@pytest.mark.parametrize("dispersion", [0.3, 2.5, 40.0])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_log_likelihood_is_that_of_scipy(family, link, dispersion):
    y, weights = responses(family, len(MODERATE))
    eta = MODERATE - 1.0  # further up scipy's 1 - p has lost its digits for cloglog
    total, _, _ = _rows(family, link, y, weights, eta, dispersion)
    constants = kernels.log_constants(LINKS[family][link], dispersion, y, weights)
    expected = scipy_log_density(family, link, y, weights, eta, dispersion).sum()
    assert total + constants == pytest.approx(expected, rel=1e-11)


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_derivatives_against_differences(family, link):
    """The score is the slope of the value, the information minus the slope of the score."""
    y, weights = responses(family, len(MODERATE))
    h = 1e-5
    _, score, information = _rows(family, link, y, weights, MODERATE, 2.5)
    for i, eta in enumerate(MODERATE):
        row = slice(i, i + 1)
        up = _rows(family, link, y[row], weights[row], np.array([eta + h]), 2.5)
        down = _rows(family, link, y[row], weights[row], np.array([eta - h]), 2.5)
        assert score[i] == pytest.approx((up[0] - down[0]) / (2 * h), rel=1e-6, abs=1e-6)
        assert information[i] == pytest.approx((down[1] - up[1])[0] / (2 * h), rel=1e-6, abs=1e-6)
    assert (information >= 0).all()  # all of them are concave


def _extreme_response(family):
    return {"binomial": [0.0, 0.25, 1.0], "gamma": [0.01, 3.0]}.get(family, [0.0, 3.0, 200.0])


@pytest.mark.parametrize("eta", [-100.0, -30.5, -29.5, -7.0, -6.9, 0.0, 5.0, 6.5, 30.0, 100.0])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_extreme_linear_predictors_in_many_digits(family, link, eta):
    for y in _extreme_response(family):
        total, score, information = _rows(family, link, np.array([y]), np.ones(1), np.array([eta]), 2.5)
        if family != "binomial":
            total += kernels.log_constants(LINKS[family][link], 2.5, np.array([y]), np.ones(1))
        with mp.workdps(120):
            expected = [
                float(mp.diff(lambda e, y=y: mp_log_density(family, link, y, e, 2.5), eta, k, h=mp.mpf("1e-30")))
                for k in (0, 1, 2)
            ]
        assert total == pytest.approx(expected[0], rel=1e-11, abs=1e-12)
        assert score[0] == pytest.approx(expected[1], rel=1e-9, abs=1e-12)
        assert information[0] == pytest.approx(-expected[2], rel=1e-8, abs=1e-12)


@pytest.mark.parametrize("eta", [-1000.0, -700.0, -500.0, 500.0, 700.0, 1000.0])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_huge_linear_predictors_give_finite_numbers(family, link, eta):
    for y in _extreme_response(family):
        total, score, information = _rows(family, link, np.array([y]), np.ones(1), np.array([eta]), 2.5)
        assert math.isfinite(total)
        assert np.isfinite(score).all()
        assert np.isfinite(information).all()
        assert information[0] >= 0
    # On the wrong side the fit is bad, and the score points back.
    wrong = {"binomial": 0.0, "gamma": 0.01}.get(family, 0.0) if eta > 0 else {"binomial": 1.0}.get(family, 3.0)
    total, score, _ = _rows(family, link, np.array([wrong]), np.ones(1), np.array([eta]), 2.5)
    assert total < -400
    assert score[0] * eta < 0


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_weights_multiply_rows(family, link):
    y, weights = responses(family, len(MODERATE), seed=3)
    weights[::3] = 0.0
    weights[1::3] = 0.7
    total, score, information = _rows(family, link, y, weights, MODERATE, 2.5)
    singles = [_rows(family, link, y[i : i + 1], np.ones(1), MODERATE[i : i + 1], 2.5) for i in range(len(y))]
    assert total == pytest.approx(sum(w * single[0] for w, single in zip(weights, singles, strict=True)), rel=1e-12)
    assert score == pytest.approx([w * single[1][0] for w, single in zip(weights, singles, strict=True)], rel=1e-12)
    assert information == pytest.approx(
        [w * single[2][0] for w, single in zip(weights, singles, strict=True)], rel=1e-12
    )


@pytest.mark.parametrize("n", [0, 1, 511, 512, 513, 1100])
def test_logit_with_unit_weights_takes_logarithms_of_products(n):
    """Another path than with weights, in stretches of 512 rows; all factors near 2 must not overflow."""
    rng = np.random.default_rng(n)
    eta = rng.normal(size=n) * 0.01
    y = rng.integers(0, 2, size=n).astype(float)
    total, _, _ = _rows("binomial", "logit", y, np.ones(n), eta)
    assert total == pytest.approx(float((y * eta - np.logaddexp(0, eta)).sum()), rel=1e-12, abs=1e-12)


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_compiled_rows_equal_their_interpreted_form(family, link):
    eta = np.concatenate([MODERATE, [-40.0, -31.0, 9.0, 20.0]])
    y, weights = responses(family, len(eta), seed=5)
    code = LINKS[family][link]
    for fast, slow in zip(
        _rows(family, link, y, weights, eta, 2.5),
        _rows(family, link, y, weights, eta, 2.5, kernels.row_terms.py_func),
        strict=True,
    ):
        assert fast == pytest.approx(slow, rel=1e-11, abs=1e-13)
    constants = kernels.log_constants(code, 2.5, y, weights)
    assert constants == pytest.approx(kernels.log_constants.py_func(code, 2.5, y, weights), rel=1e-12)
    inner = {
        kernels.LOGIT: kernels._logit,
        kernels.PROBIT: kernels._probit,
        kernels.CLOGLOG: kernels._cloglog,
        kernels.POISSON: kernels._poisson,
        kernels.GAMMA: kernels._gamma,
        kernels.NEGATIVE_BINOMIAL: kernels._negative_binomial,
    }[code]
    given = () if code < kernels.GAMMA else (2.5,)
    arrays = np.empty((4, len(eta)))
    totals = [
        function(*given, y, weights, eta, arrays[2 * i], arrays[2 * i + 1])
        for i, function in enumerate((inner, inner.py_func))
    ]
    assert totals[0] == pytest.approx(totals[1], rel=1e-11)
    assert arrays[:2] == pytest.approx(arrays[2:], rel=1e-10, abs=1e-13)


@pytest.mark.parametrize("dispersion", [0.02, 0.8, 7.0, 300.0])
@pytest.mark.parametrize(("family", "link"), WITH_DISPERSION)
def test_dispersion_terms_against_many_digits(family, link, dispersion):
    eta = np.array([-2.0, 0.5, 1.0, 3.0, 4.0])
    y, weights = responses(family, 5, seed=2)
    weights[1] = 0.0
    cross = np.empty(5)
    first, second = kernels.dispersion_terms(LINKS[family][link], dispersion, y, weights, eta, cross)
    interpreted = np.empty(5)
    again = kernels.dispersion_terms.py_func(LINKS[family][link], dispersion, y, weights, eta, interpreted)
    assert (first, second) == pytest.approx(again, rel=1e-11)
    assert cross == pytest.approx(interpreted, rel=1e-12)

    def row(i):
        return lambda log_d, e: mp_log_density(family, link, y[i], e, mp.exp(log_d))

    with mp.workdps(60):
        at = [(mp.log(mp.mpf(dispersion)), mp.mpf(e)) for e in eta]
        slopes = [weights[i] * mp.diff(row(i), at[i], (1, 0)) for i in range(5)]
        curvatures = [weights[i] * mp.diff(row(i), at[i], (2, 0)) for i in range(5)]
        mixed = [float(weights[i] * mp.diff(row(i), at[i], (1, 1))) for i in range(5)]
    assert first == pytest.approx(float(sum(slopes)), rel=1e-9, abs=1e-9)
    assert second == pytest.approx(-float(sum(curvatures)), rel=1e-8, abs=1e-8)
    assert cross == pytest.approx(mixed, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("size", [1e6, 1e8, 1e10])
def test_negative_binomial_tends_to_poisson(size):
    """Log-likelihood with constants and the derivatives keep their digits as the size grows: it does on such data."""
    y, _ = responses("poisson", 200)
    eta, weights = np.log(y + 1.0), np.ones(200)
    total, _, _ = _rows("negative_binomial", "log", y, weights, eta, size)
    total += kernels.log_constants(kernels.NEGATIVE_BINOMIAL, size, y, weights)
    # log p = log Poisson + ((y - mean)^2 - y) / (2 size) + O(1 / size^2)
    excess = float(((y - np.exp(eta)) ** 2 - y).sum()) / 2
    poisson = float(stats.poisson.logpmf(y, np.exp(eta)).sum())
    assert total == pytest.approx(poisson + excess / size, abs=1e-6)
    # The derivatives lose their digits, but not so much that they would mislead: the likelihood is flat here.
    first, second = kernels.dispersion_terms(kernels.NEGATIVE_BINOMIAL, size, y, weights, eta, np.empty(200))
    assert abs(first) < 0.01
    assert abs(second) < 0.01


@pytest.mark.parametrize("x", [1e-8, 1e-3, 0.5, 1.0, 2.7, 9.99, 10.0, 10.01, 123.4, 1e5, 1e10])
def test_derivatives_of_log_gamma(x):
    for digamma, trigamma in (
        (kernels.digamma, kernels.trigamma),
        (kernels.digamma.py_func, kernels.trigamma.py_func),
    ):
        assert digamma(x) == pytest.approx(float(special.digamma(x)), rel=1e-12, abs=1e-13)
        assert trigamma(x) == pytest.approx(float(special.polygamma(1, x)), rel=1e-12)


@pytest.mark.parametrize("x", [-1e4, -700.0, -100.0, -30.001, -30.0, -29.999, -8.0, -1.0, 0.0, 0.5, 3.0, 8.0, 40.0])
def test_log_of_the_normal_distribution_function(x):
    for function in (kernels.log_normal_cdf, kernels.log_normal_cdf.py_func):
        value, ratio = function(x)
        assert value == pytest.approx(float(special.log_ndtr(x)), rel=1e-13, abs=1e-15)
        with mp.workdps(40):
            expected = float(mp.npdf(x) / mp.ncdf(x)) if x > -1000 else -x - 1 / x
        assert ratio == pytest.approx(expected, rel=1e-12, abs=1e-300)


def test_linear_predictor():
    rng = np.random.default_rng(4)
    design, offset, columns = rng.normal(size=(5, 30)), rng.normal(size=30), np.array([3, 0, 1, 4])
    coefficients = np.array([0.3, 2.0, 0.0, -1.0, 7.0])
    expected = offset + 0.3 + 2.0 * design[3] - 1.0 * design[1]
    for function in (kernels.linear_predictor, kernels.linear_predictor.py_func):
        eta = np.full(30, np.nan)
        function(design, offset, columns, 3, coefficients, eta)
        assert eta == pytest.approx(expected, abs=1e-14)


@pytest.mark.parametrize(("family", "link"), [("gaussian", "identity"), *PAIRS])
def test_mean_its_slope_and_its_inverse(family, link):
    distribution = Family(family, link)
    h = 1e-5
    slope = (distribution.mean(MODERATE + h) - distribution.mean(MODERATE - h)) / (2 * h)
    assert distribution.mean_slope(MODERATE) == pytest.approx(slope, rel=1e-7, abs=1e-9)
    for eta in MODERATE[MODERATE < 2.0]:
        mean = float(distribution.mean(np.array([eta]))[0])
        assert distribution.linear_predictor(mean) == pytest.approx(eta, abs=1e-10)
    extreme = np.array([-1e4, -700.0, 0.0, 700.0, 1e4])
    assert np.isfinite(distribution.mean(extreme)).all()
    assert np.isfinite(distribution.mean_slope(extreme)).all()
    if family == "binomial":
        assert distribution.mean(extreme)[[0, -1]] == pytest.approx([0.0, 1.0], abs=1e-300)


@pytest.mark.parametrize("dispersion", [0.7, 6.0])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_expected_information_is_the_mean_of_the_observed(family, link, dispersion):
    code, distribution = LINKS[family][link], Family(family, link)

    def weighted(y, eta):
        """Density times observed information."""
        y = np.atleast_1d(np.asarray(y, dtype=float))
        weights = np.ones(len(y))
        _, _, information = _rows(family, link, y, weights, np.full(len(y), eta), dispersion)
        return np.exp(scipy_log_density(family, link, y, weights, eta, dispersion)) * information

    for eta in (-3.0, -0.5, 1.2, 2.0):
        match family:
            case "binomial":
                expected = weighted([0, 1], eta).sum()
            case "gamma":  # in log y, where the density has no pole
                expected = quad(lambda t, eta=eta: math.exp(t) * weighted(math.exp(t), eta)[0], -60, 8, limit=400)[0]
            case _:
                expected = weighted(np.arange(3000), eta).sum()
        assert distribution.expected_information(np.array([eta]), dispersion)[0] == pytest.approx(expected, rel=1e-7)
    assert code == distribution.code


@pytest.mark.parametrize("eta", [-100.0, -30.0, -9.0, 7.0, 9.0, 15.0, 30.0, 100.0, 345.0, 400.0, 700.0])
@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_expected_information_far_out(link, eta):
    """An offset can be that large; the information about such a row is next to nothing, never large."""
    ours = Family("binomial", link).expected_information(np.array([eta]), 1.0)[0]
    with mp.workdps(400):
        e = mp.mpf(eta)
        match link:
            case "logit":
                expected = 1 / (mp.exp(e) + 2 + mp.exp(-e))
            case "probit":
                expected = mp.npdf(e) ** 2 / (mp.ncdf(e) * mp.ncdf(-e))
            case _:
                expected = mp.exp(2 * e - mp.exp(e)) if eta > 10 else mp.exp(2 * e) / mp.expm1(mp.exp(e))
    assert ours == pytest.approx(float(expected), rel=1e-6, abs=1e-12)


def _higher(code, y, weights, eta, dispersion, function=kernels.higher_terms):
    third, fourth = np.full((2, len(y)), np.nan)
    function(code, dispersion, y, weights, eta, third, fourth)
    return third, fourth


@pytest.mark.parametrize("dispersion", [0.3, 2.5, 40.0])
@pytest.mark.parametrize(("family", "link"), [("gaussian", "identity"), *PAIRS])
def test_higher_derivatives_against_differences(family, link, dispersion):
    """Of the information, and of the third derivative."""
    code, h = LINKS[family][link], 1e-5
    y, weights = responses(family, len(MODERATE), seed=7)
    third, fourth = _higher(code, y, weights, MODERATE, dispersion)
    up, down = (_rows(family, link, y, weights, MODERATE + s, dispersion)[2] for s in (h, -h))
    assert third == pytest.approx((down - up) / (2 * h), rel=1e-6, abs=1e-6)
    up, down = (_higher(code, y, weights, MODERATE + s, dispersion)[0] for s in (h, -h))
    assert fourth == pytest.approx((up - down) / (2 * h), rel=1e-6, abs=1e-6)
    for fast, slow in zip(
        (third, fourth),
        _higher(code, y, weights, MODERATE, dispersion, kernels.higher_terms.py_func),
        strict=True,
    ):
        assert fast == pytest.approx(slow, rel=1e-11, abs=1e-13)


@pytest.mark.parametrize("eta", [-100.0, -30.5, -29.5, -9.0, -7.0, -6.9, 0.0, 5.0, 6.5, 30.0, 100.0])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_higher_derivatives_in_many_digits(family, link, eta):
    for y in _extreme_response(family):
        third, fourth = _higher(LINKS[family][link], np.array([y]), np.ones(1), np.array([eta]), 2.5)
        with mp.workdps(150):
            expected = [
                float(mp.diff(lambda e, y=y: mp_log_density(family, link, y, e, 2.5), eta, k, h=mp.mpf("1e-25")))
                for k in (2, 3, 4)
            ]
        # Beside the information they matter only in proportion to it.
        rounding = 1e-6 * abs(expected[0]) + 1e-12
        assert third[0] == pytest.approx(expected[1], rel=1e-7, abs=rounding)
        assert fourth[0] == pytest.approx(expected[2], rel=1e-7, abs=rounding)


@pytest.mark.parametrize("eta", [-1e4, -1000.0, -700.0, -500.0, 500.0, 700.0, 1000.0, 1e4])
@pytest.mark.parametrize(("family", "link"), [("gaussian", "identity"), *PAIRS])
def test_higher_derivatives_of_huge_linear_predictors_are_finite(family, link, eta):
    y = np.array(_extreme_response(family))
    for weights in (np.zeros(len(y)), np.full(len(y), 3.0)):
        for values in _higher(LINKS[family][link], y, weights, np.full(len(y), eta), 2.5):
            assert np.isfinite(values).all()


@pytest.mark.parametrize("precision", [1e-3, 1.0, 50.0])
def test_rows_of_the_normal_distribution(precision):
    y, weights, eta = np.random.default_rng(0).normal(size=(3, 20)) ** [[1], [2], [1]]
    total, score, information = _rows("gaussian", "identity", y, weights, eta, precision)
    constants = kernels.log_constants(kernels.GAUSSIAN, precision, y, weights)
    assert total + constants == pytest.approx(weights @ stats.norm.logpdf(y, eta, precision**-0.5), rel=1e-12)
    assert score == pytest.approx(weights * precision * (y - eta), rel=1e-13)
    assert information == pytest.approx(weights * precision, rel=1e-13)
    arrays = np.empty((2, 20))
    for function in (kernels._gaussian.py_func, kernels._gaussian):
        assert function(precision, y, weights, eta, *arrays) == pytest.approx(total, rel=1e-13)
        assert arrays == pytest.approx(np.array([score, information]), rel=1e-13)
