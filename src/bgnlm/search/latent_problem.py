"""What a user can set about latent components, checked (section 4.1 of the paper)."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from bgnlm.errors import DataError, FeatureError, SettingError
from bgnlm.features import Transform, inputs_of, parse
from bgnlm.latent.hyperpriors import Gamma
from bgnlm.latent.inner import LatentResponse, SlopePrior, check_intercept
from bgnlm.latent.layout import Placed
from bgnlm.latent.models import LatentModels
from bgnlm.likelihood.coefficient_priors import LATENT_PARAMETERS, CoefficientPrior, resolve_prior
from bgnlm.likelihood.marginal import Likelihood
from bgnlm.search.config import SearchConfig

_PRIORS = ("gaussian", *LATENT_PARAMETERS)


def check_latent_prior(prior: str | CoefficientPrior) -> CoefficientPrior:
    """Turn what a user typed into a prior that models with latent components can have."""
    chosen = CoefficientPrior("gaussian") if prior == "auto" else resolve_prior(prior)
    if chosen.name not in _PRIORS:
        raise SettingError(
            f"coefficient_prior must be 'auto' or one of {', '.join(map(repr, _PRIORS))} where there are latent "
            f"components or the offset can be chosen; got {chosen.name!r}."
        )
    return chosen


def slope_prior(prior: CoefficientPrior) -> SlopePrior:
    """Independent normal slopes, of standardised columns or of columns as they are."""
    match prior.name:
        case "normal":
            return SlopePrior(precision=prior["precision"])
        case "normal-gamma":
            return SlopePrior(precision=None, hyperprior=Gamma(prior["shape"], prior["rate"]))
        case _:
            return SlopePrior(precision=1.0 / prior["variance"], standardised=True)


def latent_models(likelihood: Likelihood, latent: Any, config: SearchConfig) -> LatentModels:
    """Return models of a response with some of these components, and with or without its offset."""
    if likelihood.noise_floor:
        raise SettingError(
            f"noise_floor is for models without latent components; got {likelihood.noise_floor:g}. Leave it out."
        )
    if config.projection_weights is not None and config.projection_weights.strategy == "bayesian":
        raise SettingError(
            "projection_weights must be 'conditional', 'naive', 'concave' or 'deep' where there are latent components "
            "or the offset can be chosen; got 'bayesian'."
        )
    if config.select_offset and not likelihood.offset.any():
        raise SettingError("select_offset is True, but there is no offset to choose. Give an offset.")
    placed = tuple(latent) if isinstance(latent, Iterable) else (latent,)
    for component in placed:
        if not isinstance(component, Placed):
            raise SettingError(f"latent must be components placed over their positions; got {component!r}.")
        if len(component.place) != len(likelihood.y):
            raise DataError(
                f"latent components must have a position for each of the {len(likelihood.y)} rows; "
                f"got {len(component.place)}."
            )
    # Hyperpriors are about precisions of effects; those of a Gaussian response count in its own units.
    scale = _deviation(likelihood, config) if likelihood.family.name == "gaussian" else 1.0
    response = LatentResponse(likelihood.family, likelihood.y / scale, likelihood.weights, likelihood.offset / scale)
    return LatentModels(
        response=check_intercept(response),
        placed=placed,
        slopes=slope_prior(likelihood.prior),
        selects_offset=config.select_offset,
        max_components=config.limits.max_latent,
        scale=scale,
    )


def _deviation(likelihood: Likelihood, config: SearchConfig) -> float:
    """Standard deviation of the response, without its offset if it always has one."""
    values = likelihood.y if config.select_offset else likelihood.y - likelihood.offset
    share = likelihood.weights / likelihood.weights.sum()
    deviation = float(np.sqrt(share @ np.square(values - share @ values)))
    return deviation if deviation > 0.0 else 1.0


def check_component_names(components: Iterable[str], columns: Iterable[str], transforms: Iterable[Transform]) -> None:
    """Names must tell components apart from each other, and from features: models are stored by them."""
    seen, inputs, known = set(), set(columns), tuple(transforms)
    for name in components:
        if name in seen:
            raise SettingError(f"latent has {name} twice. Leave one of them out.")
        seen.add(name)
        try:
            feature = parse(name, known)
        except FeatureError:
            continue
        if inputs_of(feature) <= inputs:
            raise SettingError(
                f"{name} is the name of a component and a feature of the columns. Give the column, or the transform, "
                "another name."
            )
