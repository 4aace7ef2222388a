"""Make small model files of the present format, each with new rows and what the model says of them.

Run only when the format version rises, once, from the root of the repository:
``python tests/data/make_model_files.py``. The files of earlier versions stay: every later version has to read them.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pandas as pd

from bgnlm import BGNLMClassifier, BGNLMRegressor, CoefficientPrior, SearchConfig
from bgnlm.latent import AR1, OU, Gamma, Grouped, Normal
from bgnlm.persistence import VERSION
from bgnlm.search import Limits, ModelPrior

FOLDER = Path(__file__).parent / "model-files" / f"version-{VERSION}"
TINY = {"n_populations": 2, "population_size": 4, "n_candidates": 20, "n_averaged": 5}
N = 40
N_NEW = 6


def table(n_rows, seed):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "size": rng.uniform(0.5, 2.0, n_rows).round(3),
            "weight": rng.uniform(0.5, 2.0, n_rows).round(3),
            "colour": rng.choice(["red", "green", "blue"], n_rows).astype(object),
            "sold": rng.random(n_rows) < 0.5,
        }
    )


def with_holes(X):
    holed = X.copy()
    holed.loc[1, "colour"] = None
    holed.loc[3, "size"] = np.nan
    return holed


def models():
    """Fitted models by name, each with the rows and the offset to predict with."""
    return {1: models_of_version_1, 2: models_of_version_2, 3: models_of_version_3}[VERSION]()


def models_of_version_3():
    """With models that count as often as they were drawn; others still have version 1 or 2."""
    X, new = table(N, 1), table(N_NEW, 2)
    rng = np.random.default_rng(5)
    search = SearchConfig(**TINY | {"n_averaged": 20}, n_pool_draws=20, pool_size=12)
    eta = 2.0 * (X["size"] * X["weight"] - 1.0).to_numpy()
    classes = BGNLMClassifier(search=search, n_chains=1, random_state=0)
    yield "drawn-classes", classes.fit(X, (eta + rng.logistic(size=N) > 0.0).astype(int)), new, None


def models_of_version_2():
    """With latent components; other models still have version 1."""
    X, new = table(N, 1), table(N_NEW, 2)
    rng = np.random.default_rng(4)
    week, new_week = np.arange(N) // 2, np.array([-3, 5, 7.5, 19, 30, 30])
    X, new = X.assign(week=week), new.assign(week=new_week)
    effects = X["colour"].map({"red": 1.0, "green": 0.0, "blue": -1.0})
    eta = (X["size"] + effects).to_numpy() + 0.8 * np.sin(week / 3.0)
    new.loc[0, "colour"] = "yellow"
    few = Limits(max_depth=0, max_latent=2)
    common = {"n_chains": 1, "random_state": 0, "penalty": ModelPrior(latent_penalty=0.5)}

    latent = [AR1("week"), Grouped("colour"), Grouped("colour", slope="size")]
    poisson = BGNLMRegressor(family="poisson", latent=latent, search=SearchConfig(**TINY, limits=few), **common)
    yield "latent-poisson", poisson.fit(X, rng.poisson(np.exp(eta)).astype(float)), new, None

    offset, new_offset = rng.normal(size=N).round(2), rng.normal(size=N_NEW).round(2)
    latent = [OU("week", Gamma(2.0, 0.1), Normal(-1.0, 0.5)), Grouped("colour")]
    search = SearchConfig(**TINY, limits=few, select_offset=True)
    gaussian = BGNLMRegressor(latent=latent, search=search, coefficient_prior="normal", **common)
    yield "latent-gaussian", gaussian.fit(X, eta + offset + 0.3 * rng.normal(size=N), offset=offset), new, new_offset

    classes = BGNLMClassifier(latent=[Grouped("colour")], search=SearchConfig(**TINY, limits=few), **common)
    yield "latent-classes", classes.fit(X, np.digitize(eta, [1.0, 2.0])), new, None


def models_of_version_1():
    """Of every kind."""
    X, new = table(N, 1), table(N_NEW, 2)
    rng = np.random.default_rng(3)
    eta = (X["size"] * X["weight"] - 1.0).to_numpy()
    noisy = eta + 0.5 * rng.normal(size=N)
    search = SearchConfig(**TINY)
    common = {"search": search, "n_chains": 1, "random_state": 0}

    gaussian = BGNLMRegressor(
        search=SearchConfig(**TINY, engine="mjmcmc"),
        n_chains=2,
        random_state=0,
        missing="impute",
        coefficient_prior=CoefficientPrior("hyper-g", a=3.25),
        penalty=ModelPrior(penalty=1.5, complexity="oc"),
        keep=("above_median(weight)",),
    )
    yield "gaussian", gaussian.fit(with_holes(X), noisy), with_holes(new), None

    exposure, new_exposure = rng.normal(size=N).round(2), rng.normal(size=N_NEW).round(2)
    poisson = BGNLMRegressor(family="poisson", **common)
    counts = rng.poisson(np.exp(eta + exposure)).astype(float)
    yield "poisson", poisson.fit(X, counts, offset=exposure), new, new_exposure

    two = BGNLMClassifier(keep=("sigmoid(0.5*size - weight)",), **common)
    yield "two-classes", two.fit(X, np.where(noisy > 0.3, "high", "low")), new, None

    three = BGNLMClassifier(**common)
    yield "three-classes", three.fit(X, np.digitize(noisy, [-0.1, 0.8])), new, None


def columns_of(X):
    return {name: [None if pd.isna(value) else value for value in X[name].tolist()] for name in X.columns}


def answers(model, X, offset):
    """What a model says, as values that JSON has."""
    said = {
        "predict": model.predict(X, offset=offset).tolist(),
        "predict_interval": model.predict_interval(X, offset=offset).tolist(),
        "summary": model.summary().splitlines(),
        "features": model.features_["expression"].tolist(),
    }
    if isinstance(model, BGNLMClassifier):
        said["predict_proba"] = model.predict_proba(X, offset=offset).tolist()
    return said


def main():
    if FOLDER.exists():
        sys.exit(f"{FOLDER} exists. Files of a version that others may have are not made again.")
    FOLDER.mkdir(parents=True)
    for name, model, new, offset in models():
        model.save(FOLDER / f"{name}.bgnlm")
        rows = {"X": columns_of(new), "offset": None if offset is None else offset.tolist()}
        content = rows | answers(model, new, offset)
        (FOLDER / f"{name}.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
