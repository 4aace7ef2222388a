"""Another prior for what was visited, without a new search."""

from dataclasses import replace

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.errors import SettingError
from bgnlm.features import Evaluator
from bgnlm.features.measures import weight_count
from bgnlm.posterior.summarize import Posterior, summarize
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
    costs = problem.prior.costs(found.features, problem.n_obs, len(problem.names))
    rows = found.rows if same_likelihood else found.rows.take(np.arange(min(len(found.rows), max_models)))
    if not same_likelihood:
        rows = replace(rows, log_marginal=_scored(problem, found, rows))
    largest = problem.config.limits.max_model_size
    joint = rows.log_joint(costs)
    allowed = np.isfinite(joint) & (rows.sizes <= (np.inf if largest is None else largest))
    if not allowed.any():
        raise SettingError("These priors must allow one of the models that were found; they allow none. Search anew.")
    return summarize(FoundModels(found.features, costs, rows.take(np.flatnonzero(allowed)), -np.inf))


def _scored(problem: SearchProblem, found: FoundModels, rows: ModelRows) -> FloatArray:
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
