"""Exploration of a population whose projections have weights that models are averaged over.

With weights as they are best, a population can be explored like any other; what it then lacks is the price of not
knowing the weights. Models that look good this way are scored by averaging over their weights.
"""

from collections.abc import Sequence

import numpy as np

from bgnlm._typing import BoolArray, FloatArray
from bgnlm.features import Evaluator, Feature
from bgnlm.features.measures import weight_count
from bgnlm.search.averaged_weights import AverageOverWeights
from bgnlm.search.config import SearchConfig
from bgnlm.search.explore import Explored, Models, explore, summary_of
from bgnlm.search.mjmcmc import KERNELS
from bgnlm.search.visited import log_sum

_ROUNDS = 2
_SCORED = 15  # models in each round; many of them were scored in populations before
_IMPOSSIBLE = 1e6  # nats; the price of what has no score
_NEAR = 8.0  # nats below the best that a model may look to be scored


def explore_averaged(
    rng: np.random.Generator,
    features: Sequence[Feature],
    models: Models,
    evaluator: Evaluator,
    averages: AverageOverWeights,
    costs: FloatArray,
    config: SearchConfig,
    start: BoolArray,
    n_steps: int,
    best_so_far: float,
) -> Explored:
    """Explore a population; like `explore`, with averages over weights as marginal likelihoods."""
    free = np.array([weight_count(feature) > 0 for feature in features])
    if not free.any():
        return explore(rng, models, costs, config, start, n_steps, best_so_far)
    columns = evaluator.matrix(features)
    prices = np.array([averages.price(feature) if weight_count(feature) else 0.0 for feature in features])
    found: dict[bytes, float] = {}
    unscored: dict[bytes, float] = {}
    included, log_joint = np.zeros((0, len(features)), np.bool_), np.empty(0)
    log_discarded, n_scored, tally = -np.inf, 0, np.zeros((2, len(KERNELS)), np.int64)
    for _ in range(_ROUNDS):
        # Nothing is known yet about the best model of other populations on the scale of the guide.
        guide = explore(rng, averages.plugged_in(columns), costs + prices, config, start, n_steps, -np.inf)
        promise = guide.log_marginal - guide.included @ (costs + prices)
        tally = tally + guide.tally
        has_weights = np.asarray(guide.included[:, free].any(axis=1))
        for model, value in zip(guide.included[~has_weights], guide.log_marginal[~has_weights], strict=True):
            found[model.tobytes()] = float(value)
        n_new = 0
        # With noise, so that models of which the guide thinks too little have their chance.
        for row in np.argsort(-(promise + rng.gumbel(size=len(promise))), kind="stable").tolist():
            model = guide.included[row]
            key = model.tobytes()
            if not has_weights[row] or key in found:
                continue
            # Whether it was scored before does not matter: chains side by side know different models.
            if n_new < _SCORED and promise[row] > promise.max() - _NEAR:
                found[key] = averages.score([features[j] for j in np.flatnonzero(model).tolist()]).log_marginal
                unscored.pop(key, None)
                n_new += 1
            else:
                unscored[key] = float(promise[row])
        n_scored += n_new + int((~has_weights).sum())
        log_discarded = max(log_discarded, guide.log_discarded)
        if not found:
            break
        included = np.frombuffer(b"".join(found), dtype=np.bool_).reshape(len(found), len(features))
        log_joint = np.fromiter(found.values(), np.float64) - included @ costs
        start = included[int(np.argmax(log_joint))]
        # Next, the weights of the best model, and for each feature of it the price it has there.
        best = averages.score([features[j] for j in np.flatnonzero(start).tolist()]) if start[free].any() else None
        if best is None:
            break
        for j in np.flatnonzero(start & free).tolist():
            columns[:, j] = averages.column(features[j], best.best_weights[features[j]])
        share = (best.best_log_marginal - best.log_marginal) / max((start & free).sum(), 1)
        prices[start & free] = max(share, 0.0) if np.isfinite(share) else _IMPOSSIBLE
    # What was not scored counts as it looked.
    log_discarded = float(np.logaddexp(log_discarded, log_sum(np.array(list(unscored.values())))))
    return summary_of(included, log_joint, costs, None, n_scored, tally, log_discarded)
