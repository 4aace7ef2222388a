"""Newton's method and its parts against scipy.optimize, numpy and their own interpreted form."""

import numpy as np
import pytest
from scipy.optimize import minimize

from bgnlm.kernels import families as rows
from bgnlm.kernels import glm as kernels
from bgnlm.kernels import glm_algebra as algebra
from bgnlm.kernels import glm_walk as walks
from bgnlm.likelihood.families import resolve_family
from bgnlm.likelihood.glm import kernel_data
from tests.naive_glm import PAIRS, WITH_DISPERSION, SlowGlm, log_likelihood_rows, simulate


def _data(family, link, y, X, weights, offset):
    design = np.ascontiguousarray(X.T)
    return kernel_data(resolve_family(family, link), y, weights, offset, design, design @ design.T, 0.0)


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
    assert mode.log_likelihood - mode.penalty == pytest.approx(
        again - 15.0 * coefficients[1:] @ coefficients[1:], abs=1e-6
    )


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
        assert walks.relative_pivot(work.factor, np.linalg.cholesky(data.null_information), 1) < 1e-6


@pytest.mark.parametrize("function", [algebra.accumulate, algebra.accumulate.py_func])
@pytest.mark.parametrize("n", [1, 100, 512, 513, 1300])
@pytest.mark.parametrize("size", [0, 1, 2, 15, 16, 30])
def test_information_and_gradient(size, n, function):
    if function is algebra.accumulate.py_func and (size > 16 or n > 600):
        n, size = 600, min(size, 15)
    rng = np.random.default_rng(size)
    design, score, information = rng.normal(size=(size + 3, n)), rng.normal(size=n), rng.exponential(size=n)
    columns = rng.permutation(size + 3)
    work = kernels.workspace(n, size)
    for array in (work.matrix, work.block, work.moments, work.gradient):
        array[:] = np.nan
    function(design, columns, size, score, information, work.moments, work.gradient, work.matrix, work.block)
    chosen = design[columns[:size]]
    means = chosen @ information / information.sum()
    centred = chosen - means[:, None]
    assert work.moments == pytest.approx([information.sum(), *means], rel=1e-11, abs=1e-12)
    assert work.gradient == pytest.approx([score.sum(), *(centred @ score)], rel=1e-10, abs=1e-10)
    lower = np.tril_indices(size)
    assert work.matrix[:size, :size][lower] == pytest.approx(
        ((centred * information) @ centred.T)[lower], rel=1e-11, abs=1e-11
    )


def test_information_survives_a_row_that_carries_nearly_all_of_it():
    """What the other rows say is 1e-18 of it, and would be lost if the intercept were eliminated afterwards."""
    design, information = np.array([[1.0, 2.0, 3.0, -1.0]]), np.array([1.0, 1e-18, 1e-18, 1e-18])
    work = kernels.workspace(4, 1)
    algebra.accumulate(
        design, np.zeros(1, int), 1, np.zeros(4), information, work.moments, work.gradient, work.matrix, work.block
    )
    assert work.matrix[0, 0] == pytest.approx(1e-18 * (1 + 4 + 4), rel=1e-12)


@pytest.mark.parametrize("size", [0, 1, 2, 7, 30])
def test_cholesky_and_solve(size):
    """The system of intercept and slopes, from its parts."""
    rng = np.random.default_rng(3)
    matrix, moments, right = _precision(size) + 0.1 * np.eye(size), rng.normal(size=size + 1), rng.normal(size=size + 1)
    moments[0] = 4.0
    full = np.zeros((size + 1, size + 1))
    full[1:, 1:] = matrix
    full += 4.0 * np.outer([1.0, *moments[1:]], [1.0, *moments[1:]])
    gradient = right.copy()
    gradient[1:] += moments[1:] * right[0]
    expected = np.linalg.solve(full, gradient)
    for interpreted in (False, True):
        cholesky, solve, quadratic_form, log_determinant = (
            function.py_func if interpreted else function
            for function in (algebra.cholesky, algebra.solve, algebra.quadratic_form, algebra.log_determinant)
        )
        factor, out = np.full((size, size), np.nan), np.full(size + 1, np.nan)
        assert cholesky(matrix, size, factor)
        assert np.tril(factor) == pytest.approx(np.linalg.cholesky(matrix), rel=1e-10, abs=1e-12)
        assert log_determinant(factor, size) == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-10)
        solve(moments, factor, size, right, out)
        assert out == pytest.approx(expected, rel=1e-7)
        assert quadratic_form(moments, size, right, out) == pytest.approx(gradient @ expected, rel=1e-8)


@pytest.mark.parametrize("pivot", [0.0, -1.0, np.nan])
def test_cholesky_refuses_what_is_not_positive(pivot):
    matrix = np.diag([1.0, pivot, 2.0])
    assert not algebra.cholesky(matrix, 3, np.empty((3, 3)))
    assert algebra.cholesky(matrix, 1, np.empty((3, 3)))  # the leading block is fine


def test_half_quadratic_and_dot():
    precision, b = _precision(4), np.array([9.0, 1.0, -2.0, 0.5, 3.0])
    for function in (algebra.half_quadratic, algebra.half_quadratic.py_func):
        assert function(precision, 4, b) == pytest.approx(0.5 * b[1:] @ precision @ b[1:])
        assert function(precision, 2, b) == pytest.approx(0.5 * b[1:3] @ precision[:2, :2] @ b[1:3])
    for function in (algebra.dot, algebra.dot.py_func):
        assert function(b, b) == pytest.approx(b @ b)
    for function in (algebra.total_of, algebra.total_of.py_func):
        assert function(b) == pytest.approx(b.sum())


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


def _walk(data, included, kind, scale, diagonal, dispersion=1.0, function=walks.walk_models):
    out = np.full((len(included), walks.N_STATISTICS), -7.0)
    start, space = np.zeros(len(data.design) + 1), walks.scratch(len(data.y), len(data.design))
    function(data, included, kind, scale, diagonal, dispersion, 1e-12, start, space, out)
    return out


@pytest.mark.parametrize("kind", [walks.NO_PRIOR, walks.NULL_INFORMATION, walks.DIAGONAL])
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
            walks.NO_PRIOR: 0.0 * null,
            walks.NULL_INFORMATION: scale * null,
            walks.DIAGONAL: np.diag(diagonal[columns]),
        }[kind]
        mode, coefficients = _fit(data, columns, precision)
        value = mode.log_likelihood - mode.penalty
        assert row[walks.LOG_LIKELIHOOD] - row[walks.PENALTY] == pytest.approx(value, abs=1e-5)
        assert row[walks.LOG_DETERMINANT] == pytest.approx(mode.log_determinant, abs=1e-4)
        assert row[walks.LOG_CURVATURE] == pytest.approx(mode.log_curvature, abs=1e-4)
        assert row[walks.DISPERSION] == pytest.approx(mode.dispersion, rel=1e-5)
        assert row[walks.LOG_NULL_DETERMINANT] == pytest.approx(np.linalg.slogdet(null)[1], abs=1e-9)
        # Information at the mode: its total, and the quadratic form of the slopes with the intercept projected out.
        eta = offset + coefficients[0] + coefficients[1:] @ data.design[columns]
        score, information = np.empty((2, 120))
        rows.row_terms(data.family, mode.dispersion, y, weights, eta, score, information)
        assert row[walks.TOTAL_INFORMATION] == pytest.approx(information.sum(), rel=1e-4)
        part = coefficients[1:] @ data.design[columns]
        part = part - information @ part / information.sum()
        assert row[walks.QUADRATIC] == pytest.approx(information @ part**2, rel=1e-3, abs=1e-6)
        if kind != walks.NO_PRIOR:
            assert row[walks.PIVOT] == 1.0
            continue
        # Pivots in order of the columns, each to that of the null model.
        full = np.vstack([np.ones(120), data.design[columns]])
        ours = np.diag(np.linalg.cholesky((full * information) @ full.T))[1:] ** 2
        theirs = np.diag(np.linalg.cholesky(null)) ** 2 if columns else np.ones(0)
        assert row[walks.PIVOT] == pytest.approx(min([1.0, *(ours / theirs)]), rel=1e-4)


def test_dependent_columns_get_nan_and_do_not_spoil_the_next():
    y, X, weights, offset = simulate("poisson", "log", 60, 2, seed=2)
    data = _data("poisson", "log", y, np.column_stack([X, X[:, 0] - X[:, 1]]), weights, offset)
    included = np.array([[True, True, True], [True, True, False], [False, True, True]])
    table = _walk(data, included, walks.NULL_INFORMATION, 0.1, np.empty(0))
    assert np.isnan(table[0]).all()
    assert np.isfinite(table[1:]).all()
    # The second and the third span the same space.
    for column in (walks.LOG_LIKELIHOOD, walks.PENALTY, walks.QUADRATIC, walks.TOTAL_INFORMATION):
        assert table[1, column] == pytest.approx(table[2, column], abs=1e-6)


def test_the_walk_equals_its_interpreted_form():
    y, X, weights, offset = simulate("binomial", "logit", 40, 2, seed=2)
    data = _data("binomial", "logit", y, X, weights, offset)
    given = (data, _gray(2), walks.NULL_INFORMATION, 0.1, np.empty(0))
    assert _walk(*given, function=walks.walk_models.py_func) == pytest.approx(_walk(*given), rel=1e-9)
