"""What a search leaves behind for an estimator: probabilities, diagnostics, and models ready to predict."""

from dataclasses import dataclass

from bgnlm._validation import check_choice
from bgnlm.find import SearchResult
from bgnlm.posterior.average import ModelAverage, average_models, median_model
from bgnlm.posterior.diagnostics import Diagnostics
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
    prior
        The priors in words.
    data
        Digest of the data.
    """

    posterior: Posterior
    diagnostics: Diagnostics
    average: ModelAverage
    median: ModelAverage
    n_obs: float
    n_inputs: int
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
    problem = result.problem
    return FittedSearch(
        posterior=result.posterior,
        diagnostics=result.diagnostics,
        average=average_models(problem, result.posterior, problem.config.n_averaged),
        median=median_model(problem, result.posterior),
        n_obs=problem.n_obs,
        n_inputs=len(problem.names),
        prior=_in_words(problem),
        data=digest_of_data(problem),
    )


def _in_words(problem: SearchProblem) -> str:
    prior, likelihood = problem.prior, problem.likelihood
    parameters = ", ".join(f"{name} = {value:g}" for name, value in likelihood.prior.parameters if value is not None)
    coefficients = f"{likelihood.prior.name} ({parameters})" if parameters else likelihood.prior.name
    floor = f", noise floor {likelihood.noise_floor:g} sd(y)" if likelihood.noise_floor else ""
    measure = prior.complexity if isinstance(prior.complexity, str) else "of your own"
    return f"coefficients: {coefficients}{floor}; models: penalty {prior.penalty}, complexity {measure}"
