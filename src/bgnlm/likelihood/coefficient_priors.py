"""Priors on the regression coefficients: names, parameters and what they mean (section 2.2).

With u = 1/(1 + g), the mixtures of g-priors but Zellner-Siow have the density
p(u) prop. to u^(a/2-1) (1-vu)^(b/2-1) exp(-su/2) (kappa + (1-kappa)vu)^(-r) on 0 < u < 1/v
(Li and Clyde 2018); the classes of `MixtureParameters` below are its special cases.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from bgnlm._validation import check_choice, check_number
from bgnlm.errors import SettingError

# Parameters a user can set, with their defaults; None means that it depends on the data.
PARAMETERS: dict[str, dict[str, float | None]] = {
    "robust": {},
    "hyper-g": {"a": 3.0},
    "hyper-g/n": {"a": 3.0},
    "zellner-siow": {},
    "intrinsic": {},
    "beta-prime": {},
    "cch": {"a": 1.0, "b": 2.0, "s": 0.0},
    "tg": {"a": 2.0, "s": 0.0},
    "g": {"g": None},
    "eb-local": {},
    "jeffreys": {},
    "bic": {},
    "aic": {},
    "known-variance": {"variance": 1.0},
    "gaussian": {"variance": 1.0},
    "script": {},
}
# Of models with latent components alone.
LATENT_PARAMETERS: dict[str, dict[str, float | None]] = {
    "normal": {"precision": 1e-3},
    "normal-gamma": {"shape": 1.0, "rate": 5e-5},
}
# Variance of slopes of standardised columns. A difference of one standard deviation of an input that multiplies odds or
# means by 12 (e^2.5) is not out of the ordinary, one that multiplies them by 150 (e^5) is. A g-prior is widest in the
# directions that the data say least about, so that under it models of many correlated columns have no chance.
_USUAL = 2.5**2
MIXTURES = ("robust", "hyper-g", "hyper-g/n", "zellner-siow", "intrinsic", "beta-prime", "cch", "tg")
# Below these the prior puts nearly all its mass where g is 0 or infinite.
_SMALLEST = {
    ("hyper-g", "a"): 2.05,
    ("hyper-g/n", "a"): 2.05,
    ("cch", "a"): 0.05,
    ("cch", "b"): 0.05,
    ("tg", "a"): 0.05,
    ("cch", "s"): -1e6,
    ("tg", "s"): -1e6,
}


@dataclass(frozen=True, init=False)
class CoefficientPrior:
    """A prior on the coefficients, by name and parameters.

    Parameters
    ----------
    name
        `"robust"`, `"hyper-g"` (a), `"hyper-g/n"` (a), `"zellner-siow"`, `"intrinsic"`, `"beta-prime"`,
        `"cch"` (a, b, s; a = 0 is improper) and `"tg"` (a, s): mixtures of g-priors; `"g"` (g, by default the number of
        observations) and `"eb-local"` (the g that fits best): a single g; `"jeffreys"`: the paper's prior,
        |Fisher information|^(1/2); `"bic"`, `"aic"`; `"known-variance"` (variance): the paper's prior with
        the noise variance given; `"gaussian"` (variance): independent normal coefficients of standardised
        columns with that variance, in units of the noise variance; `"script"`: -RSS/2, the score of the
        authors' scripts. For models with latent components: `"normal"` (precision): independent normal coefficients of
        the columns as they are; `"normal-gamma"` (shape, rate): the same with a precision that has a Gamma prior.
    information
        `"null"` or `"local"`: where the information matrix of a g-prior is taken; matters for families
        other than the Gaussian.
    **parameters
        The parameters named in brackets.

    Examples
    --------
    >>> from bgnlm import CoefficientPrior, log_marginal
    >>> x = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    >>> y = [0.1, 1.9, 4.2, 5.8, 8.1]
    >>> round(log_marginal(y, x, coefficient_prior="hyper-g/n", relative_to_null=True), 2)
    5.97
    >>> round(log_marginal(y, x, coefficient_prior=CoefficientPrior("g", g=100), relative_to_null=True), 2)
    6.45
    """

    name: str
    information: str
    parameters: tuple[tuple[str, float | None], ...]

    def __init__(self, name: str, *, information: str = "null", **parameters: float) -> None:
        check_choice(name, "coefficient_prior", (*PARAMETERS, *LATENT_PARAMETERS))
        check_choice(information, "information", ("null", "local"))
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "information", information)
        object.__setattr__(self, "parameters", _complete(name, parameters))

    def __getitem__(self, parameter: str) -> Any:
        return dict(self.parameters)[parameter]


def resolve_prior(prior: str | CoefficientPrior, *, family: str = "gaussian") -> CoefficientPrior:
    """Turn what a user typed into a `CoefficientPrior`; "auto" depends on the family."""
    if isinstance(prior, CoefficientPrior):
        return prior
    if prior == "auto":
        return CoefficientPrior("robust") if family == "gaussian" else CoefficientPrior("gaussian", variance=_USUAL)
    if not isinstance(prior, str) or prior not in (*PARAMETERS, *LATENT_PARAMETERS):
        raise SettingError(
            f"coefficient_prior must be 'auto', one of {', '.join(map(repr, PARAMETERS))}, or a CoefficientPrior; "
            f"got {prior!r}."
        )
    return CoefficientPrior(prior)


def check_plain(prior: CoefficientPrior) -> CoefficientPrior:
    """Refuse priors that are for models with latent components."""
    if prior.name in LATENT_PARAMETERS:
        raise SettingError(
            f"coefficient_prior {prior.name!r} is for models with latent components, and there are none. "
            "Use 'auto', or 'gaussian' for independent normal coefficients."
        )
    return prior


class MixtureParameters(NamedTuple):
    """The parameters of the density of u = 1/(1 + g) above."""

    a: float
    b: float
    s: float = 0.0
    r: float = 0.0
    v: float = 1.0
    kappa: float = 1.0


def mixture_parameters(prior: CoefficientPrior, n_obs: float, size: int) -> MixtureParameters | None:
    """The mixture over g for models with `size` columns; None for priors that are not of this class."""
    match prior.name:
        case "robust":
            return MixtureParameters(a=1.0, b=2.0, r=1.5, v=max((n_obs + 1) / (size + 1), 1.0))
        case "hyper-g":
            return MixtureParameters(a=prior["a"] - 2.0, b=2.0)
        case "hyper-g/n":
            return MixtureParameters(a=prior["a"] - 2.0, b=2.0, r=prior["a"] / 2, kappa=1.0 / n_obs)
        case "intrinsic":
            top = n_obs + size + 1
            return MixtureParameters(a=1.0, b=1.0, r=1.0, v=top / (size + 1), kappa=top / n_obs)
        case "beta-prime":
            # Not a prior for models as large as the data; such models are left without a score.
            return MixtureParameters(a=0.5, b=max(n_obs - size - 1.5, 0.05))
        case "cch":
            return MixtureParameters(a=prior["a"], b=prior["b"], s=prior["s"])
        case "tg":
            return MixtureParameters(a=prior["a"], b=2.0, s=prior["s"])
        case _:
            return None


def _complete(name: str, given: Mapping[str, Any]) -> tuple[tuple[str, float | None], ...]:
    known = (PARAMETERS | LATENT_PARAMETERS)[name]
    for parameter in given:
        if parameter not in known:
            allowed = ", ".join(known) or "none"
            raise SettingError(f"The prior {name!r} has no parameter {parameter!r}; allowed: {allowed}.")
    complete = dict(known)
    for parameter, value in given.items():
        if value is None and known[parameter] is None:
            continue
        if (name, parameter, value) == ("cch", "a", 0):  # the improper limit, left unnormalised
            complete[parameter] = 0.0
            continue
        low = _SMALLEST.get((name, parameter))
        limit = {"above": 0.0} if low is None else {"low": low}
        high = 1e100 if parameter in ("g", "variance") else 1e12 if name in LATENT_PARAMETERS else 1e6
        complete[parameter] = check_number(value, f"{parameter} of the prior {name!r}", high=high, **limit)
    return tuple(sorted(complete.items()))
