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


def test_what_is_read_is_not_replaced(fails, run, models, table, tmp_path):
    """Neither by a page nor by anything else that is written."""
    model, data, link = tmp_path / "model.bgnlm", tmp_path / "data.csv", tmp_path / "link.csv"
    model.write_bytes(models["area"].read_bytes())
    data.write_bytes(table.read_bytes())
    link.symlink_to(data)
    for arguments in (
        ("report", model, "--out", model),
        ("report", model, "--data", data, "--out", link),
        ("export", model, "--as", "json", "--out", model),
        ("predict", model, data, "--out", data),
        ("fit", data, "--target", "area", "--out", data),
    ):
        assert "would be lost. Choose another name" in fails(*arguments)
    assert model.read_bytes() == models["area"].read_bytes()
    assert data.read_bytes() == table.read_bytes()


def test_data_that_are_refused(fails, models, table, tmp_path):
    out, lines = tmp_path / "report.html", table.read_text().splitlines()

    def refused(*rows):
        data = tmp_path / "rows.csv"
        data.write_text("\n".join(rows))
        message = fails("report", models["area"], "--data", data, "--out", out)
        assert not out.exists()
        return message

    assert "no rows. Add the data" in refused(lines[0])
    assert "no column 'width' (needed by the model)" in refused(*(line.split(",", 2)[2] for line in lines))
    assert "line 2, column 'area': got 'wide', but a number" in refused(
        lines[0], ",".join([*lines[1].split(",")[:5], "wide", "small", "0"])
    )
    assert "could not be read" in fails("report", tmp_path / "no.bgnlm", "--out", out)
    assert "there is no file" in fails("report", models["area"], "--data", tmp_path / "no.csv", "--out", out)


def test_places_that_cannot_be_written(fails, models, tmp_path, monkeypatch):
    assert "is a folder. Give the name of a file in it" in fails("report", models["area"], "--out", tmp_path)

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    message = fails("report", models["area"], "--out", tmp_path / "report.html")
    assert message.endswith("report.html could not be written: No space left on device. Nothing was changed there. "
                            "Name another file.")  # fmt: skip
    assert list(tmp_path.iterdir()) == []


def test_what_is_refused(fails, models, table, tmp_path):
    assert "--data TABLE" in fails("report", models["area"], "--target", "area", code=2)
    assert "there is no folder" in fails("report", models["area"], "--out", tmp_path / "no" / "report.html")
    message = fails("report", models["size"], "--data", table, "--target", "kind", "--out", tmp_path / "report.html")
    assert "'blue' is none of the classes" in message or "'red' is none of the classes" in message
