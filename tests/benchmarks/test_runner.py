"""Runs are written as they come, are not repeated, and depend on their seed alone."""

import json
from functools import partial

import numpy as np
import pytest

from benchmarks.paper import report
from benchmarks.paper.examples import EXAMPLES, Cell
from benchmarks.paper.measures import rates
from benchmarks.paper.ours import predict
from benchmarks.paper.printed import COMPLEXITIES, FREQUENCIES, TABLES
from benchmarks.paper.runner import complete, missing, path_of, run
from benchmarks.paper.settings import RECIPES, SCORES, SEARCHES, estimator
from benchmarks.records import append, read
from bgnlm import parse


def draw(shift, seed):
    value = float(np.random.default_rng(seed).random()) + shift
    features = [["a*b", 0.9, 1, "law"], ["c", 0.3, 0, None]]
    return {"seconds": 0.1, "scored": 10, "outcome": {"RMSE": value, "MAE": value, "CORR": 0.5}, "features": features}


def fail(_):
    raise ArithmeticError("of no use")


def cell(method="BGLM", settings="script", function=None, **rest):
    return Cell(
        example="abalone", group="", method=method, settings=settings, run=function or partial(draw, 2.0), **rest
    )


def test_a_torn_line_is_no_result_and_does_not_spoil_the_next(tmp_path):
    path = tmp_path / "some" / "cell.jsonl"
    append(path, {"seed": 0})
    with path.open("a") as file:
        file.write('{"seed": 1, "outco')
    assert read(path) == [{"seed": 0}]
    append(path, {"seed": 1, "whole": True})
    append(path, {"seed": 2})
    assert read(path) == [{"seed": 0}, {"seed": 1, "whole": True}, {"seed": 2}]


def test_what_is_missing_is_done_after_a_kill(tmp_path):
    some, once = cell(), cell("GR", "library", is_random=False)
    assert complete(tmp_path, [some, once], 3, 1) == 0
    path = path_of(tmp_path, some)
    whole = path.read_text()
    path.write_text(whole[:-20])  # killed while the last run was written
    assert [(task.cell.method, task.seed) for task in missing(tmp_path, [some, once], 4)] == [("BGLM", 2), ("BGLM", 3)]
    complete(tmp_path, [some, once], 3, 1)
    again = {line["seed"]: line for line in read(path)}
    assert again == {line["seed"]: line for line in map(json.loads, whole.splitlines())} | {2: again[2]}
    assert len(read(path_of(tmp_path, once))) == 1


def test_one_seed_is_one_row():
    first, second = run(cell(), 5), run(cell(), 5)
    assert first["outcome"] == second["outcome"] != run(cell(), 6)["outcome"]
    assert first["method"] == "BGLM"
    assert first["seed"] == 5


def test_a_run_that_fails_stops_no_other(tmp_path, capsys):
    assert complete(tmp_path, [cell("broken", function=fail), cell()], 2, 2) == 2
    assert len(read(path_of(tmp_path, cell()))) == 2
    assert "of no use" in capsys.readouterr().err


def test_tables_have_our_values_beside_those_of_the_paper(tmp_path):
    for seed in range(3):
        append(path_of(tmp_path, cell()), run(cell(), seed))
    rows = report.write("abalone", EXAMPLES["abalone"], tmp_path, tmp_path / "results")
    values = sorted(draw(2.0, seed)["outcome"]["RMSE"] for seed in range(3))
    page = (tmp_path / "results" / "abalone.md").read_text()
    ours = f"{values[1]:.4f} ({values[0]:.4f}, {values[2]:.4f})"
    assert f"| BGLM | script | 3 | {ours} | 2.0758 | {ours} | 1.5381 | 0.5000 | 0.7522 |" in page
    lines = (tmp_path / "results" / "abalone.csv").read_text().splitlines()
    assert lines[1].startswith(f",BGLM,script,3,RMSE,{values[1]:.6g},{values[0]:.6g},{values[2]:.6g},2.0758,")
    assert len(rows) == 1


def test_tables_of_laws_are_means_over_runs(tmp_path):
    example = EXAMPLES["mass"]
    line = {"group": "G1", "method": "1 chain", "settings": "script, mjmcmc", "seconds": 1.0, "cpu": 1.0, "commit": "x"}
    found, nothing = [["law", 0.9, 3, "law"], ["other", 0.3, 1, None]], [["other", 0.2, 1, None]]
    for seed, features in enumerate((found, nothing)):
        append(tmp_path / "mass" / "cell.jsonl", line | {"seed": seed, "features": features})
    page = report.markdown("mass", example, report.rows_of(tmp_path / "mass"))
    assert "| 1 chain | script, mjmcmc | 2 | 0.5000 | 0.5000 | 0.4200 | 0.5000 | 1.2100 | 0.2500 | 0.5800 |" in page
    assert "| `law` | 1 |\n| `other` | 1 |\n| others, different ones | 0 |" in page


@pytest.mark.parametrize("name", EXAMPLES)
@pytest.mark.parametrize("score", SCORES)
def test_rows_of_every_example_have_names_of_their_own(name, score, tmp_path):
    cells = EXAMPLES[name].rows(score, EXAMPLES[name].search, None)
    paths = [path_of(tmp_path, cell) for cell in cells]
    assert len(set(paths)) == len(paths) > 0
    assert {cell.example for cell in cells} == {name}


def test_what_the_paper_prints_has_a_row():
    for name, table in TABLES.items():
        rows = EXAMPLES[name].rows("script", EXAMPLES[name].search, None)
        assert set(table) <= {(cell.group, cell.method) for cell in rows}, name
    assert TABLES["breast_cancer"]["", "BGNLM_PRL"]["ACC"] == (0.9742, 0.9695, 0.9812)
    assert TABLES["abalone"]["", "GR"]["RMSE"] == (2.0801, 2.0801, 2.0801)
    assert TABLES["kepler"]["G2", "64 chains"]["FDR"].median == 0.015
    assert sum(COMPLEXITIES["spam"]["BGNLM"]) == pytest.approx(57.19)
    assert sum(COMPLEXITIES["spam"]["BGNLM_PRL"]) == pytest.approx(71.91)
    assert all(parse(text) for _, features in FREQUENCIES.values() for text in features)


@pytest.mark.parametrize("name", RECIPES)
@pytest.mark.parametrize("search", SEARCHES)
def test_settings_of_scripts_and_text_are_told_apart(name, search):
    recipe = RECIPES[name]
    settings = {"n_inputs": 9, "n_chains": 2, "seed": 1}
    script, paper = (estimator(recipe, score, search, **settings).search for score in ("script", "paper"))
    assert script.limits.max_operations == recipe.operations
    assert paper.limits.max_depth == recipe.depth
    assert paper.limits.max_operations is None
    assert (script.informed == 0.0) == (search != "informed")
    assert estimator(recipe, "default", search, **settings).search is None
    assert estimator(recipe, "default", search, **settings).penalty == "bic"
    assert estimator(recipe, "predict", search, **settings).penalty == "predict"


def test_abalone_row_of_linear_models_to_all_printed_digits(abalone):
    outcome = predict("abalone", "abalone-bic", "script", "mjmcmc", 1, 0, is_linear=True)["outcome"]
    assert {name: round(value, 4) for name, value in outcome.items()} == {
        name: value.median for name, value in TABLES["abalone"]["", "BGLM"].items()
    }


def test_asteroid_row_of_linear_models_to_all_printed_digits(asteroids):
    outcome = predict("asteroids", "asteroids", "script", "mjmcmc", 1, 0, is_linear=True)["outcome"]
    assert (outcome["FN"], outcome["FP"]) == (2, 1)
    assert {name: round(rates(outcome)[name], 4) for name in ("ACC", "FNR*", "FPR*")} == {
        name: value.median for name, value in TABLES["asteroids"]["", "BGLM"].items()
    }
