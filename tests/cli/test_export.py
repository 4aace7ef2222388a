"""`bgnlm export`: the same as the method."""

import json

import pytest

import bgnlm
from tests.report.export.languages import function


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
