"""Prior probabilities of models: each feature costs, and there may be only so many (section 2.2, eq. 3 and 4)."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm._validation import check_choice, check_count, check_number
from bgnlm.errors import SettingError
from bgnlm.features import Feature, leaf_count, operation_count
from bgnlm.features.measures import additional_weights
from bgnlm.features.nodes import Component, Input, Modification, Multiplication, Projection
from bgnlm.likelihood.sizes import log_sizes

Complexity = Callable[[Feature], float]


def operations_plus_one(feature: Feature) -> float:
    """Oc + 1: plain inputs cost too, as in the authors' scripts for Gaussian responses."""
    return operation_count(feature) + 1.0


def script_complexity(feature: Feature) -> float:
    """Measure of the authors' scripts for classification, to be used with `penalty=1`.

    Half for the term itself, half for each plus inside projections (the intercept's counts), one for each
    product and each function: 0.5 for x, 1.5 for g(x) and x y, (k + 3) / 2 for a projection of k inputs.

    Examples
    --------
    >>> from bgnlm import parse
    >>> from bgnlm.search import script_complexity
    >>> [script_complexity(parse(text)) for text in ("x", "sin(x)", "x*y", "sin(0.5 + x - 2*y)")]
    [0.5, 1.5, 1.5, 2.5]
    """
    return 0.5 + _script_cost(feature)


def _script_cost(feature: Feature) -> float:
    match feature:
        case Input() | Component():
            return 0.0
        case Modification(operand=operand):
            return 1.0 + _script_cost(operand)
        case Multiplication(factors=factors):
            return len(factors) - 1.0 + sum(map(_script_cost, factors))
        case Projection(operands=operands):
            return 1.0 + 0.5 * len(operands) + sum(map(_script_cost, operands))


def logic_complexity(n_inputs: int, max_leaves: int | None = None) -> Complexity:
    """Log N(s) of Bayesian logic regression, N(s) = C(m, s) 2^(2s-2), to be used with `penalty=1`.

    Infinite for trees with more leaves than `max_leaves` or than there are inputs.

    Examples
    --------
    >>> from bgnlm import parse
    >>> from bgnlm.search import logic_complexity
    >>> cost = logic_complexity(n_inputs=50, max_leaves=4)
    >>> round(cost(parse("a")), 3), round(cost(parse("a*b")), 3)
    (3.912, 8.497)
    """
    m = check_count(n_inputs, "n_inputs", low=1)
    most = m if max_leaves is None else min(m, check_count(max_leaves, "max_leaves", low=1))

    def complexity(feature: Feature) -> float:
        s = leaf_count(feature)
        return math.log(math.comb(m, s)) + (2 * s - 2) * math.log(2.0) if s <= most else math.inf

    return complexity


MEASURES: dict[str, Complexity] = {
    "oc": operation_count,
    "oc+1": operations_plus_one,
    "script": script_complexity,
}
# Operation count, and the log of the number of inputs for each choice that makes a feature, in nats.
MULTIPLICITY = "multiplicity"


def resolve_penalty(penalty: Any, n_obs: float, name: str = "penalty", unit: str = "operation") -> float:
    """-log a in nats per unit of complexity: "bic" is log n, "aic" is 2."""
    if isinstance(penalty, str):
        if penalty in ("bic", "aic"):
            return math.log(n_obs) if penalty == "bic" else 2.0
        raise SettingError(f"{name} must be 'bic', 'aic' or a number of nats per {unit}; got {penalty!r}.")
    return check_number(penalty, name, low=0.0, high=1e6)


@dataclass(frozen=True, kw_only=True)
class ModelPrior:
    """p(m) proportional to a^(sum of complexities) for models of at most `max_model_size` features.

    Parameters
    ----------
    penalty
        -log a: "bic" (log n), "aic" (2) or a number of nats per unit of complexity; 0 makes all models equal.
    complexity
        "multiplicity": beside `penalty` for each operation, log m nats for each feature and each of its operations, m
        the number of inputs, as many as there are to choose from; corrected for the share of inputs that matter, which
        is unknown (Beta(1, 2)): the k-th feature costs log((m - k + 2) / k). The first of many is dear, or some
        that mean nothing would have high probabilities by chance, and the last pay for themselves; all together cost
        as much as the first, log(m + 1). All models are equal if `penalty` is 0.
        "oc" (operation count, the paper's: inputs are free), "oc+1", "script", or a function of a feature.
    max_model_size
        Q of the paper; None for no limit.
    weight_cost
        Operations that each weight of a projection beyond the first counts for: 1 in the paper, less to make
        projections of many features cheaper.
    latent_penalty
        -log b, for latent components (section 4.1): "bic", "aic" or a number of nats per unit of their complexity.
    latent_complexity
        v: "hyperparameters", their number (an offset that can be chosen counts as one), or "equal", one for every
        component, as in Example 5 of the paper.

    Examples
    --------
    >>> from bgnlm import parse
    >>> from bgnlm.search import ModelPrior
    >>> prior = ModelPrior(penalty=2.0, complexity="oc")
    >>> prior.log_model_prior([parse("x"), parse("sin(x*y)")], n_obs=100, n_inputs=2)
    -4.0
    """

    penalty: float | str = "bic"
    complexity: str | Complexity = MULTIPLICITY
    max_model_size: int | None = None
    weight_cost: float = 1.0
    latent_penalty: float | str = "bic"
    latent_complexity: str = "hyperparameters"

    def __post_init__(self) -> None:
        resolve_penalty(self.penalty, 2.0)
        self.latent_costs(np.empty(0), 2.0)
        check_choice(self.latent_complexity, "latent_complexity", ("hyperparameters", "equal"))
        check_number(self.weight_cost, "weight_cost", low=0.0)
        if self.max_model_size is not None:
            check_count(self.max_model_size, "max_model_size")
        if not callable(self.complexity) and self.complexity not in (MULTIPLICITY, *MEASURES):
            names = ", ".join(map(repr, (MULTIPLICITY, *MEASURES)))
            raise SettingError(f"complexity must be {names} or a function of a feature; got {self.complexity!r}.")
        if self.weight_cost != 1.0 and self.complexity not in (MULTIPLICITY, "oc", "oc+1"):
            raise SettingError(
                f"weight_cost is for complexities that count operations, {MULTIPLICITY!r}, 'oc' and 'oc+1'; "
                f"got complexity {self.complexity!r}."
            )

    def costs(self, features: Sequence[Feature], n_obs: float, n_inputs: int) -> FloatArray:
        """Nats that each feature costs a model: -log rho(gamma_j = 1)."""
        measure = self.complexity if callable(self.complexity) else MEASURES.get(self.complexity, operation_count)
        penalty = resolve_penalty(self.penalty, n_obs)
        values = np.array([_checked(measure(feature), feature) for feature in features], dtype=np.float64)
        if self.weight_cost != 1.0:
            values += (self.weight_cost - 1.0) * np.array([additional_weights(feature) for feature in features])
        if not penalty:  # inf * 0 is not a number; a feature that is ruled out stays ruled out
            return np.where(np.isinf(values), np.inf, 0.0)
        n_slots = self.n_slots(n_inputs)
        return np.asarray(penalty * values + (math.log(n_slots) * (1.0 + values) if n_slots else 0.0))

    def latent_costs(self, n_hyperparameters: FloatArray, n_obs: float) -> FloatArray:
        """Nats that each latent component costs a model."""
        penalty = resolve_penalty(self.latent_penalty, n_obs, "latent_penalty", "unit of complexity")
        is_equal = self.latent_complexity == "equal"
        return penalty * (np.ones_like(n_hyperparameters) if is_equal else n_hyperparameters)

    def n_slots(self, n_inputs: int) -> int:
        """Of `log_sizes`, which are part of the prior of a model; 0 for none."""
        return n_inputs if self.complexity == MULTIPLICITY and self.penalty != 0 else 0

    def log_model_prior(self, features: Sequence[Feature], n_obs: float, n_inputs: int) -> float:
        """Log p(m) up to the constant that all models share."""
        if self.max_model_size is not None and len(features) > self.max_model_size:
            return -math.inf
        sizes = float(log_sizes(len(features), self.n_slots(n_inputs)))
        return sizes - float(self.costs(features, n_obs, n_inputs).sum())


PREDICTIVE = ModelPrior(penalty="aic", complexity="oc")
_PREDICT = "predict"


def model_prior(penalty: Any) -> ModelPrior:
    """Return the prior that an estimator's `penalty` stands for."""
    if isinstance(penalty, ModelPrior):
        return penalty
    if isinstance(penalty, str) and penalty not in ("bic", "aic", _PREDICT):
        raise SettingError(
            f"penalty must be 'bic', 'aic', {_PREDICT!r}, a number of nats per operation or a ModelPrior; "
            f"got {penalty!r}."
        )
    return PREDICTIVE if penalty == _PREDICT else ModelPrior(penalty=penalty)


def _checked(complexity: Any, feature: Feature) -> float:
    try:
        value = float(complexity)
    except (TypeError, ValueError):
        value = math.nan
    if not value >= 0.0:
        raise SettingError(f"complexity must be a number of 0 or more; got {complexity!r} for the feature {feature}.")
    return value
