"""The marginal likelihood of one model and what prediction needs of it (section 3.1 of the paper)."""

import warnings
from dataclasses import dataclass, replace
from typing import Any

from bgnlm._typing import FloatArray
from bgnlm._validation import check_design, check_number, check_offset, check_response, check_weights
from bgnlm.errors import ModelStatusWarning, SettingError
from bgnlm.likelihood.coefficient_priors import CoefficientPrior, check_plain, resolve_prior
from bgnlm.likelihood.families import Family, resolve_family
from bgnlm.likelihood.gaussian import GaussianScore
from bgnlm.likelihood.gaussian_fit import GaussianPopulation
from bgnlm.likelihood.glm import glm_statistics
from bgnlm.likelihood.glm_fit import GlmPopulation
from bgnlm.likelihood.glm_score import GlmScore
from bgnlm.likelihood.gram import GramStatistics, gram_statistics
from bgnlm.likelihood.model_fit import ModelFit
from bgnlm.likelihood.status import ModelStatus, advice
from bgnlm.likelihood.tabulate import TabulatedScore


@dataclass(frozen=True, eq=False)
class Likelihood:
    """A checked response with its weights and offset, and how models of it are scored.

    With `n_slots` the `log_sizes` of models, a part of their prior, are added to their marginal likelihoods: like
    these they depend on more than one feature at a time, and nothing else in a search need know of them.
    """

    family: Family
    y: FloatArray
    weights: FloatArray
    offset: FloatArray
    prior: CoefficientPrior
    noise_floor: float
    n_slots: int = 0

    @property
    def plain(self) -> "Likelihood":
        """Marginal likelihoods alone."""
        return replace(self, n_slots=0)

    def population(self, X: FloatArray) -> GaussianPopulation | GlmPopulation:
        """Return all models over the columns of `X`."""
        if self.family.name != "gaussian":
            statistics = glm_statistics(self.family, self.y, X, self.weights, self.offset)
            return GlmPopulation(GlmScore(self.prior, statistics, self.n_slots))
        gram = gram_statistics(self.y, X, self.weights, self.offset)
        return GaussianPopulation(gram, self.tabulated_score(gram))

    def with_prior(self, prior: CoefficientPrior) -> "Likelihood":
        """Return the same response under another prior on the coefficients."""
        return replace(self, prior=prior, noise_floor=0.0)

    def tabulated_score(self, gram: GramStatistics) -> TabulatedScore:
        """Return the score of Gaussian models of this response, whatever the columns."""
        return TabulatedScore(GaussianScore(self.prior, gram.n_obs, gram.log_total, self.noise_floor, self.n_slots))


def check_likelihood(
    y: Any,
    *,
    family: str = "gaussian",
    link: str | None = None,
    coefficient_prior: str | CoefficientPrior = "auto",
    noise_floor: float = 0.0,
    sample_weight: Any = None,
    offset: Any = None,
) -> Likelihood:
    """Check everything about a likelihood that a user can set."""
    distribution = resolve_family(family, link)
    floor = check_number(noise_floor, "noise_floor", low=0.0)
    if floor >= 1.0 or 0.0 < floor < 1e-12:
        raise SettingError(
            f"noise_floor must be 0, or at least 1e-12 and below 1; got {floor:g}. It is the smallest noise standard "
            "deviation as a fraction of the standard deviation of y, for example 0.01."
        )
    if floor and family != "gaussian":
        raise SettingError(
            f"noise_floor is for the Gaussian family; got {floor:g} with family {family!r}. Leave it out."
        )
    response = check_response(y)
    distribution.check_response(response, sample_weight is not None)
    return Likelihood(
        family=distribution,
        y=response,
        weights=check_weights(sample_weight, len(response)),
        offset=check_offset(offset, len(response)),
        prior=check_plain(resolve_prior(coefficient_prior, family=family)),
        noise_floor=floor,
    )


def log_marginal(
    y: Any,
    X: Any,
    *,
    family: str = "gaussian",
    link: str | None = None,
    coefficient_prior: str | CoefficientPrior = "auto",
    noise_floor: float = 0.0,
    sample_weight: Any = None,
    offset: Any = None,
    relative_to_null: bool = False,
) -> float:
    """Log marginal likelihood log p(y | m) of the model with an intercept and the columns of `X`.

    Parameters
    ----------
    y
        The response.
    X
        The columns of the model, without the intercept, which is always added. No columns: the null model.
    family, link
        "gaussian"; "binomial" (y is 0 or 1, or a share of successes with the number of trials as weight; links "logit",
        "probit", "cloglog"); "poisson", "gamma", "negative_binomial" (link "log"). None is the family's first link.
    coefficient_prior
        A name or a `CoefficientPrior`; "auto" is the robust mixture of g-priors for the Gaussian family, and for the
        others "gaussian", independent normal coefficients of standardised columns, with standard deviation 2.5.
    noise_floor
        Gaussian only: smallest noise standard deviation as a fraction of sd(y - offset) (divisor n); 0 for none.
    sample_weight
        Frequency weights: n is their sum in every formula.
    offset
        Known part of the linear predictor.
    relative_to_null
        Return the log Bayes factor to the model with the intercept alone, instead of the value with all constants.

    Returns
    -------
    float
        -inf for a model that has no marginal likelihood, for example with linearly dependent columns under a g-prior; a
        `ModelStatusWarning` then says why and what to do.

    Examples
    --------
    >>> from bgnlm import log_marginal
    >>> x = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    >>> round(log_marginal([0.1, 1.9, 4.2, 5.8, 8.1], x, relative_to_null=True), 2)
    5.77
    >>> round(log_marginal([0, 0, 1, 0, 1], x, family="binomial", relative_to_null=True), 2)
    0.1
    """
    fit = fit_model(
        y,
        X,
        family=family,
        link=link,
        coefficient_prior=coefficient_prior,
        noise_floor=noise_floor,
        sample_weight=sample_weight,
        offset=offset,
    )
    if fit.status is not ModelStatus.OK:
        warnings.warn(f"The model has the status {fit.status.name}: {advice(fit.status)}.", ModelStatusWarning, 2)
    return fit.log_bayes_factor if relative_to_null else fit.log_marginal


def fit_model(
    y: Any,
    X: Any,
    *,
    family: str = "gaussian",
    link: str | None = None,
    coefficient_prior: str | CoefficientPrior = "auto",
    noise_floor: float = 0.0,
    sample_weight: Any = None,
    offset: Any = None,
) -> ModelFit:
    """Fit one model: marginal likelihood, coefficients, their covariance factor and the dispersion.

    Takes what `log_marginal` takes; see `ModelFit` for what comes back.

    Examples
    --------
    >>> from bgnlm import fit_model
    >>> fit = fit_model([0.1, 1.9, 4.2, 5.8, 8.1], [[0.0], [1.0], [2.0], [3.0], [4.0]])
    >>> fit.coefficients.round(2)
    array([0.08, 1.97])
    >>> round(fit.r_squared, 3)
    0.997
    """
    likelihood = check_likelihood(
        y,
        family=family,
        link=link,
        coefficient_prior=coefficient_prior,
        noise_floor=noise_floor,
        sample_weight=sample_weight,
        offset=offset,
    )
    design = check_design(X, len(likelihood.y))
    return likelihood.population(design).fit(list(range(design.shape[1])))
