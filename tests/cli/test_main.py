"""The command line, run as a user runs it."""

import io
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import bgnlm
from bgnlm.cli.demo import run_demo
from bgnlm.cli.main import main
from bgnlm.errors import DataError, SearchStoppedWarning, SettingError


def _bgnlm(*arguments, **options):
    command = [sys.executable, "-m", "bgnlm", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def test_the_demo_discovers_keplers_third_law():
    done = _bgnlm("demo")
    assert done.returncode == 0
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    law = lines[lines.index("the law") + 1]
    assert "cbrt_abs(parent_mass*period**2)" in law
    assert law.count(" + ") + law.count(" - ") == 1  # nothing else in the model
    coefficient = float(law.split("+")[1].split("*")[0])
    assert coefficient == pytest.approx(1.0, abs=1e-3)  # in years, solar masses and astronomical units
    assert float(lines[lines.index("the law") + 2].split()[1]) > 0.95
    assert "runner-up models" in done.stdout


def test_the_demo_is_deterministic():
    first, second = (text.splitlines()[:-1] for text in (run_demo(), run_demo()))
    assert first == second


def test_version_and_help():
    assert _bgnlm("--version").stdout.strip() == f"bgnlm {bgnlm.__version__}"
    assert "demo" in _bgnlm().stdout
    assert _bgnlm().returncode == 0


def test_a_wrong_command_is_a_usage_error():
    done = _bgnlm("dmeo")
    assert done.returncode == 2
    assert "demo" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("raised", "code", "message"),
    [
        (DataError("no such\n column"), 1, "no such column"),
        (SettingError("too deep"), 2, "too deep"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(28, "No space left on device", "file"), 1, "file: No space left on device"),
        (ModuleNotFoundError(name="sklearn"), 1, "demo needs the package 'sklearn', which is not installed"),
    ],
)
def test_errors_become_messages_and_exit_codes(monkeypatch, capsys, raised, code, message):
    def fail():
        raise raised

    monkeypatch.setattr("bgnlm.cli.demo.run_demo", fail)
    assert main(["demo"]) == code
    shown = capsys.readouterr().err
    assert shown.startswith(f"bgnlm: {message}")
    assert shown.count("\n") == 1


def test_warnings_are_shown_once_and_in_one_line(monkeypatch, capsys):
    def warn():
        warnings.simplefilter("always", DeprecationWarning)  # as a library may do
        warnings.warn("'old' is called 'fresh' now", DeprecationWarning, stacklevel=1)
        for _ in range(2):
            warnings.warn("chains\n  disagree", SearchStoppedWarning, stacklevel=1)
        return "done"

    monkeypatch.setattr("bgnlm.cli.demo.run_demo", warn)
    assert main(["demo"]) == 0
    assert capsys.readouterr() == ("done\n", "bgnlm: warning: chains disagree\n")


@pytest.mark.parametrize("command", ["fit", "predict", "show"])
def test_every_command_has_examples(capsys, command):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    assert f"\n  bgnlm {command} " in capsys.readouterr().out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_a_message():
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "bgnlm", "demo"], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert done.stderr.startswith("bgnlm: ")


@pytest.mark.skipif(os.name == "nt", reason="no pipes to close early")
def test_a_reader_that_stops_early_is_no_error():
    done = subprocess.run(
        f"{sys.executable} -m bgnlm demo | head -n 1", shell=True, capture_output=True, text=True, check=False
    )
    assert "bodies of the solar system" in done.stdout
    assert done.stderr == ""


def test_characters_that_the_terminal_lacks_are_escaped(tmp_path, monkeypatch):
    """Fit, show and predict print names of columns."""
    data, model = tmp_path / "data.csv", str(tmp_path / "m.bgnlm")
    data.write_text("größe,fläche\n" + "".join(f"{i},{i * i}\n" for i in range(1, 21)), encoding="utf-8")
    quick = ("--chains", "1", "--populations", "2", "--seed", "1")
    commands = [
        ["fit", str(data), "--target", "fläche", "--out", model, *quick],
        ["show", model],
        ["predict", model, str(data), "--keep", "größe"],
        ["predict", model, str(data), "--keep", "höhe"],
    ]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True) for _ in range(2))
    monkeypatch.setattr("sys.stdout", out)
    monkeypatch.setattr("sys.stderr", err)
    assert [main(command) for command in commands] == [0, 0, 0, 1]
    shown = out.buffer.getvalue().decode("ascii")
    assert "fl\\xe4che = " in shown
    assert "gr\\xf6\\xdfe,prediction" in shown
    assert "has no column 'h\\xf6he'" in err.buffer.getvalue().decode("ascii")
