"""A hash table of models scored in one population: bits of a model -> its score, the same compiled and interpreted."""

from typing import Any, NamedTuple

import numpy as np

from bgnlm.kernels._jit import both_forms, jit

_WORD = 64
_LOW, _HALF, _QUARTER = np.uint64(0xFFFFFFFF), np.uint64(32), np.uint64(16)
_SEEDS = (np.uint64(0x9E3779B9), np.uint64(0x7F4A7C15))
_FACTORS = (np.uint64(0x9E3779B1), np.uint64(0x85EBCA77))


class ModelStore(NamedTuple):
    """Models in the order in which they were scored, and a table to find them.

    There is room for half as many models as there are slots; `count` holds the number of models and how often one was
    asked for.
    """

    slots: Any  # (2 * capacity,), a power of two: place of the model plus one, 0 for none
    bits: Any  # (capacity, words)
    values: Any  # (capacity,)
    count: Any  # (2,)


def empty_store(n_columns: int, capacity: int) -> ModelStore:
    """Return a store with room for at least `capacity` models over `n_columns` columns."""
    room = 1 << max(int(capacity) - 1, 7).bit_length()
    n_words = max(1, -(-n_columns // _WORD))
    return ModelStore(
        np.zeros(2 * room, np.int64), np.zeros((room, n_words), np.uint64), np.empty(room), np.zeros(2, np.int64)
    )


def enlarged(store: ModelStore) -> ModelStore:
    """Return a store of twice the size with the same models."""
    n_models = int(store.count[0])
    larger = empty_store(_WORD * store.bits.shape[1], 2 * len(store.values))
    larger.bits[:n_models] = store.bits[:n_models]
    larger.values[:n_models] = store.values[:n_models]
    larger.count[:] = store.count
    fill_slots(larger)
    return larger


@both_forms
def pack_bits(included, bits):
    """Write a row of Booleans as bits, the first column lowest."""
    for word in range(len(bits)):
        packed = np.uint64(0)
        first = word * _WORD
        for j in range(first, min(len(included), first + _WORD)):  # without branches: they would be mispredicted
            packed |= np.uint64(included[j]) << np.uint64(j - first)
        bits[word] = packed


@both_forms
def find_slot(store, bits):
    """Where a model is in the table, or the free slot where it belongs."""
    # Two halves of 32 bits take turns in multiplying, so that nothing overflows in the interpreted form.
    a, b = _SEEDS
    for word in range(len(bits)):
        a ^= bits[word] & _LOW
        b ^= bits[word] >> _HALF
        for _ in range(2):
            product = a * _FACTORS[0]
            b ^= product >> _HALF
            a = product & _LOW
            product = b * _FACTORS[1]
            a ^= product >> _HALF
            b = product & _LOW
    slot = np.int64((a ^ (b << _QUARTER)) & np.uint64(len(store.slots) - 1))
    while store.slots[slot] != 0:
        place = store.slots[slot] - 1
        same = True
        for word in range(len(bits)):
            if store.bits[place, word] != bits[word]:
                same = False
        if same:
            return slot
        slot = (slot + 1) & (len(store.slots) - 1)
    return slot


@both_forms
def insert(store, slot, bits, value):
    """Put a model that was not there into its free slot; there must be room."""
    place = store.count[0]
    for word in range(len(bits)):
        store.bits[place, word] = bits[word]
    store.values[place] = value
    store.slots[slot] = place + 1
    store.count[0] += 1


@jit
def fill_slots(store):
    """Enter all models of a store whose table is empty."""
    for place in range(store.count[0]):
        store.slots[find_slot(store, store.bits[place])] = place + 1
