"""Model files that were written by earlier versions, and what their models said then."""

import json
from pathlib import Path

import numpy as np
import pytest

import bgnlm
from bgnlm.persistence import VERSION

FOLDER = Path(__file__).parents[1] / "data" / "model-files"
FILES = sorted(FOLDER.glob("version-*/*.bgnlm"))


def test_there_are_files_of_every_version():
    """If not, run tests/data/make_model_files.py."""
    assert {path.parent.name for path in FILES} == {f"version-{k + 1}" for k in range(VERSION)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_models_say_what_they_said(path):
    """If a summary is worded otherwise, change the words in the JSON by hand; the models are not made again."""
    pd = pytest.importorskip("pandas")
    expected = json.loads(path.with_suffix(".json").read_text(encoding="utf-8"))
    model, X, offset = bgnlm.load(path), pd.DataFrame(expected["X"]), expected["offset"]
    for method in {"predict", "predict_interval", "predict_proba"} & expected.keys():
        # Models with latent components are fitted again, to a tolerance.
        rtol = 1e-4 if model.latent_columns_.fields else 1e-6
        found, before = getattr(model, method)(X, offset=offset), np.array(expected[method])
        # Ends of intervals were right to a thousandth of their width.
        atol = 1e-3 * float(np.ptp(before, axis=-1).max()) if method == "predict_interval" else 1e-9
        assert_close(found, before, rtol, atol)
    assert model.features_["expression"].tolist() == expected["features"]
    assert model.summary().splitlines() == expected["summary"]


def assert_close(found, expected, rtol, atol):
    assert found.shape == expected.shape
    if expected.dtype.kind == "f":
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=atol)
    else:
        assert found.tolist() == expected.tolist()
