"""The marginal likelihood of one model with latent components."""

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import is_dataclass, replace
from typing import Any

import numpy as np

from bgnlm._validation import check_design, check_number, check_offset, check_response, check_weights
from bgnlm.errors import DataError, ModelStatusWarning
from bgnlm.latent.hyperpriors import Gamma
from bgnlm.latent.inner import DISPERSION_PRIORS, InnerLaplace, LatentResponse, SlopePrior, check_intercept
from bgnlm.latent.layout import Placed, lay_out
from bgnlm.latent.nested_laplace import integrate
from bgnlm.latent.place import check_fields, column_values, place
from bgnlm.likelihood.families import resolve_family


def log_marginal(
    y: Any,
    design: Any = None,
    *,
    family: str = "gaussian",
    link: str | None = None,
    offset: Any = None,
    sample_weight: Any = None,
    latent: Any = (),
    positions: Any = None,
    coefficient_precision: float | Gamma = 1e-3,
    corrected: bool = True,
) -> float:
    """Log marginal likelihood log p(y | m) of the model with an intercept, the columns of `design` and components.

    Parameters
    ----------
    y, family, link, offset, sample_weight
        As for `bgnlm.log_marginal`.
    design
        The columns of the model without the intercept, which is flat; None for none.
    latent
        Components: `IID`, `AR1`, `RW1`, `OU`, `Grouped`, or your own.
    positions
        The columns that the components name: a mapping or data frame, or one array for all of them.
    coefficient_precision
        Precision of the normal prior of the slopes, of the columns as they are; or a `Gamma` with which it is
        integrated out, for example ``Gamma(1, 5e-5)``, the paper's.
    corrected
        Whether the inner Laplace approximation is corrected for what it leaves out.

    Returns
    -------
    float
        With all constants. Hyperpriors are about precisions in the units of the response as it is.
        -inf, and a `ModelStatusWarning`, where no mode is found.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm.latent import AR1, log_marginal
    >>> day = np.arange(20.0)
    >>> calls = np.round(np.exp(2 + 2 * np.sin(day / 3)))
    >>> round(log_marginal(calls, family="poisson"))
    -228
    >>> round(log_marginal(calls, family="poisson", latent=[AR1("day")], positions={"day": day}))
    -72
    """
    distribution = resolve_family(family, link)
    response = check_response(y)
    distribution.check_response(response, sample_weight is not None)
    n_obs = len(response)
    columns = np.empty((n_obs, 0)) if design is None else check_design(design, n_obs)
    placed = place_all(latent, positions, n_obs)
    if isinstance(coefficient_precision, Gamma):
        slopes = SlopePrior(precision=None, hyperprior=coefficient_precision)
    else:
        slopes = SlopePrior(precision=check_number(coefficient_precision, "coefficient_precision", above=0.0))
    weights, known = check_weights(sample_weight, n_obs), check_offset(offset, n_obs)
    checked = check_intercept(LatentResponse(distribution, response, weights, known))
    unit = _unit(checked, placed)
    inner = InnerLaplace(
        *(_response_in(unit, checked), lay_out([_placed_in(unit, one) for one in placed], n_obs)),
        *(columns, _slopes_in(unit, slopes)),
    )
    # The flat intercept has the unit of the response too.
    found = integrate(inner, corrected=corrected).log_marginal - (float(weights.sum()) - 1.0) * math.log(unit)
    if not math.isfinite(found):
        warnings.warn(
            "No mode of the model was found. Bring columns to about the size of 1, or leave components out.",
            ModelStatusWarning,
            stacklevel=2,
        )
    return found


def place_all(latent: Any, positions: Any, n_obs: int) -> list[Placed]:
    """Put components where the columns that they name say."""
    placed = []
    for field in check_fields(latent):
        values = _checked(field, _column(positions, field.column, field), n_obs)
        slope = None
        if field.slope is not None:
            slope = _checked(field, _column(positions, field.slope, field), n_obs, is_slope=True)
        placed.append(place(field, values, slope)[0])
    return placed


# The same model in other units of a Gaussian response: where hyperparameters are looked for depends on its size.


def _unit(response: LatentResponse, placed: Sequence[Placed]) -> float:
    """Standard deviation of a Gaussian response; 1 where priors cannot be said in units of it."""
    if response.family.name != "gaussian" or not all(is_dataclass(one.field) for one in placed):
        return 1.0
    share = response.weights / response.weights.sum()
    values = response.y - response.offset
    unit = float(np.sqrt(share @ np.square(values - share @ values)))
    rates = [getattr(getattr(one.field, "precision_prior", None), "rate", math.nan) for one in placed]
    rates.append(DISPERSION_PRIORS["gaussian"].rate)
    return unit if all(1e-300 < rate / max(unit, 1e-100) ** 2 < 1e12 for rate in rates) and unit > 0.0 else 1.0


def _response_in(unit: float, response: LatentResponse) -> LatentResponse:
    if unit == 1.0:
        return response
    prior = _prior_in(unit, DISPERSION_PRIORS["gaussian"])
    return response._replace(y=response.y / unit, offset=response.offset / unit, dispersion_prior=prior)


def _placed_in(unit: float, placed: Placed) -> Placed:
    if unit == 1.0:
        return placed
    field: Any = placed.field
    return placed._replace(field=replace(field, precision_prior=_prior_in(unit, field.precision_prior)))


def _slopes_in(unit: float, slopes: SlopePrior) -> SlopePrior:
    if slopes.precision is not None:
        return replace(slopes, precision=slopes.precision * unit**2)
    return replace(slopes, hyperprior=_prior_in(unit, slopes.hyperprior))


def _prior_in(unit: float, prior: Gamma) -> Gamma:
    return prior if unit == 1.0 else Gamma(prior.shape, prior.rate / unit**2)


def _column(positions: Any, column: str | int, field: Any) -> Any:
    """The column that a component names."""
    if positions is None:
        raise DataError(f"positions must have the column {column!r} of {type(field).__name__}; got None.")
    if isinstance(positions, Mapping) or hasattr(positions, "columns"):
        try:
            return positions[column]
        except KeyError:
            raise DataError(f"positions has no column {column!r}; it has {', '.join(map(str, positions))}.") from None
    values = np.asarray(positions)
    if values.ndim == 1:
        return values
    if isinstance(column, str) or not 0 <= column < values.shape[1]:
        raise DataError(f"positions is an array with {values.shape[1]} columns, and none of them is {column!r}.")
    return values[:, column]


def _checked(field: Any, values: Any, n_obs: int, *, is_slope: bool = False) -> Any:
    column = column_values(field, values, is_slope=is_slope)
    if len(column) != n_obs:
        raise DataError(f"positions and y must have the same number of rows; got {len(column)} and {n_obs}.")
    return column
