"""Settings of the search: what features may look like, how they are made, how long models are explored."""

from dataclasses import dataclass, field, fields, replace
from typing import Any, Literal, get_args

from bgnlm._validation import check_choice, check_count, check_number
from bgnlm.errors import SettingError
from bgnlm.search.mjmcmc import MjmcmcSettings

Strategy = Literal["naive", "concave", "deep", "bayesian", "conditional"]
Engine = Literal["auto", "exhaustive", "mjmcmc", "surrogate"]
# Up to so many columns all models are scored; beyond, sampling finds nearly all the mass in less time.
MOST_GAUSSIAN = 20
MOST_GLM = 10
MOST_SURROGATE = 20
MOST_LATENT = 14  # columns and components
_LATENT_DRAWS = 60  # models of 5 to 50 milliseconds each
_POOL_DRAWS, _MOST_POOL_ROWS = 300, 100_000
_BY_THE_DATA: Any = None  # `resolved` fills it in


@dataclass(frozen=True, kw_only=True)
class MoveProbabilities:
    """How a new feature is made: P_in, P_mo, P_mu, P_pr; a move of probability 0 is switched off.

    Any numbers of 0 or more; they are divided by their sum. If the first operand that is drawn for a projection has a
    projection in it, three in ten leave out one of its operands instead.

    Examples
    --------
    >>> from bgnlm.search import MoveProbabilities
    >>> only = MoveProbabilities(new_input=1, modification=1, multiplication=2, projection=0)
    >>> only.multiplication, only.projection
    (0.5, 0.0)
    """

    new_input: float = 1 / 17
    modification: float = 5 / 17
    multiplication: float = 10 / 17
    projection: float = 1 / 17

    def __post_init__(self) -> None:
        values = [check_number(getattr(self, f.name), f.name, low=0.0) for f in fields(self)]
        if not sum(values) > 0.0:
            raise SettingError("MoveProbabilities must not all be 0. Leave new_input above 0 for linear models.")
        for f, value in zip(fields(self), values, strict=True):
            object.__setattr__(self, f.name, value / sum(values))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """D, L, Q and R of the paper, and the limit on operations that the authors' scripts have in place of D.

    Parameters
    ----------
    max_depth
        Largest depth of a feature; 0 for linear models in the inputs. None for 5, or what an estimator says.
    max_width
        Largest number of features that one operation puts together.
    max_model_size
        Largest number of features in a model; None for no limit.
    max_operations
        Largest operation count of a feature; None for no limit.
    max_latent
        Largest number of latent processes in a model; None for no limit.

    Examples
    --------
    >>> from bgnlm import SearchConfig
    >>> from bgnlm.search import Limits
    >>> SearchConfig(limits=Limits(max_depth=2, max_model_size=3)).limits.max_model_size
    3
    """

    max_depth: int = _BY_THE_DATA
    max_width: int = 15
    max_model_size: int | None = None
    max_operations: int | None = None
    max_latent: int | None = None

    def __post_init__(self) -> None:
        check_count(self.max_width, "max_width", low=1)
        for name in ("max_depth", "max_model_size", "max_operations", "max_latent"):
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name)


@dataclass(frozen=True, kw_only=True)
class ProjectionWeights:
    """How the weights inside g(alpha_0 + sum of alpha_k F_k) are set: sections 2.1.1 and 4.2 of the paper.

    Parameters
    ----------
    strategy
        "naive": maximum likelihood of alpha_0 + sum of alpha_k F_k as linear predictor, then g. "concave": maximum
        likelihood of b_0 + b_1 g(...) as linear predictor, weights inside the F_k as they are. "deep": the same over
        the weights of all layers. "bayesian": weights of all layers are parameters, independent N(0, weight_variance)
        for operands that are standardised; the marginal likelihoods of models are averages over them. "conditional",
        which is not the paper's: as "naive", but two of the candidates for informed replacements are fitted to what the
        best model leaves, with as many operands as are worth their price; not where there are latent components.
    n_starts
        Optimisations of "concave" and "deep", of which the best is kept; "bayesian" shows a projection with the weights
        of "deep", and looks for modes from there. The first starts from the naive weights,
        others from random ones that depend on the feature alone, so that one structure always becomes one feature.
    literal
        Leave out b_0 and b_1, as the paper writes it: then a bounded g does not reach a response out of its range.
    without_gradient
        What "concave", "deep" and the first weights of "bayesian" do where g, or a function of a projection inside, has
        no derivative (indicators, cut points, functions of your own): "search" without gradients, or "refuse" such
        transforms.
    weight_variance
        sigma_alpha^2 of "bayesian"; of "conditional", where weights are the most probable ones under that prior.
    tolerance
        "bayesian" draws weights until the Monte Carlo standard error of the log marginal likelihood is so small,
    n_weight_draws
        or until there are so many draws.
    sampler
        Where "bayesian" draws from: "importance", around the modes of the posterior of the weights; "prior", as the
        paper does, which is of use for few observations only.

    Examples
    --------
    >>> from bgnlm import BGNLMRegressor
    >>> from bgnlm.search import ProjectionWeights
    >>> model = BGNLMRegressor(projection_weights=ProjectionWeights(strategy="deep", n_starts=4))
    >>> model.projection_weights.n_starts
    4
    """

    strategy: Strategy = "naive"
    n_starts: int = 2
    literal: bool = False
    without_gradient: Literal["search", "refuse"] = "search"
    weight_variance: float = 1.0
    tolerance: float = 0.05
    n_weight_draws: int = 10_000
    sampler: Literal["importance", "prior"] = "importance"

    def __post_init__(self) -> None:
        check_choice(self.strategy, "strategy", get_args(Strategy))
        check_count(self.n_starts, "n_starts", low=1)
        check_choice(self.without_gradient, "without_gradient", ("search", "refuse"))
        if not isinstance(self.literal, bool):
            raise SettingError(f"literal must be True or False; got {self.literal!r}.")
        if self.literal and self.strategy == "bayesian":
            raise SettingError("literal is for strategies 'concave' and 'deep'; got it with 'bayesian'. Leave it out.")
        if not check_number(self.weight_variance, "weight_variance", low=0.0) > 0.0:
            raise SettingError("weight_variance must be above 0; got 0. Use for example 1.")
        if not check_number(self.tolerance, "tolerance", low=0.0) > 0.0:
            raise SettingError("tolerance must be above 0; got 0. Use for example 0.05.")
        check_count(self.n_weight_draws, "n_weight_draws", low=100)
        check_choice(self.sampler, "sampler", ("importance", "prior"))


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How GMJMCMC searches (section 3.2 of the paper).

    Parameters
    ----------
    population_size
        s; None for 15, or five more than there are inputs, at most 100.
    n_populations
        T, the initial one included; None for 10 if there are up to 30 observations, 40 from 75 on, and a number in
        proportion between.
    n_initial_inputs
        q_0: inputs that marginal testing leaves for the initial population; None for as many as fit.
    n_initial_steps, n_explore_steps, n_final_steps
        N_init, N_expl, N_final: MJMCMC steps in the first, the middle and the last population.
    min_models
        Explore the last population until a chain has stored so many different models, or finds no more of them.
    keep_threshold
        rho_del: features of at least this probability survive, others with probabilities proportional to theirs.
    moves, limits
        How features are made and how large they may be.
    transform_weights
        P_G: one weight for each transform; None for equal ones.
    projection_weights
        How weights of projections are set; None for what an estimator says, or "naive".
    informed
        Share of the replacements that are taken from `n_candidates` random features by what they add to the best model
        and what they explain alone; 0 for the paper's algorithm.
    n_candidates, candidate_rows
        How many candidates are ranked in each transition, None for 300, or fewer where there are less than
        100 observations; and on how many rows at most.
    engine
        How a population is explored: "exhaustive" scores all models, "mjmcmc" runs Algorithm 1, "surrogate" draws
        models by a quadratic approximation (not for the Gaussian family), "auto" takes what is cheapest.
    n_draws
        Models that the "surrogate" engine scores in each population; None for 500, or fewer where there are less than
        167 observations, and 60 where there are latent components. With these, "auto" scores all models of a population
        that has no more.
    window
        Of an enumeration, models within so many nats of the best are stored; the rest counts as discarded.
    max_models
        Models stored at most, the most probable.
    n_averaged
        Models that predictions are averaged over at most, the most probable; None for 1000, or fewer where there are
        less than 100 observations.
    n_pool_draws
        Models that a Gibbs sampler draws over everything that all chains found, together with functions of single
        inputs; they count as often as they are drawn, in place of probabilities that are renormalised over the models
        visited, and prices of features are drawn with them: where few matter, all are dearer. For logistic regression
        where many models are nearly as good as each other and predictions matter. 0 for none; None for 300 under the
        prior of ``penalty="predict"``, where there are at most 100,000 rows. Not part of `max_seconds`.
    pool_size
        Features that it draws models of, at most; None for 400, or fewer where there are more than 3,900 rows.
    patience
        Stop after so many populations in which the mass found grew by less than a thousandth; None for never.
    max_seconds
        Stop after so much time, of which each chain has an equal share, as far as they run side by side; every chain
        explores at least one population. None for no limit.
    mjmcmc
        Settings of Algorithm 1.
    select_offset
        Whether the offset is a matter of choice, as in Example 5 of the paper: a component of models, like a latent
        process.

    Examples
    --------
    >>> from bgnlm import SearchConfig
    >>> from bgnlm.search import Limits, MoveProbabilities
    >>> short = SearchConfig(n_populations=5, limits=Limits(max_depth=2), moves=MoveProbabilities(projection=0))
    >>> short.n_populations, short.limits.max_depth, short.moves.projection
    (5, 2, 0.0)
    """

    population_size: int | None = None
    n_populations: int = _BY_THE_DATA
    n_initial_inputs: int | None = None
    n_initial_steps: int = 250
    n_explore_steps: int = 250
    n_final_steps: int = 1000
    min_models: int = 0
    keep_threshold: float = 0.9
    moves: MoveProbabilities = field(default_factory=MoveProbabilities)
    limits: Limits = field(default_factory=Limits)
    transform_weights: tuple[float, ...] | None = None
    projection_weights: ProjectionWeights = _BY_THE_DATA
    informed: float = 0.5
    n_candidates: int = _BY_THE_DATA
    candidate_rows: int = 20_000
    engine: Engine = "auto"
    n_draws: int = _BY_THE_DATA
    window: float = 20.0
    max_models: int = 200_000
    n_averaged: int = _BY_THE_DATA
    n_pool_draws: int = _BY_THE_DATA
    pool_size: int = _BY_THE_DATA
    patience: int | None = None
    max_seconds: float | None = None
    mjmcmc: MjmcmcSettings = field(default_factory=MjmcmcSettings)
    select_offset: bool = False

    def __post_init__(self) -> None:
        for name in ("candidate_rows", "max_models"):
            check_count(getattr(self, name), name, low=1)
        for name in ("n_initial_steps", "n_explore_steps", "n_final_steps", "min_models"):
            check_count(getattr(self, name), name)
        optional = (
            "population_size",
            "n_populations",
            "n_candidates",
            "n_draws",
            "n_averaged",
            "n_initial_inputs",
            "patience",
            "pool_size",
        )
        for name in optional:
            if getattr(self, name) is not None:
                check_count(getattr(self, name), name, low=1)
        if self.n_pool_draws is not None:
            check_count(self.n_pool_draws, "n_pool_draws")
        check_number(self.keep_threshold, "keep_threshold", low=0.0, high=1.0)
        check_number(self.informed, "informed", low=0.0, high=1.0)
        check_number(self.window, "window", low=0.0)
        if self.max_seconds is not None:
            check_number(self.max_seconds, "max_seconds", low=0.0)
        if self.engine not in get_args(Engine):
            raise SettingError(f"engine must be one of {', '.join(map(repr, get_args(Engine)))}; got {self.engine!r}.")
        if not isinstance(self.select_offset, bool):
            raise SettingError(f"select_offset must be True or False; got {self.select_offset!r}.")
        for name, kind in (("moves", MoveProbabilities), ("limits", Limits), ("mjmcmc", MjmcmcSettings)):
            _check_kind(getattr(self, name), name, kind)
        if self.projection_weights is not None:
            _check_kind(self.projection_weights, "projection_weights", ProjectionWeights)


def resolved(
    config: SearchConfig, n_obs: float, has_latent: bool = False, *, n_rows: int = 1, draws_models: bool = False
) -> SearchConfig:
    """Fill in what depends on the data: few observations tell few features apart, so that less search will do.

    `draws_models` says whether models are drawn from a pool if nothing else is said.
    """
    defaults = {
        "projection_weights": ProjectionWeights(),
        "n_populations": min(40, max(10, int(n_obs / 1.5 - 10))),
        "n_candidates": min(300, max(100, int(3 * n_obs))),
        "n_draws": _LATENT_DRAWS if has_latent else min(500, max(100, int(3 * n_obs))),
        "n_averaged": max(min(1000, max(300, int(10 * n_obs))), config.n_pool_draws or 0),
        "n_pool_draws": _POOL_DRAWS if draws_models and n_rows <= _MOST_POOL_ROWS else 0,
        "pool_size": min(400, int(25_000 / n_rows**0.5)),  # a draw takes time by the square of it, for each row
    }
    limits = config.limits if config.limits.max_depth is not None else replace(config.limits, max_depth=5)
    missing: Any = {name: value for name, value in defaults.items() if getattr(config, name) is None}
    return replace(config, limits=limits, **missing)


def _check_kind(value: Any, name: str, kind: type) -> None:
    if not isinstance(value, kind):
        raise SettingError(
            f"{name} must be a {kind.__name__}; got {value!r}. Write {name}=bgnlm.search.{kind.__name__}(...)."
        )


def choose_engine(engine: str, is_gaussian: bool, n_columns: int) -> str:
    """Resolve "auto" and refuse what would take for ever."""
    most = MOST_GAUSSIAN if is_gaussian else MOST_GLM
    if engine == "auto":
        if n_columns <= most:
            return "exhaustive"
        return "surrogate" if not is_gaussian and n_columns <= MOST_SURROGATE else "mjmcmc"
    limit = {"exhaustive": 24 if is_gaussian else 16, "surrogate": MOST_SURROGATE}.get(engine)
    if limit is not None and n_columns > limit:
        raise SettingError(
            f"engine {engine!r} takes populations of at most {limit} features; got {n_columns}. "
            "Use engine='auto' or a smaller population_size."
        )
    if engine == "surrogate" and is_gaussian:
        raise SettingError("engine 'surrogate' is for other families than the Gaussian. Use 'exhaustive' or 'mjmcmc'.")
    return engine


def choose_latent_engine(engine: str, n_columns: int, n_components: int, n_models: float, n_draws: int) -> str:
    """Do the same for models with latent components, all of which are costly."""
    if engine == "auto":
        return "exhaustive" if n_models <= n_draws else "surrogate"
    if engine == "exhaustive" and n_columns + n_components > MOST_LATENT:
        raise SettingError(
            f"engine 'exhaustive' takes populations of at most {MOST_LATENT} features and latent components together; "
            f"got {n_columns + n_components}. Use engine='auto' or a smaller population_size."
        )
    return engine
