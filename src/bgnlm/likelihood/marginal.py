"""The marginal likelihood of one model and what prediction needs of it (section 3.1 of the paper)."""

import math
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm._validation import (
    check_choice,
    check_design,
    check_number,
    check_offset,
    check_response,
    check_weights,
)
from bgnlm.errors import ModelStatusWarning, SettingError
from bgnlm.kernels import gram as kernels
from bgnlm.likelihood.coefficient_priors import CoefficientPrior, resolve_prior
from bgnlm.likelihood.gaussian import GaussianScore
from bgnlm.likelihood.gram import GramStatistics, gram_statistics
from bgnlm.likelihood.status import ModelStatus, advice

FAMILIES = {"gaussian": ("identity",)}


@dataclass(frozen=True, eq=False)
class ModelFit:
    """One fitted model.

    Attributes
    ----------
    log_marginal
        log p(y | m), -inf where the model has none.
    log_bayes_factor
        The same relative to the model with the intercept alone.
    status
        Whether anything is unusual; `bgnlm.likelihood.status.advice` says what to do.
    coefficients
        Posterior mode, intercept first, on the scale of the columns as given. For mixtures of g-priors the
        posterior mean.
    covariance_factor
        F with Cov(coefficients | dispersion) = dispersion * F F', at the posterior mean of g / (1 + g).
    dispersion
        Noise variance: the squared scale of its posterior, so that the predictive distribution at x is
        Student t with `degrees_of_freedom` and squared scale dispersion * (1 + x' F F' x).
    degrees_of_freedom
        Infinite where the variance is known.
    shrinkage
        Posterior mean of g / (1 + g); 1 for priors without g.
    r_squared
        1 - RSS / TSS of the least-squares fit (of the ridge fit for the prior "gaussian").
    """

    log_marginal: float
    log_bayes_factor: float
    status: ModelStatus
    coefficients: FloatArray
    covariance_factor: FloatArray
    dispersion: float
    degrees_of_freedom: float
    shrinkage: float
    r_squared: float


@dataclass(frozen=True, eq=False)
class Likelihood:
    """A checked response with its weights and offset, and how models of it are scored."""

    y: FloatArray
    weights: FloatArray
    offset: FloatArray
    prior: CoefficientPrior
    noise_floor: float

    def statistics(self, X: FloatArray) -> GramStatistics:
        """Return what all models over the columns of `X` share."""
        return gram_statistics(self.y, X, self.weights, self.offset)

    def score(self, statistics: GramStatistics) -> GaussianScore:
        """Return the score of these models."""
        return GaussianScore(self.prior, statistics.n_obs, statistics.log_total, self.noise_floor)


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
    check_choice(family, "family", tuple(FAMILIES))
    if link is not None:
        check_choice(link, "link", FAMILIES[family])
    floor = check_number(noise_floor, "noise_floor", low=0.0)
    if floor >= 1.0 or 0.0 < floor < 1e-12:
        raise SettingError(
            f"noise_floor must be 0, or at least 1e-12 and below 1; got {floor:g}. It is the smallest noise standard "
            "deviation as a fraction of the standard deviation of y, for example 0.01."
        )
    response = check_response(y)
    return Likelihood(
        y=response,
        weights=check_weights(sample_weight, len(response)),
        offset=check_offset(offset, len(response)),
        prior=resolve_prior(coefficient_prior, family=family),
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
        Distribution of the response; None is the family's own link.
    coefficient_prior
        A name or a `CoefficientPrior`; "auto" is the robust mixture of g-priors for the Gaussian family.
    noise_floor
        Smallest noise standard deviation as a fraction of sd(y - offset) (divisor n); 0 for none.
    sample_weight
        Frequency weights: n is their sum in every formula.
    offset
        Known part of the linear predictor.
    relative_to_null
        Return the log Bayes factor to the model with the intercept alone, instead of the value with all constants.

    Returns
    -------
    float
        -inf for a model that has no marginal likelihood, for example with linearly dependent columns; a
        `ModelStatusWarning` then says why and what to do.
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
    statistics = likelihood.statistics(check_design(X, len(likelihood.y)))
    return fit_columns(statistics, likelihood.score(statistics))


def fit_columns(statistics: GramStatistics, score: GaussianScore, columns: Any = slice(None)) -> ModelFit:
    """Fit the model with the given columns of a population, from the data rather than the Gram matrix."""
    chosen = np.arange(statistics.n_columns)[columns]
    means, norms, size = statistics.means[chosen], statistics.norms[chosen], len(chosen)
    rows = statistics.with_ridge(score.ridge)[1]
    q, r, inverse, slopes = np.empty((size, len(rows))), *np.empty((2, size, size)), np.empty(size)
    residual, floor = kernels.fit_subset(rows, statistics.noise, chosen, size, q, r, inverse, slopes)
    if residual == kernels.RANK_DEFICIENT or (size > statistics.max_rank and not score.ridge):
        return _no_fit(statistics, score, size, ModelStatus.RANK_DEFICIENT)
    status = _status(statistics, size, residual <= floor)
    if not score.is_defined(size):
        return _no_fit(statistics, score, size, status)
    residual = min(max(residual, floor), 1.0)
    bayes_factor, shrinkage = (float(value[0]) for value in score.evaluate(size, np.array([residual])))
    if score.uses_determinant:
        bayes_factor -= float(np.log(np.diag(r)).sum())
    slopes *= shrinkage * statistics.response_norm / np.where(norms > 0, norms, 1.0)
    dispersion, degrees = _dispersion(score, size, residual, shrinkage)
    scaled = math.sqrt(shrinkage) * inverse / np.where(norms > 0, norms, 1.0)[:, None]
    return ModelFit(
        log_marginal=score.log_null + bayes_factor,
        log_bayes_factor=bayes_factor,
        status=status,
        coefficients=np.append(statistics.response_mean - means @ slopes, slopes),
        covariance_factor=_with_intercept(scaled, means, statistics.n_obs),
        dispersion=dispersion,
        degrees_of_freedom=degrees,
        shrinkage=shrinkage,
        r_squared=1.0 - residual,
    )


def _status(statistics: GramStatistics, size: int, exact: bool) -> ModelStatus:
    if size >= statistics.n_obs - 1:
        return ModelStatus.SATURATED
    if statistics.constant_response:
        return ModelStatus.CONSTANT_RESPONSE
    return ModelStatus.PERFECT_FIT if exact else ModelStatus.OK


def _no_fit(statistics: GramStatistics, score: GaussianScore, size: int, status: ModelStatus) -> ModelFit:
    """Return a model without a marginal likelihood: it predicts the mean and claims nothing."""
    total = math.exp(statistics.log_total)
    return ModelFit(
        log_marginal=-math.inf,
        log_bayes_factor=-math.inf,
        status=status,
        coefficients=np.append(statistics.response_mean, np.zeros(size)),
        covariance_factor=np.diag(np.append(1.0 / math.sqrt(statistics.n_obs), np.zeros(size))),
        dispersion=score.known_variance or total / statistics.n_obs,
        degrees_of_freedom=math.inf if score.known_variance else max(statistics.n_obs - 1.0, 0.0),
        shrinkage=0.0,
        r_squared=0.0,
    )


def _with_intercept(slopes: FloatArray, means: FloatArray, n_obs: float) -> FloatArray:
    """Factor of the covariance of (intercept, slopes); the mean of the response is independent of the slopes."""
    size = len(slopes)
    factor = np.zeros((size + 1, size + 1))
    factor[0, 0] = 1.0 / math.sqrt(n_obs)
    factor[0, 1:] = -means @ slopes
    factor[1:, 1:] = slopes
    return factor


def _dispersion(score: GaussianScore, size: int, residual: float, shrinkage: float) -> tuple[float, float]:
    """Squared scale of the posterior of the noise variance and its degrees of freedom."""
    if score.known_variance is not None:
        return score.known_variance, math.inf
    total = math.exp(score.log_total)
    floor = score.noise_floor**2 * total / score.n_obs
    if score.prior.name in ("bic", "aic"):
        degrees = max(score.n_obs - 1.0 - size, 1.0)
        return max(residual * total / degrees, floor), degrees
    quadratic = residual + (1.0 - shrinkage) * (1.0 - residual)
    return quadratic * total / (2.0 * score.shape) * score.variance_integral.inflation(quadratic), 2.0 * score.shape
