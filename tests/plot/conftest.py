"""Small fits that all tests of plots share."""

from functools import cache

import numpy as np
import pandas as pd
import pytest

import bgnlm
from bgnlm import BGNLMClassifier, BGNLMRegressor, SearchConfig
from bgnlm.latent import AR1, Gamma, Grouped
from bgnlm.search import Limits

pytest.importorskip("matplotlib")

N = 60
TINY = SearchConfig(n_populations=2, population_size=5, n_candidates=20)
LINEAR = SearchConfig(n_populations=1, population_size=3, limits=Limits(max_depth=0))
HOSTILE = [
    "$x_1$",
    "<script>alert(1)</script>",
    "a\nb\x07",
    "_hidden",
    "very long name " * 20,
    "größe \N{GREEK SMALL LETTER ALPHA}",
]


@cache
def table():
    rng = np.random.default_rng(5)
    return pd.DataFrame(
        {
            "a": rng.normal(size=N),
            "b": rng.uniform(0.5, 2.0, size=N),
            "kind": rng.choice(["red", "green", "blue"], size=N),
            "on": rng.random(N) < 0.5,
            "few": rng.integers(0, 3, size=N),
        }
    )


@cache
def eta():
    X = table()
    return 0.5 + 0.6 * X["a"].to_numpy() + 0.4 * (X["kind"] == "red").to_numpy()


@cache
def response(family):
    rng, mean = np.random.default_rng(6), np.exp(eta())
    values = {
        "gaussian": lambda: 3 * eta() + 0.3 * rng.normal(size=N),
        "binomial": lambda: (rng.random(N) < 1 / (1 + np.exp(-2 * eta() + 1))).astype(float),
        "poisson": lambda: rng.poisson(mean).astype(float),
        "gamma": lambda: rng.gamma(5.0, mean / 5.0),
        "negative_binomial": lambda: rng.poisson(mean * rng.gamma(3.0, 1 / 3.0, N)).astype(float),
    }[family]()
    return pd.Series(values, name="size")


FAMILIES = ("gaussian", "binomial", "poisson", "gamma", "negative_binomial")


@cache
def regressor(family="gaussian"):
    model = BGNLMRegressor(family=family, search=TINY, n_chains=2, random_state=1)
    return model.fit(table(), response(family))


@cache
def labels(n_classes):
    rng = np.random.default_rng(7)
    place = np.digitize(eta() + 0.3 * rng.normal(size=N), [0.5] if n_classes == 2 else [0.2, 0.9])
    return pd.Series(np.array(["low", "high", "very high"])[place], name="grade")


@cache
def classifier(n_classes=2):
    return BGNLMClassifier(search=TINY, n_chains=2, random_state=1).fit(table(), labels(n_classes))


@cache
def latent_data():
    rng = np.random.default_rng(8)
    walk = np.cumsum(0.4 * rng.normal(size=N))
    group = rng.integers(0, 6, N)
    X = pd.DataFrame({"a": rng.normal(size=N), "t": np.arange(N), "g": [f"s{k}" for k in group]})
    y = pd.Series(1 + X["a"] + walk + np.linspace(-2, 2, 6)[group] + 0.2 * rng.normal(size=N), name="y")
    return X, y


@cache
def latent_model():
    wide = Gamma(1, 0.5)
    parts = [AR1("t", precision_prior=wide), Grouped("g", precision_prior=wide)]
    return BGNLMRegressor(latent=parts, search=LINEAR, n_chains=1, random_state=1).fit(*latent_data())


@cache
def empty_model():
    """An intercept and nothing else."""
    X = np.random.default_rng(9).normal(size=(30, 2))
    search = SearchConfig(n_populations=1, population_size=2, limits=Limits(max_depth=0, max_model_size=0))
    y = np.random.default_rng(10).normal(size=30)
    return BGNLMRegressor(search=search, n_chains=1, random_state=1).fit(X, y)


@cache
def hostile_data():
    rng = np.random.default_rng(11)
    X = pd.DataFrame(rng.normal(size=(N, len(HOSTILE))), columns=HOSTILE)
    y = X.sum(axis=1) + 0.1 * rng.normal(size=N)
    return X, y.rename("$y_{hat")


@cache
def hostile_model():
    search = SearchConfig(n_populations=1, population_size=8, limits=Limits(max_depth=0))
    return BGNLMRegressor(search=search, n_chains=1, random_state=1).fit(*hostile_data())


@pytest.fixture(scope="session")
def loaded(tmp_path_factory):
    path = tmp_path_factory.mktemp("models") / "model.bgnlm"
    regressor().save(path)
    return bgnlm.load(path)


def texts(ax):
    """All that is written in and around axes."""
    found = [*ax.texts, ax.title, ax.xaxis.label, ax.yaxis.label, *ax.get_xticklabels(), *ax.get_yticklabels()]
    found += [ax._left_title, ax._right_title]
    if ax.get_legend() is not None:
        found += ax.get_legend().get_texts()
    return [text.get_text().replace("\n", " ") for text in found if text.get_text()]


def line_of(ax, **properties):
    """The only line with these properties."""
    found = [line for line in ax.lines if all(getattr(line, f"get_{k}")() == v for k, v in properties.items())]
    assert len(found) == 1, [line.get_label() for line in ax.lines]
    return found[0]


def band_of(ax, number=0):
    """Ends of a band, by place: (lower, upper)."""
    from matplotlib.collections import PolyCollection

    bands = [c for c in ax.collections if isinstance(c, PolyCollection)]
    corners = bands[number].get_paths()[0].vertices
    places = np.unique(corners[:, 0])
    return np.array([[corners[corners[:, 0] == x, 1].min(), corners[corners[:, 0] == x, 1].max()] for x in places]).T
