"""The hash table of models against a dictionary."""

import numpy as np
import pytest

from bgnlm.kernels._jit import jit
from bgnlm.kernels.model_store import ModelStore, empty_store, enlarged, find_slot, insert, pack_bits

SIZES = [1, 2, 7, 63, 64, 65, 127, 128, 129, 130]


def _remember(store, models, values, found):
    """Look models up one after the other, put in those that are not there; `found` are the values known then."""
    bits = np.empty(store.bits.shape[1], np.uint64)
    for i in range(len(models)):
        pack_bits(models[i], bits)
        slot = find_slot(store, bits)
        if store.slots[slot]:
            found[i] = store.values[store.slots[slot] - 1]
        else:
            found[i] = np.nan
            insert(store, slot, bits, values[i])


_remember_compiled = jit(_remember)
FORMS = pytest.mark.parametrize("remember", [_remember, _remember_compiled], ids=["interpreted", "compiled"])


def _models(rng, n_columns, n_models=300):
    """Random models of all sizes, many of them twice."""
    models = rng.random((n_models, n_columns)) < rng.random((n_models, 1))
    return models[rng.integers(n_models, size=2 * n_models)]


def _packed(model):
    return sum(1 << j for j in np.flatnonzero(model).tolist())


def _as_integers(store):
    rows = store.bits[: store.count[0]].tolist()
    return [sum(word << 64 * i for i, word in enumerate(row)) for row in rows]


@FORMS
@pytest.mark.parametrize("n_columns", SIZES)
def test_finds_what_a_dictionary_finds(n_columns, remember, rng):
    models = _models(rng, n_columns)
    values, found = rng.normal(size=len(models)), np.empty(len(models))
    store = empty_store(n_columns, len(models))
    remember(store, models, values, found)
    known, expected = {}, []
    for model, value in zip(models, values, strict=True):
        expected.append(known.get(_packed(model), np.nan))
        known.setdefault(_packed(model), value)
    np.testing.assert_array_equal(found, expected)
    assert store.count[0] == len(known)
    assert dict(zip(_as_integers(store), store.values[: store.count[0]].tolist(), strict=True)) == known


@pytest.mark.parametrize("n_columns", [5, 70, 130])
def test_compiled_equals_interpreted(n_columns, rng):
    models = _models(rng, n_columns)
    values = rng.normal(size=len(models))
    stores = []
    for remember in (_remember, _remember_compiled):
        stores.append(empty_store(n_columns, len(models)))
        remember(stores[-1], models, values, np.empty(len(models)))
    n_models = stores[0].count[0]
    np.testing.assert_array_equal(stores[0].slots, stores[1].slots)
    np.testing.assert_array_equal(stores[0].bits, stores[1].bits)
    np.testing.assert_array_equal(stores[0].values[:n_models], stores[1].values[:n_models])
    np.testing.assert_array_equal(stores[0].count, stores[1].count)


@pytest.mark.parametrize("n_columns", SIZES)
def test_an_enlarged_store_knows_the_same_models(n_columns, rng):
    models = _models(rng, n_columns, 100)
    values, found = rng.normal(size=len(models)), np.empty(len(models))
    store = empty_store(n_columns, len(models))
    _remember_compiled(store, models, values, found)
    store.count[1] = 17
    larger = enlarged(enlarged(store))
    assert len(larger.values) == 4 * len(store.values)
    assert larger.bits.shape[1] == store.bits.shape[1]
    assert larger.count.tolist() == store.count.tolist()
    assert _as_integers(larger) == _as_integers(store)
    _remember_compiled(larger, models, np.full(len(models), np.inf), found)
    assert np.isfinite(found).all()
    assert larger.count[0] == store.count[0]
    more = _models(rng, n_columns, len(larger.values) // 4)
    _remember_compiled(larger, more, rng.normal(size=len(more)), np.empty(len(more)))
    assert set(_as_integers(larger)) == {_packed(model) for model in (*models, *more)}


def test_a_copy_does_not_share_memory_with_what_it_was_made_from(rng):
    store = empty_store(3, 8)
    larger = enlarged(store)
    _remember(larger, _models(rng, 3), np.zeros(600), np.empty(600))
    assert larger.count[0] == 8
    assert store.count[0] == 0
    assert not store.slots.any()


@pytest.mark.parametrize(("capacity", "room"), [(0, 8), (1, 8), (8, 8), (9, 16), (1000, 1024), (1024, 1024)])
def test_room_for_at_least_so_many_models(capacity, room):
    store = empty_store(65, capacity)
    assert isinstance(store, ModelStore)
    assert store.values.shape == (room,)
    assert store.bits.shape == (room, 2)
    assert store.slots.shape == (2 * room,)
    assert not store.slots.any()
    assert store.count.tolist() == [0, 0]


@FORMS
def test_models_that_want_the_same_slot(remember, rng):
    """All want one of 16 slots: those that belong to the last one, and many more of them than one."""
    candidates = rng.random((4000, 70)) < 0.5
    store = empty_store(70, 8)
    bits = np.empty(2, np.uint64)
    wanted = []
    for model in candidates:
        pack_bits(model, bits)
        wanted.append(find_slot(store, bits))
    same = candidates[np.flatnonzero(np.array(wanted) == 15)[:8]]
    assert len(same) == 8
    found = np.empty(8)
    remember(store, same, np.arange(8.0), found)
    assert np.isnan(found).all()
    assert np.flatnonzero(store.slots).tolist() == [0, 1, 2, 3, 4, 5, 6, 15]
    remember(store, same[::-1], np.full(8, -1.0), found)
    assert found.tolist() == list(range(7, -1, -1))
    assert store.count[0] == 8


@pytest.mark.parametrize("n_columns", [12, 40, 64, 130])
@pytest.mark.parametrize("kind", ["neighbours", "small models", "random"])
def test_few_models_share_a_slot(n_columns, kind, rng):
    """A full store is half empty: a model is found after one and a half looks on average where keys are as random."""
    match kind:
        case "neighbours":  # of a walk that flips one column at a time
            flips = rng.integers(n_columns, size=3000)
            models = np.bitwise_xor.accumulate(np.eye(n_columns, dtype=np.bool_)[flips], axis=0)
        case "small models":
            models = np.zeros((3000, n_columns), np.bool_)
            np.put_along_axis(models, rng.integers(n_columns, size=(3000, 3)), values=True, axis=1)
        case _:
            models = rng.random((3000, n_columns)) < 0.5
    models = np.unique(models, axis=0)
    store = empty_store(n_columns, len(models))
    _remember_compiled(store, models, np.zeros(len(models)), np.empty(len(models)))
    blank = store._replace(slots=np.zeros_like(store.slots))
    home = np.array([find_slot(blank, bits) for bits in store.bits[: store.count[0]]])
    place = np.empty(len(models), np.int64)
    used = np.flatnonzero(store.slots)
    place[store.slots[used] - 1] = used
    looks = 1 + (place - home) % len(store.slots)
    assert looks.mean() < 12.0


def test_bits_beyond_the_columns_are_zero():
    bits = np.full(3, 2**64 - 1, np.uint64)
    pack_bits(np.ones(130, np.bool_), bits)
    assert bits.tolist() == [2**64 - 1, 2**64 - 1, 3]
    pack_bits(np.zeros(0, np.bool_), bits)
    assert bits.tolist() == [0, 0, 0]
