"""What the authors' scripts do before the first population: stepwise selection, and a filter of the inputs.

One forward selection from the null model and one backward selection from the model with all inputs; over the models
that these visit, each input has a probability. Inputs above a threshold stay in all populations.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pandas as pd

from bgnlm.search import ModelPrior
from bgnlm.search.problem import define_problem

Model = frozenset[int]
Score = Callable[[Sequence[Model]], np.ndarray]


def surviving_inputs(
    X: pd.DataFrame, y: np.ndarray, threshold: float, *, family: str, coefficient_prior: Any, penalty: ModelPrior
) -> list[str]:
    """Names of the inputs that the filter leaves, the most probable first."""
    names = list(X.columns)
    problem = define_problem(
        y, X.to_numpy(), names=names, family=family, coefficient_prior=coefficient_prior, prior=penalty
    )
    models = problem.likelihood.population(X.to_numpy(dtype=float))
    costs = penalty.costs(problem.inputs, len(y), len(names))

    def log_joint(some: Sequence[Model]) -> np.ndarray:
        prior = [costs[sorted(model)].sum() for model in some]
        return models.log_marginals([sorted(model) for model in some]) - np.array(prior)

    probabilities = stepwise_probabilities(log_joint, len(names))
    return [names[j] for j in np.argsort(-probabilities, kind="stable") if probabilities[j] >= threshold]


def stepwise_probabilities(log_joint: Score, n_inputs: int) -> np.ndarray:
    """Of each input, over all models that the two selections have a look at."""
    seen: dict[Model, float] = {}
    for model in (frozenset[int](), frozenset(range(n_inputs))):
        seen[model] = float(log_joint([model])[0])
    for start in list(seen):
        reached = start
        for _ in range(n_inputs):
            # Forward from nothing, backward from everything: what is there at the start does not come back.
            neighbours = [reached ^ {j} for j in range(n_inputs) if (j in reached) == (j in start)]
            values = log_joint(neighbours)
            seen.update(zip(neighbours, values.tolist(), strict=True))
            reached = neighbours[int(np.argmax(values))]
    values = np.array(list(seen.values()))
    weights = np.exp(values - values.max())
    members = np.array([[j in model for j in range(n_inputs)] for model in seen])
    return np.asarray(weights @ members / weights.sum())
