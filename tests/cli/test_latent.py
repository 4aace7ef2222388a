"""Latent components on the command line: fit, show, predict, and what is refused."""

import json

import numpy as np
import pytest

import bgnlm
from bgnlm.latent import AR1, IID, OU, RW1, Grouped

from .conftest import write_rows

HEADER = ["subject", "week", "dose", "new", "exposure", "count"]
QUICK = ("--chains", "1", "--populations", "1", "--seed", "1", "--max-depth", "0")


def rows(n=48, seed=5):
    rng = np.random.default_rng(seed)
    effects = rng.normal(size=6)
    for i in range(n):
        dose, exposure = (round(float(value), 3) for value in rng.normal(size=2))
        count = int(rng.poisson(np.exp(0.8 + 0.5 * dose + effects[i % 6] + 0.3 * exposure)))
        yield [f"s{i % 6}", i // 6, dose, ("false", "true")[i % 2], exposure, count]


@pytest.fixture(scope="session")
def trial(tmp_path_factory):
    return write_rows(tmp_path_factory.mktemp("table") / "trial.csv", HEADER, rows())


@pytest.fixture
def fit(run, trial, tmp_path):
    def fit(*arguments):
        common = ("--target", "count", "--family", "poisson", "--out", tmp_path / "m.bgnlm", "--quiet", *QUICK)
        return run("fit", trial, *common, *arguments)

    return fit


def test_components_are_fitted_saved_shown_and_predicted_with(fit, run, trial, tmp_path):
    done = fit("--latent", "Grouped(subject)", "--latent", "Grouped(subject, slope=dose)", "--latent", "AR1(week)")
    assert done.code == 0, done.err
    assert "Grouped(subject): sd" in done.out
    path = tmp_path / "m.bgnlm"
    model = bgnlm.load(path)
    assert model.latent == (Grouped("subject"), Grouped("subject", slope="dose"), AR1("week"))
    assert set(model.coding_.names) == {"dose", "new", "exposure"}
    assert "Grouped(subject): sd" in run("show", path).out
    document = json.loads(run("show", path, "--json").out)
    assert document["settings"]["latent"] == ["Grouped(subject)", "Grouped(subject, slope=dose)", "AR1(week)"]
    assert document["components"][0]["component"] == "Grouped(subject)"
    assert document["components"][0]["probability"] > 0.9
    table = run("predict", path, trial, "--keep", "subject")
    assert table.code == 0
    assert table.out.splitlines()[0] == "subject,prediction,sd,lower,upper"
    assert len(table.out.splitlines()) == 49


def test_new_groups_and_positions_are_predicted_and_missing_ones_refused(fit, run, fails, tmp_path):
    assert fit("--latent", "Grouped(subject)", "--latent", "AR1(week)").code == 0
    model, new = tmp_path / "m.bgnlm", tmp_path / "new.csv"
    inputs = ["0.5", "true", "0.1"]
    header = ["subject", "week", "dose", "new", "exposure"]
    write_rows(new, header, [["s0", 3, *inputs], ["someone", 3, *inputs], ["s0", 90.5, *inputs]])
    lines = [line.split(",") for line in run("predict", model, new, "--of", "mean").out.splitlines()[1:]]
    width = [float(upper) / float(lower) for _, _, lower, upper in lines]
    assert width[1] > width[0]
    write_rows(new, ["subject", *header[2:]], [["s0", *inputs]])
    assert "has no column 'week' (needed by the model)" in fails("predict", model, new)
    write_rows(new, header, [["s0", "", *inputs]])
    assert "line 2, column 'week': the value is missing" in fails("predict", model, new)
    write_rows(new, header, [["s0", "soon", *inputs]])
    assert "line 2, column 'week': got 'soon', but a number is needed" in fails("predict", model, new)


@pytest.mark.parametrize("arguments", [(), ("--categories", "week")], ids=["numbers", "texts"])
def test_groups_that_are_numbers(fit, run, trial, tmp_path, arguments):
    assert fit("--latent", "Grouped(week)", *arguments).code == 0
    model = bgnlm.load(tmp_path / "m.bgnlm")
    assert model.latent_effects("Grouped(week)")["position"].tolist() == (
        [str(k) for k in range(8)] if arguments else list(range(8))
    )
    assert run("predict", tmp_path / "m.bgnlm", trial).code == 0


def test_groups_of_true_and_false(fit, run, trial, tmp_path):
    assert fit("--latent", "Grouped(new)").code == 0
    assert run("predict", tmp_path / "m.bgnlm", trial).code == 0


def test_the_offset_may_be_chosen(fit, run, trial, tmp_path):
    assert fit("--offset", "exposure", "--select-offset", "--latent", "IID(subject)").code == 0
    model = bgnlm.load(tmp_path / "m.bgnlm")
    assert model.search.select_offset
    assert "offset" in model.components_["component"].tolist()
    assert run("predict", tmp_path / "m.bgnlm", trial, "--offset", "exposure").code == 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("RW1(week)", RW1("week")),
        (" OU ( week ) ", OU("week")),
        ("IID(`week`)", IID("week")),
        ("Grouped(subject,slope=dose)", Grouped("subject", slope="dose")),
        ("Grouped( `subject` , slope = `dose` )", Grouped("subject", slope="dose")),
    ],
)
def test_ways_to_write_a_component(fit, tmp_path, text, expected):
    assert fit("--latent", text).code == 0
    assert bgnlm.load(tmp_path / "m.bgnlm").latent == (expected,)


def test_names_that_need_quotes(run, tmp_path):
    header = ["a, slope=b", "x (1)", "y"]
    data = write_rows(tmp_path / "data.csv", header, [[f"g{i % 3}", i % 4, i % 5] for i in range(20)])
    out = tmp_path / "m.bgnlm"
    latent = ("--latent", "Grouped(`a, slope=b`, slope=x (1))")
    assert run("fit", data, "--target", "y", "--out", out, "--quiet", *QUICK, *latent).code == 0
    assert bgnlm.load(out).latent == (Grouped("a, slope=b", slope="x (1)"),)


@pytest.mark.parametrize("text", ["AR1", "AR2(week)", "AR1()", "AR1(week", "week", "", "Grouped(subject, slope=)"])
def test_what_is_no_component(fit, tmp_path, text):
    done = fit("--latent", text)
    assert done.code == 2
    assert "argument --latent: must" in done.err
    assert f"got {text!r}" in done.err
    assert not (tmp_path / "m.bgnlm").exists()


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--latent", "AR1(time)"), 1, "has no column 'time' (--latent)"),
        (("--latent", "Grouped(subject, slope=doses)"), 1, "has no column 'doses' (--latent). Did you mean 'dose'?"),
        (("--latent", "AR1(subject)"), 1, "line 2, column 'subject': got 's0', but a number is needed"),
        (("--latent", "Grouped(dose, slope=subject)"), 1, "The slope of Grouped(dose, slope=subject) must be numbers"),
        (("--latent", "AR1(week)", "--latent", "AR1(week)"), 2, "latent has AR1(week) twice"),
        (("--latent", "AR1(count)"), 2, "--latent must not have 'count', which --target names already"),
        (("--latent", "AR1(week)", "--features", "week"), 2, "must not have 'week', which --latent names already"),
        (("--latent", "Grouped(subject, slope=dose)", "--exclude", "dose"), 2, "--latent has slopes of 'dose', which"),
        (("--select-offset",), 2, "--select-offset needs an offset"),
        (("--latent", "AR1(week)", "--coefficient-prior", "g"), 2, "coefficient_prior must be 'auto' or one of"),
    ],
)
def test_what_is_refused(fit, tmp_path, arguments, code, message):
    done = fit(*arguments)
    assert done.code == code
    assert message in done.err
    assert not (tmp_path / "m.bgnlm").exists()


def _with(column, value, where):
    """Rows of the table with another value in some of them."""
    place = HEADER.index(column)
    return [[*row[:place], value, *row[place + 1 :]] if where(i) else row for i, row in enumerate(rows())]


@pytest.mark.parametrize(
    ("table", "component", "message"),
    [
        (_with("week", "", lambda i: i == 3), "AR1(week)", "missing"),
        (_with("week", "inf", lambda i: i == 3), "OU(week)", "inf"),
        (_with("subject", "", lambda i: i == 3), "Grouped(subject)", "missing"),
        (_with("count", 0, lambda _: True), "AR1(week)", "must have values other than 0"),
        (_with("week", 0, lambda _: True), "RW1(week)", None),
        (_with("subject", "s", lambda _: True), "Grouped(subject)", None),
        (list(rows())[::-1], "RW1(week)", None),
        (list(rows())[:2], "Grouped(subject)", None),
    ],
    ids=["no position", "infinite", "no label", "no counts", "one position", "one group", "backwards", "two rows"],
)
def test_data_at_the_edge(run, tmp_path, table, component, message):
    data, out = write_rows(tmp_path / "odd.csv", HEADER, table), tmp_path / "m.bgnlm"
    done = run(
        *("fit", data, "--target", "count", "--family", "poisson", "--out", out, "--quiet", *QUICK),
        *("--latent", component, "--exclude", "new"),
    )
    if message is None:
        assert done.code == 0
        assert run("predict", out, data).code == 0
    else:
        assert done.code == 1
        assert message in done.err
        assert not out.exists()


def test_a_slope_is_for_groups(fit):
    assert (
        "has a slope, which is for Grouped; got 'AR1(week, slope=dose)'" in fit("--latent", "AR1(week, slope=dose)").err
    )


def test_parquet(run, tmp_path):
    pd, _ = pytest.importorskip("pandas"), pytest.importorskip("pyarrow")
    table = pd.DataFrame(list(rows()), columns=HEADER)
    table["new"] = table["new"] == "true"
    data, out = tmp_path / "trial.parquet", tmp_path / "m.bgnlm"
    table.to_parquet(data)
    latent = ("--latent", "Grouped(subject)", "--latent", "AR1(week)", "--latent", "Grouped(new)")
    target = ("--target", "count", "--family", "poisson")
    assert run("fit", data, *target, "--out", out, "--quiet", *QUICK, *latent).code == 0
    assert run("predict", out, data).code == 0
