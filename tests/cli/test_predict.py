"""`bgnlm predict`: columns, formats, and tables that are not what the model knows."""

import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

import bgnlm
from bgnlm.cli.main import main

from .conftest import HEADER, QUICK, bodies, write_rows


def _read(text):
    return pd.read_csv(io.StringIO(text))


@pytest.fixture
def new(tmp_path):
    return write_rows(tmp_path / "new.csv", HEADER, bodies(6, seed=9))


def test_predictions_are_those_of_the_estimator(run, models, new):
    done = run("predict", models["area"], new, "--keep", "id")
    assert done.code == 0
    assert done.err == f"bgnlm: {new}: not used: area, size, large\n"
    predictions = _read(done.out)
    assert list(predictions.columns) == ["id", "prediction", "sd", "lower", "upper"]
    assert predictions["id"].tolist() == [f"n{i:03d}" for i in range(6)]
    model, X = bgnlm.load(models["area"]), pd.read_csv(new)[["width", "height", "kind", "is_new"]]
    mean, deviation = model.predict(X, return_std=True)
    np.testing.assert_allclose(predictions["prediction"], mean, rtol=1e-14)
    np.testing.assert_allclose(predictions["sd"], deviation, rtol=1e-14)
    np.testing.assert_allclose(predictions[["lower", "upper"]], model.predict_interval(X, level=0.9), rtol=1e-14)


def test_levels_means_and_single_models(run, models, new):
    def width(*arguments):
        predictions = _read(run("predict", models["area"], new, "--quiet", *arguments).out)
        return (predictions["upper"] - predictions["lower"]).to_numpy()

    assert (width("--level", "0.99") > width()).all()
    assert (width("--of", "mean") < width()).all()
    assert (width("--using", "best") > 0).all()


def test_probabilities_of_two_classes(run, models, new):
    predictions = _read(run("predict", models["large"], new).out)
    assert list(predictions.columns) == ["prediction", "probability_0", "probability_1", "lower", "upper"]
    assert (predictions["prediction"] == (predictions["probability_1"] > 0.5)).all()
    assert (predictions["lower"] <= predictions["upper"]).all()


def test_probabilities_of_three_classes(run, models, new):
    predictions = _read(run("predict", models["size"], new).out)
    names = ["probability_big", "probability_middle", "probability_small"]
    assert list(predictions.columns) == ["prediction", *names]
    np.testing.assert_allclose(predictions[names].sum(axis=1), 1.0)
    assert set(predictions["prediction"]) <= {"big", "middle", "small"}


def test_files_by_their_endings(run, models, new, tmp_path):
    expected = _read(run("predict", models["area"], new, "--quiet").out)
    readers = {"csv": pd.read_csv, "csv.gz": pd.read_csv, "tsv": lambda path: pd.read_csv(path, sep="\t")}
    for ending, reader in readers.items():
        out = tmp_path / f"out.{ending}"
        out.write_text("old")
        done = run("predict", models["area"], new, "--quiet", "--out", out)
        assert done == (0, "", "")
        pd.testing.assert_frame_equal(reader(out), expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new.csv", "out.csv", "out.csv.gz", "out.tsv"]


def test_parquet_in_and_out(run, models, new, tmp_path):
    pytest.importorskip("pyarrow")
    expected = _read(run("predict", models["area"], new, "--quiet", "--keep", "id").out)
    pd.read_csv(new).to_parquet(tmp_path / "new.parquet")
    done = run(
        "predict", models["area"], tmp_path / "new.parquet", "--keep", "id", "--quiet", "--out", tmp_path / "o.parquet"
    )
    assert done == (0, "", "")
    written = pd.read_parquet(tmp_path / "o.parquet")
    assert written["id"].tolist() == expected["id"].tolist()
    np.testing.assert_allclose(written["prediction"], expected["prediction"], rtol=1e-14)


def test_the_document(run, models, new, tmp_path):
    document = json.loads(run("predict", models["area"], new, "--json", "--quiet").out)
    assert document["rows"] == 6
    assert document["not_used"] == ["id", "area", "size", "large"]
    assert set(document["predictions"][0]) == {"prediction", "sd", "lower", "upper"}
    out = tmp_path / "p.csv"
    document = json.loads(run("predict", models["area"], new, "--json", "--quiet", "--out", out).out)
    assert document["file"] == str(out)
    assert "predictions" not in document
    assert len(out.read_text().splitlines()) == 7


def test_columns_are_found_by_name(run, models, new, tmp_path):
    other = write_rows(tmp_path / "other.csv", HEADER[::-1], [row[::-1] for row in bodies(6, seed=9)])
    assert run("predict", models["area"], other).out == run("predict", models["area"], new).out


def test_columns_are_read_as_in_training(run, fails, models, tmp_path):
    """A category that looks like a number is a category, as rare as it may be."""
    header = ["width", "height", "kind", "is_new"]
    path = write_rows(tmp_path / "new.csv", header, [[1, 2, "17", 1], [2, 3, "red", 0]])
    done = run("predict", models["area"], path)
    assert done.code == 0
    assert done.err.startswith("bgnlm: warning: levels that training did not see")
    assert "'17' (1 row)" in done.err
    assert len(done.err.splitlines()) == 1
    path = write_rows(tmp_path / "new.csv", header, [[1, 2, "red", 1], [2, "high", "red", 0]])
    assert "new.csv, line 3, column 'height': got 'high', but a number is needed" in fails(
        "predict", models["area"], path
    )
    path = write_rows(tmp_path / "new.csv", header, [[1, 2, "red", 2]])
    assert "line 2, column 'is_new': got '2', but true or false is needed" in fails("predict", models["area"], path)


def test_missing_columns_and_cells(fails, models, tmp_path):
    path = write_rows(tmp_path / "new.csv", ["width", "hight", "kind"], [[1, 2, "red"]])
    message = fails("predict", models["area"], path)
    assert "has no column 'height', 'is_new' (needed by the model). Did you mean 'hight'?" in message
    path = write_rows(
        tmp_path / "new.csv", HEADER, [["n", 1, 2, "red", "true", "", "", ""], ["n", 1, "", "", "", 1, 2, 3]]
    )
    message = fails("predict", models["area"], path)
    assert "new.csv, line 3, column 'height': the value is missing (one of 3 missing values in 3 columns)" in message
    assert "fit with --missing impute" in message
    assert "has no column 'name' (--keep)" in fails("predict", models["area"], path, "--keep", "name")


def test_kept_columns_must_not_have_the_names_of_predictions(fails, models, tmp_path):
    path = write_rows(tmp_path / "new.csv", [*HEADER, "sd"], [[*row, 1] for row in bodies(3)])
    assert "--keep must not have 'sd'" in fails("predict", models["area"], path, "--keep", "sd", "--quiet")


def test_an_offset_is_added(run, fails, models, tmp_path):
    path = write_rows(tmp_path / "new.csv", [*HEADER, "extra"], [[*row, 10] for row in bodies(3)])
    plain, moved = (
        _read(run("predict", models["area"], path, "--quiet", *offset).out) for offset in ((), ("--offset", "extra"))
    )
    np.testing.assert_allclose(moved["prediction"], plain["prediction"] + 10)
    assert "has no column 'extr' (--offset)" in fails("predict", models["area"], path, "--offset", "extr", "--quiet")


def test_a_model_with_an_offset_needs_that_of_new_rows(run, fails, tmp_path):
    rows = [[*row, i % 5] for i, row in enumerate(bodies())]
    path, model = write_rows(tmp_path / "data.csv", [*HEADER, "extra"], rows), tmp_path / "m.bgnlm"
    inputs = ("--features", "width", "height", "--quiet", *QUICK)
    assert run("fit", path, "--target", "area", "--offset", "extra", "--out", model, *inputs).code == 0
    assert fails("predict", model, path) == (
        f"{model} was fitted with an offset, which its predictions need too. Give the column that has it: "
        "--offset COLUMN"
    )
    done = run("predict", model, path, "--offset", "extra", "--quiet")
    assert (done.code, done.err) == (0, "")


@pytest.fixture(scope="module")
def shares(tmp_path_factory):
    """A model of shares, and its table."""
    rng = np.random.default_rng(1)
    heat, trials = rng.normal(size=60).round(3), rng.integers(5, 30, size=60)
    rows = zip(heat, trials, rng.binomial(trials, 1 / (1 + np.exp(-heat))) / trials, strict=True)
    folder = tmp_path_factory.mktemp("shares")
    table, model = write_rows(folder / "seeds.csv", ["heat", "seeds", "share"], rows), folder / "m.bgnlm"
    choices = ("--target", "share", "--family", "binomial", "--weights", "seeds", "--quiet", *QUICK)
    assert main(["fit", str(table), "--out", str(model), *choices]) == 0
    return model, table


def test_trials_of_shares(run, shares):
    path, table = shares
    model, data = bgnlm.load(path), pd.read_csv(table)
    for option, trials in (((), None), (("--trials", "20"), 20), (("--trials", "seeds"), data["seeds"])):
        done = run("predict", path, table, *option)
        assert done.code == 0
        assert ("not used: share\n" if option == ("--trials", "seeds") else "not used: seeds, share\n") in done.err
        predictions = _read(done.out)
        mean, deviation = model.predict(data[["heat"]], return_std=True, trials=trials)
        ends = model.predict_interval(data[["heat"]], trials=trials)
        np.testing.assert_allclose(predictions["prediction"], mean, rtol=1e-14)
        np.testing.assert_allclose(predictions["sd"], deviation, rtol=1e-14)
        np.testing.assert_allclose(predictions[["lower", "upper"]], ends, rtol=1e-14)


def test_trials_that_cannot_be(run, fails, models, shares, new, tmp_path):
    model, _ = shares
    path = write_rows(tmp_path / "seeds.csv", ["heat", "seeds"], [[1, 5], [2, 2.5], [3, 0]])
    assert fails("predict", model, path, "--trials", "seeds") == (
        f"{path}, line 3, column 'seeds': --trials needs whole numbers of 1 or more; got 2.5. Correct it, or "
        "drop the row."
    )
    assert "has no column 'seed' (--trials). Did you mean 'seeds'?" in fails(
        "predict", model, path, "--trials", "seed", "--quiet"
    )
    for target, family in (("area", "gaussian"), ("large", "classification")):
        assert fails("predict", models[target], new, "--trials", "20", code=2) == (
            f"--trials is for shares (--family binomial); the model has family {family!r}. Leave it out."
        )
    done = run("predict", model, path, "--trials", "0")
    assert done.code == 2
    assert "--trials: must be 1 or more; got 0" in done.err


def test_of_the_response_is_not_for_classes(fails, models, new):
    message = fails("predict", models["large"], new, "--of", "response", "--quiet", code=2)
    assert "--of response is for numbers" in message


@pytest.mark.parametrize("level", ["0", "1", "2", "x"])
def test_levels_lie_between_0_and_1(run, models, new, level):
    done = run("predict", models["area"], new, "--level", level)
    assert done.code == 2
    assert "--level: must be" in done.err


def test_what_is_no_model(fails, new, tmp_path):
    assert "is not a bgnlm model" in fails("predict", new, new)
    assert "no.bgnlm' could not be read: No such file or directory" in fails("predict", tmp_path / "no.bgnlm", new)
    assert "could not be read: Is a directory" in fails("predict", tmp_path, new)


def test_outputs_that_cannot_be(fails, models, new, tmp_path):
    assert "is a folder" in fails("predict", models["area"], new, "--out", tmp_path)
    assert "there is no folder" in fails("predict", models["area"], new, "--out", tmp_path / "no" / "p.csv")


def test_a_model_of_columns_without_names(run, tmp_path):
    rng = np.random.default_rng(1)
    X = rng.uniform(1, 2, size=(30, 2))
    quick = bgnlm.SearchConfig(n_populations=2)
    model = bgnlm.BGNLMRegressor(search=quick, n_chains=1, random_state=1).fit(X, X[:, 0] * X[:, 1])
    model.save(tmp_path / "m.bgnlm")
    path = write_rows(tmp_path / "new.csv", ["x2", "x1"], X[:5, ::-1].tolist())
    done = run("predict", tmp_path / "m.bgnlm", path)
    assert done.err == ""
    np.testing.assert_allclose(_read(done.out)["prediction"], model.predict(X[:5]), rtol=1e-14)


def test_parquet_without_pyarrow_is_refused_early(fails, models, new, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = fails("predict", models["area"], new, "--out", tmp_path / "p.parquet")
    assert 'pip install "bgnlm[parquet]"' in message
