"""M* against a dictionary of frozensets."""

import tracemalloc
from math import exp, fsum, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bgnlm.features import parse
from bgnlm.search.classes import class_key
from bgnlm.search.visited import (
    ModelRows,
    VisitedModels,
    distinct,
    feature_key,
    join,
    log_sum,
    no_models,
    rekeyed,
    rows_of,
)

N_CLASSES = 8
KEYS = np.array([class_key(number) for number in range(N_CLASSES)], dtype=np.uint64)
COSTS = np.linspace(0.3, 2.0, N_CLASSES)

sets_of_classes = st.frozensets(st.integers(0, N_CLASSES - 1))
models = st.dictionaries(sets_of_classes, st.floats(-30.0, 5.0), max_size=25)


def rows_from(scores):
    """Models given as {classes: log marginal}."""
    included = np.array([[c in model for c in range(N_CLASSES)] for model in scores], dtype=bool)
    log_marginal = np.array(list(scores.values()), dtype=float)
    return rows_of(included.reshape(-1, N_CLASSES), np.arange(N_CLASSES), KEYS, log_marginal)


def as_dict(rows):
    return {frozenset(rows.members_of(i).tolist()): float(rows.log_marginal[i]) for i in range(len(rows))}


def joint(scores, costs=COSTS):
    return {model: value - costs[list(model)].sum() for model, value in scores.items()}


def key_of(model):
    key = 0
    for number in model:
        key ^= class_key(number)
    return key


def best(scores, n_models):
    values = joint(scores)
    return sorted(scores, key=lambda model: (-values[model], key_of(model)))[:n_models]


def exact_log_sum(values):
    values = list(values)
    return log(fsum(exp(value) for value in values)) if values else -np.inf


@given(scores=models, order=st.permutations(range(N_CLASSES)))
def test_rows_of_a_population(scores, order):
    """Whatever the order of its columns, a model is the set of its classes, and so is its key."""
    order = np.array(order)
    included = np.array([[c in model for c in order] for model in scores], dtype=bool).reshape(-1, N_CLASSES)
    rows = rows_of(included, order, KEYS[order], np.array(list(scores.values())))
    assert as_dict(rows) == scores
    assert rows.keys.tolist() == [key_of(model) for model in scores]
    assert rows.sizes.tolist() == [len(model) for model in scores]
    assert all(rows.members_of(i).tolist() == sorted(model) for i, model in enumerate(scores))
    assert rows.sum_over_members(COSTS) == pytest.approx([COSTS[list(model)].sum() for model in scores])
    weights = np.arange(1.0, len(scores) + 1)
    expected = [
        sum(w for w, model in zip(weights, scores, strict=True) if number in model) for number in range(N_CLASSES)
    ]
    assert rows.sum_by_member(weights, N_CLASSES) == pytest.approx(expected)


@given(parts=st.lists(models, max_size=6))
def test_a_model_is_counted_once(parts):
    visited, seen = VisitedModels(10_000), {}
    for part in parts:
        fresh = visited.add(rows_from(part), COSTS)
        assert set(as_dict(fresh)) == part.keys() - seen.keys()
        seen = part | seen
        assert visited.n_scored == len(visited) == len(seen)
    assert as_dict(visited.rows()) == seen
    assert visited.log_discarded() == -np.inf


@settings(max_examples=60)
@given(scores=models, limit=st.integers(1, 12), data=st.data())
def test_the_best_models_stay_in_whatever_order_they_came(scores, limit, data):
    order = data.draw(st.permutations(list(scores)))
    n_parts = data.draw(st.integers(1, 5))
    visited = VisitedModels(limit)
    for part in range(n_parts):
        visited.add(rows_from({model: scores[model] for model in order[part::n_parts]}), COSTS)
        assert len(visited) <= 1.25 * limit
    visited.truncate(COSTS)
    kept = best(scores, limit)
    assert as_dict(visited.rows()) == {model: scores[model] for model in kept}
    assert visited.n_scored == len(scores)
    dropped = [value for model, value in joint(scores).items() if model not in kept]
    assert visited.log_discarded() == pytest.approx(exact_log_sum(dropped), abs=1e-9)


def test_ties_are_decided_by_key():
    equal = {frozenset({number}): float(COSTS[number]) for number in range(N_CLASSES)}
    expected = set(sorted(equal, key=key_of)[:3])
    for order in (list(equal), list(equal)[::-1]):
        visited = VisitedModels(3)
        for model in order:
            visited.add(rows_from({model: equal[model]}), COSTS)
        visited.truncate(COSTS)
        assert set(as_dict(visited.rows())) == expected


def test_nothing_is_dropped_within_the_limit():
    visited = VisitedModels(4)
    visited.add(rows_from({frozenset({number}): 0.0 for number in range(4)}), COSTS)
    visited.truncate(COSTS)
    assert len(visited) == 4
    assert visited.log_discarded() == -np.inf


@settings(max_examples=60)
@given(scores=models, limit=st.integers(1, 6), data=st.data())
def test_the_discarded_mass_is_never_below_the_truth_when_classes_become_cheaper(scores, limit, data):
    """Savings come one after the other while models are dropped, and more of them at the union."""
    costs, visited = COSTS.copy(), VisitedModels(limit)
    order = data.draw(st.permutations(list(scores)))
    for part in range(3):
        visited.add(rows_from({model: scores[model] for model in order[part::3]}), costs)
        number, saving = data.draw(st.integers(0, N_CLASSES - 1)), data.draw(st.floats(0.0, 3.0))
        visited.reprice(number, saving)
        costs[number] -= saving
    visited.truncate(costs)
    kept = as_dict(visited.rows())
    dropped = {model: value for model, value in scores.items() if model not in kept}
    assert visited.log_discarded() >= exact_log_sum(joint(dropped, costs).values()) - 1e-9
    savings = data.draw(st.dictionaries(st.integers(0, N_CLASSES - 1), st.floats(0.0, 3.0), max_size=3))
    cheaper = costs.copy()
    for number, saving in savings.items():
        cheaper[number] -= saving
    assert visited.log_discarded(savings) >= exact_log_sum(joint(dropped, cheaper).values()) - 1e-9
    assert visited.log_discarded(savings) >= visited.log_discarded()


def test_a_saving_of_another_class_does_not_matter():
    visited = VisitedModels(10)
    visited.discard(log(2.0), np.array([0, 1]))
    visited.discard(log(3.0), np.array([1, 2]))
    visited.discard(-np.inf, np.array([5]))
    visited.reprice(4, 5.0)
    visited.reprice(0, log(10.0))
    assert visited.log_discarded() == pytest.approx(log(23.0))
    assert visited.log_discarded({2: log(2.0), 5: 9.0}) == pytest.approx(log(26.0))
    assert visited.log_discarded({1: log(2.0), 2: log(2.0)}) == pytest.approx(log(52.0))


@given(scores=models, data=st.data())
def test_other_numbers_for_the_classes(scores, data):
    """A model in which two classes became one is no model: its columns are dependent."""
    class_of = np.array(data.draw(st.lists(st.integers(0, 5), min_size=N_CLASSES, max_size=N_CLASSES)))
    renamed = rekeyed(rows_from(scores), class_of, KEYS)
    expected = []
    for model, value in scores.items():
        new = frozenset(class_of[list(model)].tolist())
        if len(new) == len(model):
            expected.append((new, value))
    found = [(frozenset(renamed.members_of(i).tolist()), float(renamed.log_marginal[i])) for i in range(len(renamed))]
    assert found == expected
    assert renamed.keys.tolist() == [key_of(model) for model, _ in expected]
    once = distinct(renamed)
    largest = {}
    for model, value in expected:
        largest[model] = max(value, largest.get(model, -np.inf))
    assert as_dict(once) == largest
    assert len(once) == len(largest)
    assert (np.diff(once.keys.astype(object)) > 0).all()


@given(parts=st.lists(models, min_size=1, max_size=4))
def test_joined_models_stand_one_after_the_other(parts):
    rows = join([rows_from(part) for part in parts])
    assert len(rows) == sum(map(len, parts))
    assert [frozenset(rows.members_of(i).tolist()) for i in range(len(rows))] == [m for part in parts for m in part]


def test_no_models():
    assert len(no_models()) == 0
    assert log_sum(no_models().log_marginal) == -np.inf
    assert len(distinct(rekeyed(no_models(), np.arange(3), KEYS))) == 0


def test_the_sum_of_very_small_and_very_large_terms():
    assert log_sum(np.array([-2000.0, -2000.0])) == pytest.approx(-2000.0 + log(2.0))
    assert log_sum(np.array([3000.0, -np.inf])) == 3000.0
    assert log_sum(np.array([-np.inf, -np.inf])) == -np.inf


def test_keys_of_features_depend_on_nothing_but_the_feature():
    assert feature_key(parse("y*x")) == feature_key(parse("x*y")) != feature_key(parse("x*x"))
    assert feature_key(parse("x")) == 0x4F586EF96743DF4A  # in every process


def test_a_million_models_of_ten_features_in_two_hundred_megabytes():
    rng = np.random.default_rng(1)
    n_models, size, n_parts = 1_000_000, 10, 10
    costs = np.full(500, 2.0)
    visited = VisitedModels(n_models)
    tracemalloc.start()
    try:
        for _ in range(n_parts):
            n_rows = n_models // n_parts
            keys = rng.integers(2**63, size=n_rows).astype(np.uint64)
            members = rng.integers(500, size=n_rows * size).astype(np.int32)
            starts = np.arange(0, n_rows * size + 1, size)
            visited.add(ModelRows(keys, rng.normal(size=n_rows), starts, members), costs)
        del keys, members, starts
        assert len(visited.rows()) > 0.99 * n_models
        assert tracemalloc.get_traced_memory()[0] < 200e6
    finally:
        tracemalloc.stop()
