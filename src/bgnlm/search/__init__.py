"""The search for features and models: Algorithms 1 and 2 of the paper, and their settings."""

from bgnlm.search.config import Limits, MoveProbabilities, SearchConfig
from bgnlm.search.mjmcmc import MjmcmcSettings
from bgnlm.search.prior import ModelPrior, logic_complexity, script_complexity

__all__ = [
    "Limits",
    "MjmcmcSettings",
    "ModelPrior",
    "MoveProbabilities",
    "SearchConfig",
    "logic_complexity",
    "script_complexity",
]
