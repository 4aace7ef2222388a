"""Data at the edge of what can be fitted: scores are numbers, or minus infinity; nothing warns."""

import math

import numpy as np
import pandas as pd
import pytest

from bgnlm import BGNLMRegressor
from bgnlm.errors import DataError
from bgnlm.latent import log_marginal
from bgnlm.latent.fields import AR1, IID, OU, RW1, Grouped
from bgnlm.latent.inner import SlopePrior
from bgnlm.latent.models import LatentModels
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.search.config import SearchConfig
from bgnlm.search.latent_problem import latent_models
from tests.naive_latent import Case, fine_grid, placed

GAUSSIAN, POISSON, BINOMIAL = ("gaussian", "identity"), ("poisson", "log"), ("binomial", "logit")
GAMMA, NEGATIVE_BINOMIAL = ("gamma", "log"), ("negative_binomial", "log")
N = 20
RNG = np.random.default_rng(11)
X = RNG.normal(size=(N, 2))
COUNTS = RNG.poisson(2.0, size=N).astype(float)
ALTERNATING = np.arange(N) % 2

# family, response, columns
DATA = {
    "constant": (GAUSSIAN, np.ones(N), X),
    "constant, positive": (GAMMA, np.full(N, 3.0), X),
    "huge": (POISSON, 1e6 + 1e3 * COUNTS, X),
    "huge and nothing": (POISSON, 1e6 * ALTERNATING, X),
    "huge and nothing, dispersed": (NEGATIVE_BINOMIAL, 1e6 * ALTERNATING, X),
    "huge values": (GAUSSIAN, 1e6 * COUNTS, X),
    "tiny values": (GAUSSIAN, 1e-6 * COUNTS, X),
    "over many orders": (GAMMA, np.exp(10.0 * X[:, 0] + X[:, 1]), X),
    "separated": (BINOMIAL, (X[:, 0] > 0).astype(float), X),
    "three rows": (POISSON, np.array([1.0, 0.0, 3.0]), X[:3]),
    "three rows, normal": (GAUSSIAN, np.array([1.0, 0.0, 3.0]), X[:3]),
    "three rows, binary": (BINOMIAL, np.array([1.0, 0.0, 1.0]), X[:3]),
    "one row": (POISSON, np.array([4.0]), X[:1]),
    "collinear": (POISSON, COUNTS, X[:, [0, 0, 0]] * [1.0, 1.0, -2.0]),
    "collinear, normal": (GAUSSIAN, COUNTS, X[:, [0, 0, 0]] * [1.0, 1.0, -2.0]),
    "columns that do not vary": (POISSON, COUNTS, np.column_stack([np.ones(N), np.zeros(N), X])),
    "large columns": (POISSON, COUNTS, 1e8 * X),
    "small columns": (POISSON, COUNTS, 1e-8 * X),
    "more columns than rows": (POISSON, COUNTS[:5], RNG.normal(size=(5, 8))),
}
NOTHING_EVER = {
    "no counts": (POISSON, np.zeros(N), X),
    "no counts, dispersed": (NEGATIVE_BINOMIAL, np.zeros(N), X),
    "one class": (BINOMIAL, np.zeros(N), X),
    "the other class": (BINOMIAL, np.ones(N), X),
}
COMPONENTS = {
    "none": [],
    "iid": [IID("pos")],
    "ar1": [AR1("pos")],
    "rw1": [RW1("pos")],
    "ou": [OU("pos")],
    "grouped": [Grouped("site")],
    "ar1, groups": [AR1("pos"), Grouped("site")],
    "crossed": [Grouped("site"), Grouped("year")],
}


def _models(pair, y, slopes, components, values):
    places = tuple(placed(c, values[c.column][: len(y)]) for c in components)
    return LatentModels(Case(pair, y).response, places, slopes)


VALUES = {"pos": np.arange(N), "site": np.arange(N) % 3, "year": np.arange(N) // 10}
ONE = {name: np.zeros(N) for name in VALUES}
LONELY = VALUES | {"site": np.minimum(np.arange(N), 1), "year": np.arange(N)}
FIXED, INTEGRATED = SlopePrior(), SlopePrior(precision=None)
STANDARDISED = SlopePrior(precision=1.0, standardised=True)


def _every_score(name, components, slopes):
    pair, y, columns = DATA[name]
    chosen = COMPONENTS[components]
    models = _models(pair, y, slopes, chosen, VALUES)
    every = tuple(range(len(chosen)))
    assert not np.isnan(models.surrogate(columns, every, [0]).scores()).any()
    return [models.log_marginal(columns[:, places], every) for places in ([], [0], list(range(columns.shape[1])))]


@pytest.mark.parametrize(
    ("components", "slopes"),
    [*((name, FIXED) for name in COMPONENTS), ("none", INTEGRATED), ("ar1", INTEGRATED), ("grouped", INTEGRATED)],
)
@pytest.mark.parametrize("name", DATA)
def test_scores_at_the_edge(name, components, slopes):
    for score in _every_score(name, components, slopes):
        assert score == -math.inf or math.isfinite(score)


@pytest.mark.parametrize("name", [name for name in DATA if DATA[name][0] in (POISSON, BINOMIAL, NEGATIVE_BINOMIAL)])
def test_probabilities_are_not_above_one(name):
    """But for the flat intercept they are probabilities."""
    for components in ("none", "iid"):
        assert max(_every_score(name, components, FIXED)) < 3.0


@pytest.mark.parametrize("values", [ONE, LONELY], ids=["one position", "alone in its group"])
@pytest.mark.parametrize("components", COMPONENTS)
@pytest.mark.parametrize("pair", [POISSON, GAUSSIAN], ids="-".join)
def test_positions_and_groups_at_the_edge(pair, components, values):
    chosen = COMPONENTS[components]
    models = _models(pair, COUNTS, FIXED, chosen, values)
    every = tuple(range(len(chosen)))
    score = models.log_marginal(X, every)
    assert math.isfinite(score)
    if values is ONE:  # the intercept does the same, and nothing is known of the field but its prior
        assert score == pytest.approx(models.log_marginal(X, ()), abs=0.2)
    assert not np.isnan(models.surrogate(X, every, [0, 1]).scores()).any()


@pytest.mark.parametrize("weights", [None, np.arange(N) % 3], ids=["each row once", "some rows not at all"])
@pytest.mark.parametrize("name", NOTHING_EVER)
def test_nothing_ever_happens(name, weights):
    """With a flat intercept there is no proper posterior."""
    (family, link), y, columns = NOTHING_EVER[name]
    if weights is not None:
        y = np.where(weights > 0, y, 1.0 - y)
    settings = {"family": family, "link": link, "sample_weight": weights}
    words = rf"must have values other than {y[1]:g} where .* got {y[1]:g} in all (20|13) rows"
    with pytest.raises(DataError, match=words):
        log_marginal(y, columns, latent=[AR1("pos")], positions=np.arange(N), **settings)
    with pytest.raises(DataError, match=words):
        log_marginal(y, **settings)
    likelihood = check_likelihood(y, coefficient_prior="gaussian", **settings)
    with pytest.raises(DataError, match=words):
        latent_models(likelihood, [placed(AR1("pos"), np.arange(N))], SearchConfig())
    y = y.copy()
    y[1] = 1.0 - y[1]
    assert math.isfinite(log_marginal(y, columns, **settings))


@pytest.mark.parametrize("pair", [POISSON, GAUSSIAN], ids="-".join)
def test_standardised_columns_that_do_not_vary(pair):
    models = _models(pair, COUNTS, STANDARDISED, [AR1("pos")], VALUES)
    for constant in (0.0, 1.0):
        score = models.log_marginal(np.column_stack([X[:, 0], np.full(N, constant)]), (0,))
        assert score == -math.inf or math.isfinite(score)


@pytest.mark.parametrize("components", ["none", "rw1", "grouped"])
@pytest.mark.parametrize("name", [name for name in DATA if name not in ("one row", "columns that do not vary")])
def test_standardised_scores_at_the_edge(name, components):
    pair, y, columns = DATA[name]
    chosen = COMPONENTS[components]
    models = _models(pair, y, STANDARDISED, chosen, VALUES)
    score = models.log_marginal(columns, tuple(range(len(chosen))))
    assert score == -math.inf or math.isfinite(score)


@pytest.mark.parametrize("components", ["none", "ar1", "grouped"])
@pytest.mark.parametrize("far", [-200.0, 50.0, 200.0])
def test_an_offset_moves_the_intercept_and_nothing_else(components, far):
    models = _models(POISSON, COUNTS, FIXED, COMPONENTS[components], VALUES)
    moved = LatentModels(models.response._replace(offset=np.full(N, far)), models.placed, FIXED)
    every = tuple(range(len(COMPONENTS[components])))
    assert moved.log_marginal(X, every) == pytest.approx(models.log_marginal(X, every), abs=1e-5)


TABLE = pd.DataFrame({"t": np.arange(N, dtype=float), "g": [f"g{i % 4}" for i in range(N)], "x": X[:, 0]})
HUGE = 1e6 + np.round(1e4 * X[:, 1])
SHORT = SearchConfig(n_populations=1, population_size=3)

# response, table, component, weights: values of both ways to a model
DEFINED = {
    "unsorted": (COUNTS, TABLE.assign(t=RNG.permutation(N)), AR1("t"), None),
    "duplicated": (COUNTS, TABLE.assign(t=np.arange(N) // 4), RW1("t"), None),
    "very near": (COUNTS, TABLE.assign(t=1e8 + 1e-6 * np.arange(N)), OU("t"), None),
    "very far": (COUNTS, TABLE.assign(t=1e12 * np.arange(N)), RW1("t"), None),
    "groups of one": (COUNTS, TABLE.assign(g=np.arange(N)), Grouped("g"), None),
    "a single group": (COUNTS, TABLE.assign(g="a"), Grouped("g"), None),
    "huge counts": (HUGE, TABLE, AR1("t"), None),
    "huge counts, each its own": (HUGE, TABLE, IID("t"), None),
    "two rows": (COUNTS[:2] + 1.0, TABLE[:2], AR1("t"), None),
    "two rows, a walk": (COUNTS[:2] + 1.0, TABLE[:2], RW1("t"), None),
    "rows that do not count": (COUNTS, TABLE, AR1("t"), np.arange(N) % 3),
    "a group that does not count": (COUNTS, TABLE, Grouped("g"), (np.arange(N) % 4 > 0).astype(float)),
}


@pytest.mark.parametrize("name", DEFINED)
def test_defined_results(name):
    y, table, component, weights = DEFINED[name]
    settings = {"family": "poisson", "latent": [component]}
    score = log_marginal(y, table[["x"]], positions=table, sample_weight=weights, **settings)
    assert math.isfinite(score)
    model = BGNLMRegressor(**settings, search=SHORT, n_chains=1, random_state=1).fit(table, y, sample_weight=weights)
    assert 0.0 <= model.components_["probability"][0] <= 1.0
    assert np.isfinite(model.predict(table)).all()
    assert np.isfinite(model.predict_interval(table)).all()


REFUSED = {
    "a missing position": (COUNTS, TABLE.assign(t=np.where(X[:, 0] == X[3, 0], np.nan, TABLE["t"])), AR1("t"), "row 3"),
    "an infinite position": (COUNTS, TABLE.assign(t=np.where(X[:, 0] == X[3, 0], np.inf, TABLE["t"])), OU("t"), "inf"),
    "a missing label": (COUNTS, TABLE.assign(g=[None, *TABLE["g"][1:]]), Grouped("g"), "row 0"),
    "no such column": (COUNTS, TABLE, AR1("day"), "'day'"),
    "one row": (COUNTS[:1], TABLE[:1], AR1("t"), "at least 2|more than one"),
    "no counts": (0.0 * COUNTS, TABLE, AR1("t"), "values other than 0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_clear_errors(name):
    y, table, component, words = REFUSED[name]
    settings = {"family": "poisson", "latent": [component]}
    with pytest.raises(DataError, match=words):
        log_marginal(y, table[["x"]], positions=table, **settings)
    with pytest.raises(DataError, match=words):
        BGNLMRegressor(**settings, search=SHORT, n_chains=1, random_state=1).fit(table, y)


def test_no_row_that_counts():
    with pytest.raises(DataError, match="positive in at least 2 rows"):
        log_marginal(COUNTS, family="poisson", latent=[AR1("t")], positions=TABLE, sample_weight=np.zeros(N))


@pytest.mark.parametrize("component", [IID("pos"), RW1("pos"), Grouped("pos")], ids=lambda c: type(c).__name__)
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e6])
def test_units_of_the_response(component, unit):
    """Hyperpriors are about the response as it is, whatever its size: against a fine grid."""
    rng = np.random.default_rng(0)
    n = 30
    pos = np.arange(n) % 6 if isinstance(component, Grouped) else np.arange(n)
    x = rng.normal(size=(n, 1))
    y = unit * (3.0 + 2.0 * np.sin(np.arange(n) / 4) + 0.5 * x[:, 0] + rng.normal(size=n))
    case = Case(GAUSSIAN, y, (placed(component, pos),), x)
    shift = -2.0 * math.log(unit)
    box = (min(shift, 0.0) - 6.0, max(shift, 10.0) + 5.0)
    expected = fine_grid(case.inner(), [box, box], 0.3)
    ours = log_marginal(y, x, latent=[component], positions=pos.astype(float))
    # An effect of every row and the noise change places along a ridge, which a coarse grid follows with less precision.
    assert ours == pytest.approx(expected, abs=0.25 if isinstance(component, IID) else 0.05)
