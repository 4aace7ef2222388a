"""What a search leaves behind for an estimator: probabilities, diagnostics, and models ready to predict."""

from dataclasses import dataclass, field, replace
from hashlib import blake2b

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm._validation import check_choice
from bgnlm.errors import DataError
from bgnlm.find import SearchResult
from bgnlm.posterior.average import ModelAverage, at_best_weights, average_models, median_model, weight_errors
from bgnlm.posterior.diagnostics import Diagnostics
from bgnlm.posterior.rescore import rescore
from bgnlm.posterior.summarize import Posterior
from bgnlm.search.description import digest_of_data
from bgnlm.search.problem import SearchProblem
from bgnlm.search.workers import one_thread

USING = ("average", "best", "median")
_UNKNOWN_SHARE = ", share of features unknown"


@dataclass(frozen=True, eq=False, repr=False)
class FittedSearch:
    """One search, without its data.

    Attributes
    ----------
    posterior, diagnostics
        Probabilities of models and features, and how far to trust them.
    average
        The most probable models, fitted.
    median
        The median probability model, fitted: all features of probability at least one half.
    formulas
        Where weights of projections, or hyperparameters, are averaged over: the most probable model and the median
        probability model with the most probable ones.
    weight_errors, weight_shapes
        For the most probable models: Monte Carlo standard errors of their log marginal likelihoods and Pareto shapes
        of the importance weights; empty where weights are not averaged over.
    n_obs, n_inputs
        Sum of the weights, and number of coded inputs.
    likelihood, prior
        The prior of coefficients and that of models in words.
    data
        Digest of the data.
    """

    posterior: Posterior
    diagnostics: Diagnostics
    average: ModelAverage
    median: ModelAverage
    n_obs: float
    n_inputs: int
    likelihood: str
    prior: str
    data: str
    formulas: tuple[ModelAverage, ModelAverage] | None = None
    weight_errors: FloatArray = field(default_factory=lambda: np.empty(0))
    weight_shapes: FloatArray = field(default_factory=lambda: np.empty(0))

    @property
    def n_slots(self) -> int:
        """Of `log_sizes`, which scores of models have in them; 0 for none."""
        return self.n_inputs if _UNKNOWN_SHARE in self.likelihood else 0

    def __repr__(self) -> str:
        return f"<FittedSearch: {len(self.posterior):,} models, {len(self.average):,} of them fitted>"

    def models(self, using: str) -> ModelAverage:
        """Return the models to predict with: "average", "best" or "median"."""
        check_choice(using, "using", USING)
        if using == "median":
            return self.median
        return self.average if using == "average" else self.average.best()

    def formula(self, using: str) -> ModelAverage:
        """Return the models to write down: those of `models`, a single one with the most probable weights."""
        if self.formulas is None or using == "average":
            return self.models(using)
        check_choice(using, "using", USING)
        return self.formulas[USING[1:].index(using)]


def fitted(result: SearchResult) -> FittedSearch:
    """Fit what a search found."""
    return fitted_models(result.problem, result.posterior, result.diagnostics)


def rescored(problem: SearchProblem, search: FittedSearch, max_models: int) -> FittedSearch:
    """Apply the priors of `problem` to what a search of the same data found; chains are not compared any more."""
    if search.data != _digest(problem):
        raise DataError("rescore needs the training data: X, y, sample_weight and offset as they were; got others.")
    same = search.likelihood == _likelihood_in_words(problem) and search.average.family == problem.likelihood.family
    posterior = rescore(problem, search.posterior, max_models, same_likelihood=same)
    unknown = np.full(len(posterior.features), np.nan)
    diagnostics = replace(
        search.diagnostics,
        chain_probabilities=np.full((len(search.diagnostics.history), len(unknown)), np.nan),
        weighted_probabilities=unknown,
        disagreement=unknown,
        n_models=len(posterior),
    )
    return fitted_models(problem, posterior, diagnostics)


def fitted_models(problem: SearchProblem, posterior: Posterior, diagnostics: Diagnostics) -> FittedSearch:
    """Fit the models that predictions need."""
    with one_thread():  # as in the search, so that averages over weights are the same
        return _fitted_models(problem, posterior, diagnostics)


def _fitted_models(problem: SearchProblem, posterior: Posterior, diagnostics: Diagnostics) -> FittedSearch:
    average = average_models(problem, posterior, problem.config.n_averaged)
    median = median_model(problem, posterior)
    found = FittedSearch(
        posterior=posterior,
        diagnostics=diagnostics,
        average=average,
        median=median,
        n_obs=problem.n_obs,
        n_inputs=len(problem.names),
        likelihood=_likelihood_in_words(problem),
        prior=_prior_in_words(problem),
        data=_digest(problem),
    )
    if problem.latent is not None:  # with the most probable hyperparameters
        return replace(found, formulas=(average.only(0), median.only(0)))
    if problem.averages is None:
        return found
    errors = weight_errors(problem, posterior, problem.config.n_averaged)
    return replace(
        found,
        formulas=(at_best_weights(problem, average.best()), at_best_weights(problem, median)),
        weight_errors=errors[:, 0],
        weight_shapes=errors[:, 1],
    )


def _digest(problem: SearchProblem) -> str:
    """Digest of the data, with positions and loadings of latent components."""
    data = digest_of_data(problem)
    if problem.latent is None or not problem.latent.placed:
        return data
    state = blake2b(data.encode(), digest_size=16)
    for component in problem.latent.placed:
        for part in (component.positions, component.place, component.loading):
            state.update(np.ascontiguousarray(part).tobytes())
    return state.hexdigest()


def _likelihood_in_words(problem: SearchProblem) -> str:
    likelihood = problem.likelihood
    parameters = ", ".join(
        f"{name} = {_exact(value)}" for name, value in likelihood.prior.parameters if value is not None
    )
    coefficients = f"{likelihood.prior.name} ({parameters})" if parameters else likelihood.prior.name
    floor = f", noise floor {_exact(likelihood.noise_floor)} sd(y)" if likelihood.noise_floor else ""
    information = ", local information" if likelihood.prior.information == "local" else ""
    sizes = _UNKNOWN_SHARE if likelihood.n_slots else ""
    settings = problem.config.projection_weights
    variance = _exact(settings.weight_variance)
    weights = f", weights of projections: N(0, {variance})" if settings.strategy == "bayesian" else ""
    return f"coefficients: {coefficients}{information}{floor}{sizes}{weights}"


def _exact(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _prior_in_words(problem: SearchProblem) -> str:
    prior = problem.prior
    measure = prior.complexity if isinstance(prior.complexity, str) else "of your own"
    weights = f", weights {_exact(prior.weight_cost)}" if prior.weight_cost != 1.0 else ""
    return f"models: penalty {prior.penalty}, complexity {measure}{weights}"
