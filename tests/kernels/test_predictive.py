"""The kernels of prediction against numpy and scipy, and against their own interpreted form."""

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy import stats

from bgnlm.kernels import predictive as kernels
from bgnlm.likelihood.families import Family
from bgnlm.posterior import predict
from tests import naive_predict as naive

INF = math.inf
LINKS = ("logit", "probit", "cloglog")


def _models(n_features, sizes, seed=0):
    """Members, coefficients and upper triangular factors of models of these sizes."""
    rng = np.random.default_rng(seed)
    members = [np.sort(rng.choice(n_features, size, replace=False)) for size in sizes]
    coefficients = [rng.normal(size=size + 1) for size in sizes]
    factors = [np.triu(rng.normal(size=(size + 1, size + 1))) for size in sizes]
    return members, coefficients, factors


def _locate(columns, members, coefficients, factors, *, with_spread=True, function=kernels.locate):
    n_rows, n_models = columns.shape[1], len(members)
    location, spread = np.full((2, n_rows, n_models), np.nan)
    function(
        columns,
        np.append(0, np.cumsum([len(model) for model in members])).astype(np.int64),
        np.concatenate([*members, np.empty(0, np.int64)]).astype(np.int64),
        np.concatenate(coefficients),
        np.concatenate([factor.ravel() for factor in factors]),
        with_spread,
        location,
        spread,
    )
    return location, spread


@pytest.mark.parametrize("n_rows", [1, 5, 255, 256, 257, 600])
def test_linear_predictors_are_those_of_numpy(n_rows):
    columns = np.random.default_rng(1).normal(size=(12, n_rows))
    models = _models(12, [0, 1, 2, 3, 4, 5, 12, 0, 7] + [3] * 20)
    location, spread = _locate(columns, *models)
    for m, (members, coefficients, factor) in enumerate(zip(*models, strict=True)):
        rows = np.vstack([np.ones(n_rows), columns[members]])
        assert location[:, m] == pytest.approx(coefficients @ rows, rel=1e-12, abs=1e-12)
        assert spread[:, m] == pytest.approx(np.linalg.norm(factor.T @ rows, axis=0), rel=1e-12)


def test_linear_predictors_without_spreads():
    columns = np.random.default_rng(1).normal(size=(6, 300))
    models = _models(6, [0, 2, 6])
    alone, untouched = _locate(columns, *models, with_spread=False)
    assert np.array_equal(alone, _locate(columns, *models)[0])
    assert np.isnan(untouched).all()


def test_linear_predictors_equal_their_interpreted_form():
    columns = np.random.default_rng(1).normal(size=(6, 20))
    models = _models(6, [0, 2, 6, 4])
    for fast, slow in zip(
        _locate(columns, *models), _locate(columns, *models, function=kernels.locate.py_func), strict=True
    ):
        assert fast == pytest.approx(slow, rel=1e-13)


def test_no_rows_and_no_features():
    models = _models(3, [0, 2])
    assert _locate(np.empty((3, 0)), *models)[0].shape == (0, 2)
    location, spread = _locate(np.empty((0, 4)), *_models(0, [0]))
    assert np.ptp(location) == np.ptp(spread) == 0.0


def _merge(places, widths, weights, shapes=None, function=kernels.merge, finest=1e-290):
    """Weights, places, widths and shapes of the merged components."""
    n_models = len(places)
    work = kernels._work_space(n_models)
    kinds = np.zeros(n_models, np.int64) if shapes is None else np.asarray(shapes, dtype=np.int64)
    arrays = (np.asarray(values, dtype=float) for values in (places, widths, weights))
    count = function(*arrays, kinds, finest, *work)
    return work[-1][:count, :4].T.copy()


def _groups(places, widths, weights, shapes):
    """Which components may become one: same shape, same eighth of the width, same cell of 3/16 of that."""
    groups = {}
    present = [m for m, weight in enumerate(weights) if weight > 1e-290]
    for m in present:
        mantissa, exponent = math.frexp(widths[m])
        eighth = int(mantissa * 16.0)
        narrowest = math.ldexp(eighth / 16.0, exponent)
        cell = math.floor((places[m] - places[np.argmax(weights)]) / (0.1875 * narrowest))
        groups.setdefault((shapes[m], exponent, eighth, cell), []).append(m)
    return list(groups.values())


components = st.lists(
    st.tuples(
        st.floats(-20.0, 20.0),
        st.floats(0.05, 20.0),
        st.floats(0.0, 1.0),
        st.integers(0, 2),
    ),
    min_size=1,
    max_size=60,
)


@settings(deadline=None)
@given(components=components)
@example(components=[(0.0, 1.0, 0.5, 0), (0.0, 1.0, 0.5, 0)])
@example(components=[(0.0, 1.0, 0.0, 0), (3.0, 1.0, 0.0, 0)])
def test_merging_keeps_weight_mean_and_variance_of_what_is_close(components):
    places, widths, weights, shapes = map(np.array, zip(*components, strict=True))
    merged = _merge(places, widths, weights, shapes)
    groups = _groups(places, widths, weights, shapes)
    assert merged.shape[1] == len(groups)
    for (weight, place, width, shape), group in zip(merged.T, groups, strict=True):
        share = weights[group] / weights[group].sum()
        mean = share @ places[group]
        variance = share @ (np.square(places[group] - mean) + np.square(widths[group]))
        assert weight == pytest.approx(weights[group].sum(), rel=1e-12)
        assert place == pytest.approx(mean, rel=1e-12, abs=1e-12)
        assert width == pytest.approx(np.sqrt(variance), rel=1e-12)
        assert {int(shape)} == set(shapes[group].tolist())
        # The promise: within 3/16 of the narrower width, and widths within an eighth of each other.
        assert np.ptp(places[group]) <= 0.1875 * widths[group].min() * (1.0 + 1e-12)
        assert widths[group].max() <= 1.125 * widths[group].min() * (1.0 + 1e-12)


@settings(deadline=None)
@given(components=components)
def test_merging_equals_its_interpreted_form(components):
    places, widths, weights, shapes = map(np.array, zip(*components, strict=True))
    assert np.allclose(
        _merge(places, widths, weights, shapes),
        _merge(places, widths, weights, shapes, kernels.merge.py_func),
        rtol=1e-13,
        atol=1e-13,
    )


def test_what_is_narrower_than_matters_is_merged():
    places, widths, weights = np.array([0.0, 0.1, 0.2]), np.array([1e-3, 0.2, 0.0]), np.array([0.4, 0.4, 0.2])
    assert _merge(places, widths, weights).shape[1] == 3
    merged = _merge(places, widths, weights, finest=1.0)
    assert merged[:2, 0] == pytest.approx([0.8, 0.05])
    assert merged[2, 0] == pytest.approx(np.sqrt((1e-6 + 0.04) / 2.0 + 0.05**2))
    assert merged[:2, 1] == pytest.approx([0.2, 0.2])


@pytest.mark.parametrize("place", [0.5, -3e80, 4e-80])
def test_components_without_spread_stay_where_they_are(place):
    weight, places, width, _ = _merge([place, place, 2.0 * place], [0.0, 0.0, 0.0], [0.25, 0.25, 0.5])
    assert weight.tolist() == [0.5, 0.5]
    assert places == pytest.approx([place, 2.0 * place], rel=1e-12)
    assert (width < 1e-12 * abs(place)).all()


@pytest.mark.parametrize("scale", [1e-140, 1e-30, 1e30, 1e140])
def test_merging_does_not_depend_on_the_unit(scale, rng):
    places, widths, weights = rng.normal(size=50), np.exp(rng.normal(size=50)), rng.random(50)
    power = 2.0 ** round(math.log2(scale))
    merged = _merge(places * power, widths * power, weights)
    expected = _merge(places, widths, weights)
    assert merged[0] == pytest.approx(expected[0], rel=1e-14)
    assert merged[1] == pytest.approx(expected[1] * power, rel=1e-14)
    assert merged[2] == pytest.approx(expected[2] * power, rel=1e-14)


def _quantiles(location, spread, weights, degrees, levels, function=kernels.mixture_quantiles):
    """Quantiles of mixtures of Student's t with these degrees of freedom."""
    location, spread = np.atleast_2d(np.asarray(location, float)), np.atleast_2d(np.asarray(spread, float))
    distinct, shapes = np.unique(np.asarray(degrees, float), return_inverse=True)
    levels = np.asarray(levels, float)
    out = np.full((len(location), len(levels)), np.nan)
    function(
        location,
        spread,
        np.asarray(weights, float),
        shapes.astype(np.int64),
        predict._tables(distinct),
        levels,
        predict._standard_quantiles(distinct, levels),
        out,
    )
    return out


LEVELS = (1e-4, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1.0 - 1e-4)


@pytest.mark.parametrize("df", [0.5, 1.0, 2.0, 3.0, 7.5, 50.0, 1e6, INF])
def test_quantiles_of_one_component(df):
    found = _quantiles([3.0], [0.2], [1.0], [df], LEVELS)[0]
    assert found == pytest.approx(3.0 + 0.2 * naive.component(df).ppf(LEVELS), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(
    ("places", "widths", "weights", "degrees"),
    [
        ([0.0, 1.0], [1.0, 3.0], [0.5, 0.5], [INF, INF]),
        ([0.0, 1.0], [1.0, 3.0], [0.9, 0.1], [3.0, INF]),
        ([0.0, 100.0], [1.0, 1.0], [0.3, 0.7], [1.0, 2.0]),  # well apart
        ([0.0, 1e6], [1e-3, 1e3], [0.02, 0.98], [INF, 5.0]),
        ([0.0, 0.0, 0.0], [1.0, 10.0, 100.0], [0.6, 0.3, 0.1], [INF, 2.0, 1.0]),
        ([5.0, -5.0, 0.0], [0.1, 0.1, 4.0], [0.2, 0.3, 0.5], [4.0, 4.0, 4.0]),
    ],
)
def test_quantiles_of_components_that_are_not_merged(places, widths, weights, degrees):
    found = _quantiles(places, widths, weights, degrees, LEVELS)[0]
    for level, value in zip(LEVELS, found, strict=True):
        expected = naive.mixture_quantile(level, places, widths, weights, degrees)
        scale = max(naive.mixture_width(places, widths, weights), abs(expected))
        assert value == pytest.approx(expected, abs=1e-6 * scale)


def test_few_components_are_not_merged():
    """Of the same kind and close to each other, but not the same."""
    places, widths, weights = [-2.14, -2.09, -2.0], [0.33, 0.34, 0.35], [0.55, 0.4, 0.05]
    quantiles = _quantiles([places], [widths], weights, [79.0] * 3, [0.05, 0.95])[0]
    for level, x in zip((0.05, 0.95), quantiles, strict=True):
        assert stats.t(79.0).cdf((x - np.array(places)) / widths) @ weights == pytest.approx(level, abs=1e-7)


@pytest.mark.parametrize("df", [3.0, 20.0, INF])
@pytest.mark.parametrize("spread_of_places", [0.1, 1.0, 10.0])
def test_quantiles_of_many_components(df, spread_of_places):
    rng = np.random.default_rng(int(10 * spread_of_places))
    weights = rng.dirichlet(np.full(200, 0.3))
    places, widths = spread_of_places * rng.normal(size=200), np.exp(0.5 * rng.normal(size=200))
    levels = (1e-4, 0.05, 0.5, 0.95)
    found = _quantiles(places, widths, weights, np.full(200, df), levels)[0]
    width = naive.mixture_width(places, widths, weights)
    grid = places + widths * stats.norm.ppf([[1e-6], [0.5], [1.0 - 1e-6]])
    for level, value in zip(levels, found, strict=True):
        distribution = naive.component(df)
        tolerance = 1e-3 if level > 1e-3 else 2e-2
        below, above = value - tolerance * width, value + tolerance * width
        assert weights @ distribution.cdf((below - places) / widths) < level
        assert weights @ distribution.cdf((above - places) / widths) > level
    assert grid.min() < found[0] < found[-1] < grid.max() or df < INF


def test_equal_components_are_one():
    one = _quantiles([2.0], [0.5], [1.0], [6.0], LEVELS)
    many = _quantiles(np.full(100, 2.0), np.full(100, 0.5), np.full(100, 0.01), np.full(100, 6.0), LEVELS)
    assert many == pytest.approx(one, rel=1e-9)


@settings(deadline=None, max_examples=60)
@example(
    components=[(0.0, 1.0, 2.125, 0), (6.0, 20.0, 1.0, 1), (14.0, 0.25, 0.875, 0), (16.0, 2.0, 0.5, 0)]
    + [(0.0, 1.0, 0.0, 0)] * 9
    + [(16.0, 7.0, 1.0, 2)],
    levels=[0.96875, 0.25],
)
@given(
    components=components,
    levels=st.lists(st.floats(1e-4, 1.0 - 1e-4), min_size=2, max_size=6, unique=True),
)
def test_quantiles_ascend_with_the_level(components, levels):
    places, widths, weights, shapes = map(np.array, zip(*components, strict=True))
    weights = weights + 0.01
    degrees = np.array([1.0, 5.0, INF])[shapes]
    levels = sorted(levels)
    found = _quantiles(places, widths, weights / weights.sum(), degrees, levels)[0]
    assert np.isfinite(found).all()
    assert (np.diff(found) >= -1e-7 * (1.0 + np.abs(found[1:]))).all()
    middle = (levels[0] + levels[-1]) / 2.0
    assert naive.mixture_cdf(
        _quantiles(places, widths, weights / weights.sum(), degrees, [middle])[0, 0],
        places,
        widths,
        weights / weights.sum(),
        degrees,
    ) == pytest.approx(middle, abs=0.02)


def test_quantiles_equal_their_interpreted_form(rng):
    places, widths = rng.normal(size=(3, 40)), np.exp(rng.normal(size=(3, 40)))
    weights, degrees = rng.dirichlet(np.ones(40)), rng.choice([3.0, INF], size=40)
    slow = _quantiles(places, widths, weights, degrees, LEVELS, kernels.mixture_quantiles.py_func)
    assert _quantiles(places, widths, weights, degrees, LEVELS) == pytest.approx(slow, rel=1e-9)


def test_models_without_probability_do_not_count():
    with_it = _quantiles([0.0, 50.0], [1.0, 1.0], [1.0, 0.0], [INF, INF], LEVELS)
    assert with_it == pytest.approx(_quantiles([0.0], [1.0], [1.0], [INF], LEVELS), rel=1e-12)


def test_a_component_without_spread_is_a_step():
    levels = (0.1, 0.2, 0.4, 0.6, 0.8, 0.9)
    found = _quantiles([1.0, 1.0], [0.0, 1.0], [0.5, 0.5], [INF, INF], levels)[0]
    outside = [naive.mixture_quantile(level, [1.0], [1.0], [1.0], [INF]) for level in (0.2, 0.4, 0.6, 0.8)]
    assert found == pytest.approx([*outside[:2], 1.0, 1.0, *outside[2:]], abs=1e-8)


def test_steps_at_zero_and_one():
    found = _quantiles([0.0, 1.0], [0.0, 0.0], [0.5, 0.5], [INF, INF], [0.1, 0.4, 0.6, 0.9])[0]
    assert found == pytest.approx([0.0, 0.0, 1.0, 1.0], abs=1e-12)


@pytest.mark.parametrize("scale", [1e-250, 1e-180, 1e180, 1e250])
def test_quantiles_of_tiny_and_huge_values(scale):
    found = _quantiles([scale, -scale], [0.5 * scale, 0.2 * scale], [0.5, 0.5], [INF, INF], LEVELS)
    assert found / scale == pytest.approx(_quantiles([1.0, -1.0], [0.5, 0.2], [0.5, 0.5], [INF, INF], LEVELS))


def test_a_far_model_without_probability_does_not_blur_others():
    found = _quantiles([1e9, 1e-3, 2e-3], [1.0, 1e-10, 1e-10], [0.0, 0.5, 0.5], [INF] * 3, [0.25, 0.75])[0]
    assert found == pytest.approx([1e-3, 2e-3], rel=1e-6)


@pytest.mark.parametrize("level", [1e-6, 1e-8, 1e-10, 1e-12])
def test_quantiles_of_extreme_levels(level):
    places, widths, weights = [0.0, 1.0], [1.0, 2.0], [0.5, 0.5]
    low, high = _quantiles(places, widths, weights, [INF, INF], [level, 1.0 - level])[0]
    expected = naive.mixture_quantile(level, places, widths, weights, [INF, INF])
    assert low == pytest.approx(expected, abs=1e-3)
    assert naive.mixture_cdf(-high, [-p for p in places], widths, weights, [INF, INF]) == pytest.approx(level, rel=0.01)


def _masses(location, spread, weights, n_cells, negligible=1e-5, function=kernels.mixture_masses):
    location, spread = np.atleast_2d(np.asarray(location, float)), np.atleast_2d(np.asarray(spread, float))
    middles, masses = np.full((2, len(location), n_cells), np.nan)
    table = predict._tables(np.array([INF]))[0]
    function(location, spread, np.asarray(weights, float), table, negligible, middles, masses)
    return middles, masses


def _expected_masses(middles, places, widths, weights):
    """Between the edges of the cells; the outer cells have what is beyond."""
    edges = (middles[1:] + middles[:-1]) / 2.0
    below = [naive.mixture_cdf(edge, places, widths, weights, [INF] * len(places)) for edge in edges]
    return np.diff([0.0, *below, 1.0])


@pytest.mark.parametrize(
    ("places", "widths", "weights"),
    [
        ([0.3], [2.0], [1.0]),
        ([0.0, 2.0, -30.0], [1.0, 0.3, 2.0], [0.5, 0.3, 0.2]),
        ([0.0, 1e6, -1e6], [1.0, 1.0, 1.0], [1.0 - 2e-6, 1e-6, 1e-6]),  # far away, but hardly there
        ([0.0, 1e-9], [1.0, 1e-12], [0.5, 0.5]),
        ([1e5, 2e5], [0.0, 0.0], [0.5, 0.5]),
        ([-1.0, 1.0], [1.0, 50.0], [0.5, 0.5]),
    ],
)
def test_masses_of_cells_against_the_distribution_function(places, widths, weights):
    middles, masses = _masses(places, widths, weights, 14)
    assert (np.diff(middles[0]) > 0.0).all()
    assert masses[0] == pytest.approx(_expected_masses(middles[0], places, widths, weights), abs=2e-7)
    assert masses.sum() == pytest.approx(1.0, abs=1e-12)


def test_cells_reach_as_far_as_there_is_probability():
    middles, masses = _masses([0.0, 1e6], [1.0, 1.0], [1.0 - 1e-7, 1e-7], 32)
    assert middles[0, -1] < 6.0
    assert masses[0, [0, -1]].max() < 1e-5
    middles, _ = _masses([0.0, 100.0], [1.0, 1.0], [0.999, 0.001], 32)
    assert middles[0, 0] > -6.0
    assert 100.0 < middles[0, -1] < 106.0


def test_cells_where_every_model_is_improbable():
    """As of a group of models that have little probability together."""
    middles, masses = _masses(np.arange(50.0), np.full(50, 0.01), np.full(50, 1e-9), 100, negligible=0.5)
    assert np.isfinite(middles).all()
    assert masses.sum() == pytest.approx(50e-9)


def test_masses_of_many_components(rng):
    places, widths = rng.normal(size=(4, 300)), 0.3 * np.exp(0.3 * rng.normal(size=(4, 300)))
    weights = rng.dirichlet(np.ones(300))
    middles, masses = _masses(places, widths, weights, 32)
    for i in range(4):
        assert masses[i] == pytest.approx(_expected_masses(middles[i], places[i], widths[i], weights), abs=3e-4)


def test_masses_equal_their_interpreted_form(rng):
    arguments = rng.normal(size=(2, 10)), np.exp(rng.normal(size=(2, 10))), rng.dirichlet(np.ones(10)), 8
    fast, slow = _masses(*arguments), _masses(*arguments, function=kernels.mixture_masses.py_func)
    assert fast[0] == pytest.approx(slow[0], abs=1e-13)
    assert fast[1] == pytest.approx(slow[1], abs=1e-13)


def _moments(link, places, widths, weights, function=kernels.share_moments):
    nodes, node_weights = np.polynomial.hermite_e.hermegauss(predict._HERMITE)
    mean, square = np.full((2, 1), np.nan)
    function(
        np.atleast_2d(np.asarray(places, float)),
        np.atleast_2d(np.asarray(widths, float)),
        np.asarray(weights, float),
        Family("binomial", link).code,
        nodes,
        node_weights / node_weights.sum(),
        predict.steps_of(Family("binomial", link)),
        mean,
        square,
    )
    return mean[0], square[0]


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("width", [1e-6, 0.1, 0.4, 0.6, 1.0])
@pytest.mark.parametrize("place", [-3.0, -0.5, 0.0, 0.7, 4.0])
def test_moments_of_shares_against_quadrature(link, place, width):
    family = Family("binomial", link)
    mean, square = _moments(link, [place], [width], [1.0])
    assert mean == pytest.approx(naive.normal_expectation(family.mean, place, width), abs=2e-4)
    assert square == pytest.approx(naive.normal_expectation(lambda eta: family.mean(eta) ** 2, place, width), abs=2e-4)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("width", [2.0, 5.0, 20.0, 1e3])
@pytest.mark.parametrize("place", [-3.0, 0.7, 9.0])
def test_moments_of_uncertain_shares_against_quadrature(link, place, width):
    family = Family("binomial", link)
    mean, square = _moments(link, [place], [width], [1.0])
    assert mean == pytest.approx(naive.normal_expectation(family.mean, place, width), abs=2e-4)
    assert square == pytest.approx(naive.normal_expectation(lambda eta: family.mean(eta) ** 2, place, width), abs=2e-4)


@pytest.mark.parametrize("link", LINKS)
def test_moments_of_shares_of_a_mixture(link):
    family = Family("binomial", link)
    places, widths, weights = [0.0, -2.0, 3.0], [0.5, 0.2, 0.4], [0.5, 0.3, 0.2]
    each = [naive.normal_expectation(family.mean, p, s) for p, s in zip(places, widths, strict=True)]
    assert _moments(link, places, widths, weights)[0] == pytest.approx(np.dot(weights, each), abs=1e-5)


@pytest.mark.parametrize("link", LINKS)
def test_moments_of_shares_equal_their_interpreted_form(link, rng):
    arguments = rng.normal(size=30), 0.1 + 0.5 * rng.random(30), rng.dirichlet(np.ones(30))
    assert _moments(link, *arguments) == pytest.approx(
        _moments(link, *arguments, kernels.share_moments.py_func), abs=1e-13
    )


@pytest.mark.parametrize("function", [kernels.inverse_link, kernels.inverse_link.py_func])
@pytest.mark.parametrize("link", LINKS)
def test_links(link, function):
    family = Family("binomial", link)
    eta = np.array([-1e5, -800.0, -30.0, -1.0, 0.0, 0.3, 2.0, 40.0, 800.0, 1e5])
    found = np.array([function(family.code, value) for value in eta.tolist()])
    assert found == pytest.approx(family.mean(eta), rel=1e-12, abs=1e-300)


def test_other_families_have_no_link_here():
    assert math.isnan(kernels.inverse_link(Family("poisson", "log").code, 0.0))
