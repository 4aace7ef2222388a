"""Algorithm 2 of the paper: genetically modified MJMCMC, one population after the other.

A chain is a value, `ChainState`, and its progress a function, `advance`: state in, discoveries out. A discovery has all
that the next state differs by, so that discoveries, one after the other, are the chain. Whoever calls `advance` keeps
them, stops when it is time, and can go on from any state in any process.
"""

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from bgnlm._typing import BoolArray, IntArray
from bgnlm.errors import DataError
from bgnlm.features import Evaluator, Feature
from bgnlm.latent.models import LatentModels
from bgnlm.likelihood.gaussian_fit import GaussianPopulation
from bgnlm.search.classes import ClassChanges, ClassTable, Identified, class_key
from bgnlm.search.explore import Explored, Models, engine_of, explore
from bgnlm.search.explore_averaged import explore_averaged
from bgnlm.search.explore_latent import explore_latent
from bgnlm.search.generation import make_generator
from bgnlm.search.informed import CandidateRanking
from bgnlm.search.latent_population import LatentPopulation, comparable
from bgnlm.search.population import Draft, Population, select_survivors
from bgnlm.search.problem import SearchProblem
from bgnlm.search.visited import ModelRows, rows_of

_ATTEMPTS = 60  # per feature to be replaced
_CACHED_BYTES = 2**27


@dataclass(frozen=True, eq=False)
class ChainState:
    """Where a chain is: the next population to explore, and what it takes to make the ones after it.

    Attributes
    ----------
    random_state
        State of the random number generator.
    features
        The population, in the forms its columns are computed from.
    model
        Model from which exploration starts: flags of the features, then of latent components.
    classes
        Features met so far.
    n_explored
        Populations explored so far.
    best_log_joint
        Of all models scored so far.
    """

    random_state: Mapping[str, Any]
    features: tuple[Feature, ...]
    model: BoolArray
    classes: ClassTable
    n_explored: int
    best_log_joint: float

    def is_same_as(self, other: "ChainState") -> bool:
        """Whether two states are the same point of the same chain; its random numbers tell chains apart."""
        return self.n_explored == other.n_explored and self.random_state == other.random_state

    def after(self, found: "Discovery") -> "ChainState":
        """Return the state after a population was explored and the next one made."""
        return ChainState(
            random_state=found.random_state,
            features=found.features,
            model=found.model,
            classes=self.classes.changed(found.changes),
            n_explored=self.n_explored + 1,
            best_log_joint=max(self.best_log_joint, found.best_log_joint),
        )


class Discovery(NamedTuple):
    """What one population brought to light, and where the chain went from there.

    Attributes
    ----------
    models
        Models to be stored.
    classes
        Of the features of the population, then of latent components.
    log_discarded
        Log of the summed p(y | m) p(m) of models that were scored and are not stored.
    best_log_joint, n_scored, tally
        As in `Explored`.
    seconds
        How long it took.
    random_state, features, model
        Of the next state.
    changes
        Classes that were found, or became cheaper.
    """

    models: ModelRows
    classes: IntArray
    log_discarded: float
    best_log_joint: float
    n_scored: int
    tally: IntArray
    seconds: float
    random_state: Mapping[str, Any]
    features: tuple[Feature, ...]
    model: BoolArray
    changes: ClassChanges


class Workspace:
    """Things a chain computes with that can be had again from its state: columns, classes, inner products."""

    def __init__(self, problem: SearchProblem) -> None:
        self.problem = problem
        config = problem.config
        self.evaluator = Evaluator(problem.X, problem.names, max_cached_bytes=_CACHED_BYTES)
        self.classes = problem.classes(self.evaluator)
        self.generator = make_generator(problem, problem.guide, self.evaluator)
        self.ranking = CandidateRanking(problem, self.evaluator) if config.informed else None
        self.rng = np.random.Generator(np.random.PCG64())
        self.population: Population | None = None
        self.state: ChainState | None = None

    def resume(self, state: ChainState) -> None:
        """Continue from a state, which costs nothing if it is the one that was left."""
        if self.state is not None and state.is_same_as(self.state):
            return
        self.classes = self.problem.classes(self.evaluator, state.classes)
        self.rng.bit_generator.state = state.random_state
        self.population = self.rebuilt(state.features)
        self.state = state

    def rebuilt(self, features: tuple[Feature, ...]) -> Population:
        """Compute a population from its features."""
        draft = Draft(self.problem.builder, len(features))
        for feature in features:
            identified = self.classes.identify(feature)
            assert identified is not None  # it was accepted on these data before
            draft.restore(identified)
        return draft.finish()

    def all_classes(self, population: Population) -> IntArray:
        """Classes of the features of a population, and of the components, which are the first of all."""
        return np.append(population.classes, np.arange(len(self.problem.components)))

    def models(self, population: Population) -> Models | LatentPopulation:
        """All models over the features of a population."""
        if self.problem.latent is not None:
            return self.latent_models(self.problem.latent, population)
        if self.problem.is_gaussian:
            return GaussianPopulation(population.statistics, self.problem.score)
        return self.problem.likelihood.population(self.evaluator.matrix(population.features))

    def latent_models(self, latent: LatentModels, population: Population) -> LatentPopulation:
        """All models over the features of a population and the components."""
        limit = self.problem.config.limits.max_model_size
        return LatentPopulation(
            latent=latent,
            features=population.features,
            columns=comparable(self.evaluator.matrix(population.features), latent),
            costs=self.classes.costs_of(self.all_classes(population)),
            max_size=len(population) if limit is None else min(limit, len(population)),
            n_slots=self.problem.likelihood.n_slots,
            known=self.problem.latent_scores,
        )

    def explore(
        self, population: Population, models: Models | LatentPopulation, state: ChainState, n_steps: int
    ) -> Explored:
        """MJMCMC, or what does its work, within a population."""
        costs, config, best = self.classes.costs_of(population.classes), self.problem.config, state.best_log_joint
        if isinstance(models, LatentPopulation):
            return explore_latent(self.rng, models, config, state.model, n_steps)
        averages = self.problem.averages
        if averages is None:
            if state.n_explored or engine_of(models, config, len(costs)) != "exhaustive":
                return explore(self.rng, models, costs, config, state.model, n_steps, best)
            # All chains begin with the same population, and there is no chance in scoring all its models.
            shared = self.problem.explored_by_all
            if population.features not in shared:
                shared[population.features] = explore(self.rng, models, costs, config, state.model, n_steps, best)
            return shared[population.features]
        return explore_averaged(
            self.rng,
            self.representatives(population),
            models,
            self.evaluator,
            averages,
            costs,
            config,
            state.model,
            n_steps,
            best,
        )

    def ranked(
        self, population: Population, models: Models | LatentPopulation, explored: Explored
    ) -> Iterator[Feature]:
        """Candidates for the next population, those first that promise most beside its best model."""
        assert self.ranking is not None
        n_features = len(population)
        included = np.flatnonzero(explored.best[:n_features]).tolist()
        probabilities = explored.probabilities[:n_features]
        parents = self.generator.candidate_parents(self.representatives(population), probabilities)
        if isinstance(models, LatentPopulation):
            yield from self.ranking.by(self.rng, parents, lambda columns: models.gains(explored.best, columns))
        else:
            best = [population.features[j] for j in included]
            fit = None if self.problem.is_gaussian else models.fit(included)
            yield from self.ranking.best(self.rng, models, best, fit, parents)

    def representatives(self, population: Population) -> list[Feature]:
        """Simplest known forms of the features of a population."""
        return [self.classes.representatives[c] for c in population.classes]


def start_chain(problem: SearchProblem, seed: np.random.SeedSequence, workspace: Workspace) -> ChainState:
    """Initialisation: S_0 by marginal testing of the inputs."""
    rng = np.random.Generator(np.random.PCG64(seed))
    draft = Draft(problem.builder, problem.population_size, len(problem.keep))
    for feature in problem.keep:
        # Where weights are parameters, a structure is kept; elsewhere a feature with the weights it was given.
        structure = feature if problem.averages is None else workspace.generator.canonical(feature)
        identified = workspace.classes.identify(structure)
        if identified is None:
            raise DataError(
                f"{feature} cannot be kept: on these data it is constant or not finite, or the prior rules it out."
            )
        if not draft.accept(identified):
            raise DataError(
                f"{feature} cannot be kept: on these data it depends on other features of keep. Leave it out."
            )
    wanted = problem.config.n_initial_inputs or problem.population_size
    wanted = min(len(draft) + wanted, problem.population_size)
    for feature in marginal_order(problem, workspace):
        if len(draft) >= wanted:
            break
        if (identified := workspace.classes.identify(feature)) is not None:
            draft.accept(identified)
    population = draft.finish()
    state = ChainState(
        random_state=rng.bit_generator.state,
        features=population.features,
        model=np.zeros(len(population) + len(problem.components), np.bool_),
        classes=workspace.classes.table(),
        n_explored=0,
        best_log_joint=-np.inf,
    )
    workspace.classes.changes()  # they are in the table
    workspace.rng, workspace.population, workspace.state = rng, population, state
    return state


def with_seed(state: ChainState, seed: np.random.SeedSequence) -> ChainState:
    """Return the beginning of another chain: the initial population is the same for all of them."""
    return replace(state, random_state=np.random.PCG64(seed).state)


def marginal_order(problem: SearchProblem, workspace: Workspace) -> list[Feature]:
    """Inputs by the log joint of the model with nothing else, the best first."""
    found = [(feature, workspace.classes.identify(feature)) for feature in problem.inputs]
    usable = [(feature, identified) for feature, identified in found if identified is not None]
    values = [_log_joint_alone(problem, workspace, identified) for _, identified in usable]
    return [usable[j][0] for j in np.argsort(-np.array(values), kind="stable")]


def _log_joint_alone(problem: SearchProblem, workspace: Workspace, identified: Identified) -> float:
    """Log joint of the model with one feature, up to what all of them share."""
    if problem.is_gaussian:
        response = problem.builder.response
        left = 1.0 - float(np.sum(response.values * identified.unit.values)) ** 2
        value = problem.score.exact.log_bayes_factor(1, np.array([min(max(left, response.noise**2), 1.0)]))[0]
    else:
        column = workspace.evaluator.column(identified.feature)
        value = problem.guide.population(column[:, None]).fit([0]).log_marginal
    return float(value) - identified.cost


def advance(
    problem: SearchProblem, state: ChainState, n_populations: int, workspace: Workspace | None = None
) -> tuple[ChainState, list[Discovery]]:
    """Algorithm 2: explore the population, make the next one, so many times."""
    work = Workspace(problem) if workspace is None else workspace
    found = []
    for _ in range(n_populations):
        state, discovery = step(work, state)
        found.append(discovery)
    return state, found


def step(work: Workspace, state: ChainState) -> tuple[ChainState, Discovery]:
    """Explore S_t and make S_(t+1).

    After the last population of the chain no other is made: exploring it again goes on where it was left.
    """
    began = time.perf_counter()
    work.resume(state)
    problem, population = work.problem, work.population
    assert population is not None
    models = work.models(population)
    is_last = state.n_explored >= problem.config.n_populations - 1
    explored = work.explore(population, models, state, _n_steps(problem, state.n_explored, is_last))
    following, model = population, explored.model
    if not is_last:
        following, origins = next_population(work, population, models, explored)  # S_(t+1)
        of_features, of_components = np.split(explored.model, [len(population)])
        model = np.append(np.append(of_features, False)[origins], of_components)
    classes = work.all_classes(population)
    keys = np.array([class_key(int(number)) for number in classes], dtype=np.uint64)
    discovery = Discovery(
        models=rows_of(explored.included, classes, keys, explored.log_marginal),
        classes=classes,
        log_discarded=explored.log_discarded,
        best_log_joint=explored.best_log_joint,
        n_scored=explored.n_scored,
        tally=explored.tally,
        seconds=time.perf_counter() - began,
        random_state=work.rng.bit_generator.state,
        features=following.features,
        model=model,
        changes=work.classes.changes(),
    )
    work.population, work.state = following, state.after(discovery)
    return work.state, discovery


def next_population(
    work: Workspace, population: Population, models: Models | LatentPopulation, explored: Explored
) -> tuple[Population, list[int]]:
    """Transition between populations: filtration, then replacements for what went.

    Also returned: where each feature was before (-1 for nowhere).
    """
    problem, rng = work.problem, work.rng
    size = problem.population_size
    protected = np.arange(len(population)) < len(problem.keep)
    probabilities = explored.probabilities[: len(population)]
    kept = select_survivors(rng, probabilities, problem.config.keep_threshold, protected, len(population) >= size)
    draft = Draft(problem.builder, size, len(problem.keep))
    draft.keep(population, work.classes.costs_of(population.classes), kept)
    parents = work.generator.parents(work.representatives(population), probabilities)
    left = set(population.classes[~kept].tolist())  # what has just gone does not come straight back

    def offer(feature: Feature) -> None:
        known = work.classes.class_of(feature)
        if known is not None and (known in draft or known in left):
            return
        identified = work.classes.identify(feature)
        if identified is not None and identified.feature_class not in left:
            draft.accept(identified)

    if work.ranking is not None:
        n_informed = int(problem.config.informed * (size - len(draft)) + rng.random())
        wanted = len(draft) + n_informed
        for candidate in work.ranked(population, models, explored):
            if len(draft) >= wanted:
                break
            offer(candidate)
    for _ in range(_ATTEMPTS * (size - len(draft))):
        if len(draft) == size:
            break
        if (feature := work.generator.draw(rng, parents)) is not None:
            offer(feature)
    if len(draft) < len(population):  # nothing else can be made: what went comes back
        left.clear()
        for j in np.flatnonzero(~kept):
            offer(population.features[j])
    return draft.finish(), draft.origins


def _n_steps(problem: SearchProblem, n_explored: int, is_last: bool) -> int:
    config = problem.config
    if is_last:
        return config.n_final_steps
    return config.n_initial_steps if n_explored == 0 else config.n_explore_steps
