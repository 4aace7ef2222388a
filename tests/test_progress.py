"""The bar in the terminal."""

import io

import numpy as np
import pytest

import bgnlm
from bgnlm.progress import ProgressBar, describe
from bgnlm.search.chains import Progress
from bgnlm.search.runner import RunProgress

CONFIG = bgnlm.SearchConfig(population_size=5, n_populations=3, n_candidates=30)


def progress(done=0.5, elapsed=10.0, seconds_left=75.0):
    latest = Progress(2, 20, 40, -100.0, -99.0, 1000, 2000, 50, 3.0)
    return RunProgress(latest, 4, done, -100.25, -98.5, 4321, 210, elapsed, seconds_left)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0:00 left"), (75.0, "1:15 left"), (7325.0, "2:02:05 left"), (np.inf, "? left")]
)
def test_the_line_says_where_the_search_is(seconds, text):
    line = describe(progress(seconds_left=seconds))
    assert text in line
    for part in (
        "[##########..........]",
        " 50%",
        "chain 3/4",
        "population 20/40",
        "-100.25",
        "-98.50",
        "4,321",
        "210",
    ):
        assert part in line


def test_a_bar_draws_over_itself_and_leaves_nothing():
    stream = io.StringIO()
    bar = ProgressBar(stream)
    bar(progress(elapsed=0.1))
    assert stream.getvalue() == ""
    bar(progress(0.2))
    bar(progress(0.3))  # too soon
    bar.close()
    drawn = stream.getvalue()
    assert drawn.count("20%") == 1
    assert "30%" not in drawn
    screen = drawn.split("\r")
    assert screen[-1] == ""
    assert set(screen[-2]) == {" "}
    assert len(screen[-2]) == len(screen[1])
    assert "\n" not in drawn


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.mark.parametrize(("wanted", "is_drawn"), [(None, True), (True, True), (False, False)])
def test_a_bar_is_drawn_where_there_is_a_terminal(monkeypatch, wanted, is_drawn):
    monkeypatch.setattr("sys.stderr", terminal := Terminal())
    monkeypatch.setattr("bgnlm.progress._PATIENCE", 0.0)
    rng = np.random.default_rng(1)
    bgnlm.find_features(rng.normal(size=30), rng.normal(size=(30, 2)), config=CONFIG, n_chains=1, progress=wanted)
    assert ("population" in terminal.getvalue()) == is_drawn


def test_no_bar_without_a_terminal(capsys):
    rng = np.random.default_rng(1)
    bgnlm.find_features(rng.normal(size=30), rng.normal(size=(30, 2)), config=CONFIG, n_chains=1)
    assert capsys.readouterr() == ("", "")
