"""Exploration of a population together with latent components (section 4.1 of the paper).

A model takes 5 to 50 milliseconds, more with several processes. An approximation, which takes as long for all models
with the same components together, says which models are worth it; what is stored is exact.
"""

from itertools import product

import numpy as np

from bgnlm._typing import BoolArray, FloatArray, IntArray
from bgnlm.latent.models import Components
from bgnlm.likelihood.subsets import unpack
from bgnlm.search.config import MOST_SURROGATE, SearchConfig, choose_latent_engine
from bgnlm.search.explore import Explored, starting_points, summary_of
from bgnlm.search.latent_population import LatentGuide, LatentPopulation
from bgnlm.search.mjmcmc import KERNELS, MjmcmcSettings, run_mjmcmc
from bgnlm.search.target import FunctionTarget

_ROUNDS = 3
_EXPANSIONS = 3
_PROMISING = 8.0  # nats below the best, of components with the best columns they were tried with
_NEAR = 30.0  # nats of the approximation
_FLIPPED = 0.02


def explore_latent(
    rng: np.random.Generator, models: LatentPopulation, config: SearchConfig, start: BoolArray, n_steps: int
) -> Explored:
    """Explore the models over the columns of a population and the components."""
    target = FunctionTarget(models.log_joint)
    model, tally = None, np.zeros((2, len(KERNELS)), np.int64)
    engine = choose_latent_engine(config.engine, models.n_columns, models.n_components, models.n_models, config.n_draws)
    if engine == "exhaustive":
        for included in models.all_models():
            target.log_joint(included)
    else:
        best = _climb(rng, target, models, start)
        if engine == "mjmcmc":
            target.guide = models.guide(models.split(best)[0])
            run = run_mjmcmc(rng, target, config.mjmcmc, best, n_steps)
            model, tally = run.model, run.tally
        else:
            for included in _drawn(rng, target, models, best, config, n_steps):
                target.log_joint(included)
    return _summary(target, models, model, tally)


def _summary(target: FunctionTarget, models: LatentPopulation, model: BoolArray | None, tally: IntArray) -> Explored:
    included, log_joint = _scored(target, len(models.costs))
    return summary_of(included, log_joint, models.costs, model, target.n_asked, tally)


def _scored(target: FunctionTarget, n_flags: int) -> tuple[BoolArray, FloatArray]:
    included = np.frombuffer(b"".join(target.values), dtype=np.bool_).reshape(len(target.values), n_flags)
    return included, np.fromiter(target.values.values(), np.float64)


def _climb(rng: np.random.Generator, target: FunctionTarget, models: LatentPopulation, start: BoolArray) -> BoolArray:
    """Climb over components and columns in turns, until neither leads further up."""
    best = start if models.exists(start) else np.zeros(len(models.costs), np.bool_)
    for _ in range(_ROUNDS):
        before = best
        best = _climb_columns(rng, target, models, _climb_components(target, models, best))
        if (best == before).all():
            break
    return best


def _climb_components(target: FunctionTarget, models: LatentPopulation, best: BoolArray) -> BoolArray:
    """Flip a component, or swap two, as long as the columns as they are do better with others."""
    while True:
        neighbours = _other_components(models, best)
        values = [target.log_joint(neighbour) for neighbour in neighbours]
        if not values or not max(values) > target.log_joint(best):
            return best
        best = neighbours[int(np.argmax(values))]


def _other_components(models: LatentPopulation, included: BoolArray) -> list[BoolArray]:
    places = np.arange(models.n_columns, len(included))
    inside, outside = places[included[places]], places[~included[places]]
    changes = [[place] for place in places] + [list(pair) for pair in product(inside, outside)]
    neighbours = []
    for change in changes:
        neighbour = included.copy()
        neighbour[change] ^= True
        if models.exists(neighbour):
            neighbours.append(neighbour)
    return neighbours


def _climb_columns(
    rng: np.random.Generator, target: FunctionTarget, models: LatentPopulation, best: BoolArray
) -> BoolArray:
    """Go where the approximation is best, expand it there, and again."""
    for _ in range(_EXPANSIONS):
        columns, components = models.split(best)
        guide = models.guide(columns)
        if models.n_columns <= MOST_SURROGATE:
            mask = int(np.argmax(guide.scores(components)))
            peak = models.flags(unpack(np.array([mask]), models.n_columns)[0], components)
        else:
            starts = starting_points(best[: models.n_columns], models.max_size, models.n_slots)
            peaks = [guide.climb(rng, models.flags(start, components)) for start in starts]
            peak = max(peaks, key=target.log_joint)
        if not target.log_joint(peak) > target.log_joint(best):
            break
        best = peak
    return best


def _drawn(
    rng: np.random.Generator,
    target: FunctionTarget,
    models: LatentPopulation,
    best: BoolArray,
    config: SearchConfig,
    n_steps: int,
) -> list[BoolArray]:
    """Models not scored yet, drawn by the approximation, and a few with flags flipped: every model has its chance."""
    n_wanted = max(config.n_draws - len(target.values), config.n_draws // 2)
    guide, choices = models.guide(models.split(best)[0]), _promising(target, models)
    if models.n_columns <= MOST_SURROGATE:
        likely = _enumerated(rng, models, guide, choices, n_wanted + len(target.values))
    else:
        likely = _met_on_a_walk(rng, models, guide, choices, best, config.mjmcmc, n_steps)
    drawn = [included for included in likely if included.tobytes() not in target.values][:n_wanted]
    n_flipped = max(n_wanted - len(drawn), int(_FLIPPED * config.n_draws), 1)
    origins = drawn or [best]
    changes = rng.random((n_flipped, len(best))) < 1.0 / len(best)
    flipped = [origins[k % len(origins)] ^ change for k, change in enumerate(changes)]
    return drawn + [included for included in flipped if models.exists(included)]


def _enumerated(
    rng: np.random.Generator, models: LatentPopulation, guide: LatentGuide, choices: list[Components], n_models: int
) -> list[BoolArray]:
    """Different models, drawn with probabilities proportional to the approximation of all of them."""
    approximate = np.concatenate([guide.scores(components) for components in choices])
    near = np.flatnonzero(approximate >= approximate.max() - _NEAR)
    places = near[_largest_with_noise(rng, approximate[near])[:n_models]]
    numbers, masks = np.divmod(places, 2**models.n_columns)
    columns = unpack(masks, models.n_columns)
    return [models.flags(chosen, choices[number]) for chosen, number in zip(columns, numbers, strict=True)]


def _met_on_a_walk(
    rng: np.random.Generator,
    models: LatentPopulation,
    guide: LatentGuide,
    choices: list[Components],
    best: BoolArray,
    settings: MjmcmcSettings,
    n_steps: int,
) -> list[BoolArray]:
    """Where there are too many models for that, those that Algorithm 1 meets on the approximation."""
    allowed = set(choices)
    walk = FunctionTarget(lambda m: guide.log_joint(m) if models.split(m)[1] in allowed else -np.inf)
    run_mjmcmc(rng, walk, settings, best, n_steps)
    included, approximate = _scored(walk, len(best))
    near = np.flatnonzero(approximate >= approximate.max() - _NEAR)
    return list(included[near[_largest_with_noise(rng, approximate[near])]])


def _largest_with_noise(rng: np.random.Generator, values: FloatArray) -> IntArray:
    """Places by value, the largest first; with Gumbel noise the first of them are a sample without replacement."""
    return np.argsort(-(values + rng.gumbel(size=len(values))), kind="stable")


def _promising(target: FunctionTarget, models: LatentPopulation) -> list[Components]:
    """Sets of components that did well with some columns."""
    included, log_joint = _scored(target, len(models.costs))
    heights: dict[Components, float] = {}
    for model, value in zip(included, log_joint.tolist(), strict=True):
        components = models.split(model)[1]
        heights[components] = max(value, heights.get(components, -np.inf))
    highest = max(heights.values())
    return sorted(components for components, height in heights.items() if height >= highest - _PROMISING)
