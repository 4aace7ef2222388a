"""The Gram kernels against their slow twins and against their own interpreted form."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bgnlm.kernels import gram as kernels
from tests import naive

ERROR = 1e-14


def _gram(n, p, seed, rank=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank or p)) @ rng.normal(size=(rank or p, p))
    y = X @ rng.normal(size=p) + rng.normal(size=n)
    Z = np.column_stack([X, y])
    Z -= Z.mean(axis=0)
    Z /= np.linalg.norm(Z, axis=0)
    return Z.T @ Z, Z


def _all(gram, max_size=None, function=kernels.eliminate_all_subsets):
    p = len(gram) - 1
    residuals, pivots, determinants = np.full(2**p, -1.0), np.zeros(2**p, np.float32), np.zeros(2**p)
    function(gram, p if max_size is None else max_size, ERROR, residuals, pivots, determinants)
    return residuals, pivots, determinants


@settings(deadline=None, max_examples=40)
@given(p=st.integers(0, 7), n=st.integers(12, 60), seed=st.integers(0, 10**6))
def test_enumeration_against_normal_equations(p, n, seed):
    gram, _ = _gram(n, p, seed)
    residuals, pivots, determinants = _all(gram)
    for mask, subset in enumerate(naive.all_subsets(p)):
        block = gram[np.ix_(subset, subset)]
        rounding = 1e-9 + 10.0 * ERROR / float(pivots[mask])
        assert residuals[mask] == pytest.approx(naive.subset_residual(gram, subset), abs=rounding)
        assert determinants[mask] == pytest.approx(np.linalg.slogdet(block)[1] if subset else 0.0, abs=10 * rounding)
        # Eliminated from the highest column to the lowest.
        factor = np.diag(np.linalg.cholesky(block[::-1, ::-1])) ** 2 if subset else np.ones(1)
        assert pivots[mask] == pytest.approx(min(1.0, factor.min()), rel=1e-4)


def test_enumeration_equals_its_interpreted_form():
    gram, _ = _gram(30, 6, 1)
    for fast, slow in zip(_all(gram), _all(gram, function=kernels.eliminate_all_subsets.py_func), strict=True):
        assert np.allclose(fast, slow, rtol=1e-12, atol=1e-14)


def test_models_above_the_size_limit_are_not_touched():
    gram, _ = _gram(30, 6, 2)
    residuals, *_ = _all(gram, max_size=2)
    sizes = np.array([len(subset) for subset in naive.all_subsets(6)])
    assert (residuals[sizes <= 2] >= 0).all()
    assert (residuals[sizes > 2] == kernels.UNDECIDED).all()


def test_models_whose_rank_rounding_decides_are_left_undecided():
    gram, Z = _gram(30, 5, 3)
    duplicated = np.column_stack([Z[:, :5], Z[:, 1], Z[:, 5]])
    gram = duplicated.T @ duplicated
    residuals, *_ = _all(gram)
    for mask, subset in enumerate(naive.all_subsets(6)):
        assert (residuals[mask] == kernels.UNDECIDED) == ({1, 5} <= set(subset))


@settings(deadline=None, max_examples=40)
@given(p=st.sampled_from([1, 3, 8, 63, 64, 65, 130]), seed=st.integers(0, 10**6))
def test_separate_subsets_of_any_width(p, seed):
    from bgnlm.likelihood.subsets import pack

    rng = np.random.default_rng(seed)
    gram, _ = _gram(200, p, seed)
    included = rng.random((10, p)) < min(0.5, 8 / p)
    residuals, pivots, determinants = np.empty(10), np.empty(10), np.empty(10)
    kernels.eliminate_subsets(gram, pack(included), ERROR, residuals, pivots, determinants)
    for row, residual, determinant in zip(included, residuals, determinants, strict=True):
        subset = np.flatnonzero(row)
        assert residual == pytest.approx(naive.subset_residual(gram, subset), abs=1e-9)
        block = gram[np.ix_(subset, subset)]
        assert determinant == pytest.approx(np.linalg.slogdet(block)[1] if len(subset) else 0.0, abs=1e-7)
    assert (pivots > 0).all()


def test_separate_subsets_equal_their_interpreted_form():
    gram, _ = _gram(40, 9, 4)
    masks = np.arange(0, 512, 7, dtype=np.uint64)[:, None]
    results = []
    for function in (kernels.eliminate_subsets, kernels.eliminate_subsets.py_func):
        out = np.empty(len(masks)), np.empty(len(masks)), np.empty(len(masks))
        function(gram, masks, ERROR, *out)
        results.append(np.array(out))
    assert np.allclose(results[0], results[1], rtol=1e-12, atol=1e-14)


def test_determinants_of_many_small_pivots_do_not_underflow():
    p = 60
    gram = np.full((p + 1, p + 1), 1.0 - 1e-6)
    np.fill_diagonal(gram, 1.0)
    columns = np.arange(p)
    _, _, determinant = kernels.eliminate_subset(gram, columns, p, ERROR, np.empty((p, p + 1)))
    assert determinant == pytest.approx(np.linalg.slogdet(gram[:p, :p])[1], rel=1e-6)


def _fit(rows, noise, columns, function=kernels.fit_subset):
    size = len(columns)
    q, r, inverse, slopes = np.empty((size, len(rows))), np.empty((size, size)), np.empty((size, size)), np.empty(size)
    found = function(rows, noise, np.array(columns, dtype=np.int64), size, q, r, inverse, slopes)
    return *found, slopes, inverse


@pytest.mark.parametrize("function", [kernels.fit_subset, kernels.fit_subset.py_func])
@pytest.mark.parametrize("closeness", [1e-1, 1e-3, 1e-5, 1e-7, 1e-9])
def test_fits_are_good_to_the_precision_of_the_data(closeness, function):
    """Two nearly equal columns whose difference is the law; their pivot is about closeness^2."""
    rng = np.random.default_rng(6)
    x, z, e = rng.normal(size=(3, 300))
    Z = np.column_stack([x, x + closeness * z, z + 0.1 * e])
    Z -= Z.mean(axis=0)
    exact_rss = naive.least_squares(Z[:, 2], np.column_stack([x, z]))[1]
    norms = np.linalg.norm(Z, axis=0)
    triangle = np.linalg.qr(Z / norms, mode="r")
    residual, floor, slopes, inverse = _fit(triangle, np.full(3, 1e-14), [0, 1], function)
    assert residual == pytest.approx(exact_rss / norms[2] ** 2, rel=1e-6)
    assert floor == pytest.approx(1e-28 * (1 + (slopes**2).sum()))
    expected = np.linalg.lstsq(triangle[:, :2], triangle[:, 2], rcond=None)[0]
    assert slopes == pytest.approx(expected, rel=1e-4)
    q = triangle[:, :2] @ inverse
    assert q.T @ q == pytest.approx(np.eye(2), abs=1e-4)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_rank_does_not_depend_on_the_order_of_the_columns(order):
    rng = np.random.default_rng(7)
    a, b = rng.normal(size=(2, 50))
    for distance, dependent in ((1e-9, False), (1e-12, False), (1e-17, True), (0.0, True)):
        Z = np.column_stack([a, b, a - 2 * b + distance * rng.normal(size=50), rng.normal(size=50)])
        Z /= np.linalg.norm(Z, axis=0)
        triangle = np.linalg.qr(Z, mode="r")
        residual, *_ = _fit(triangle, np.full(4, 1e-14), list(order))
        assert (residual == kernels.RANK_DEFICIENT) == dependent


def test_listed_models_and_averaged_slopes():
    gram, Z = _gram(50, 5, 8)
    triangle, noise = np.linalg.qr(Z, mode="r"), np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]) * 1e-14
    models, weights = np.array([0, 1, 21, 31]), np.array([0.4, 0.3, 0.2, 0.1])
    residuals, floors, determinants = np.empty((3, 4))
    slopes, expected = np.full((4, 5), np.nan), np.zeros(5)
    kernels.fit_subsets(triangle, noise, models, residuals, floors, determinants, slopes)
    for model, weight, residual, floor, determinant in zip(
        models, weights, residuals, floors, determinants, strict=True
    ):
        columns = list(naive.all_subsets(5)[model])
        block = gram[np.ix_(columns, columns)]
        assert determinant == pytest.approx(np.linalg.slogdet(block)[1] if columns else 0.0, abs=1e-10)
        assert residual == pytest.approx(naive.subset_residual(gram, columns), abs=1e-12)
        solution = np.linalg.lstsq(Z[:, columns], Z[:, 5], rcond=None)[0] if columns else np.zeros(0)
        assert floor == pytest.approx(36e-28 + ((noise[columns] * solution) ** 2).sum(), rel=1e-9)
        expected[columns] += weight * solution
    assert weights @ slopes == pytest.approx(expected, abs=1e-12)


def test_subset_sizes():
    sizes = np.empty(256, np.int8)
    kernels.subset_sizes(sizes)
    assert sizes.tolist() == [bin(i).count("1") for i in range(256)]
