"""Banded algebra against dense NumPy and against its own interpreted form."""

import math

import numpy as np
import pytest

from bgnlm.kernels import banded
from tests.naive_latent import dense_band

SHAPES = [(1, 1), (1, 4), (2, 6), (3, 2), (7, 1), (8, 3), (12, 6), (17, 5), (30, 2), (30, 4), (30, 6)]
FORMS = ["compiled", "interpreted"]


def _form(name, form):
    function = getattr(banded, name)
    return function if form == "compiled" else function.py_func


def _band(n, width, seed=0, zeros=0.0):
    """Positive definite; what lies outside the matrix is not a number."""
    rng = np.random.default_rng(1000 * n + 10 * width + seed)
    factor = 0.4 * rng.normal(size=(n, width)) * (rng.random((n, width)) >= zeros)
    factor[:, 0] = 0.5 + rng.random(n)
    lower = np.tril(dense_band(factor))
    matrix = lower @ lower.T
    band = np.full((n, width), np.nan)
    for i in range(n):
        for d in range(min(i, width - 1) + 1):
            band[i, d] = matrix[i, i - d]
    return band, matrix


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("n", "width"), SHAPES)
def test_factor_and_solutions(n, width, form):
    band, matrix = _band(n, width)
    factor = band.copy()
    log_determinant = _form("factorise_band", form)(factor)
    lower = np.tril(dense_band(factor))
    assert log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-9)
    assert lower == pytest.approx(np.linalg.cholesky(matrix), abs=1e-9)
    for n_columns in (0, 1, 3):
        values = np.random.default_rng(n_columns).normal(size=(n, n_columns))
        for name, triangle in (("solve_lower", lower), ("solve_upper", lower.T)):
            ours = values.copy()
            _form(name, form)(factor, ours)
            assert triangle @ ours == pytest.approx(values, abs=1e-9)
    vector = np.random.default_rng(1).normal(size=n)
    for name, triangle in (("solve_lower_vector", lower), ("solve_upper_vector", lower.T)):
        ours = vector.copy()
        _form(name, form)(factor, ours)
        assert triangle @ ours == pytest.approx(vector, abs=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("swings", [False, True])
@pytest.mark.parametrize("distances", [[1.0] * 6, [1.0, 1.0, 3.0, 1.0, 2.0], []])
def test_precision_of_a_markov_process(distances, swings, form):
    positions = np.concatenate([[2.0], 2.0 + np.cumsum(distances)])
    apart = np.abs(positions[:, None] - positions)
    covariance = np.exp(-0.3 * apart) * (np.cos(np.pi * apart) if swings else 1.0) / 1.7
    band = _form("markov_band", form)(positions, 1.7, -0.3, swings)
    assert dense_band(band) == pytest.approx(np.linalg.inv(covariance), abs=1e-10)


@pytest.mark.parametrize("form", FORMS)
def test_weighted_products_go_to_the_lower_triangle(form):
    rng = np.random.default_rng(5)
    weights, rows = rng.normal(size=9), rng.normal(size=(3, 9))
    matrix = rng.normal(size=(4, 4))
    expected = matrix.copy()
    expected[:3, :3] -= np.tril(rows * weights @ rows.T)
    _form("add_products", form)(-1.0, weights, rows, matrix)
    assert matrix == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(("n", "width"), SHAPES)
def test_product_with_a_vector(n, width, form):
    band, matrix = _band(n, width)
    values, out = np.random.default_rng(3).normal(size=n), np.full(n, np.nan)
    _form("multiply_band", form)(band, values, out)
    assert out == pytest.approx(matrix @ values, rel=1e-11, abs=1e-11)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n", [1, 2, 5, 12])
def test_dense_factor_and_solutions(n, form):
    rng = np.random.default_rng(n)
    root = rng.normal(size=(n, n + 2))
    matrix = root @ root.T
    factor = matrix.copy()
    log_determinant = _form("factorise", form)(factor)
    lower = np.tril(factor)
    assert log_determinant == pytest.approx(np.linalg.slogdet(matrix)[1], abs=1e-9)
    assert lower == pytest.approx(np.linalg.cholesky(matrix), abs=1e-9)
    values = rng.normal(size=n)
    for name, triangle in (("solve_dense_lower", lower), ("solve_dense_upper", lower.T)):
        ours = values.copy()
        _form(name, form)(factor, ours)
        assert triangle @ ours == pytest.approx(values, abs=1e-9)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "matrix",
    [np.array([[1.0, 2.0], [2.0, 1.0]]), np.zeros((3, 3)), np.full((2, 2), np.nan), -np.eye(2), np.ones((2, 2))],
)
def test_what_is_not_positive_has_no_determinant(matrix, form):
    n = len(matrix)
    band = np.array([[matrix[i, i - d] if d <= i else 0.0 for d in range(n)] for i in range(n)])
    assert math.isnan(_form("factorise_band", form)(band))
    assert math.isnan(_form("factorise", form)(matrix.copy()))


def _inverse_rows(factor, n_rows, longest, form, negligible=None):
    """All rows of the inverse, from rows that are kept for a while only."""
    n, width = factor.shape
    rows, lengths = banded.empty_rows(n, width, n_rows, longest)
    rows[:] = np.nan
    diagonal, found, kept = np.zeros(n), np.zeros((n, n)), np.zeros(n, dtype=int)
    for i in range(n - 1, -1, -1):
        _form("inverse_row", form)(factor, i, rows, lengths)
        place = i % len(rows)
        diagonal[i] = rows[place, 0]
        if negligible is not None:
            _form("trim_row", form)(diagonal, i, rows, lengths, negligible)
        kept[i] = lengths[place]
        found[i, i : i + kept[i]] = rows[place, : kept[i]]
    return found, kept


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("zeros", [0.0, 0.5])
@pytest.mark.parametrize(("n", "width"), SHAPES)
def test_rows_of_the_inverse(n, width, zeros, form):
    band, matrix = _band(n, width, zeros=zeros)
    _form("factorise_band", form)(band)
    found, kept = _inverse_rows(band, 2, n, form)
    expected = np.triu(np.linalg.inv(matrix))
    for i in range(n):
        rest = expected[i, i + kept[i] :]
        assert found[i, i : i + kept[i]] == pytest.approx(expected[i, i : i + kept[i]], rel=1e-6, abs=1e-9)
        assert np.abs(rest).max(initial=0.0) <= 1e-9 * abs(expected[i, i])


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("negligible", [1e-2, 1e-5, 1e-9])
@pytest.mark.parametrize(("n", "width"), [(30, 2), (30, 3), (60, 4)])
def test_trimmed_rows_of_the_inverse(n, width, negligible, form):
    """Rows end where correlations are negligible, and what was cut off does not add up in the others."""
    rng = np.random.default_rng(n)
    band = -0.3 * rng.random((n, width)) / width
    band[:, 0] = 1.0
    matrix = dense_band(band)
    banded.factorise_band(band)
    found, kept = _inverse_rows(band, 1, n, form, negligible)
    expected = np.linalg.inv(matrix)
    scale = np.sqrt(np.diag(expected))
    correlations = np.triu(expected / np.outer(scale, scale))
    assert found / np.outer(scale, scale) == pytest.approx(correlations, abs=2 * negligible)
    assert kept.mean() < 0.9 * n / 2  # rows of a triangle
    for i in range(n):  # nothing was cut off that matters
        assert np.abs(correlations[i, i + kept[i] :]).max(initial=0.0) <= 2 * negligible


def test_rows_longer_than_the_longest_are_cut():
    band, matrix = _band(20, 2)
    banded.factorise_band(band)
    found, kept = _inverse_rows(band, 1, 4, "compiled")
    expected = np.linalg.inv(matrix)
    assert kept.max() == 4
    for i in range(20):  # of a tridiagonal matrix every row follows from the next
        assert found[i, i : i + 4] == pytest.approx(expected[i, i : i + 4], rel=1e-8)


@pytest.mark.parametrize(("n", "width", "block", "longest"), [(0, 1, 0, 4000), (1, 1, 1, 10), (50, 4, 2, 10)])
def test_room_for_rows(n, width, block, longest):
    rows, lengths = banded.empty_rows(n, width, block, longest)
    assert rows.shape == (max(width + block, 1), max(min(n, longest), 1))
    assert (lengths == np.zeros(len(rows))).all()
