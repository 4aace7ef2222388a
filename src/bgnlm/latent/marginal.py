"""The marginal likelihood of one model with latent components."""

import math
import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from bgnlm._validation import check_design, check_number, check_offset, check_response, check_weights
from bgnlm.errors import DataError, ModelStatusWarning
from bgnlm.latent.fields import Gamma
from bgnlm.latent.inner import InnerLaplace, LatentResponse, SlopePrior, check_intercept
from bgnlm.latent.layout import lay_out
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
        Whether the inner Laplace approximation has its second-order correction.

    Returns
    -------
    float
        With all constants; -inf, and a `ModelStatusWarning`, where no mode is found.

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
    fields = check_fields(latent)
    placed = [
        place(
            field,
            _checked(field, _column(positions, field.column, field), n_obs),
            None
            if field.slope is None
            else _checked(field, _column(positions, field.slope, field), n_obs, is_slope=True),
        )[0]
        for field in fields
    ]
    if isinstance(coefficient_precision, Gamma):
        slopes = SlopePrior(precision=None, hyperprior=coefficient_precision)
    else:
        slopes = SlopePrior(precision=check_number(coefficient_precision, "coefficient_precision", above=0.0))
    weights, known = check_weights(sample_weight, n_obs), check_offset(offset, n_obs)
    checked = check_intercept(LatentResponse(distribution, response, weights, known))
    found = integrate(InnerLaplace(checked, lay_out(placed, n_obs), columns, slopes), corrected=corrected)
    if not math.isfinite(found.log_marginal):
        warnings.warn(
            "No mode of the model was found. Bring columns to about the size of 1, or leave components out.",
            ModelStatusWarning,
            stacklevel=2,
        )
    return found.log_marginal


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
