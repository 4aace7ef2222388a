"""Pictures of a fitted model. Each function takes the estimator, draws on `ax`, and returns the axes.

Without `ax` a figure of its own is made, which pyplot does not know, so that none is left open:
``bgnlm.plot.inclusion(model).figure.savefig("inclusion.pdf")``. Nothing global is changed. matplotlib is needed
(``pip install "bgnlm[plot]"``) and imported when something is drawn.

Examples
--------
>>> import bgnlm
>>> type(bgnlm.plot.tree("sin(x*y)")).__name__
'Axes'
"""

from bgnlm.plot.accuracy import predictions, residuals
from bgnlm.plot.classes import calibration, roc
from bgnlm.plot.effects import effect
from bgnlm.plot.feature_effects import feature_effect
from bgnlm.plot.features import coefficients, inclusion
from bgnlm.plot.latent_effects import latent
from bgnlm.plot.models import front, model_space
from bgnlm.plot.searches import chains, search
from bgnlm.plot.trees import tree

__all__ = [
    "calibration",
    "chains",
    "coefficients",
    "effect",
    "feature_effect",
    "front",
    "inclusion",
    "latent",
    "model_space",
    "predictions",
    "residuals",
    "roc",
    "search",
    "tree",
]
