"""What the authors' scripts do until the first filter of the inputs.

One forward selection from the null model, one backward selection from the model with all inputs, and a walk from a
model drawn at random by steps of multiple-try Metropolis. Over all models that these look at each input has a
probability. Inputs above a threshold stay in all populations of the chain.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from bgnlm.search import ModelPrior
from bgnlm.search.problem import define_problem

Model = frozenset[int]
Score = Callable[[Sequence[Model]], np.ndarray]
_TRIES = 4
_MOST_FLIPS = 3


class Presearch(NamedTuple):
    """How linear models are scored, and those that the stepwise selections see, the same ones for all chains.

    Attributes
    ----------
    names
        Of the inputs.
    log_joint
        Of linear models.
    seen
        Models and their log joints.
    """

    names: list[str]
    log_joint: Score
    seen: dict[Model, float]

    def surviving_inputs(self, rng: np.random.Generator, n_steps: int, threshold: float) -> list[str]:
        """Names of the inputs that the filter leaves to one chain, the most probable first."""
        seen = self.seen | walk(rng, self.log_joint, len(self.names), n_steps)
        probabilities = inclusion(seen, len(self.names))
        return [self.names[j] for j in np.argsort(-probabilities, kind="stable") if probabilities[j] >= threshold]


def presearch(X: pd.DataFrame, y: np.ndarray, *, family: str, coefficient_prior: Any, penalty: ModelPrior) -> Presearch:
    """Do the stepwise selections."""
    names = list(X.columns)
    problem = define_problem(
        y, X.to_numpy(), names=names, family=family, coefficient_prior=coefficient_prior, prior=penalty
    )
    models = problem.likelihood.population(X.to_numpy(dtype=float))
    costs = penalty.costs(problem.inputs, len(y), len(names))

    def log_joint(some: Sequence[Model]) -> np.ndarray:
        prior = [costs[sorted(model)].sum() for model in some]
        return models.log_marginals([sorted(model) for model in some]) - np.array(prior)

    return Presearch(names, log_joint, stepwise(log_joint, len(names)))


def stepwise(log_joint: Score, n_inputs: int) -> dict[Model, float]:
    """All models that the two selections have a look at."""
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
    return seen


def walk(rng: np.random.Generator, log_joint: Score, n_inputs: int, n_steps: int) -> dict[Model, float]:
    """All models that multiple-try Metropolis has a look at, from a model that has each input by the toss of a coin."""
    here = frozenset(np.flatnonzero(rng.random(n_inputs) < 0.5).tolist())
    seen = {here: float(log_joint([here])[0])}

    def look(some: Sequence[Model]) -> np.ndarray:
        values = log_joint(some)
        seen.update(zip(some, values.tolist(), strict=True))
        return values

    for _ in range(n_steps):
        here = step(rng, look, here, n_inputs)
    return seen


def step(rng: np.random.Generator, log_joint: Score, here: Model, n_inputs: int) -> Model:
    """Multiple-try Metropolis: of some neighbours one by its probability, weighed against its own neighbours."""
    size = int(rng.integers(1, _MOST_FLIPS + 1))
    tried = [here ^ flips(rng, n_inputs, size) for _ in range(_TRIES)]
    forward = log_joint(tried)
    there = tried[int(np.argmax(forward + rng.gumbel(size=_TRIES)))]
    backward = log_joint([here, *(there ^ flips(rng, n_inputs, size) for _ in range(_TRIES - 1))])
    is_accepted = np.log(rng.random()) < np.logaddexp.reduce(forward) - np.logaddexp.reduce(backward)
    return there if is_accepted else here


def flips(rng: np.random.Generator, n_inputs: int, size: int) -> Model:
    """Draw different inputs."""
    return frozenset(rng.choice(n_inputs, size=min(size, n_inputs), replace=False).tolist())


def inclusion(seen: dict[Model, float], n_inputs: int) -> np.ndarray:
    """Probability of each input, over models and their log joints."""
    values = np.array(list(seen.values()))
    weights = np.exp(values - values.max())
    members = np.array([[j in model for j in range(n_inputs)] for model in seen])
    return np.asarray(weights @ members / weights.sum())
