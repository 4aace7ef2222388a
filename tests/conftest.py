"""Shared fixtures; compiles the kernels once, before any worker starts."""

import csv
import gzip
import hashlib
import os
import signal
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[1]


def _use_cache_of_these_sources():
    """A cached kernel does not notice edits in the files it calls, so the cache is named by all of them."""
    import numba

    digest = hashlib.sha256(f"{numba.__version__} {np.__version__}".encode())
    for path in sorted((ROOT / "src").rglob("*.py")):
        digest.update(path.read_bytes())
    folder = ROOT / ".cache" / f"numba-{digest.hexdigest()[:16]}"
    os.environ["NUMBA_CACHE_DIR"] = numba.config.CACHE_DIR = str(folder)


def _listen_to_interrupts():
    """What runs in the background of a shell ignores Ctrl-C, and so would the processes that tests interrupt."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_use_cache_of_these_sources()
_listen_to_interrupts()


def pytest_configure(config):
    if hasattr(config, "workerinput"):
        return
    import bgnlm

    y = np.array([1.0, 3.0, 2.0, 5.0, 4.0, 7.0])
    X = np.column_stack([np.arange(6.0), np.arange(6.0) ** 2, np.arange(6.0)])
    bgnlm.enumerate_models(y, X, noise_floor=0.1).predict(X)
    bgnlm.enumerate_models(y > 3, X, family="binomial")
    bgnlm.enumerate_models(y > 3, X, family="binomial", coefficient_prior="g")
    for family in ("gaussian", "binomial"):
        config = bgnlm.SearchConfig(engine="mjmcmc", n_populations=1, n_final_steps=5)
        response = y > 3 if family == "binomial" else y
        bgnlm.find_features(response, X, family=family, config=config, n_chains=1, random_state=0)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20, 3))
    settings = {"search": bgnlm.SearchConfig(n_populations=2), "n_chains": 1, "random_state": 0}
    bgnlm.BGNLMRegressor(**settings).fit(X, rng.normal(size=20)).predict_interval(X)
    bgnlm.BGNLMClassifier(**settings).fit(X, rng.random(20) < 0.5).predict_interval(X)


def _read_data(name):
    folder = os.environ.get("BGNLM_DATA")
    if not folder or not (path := Path(folder) / name).is_file():
        pytest.skip(f"needs {name}: set BGNLM_DATA to the folder that holds it")
    with gzip.open(path, "rt", newline="") if path.suffix == ".gz" else path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="session")
def abalone():
    """Training and test part: (X, y, X_test, y_test, names)."""
    rows = _read_data("abalone.csv")
    names = [name for name in rows[0] if name not in ("split", "Rings")]
    parts = []
    for split in ("train", "test"):
        chosen = [row for row in rows if row["split"] == split]
        parts.append(np.array([[float(row[name]) for name in names] for row in chosen]))
        parts.append(np.array([float(row["Rings"]) for row in chosen]))
    return *parts, names


@pytest.fixture(scope="session")
def exoplanets():
    """Columns by name."""
    rows = _read_data("exoplanets.csv")
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0]}


@pytest.fixture(scope="session")
def breast_cancer():
    """Columns by name."""
    rows = _read_data("breast_cancer.csv")
    return {name: np.array([float(row[name]) for row in rows]) for name in rows[0] if name != "split"}


@pytest.fixture(scope="session")
def asteroids():
    """Training and test part: (X, y, X_test, y_test)."""
    rows = _read_data("asteroids.csv.gz")
    names = [name for name in rows[0] if name not in ("split", "neo")]
    parts = []
    for split in ("train", "test"):
        chosen = [row for row in rows if row["split"] == split]
        parts.append(np.array([[float(row[name]) for name in names] for row in chosen]))
        parts.append(np.array([float(row["neo"]) for row in chosen]))
    return tuple(parts)


@pytest.fixture(scope="session")
def epigenetic():
    """Rows as they are in the file."""
    return _read_data("epigenetic.csv")


@pytest.fixture(scope="session")
def bas():
    with (ROOT / "tests" / "reference" / "bas.csv").open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture
def rng():
    return np.random.default_rng(20210901)
