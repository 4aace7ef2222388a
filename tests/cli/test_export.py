"""`bgnlm export`: the same as the method."""

import json

import pytest

import bgnlm
from tests.report.export.languages import function
from tests.report.page_models import fitted


@pytest.mark.parametrize("kind", ["python", "numpy", "json", "text", "latex"])
def test_to_standard_output(run, models, kind):
    done = run("export", models["area"], "--as", kind, "--using", "best")
    assert (done.code, done.err) == (0, "")
    assert done.out.rstrip("\n") == bgnlm.load(models["area"]).export(kind, "best").rstrip("\n")


def test_sql_over_a_table(run, models):
    done = run("export", models["size"], "--as", "sql", "--table", "bodies", "--keep", "id", "kind")
    assert done.out == bgnlm.load(models["size"]).export("sql", table="bodies", keep=["id", "kind"]) + "\n"


def test_to_a_file(run, models, tmp_path):
    out = tmp_path / "area.py"
    assert run("export", models["area"], "--as", "python", "--name", "area", "--out", out).code == 0
    row = {"id": "n", "width": 2.0, "height": 2.5, "kind": "red", "is_new": True, "size": "big", "large": 1}
    assert isinstance(function(out.read_text(), "area")(row), float)
    assert run("export", models["area"], "--as", "json", "--with-uncertainty", "--out", tmp_path / "m.json").code == 0
    assert "uncertainty" in json.loads((tmp_path / "m.json").read_text())["parts"][0]


def test_onnx_needs_a_file(fails, run, models, tmp_path):
    pytest.importorskip("onnx")
    assert "--out model.onnx" in fails("export", models["area"], "--as", "onnx", code=2)
    assert run("export", models["area"], "--as", "onnx", "--out", tmp_path / "m.onnx").code == 0
    assert (tmp_path / "m.onnx").stat().st_size > 100


def test_formulas_of_classes(run, models):
    lines = run("export", models["size"], "--as", "text", "--using", "best").out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["big", "middle", "small"]


def test_options_of_another_language(fails, models):
    assert "has the options name; got table" in fails(
        "export", models["area"], "--as", "python", "--table", "t", code=2
    )
    assert "several classes" in fails("export", models["size"], "--as", "sql", code=2)


def test_messages_name_options(fails, models, tmp_path):
    assert "Give --table NAME for a query" in fails("export", models["size"], "--as", "sql", code=2)
    kept = fails("export", models["area"], "--as", "sql", "--keep", "id", code=2)
    assert "--keep is for a query; got ['id'] without a table. Give --table NAME" in kept
    linear = fails("export", models["area"], "--as", "text", "--of", "linear_predictor", code=2)
    assert "got --of 'linear_predictor'" in linear
    path = tmp_path / "latent.bgnlm"
    fitted("latent")[0].save(path)
    assert " --without-latent exports the part" in fails("export", path, "--as", "sql", code=2)
    covariances = ("--as", "json", "--with-uncertainty", "--without-latent")
    assert "use `bgnlm predict`" in fails("export", path, *covariances, code=2)
