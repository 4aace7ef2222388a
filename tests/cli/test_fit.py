"""`bgnlm fit`: choices, columns, results and messages."""

import gzip
import json
import os
import signal
import tempfile
from pathlib import Path

import pytest

import bgnlm
from bgnlm.persistence import write_whole

from .conftest import HEADER, QUICK, bodies, write_rows

INPUTS = ("--features", "width", "height", "kind")


@pytest.fixture
def fit(run, tmp_path):
    def fit(data, target, *arguments):
        return run("fit", data, "--target", target, "--out", tmp_path / "m.bgnlm", *QUICK, *arguments)

    return fit


@pytest.fixture
def refused(fails, tmp_path):
    """Expects that a table given as text cannot be fitted, and returns the message."""

    def refused(content, target, *arguments, code=1):
        data = tmp_path / "data.csv"
        data.write_text(content)
        out = tmp_path / "m.bgnlm"
        message = fails("fit", data, "--target", target, "--out", out, *QUICK, *arguments, code=code)
        assert not out.exists()
        return message

    return refused


def test_a_law_is_found_printed_and_saved(fit, table, tmp_path):
    done = fit(table, "area", *INPUTS)
    assert done.code == 0
    assert "height*width" in done.out
    assert done.err.splitlines() == ["bgnlm: family: gaussian, because 'area' holds numbers; --family chooses another"]
    model = bgnlm.load(tmp_path / "m.bgnlm")
    assert model.response_name_ == "area"
    assert model.features_["probability"][0] > 0.9


@pytest.mark.parametrize(
    ("target", "estimator", "reason"),
    [
        ("size", "BGNLMClassifier", "classification, because 'size' holds texts"),
        ("large", "BGNLMClassifier", "classification, because 'large' holds 0 and 1 only"),
        ("is_new", "BGNLMClassifier", "classification, because 'is_new' holds true and false"),
    ],
)
def test_classes_are_recognised(fit, table, target, estimator, reason):
    done = fit(table, target, "--features", "width", "kind", "--json")
    assert done.code == 0
    assert reason in done.err
    assert json.loads(done.out)["estimator"] == estimator


@pytest.mark.parametrize("family", ["binomial", "gaussian", "poisson"])
def test_the_family_can_be_chosen(fit, table, family):
    done = fit(table, "large", "--family", family, *INPUTS)
    assert done.code == 0
    assert done.out.startswith(f"BGNLMRegressor: {family}")
    assert "family" not in done.err


def test_numbers_can_be_classes(fit, table, tmp_path):
    done = fit(table, "large", "--family", "classification", "--features", "width", "--json")
    assert json.loads(done.out)["classes"] == [0, 1]
    done = fit(table, "large", "--categories", "large", "--features", "width", "--json")
    assert json.loads(done.out)["classes"] == ["0", "1"]


def test_the_document(fit, table, tmp_path):
    done = fit(table, "area", *INPUTS, "--json", "--quiet", "--penalty", "2.5", "--max-depth", "2")
    assert done.err == ""
    document = json.loads(done.out)
    assert document["file"] == str(tmp_path / "m.bgnlm")
    assert document["settings"]["penalty"] == 2.5
    assert document["settings"]["max_depth"] == 2
    assert document["settings"]["search"]["n_populations"] == 3
    assert document["inputs"] == ["width", "height", "kind"]
    assert document["features"][0]["probability"] > 0.9
    assert document["models"][0]["features"]
    assert document["diagnostics"][0]["populations"] == [3]
    assert document["seconds"] > 0


def test_settings_arrive(fit, table, tmp_path):
    done = fit(
        table, "area", *INPUTS, "--transforms", "sin, cos", "--coefficient-prior", "g", "--noise-floor", "0.01",
        "--link", "identity", "--max-seconds", "60", "--jobs", "1", "--missing", "impute",
        "--checkpoint", tmp_path / "points",
    )  # fmt: skip
    assert done.code == 0
    settings = bgnlm.load(tmp_path / "m.bgnlm").get_params()
    assert list(settings["transforms"]) == ["sin", "cos"]
    assert settings["coefficient_prior"] == "g"
    assert settings["noise_floor"] == 0.01
    assert settings["missing"] == "impute"
    assert settings["random_state"] == 1
    assert settings["verbose"] == 0
    assert any((tmp_path / "points").iterdir())


def test_the_seed_decides(fit, table):
    first, second = (fit(table, "area", *INPUTS, "--json").out for _ in range(2))
    assert json.loads(first)["models"] == json.loads(second)["models"]


def test_columns_with_other_parts_are_no_inputs(fit, tmp_path):
    rows = [[*row, 1 + i % 2, 0.1 * (i % 3)] for i, row in enumerate(bodies())]
    data = write_rows(tmp_path / "data.csv", [*HEADER, "times", "log_time"], rows)
    done = fit(
        data, "large", "--family", "poisson", "--exclude", "id", "size", "area",
        "--weights", "times", "--offset", "log_time", "--json",
    )  # fmt: skip
    assert done.code == 0
    assert json.loads(done.out)["inputs"] == ["width", "height", "kind", "is_new"]


def test_columns_without_a_name_are_mentioned(fit, table, tmp_path):
    lines = Path(table).read_text().splitlines()
    data = tmp_path / "data.csv"
    data.write_text("\n".join(["," + lines[0], *(f"{i},{line}" for i, line in enumerate(lines[1:]))]))
    done = fit(data, "area", *INPUTS)
    assert done.code == 0
    assert "1 column without a name left out" in done.err


@pytest.mark.parametrize("ending", ["csv.gz", "tsv", "parquet"])
def test_other_formats_give_the_same_model(fit, table, tmp_path, ending):
    data = tmp_path / f"data.{ending}"
    if ending == "csv.gz":
        data.write_bytes(gzip.compress(Path(table).read_bytes()))
    elif ending == "tsv":
        data.write_text(Path(table).read_text().replace(",", "\t"))
    else:
        pytest.importorskip("pyarrow")
        import pandas as pd

        pd.read_csv(table).to_parquet(data)
    first, second = (json.loads(fit(path, "area", *INPUTS, "--json").out) for path in (table, data))
    assert first["models"] == second["models"]


def test_missing_values_are_filled_when_asked(fit, tmp_path):
    rows = list(bodies())
    rows[3][1], rows[4][1], rows[5][3] = "-999", "-", "NA"
    data = write_rows(tmp_path / "data.csv", HEADER, rows)
    done = fit(data, "area", *INPUTS, "--missing", "impute", "--na", "-999", "-", "--json")
    assert done.code == 0
    assert bgnlm.load(tmp_path / "m.bgnlm").coding_.names == (
        "width", "width=missing", "height", "kind=red", "kind=missing",
    )  # fmt: skip


SMALL = "a,b,y\n" + "".join(f"{i},{i * i % 7},{i * 1.5}\n" for i in range(1, 21))


def test_messages_about_columns(refused):
    assert "has no column 'yy' (--target). Did you mean 'y'?" in refused(SMALL, "yy")
    assert "has no column 'c' (--features)" in refused(SMALL, "y", "--features", "a", "c")
    assert "has no column 'c' (--exclude)" in refused(SMALL, "y", "--exclude", "c")
    assert "has no column 'c' (--weights)" in refused(SMALL, "y", "--weights", "c")
    assert "no column left to explain 'y' by" in refused(SMALL, "y", "--exclude", "a", "b")
    assert "--target names already" in refused(SMALL, "y", "--features", "y", code=2)
    assert "must be different columns" in refused(SMALL, "y", "--offset", "y", code=2)


def test_messages_about_cells(refused):
    hole = SMALL.replace("7,0,", "7,,")
    message = refused(hole, "y")
    assert "data.csv, line 8, column 'b': the value is missing. Fill it" in message
    assert "--missing impute" in message
    assert "line 21, column 'y': the value is missing" in refused(SMALL.replace("30.0", ""), "y")
    assert "line 3, column 'a': got inf; numbers must be finite" in refused(SMALL.replace("\n2,", "\ninf,"), "y")
    assert "line 3, column 'a': got '2,0x'" in refused(SMALL.replace("\n2,", '\n"2,0x",'), "y")
    empty = "a,b,y\n" + "1,,2\n" * 5
    assert "column 'b' has no values at all. Leave it out: --exclude b" in refused(empty, "y")
    assert "the target 'b' has no values at all" in refused(empty, "b")


def test_messages_about_the_target(refused):
    texts = "a,y\n" + "".join(f"{i},t{i}\n" for i in range(30))
    assert "the target 'y' holds 30 different texts" in refused(texts, "y")
    assert "--family gaussian needs numbers; the target 'y' is 't0'" in refused(texts, "y", "--family", "gaussian")
    assert "line 2: --family classification needs classes" in refused(SMALL, "y", "--family", "classification")


def test_messages_name_the_column_behind_an_argument(refused, tmp_path):
    data = tmp_path / "data.csv"
    assert refused(SMALL.replace(",6.0\n", ",-6.0\n"), "y", "--family", "gamma") == (
        f"{data}: column 'y' (--target) of family 'gamma' must be greater than 0; got -6 in line 5. Use another "
        "family, or leave these rows out."
    )
    assert refused(SMALL.replace("\n3,", "\n-3,"), "y", "--weights", "a") == (
        f"{data}: column 'a' (--weights) must not be negative; got -3 in line 4. A weight says how often a row was "
        "observed; use 0 to leave it out."
    )
    assert refused("a,b,c\n" + "".join(f"{i},{i * i},t{i % 3}\n" for i in range(30)), "c", "--offset", "b") == (
        f"{data}: column 'b' (--offset) is for two classes; got 3 classes. Leave it out."
    )
    shares = "a,y\n" + "".join(f"{i},{i / 40}\n" for i in range(20))
    assert refused(shares, "y", "--family", "binomial") == (
        f"{data}: column 'y' (--target) of family 'binomial' must be 0 or 1; got 0.025 in line 3. For shares of "
        "successes pass the number of trials as --weights."
    )


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--noise-floor", "2"), "--noise-floor: must be 0 or more and less than 1; got 2"),
        (("--penalty", "no"), "--penalty: must be bic, aic, predict or a number of 0 or more; got 'no'"),
        (("--chains", "0"), "--chains: must be 1 or more; got 0"),
        (("--chains", "x"), "--chains: must be a whole number; got 'x'"),
        (("--jobs", "0"), "--jobs: must be 1 or more, or -1"),
        (("--max-seconds", "x"), "--max-seconds: must be a number; got 'x'"),
        (("--family", "normal"), "--family: invalid choice: 'normal'"),
        (("--features", "a", "--exclude", "b"), "not allowed with argument"),
        (("--transforms", "sinus"), "sinus"),
        (("--coefficient-prior", "flat"), "'flat'"),
        (("--link", "log"), "'log'"),
    ],
)
def test_wrong_usage(run, table, tmp_path, arguments, word):
    done = run("fit", table, "--target", "area", "--out", tmp_path / "m.bgnlm", "--features", "width", *arguments)
    assert done.code == 2
    assert word in done.err
    assert "Traceback" not in done.err


def test_a_noise_floor_is_not_for_classes(fails, table, tmp_path):
    arguments = ("--target", "size", "--out", tmp_path / "m.bgnlm", "--noise-floor", "0.1", "--quiet")
    assert "--noise-floor is for --family gaussian" in fails("fit", table, *arguments, code=2)


def test_what_cannot_be_written_is_refused_before_the_search(fails, table, tmp_path, monkeypatch):
    monkeypatch.setattr("bgnlm.cli.tables.read_table", None)
    arguments = ("fit", table, "--target", "area", "--out")
    assert "is a folder" in fails(*arguments, tmp_path)
    assert "there is no folder" in fails(*arguments, tmp_path / "no" / "m.bgnlm")
    monkeypatch.setattr("os.access", lambda *_: False)
    assert "no permission to write" in fails(*arguments, tmp_path / "m.bgnlm")


def test_a_model_does_not_go_to_standard_output(fails, table, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert fails("fit", table, "--target", "area", "--out", "-", code=2) == (
        "--out must be a file; a model cannot go to standard output. Give a name, model.bgnlm say."
    )
    assert not list(tmp_path.iterdir())


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """The folder for temporary files."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


@pytest.mark.parametrize("form", [(), ("--json",)])
def test_a_disk_that_is_full_does_not_cost_the_model(fit, table, tmp_path, temporary, monkeypatch, form):
    out = tmp_path / "m.bgnlm"

    def fail_there(path, content):
        if path == out:
            raise OSError(28, "No space left on device")
        write_whole(path, content)

    monkeypatch.setattr("bgnlm.persistence.write_whole", fail_there)
    done = fit(table, "area", *INPUTS, "--quiet", *form)
    (saved,) = temporary.glob("*/*")
    assert done.code == 1
    assert "height*width" in done.out
    assert done.err == f"bgnlm: could not write {out}: No space left on device; the model was saved as {saved}\n"
    assert bgnlm.load(saved).response_name_ == "area"
    if form:
        assert json.loads(done.out)["file"] == str(saved)


def test_a_pipe_that_breaks_does_not_cost_the_model(fit, table, tmp_path, temporary, monkeypatch):
    def fail(*_):
        raise BrokenPipeError(32, "Broken pipe")

    monkeypatch.setattr("bgnlm.cli.outputs.save_model", fail)
    done = fit(table, "area", *INPUTS, "--quiet")
    assert done.code == 1
    assert f"could not write {tmp_path / 'm.bgnlm'}: Broken pipe; the model was saved as {temporary}" in done.err


def test_a_model_that_can_be_saved_nowhere_is_shown(fit, table, tmp_path, temporary, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("bgnlm.persistence.write_whole", fail)
    done = fit(table, "area", *INPUTS, "--quiet")
    assert done.code == 1
    assert "height*width" in done.out
    assert done.err == (
        f"bgnlm: could not write {tmp_path / 'm.bgnlm'}: No space left on device; the model is not saved, because "
        "temporary files cannot be written either: No space left on device\n"
    )
    assert not list(temporary.iterdir())


@pytest.mark.skipif(os.name == "nt", reason="signals are others there")
def test_ctrl_c_waits_until_the_model_is_saved(fit, table, tmp_path, monkeypatch):
    out, usual = tmp_path / "m.bgnlm", signal.getsignal(signal.SIGINT)

    def write_slowly(path, content):
        os.kill(os.getpid(), signal.SIGINT)
        write_whole(path, content)

    monkeypatch.setattr("bgnlm.persistence.write_whole", write_slowly)
    done = fit(table, "area", *INPUTS, "--quiet")
    assert done.code == 130
    assert "height*width" in done.out
    assert done.err == f"bgnlm: interrupted: the search had ended, and the model is saved in {out}\n"
    assert bgnlm.load(out).response_name_ == "area"
    assert signal.getsignal(signal.SIGINT) is usual


@pytest.mark.skipif(os.name == "nt", reason="signals are others there")
def test_a_second_ctrl_c_does_not_wait(fit, table, tmp_path, monkeypatch):
    def wait_for_ever(*_):
        for _ in range(2):
            os.kill(os.getpid(), signal.SIGINT)
        raise AssertionError("still waiting")

    monkeypatch.setattr("bgnlm.persistence.write_whole", wait_for_ever)
    done = fit(table, "area", *INPUTS, "--quiet")
    assert done == (130, "", "bgnlm: interrupted\n")


def test_warnings_are_lines(fit, tmp_path):
    rows = [[*row, 7] for row in bodies()]
    data = write_rows(tmp_path / "data.csv", [*HEADER, "same"], rows)
    done = fit(data, "area", "--features", "width", "height", "same", "--quiet")
    assert done.code == 0
    assert done.err == "bgnlm: warning: Constant columns are in no model: same. Leave them out.\n"


def test_nothing_found_before_an_interruption(run, table, tmp_path, monkeypatch):
    def stop(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("bgnlm.BGNLMRegressor.fit", stop)
    done = run("fit", table, "--target", "area", "--out", tmp_path / "m.bgnlm", *INPUTS, "--quiet")
    assert done.code == 130
    assert done.err == "bgnlm: interrupted\n"
    assert not (tmp_path / "m.bgnlm").exists()
