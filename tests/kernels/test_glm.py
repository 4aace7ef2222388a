"""Newton's method and its parts against scipy.optimize, numpy and their own interpreted form."""

import numpy as np
import pytest
from scipy import special
from scipy.optimize import minimize

from bgnlm.kernels import families as rows
from bgnlm.kernels import glm as kernels
from bgnlm.likelihood.families import LINKS, Family
from tests.kernels.test_families import PAIRS, WITH_DISPERSION

H = 1e-5


def log_likelihood_rows(family, link, y, eta, dispersion):
    """Log-likelihood of each row with what depends on the dispersion, for complex arguments too."""
    mean = np.exp(eta)
    match family, link:
        case _, "logit":
            return y * eta - np.log1p(mean)
        case _, "probit":
            return y * special.log_ndtr(eta) + (1 - y) * special.log_ndtr(-eta)
        case _, "cloglog":
            return y * np.log(-np.expm1(-mean)) - (1 - y) * mean
        case "poisson", _:
            return y * eta - mean - special.gammaln(y + 1)
        case "gamma", _:
            d = dispersion
            return d * (np.log(d) - eta) - special.loggamma(d) + (d - 1) * np.log(y) - d * y / mean
        case _:
            d = dispersion
            constant = special.loggamma(y + d) - special.loggamma(d) - special.gammaln(y + 1)
            return constant + d * np.log(d) + y * eta - (y + d) * np.log(d + mean)


class SlowGlm:
    """Log posterior of (intercept, slopes, log dispersion), derivatives by complex steps and differences."""

    def __init__(self, family, link, y, X, *, weights=None, offset=None, precision=None):
        self.pair, self.y = (family, link), y
        self.weights = np.ones(len(y)) if weights is None else weights
        self.offset = np.zeros(len(y)) if offset is None else offset
        self.design = np.column_stack([np.ones(len(y)), X])
        self.size = self.design.shape[1] - 1
        self.has_dispersion = family in ("gamma", "negative_binomial")
        self.precision = np.zeros((self.size, self.size)) if precision is None else precision

    def log_likelihood(self, theta):
        eta = self.offset + self.design @ theta[: self.size + 1]
        dispersion = np.exp(theta[self.size + 1]) if self.has_dispersion else 1.0
        return self.weights @ log_likelihood_rows(*self.pair, self.y, eta, dispersion)

    def log_posterior(self, theta):
        slopes = theta[1 : self.size + 1]
        return self.log_likelihood(theta) - 0.5 * slopes @ self.precision @ slopes

    def gradient(self, theta):
        steps = 1e-30j * np.eye(len(theta))
        return np.array([self.log_posterior(theta + step).imag / 1e-30 for step in steps])

    def hessian(self, theta):
        steps = H * np.eye(len(theta))
        matrix = np.array([(self.gradient(theta + s) - self.gradient(theta - s)) / (2 * H) for s in steps])
        return 0.5 * (matrix + matrix.T)

    def mode(self, start=None):
        """The maximum by scipy, then three plain Newton steps for the last digits."""
        n_parameters = self.size + 1 + self.has_dispersion
        if start is None:
            mean = self.weights @ self.y / self.weights.sum()
            start = np.zeros(n_parameters)
            start[0] = Family(*self.pair).linear_predictor(mean) - self.weights @ self.offset / self.weights.sum()
        with np.errstate(over="ignore", invalid="ignore"):
            found = minimize(
                lambda theta: -self.log_posterior(theta), start, jac=lambda theta: -self.gradient(theta), method="BFGS"
            )
        theta = found.x
        for _ in range(3):
            theta = theta - np.linalg.solve(self.hessian(theta), self.gradient(theta))
        return theta

    def log_determinant(self, theta):
        sign, value = np.linalg.slogdet(-self.hessian(theta))
        assert sign > 0
        return value


def simulate(family, link, n, k, seed=0, *, weighted=True, shape=2.0):
    """Response, columns, weights, offset."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, k))
    offset = 0.3 * rng.normal(size=n)
    eta = 0.4 + offset + X @ (0.5 * (-1.0) ** np.arange(k) / np.sqrt(np.arange(1, k + 1)))
    weights = rng.integers(1, 4, size=n).astype(float) if weighted else np.ones(n)
    mean = Family(family, link).mean(eta)
    match family:
        case "binomial":
            y = rng.binomial(weights.astype(int), mean) / weights
        case "poisson":
            y = rng.poisson(mean).astype(float)
        case "gamma":
            y = rng.gamma(shape, mean / shape)
        case _:
            y = rng.negative_binomial(shape, shape / (shape + mean)).astype(float)
    return y, X, weights, offset


def _data(family, link, y, X, weights, offset):
    design = np.ascontiguousarray(X.T)
    return kernels.GlmData(LINKS[family][link], y, weights, offset, design, design @ design.T)


def _fit(data, columns, precision, *, start=None, dispersion=1.0, enough=1e-12, function=kernels.fit_mode):
    size = len(columns)
    coefficients = np.zeros(size + 1) if start is None else np.array(start, dtype=float)
    work = kernels.workspace(len(data.y), size)
    columns = np.array(columns, dtype=np.int64)
    mode = function(data, dispersion, columns, size, precision, enough, coefficients, work)
    return mode, coefficients


def _constants(data, dispersion):
    return rows.log_constants(data.family, dispersion, data.y, data.weights)


def _precision(k, seed=8):
    root = np.random.default_rng(seed).normal(size=(k, k + 2))
    return root @ root.T


@pytest.mark.parametrize("with_prior", [False, True])
@pytest.mark.parametrize("k", [0, 1, 4])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_mode_against_scipy(family, link, k, with_prior):
    y, X, weights, offset = simulate(family, link, 90, k + 1, seed=k)
    data = _data(family, link, y, X, weights, offset)
    columns = list(range(1, k + 1))  # not the first column
    precision = _precision(k) if with_prior else np.zeros((k, k))
    mode, coefficients = _fit(data, columns, precision)
    slow = SlowGlm(family, link, y, X[:, columns], weights=weights, offset=offset, precision=precision)
    theta = slow.mode()
    assert mode.converged
    assert coefficients == pytest.approx(theta[: k + 1], abs=1e-6)
    if slow.has_dispersion:
        assert mode.dispersion == pytest.approx(np.exp(theta[-1]), rel=1e-6)
    likelihood = mode.log_likelihood + (_constants(data, mode.dispersion) if family != "binomial" else 0.0)
    assert likelihood == pytest.approx(slow.log_likelihood(theta), abs=1e-6)
    assert mode.penalty == pytest.approx(0.5 * theta[1 : k + 1] @ precision @ theta[1 : k + 1], abs=1e-6)
    assert mode.log_determinant == pytest.approx(slow.log_determinant(theta), abs=1e-6)
    if slow.has_dispersion:
        full = slow.hessian(theta)
        schur = full[-1, -1] - full[-1, :-1] @ np.linalg.solve(full[:-1, :-1], full[:-1, -1])
        assert mode.log_curvature == pytest.approx(np.log(-schur), abs=1e-6)
    else:
        assert mode.log_curvature == 0.0


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("family", "level"), [("gamma", 4.0), ("negative_binomial", 0.0)])
def test_log_likelihood_and_constants_belong_to_one_dispersion(family, level, seed):
    """Either is steep in the dispersion, in proportion to the number of rows; their sum is not."""
    y, X, weights, offset = simulate(family, "log", 2000, 3, seed=seed, shape=30.0)
    data = _data(family, "log", y, X, weights, offset + level)
    mode, coefficients = _fit(data, [0, 1, 2], 30.0 * np.eye(3), enough=1e-9)
    eta = data.offset + coefficients[0] + coefficients[1:] @ data.design
    again = rows.row_terms(data.family, mode.dispersion, y, weights, eta, *np.empty((2, 2000)))
    assert mode.log_likelihood == pytest.approx(again, abs=1e-6)


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_warm_and_cold_starts_meet(family, link):
    y, X, weights, offset = simulate(family, link, 70, 3, seed=4)
    data = _data(family, link, y, X, weights, offset)
    precision = _precision(3)
    cold, at_cold = _fit(data, [0, 1, 2], precision)
    warm, at_warm = _fit(data, [0, 1, 2], precision, start=at_cold + 0.1, dispersion=cold.dispersion)
    assert cold.converged
    assert warm.converged
    assert at_warm == pytest.approx(at_cold, abs=1e-7)
    assert warm.log_likelihood - warm.penalty == pytest.approx(cold.log_likelihood - cold.penalty, abs=1e-8)
    assert warm.log_determinant == pytest.approx(cold.log_determinant, abs=1e-7)
    assert warm.steps <= cold.steps
    at_mode, _ = _fit(data, [0, 1, 2], precision, start=at_warm, dispersion=warm.dispersion, enough=1e-9)
    assert at_mode.steps == 1  # nothing left to do


@pytest.mark.parametrize(
    "start", [(-6.0, 0.0, 0.0, 0.0), (-6.0, 3.0, -3.0, 3.0), (6.0, -3.0, 3.0, -3.0), (0.0, 8.0, 8.0, 8.0)]
)
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_bad_starts_converge_by_halving_steps(family, link, start):
    y, X, weights, offset = simulate(family, link, 70, 3, seed=4)
    data = _data(family, link, y, X, weights, offset)
    precision = _precision(3)
    good, at_good = _fit(data, [0, 1, 2], precision)
    bad, at_bad = _fit(data, [0, 1, 2], precision, start=start, dispersion=1.0)
    assert bad.converged
    assert at_bad == pytest.approx(at_good, abs=1e-6)
    assert bad.dispersion == pytest.approx(good.dispersion, rel=1e-6)


def test_undamped_newton_diverges_from_such_a_start():
    """So that the test above says something."""
    y, X, weights, offset = simulate("poisson", "log", 70, 3, seed=4)
    slow = SlowGlm("poisson", "log", y, X, weights=weights, offset=offset, precision=_precision(3))
    theta = np.array([-6.0, 0.0, 0.0, 0.0])
    step = -np.linalg.solve(slow.hessian(theta), slow.gradient(theta))
    with np.errstate(over="ignore"):
        assert slow.log_posterior(theta + step) < slow.log_posterior(theta) - 1e6


def test_a_fit_without_a_mode_does_not_claim_one():
    """Separated classes and no prior: the estimate runs away, and the pivot says so."""
    x = np.linspace(-1.0, 1.0, 40)
    data = _data("binomial", "logit", (x > 0.1).astype(float), x[:, None], np.ones(40), np.zeros(40))
    none, columns = np.zeros((1, 1)), np.zeros(1, dtype=np.int64)
    work, coefficients = kernels.workspace(40, 1), np.zeros(2)
    mode = kernels.fit_mode(data, 1.0, columns, 1, none, 1e-9, coefficients, work)
    assert abs(mode.log_likelihood) < 1e-3
    if mode.converged:
        assert kernels.relative_pivot(data, columns, 1, work) < 1e-6


@pytest.mark.parametrize("function", [kernels.accumulate_information, kernels.accumulate_information.py_func])
@pytest.mark.parametrize("n", [1, 100, 512, 513, 1300])
@pytest.mark.parametrize("size", [0, 1, 15, 16, 17, 30])
def test_information_matrix(size, n, function):
    if function is kernels.accumulate_information.py_func and (size > 17 or n > 600):
        n, size = 600, min(size, 17)
    rng = np.random.default_rng(size)
    design, information = rng.normal(size=(size + 3, n)), rng.exponential(size=n)
    columns = rng.permutation(size + 3)
    work = kernels.workspace(n, size + 3)
    work.matrix[:], work.block[:] = np.nan, np.nan
    function(design, columns, size, information, work.matrix, work.block)
    full = np.vstack([np.ones(n), design[columns[:size]]])
    expected = (full * information) @ full.T
    lower = np.tril_indices(size + 1)
    assert work.matrix[lower] == pytest.approx(expected[lower], rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_cholesky_and_solve(size):
    matrix = _precision(size) + 0.1 * np.eye(size)
    right = np.random.default_rng(3).normal(size=size)
    for cholesky, solve in ((kernels.cholesky, kernels.solve), (kernels.cholesky.py_func, kernels.solve.py_func)):
        factor, out = np.full((size, size), np.nan), np.full(size, np.nan)
        assert cholesky(matrix, size, factor)
        assert np.tril(factor) == pytest.approx(np.linalg.cholesky(matrix), rel=1e-10, abs=1e-12)
        solve(factor, size, right, out)
        assert out == pytest.approx(np.linalg.solve(matrix, right), rel=1e-8)


@pytest.mark.parametrize("pivot", [0.0, -1.0, np.nan])
def test_cholesky_refuses_what_is_not_positive(pivot):
    matrix = np.diag([1.0, pivot, 2.0])
    assert not kernels.cholesky(matrix, 3, np.empty((3, 3)))
    assert kernels.cholesky(matrix, 1, np.empty((3, 3)))  # the leading block is fine


def test_half_quadratic_and_dot():
    precision, b = _precision(4), np.array([9.0, 1.0, -2.0, 0.5, 3.0])
    for function in (kernels.half_quadratic, kernels.half_quadratic.py_func):
        assert function(precision, 4, b) == pytest.approx(0.5 * b[1:] @ precision @ b[1:])
        assert function(precision, 2, b) == pytest.approx(0.5 * b[1:3] @ precision[:2, :2] @ b[1:3])
    for function in (kernels.dot, kernels.dot.py_func):
        assert function(b, b, 1, 3) == pytest.approx(5.0)


@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_compiled_fit_equals_its_interpreted_form(family, link):
    y, X, weights, offset = simulate(family, link, 25, 2, seed=1)
    data = _data(family, link, y, X, weights, offset)
    fast, at_fast = _fit(data, [0, 1], _precision(2))
    slow, at_slow = _fit(data, [0, 1], _precision(2), function=kernels.fit_mode.py_func)
    assert fast == pytest.approx(slow, rel=1e-9)
    assert at_fast == pytest.approx(at_slow, rel=1e-9)
    work = kernels.workspace(25, 2)
    out, again = np.array([0.1, 0.2, 0.3]), np.array([0.1, 0.2, 0.3])
    columns = np.array([0, 1])
    compiled = kernels.fit_coefficients(data, 2.0, columns, 2, _precision(2), 1e-9, out, work)
    interpreted = kernels.fit_coefficients.py_func(data, 2.0, columns, 2, _precision(2), 1e-9, again, work)
    assert compiled == pytest.approx(interpreted, rel=1e-9)
    assert out == pytest.approx(again, rel=1e-9)


@pytest.mark.parametrize("shape", [0.2, 3.0, 500.0])
@pytest.mark.parametrize(("family", "link"), WITH_DISPERSION)
def test_dispersion_against_scipy(family, link, shape):
    """At a given linear predictor; from starts far away on either side."""
    n = 400
    rng = np.random.default_rng(9)
    eta = rng.normal(size=n) + 5.0
    mean = np.exp(eta)
    if family == "gamma":
        y = rng.gamma(shape, mean / shape)
    else:
        y = rng.negative_binomial(shape, shape / (shape + mean)).astype(float)
    weights = rng.integers(0, 3, size=n).astype(float)
    found = minimize(
        lambda t: -(weights @ log_likelihood_rows(family, link, y, eta, np.exp(t[0]))) / n, [0.0], tol=1e-12
    )
    data = _data(family, link, y, np.empty((n, 0)), weights, np.zeros(n))
    work = kernels.workspace(n, 0)
    work.eta[:] = eta
    for start in (1e-3, 1.0, 1e5):
        for function in (kernels.best_dispersion, kernels.best_dispersion.py_func):
            # the larger, the flatter the likelihood that the reference maximises
            assert function(data, start, work) == pytest.approx(
                np.exp(found.x[0]), rel=1e-4 + 1e-5 * np.exp(found.x[0])
            )


def _gray(p):
    """All models as rows of Booleans, each a neighbour of the one before."""
    steps = np.arange(2**p)
    return (((steps ^ (steps >> 1))[:, None] >> np.arange(p)) & 1).astype(bool)


def _walk(data, included, kind, scale, diagonal, dispersion=1.0):
    out = np.full((len(included), kernels.N_STATISTICS), -7.0)
    start = np.zeros(len(data.design) + 1)
    kernels.walk_models(data, included, kind, scale, diagonal, start, dispersion, 1e-12, out)
    return out


@pytest.mark.parametrize("kind", [kernels.NO_PRIOR, kernels.NULL_INFORMATION, kernels.DIAGONAL])
@pytest.mark.parametrize(("family", "link"), PAIRS)
def test_a_walk_equals_one_model_at_a_time(family, link, kind):
    y, X, weights, offset = simulate(family, link, 120, 4, seed=2)
    data = _data(family, link, y, X, weights, offset)
    scale, diagonal = 0.05, np.array([1.0, 2.0, 3.0, 4.0])
    included = _gray(4)
    table = _walk(data, included, kind, scale, diagonal)
    for model, row in zip(included, table, strict=True):
        columns = np.flatnonzero(model).tolist()
        alone = _walk(data, model[None, :], kind, scale, diagonal)[0]
        assert row == pytest.approx(alone, rel=1e-6, abs=1e-5)
        null = data.null_information[np.ix_(columns, columns)]
        precision = {
            kernels.NO_PRIOR: 0.0 * null,
            kernels.NULL_INFORMATION: scale * null,
            kernels.DIAGONAL: np.diag(diagonal[columns]),
        }[kind]
        mode, coefficients = _fit(data, columns, precision)
        value = mode.log_likelihood - mode.penalty
        assert row[kernels.LOG_LIKELIHOOD] - row[kernels.PENALTY] == pytest.approx(value, abs=1e-5)
        assert row[kernels.LOG_DETERMINANT] == pytest.approx(mode.log_determinant, abs=1e-4)
        assert row[kernels.LOG_CURVATURE] == pytest.approx(mode.log_curvature, abs=1e-4)
        assert row[kernels.DISPERSION] == pytest.approx(mode.dispersion, rel=1e-5)
        assert row[kernels.LOG_NULL_DETERMINANT] == pytest.approx(np.linalg.slogdet(null)[1], abs=1e-9)
        # Information at the mode: its total, and the quadratic form of the slopes with the intercept projected out.
        eta = offset + coefficients[0] + coefficients[1:] @ data.design[columns]
        score, information = np.empty((2, 120))
        rows.row_terms(data.family, mode.dispersion, y, weights, eta, score, information)
        assert row[kernels.TOTAL_INFORMATION] == pytest.approx(information.sum(), rel=1e-4)
        part = coefficients[1:] @ data.design[columns]
        part = part - information @ part / information.sum()
        assert row[kernels.QUADRATIC] == pytest.approx(information @ part**2, rel=1e-3, abs=1e-6)
        if kind != kernels.NO_PRIOR:
            assert row[kernels.PIVOT] == 1.0
            continue
        # Pivots in order of the columns, each to that of the null model.
        full = np.vstack([np.ones(120), data.design[columns]])
        ours = np.diag(np.linalg.cholesky((full * information) @ full.T))[1:] ** 2
        theirs = np.diag(np.linalg.cholesky(null)) ** 2 if columns else np.ones(0)
        assert row[kernels.PIVOT] == pytest.approx(min([1.0, *(ours / theirs)]), rel=1e-4)


def test_dependent_columns_get_nan_and_do_not_spoil_the_next():
    y, X, weights, offset = simulate("poisson", "log", 60, 2, seed=2)
    data = _data("poisson", "log", y, np.column_stack([X, X[:, 0] - X[:, 1]]), weights, offset)
    included = np.array([[True, True, True], [True, True, False], [False, True, True]])
    table = _walk(data, included, kernels.NULL_INFORMATION, 0.1, np.empty(0))
    assert np.isnan(table[0]).all()
    assert np.isfinite(table[1:]).all()
    # The second and the third span the same space.
    for column in (kernels.LOG_LIKELIHOOD, kernels.PENALTY, kernels.QUADRATIC, kernels.TOTAL_INFORMATION):
        assert table[1, column] == pytest.approx(table[2, column], abs=1e-6)


def test_the_walk_equals_its_interpreted_form():
    y, X, weights, offset = simulate("binomial", "logit", 40, 2, seed=2)
    data = _data("binomial", "logit", y, X, weights, offset)
    out, start = np.empty((4, kernels.N_STATISTICS)), np.zeros(3)
    kernels.walk_models.py_func(data, _gray(2), kernels.NULL_INFORMATION, 0.1, np.empty(0), start, 1.0, 1e-12, out)
    assert out == pytest.approx(_walk(data, _gray(2), kernels.NULL_INFORMATION, 0.1, np.empty(0)), rel=1e-9)
