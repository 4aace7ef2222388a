"""Proposals of Algorithm 1 against their probabilities, counted out."""

import functools
import itertools
import math

import numpy as np
import pytest

from bgnlm.search.proposals import (
    ADD,
    DELETE,
    FLIP,
    SWAP,
    choose,
    large_jump,
    log_randomize,
    ordinary_move,
    randomize,
    total_weight,
)
from tests.search.goodness import all_models, fit_p_value, mask_of

WEIGHTS = np.array([1.0, 2.0, 1.0, 2.0])
FINE = 60  # a multiple of every sum of these weights: midpoints of so many steps count probabilities out exactly
MODELS = all_models(4)
PROBABILITIES = np.array([0.1, 0.2, 0.3, 0.4])


class ScriptedRng:
    """Gives the numbers it was told to."""

    def __init__(self, numbers):
        self._numbers = iter(numbers)

    def random(self):
        return next(self._numbers)


@functools.cache
def _transitions(move):
    """Probability of every proposal from every model, and the log ratio that came with it."""
    n_draws = 2 if move == SWAP else 1
    midpoints = (np.arange(FINE) + 0.5) / FINE
    transitions, ratios = np.zeros((16, 16)), np.full((16, 16), np.nan)
    for here, model in enumerate(MODELS):
        for numbers in itertools.product(midpoints, repeat=n_draws):
            proposal, ratio = ordinary_move(ScriptedRng(numbers), model, WEIGHTS, move, PROBABILITIES)
            there = mask_of(proposal)
            transitions[here, there] += FINE**-n_draws
            assert np.isnan(ratios[here, there]) or ratios[here, there] == ratio
            ratios[here, there] = ratio
    return transitions, ratios


@pytest.mark.parametrize(("move", "backward"), [(FLIP, FLIP), (SWAP, SWAP), (ADD, DELETE), (DELETE, ADD)])
def test_the_ratio_of_an_ordinary_move_is_that_of_its_probabilities(move, backward):
    forth, ratios = _transitions(move)
    back, _ = _transitions(backward)
    assert forth.sum(axis=1) == pytest.approx(1.0)
    possible = np.isfinite(ratios)
    assert possible.sum() == {FLIP: 64, SWAP: 48, ADD: 32, DELETE: 32}[move]
    expected = np.log(PROBABILITIES[backward] * back.T[possible]) - np.log(PROBABILITIES[move] * forth[possible])
    assert ratios[possible] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("move", [FLIP, SWAP, ADD, DELETE])
def test_where_ordinary_moves_lead(move):
    forth, ratios = _transitions(move)
    for here, there in itertools.product(range(16), repeat=2):
        distance = (here ^ there).bit_count()
        growth = there.bit_count() - here.bit_count()
        wanted = {FLIP: distance == 1, SWAP: (distance, growth) == (2, 0), ADD: (distance, growth) == (1, 1)}
        leads = wanted.get(move, (distance, growth) == (1, -1))
        assert (forth[here, there] > 0 and ratios[here, there] > -np.inf) == leads


@pytest.mark.parametrize(("move", "stuck"), [(SWAP, [0, 15]), (ADD, [15]), (DELETE, [0])])
def test_a_move_that_is_not_possible_is_refused(move, stuck):
    for mask in stuck:
        proposal, ratio = ordinary_move(ScriptedRng([0.5, 0.5]), MODELS[mask], WEIGHTS, move, PROBABILITIES)
        assert ratio == -np.inf
        assert mask_of(proposal) == mask


@pytest.mark.parametrize(("move", "backward"), [(ADD, DELETE), (DELETE, ADD)])
def test_a_move_that_cannot_be_undone_is_refused(move, backward):
    alone = np.zeros(4)
    alone[move] = 1.0
    assert alone[backward] == 0.0
    assert ordinary_move(ScriptedRng([0.5]), MODELS[5], WEIGHTS, move, alone)[1] == -np.inf


def test_proposals_leave_the_model_alone(rng):
    model = MODELS[6].copy()
    for move in range(4):
        ordinary_move(rng, model, WEIGHTS, move, PROBABILITIES)
    large_jump(rng, model, 0.25, 0.45)
    randomize(rng, model, 0.5)
    assert mask_of(model) == 6


@pytest.mark.parametrize("state", [True, False])
def test_columns_are_chosen_by_their_weights(state):
    total = total_weight(WEIGHTS, MODELS[6], state)
    assert total == 3.0
    midpoints = (np.arange(FINE) + 0.5) / FINE
    chosen = [choose(ScriptedRng([u]), WEIGHTS, MODELS[6], state, total) for u in midpoints]
    shares = np.bincount(chosen, minlength=4) / FINE
    assert shares == pytest.approx(np.where(MODELS[6] == state, WEIGHTS / 3.0, 0.0))


@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5, 0.93])
def test_the_randomisation_has_a_density_over_all_models(rate):
    log_densities = np.array([[log_randomize(rate, there, here) for there in MODELS] for here in MODELS])
    assert np.exp(log_densities).sum(axis=1) == pytest.approx(1.0)
    assert np.isfinite(log_densities).all()
    np.testing.assert_array_equal(log_densities, log_densities.T)


def test_the_randomisation_is_drawn_from_its_density(rng):
    expected = np.exp([log_randomize(0.2, there, MODELS[9]) for there in MODELS])
    drawn = [mask_of(randomize(rng, MODELS[9], 0.2)) for _ in range(10_000)]
    assert fit_p_value(np.bincount(drawn, minlength=16), expected) > 1e-3
    wrong = np.exp([log_randomize(0.22, there, MODELS[9]) for there in MODELS])
    assert fit_p_value(np.bincount(drawn, minlength=16), wrong) < 1e-4


def test_the_randomisation_reaches_every_model_of_many_columns():
    nothing, everything = np.zeros(300, np.bool_), np.ones(300, np.bool_)
    assert log_randomize(0.001, everything, nothing) == pytest.approx(300 * math.log(0.001))
    assert log_randomize(0.001, nothing, nothing) == pytest.approx(300 * math.log(0.999))


@pytest.mark.parametrize(
    ("n_columns", "shares", "sizes"),
    [
        (1, (0.25, 0.45), [1]),
        (3, (0.25, 0.45), [1, 2]),
        (6, (0.25, 0.45), [1, 2, 3]),
        (20, (0.25, 0.45), [5, 6, 7, 8, 9]),
        (5, (0.0, 0.0), [1]),
        (5, (1.0, 1.0), [5]),
        (4, (0.0, 1.0), [1, 2, 3, 4]),
    ],
)
def test_sizes_of_large_jumps(n_columns, shares, sizes, rng):
    model = rng.random(n_columns) < 0.5
    flips = np.array([large_jump(rng, model, *shares) != model for _ in range(3000)])
    found, counts = np.unique(flips.sum(axis=1), return_counts=True)
    assert found.tolist() == sizes
    if len(sizes) > 2:
        assert fit_p_value(counts, np.full(len(sizes), 1 / len(sizes))) > 1e-3
    if n_columns > 2:
        assert fit_p_value(flips.sum(axis=0), np.full(n_columns, 1 / n_columns)) > 1e-3


def test_large_jumps_of_one_size_reach_all_sets_of_columns_alike(rng):
    drawn = [mask_of(large_jump(rng, np.zeros(6, np.bool_), 0.5, 0.5)) for _ in range(6000)]
    sets = np.array([mask.bit_count() == 3 for mask in range(64)])
    assert fit_p_value(np.bincount(drawn, minlength=64), sets / 20) > 1e-3


def test_no_columns_no_jump(rng):
    assert large_jump(rng, np.empty(0, np.bool_), 0.25, 0.45).shape == (0,)
    assert randomize(rng, np.empty(0, np.bool_), 0.1).shape == (0,)
    assert log_randomize(0.1, np.empty(0, np.bool_), np.empty(0, np.bool_)) == 0.0
