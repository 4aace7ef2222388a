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
from bgnlm.persistence import VERSION
from bgnlm.search import ModelPrior

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
