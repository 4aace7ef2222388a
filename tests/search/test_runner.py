"""Chains side by side: the same answer wherever they run, and through whatever happens to them."""

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields, replace

import joblib
import numpy as np
import psutil
import pytest
from threadpoolctl import threadpool_info, threadpool_limits

import bgnlm
from bgnlm.errors import SearchStoppedWarning, SettingError
from bgnlm.search import runner, workers
from bgnlm.search.gmjmcmc import Workspace, step
from bgnlm.search.problem import SearchProblem
from bgnlm.search.runner import FAILED, INTERRUPTED, OUT_OF_TIME, run_chains
from tests.search.scene import N_CHAINS, SEED, backend, digest, problem

WORKERS = [("serial", 1), ("threading", 1), ("threading", 2), ("loky", 1), ("loky", 2), ("dask", 1), ("dask", 2)]


@pytest.fixture(scope="module")
def expected():
    search = problem()
    return digest(search, run_chains(search, N_CHAINS, SEED))


def run_in_process(name, n_jobs, folder, *options, checkpoint="checkpoint", **more):
    """Start the search as a program of its own."""
    output = folder / "result"
    output.unlink(missing_ok=True)
    command = [sys.executable, "-m", "tests.search.scene", "--backend", name, "--jobs", str(n_jobs)]
    command += ["--output", str(output), *options]
    if checkpoint:
        command += ["--checkpoint", str(folder / checkpoint)]
    environment = os.environ | {"PYTHONWARNINGS": "ignore"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env=environment, **pipes, **more)


def result_of(process, folder):
    """Wait for the program; its digest, whether it warned, and how many populations it explored."""
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
    text, stopped, n_explored = (folder / "result").read_text().split()
    return text, stopped == "1", int(n_explored)


@pytest.mark.parametrize(("name", "n_jobs"), WORKERS)
def test_the_same_answer_wherever_chains_run(name, n_jobs, expected, tmp_path):
    """Without and with a checkpoint, and restored from it."""
    search = problem()
    with backend(name, n_jobs):
        assert digest(search, run_chains(search, N_CHAINS, SEED)) == expected
        assert digest(search, run_chains(search, N_CHAINS, SEED, checkpoint=tmp_path / "here")) == expected
    assert digest(search, run_chains(search, N_CHAINS, SEED, checkpoint=tmp_path / "here")) == expected


@pytest.mark.parametrize(("name", "n_jobs"), WORKERS)
def test_interrupted_and_resumed(name, n_jobs, expected, tmp_path):
    """SIGINT to a real process: it ends with what it has and says so; the same call goes on."""
    process = run_in_process(name, n_jobs, tmp_path, "--slowly", "0.05")
    for _ in range(3):
        assert process.stdout.readline() == "population\n", process.stderr.read()
    process.send_signal(signal.SIGINT)
    text, has_warned, n_explored = result_of(process, tmp_path)
    assert has_warned
    assert 3 <= n_explored < 8 * N_CHAINS
    assert text != expected
    assert result_of(run_in_process(name, n_jobs, tmp_path), tmp_path) == (expected, False, 8 * N_CHAINS)


@pytest.mark.parametrize(("name", "n_jobs"), WORKERS)
def test_killed_and_resumed(name, n_jobs, expected, tmp_path):
    process = run_in_process(name, n_jobs, tmp_path, "--slowly", "0.05")
    for _ in range(4):
        assert process.stdout.readline() == "population\n", process.stderr.read()
    process.kill()
    process.communicate()
    assert not (tmp_path / "result").exists()
    assert result_of(run_in_process(name, n_jobs, tmp_path), tmp_path) == (expected, False, 8 * N_CHAINS)


@pytest.mark.parametrize(("name", "n_jobs"), [("serial", 1), ("loky", 2)])
def test_killed_ten_times_at_random_moments(name, n_jobs, tmp_path):
    draw = random.Random(3)
    for _ in range(10):
        process = run_in_process(name, n_jobs, tmp_path, "--slowly", "0.02", "--populations", "40")
        assert process.stdout.readline() == "population\n", process.stderr.read()
        time.sleep(draw.uniform(0.0, 0.15))
        process.kill()
        process.communicate()
        assert not (tmp_path / "result").exists()
    search = problem(40)
    expected = digest(search, run_chains(search, N_CHAINS, SEED))
    last = run_in_process(name, n_jobs, tmp_path, "--populations", "40")
    assert result_of(last, tmp_path) == (expected, False, 40 * N_CHAINS)


@pytest.mark.parametrize(("name", "n_jobs"), [("serial", 1), ("loky", 2)])
@pytest.mark.parametrize("n_writes", [1, 7])
def test_killed_in_the_middle_of_a_write(name, n_jobs, n_writes, expected, tmp_path):
    process = run_in_process(name, n_jobs, tmp_path, "--die-in-write", str(n_writes))
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert result_of(run_in_process(name, n_jobs, tmp_path), tmp_path) == (expected, False, 8 * N_CHAINS)


def kill_a_worker(client):
    """SIGKILL one of the processes that work for this one."""
    if client is not None:
        pids = list(client.run(os.getpid).values())
    else:
        pids = [child.pid for child in psutil.Process().children() if "LokyProcess" in " ".join(child.cmdline())]
    os.kill(random.Random(1).choice(pids), signal.SIGKILL)


@pytest.mark.parametrize("name", ["loky", "dask"])
def test_a_worker_that_is_killed_is_made_up_for(name, expected, caplog):
    search = problem()
    with backend(name, 2) as client:
        seen = []

        def report(progress):
            seen.append(progress)
            if len(seen) == 3:
                kill_a_worker(client)

        assert digest(search, run_chains(search, N_CHAINS, SEED, report=report)) == expected


def test_a_worker_that_died_between_two_searches_is_replaced(expected):
    search = problem()
    with backend("loky", 2):
        run_chains(search, N_CHAINS, SEED)
        kill_a_worker(None)
        for _ in range(2):
            assert digest(search, run_chains(search, N_CHAINS, SEED)) == expected


def test_searches_in_two_threads_do_not_disturb_each_other(expected):
    search = problem()
    with ThreadPoolExecutor(2) as threads:
        futures = [threads.submit(run_chains, search, N_CHAINS, SEED, n_jobs=n_jobs) for n_jobs in (2, 3)]
        assert [digest(search, future.result()) for future in futures] == [expected, expected]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
def test_a_child_of_this_process_has_workers_of_its_own(tmp_path):
    program = """
import os
from tests.search.scene import *
search = problem(3)
expected = digest(search, run_chains(search, 2, SEED, n_jobs=2))
child = os.fork()
if child == 0:
    os._exit(0 if digest(search, run_chains(search, 2, SEED, n_jobs=2)) == expected else 1)
assert os.waitpid(child, 0)[1] == 0
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)


def test_no_more_workers_than_chains(monkeypatch):
    assert workers.hire(problem(), 7, 1).n_workers == 1
    with backend("threading", 7):
        hired = workers.hire(problem(), None, 3)
    assert hired.n_workers == 3
    hired.close(abandon=False)


def test_nothing_is_left_behind(tmp_path, monkeypatch):
    """No file of the data, not even if the process is killed, and no process."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    process = run_in_process("loky", 2, tmp_path, "--slowly", "0.1")
    for _ in range(4):
        process.stdout.readline()
    assert list(tmp_path.glob("bgnlm-*.problem"))
    children = psutil.Process(process.pid).children()
    process.kill()
    process.communicate()
    assert psutil.wait_procs(children, timeout=20)[1] == []
    assert not list(tmp_path.glob("bgnlm-*.problem"))
    result_of(run_in_process("loky", 2, tmp_path), tmp_path)
    assert not list(tmp_path.glob("bgnlm-*.problem"))


def test_ctrl_c_in_a_terminal_reaches_all_processes(tmp_path):
    """Those that are still starting may end of it; the parent has what was found, and says so."""
    for n_lines in (0, 1, 5):
        process = run_in_process("loky", 2, tmp_path, "--slowly", "0.05", checkpoint=None, start_new_session=True)
        for _ in range(n_lines):
            process.stdout.readline()
        if not n_lines:
            wait_for_children(process)
        os.killpg(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        if n_lines:
            assert process.returncode == 0, errors
            assert (tmp_path / "result").read_text().split()[1] == "1"


def wait_for_children(process):
    while not psutil.Process(process.pid).children():
        time.sleep(0.01)


@pytest.mark.parametrize(("name", "n_jobs"), [("serial", 1), ("threading", 2), ("loky", 2), ("dask", 2)])
def test_a_time_limit_gives_a_prefix_of_the_same_chains(name, n_jobs):
    full = run_chains(problem(), N_CHAINS, SEED)
    limited = problem(10_000, max_seconds=0.3)
    with backend(name, n_jobs):
        chains = run_chains(limited, N_CHAINS, SEED)
    for chain, whole in zip(chains, full, strict=True):
        assert chain.ending == OUT_OF_TIME
        n_both = min(len(chain.history), 7)  # the eighth is the last one there, and explored for longer
        assert n_both >= 1
        masses = [[p.log_mass for p in one.history[:n_both]] for one in (chain, whole)]
        assert masses[0] == masses[1]


@pytest.mark.parametrize(("name", "n_jobs"), [("serial", 1), ("threading", 2), ("loky", 2), ("dask", 2)])
def test_stagnation_ends_chains_at_the_same_population(name, n_jobs):
    settings = {"limits": bgnlm.search.Limits(max_depth=0), "patience": 3}
    search = problem(500, **settings)
    with backend(name, n_jobs):
        chains = run_chains(search, N_CHAINS, SEED)
    assert [len(chain.history) for chain in chains] == [4] * N_CHAINS
    assert digest(search, chains) == digest(search, run_chains(search, N_CHAINS, SEED))


@pytest.mark.parametrize(("name", "n_jobs"), [("serial", 1), ("threading", 2), ("loky", 2), ("dask", 2)])
def test_progress_is_reported_for_every_population(name, n_jobs):
    seen = []
    with backend(name, n_jobs):
        run_chains(problem(), N_CHAINS, SEED, report=seen.append)
    assert sorted((p.latest.chain, p.latest.n_explored) for p in seen) == [
        (c, t) for c in range(3) for t in range(1, 9)
    ]
    assert [p.done for p in seen] == pytest.approx((np.arange(24) + 1) / 24)
    assert seen[-1].seconds_left == 0.0
    assert all(p.elapsed > 0.0 and p.n_models > 0 and np.isfinite(p.log_mass) for p in seen)


def only_if(chain, n_explored, search):
    """Whether a state is that of one chain after so many populations."""
    seeds = [state.random_state for state in states_of(search, chain, n_explored)]
    return lambda state: state.random_state in seeds and state.n_explored == n_explored


def states_of(search, chain, n_explored):
    seed = runner.spawned(np.random.SeedSequence(SEED), N_CHAINS)[chain]
    work = Workspace(search)
    state = runner.start_chain(search, seed, work)
    for _ in range(n_explored):
        state, _ = step(work, state)
    yield state


class Faulty(workers.LocalWorkers):
    """Workers that fail with a chain, so many times in a row."""

    def __init__(self, search, n_faults, is_raised=False):
        super().__init__(search, 1)
        self.n_faults, self.is_raised = n_faults, is_raised
        self.is_bad = only_if(1, 3, search)

    def submit(self, state, seconds):
        if not self.is_bad(state) or not self.n_faults:
            return super().submit(state, seconds)
        self.n_faults -= 1
        if self.is_raised:
            raise MemoryError("no room")
        failed = Future()
        failed.set_exception(MemoryError("no room"))
        return failed


@pytest.mark.parametrize("is_raised", [False, True])
def test_a_chain_that_fails_is_tried_again(monkeypatch, expected, is_raised):
    monkeypatch.setattr(runner, "hire", lambda search, *_: Faulty(search, 2, is_raised))
    search = problem()
    assert digest(search, run_chains(search, N_CHAINS, SEED)) == expected


@pytest.mark.parametrize("is_raised", [False, True])
def test_a_chain_that_fails_for_good_does_not_take_the_others_with_it(monkeypatch, is_raised):
    monkeypatch.setattr(runner, "hire", lambda search, *_: Faulty(search, 99, is_raised))
    search = problem()
    message = r"Chain 1 failed after 3 populations, 3 times: MemoryError\('no room"
    with pytest.warns(SearchStoppedWarning, match=message):
        chains = run_chains(search, N_CHAINS, SEED)
    monkeypatch.undo()
    assert_all_but_one(search, chains)


def assert_all_but_one(search, chains):
    """Chain 1 has a prefix, the others are complete."""
    assert [len(chain.history) for chain in chains] == [8, 3, 8]
    assert chains[1].ending == FAILED
    whole = run_chains(search, N_CHAINS, SEED)
    assert digest(search, [chains[0], chains[2]]) == digest(search, [whole[0], whole[2]])
    assert [p.log_mass for p in chains[1].history] == [p.log_mass for p in whole[1].history[:3]]


def troubled(search, how):
    """The search, with trouble in another process when the fourth population of chain 1 is explored there."""
    is_bad, parent = only_if(1, 3, search), os.getpid()

    class Trouble(SearchProblem):
        @property
        def is_gaussian(self):
            if os.getpid() != parent and (state := state_of_step()) and is_bad(state):
                how()
            return True

    return Trouble(**{field.name: getattr(search, field.name) for field in fields(search)})


def state_of_step():
    """The state that the innermost call of `step` was given; None if there is none."""
    frame = sys._getframe()
    while frame is not None and frame.f_code.co_name != "step":
        frame = frame.f_back
    return frame and frame.f_locals["state"]


class UnpicklableError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def fail():
    raise UnpicklableError("one", "two")


@pytest.mark.parametrize(("how", "message"), [(die, "TerminatedWorkerError"), (fail, "UnpicklableError: one and two")])
@pytest.mark.parametrize("n_jobs", [2, 3])
def test_a_chain_that_fails_in_its_process_does_not_take_the_others_with_it(how, message, n_jobs):
    """Even if it kills the process, and with it whatever the pool was doing."""
    search = problem()
    with (
        backend("loky", n_jobs),
        pytest.warns(SearchStoppedWarning, match=rf"Chain 1 failed after 3 populations, 3 times: .*{message}"),
    ):
        chains = run_chains(troubled(search, how), N_CHAINS, SEED)
    assert_all_but_one(search, chains)


def test_an_error_in_the_first_population_is_one_of_its_chain(monkeypatch):
    """Though it is explored in the parent if there are several workers."""

    def broken(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(runner, "advance", broken)
    search = problem()
    with backend("threading", 2):
        assert [chain.ending for chain in run_chains(search, N_CHAINS, SEED)] == ["complete"] * 3


def test_an_error_of_the_callback_is_the_callers(tmp_path):
    """Also for the population that is explored in the parent if there are several workers."""

    def report(_):
        raise ValueError("mine")

    for n_jobs in (1, 2):
        with backend("threading", n_jobs), pytest.raises(ValueError, match="mine"):
            run_chains(problem(2), 2, SEED, report=report)


def test_if_nothing_can_be_had_the_error_is_raised(monkeypatch):
    def broken(*_):
        raise FloatingPointError("broken")

    monkeypatch.setattr(workers, "step", broken)
    with pytest.raises(FloatingPointError, match="broken"):
        run_chains(problem(), 2, SEED)


def test_an_interruption_in_a_callback_keeps_what_was_found():
    seen = []

    def report(progress):
        seen.append(progress)
        if len(seen) == 10:
            raise KeyboardInterrupt

    with pytest.warns(SearchStoppedWarning, match=r"interrupted; populations explored by each chain: \[8, 2, 0\]"):
        chains = run_chains(problem(), N_CHAINS, SEED, report=report)
    assert chains[1].ending == INTERRUPTED
    with pytest.warns(SearchStoppedWarning, match="What was found until then is all there"):
        found = bgnlm.find_features(
            problem().likelihood.y, problem().X, n_chains=2, random_state=1, progress=lambda _: signal.raise_signal(2)
        )
    assert len(found.chains) == 1
    assert len(found.posterior) > 10


def test_the_handler_of_signals_is_left_as_it_was():
    before = signal.getsignal(signal.SIGINT)
    run_chains(problem(2), 1, SEED)
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("n_jobs", [0, 1.5, "2", True])
def test_the_number_of_jobs_is_checked(n_jobs):
    with pytest.raises(SettingError, match="n_jobs must be a whole number"):
        run_chains(problem(2), 1, SEED, n_jobs=n_jobs)


def test_a_backend_that_cannot_be_used_is_named(monkeypatch):
    class Strange:
        def effective_n_jobs(self, n_jobs):
            return n_jobs

    monkeypatch.setattr(workers, "get_active_backend", lambda: (Strange(), 2))
    with pytest.raises(SettingError, match=r"backend Strange. Use joblib.parallel_config with 'loky'"):
        run_chains(problem(2), 2, SEED)


def test_linear_algebra_has_one_thread_as_long_as_anyone_wants_it():
    def n_threads():
        return {info["num_threads"] for info in threadpool_info()}

    with threadpool_limits(2):
        with contextlib.ExitStack() as first, workers.one_thread():
            first.enter_context(workers.one_thread())
            first.close()
            assert n_threads() == {1}
        assert n_threads() == {2}


def test_linear_algebra_has_one_thread_while_chains_run():

    seen = []
    run_chains(problem(2), 1, SEED, report=lambda _: seen.extend(info["num_threads"] for info in threadpool_info()))
    assert seen
    assert set(seen) == {1}


def test_a_shared_file_gives_back_the_problem():
    search = problem()
    file = workers.SharedFile(search)
    copy = workers.SharedFile.read(file.path)
    file.remove()
    assert (copy.X == search.X).all()
    assert copy.X.flags.writeable  # kernels are compiled for arrays that are
    assert copy.config == search.config
    copy.X[:] = 0.0
    state = runner.start_chain(search, np.random.SeedSequence(1), Workspace(search))
    assert step(Workspace(search), state)[1].n_scored > 0


def test_transforms_of_ones_own_travel(expected, tmp_path):
    """A lambda of the main program goes to processes, and comes back from a checkpoint."""
    cube = bgnlm.Transform("cubed", lambda x: x**3)
    search = problem()
    search = replace(search, transforms=(cube, *search.transforms[:2]))
    alone = digest(search, run_chains(search, 2, SEED))
    with backend("loky", 2):
        chains = run_chains(search, 2, SEED, checkpoint=tmp_path / "here")
    assert any("cubed" in str(feature) for feature in chains[0].classes.representatives)
    assert digest(search, chains) == alone
    assert digest(search, run_chains(search, 2, SEED, checkpoint=tmp_path / "here")) == alone


def test_a_large_table_is_sent_to_a_cluster_once_for_each_worker():
    """However many chains there are, and without a warning of Dask about large graphs."""
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400_000, 16))  # 51 MB
    y = X[:, 0] * X[:, 1] + rng.normal(size=len(X))
    config = bgnlm.SearchConfig(population_size=4, n_populations=1, n_initial_inputs=3, informed=0.0)
    search = bgnlm.search.problem.define_problem(y, X, config=config)
    sent = {}
    with backend("dask", 2) as client, warnings.catch_warnings():
        warnings.simplefilter("error")
        for n_chains in (2, 8):
            before = bytes_received(client)
            run_chains(search, n_chains, SEED)
            sent[n_chains] = bytes_received(client) - before
    assert sent[2] >= 2 * X.nbytes
    assert sent[8] < 1.1 * sent[2]


def bytes_received(client):
    """Bytes that came in from the network at all workers."""

    def received():
        import psutil

        return psutil.net_io_counters().bytes_recv

    return max(client.run(received).values())


def test_joblibs_own_processes_are_left_alone():
    with backend("loky", 2):
        assert joblib.Parallel()(joblib.delayed(abs)(-j) for j in range(3)) == [0, 1, 2]
        run_chains(problem(2), 2, SEED)
        assert joblib.Parallel()(joblib.delayed(abs)(-j) for j in range(3)) == [0, 1, 2]
