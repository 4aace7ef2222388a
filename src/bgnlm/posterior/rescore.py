"""Another prior for what was visited, without a new search."""

from dataclasses import replace

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.errors import SettingError
from bgnlm.features import Component, Evaluator
from bgnlm.features.measures import weight_count
from bgnlm.latent.models import LatentModels
from bgnlm.likelihood.sizes import log_sizes
from bgnlm.posterior.summarize import Posterior, summarize
from bgnlm.search.latent_population import comparable
from bgnlm.search.problem import SearchProblem
from bgnlm.search.union import FoundModels
from bgnlm.search.visited import ModelRows

_AT_ONCE = 2000  # models whose columns are in memory at a time


def rescore(problem: SearchProblem, posterior: Posterior, max_models: int, *, same_likelihood: bool) -> Posterior:
    """Posterior of the models that were found under the priors of `problem`.

    Only models that the prior allows are left: of all if their likelihoods stay the same, of the `max_models` most
    probable otherwise. What was scored but not stored is not known under another prior.
    """
    found = posterior.found
    costs = np.array([problem.cost(feature) for feature in found.features])
    rows = found.rows if same_likelihood else found.rows.take(np.arange(min(len(found.rows), max_models)))
    if not same_likelihood:
        rows = replace(rows, log_marginal=_scored(problem, found, rows))
    largest = problem.config.limits.max_model_size
    joint = rows.log_joint(costs)
    is_feature = np.array([not isinstance(feature, Component) for feature in found.features])
    is_process = np.array([feature in _processes(problem) for feature in found.features])
    allowed = np.isfinite(joint)
    for is_counted, most in ((is_feature, largest), (is_process, problem.config.limits.max_latent)):
        if most is not None:
            allowed &= rows.sum_over_members(is_counted.astype(np.float64)) <= most
    if not allowed.any():
        raise SettingError("These priors must allow one of the models that were found; they allow none. Search anew.")
    return summarize(FoundModels(found.features, costs, rows.take(np.flatnonzero(allowed)), -np.inf))


def _processes(problem: SearchProblem) -> tuple[Component, ...]:
    """Latent components but for the offset."""
    return () if problem.latent is None else problem.components[: len(problem.latent.placed)]


def _scored(problem: SearchProblem, found: FoundModels, rows: ModelRows) -> FloatArray:
    if problem.latent is not None:
        return _scored_with_latent(problem, problem.latent, found, rows)
    evaluator = Evaluator(problem.X, problem.names, max_cached_bytes=2**27)
    values = np.empty(len(rows))
    for low in range(0, len(rows), _AT_ONCE):
        part = rows.take(np.arange(low, min(low + _AT_ONCE, len(rows))))
        used = np.unique(part.members)
        columns = evaluator.matrix(found.features[c] for c in used)
        columns[problem.likelihood.weights == 0.0] = 0.0
        models = [np.searchsorted(used, part.members_of(m)).tolist() for m in range(len(part))]
        values[low : low + len(part)] = problem.likelihood.population(columns).log_marginals(models)
    if problem.averages is not None:
        for m in range(len(rows)):
            features = [found.features[c] for c in rows.members_of(m)]
            if any(map(weight_count, features)):
                values[m] = problem.averages.score(features).log_marginal
    return values


def _scored_with_latent(
    problem: SearchProblem, latent: LatentModels, found: FoundModels, rows: ModelRows
) -> FloatArray:
    evaluator = Evaluator(problem.X, problem.names, max_cached_bytes=2**27)
    values = np.empty(len(rows))
    for m in range(len(rows)):
        members = [found.features[c] for c in rows.members_of(m)]
        features = [feature for feature in members if not isinstance(feature, Component)]
        components = sorted(problem.components.index(c) for c in members if isinstance(c, Component))
        columns = comparable(evaluator.matrix(features), latent)
        values[m] = latent.log_marginal(columns, tuple(components)) if latent.exists(tuple(components)) else -np.inf
        values[m] += float(log_sizes(len(features), problem.likelihood.n_slots))
    return values
