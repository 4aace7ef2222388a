"""`bgnlm report`: the page of the method."""

import pytest

import bgnlm


def test_without_data(run, models, tmp_path):
    out = tmp_path / "report.html"
    done = run("report", models["area"], "--out", out)
    assert (done.code, done.out, done.err) == (0, "", "")
    assert out.read_text(encoding="utf-8") == bgnlm.load(models["area"]).report()


@pytest.mark.parametrize("target", ["area", "size", "large"])
def test_with_data_the_response_is_found_by_its_name(run, models, table, tmp_path, target):
    out = tmp_path / "report.html"
    done = run("report", models[target], "--data", table, "--out", out, "--title", "Bodies")
    assert (done.code, done.err) == (0, "")
    page = out.read_text(encoding="utf-8")
    assert "<h1>Bodies</h1>" in page
    words = "R² of the prediction is" if target == "area" else "The most probable class is right in"
    assert words in page


def test_data_without_the_response(run, models, table, tmp_path):
    rows = [line.split(",") for line in table.read_text().splitlines()]
    new = tmp_path / "new.csv"
    new.write_text("\n".join(",".join(row[:5]) for row in rows))
    done = run("report", models["area"], "--data", new, "--out", tmp_path / "report.html")
    assert done.code == 0
    assert "no column 'area'" in done.err
    assert run("report", models["area"], "--data", new, "--quiet", "--out", tmp_path / "report.html").err == ""
    assert "Effect of width" in (tmp_path / "report.html").read_text()


def test_to_standard_output(run, models):
    assert run("report", models["area"]).out.startswith("<!DOCTYPE html>")


def test_what_is_refused(fails, models, table, tmp_path):
    assert "--data TABLE" in fails("report", models["area"], "--target", "area", code=2)
    assert "there is no folder" in fails("report", models["area"], "--out", tmp_path / "no" / "report.html")
    message = fails("report", models["size"], "--data", table, "--target", "kind", "--out", tmp_path / "report.html")
    assert "'blue' is none of the classes" in message or "'red' is none of the classes" in message
