"""Every prior of every family against quadrature over g, and Laplace's method against full integration."""

import math
from functools import lru_cache

import numpy as np
import pytest
from scipy.interpolate import CubicSpline
from scipy.special import gammaln

import bgnlm
from bgnlm import CoefficientPrior
from bgnlm.likelihood.coefficient_priors import MIXTURES
from bgnlm.likelihood.families import Family
from bgnlm.likelihood.status import ModelStatus
from tests import naive
from tests.likelihood.glm_cases import FINITE
from tests.naive_glm import PAIRS, SlowGlm, log_likelihood_rows, simulate

NO_DISPERSION = [pair for pair in PAIRS if pair[0] in ("binomial", "poisson")]


def _binomial_constant(family, y, weights):
    """Log of the binomial coefficients, which the slow log-likelihood leaves out."""
    if family != "binomial":
        return 0.0
    return float((gammaln(weights + 1) - gammaln(weights * y + 1) - gammaln(weights * (1 - y) + 1)).sum())


class Case:
    """A data set and what the formulas need of it, by numpy and scipy alone."""

    def __init__(self, family, link, n, k, seed=0):
        self.family, self.link, self.k = family, link, k
        self.y, self.X, self.weights, self.offset = simulate(family, link, n, k, seed)
        self.n = float(self.weights.sum())
        self.constant = _binomial_constant(family, self.y, self.weights)
        self.options = {"family": family, "link": link, "sample_weight": self.weights, "offset": self.offset}

    def ours(self, prior):
        return bgnlm.log_marginal(self.y, self.X, coefficient_prior=prior, **self.options)

    def slow(self, X, precision=None):
        return SlowGlm(self.family, self.link, self.y, X, weights=self.weights, offset=self.offset, precision=precision)

    def null_information(self):
        """X' W_0 X of the columns centred in W_0, the expected information of the null model."""
        null = self.slow(self.X[:, :0])
        theta = null.mode()
        eta, d = theta[0] + self.offset, math.exp(theta[-1]) if null.has_dispersion else 1.0
        mean, slope = (getattr(Family(self.family, self.link), name)(eta) for name in ("mean", "mean_slope"))
        variance = {
            "binomial": mean * (1 - mean),
            "poisson": mean,
            "gamma": mean**2 / d,
            "negative_binomial": mean + mean**2 / d,
        }[self.family]
        w = self.weights * slope**2 / variance
        centred = self.X - w @ self.X / w.sum()
        return (centred.T * w) @ centred, centred

    def laplace(self, X, precision, start=None):
        """Laplace's approximation under N(0, precision^-1) slopes, everything else flat; and the mode."""
        slow = self.slow(X, precision)
        theta = slow.mode(start)
        n_flat = len(theta) - self.k
        value = slow.log_posterior(theta) + self.constant + 0.5 * np.linalg.slogdet(precision)[1]
        return value + 0.5 * (n_flat * naive.LOG_2PI - slow.log_determinant(theta)), theta

    @lru_cache  # noqa: B019
    def local(self):
        """(everything but the integral over g, Q) at the maximum likelihood estimate."""
        slow = self.slow(self.X)
        theta = slow.mode()
        dispersion = math.exp(theta[-1]) if slow.has_dispersion else 1.0
        eta = self.offset + slow.design @ theta[: self.k + 1]
        h = 1e-4
        up, here, down = (
            log_likelihood_rows(self.family, self.link, self.y, eta + step, dispersion) for step in (h, 0.0, -h)
        )
        w = self.weights * (2 * here - up - down) / h**2
        if self.family in ("binomial", "poisson") and self.link in ("logit", "log"):
            mean = Family(self.family, self.link).mean(eta)
            w = self.weights * mean * ((1 - mean) if self.family == "binomial" else 1.0)
        part = eta - self.offset
        quadratic = float(w @ (part - w @ part / w.sum()) ** 2)
        value = slow.log_likelihood(theta) + self.constant + 0.5 * (naive.LOG_2PI - math.log(w.sum()))
        if slow.has_dispersion:
            full = slow.hessian(theta)
            schur = full[-1, -1] - full[-1, :-1] @ np.linalg.solve(full[:-1, :-1], full[:-1, -1])
            value += 0.5 * (naive.LOG_2PI - math.log(-schur))
        return value, quadratic

    @lru_cache  # noqa: B019
    def laplace_of_log_g(self):
        """Laplace's approximation for information "null" as a smooth function of log g."""
        information, centred = self.null_information()
        grid = np.arange(-14.0, 32.0, 0.25)
        values, theta = np.empty(len(grid)), None
        for i in range(len(grid) - 1, -1, -1):
            values[i], theta = self.laplace(centred, information * math.exp(-grid[i]), theta)
        return CubicSpline(grid, values)


@lru_cache
def case(family, link, n, k):
    return Case(family, link, n, k)


def _hyper_g_n_4(n):
    """Hyper-g/n with a = 4."""
    return lambda x: -math.log(n) - 2.0 * np.logaddexp(0.0, x - math.log(n)), 0.0


def _density(name, n, k):
    return _hyper_g_n_4(n) if name is FINITE else naive.log_g_densities(n, k)[name]


@pytest.mark.parametrize("k", [1, 4])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_local_information(family, link, k):
    """Li and Clyde's formula at the maximum likelihood estimate, with the observed information."""
    data = case(family, link, 60, k)
    base, quadratic = data.local()
    tolerance = 1e-6 if (family, link) in (("binomial", "logit"), ("poisson", "log")) else 1e-5
    for name in MIXTURES:
        log_density, end = naive.log_g_densities(data.n, k)[name]

        def log_function(x, log_density=log_density, end=end):
            g = end + np.exp(x)
            return -k / 2 * np.log1p(g) - quadratic / (2 * (1 + g)) + log_density(x) + x

        expected = base + naive.log_integral(log_function, -60.0, 110.0)
        assert data.ours(CoefficientPrior(name, information="local")) == pytest.approx(expected, abs=tolerance), name
    for g, prior in (
        (data.n, CoefficientPrior("g", information="local")),
        (3.0, CoefficientPrior("g", information="local", g=3.0)),
        (max(quadratic / k - 1, 0.0), CoefficientPrior("eb-local", information="local")),
    ):
        expected = base - k / 2 * math.log1p(g) - quadratic / (2 * (1 + g))
        assert data.ours(prior) == pytest.approx(expected, abs=tolerance)


@pytest.mark.parametrize("k", [1, 3, 6])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_null_information_with_a_given_g(family, link, k):
    data = case(family, link, 80, k)
    information, centred = data.null_information()
    for g, prior in (
        (data.n, "g"),
        (2.5, CoefficientPrior("g", g=2.5)),
        (0.01, CoefficientPrior("g", g=0.01)),
        (1e6, CoefficientPrior("g", g=1e6)),
    ):
        expected, theta = data.laplace(centred, information / g)
        assert data.ours(prior) == pytest.approx(expected, abs=1e-6)
        fit = bgnlm.fit_model(data.y, data.X, coefficient_prior=prior, **data.options)
        assert fit.coefficients[1:] == pytest.approx(theta[1 : k + 1], abs=1e-5)


INTEGRATED = [("binomial", "logit", k) for k in (1, 3, 6)]
INTEGRATED += [("poisson", "log", k) for k in (1, 3, 6)]
INTEGRATED += [
    ("binomial", "probit", 3),
    ("binomial", "cloglog", 1),
    ("gamma", "log", 3),
    ("negative_binomial", "log", 3),
]


@pytest.mark.parametrize(("family", "link", "k"), INTEGRATED)
def test_null_information_with_g_integrated(family, link, k):
    """Against the trapezoidal rule in log(g - end) with steps of 0.02."""
    data = case(family, link, 80, k)
    laplace = data.laplace_of_log_g()
    x = np.arange(-60.0, 100.0, 0.02)
    for name in (FINITE, *MIXTURES):
        log_density, end = _density(name, data.n, k)
        log_g = np.log(end + np.exp(x)) if end else x
        # Beyond the grid: constant where g is nothing, -k/2 log g where the prior is flat.
        inside = np.clip(log_g, -14.0, 31.5)
        terms = laplace(inside) - 0.5 * k * np.maximum(log_g - 31.5, 0.0) + log_density(x) + x
        expected = terms.max() + math.log(0.02 * np.exp(terms - terms.max()).sum())
        assert data.ours(name) == pytest.approx(expected, abs=3e-5), name
    best = max(laplace(np.arange(-14.0, 31.5, 1e-3)))
    assert data.ours("eb-local") == pytest.approx(best, abs=3e-5)


def _exact_and_laplace(family, link, n):
    """Intercept and one slope under the fixed g-prior: (full integral, ours), likewise for the null model."""
    rng = np.random.default_rng(11)
    x, eta = rng.normal(size=320), rng.uniform(size=320)
    mean = Family(family, link).mean(0.3 + 0.7 * x)
    y = (eta < mean).astype(float) if family == "binomial" else np.round(-np.log(eta) * mean)
    y, x = y[:n], x[:n]
    g = float(n)
    null = SlowGlm(family, link, y, np.empty((n, 0)))
    intercept = null.mode()
    w = Family(family, link).expected_information(np.full(n, intercept[0]), 1.0)
    c = x - w @ x / w.sum()
    precision = np.array([[w @ c**2 / g]])
    slow = SlowGlm(family, link, y, c[:, None], precision=precision)
    theta = slow.mode()
    spread = 9.0 * np.sqrt(np.diag(np.linalg.inv(-slow.hessian(theta))))

    def log_density(a, b):
        eta = a[..., None] + b[..., None] * c
        prior = 0.5 * (math.log(precision[0, 0]) - naive.LOG_2PI) - 0.5 * precision[0, 0] * b**2
        return log_likelihood_rows(family, link, y, eta, 1.0).sum(axis=-1) + prior

    box = [(theta[i] - spread[i], theta[i] + spread[i]) for i in (0, 1)]
    both = naive.grid_marginal(log_density, box, 121)
    reach = 9.0 / math.sqrt(-null.hessian(intercept)[0, 0])

    def log_density_of_intercept(a):
        return log_likelihood_rows(family, link, y, a[:, None] + np.zeros(n), 1.0).sum(axis=-1)

    alone = naive.grid_marginal(log_density_of_intercept, [(intercept[0] - reach, intercept[0] + reach)], 2001)
    options = {"family": family, "link": link, "coefficient_prior": "g"}
    return (
        (alone, bgnlm.log_marginal(y, np.empty((n, 0)), **options)),
        (both, bgnlm.log_marginal(y, x[:, None], **options)),
    )


@pytest.mark.parametrize(("family", "link"), NO_DISPERSION)
def test_laplace_tends_to_the_full_integral(family, link):
    errors = np.array(
        [[abs(exact - ours) for exact, ours in _exact_and_laplace(family, link, n)] for n in (20, 80, 320)]
    )
    assert (errors[0] < 0.25).all()
    assert (errors[2] < 0.02).all()
    # In proportion to 1 / n, or nearly: the data sets differ.
    assert (errors[1:] < 0.6 * errors[:-1]).all()


@pytest.mark.parametrize(("family", "shape"), [("gamma", 2.0), ("negative_binomial", 0.6)])
def test_laplace_over_the_dispersion_tends_to_the_full_integral(family, shape):
    """Null model: flat in the intercept and in the log of the dispersion."""
    rng = np.random.default_rng(5)
    mean = 6.0
    if family == "gamma":
        sample = rng.gamma(shape, mean / shape, size=320)
    else:
        sample = rng.negative_binomial(shape, shape / (shape + mean), size=320).astype(float)
    errors = []
    for n in (20, 80, 320):
        y = sample[:n]
        slow = SlowGlm(family, "log", y, np.empty((n, 0)))
        theta = slow.mode()
        spread = 7.0 * np.sqrt(np.diag(np.linalg.inv(-slow.hessian(theta))))

        def log_density(a, log_d, y=y):
            return log_likelihood_rows(family, "log", y, a[..., None], np.exp(log_d)[..., None]).sum(axis=-1)

        exact = naive.grid_marginal(log_density, [(theta[i] - spread[i], theta[i] + spread[i]) for i in (0, 1)], 201)
        for prior in (FINITE, "g", "gaussian"):
            ours = bgnlm.log_marginal(y, np.empty((n, 0)), family=family, coefficient_prior=prior)
            assert ours == pytest.approx(exact, abs=0.2)
        errors.append(abs(ours - exact))
    assert errors[1] < 0.6 * errors[0]
    assert errors[2] < 0.6 * errors[1]
    assert errors[2] < 0.01


@pytest.mark.parametrize("k", [0, 3])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_scores_of_the_maximum_likelihood(family, link, k):
    data = case(family, link, 80, k)
    slow = data.slow(data.X)
    likelihood = slow.log_likelihood(slow.mode()) + data.constant
    assert data.ours("jeffreys") == pytest.approx(likelihood + (k + 1) / 2 * naive.LOG_2PI, abs=1e-6)
    assert data.ours("bic") == pytest.approx(likelihood - (k + 1) / 2 * math.log(data.n), abs=1e-6)
    assert data.ours("aic") == pytest.approx(likelihood - (k + 1), abs=1e-6)


@pytest.mark.parametrize("variance", [0.04, 1.0, 50.0])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_independent_gaussian_prior(family, link, variance):
    """On columns standardised by the weights; the intercept is flat, so that centring does not matter."""
    data = case(family, link, 80, 3)
    centred = data.X - data.weights @ data.X / data.n
    standardised = centred / np.sqrt(data.weights @ centred**2 / data.n)
    expected, _ = data.laplace(standardised, np.eye(3) / variance)
    assert data.ours(CoefficientPrior("gaussian", variance=variance)) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("prior", "log_density"),
    [
        (CoefficientPrior("hyper-g", a=4.0), lambda g: -2.0 * np.log1p(g)),
        (CoefficientPrior("hyper-g", a=2.3), lambda g: math.log(0.15) - 1.15 * np.log1p(g)),
        (CoefficientPrior("tg", a=1.4, s=-2.0), lambda g: -1.7 * np.log1p(g) + 1.0 / (1 + g)),
        (
            CoefficientPrior("cch", a=0.7, b=3.1, s=5.0),
            lambda g: -1.35 * np.log1p(g) + 0.55 * np.log(g / (1 + g)) - 2.5 / (1 + g),
        ),
    ],
)
def test_parameters_of_the_mixtures(prior, log_density):
    """Both kinds of information; the density is normalised here if it is not."""
    data = case("binomial", "logit", 80, 3)
    x = np.arange(-60.0, 110.0, 0.02)
    log_prior = log_density(np.exp(x)) + x
    log_prior -= math.log(0.02 * np.exp(log_prior).sum())
    laplace = data.laplace_of_log_g()
    base, quadratic = data.local()
    g = np.exp(x)
    for information, log_likelihood in (
        ("null", laplace(np.clip(x, -14.0, 31.5)) - 1.5 * np.maximum(x - 31.5, 0.0)),
        ("local", base - 1.5 * np.log1p(g) - quadratic / (2 * (1 + g))),
    ):
        terms = log_likelihood + log_prior
        expected = terms.max() + math.log(0.02 * np.exp(terms - terms.max()).sum())
        chosen = CoefficientPrior(prior.name, information=information, **dict(prior.parameters))
        assert data.ours(chosen) == pytest.approx(expected, abs=3e-5 if information == "null" else 1e-6)


@pytest.mark.parametrize(("n", "k"), [(800, 15), (800, 40), (150, 30)])
def test_many_columns_of_noise(n, k):
    """The integral over g reaches from g = n to where the posterior is, however fine the steps.

    Against the trapezoidal rule over given values of g, which other tests compare with scipy.
    """
    rng = np.random.default_rng(k)
    X, y = rng.normal(size=(n, k)), rng.integers(0, 2, size=n).astype(float)
    integrated = bgnlm.fit_model(y, X, family="binomial", coefficient_prior=FINITE)
    assert integrated.status is ModelStatus.OK
    log_g = np.arange(-16.0, 20.0, 0.5)
    given = [CoefficientPrior("g", g=math.exp(v)) for v in log_g]
    values = np.array([bgnlm.log_marginal(y, X, family="binomial", coefficient_prior=prior) for prior in given])
    terms = values + _hyper_g_n_4(n)[0](log_g) + log_g
    expected = terms.max() + math.log(0.5 * np.exp(terms - terms.max()).sum())
    assert integrated.log_marginal == pytest.approx(expected, abs=3e-5)
    best = bgnlm.fit_model(y, X, family="binomial", coefficient_prior="eb-local")
    assert best.status is ModelStatus.OK
    assert best.log_marginal == pytest.approx(values.max(), abs=1e-2)  # of a coarse grid


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_normal_slopes_are_the_default(family, link):
    data = case(family, link, 80, 3)
    assert data.ours("auto") == data.ours(CoefficientPrior("gaussian", variance=2.5**2))
