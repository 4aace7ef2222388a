"""Populations: inner products, what may join, who survives."""

import numpy as np
import pytest
from scipy.stats import chisquare

from bgnlm.features import Evaluator, Input, operation_count, parse
from bgnlm.likelihood.gram import GramBuilder, gram_statistics
from bgnlm.search.classes import FeatureClasses
from bgnlm.search.population import Draft, select_survivors

N_ROWS = 50


class Data:
    """A response, columns a, b, ... and their classes."""

    def __init__(self, X, y, weights, offset):
        self.X, self.y, self.weights, self.offset = X, y, weights, offset
        self.names = "abcdefgh"[: X.shape[1]]
        self.builder = GramBuilder(y, weights, offset)
        self.evaluator = Evaluator(X, list(self.names))
        self.classes = FeatureClasses(self.evaluator, self.builder, operation_count, weights)

    def draft(self, capacity, *texts, n_protected=0):
        draft = Draft(self.builder, capacity, n_protected)
        assert all(self.accept(draft, text) for text in texts)
        return draft

    def kept(self, capacity, population, places):
        draft = Draft(self.builder, capacity)
        costs = self.classes.costs_of(population.classes)
        draft.keep(population, costs, np.isin(np.arange(len(population)), places))
        return draft

    def accept(self, draft, text):
        return draft.accept(self.classes.identify(parse(text)))

    def statistics(self, *texts):
        X = self.evaluator.matrix([parse(text) for text in texts])
        return gram_statistics(self.y, X, self.weights, self.offset)


@pytest.fixture(params=["plain", "weighted"])
def data(rng, request):
    X = rng.normal(size=(N_ROWS, 6)) + 3.0
    y = X[:, 0] + rng.normal(size=N_ROWS)
    if request.param == "plain":
        return Data(X, y, np.ones(N_ROWS), np.zeros(N_ROWS))
    return Data(X, y, rng.integers(0, 4, N_ROWS).astype(float), rng.normal(size=N_ROWS))


def test_inner_products_are_those_of_all_columns_at_once(data):
    texts = ["a", "b", "a*b", "sin(c)", "d**2"]
    found, expected = data.draft(8, *texts).finish(), data.statistics(*texts)
    assert found.statistics.matrix == pytest.approx(expected.matrix, abs=1e-14)
    assert found.statistics.data == pytest.approx(expected.data, abs=1e-14)
    for name in ("means", "norms", "noise", "n_obs", "log_total", "response_mean", "response_norm"):
        assert getattr(found.statistics, name) == pytest.approx(getattr(expected, name), rel=1e-14), name
    assert found.features == tuple(map(parse, texts))
    assert found.classes.tolist() == [data.classes.class_of(feature) for feature in found.features]


def test_kept_features_and_new_ones_give_what_a_new_population_gives_bit_for_bit(data):
    """Through several transitions."""
    population = data.draft(5, "a", "b", "c*d", "sin(e)", "f").finish()
    for kept, new in (([0, 2, 4], ["a*b", "e"]), ([1, 2, 3], ["sin(a)", "b"]), ([0, 4], ["c", "d", "e*f"])):
        draft = data.kept(5, population, kept)
        assert all(data.accept(draft, text) for text in new)
        assert draft.origins == [*kept, *[-1] * len(new)]
        population = draft.finish()
        rebuilt = data.draft(5, *map(str, population.features)).finish()
        assert population.features == rebuilt.features
        assert (population.classes == rebuilt.classes).all()
        for name in ("matrix", "data", "means", "norms", "noise"):
            assert (getattr(population.statistics, name) == getattr(rebuilt.statistics, name)).all(), name


def test_the_unit_column_of_a_feature(data):
    population = data.draft(3, "a", "b*c").finish()
    for j, text in enumerate(("a", "b*c")):
        unit, expected = population.unit(j), data.classes.identify(parse(text)).unit
        assert (unit.values == expected.values).all()
        assert unit[1:] == expected[1:]


def test_what_is_there_already_is_refused(data):
    draft = data.draft(5, "a", "b*c")
    assert not data.accept(draft, "a")
    assert not data.accept(draft, "c*b")
    assert data.classes.class_of(Input("a")) in draft
    assert data.classes.identify(Input("d")).feature_class not in draft
    assert len(draft) == 2


@pytest.mark.parametrize("disturbance", [0.0, 1e-6])
def test_what_depends_on_others_is_refused(rng, disturbance):
    a, b, noise = rng.normal(size=(3, N_ROWS))
    X = np.column_stack([a, b, 2.0 * a - b + 5.0 + disturbance * noise, a + b + 1e-3 * noise])
    data = Data(X, noise, np.ones(N_ROWS), np.zeros(N_ROWS))
    assert not data.accept(data.draft(4, "a", "b"), "c")
    assert not data.accept(data.draft(4, "b", "c"), "a")
    assert data.accept(data.draft(4, "a"), "c")
    assert data.accept(data.draft(4, "a", "b"), "d")


def test_dependence_on_kept_features_is_noticed(rng):
    a, b, c = rng.normal(size=(3, N_ROWS))
    data = Data(np.column_stack([a, b, c, a - b]), c + a, np.ones(N_ROWS), np.zeros(N_ROWS))
    draft = data.kept(4, data.draft(3, "a", "b", "c").finish(), [0, 1])
    assert not data.accept(draft, "d")
    assert data.accept(draft, "c")


def mixed(rng):
    """Columns a, b, c, d = a*b - 2*c, and e = a*b + b*sin(c)."""
    a, b, c = rng.normal(size=(3, N_ROWS))
    X = np.column_stack([a, b, c, a * b - 2.0 * c, a * b + b * np.sin(c)])
    return Data(X, a + c, np.ones(N_ROWS), np.zeros(N_ROWS))


def test_a_cheaper_feature_takes_the_place_of_the_dearest_on_which_it_depends(rng):
    data = mixed(rng)
    population = data.draft(4, "b*c", "a*b", "c", "sin(b)").finish()
    draft = data.kept(4, population, [0, 1, 2, 3])
    assert data.accept(draft, "d")
    assert draft.origins == [0, 2, 3, -1]
    found = draft.finish()
    assert list(map(str, found.features)) == ["b*c", "c", "sin(b)", "d"]
    assert (found.statistics.matrix == data.draft(4, "b*c", "c", "sin(b)", "d").finish().statistics.matrix).all()
    assert found.unit(3).values == pytest.approx(data.classes.identify(Input("d")).unit.values, abs=1e-15)


@pytest.mark.parametrize("members", [("a*b", "b*sin(c)"), ("b*sin(c)", "a*b")])
def test_of_two_dearer_features_the_dearest_goes(rng, members):
    data = mixed(rng)
    draft = data.draft(4, *members)
    assert data.accept(draft, "e")
    assert set(map(str, draft.finish().features)) == {"a*b", "e"}


def test_a_feature_that_is_not_cheaper_takes_no_place(rng):
    data = mixed(rng)
    draft = data.draft(4, "c", "d")
    assert not data.accept(draft, "a*b")
    assert list(map(str, draft.finish().features)) == ["c", "d"]


def test_a_protected_feature_keeps_its_place(rng):
    data = mixed(rng)
    assert not data.accept(data.draft(4, "a*b", "c", n_protected=1), "d")
    assert data.accept(data.draft(4, "c", "a*b", n_protected=1), "d")


def test_no_more_features_than_independent_rows(rng):
    data = Data(rng.normal(size=(4, 6)), rng.normal(size=4), np.ones(4), np.zeros(4))
    draft = data.draft(6)
    assert [data.accept(draft, name) for name in data.names] == [True, True, True, False, False, False]


def test_a_full_draft_takes_no_more(data):
    draft = data.draft(2, "a", "b")
    assert not data.accept(draft, "c")
    assert draft.finish().features == (Input("a"), Input("b"))


def test_an_empty_population(data):
    population = Draft(data.builder, 3).finish()
    assert len(population) == 0
    assert population.statistics.matrix.tolist() == [[1.0]]


def survivors(rng, probabilities, threshold=0.5, protected=(), is_full=True):
    probabilities = np.array(probabilities)
    chosen = np.isin(np.arange(len(probabilities)), protected)
    return select_survivors(rng, probabilities, threshold, chosen, is_full)


def test_what_reaches_the_threshold_stays(rng):
    for _ in range(200):
        assert survivors(rng, [0.5, 0.0, 0.9, 1.0, 0.0]).tolist() == [True, False, True, True, False]


def test_the_rest_survives_with_probability_proportional_to_its_own(rng):
    probabilities, n_draws = np.array([0.05, 0.2, 0.44, 0.8, 0.0]), 4000
    counts = sum(survivors(rng, probabilities, threshold=0.8).astype(int) for _ in range(n_draws))
    assert counts[3:].tolist() == [n_draws, 0]
    for count, probability in zip(counts[:3], probabilities[:3] / 0.8, strict=True):
        expected = n_draws * np.array([probability, 1 - probability])
        assert chisquare([count, n_draws - count], expected).pvalue > 1e-4


def test_features_survive_independently_of_each_other(rng):
    kept = np.array([survivors(rng, [0.2, 0.2, 0.0]) for _ in range(4000)])
    cells = np.bincount(2 * kept[:, 0] + kept[:, 1], minlength=4)
    assert chisquare(cells, 4000 * np.array([0.36, 0.24, 0.24, 0.16])).pvalue > 1e-4


def test_at_least_one_goes_from_a_full_population(rng):
    counts = np.zeros(4)
    for _ in range(3000):
        kept = survivors(rng, [1.0, 0.9, 0.99, 0.6])
        assert kept.sum() == 3
        counts += ~kept
    assert (counts > 0).all()
    assert counts[3] > counts[1] > counts[2] > counts[0]


def test_none_has_to_go_where_there_is_room(rng):
    assert all(survivors(rng, [1.0, 0.9, 0.99], is_full=False).all() for _ in range(50))


def test_protected_features_stay(rng):
    for _ in range(300):
        kept = survivors(rng, [0.0, 1.0, 0.0, 1.0], protected=[0, 1])
        assert kept.tolist() == [True, True, False, True]
        kept = survivors(rng, [0.0, 1.0, 1.0, 1.0], protected=[0, 1])
        assert kept[:2].all()
        assert kept.sum() == 3
    assert survivors(rng, [0.0, 1.0], protected=[0, 1]).all()


def test_a_threshold_of_zero_keeps_all_but_one(rng):
    assert all(survivors(rng, [0.0, 0.3, 0.9], threshold=0.0).sum() == 2 for _ in range(50))
