"""Bayesian generalized nonlinear models: interpretable nonlinear features with their probabilities.

Everything public is listed in `__all__` and loaded when first used, so that `import bgnlm` is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from bgnlm._version import __version__

if TYPE_CHECKING:
    from bgnlm.estimators.classifier import BGNLMClassifier
    from bgnlm.estimators.files import load
    from bgnlm.estimators.regressor import BGNLMRegressor
    from bgnlm.features import Transform, parse
    from bgnlm.find import find_features
    from bgnlm.likelihood.coefficient_priors import CoefficientPrior
    from bgnlm.likelihood.marginal import fit_model, log_marginal
    from bgnlm.search.config import SearchConfig
    from bgnlm.search.exhaustive import enumerate_models

_HOME = {
    "BGNLMClassifier": "bgnlm.estimators.classifier",
    "BGNLMRegressor": "bgnlm.estimators.regressor",
    "CoefficientPrior": "bgnlm.likelihood.coefficient_priors",
    "SearchConfig": "bgnlm.search.config",
    "Transform": "bgnlm.features",
    "enumerate_models": "bgnlm.search.exhaustive",
    "find_features": "bgnlm.find",
    "load": "bgnlm.estimators.files",
    "fit_model": "bgnlm.likelihood.marginal",
    "log_marginal": "bgnlm.likelihood.marginal",
    "parse": "bgnlm.features",
}
_MODULES = ("datasets", "errors", "features", "latent", "plot", "search")

__all__ = [
    "BGNLMClassifier",
    "BGNLMRegressor",
    "CoefficientPrior",
    "SearchConfig",
    "Transform",
    "__version__",
    "datasets",
    "enumerate_models",
    "errors",
    "features",
    "find_features",
    "fit_model",
    "latent",
    "load",
    "log_marginal",
    "parse",
    "plot",
    "search",
]


def __getattr__(name: str) -> Any:
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    elif name in _MODULES:
        value = import_module(f"bgnlm.{name}")
    else:
        raise AttributeError(f"module 'bgnlm' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
