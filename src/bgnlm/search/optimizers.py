"""Local optimisation q_o of Algorithm 1: simulated annealing, greedy hill climbing, multiple-try MCMC.

Each takes a model and gives one near a mode. Any kernel will do: it cancels from the acceptance probability because
the backward path is drawn afresh from the same kernel.
"""

import math

import numpy as np

from bgnlm.kernels._jit import both_forms
from bgnlm.search.target import height

ANNEALING, GREEDY, MULTIPLE_TRY = range(3)
OPTIMIZERS = ("annealing", "greedy", "multiple_try")

HOTTEST = 10.0
COOLING = math.exp(-3.0)
TEMPERATURES = 4
STEPS_PER_TEMPERATURE = 1.0  # times the number of columns
PASSES = 8
TRIES = 4
MULTIPLE_TRY_STEPS = 1.5  # times the number of columns


@both_forms
def climb(rng, target, optimizer, included):
    """q_o: run one of the optimisers from a model."""
    peak = included.copy()
    if optimizer == ANNEALING:
        anneal(rng, target, peak)
    elif optimizer == GREEDY:
        climb_greedily(rng, target, peak)
    else:
        climb_by_tries(rng, target, peak)
    return peak


@both_forms
def most_models_of_a_climb(n_columns):
    """Bound on the number of models that one climb scores."""
    annealing = 1 + TEMPERATURES * (1 + int(STEPS_PER_TEMPERATURE * n_columns))
    tries = 1 + 2 * TRIES * (1 + int(MULTIPLE_TRY_STEPS * n_columns))
    return max(annealing, 1 + PASSES * n_columns, tries)


@both_forms
def anneal(rng, target, model):
    """Metropolis steps of single flips at falling temperatures."""
    n_columns = len(model)
    here = height(target, model)
    temperature = HOTTEST
    for _ in range(TEMPERATURES):
        for _ in range(1 + int(STEPS_PER_TEMPERATURE * n_columns)):
            j = int(rng.random() * n_columns)
            model[j] = not model[j]
            there = height(target, model)
            if math.log(1.0 - rng.random()) * temperature < there - here:
                here = there
            else:
                model[j] = not model[j]
        temperature *= COOLING


@both_forms
def climb_greedily(rng, target, model):
    """Flip whatever improves, in random order, until a whole pass over the columns changes nothing."""
    n_columns = len(model)
    here = height(target, model)
    order = np.arange(n_columns)
    for _ in range(PASSES):
        improved = False
        for i in range(n_columns):
            k = i + int(rng.random() * (n_columns - i))
            order[i], order[k] = order[k], order[i]
            j = order[i]
            model[j] = not model[j]
            there = height(target, model)
            if there > here:
                here = there
                improved = True
            else:
                model[j] = not model[j]
        if not improved:
            break


@both_forms
def climb_by_tries(rng, target, model):
    """Multiple-try Metropolis: of several flips one is drawn by its probability, and accepted by the sums of tries."""
    n_columns = len(model)
    columns = np.empty(TRIES, np.int64)
    heights = np.empty(TRIES)
    here = height(target, model)
    for _ in range(1 + int(MULTIPLE_TRY_STEPS * n_columns)):
        for i in range(TRIES):
            columns[i] = int(rng.random() * n_columns)
            heights[i] = height_after_flip(target, model, columns[i])
        forward = log_sum(heights)
        left = rng.random()
        chosen = TRIES - 1
        for i in range(TRIES):
            left -= math.exp(heights[i] - forward)
            if left < 0.0:
                chosen = i
                break
        there = heights[chosen]
        j = columns[chosen]
        model[j] = not model[j]
        heights[0] = here
        for i in range(1, TRIES):
            heights[i] = height_after_flip(target, model, int(rng.random() * n_columns))
        if math.log(1.0 - rng.random()) < forward - log_sum(heights):
            here = there
        else:
            model[j] = not model[j]


@both_forms
def height_after_flip(target, model, j):
    """Height of the neighbour that differs in one column."""
    model[j] = not model[j]
    value = height(target, model)
    model[j] = not model[j]
    return value


@both_forms
def log_sum(values):
    """Log of a sum of exponentials."""
    largest = values[0]
    for i in range(1, len(values)):
        largest = max(largest, values[i])
    total = 0.0
    for i in range(len(values)):
        total += math.exp(values[i] - largest)
    return largest + math.log(total)
