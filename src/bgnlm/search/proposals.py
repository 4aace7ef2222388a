"""Proposals of Algorithm 1: the large jump q_l, the small randomisation q_r, and ordinary one-step moves.

Plain functions that run interpreted and compiled; a model is a row of Booleans.
"""

import math

import numpy as np

from bgnlm.kernels._jit import both_forms

FLIP, SWAP, ADD, DELETE = range(4)
MOVES = ("flip", "swap", "add", "delete")


@both_forms
def large_jump(rng, included, smallest, largest):
    """q_l: flip a random number of columns between two shares of all of them, chosen at random."""
    n_columns = len(included)
    least = max(1, int(smallest * n_columns))
    most = max(least, math.ceil(largest * n_columns))
    n_flips = min(least + int(rng.random() * (most - least + 1)), n_columns)
    order = np.arange(n_columns)
    jumped = included.copy()
    for i in range(n_flips):
        j = i + int(rng.random() * (n_columns - i))
        order[i], order[j] = order[j], order[i]
        jumped[order[i]] = not jumped[order[i]]
    return jumped


@both_forms
def randomize(rng, included, rate):
    """q_r: flip each column with a small probability."""
    proposal = included.copy()
    for j in range(len(included)):
        if rng.random() < rate:
            proposal[j] = not proposal[j]
    return proposal


@both_forms
def log_randomize(rate, proposal, included):
    """Log q_r(proposal | included), positive for every pair."""
    n_columns = len(included)
    distance = 0
    for j in range(n_columns):
        distance += proposal[j] != included[j]
    return distance * math.log(rate) + (n_columns - distance) * math.log1p(-rate)


@both_forms
def total_weight(weights, included, state):
    """Sum of the weights of the columns that are in the model, or of those that are not."""
    total = 0.0
    for j in range(len(weights)):
        if included[j] == state:
            total += weights[j]
    return total


@both_forms
def choose(rng, weights, included, state, total):
    """Draw a column that is in the model (or one that is not), by its weight."""
    left = rng.random() * total
    chosen = -1
    for j in range(len(weights)):
        if included[j] == state:
            chosen = j
            left -= weights[j]
            if left < 0.0:
                break
    return chosen


@both_forms
def ordinary_move(rng, included, weights, move, probabilities):
    """One step to a neighbour and log q(included | proposal) / q(proposal | included); -inf if there is none.

    Columns are drawn by `weights`, which do not depend on the model.
    """
    proposal = included.copy()
    inside = total_weight(weights, included, True)
    outside = total_weight(weights, included, False)
    if move == FLIP:
        j = choose(rng, weights, np.ones(len(included), np.bool_), True, inside + outside)
        proposal[j] = not proposal[j]
        return proposal, 0.0
    if move == SWAP:
        leaving = choose(rng, weights, included, True, inside)
        entering = choose(rng, weights, included, False, outside)
        if leaving < 0 or entering < 0:
            return proposal, -np.inf
        proposal[leaving] = False
        proposal[entering] = True
        change = weights[entering] - weights[leaving]
        return proposal, math.log(inside) + math.log(outside) - math.log(inside + change) - math.log(outside - change)
    if move == ADD:
        j = choose(rng, weights, included, False, outside)
        if j < 0 or probabilities[DELETE] <= 0.0:
            return proposal, -np.inf
        proposal[j] = True
        ratio = math.log(probabilities[DELETE]) - math.log(probabilities[ADD])
        return proposal, ratio + math.log(outside) - math.log(inside + weights[j])
    j = choose(rng, weights, included, True, inside)
    if j < 0 or probabilities[ADD] <= 0.0:
        return proposal, -np.inf
    proposal[j] = False
    ratio = math.log(probabilities[ADD]) - math.log(probabilities[DELETE])
    return proposal, ratio + math.log(inside) - math.log(outside + weights[j])
