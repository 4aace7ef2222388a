"""The commands as processes of their own: pipes, terminals and Ctrl-C."""

import os
import signal
import subprocess
import sys
import time

import pytest

import bgnlm

from .conftest import HEADER, bodies, write_rows

BGNLM = [sys.executable, "-m", "bgnlm"]
INPUTS = ["--features", "width", "height", "kind", "--seed", "1", "--chains", "1"]
ENDLESS = [*INPUTS, "--populations", "1000000"]
posix = pytest.mark.skipif(os.name == "nt", reason="signals and terminals are others there")


def test_the_parser_is_quick():
    code = (
        "import sys; from bgnlm.cli.main import main; main([]); "
        "heavy = {'numpy', 'numba', 'pandas', 'sklearn', 'pyarrow'} & set(sys.modules); assert not heavy, heavy"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_search_in_a_pipe_has_no_bar(table, tmp_path):
    arguments = ["fit", "-", "--target", "area", "--out", str(tmp_path / "m.bgnlm"), *ENDLESS, "--max-seconds", "1.5"]
    with table.open() as data:
        done = subprocess.run([*BGNLM, *arguments], stdin=data, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr.splitlines() == [
        "bgnlm: family: gaussian, because 'area' holds numbers; --family chooses another"
    ]
    assert done.stdout.startswith("BGNLMRegressor")


@posix
def test_a_terminal_has_a_bar(table, tmp_path):
    import pty

    arguments = ["fit", str(table), "--target", "area", "--out", str(tmp_path / "m.bgnlm"), *ENDLESS]
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [*BGNLM, *arguments, "--max-seconds", "2"], stdout=subprocess.PIPE, stderr=theirs, text=True
        )
        out, _ = process.communicate(timeout=60)
        os.set_blocking(ours, False)
        shown = os.read(ours, 100_000).decode()
    finally:
        os.close(ours)
        os.close(theirs)
    assert process.returncode == 0
    assert "\r[#" in shown or "\r[." in shown
    assert out.startswith("BGNLMRegressor")


@posix
def test_ctrl_c_saves_what_was_found(table, tmp_path):
    out, points = tmp_path / "m.bgnlm", tmp_path / "points"
    arguments = ["fit", str(table), "--target", "area", "--out", str(out), "--checkpoint", str(points), *ENDLESS]
    with subprocess.Popen([*BGNLM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        _wait_for(lambda: sum(path.stat().st_size for path in points.glob("**/*") if path.is_file()) > 20_000, process)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    lines = stderr.splitlines()
    assert lines[1].startswith("bgnlm: warning: The search was interrupted")
    assert lines[2] == f"bgnlm: interrupted: the model found until then is saved in {out}"
    assert "height*width" in stdout
    assert "height*width" in bgnlm.load(out).features_["expression"][:2].tolist()


@posix
def test_ctrl_c_before_anything_was_found(tmp_path):
    out, pipe = tmp_path / "m.bgnlm", tmp_path / "data.csv"
    os.mkfifo(pipe)
    arguments = ["fit", str(pipe), "--target", "area", "--out", str(out), *ENDLESS]
    process = subprocess.Popen([*BGNLM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with process, pipe.open("w"):  # it reads now, and waits for more
        time.sleep(0.2)
        process.send_signal(signal.SIGINT)
        stdout, stderr = process.communicate(timeout=60)
    assert (process.returncode, stdout, stderr) == (130, "", "bgnlm: interrupted\n")
    assert not out.exists()


@posix
def test_a_reader_of_predictions_that_stops_early(models, tmp_path):
    # More than a pipe holds, so that the command is told.
    new = write_rows(tmp_path / "new.csv", HEADER, bodies(3000))
    command = f"{sys.executable} -m bgnlm predict {models['area']} {new} --quiet | head -n 1"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert done.stdout == "prediction,sd,lower,upper\n"
    assert done.stderr == ""


def _wait_for(is_there, process):
    end = time.monotonic() + 60
    while not is_there():
        assert process.poll() is None, process.stderr.read()
        assert time.monotonic() < end, "nothing was found in a minute"
        time.sleep(0.05)
