"""What a search leaves behind for an estimator: probabilities, diagnostics, and models ready to predict."""

from dataclasses import dataclass, replace

import numpy as np

from bgnlm._validation import check_choice
from bgnlm.errors import DataError
from bgnlm.find import SearchResult
from bgnlm.posterior.average import ModelAverage, average_models, median_model
from bgnlm.posterior.diagnostics import Diagnostics
from bgnlm.posterior.rescore import rescore
from bgnlm.posterior.summarize import Posterior
from bgnlm.search.description import digest_of_data
from bgnlm.search.problem import SearchProblem

USING = ("average", "best", "median")


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

    def __repr__(self) -> str:
        return f"<FittedSearch: {len(self.posterior):,} models, {len(self.average):,} of them fitted>"

    def models(self, using: str) -> ModelAverage:
        """Return the models to predict with: "average", "best" or "median"."""
        check_choice(using, "using", USING)
        if using == "median":
            return self.median
        return self.average if using == "average" else self.average.only(0)


def fitted(result: SearchResult) -> FittedSearch:
    """Fit what a search found."""
    return fitted_models(result.problem, result.posterior, result.diagnostics)


def rescored(problem: SearchProblem, search: FittedSearch, max_models: int) -> FittedSearch:
    """Apply the priors of `problem` to what a search of the same data found; chains are not compared any more."""
    if search.data != digest_of_data(problem):
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
    return FittedSearch(
        posterior=posterior,
        diagnostics=diagnostics,
        average=average_models(problem, posterior, problem.config.n_averaged),
        median=median_model(problem, posterior),
        n_obs=problem.n_obs,
        n_inputs=len(problem.names),
        likelihood=_likelihood_in_words(problem),
        prior=_prior_in_words(problem),
        data=digest_of_data(problem),
    )


def _likelihood_in_words(problem: SearchProblem) -> str:
    likelihood = problem.likelihood
    parameters = ", ".join(
        f"{name} = {_exact(value)}" for name, value in likelihood.prior.parameters if value is not None
    )
    coefficients = f"{likelihood.prior.name} ({parameters})" if parameters else likelihood.prior.name
    floor = f", noise floor {_exact(likelihood.noise_floor)} sd(y)" if likelihood.noise_floor else ""
    information = ", local information" if likelihood.prior.information == "local" else ""
    orders = ", models as sets" if likelihood.n_slots else ""
    return f"coefficients: {coefficients}{information}{floor}{orders}"


def _exact(value: float) -> str:
    return repr(float(value)).removesuffix(".0")


def _prior_in_words(problem: SearchProblem) -> str:
    prior = problem.prior
    measure = prior.complexity if isinstance(prior.complexity, str) else "of your own"
    weights = f", weights {_exact(prior.weight_cost)}" if prior.weight_cost != 1.0 else ""
    return f"models: penalty {prior.penalty}, complexity {measure}{weights}"
