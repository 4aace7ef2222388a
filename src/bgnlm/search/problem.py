"""What a search is about: data, likelihood, the features allowed, the prior of models, and the settings."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm._validation import check_design, check_number, column_names
from bgnlm.errors import FeatureError, SettingError
from bgnlm.features import (
    Component,
    Evaluator,
    Feature,
    Input,
    Transform,
    inputs_of,
    parse,
    resolve_transforms,
    transforms_of,
)
from bgnlm.latent.layout import Placed
from bgnlm.latent.models import LatentModels
from bgnlm.likelihood.coefficient_priors import CoefficientPrior, resolve_prior
from bgnlm.likelihood.gram import GramBuilder
from bgnlm.likelihood.marginal import Likelihood, check_likelihood
from bgnlm.likelihood.tabulate import TabulatedScore
from bgnlm.search.averaged_weights import AverageOverWeights
from bgnlm.search.classes import ClassTable, FeatureClasses, table_of
from bgnlm.search.config import SearchConfig, choose_engine, choose_latent_engine, resolved
from bgnlm.search.latent_problem import check_component_names, check_latent_prior, latent_models
from bgnlm.search.prior import PREDICTIVE, ModelPrior

if TYPE_CHECKING:  # exploration is about problems
    from bgnlm.search.explore import Explored
    from bgnlm.search.latent_population import LatentKey


@dataclass(frozen=True, eq=False)
class SearchProblem:
    """Everything a chain needs to know, checked; the same for all chains.

    Attributes
    ----------
    likelihood
        The response and how models of it are scored.
    X, names
        The inputs.
    transforms
        The set G.
    prior
        p(m).
    keep
        Features that stay in every population.
    config
        Settings of the search.
    latent
        Scores models with latent components, or an offset that can be chosen; None where there are none.
    """

    likelihood: Likelihood
    X: FloatArray
    names: tuple[str, ...]
    transforms: tuple[Transform, ...]
    prior: ModelPrior
    keep: tuple[Feature, ...]
    config: SearchConfig
    latent: LatentModels | None = None

    @property
    def n_obs(self) -> float:
        """Sum of the weights."""
        return float(self.likelihood.weights.sum())

    @property
    def inputs(self) -> tuple[Input, ...]:
        """F_0."""
        return tuple(map(Input, self.names))

    @cached_property
    def components(self) -> tuple[Component, ...]:
        """What models can have beside features: their flags follow those of the features."""
        return () if self.latent is None else tuple(map(Component, self.latent.names))

    @cached_property
    def component_costs(self) -> FloatArray:
        """Nats of prior that each component costs a model."""
        return np.empty(0) if self.latent is None else self.prior.latent_costs(self.latent.complexities, self.n_obs)

    @cached_property
    def guide(self) -> Likelihood:
        """Likelihood without latent components, to find features by: the likelihood itself if there are none."""
        likelihood = self.likelihood
        if self.latent is None:
            return likelihood
        prior = resolve_prior("auto", family=likelihood.family.name)
        offset = np.zeros_like(likelihood.offset) if self.latent.selects_offset else likelihood.offset
        return replace(likelihood, prior=prior, offset=offset)

    @property
    def all_transforms(self) -> tuple[Transform, ...]:
        """Those of G, and others that features to keep use."""
        kept = (transform for feature in self.keep for transform in transforms_of(feature))
        return tuple(dict.fromkeys((*self.transforms, *kept)))

    @property
    def is_gaussian(self) -> bool:
        """Whether models are scored from a Gram matrix."""
        return self.likelihood.family.name == "gaussian"

    @property
    def population_size(self) -> int:
        """Number of features in a population."""
        if self.config.population_size is not None:
            return self.config.population_size
        return max(15, min(len(self.names) + 5, 100))

    @cached_property
    def builder(self) -> GramBuilder:
        """Standardises columns."""
        return GramBuilder(self.guide.y, self.guide.weights, self.guide.offset)

    @cached_property
    def score(self) -> TabulatedScore:
        """Return the score of Gaussian models, tabulated for all populations."""
        return self.guide.tabulated_score(self.builder.statistics_of(np.empty((len(self.X), 0))))

    @cached_property
    def explored_by_all(self) -> dict[tuple[Feature, ...], "Explored"]:
        """What chains of this process found out about populations that they have in common."""
        return {}

    @cached_property
    def latent_scores(self) -> "dict[LatentKey, float]":
        """What chains of this process found out about models with latent components."""
        return {}

    @cached_property
    def averages(self) -> AverageOverWeights | None:
        """Scores models whose weights are parameters; None where they are set with the features."""
        settings = self.config.projection_weights
        if settings.strategy != "bayesian":
            return None
        return AverageOverWeights(settings, self.likelihood, self.X, self.names)

    def cost(self, feature: Feature) -> float:
        """Nats of prior that a feature, or a component, costs a model."""
        if isinstance(feature, Component):
            return float(self.component_costs[self.components.index(feature)])
        return float(self.prior.costs((feature,), self.n_obs, len(self.names))[0])

    def classes(self, evaluator: Evaluator, known: ClassTable | None = None) -> FeatureClasses:
        """Return the classes of features that are known; the components, which come first, always are."""
        if known is None:
            known = table_of(self.components, self.component_costs)
        # A prior on slopes of columns as they are tells a column from its affine maps.
        is_invariant = self.latent is None or self.latent.slopes.standardised
        return FeatureClasses(evaluator, self.builder, self.cost, self.likelihood.weights, known, is_invariant)


def define_problem(
    y: Any,
    X: Any,
    *,
    family: str = "gaussian",
    link: str | None = None,
    coefficient_prior: str | CoefficientPrior = "auto",
    noise_floor: float = 0.0,
    sample_weight: Any = None,
    offset: Any = None,
    names: Sequence[str] | None = None,
    transforms: str | Iterable[str | Transform] = "default",
    prior: ModelPrior | None = None,
    keep: Iterable[str | Feature] = (),
    config: SearchConfig | None = None,
    latent: Iterable[Placed] | None = None,
) -> SearchProblem:
    """Check everything that a user can set."""
    settings = SearchConfig() if config is None else config
    if not isinstance(settings, SearchConfig):
        raise SettingError(f"config must be a SearchConfig; got {config!r}.")
    has_latent = latent is not None or settings.select_offset
    latent_prior = check_latent_prior(coefficient_prior) if has_latent else None
    likelihood = check_likelihood(
        y,
        family=family,
        link=link,
        coefficient_prior=coefficient_prior if latent_prior is None else "auto",
        noise_floor=noise_floor,
        sample_weight=sample_weight,
        offset=offset,
    )
    design = check_design(X, len(likelihood.y))
    if design.shape[1] == 0:
        raise SettingError("X must have at least one column; got none.")
    model_prior = ModelPrior() if prior is None else prior
    if not isinstance(model_prior, ModelPrior):
        raise SettingError(f"prior must be a ModelPrior; got {prior!r}.")
    if isinstance(keep, str) or not isinstance(keep, Iterable):
        raise SettingError(f"keep must be a list of features or their texts; got {keep!r}. Write [{keep!r}].")
    sizes = [size for size in (settings.limits.max_model_size, model_prior.max_model_size) if size is not None]
    settings = resolved(
        settings,
        float(likelihood.weights.sum()),
        has_latent,
        n_rows=len(likelihood.y),
        draws_models=model_prior == PREDICTIVE and _can_be_drawn(likelihood, settings, has_latent),
    )
    settings = replace(settings, limits=replace(settings.limits, max_model_size=min(sizes, default=None)))
    likelihood = replace(
        likelihood, n_slots=model_prior.n_slots(design.shape[1]), prior=latent_prior or likelihood.prior
    )
    problem = SearchProblem(
        likelihood=likelihood,
        X=design,
        names=column_names(X, design.shape[1], names),
        transforms=resolve_transforms(transforms),
        prior=model_prior,
        keep=tuple(parse(feature) if isinstance(feature, str) else feature for feature in keep),
        config=settings,
        latent=latent_models(likelihood, () if latent is None else latent, settings) if has_latent else None,
    )
    _check_keep(problem)
    _check_weights(problem)
    _check_derivatives(problem)
    _check_engine(problem)
    _check_pool(problem)
    check_component_names((c.name for c in problem.components), problem.names, problem.all_transforms)
    return problem


def _check_engine(problem: SearchProblem) -> None:
    config, size = problem.config, problem.population_size
    if problem.latent is None:
        choose_engine(config.engine, problem.is_gaussian, size)
    else:
        choose_latent_engine(config.engine, size, len(problem.components), math.inf, config.n_draws)


def _can_be_drawn(likelihood: Likelihood, config: SearchConfig, has_latent: bool) -> bool:
    """Whether the sampler of `pooling` is for these models."""
    is_bayesian = config.projection_weights is not None and config.projection_weights.strategy == "bayesian"
    is_logistic = likelihood.family.name == "binomial" and likelihood.family.link == "logit"
    return is_logistic and likelihood.prior.name == "gaussian" and not has_latent and not is_bayesian


def _check_pool(problem: SearchProblem) -> None:
    likelihood = problem.likelihood
    if problem.config.n_pool_draws and not _can_be_drawn(likelihood, problem.config, problem.latent is not None):
        raise SettingError(
            "n_pool_draws is for the family 'binomial' with link 'logit' and coefficient_prior 'auto' or 'gaussian', "
            f"without latent components and Bayesian weights; got {likelihood.family.name!r} with link "
            f"{likelihood.family.link!r} and {likelihood.prior.name!r}"
            f"{', latent components' if problem.latent is not None else ''}"
            f"{', Bayesian weights' if problem.averages is not None else ''}. Use n_pool_draws=0."
        )


def _check_keep(problem: SearchProblem) -> None:
    for feature in problem.keep:
        unknown = inputs_of(feature) - set(problem.names)
        if unknown:
            raise FeatureError(
                f"keep has {feature}, but there is no column {sorted(unknown)[0]!r}. The columns are: "
                f"{', '.join(problem.names)}."
            )
        for transform in transforms_of(feature):
            namesake = next((known for known in problem.transforms if known == transform), transform)
            if namesake.function is not transform.function:
                raise FeatureError(
                    f"keep has {feature}, whose {transform.name} is another function than the {transform.name} of "
                    "transforms. Give one of them another name."
                )
    if len(problem.keep) >= problem.population_size:
        raise SettingError(
            f"keep must have fewer features than a population, {problem.population_size}; got {len(problem.keep)}. "
            "Use a larger population_size."
        )


def _check_derivatives(problem: SearchProblem) -> None:
    settings = problem.config.projection_weights
    if settings.strategy in ("conditional", "naive") or settings.without_gradient == "search":
        return
    lacking = [g.name for g in problem.transforms if g.derivative is None or g.quantile is not None]
    if lacking:
        raise SettingError(
            f"transforms must have a derivative, and no cut point, for weights that are fitted by gradients; got "
            f'{", ".join(lacking)}. Leave them out, or use ProjectionWeights(without_gradient="search").'
        )


def _check_weights(problem: SearchProblem) -> None:
    weights = problem.config.transform_weights
    if weights is None:
        return
    if len(weights) != len(problem.transforms):
        raise SettingError(
            f"transform_weights must have one weight for each of the {len(problem.transforms)} transforms; "
            f"got {len(weights)}."
        )
    if not sum(check_number(weight, "transform_weights", low=0.0) for weight in weights) > 0.0:
        raise SettingError("transform_weights must not all be 0.")
