"""Latent Gaussian components, and models with them (section 4.1 of the paper).

Examples
--------
>>> import bgnlm
>>> bgnlm.BGNLMRegressor(latent=[bgnlm.latent.AR1("day")]).latent[0].column
'day'
"""

from bgnlm.latent.fields import AR1, IID, OU, RW1, Bridge, Grouped, LatentField
from bgnlm.latent.hyperpriors import Gamma, Normal
from bgnlm.latent.marginal import log_marginal

__all__ = ["AR1", "IID", "OU", "RW1", "Bridge", "Gamma", "Grouped", "LatentField", "Normal", "log_marginal"]
