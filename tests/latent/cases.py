"""Layouts of components, and data for them."""

import numpy as np

from bgnlm.latent.fields import AR1, IID, OU, RW1, Grouped
from bgnlm.latent.hyperpriors import Gamma, Normal
from bgnlm.latent.inner import SlopePrior
from tests.naive_latent import Case, placed, simulate

# What the components of a model are, with hyperparameters; "pos" is a column of positions, the others are groups.
LAYOUTS = {
    "none": ([], []),
    "iid": ([IID("pos")], [1.0]),
    "ar1": ([AR1("pos")], [0.5, 2.0]),
    "ar1, swinging": ([AR1("pos", correlation_prior=Normal(-1.0, 0.5))], [0.5, -1.5]),
    "rw1": ([RW1("pos", precision_prior=Gamma(2.0, 0.1))], [2.0]),
    "ou": ([OU("pos", decay_prior=Normal(-1.0, 1.0))], [0.3, -0.5]),
    "iid, ar1": ([IID("pos"), AR1("pos")], [1.5, 0.7, 1.2]),
    "rw1, ou, iid": ([RW1("pos"), OU("pos"), IID("pos")], [2.0, 0.5, 0.1, 1.5]),
    "grouped": ([Grouped("site")], [0.8]),
    "intercepts and slopes": ([Grouped("site"), Grouped("site", slope="z")], [0.8, 1.7]),
    "crossed": ([Grouped("site"), Grouped("year")], [0.8, 2.0]),
    "ar1, groups beside": ([AR1("pos"), Grouped("site"), Grouped("year", slope="z")], [0.5, 2.0, 0.8, 1.3]),
    "rw1 beside": ([RW1("year"), OU("pos")], [1.0, 0.3, -0.5]),
}


def build(pair, layout, n=24, n_columns=2, seed=0, slopes=SlopePrior(precision=0.1), level=0.3):  # noqa: B008
    """Data with several rows at some positions, in no order; and hyperparameters."""
    rng = np.random.default_rng(seed)
    components, hyperparameters = LAYOUTS[layout]
    values = {
        "pos": np.sort(rng.choice(2 * n, size=2 * n // 3, replace=False))[rng.permutation(n) % (2 * n // 3)] * 0.5,
        "site": rng.permutation(n) % 5,
        "year": rng.permutation(n) % 3,
    }
    z = rng.normal(size=n)
    places = [placed(c, values[c.column], z if c.slope else None) for c in components]
    columns = rng.normal(size=(n, n_columns))
    weights = rng.integers(1, 4, size=n).astype(float)
    offset = 0.3 * rng.normal(size=n)
    eta = level + offset + 0.5 * np.sin(values["pos"]) + 0.4 * columns.sum(axis=1) + rng.normal(size=5)[values["site"]]
    y = simulate(rng, pair, 0.5 * eta, weights)
    case = Case(pair, y, tuple(places), columns, weights, offset, slopes)
    rest = [np.log(2.0)] if case.response.family.has_dispersion else []
    if slopes.precision is None and n_columns:
        rest.append(-0.5)
    return case, np.array([*hyperparameters, *rest])


# Where hyperparameters are worth looking, by component.
BOXES = {
    IID: [(-10.0, 18.0)],
    RW1: [(-8.0, 20.0)],
    Grouped: [(-10.0, 18.0)],
    AR1: [(-8.0, 18.0), (-13.0, 13.0)],
    OU: [(-8.0, 18.0), (-11.0, 11.0)],
}
DISPERSION_BOX = [(-6.0, 14.0)]
SLOPES_BOX = [(-8.0, 16.0)]


def series(pair, components, n, sd, seed, *, n_columns=0, slopes=SlopePrior(), n_groups=None, trials=4.0, carry=0.9):  # noqa: B008
    """A series with an autoregressive process in it, and the box of its hyperparameters."""
    rng = np.random.default_rng(seed)
    place = np.arange(n) if n_groups is None else rng.integers(n_groups, size=n)
    process = [rng.normal()]
    for _ in range(place.max()):
        process.append(carry * process[-1] + np.sqrt(1 - carry**2) * rng.normal())
    weights = np.full(n, trials if pair[0] == "binomial" else 1.0)
    columns = rng.normal(size=(n, n_columns))
    y = simulate(rng, pair, 0.5 + sd * np.array(process)[place] + 0.5 * columns.sum(axis=1), weights)
    case = Case(pair, y, tuple(placed(c, place) for c in components), columns, weights, None, slopes)
    box = [side for c in components for side in BOXES[type(c)]]
    box += DISPERSION_BOX if case.response.family.has_dispersion else []
    box += SLOPES_BOX if slopes.precision is None and n_columns else []
    return case, box
