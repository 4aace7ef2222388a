"""Small fits that tests of the report page share, without and with a browser."""

from functools import cache

import numpy as np
import pandas as pd

from bgnlm import BGNLMClassifier, BGNLMRegressor, SearchConfig
from bgnlm.latent import Gamma, Grouped

N = 80
QUICK = SearchConfig(n_populations=2, population_size=5, n_candidates=20)
HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(2)>'`${alert(3)}",
    "</script><script>alert(4)</script>\u2028\n\x07",
    "größe α\N{RIGHT-TO-LEFT OVERRIDE}",
    "very long name " * 20,
)


@cache
def table():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        {
            "a": rng.normal(size=N),
            "b": rng.uniform(0.5, 2.0, size=N),
            "kind": rng.choice(["red", "green", "blue"], size=N),
            "on": rng.random(N) < 0.5,
        }
    )
    frame.loc[::9, "a"] = np.nan
    return frame


@cache
def eta():
    X = table()
    return 0.5 + 0.6 * X["a"].fillna(0.0).to_numpy() + 0.5 * (X["kind"] == "red").to_numpy() - 0.5 * X["on"].to_numpy()


def _response(name):
    rng = np.random.default_rng(4)
    mean = np.exp(eta())
    return {
        "gaussian": lambda: 3 * eta() + np.log(table()["b"].to_numpy()) + 0.3 * rng.normal(size=N),
        "poisson": lambda: rng.poisson(mean).astype(float),
        "gamma": lambda: rng.gamma(5.0, mean / 5.0),
        "binomial": lambda: (rng.random(N) < 1 / (1 + np.exp(-eta()))).astype(float),
    }[name]()


@cache
def fitted(name):
    """An estimator and its data: a family, "two" or "three" classes, "latent", "offset", "hostile" or "long" names."""
    how = {"search": QUICK, "n_chains": 2, "random_state": 1, "missing": "impute"}
    X = table()
    if name == "hostile":
        X = pd.DataFrame(np.random.default_rng(5).normal(size=(N, len(HOSTILE))), columns=list(HOSTILE))
        y = pd.Series(X.to_numpy() @ [1.0, -1.0, 0.5, 2.0, -0.5], name="</title><script>alert(5)</script>")
        return BGNLMRegressor(**how).fit(X, y), X, y
    if name == "latent":
        rng = np.random.default_rng(6)
        X = X.assign(patient=[f"p{k}" for k in rng.integers(0, 6, size=N)]).drop(columns="a")
        own = X["patient"].str[1:].astype(float) / 3
        y = pd.Series(rng.poisson(np.exp(0.3 * X["b"] + own - 1)).astype(float), name="visits")
        latent = [Grouped("patient", precision_prior=Gamma(1, 0.5)), Grouped("patient", slope="b")]
        search = SearchConfig(n_populations=1, population_size=3)
        return (
            BGNLMRegressor(family="poisson", latent=latent, **(how | {"search": search, "n_chains": 1})).fit(X, y),
            X,
            y,
        )
    if name == "offset":
        y = pd.Series(np.random.default_rng(8).poisson(np.exp(eta() + 0.5)).astype(float), name="size")
        return BGNLMRegressor(family="poisson", **how).fit(X, y, offset=np.linspace(0.0, 1.0, N)), X, y
    if name == "long":
        X = X.rename(columns={one: f"{one}, as it was measured in the first year of the study" for one in X})
        y = fitted("three")[2].replace({"low": "below_all_of_the_others"})
        return BGNLMClassifier(**how).fit(X, y), X, y
    if name in ("two", "three"):
        score = eta() + np.random.default_rng(7).normal(size=N)
        names = np.array(["low", "middle", "high"])[np.digitize(score, [0.2, 0.9])]
        y = pd.Series(names if name == "three" else np.where(score > 0.5, "yes", "no"), name="grade")
        return BGNLMClassifier(**how).fit(X, y), X, y
    y = pd.Series(_response(name), name="size")
    return BGNLMRegressor(family=name, **how).fit(X, y), X, y
