"""The search for features and models: Algorithms 1 and 2 of the paper, and their settings.

Examples
--------
>>> import bgnlm
>>> bgnlm.SearchConfig(limits=bgnlm.search.Limits(max_depth=2)).limits.max_depth
2
"""

from bgnlm.search.config import Limits, MoveProbabilities, ProjectionWeights, SearchConfig
from bgnlm.search.mjmcmc import MjmcmcSettings
from bgnlm.search.prior import ModelPrior, logic_complexity, script_complexity

__all__ = [
    "Limits",
    "MjmcmcSettings",
    "ModelPrior",
    "MoveProbabilities",
    "ProjectionWeights",
    "SearchConfig",
    "logic_complexity",
    "script_complexity",
]
