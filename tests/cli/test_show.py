"""`bgnlm show`: text, LaTeX and JSON."""

import json

import pytest

import bgnlm


def test_a_summary_and_the_formula(run, models):
    done = run("show", models["area"])
    assert done.code == 0
    assert done.err == ""
    model = bgnlm.load(models["area"])
    assert done.out == f"{model.summary()}\n\nformula (best)\n{model.expression()}\n"
    assert "area = " in done.out


@pytest.mark.parametrize("using", ["best", "median", "average"])
def test_latex_alone(run, models, using):
    done = run("show", models["area"], "--latex", "--using", using)
    assert done.out == bgnlm.load(models["area"]).expression(using=using, format="latex") + "\n"


def test_a_formula_for_each_class(run, models):
    done = run("show", models["size"])
    assert [line for line in done.out.splitlines() if line in ("class big", "class middle", "class small")] == [
        "class big",
        "class middle",
        "class small",
    ]
    assert run("show", models["size"], "--latex").out.startswith("% big\n")


def test_the_document(run, models):
    document = json.loads(run("show", models["size"], "--json", "--using", "median").out)
    assert document["file"] == str(models["size"])
    assert document["classes"] == ["big", "middle", "small"]
    assert len(document["diagnostics"]) == 3
    assert set(document["expression"]) == {"big", "middle", "small"}
    assert {feature["class"] for feature in document["features"]} == {"big", "middle", "small"}


def test_json_or_latex(run, models):
    assert run("show", models["area"], "--json", "--latex").code == 2


def test_a_damaged_file(fails, models, tmp_path):
    damaged = tmp_path / "m.bgnlm"
    content = bytearray(models["area"].read_bytes())
    damaged.write_bytes(content[: len(content) // 2])
    assert str(damaged) in fails("show", damaged)
