"""A small response with latent processes and an offset that can be chosen."""

import numpy as np

from bgnlm.latent.fields import IID, RW1
from bgnlm.latent.layout import Placed
from bgnlm.search.config import SearchConfig
from bgnlm.search.problem import define_problem

N_OBS, N_INPUTS = 40, 3
NAMES = ("RW1(t)", "IID(t)", "offset")


def data(seed=5, slope=0.3, offset=1.0):
    """Counts along a walk."""
    rng = np.random.default_rng(seed)
    X, log_exposure = rng.normal(size=(N_OBS, N_INPUTS)), 0.5 * rng.normal(size=N_OBS)
    walk = np.cumsum(rng.normal(size=N_OBS))
    walk -= walk.mean()
    y = rng.poisson(np.exp(1.0 + 0.3 * walk + slope * X[:, 0] + offset * log_exposure))
    return y.astype(float), X, log_exposure


def place(field, n_obs=N_OBS):
    """A component over one position for each row."""
    return Placed(field, np.arange(n_obs, dtype=np.float64), np.arange(n_obs), np.ones(n_obs))


def latent():
    return [place(RW1("t")), place(IID("t"))]


def problem(engine="auto", *, X=None, search=None, **changes):
    """Two processes and the offset over a few inputs, or features of them with `search` settings."""
    y, inputs, log_exposure = data()
    small = {"population_size": N_INPUTS, "n_populations": 1, "n_candidates": 40, "n_draws": 24} | (search or {})
    settings = {
        "family": "poisson",
        "offset": log_exposure,
        "latent": latent(),
        "transforms": ["sin", "tanh"],
        "config": SearchConfig(select_offset=True, engine=engine, **small),
    } | changes
    return define_problem(y, inputs if X is None else X, **settings)
