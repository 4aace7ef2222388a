"""Checkpoints: runs that stop and go on, and folders in every state of disrepair."""

import contextlib
import errno
import json
import os
import pickle
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import warnings
from dataclasses import replace
from pathlib import Path

import joblib
import numpy as np
import pytest

import bgnlm
from bgnlm.errors import CheckpointError, CheckpointWarning, SearchStoppedWarning, SettingError
from bgnlm.features import Input, Transform, modify
from bgnlm.search import checkpoint as module
from bgnlm.search import workers
from bgnlm.search.chains import COMPLETE, STAGNANT
from bgnlm.search.checkpoint import MANIFEST, Checkpoint
from bgnlm.search.config import Limits, MoveProbabilities
from bgnlm.search.prior import ModelPrior
from bgnlm.search.record import pack
from bgnlm.search.runner import OUT_OF_TIME, run_chains
from tests.search.test_description import CHANGES, NAMES, SMALL, X, configured, cubed, problem, y
from tests.search.test_gmjmcmc import assert_same_state

SEED = 3
ADVICE = r"(Name|name|Repeat|repeat|Restore|Remove|remove|Use|Wait|[Mm]ake room)\b.*\.$"


@pytest.fixture(scope="module")
def whole():
    """Two chains that nothing has stopped."""
    return run_chains(problem(), 2, SEED)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, whole):
    """Their checkpoint; not to be written to."""
    folder = tmp_path_factory.mktemp("finished") / "checkpoint"
    assert_same_chains(run_chains(problem(), 2, SEED, checkpoint=folder), whole)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    """A copy of it."""
    return shutil.copytree(finished, tmp_path / "checkpoint")


def content(folder):
    """Everything a folder has, byte by byte."""
    return {path.name: path.read_bytes() if path.is_file() else None for path in Path(folder).rglob("*")}


def chain_file(folder, number):
    return folder / f"chain-{number:04d}.journal"


def assert_same_chains(here, there):
    """To the last bit, but for the seconds they took."""
    for one, other in zip(here, there, strict=True):
        for name in ("number", "ending", "n_scored", "log_mass"):
            assert getattr(one, name) == getattr(other, name), name
        rows, others = one.visited.rows(), other.visited.rows()
        for name in ("keys", "log_marginal", "starts", "members"):
            assert getattr(rows, name).dtype == getattr(others, name).dtype
            assert getattr(rows, name).tobytes() == getattr(others, name).tobytes(), name
        assert one.visited.n_scored == other.visited.n_scored
        assert one.visited.log_discarded() == other.visited.log_discarded()
        assert one.tally.tobytes() == other.tally.tobytes()
        assert one.costs.tobytes() == other.costs.tobytes()
        histories = [[replace(progress, seconds=0.0) for progress in chain.history] for chain in (one, other)]
        assert histories[0] == histories[1]
        assert_same_state(one.state, other.state)


@contextlib.contextmanager
def refused(message, folder=None):
    """An error that says what came and what to do, and leaves everything as it was."""
    before = content(folder) if folder is not None else None
    with pytest.raises(CheckpointError, match=message) as caught:
        yield
    assert re.search(ADVICE, str(caught.value), re.DOTALL), f"no advice: {caught.value}"
    assert before is None or content(folder) == before


@contextlib.contextmanager
def unchanged(folder):
    """Nothing is written."""
    before = content(folder)
    yield
    assert content(folder) == before


class StopAfter:
    """A report that interrupts after so many populations."""

    def __init__(self, n_populations, error=KeyboardInterrupt):
        self.n_left = n_populations
        self.error = error

    def __call__(self, _):
        self.n_left -= 1
        if not self.n_left:
            raise self.error


def run_until(n_populations, search, n_chains, folder, seed=SEED):
    with pytest.warns(SearchStoppedWarning, match="the same call goes on from there"):
        return run_chains(search, n_chains, seed, checkpoint=folder, report=StopAfter(n_populations))


def binomial(config):
    return problem(y=y > 0, family="binomial", config=config)


FAST = replace(SMALL, engine="mjmcmc", n_initial_steps=60, n_explore_steps=60, n_final_steps=100)
EVERYTHING = MoveProbabilities(new_input=1, modification=3, multiplication=2, projection=4)
OWN = [
    Transform("mine", lambda x: x**3 - x),
    Transform("over", lambda x, cut: (x > cut) * 1.0, quantile=0.3),
    Transform("sin", lambda x: np.sin(3.0 * x)),
]
SEARCHES = {
    "gaussian": lambda: problem(),
    "gaussian-mjmcmc": lambda: problem(config=FAST),
    "paper": lambda: problem(config=replace(FAST, informed=0)),
    "binomial": lambda: binomial(SMALL),
    "binomial-mjmcmc": lambda: binomial(FAST),
    "binomial-surrogate": lambda: binomial(replace(SMALL, engine="surrogate", n_draws=30)),
    "patience": lambda: problem(config=replace(SMALL, limits=Limits(max_depth=0), patience=2, n_populations=9)),
    "until there are enough": lambda: problem(
        config=replace(SMALL, limits=Limits(max_depth=0), min_models=10**6, n_populations=2)
    ),
    "few models are stored": lambda: problem(config=replace(SMALL, max_models=15)),
    "functions of one's own": lambda: problem(
        transforms=OWN, names=["sin", "a b`\n", "\ud800列"], config=replace(SMALL, moves=EVERYTHING)
    ),
    "weights, offset, keep": lambda: problem(
        sample_weight=np.arange(len(y)) % 3, offset=X[:, 0], keep=["x1*x2"], noise_floor=0.1
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", SEARCHES)
def test_stopped_after_every_population(name, tmp_path):
    """Each call explores one population; the last one has the result of a run that nothing stopped."""
    search = SEARCHES[name]()
    expected = run_chains(search, 2, SEED)
    assert [chain.ending for chain in expected] == [STAGNANT if name == "patience" else COMPLETE] * 2
    n_populations = sum(len(chain.history) for chain in expected)
    for k in range(1, n_populations):
        chains = run_until(1, search, 2, tmp_path / "checkpoint")
        assert sum(len(chain.history) for chain in chains) == k
    assert_same_chains(run_chains(search, 2, SEED, checkpoint=tmp_path / "checkpoint"), expected)
    assert_same_chains(run_chains(search, 2, SEED, checkpoint=tmp_path / "checkpoint"), expected)


@pytest.mark.parametrize("n_populations", [2, 4, 5, 7])
def test_stopped_once(n_populations, tmp_path, whole):
    run_until(n_populations, problem(), 2, tmp_path / "checkpoint")
    assert_same_chains(run_chains(problem(), 2, SEED, checkpoint=tmp_path / "checkpoint"), whole)


def test_a_report_that_fails_costs_nothing(tmp_path, whole):
    with pytest.raises(ZeroDivisionError):
        run_chains(problem(), 2, SEED, checkpoint=tmp_path / "a", report=StopAfter(3, ZeroDivisionError))
    n_explored = []
    chains = run_chains(problem(), 2, SEED, checkpoint=tmp_path / "a", report=n_explored.append)
    assert len(n_explored) == 8 - 3
    assert_same_chains(chains, whole)


def test_what_is_finished_is_not_done_again(folder, whole, monkeypatch):
    monkeypatch.setattr(workers, "step", None)
    with unchanged(folder):
        assert_same_chains(run_chains(problem(), 2, SEED, checkpoint=folder), whole)
    assert [chain.history[-1].seconds for chain in run_chains(problem(), 2, SEED, checkpoint=folder)] == [
        chain.history[-1].seconds for chain in run_chains(problem(), 2, checkpoint=folder)
    ]


def test_a_chain_that_was_cut_off_anywhere(folder, whole):
    """Around the ends of all records and between them: what is missing is explored again."""
    data = chain_file(folder, 1).read_bytes()
    ends = [match.start() for match in re.finditer(b"bgJ1", data)] + [len(data)]
    assert len(ends) == 5
    for end in ends:
        for length in {max(end - 1, 0), end, min(end + 1, len(data)), min(end + 20, len(data)), (end + len(data)) // 2}:
            chain_file(folder, 1).write_bytes(data[:length])
            assert_same_chains(run_chains(problem(), 2, SEED, checkpoint=folder), whole)


@pytest.mark.parametrize("numbers", [[0], [1], [0, 1]])
def test_a_chain_whose_file_is_missing_runs_again(folder, whole, numbers):
    for number in numbers:
        chain_file(folder, number).unlink()
    assert_same_chains(run_chains(problem(), 2, SEED, checkpoint=folder), whole)
    assert {chain_file(folder, number).name for number in (0, 1)} < content(folder).keys()


def test_more_chains_later(folder, whole):
    before = content(folder)
    n_explored = []
    chains = run_chains(problem(), 3, SEED, checkpoint=folder, report=n_explored.append)
    assert len(n_explored) == len(chains[2].history) == 4
    assert_same_chains(chains[:2], whole)
    assert_same_chains(chains, run_chains(problem(), 3, SEED))
    assert content(folder).items() > before.items()


def test_fewer_chains_later(folder, whole):
    with unchanged(folder):
        assert_same_chains(run_chains(problem(), 1, SEED, checkpoint=folder), whole[:1])


def test_without_a_seed_the_one_that_is_there_is_used(folder, whole):
    chain_file(folder, 1).unlink()
    assert_same_chains(run_chains(problem(), 2, checkpoint=folder), whole)


def test_a_seed_that_nobody_chose_is_kept(tmp_path):
    run_until(1, problem(), 2, tmp_path / "a", seed=None)
    chains = run_chains(problem(), 2, checkpoint=tmp_path / "a")
    entropy = json.loads((tmp_path / "a" / MANIFEST).read_text())["seed"]["entropy"]
    assert_same_chains(chains, run_chains(problem(), 2, entropy))
    other = run_chains(problem(), 2, checkpoint=tmp_path / "b")
    assert other[0].state.random_state != chains[0].state.random_state


@pytest.mark.parametrize(
    "make",
    [
        lambda: np.int64(7),
        lambda: np.random.SeedSequence(7),
        lambda: np.random.SeedSequence(np.int64(7)),
        lambda: np.random.SeedSequence([7, 8]),
        lambda: np.random.SeedSequence((7, 8)),
        lambda: np.random.SeedSequence(np.array([7, 8], np.uint32)),
        lambda: np.random.SeedSequence(7, spawn_key=(1, 2)),
        lambda: np.random.SeedSequence(7).spawn(3)[2],
        lambda: np.random.SeedSequence(2**200),
    ],
)  # fmt: skip
def test_seeds_of_any_form(make, tmp_path):
    run_until(1, problem(), 1, tmp_path / "a", seed=make())
    assert_same_chains(run_chains(problem(), 1, make(), checkpoint=tmp_path / "a"), run_chains(problem(), 1, make()))


@pytest.mark.parametrize(
    ("seed", "message"),
    [
        (4, "random_state was 3 and is 4"),
        (0, "random_state was 3 and is 0"),
        (np.random.SeedSequence(3).spawn(1)[0], r"random_state was ([^;]+) and is (?!\1\.)"),
        (np.random.SeedSequence([3, 0]), r"random_state was 3 and is \[3, 0\]"),
    ],
)
def test_another_seed_is_refused(folder, seed, message):
    with refused(message, folder):
        run_chains(problem(), 2, seed, checkpoint=folder)


@pytest.mark.parametrize(("message", "now", "before"), CHANGES, ids=NAMES)
def test_another_search_is_refused(message, now, before, tmp_path):
    root = np.random.SeedSequence(SEED)
    Checkpoint(tmp_path, problem(**before), root).close()
    chain_file(tmp_path, 0).write_bytes(b"not even looked at")
    with refused(f"is of another search: .*{message}.*Nothing was changed", tmp_path):
        Checkpoint(tmp_path, problem(**now), root)
    Checkpoint(tmp_path, problem(**before), root).close()


def test_all_that_differs_is_said_at_once(folder):
    with refused("X has other values; n_candidates was 40 and is 41; .*penalty.*; random_state was 3 and is 4", folder):
        search = problem(X=X + 1.0, prior=ModelPrior(penalty=1.0), config=replace(SMALL, n_candidates=41))
        run_chains(search, 2, 4, checkpoint=folder)


def test_time_may_be_limited_and_not(tmp_path, whole):
    hurried = problem(config=replace(SMALL, max_seconds=0.0))
    chains = run_chains(hurried, 2, SEED, checkpoint=tmp_path / "a")
    assert [(chain.ending, len(chain.history)) for chain in chains] == [(OUT_OF_TIME, 1)] * 2
    chains = run_chains(hurried, 2, SEED, checkpoint=tmp_path / "a")
    assert [len(chain.history) for chain in chains] == [2, 2]
    assert_same_chains(run_chains(problem(), 2, SEED, checkpoint=tmp_path / "a"), whole)
    assert_same_chains(run_chains(hurried, 2, SEED, checkpoint=tmp_path / "a"), whole)


def test_the_number_of_jobs_may_differ(tmp_path, whole):
    run_until(1, problem(), 2, tmp_path / "a")
    with joblib.parallel_config(backend="threading"), pytest.warns(SearchStoppedWarning):
        run_chains(problem(), 2, SEED, n_jobs=2, checkpoint=tmp_path / "a", report=StopAfter(3))
    assert_same_chains(run_chains(problem(), 2, SEED, n_jobs=1, checkpoint=tmp_path / "a"), whole)


@pytest.mark.parametrize(
    "changes",
    [
        configured(transform_weights=np.array([1.0, 0.5])),
        configured(n_candidates=np.int64(40), window=np.float32(19.0)),
        {"prior": ModelPrior(penalty=np.int64(2))},
        {"keep": [modify(Transform("mine", cubed), Input("x1"))]},
        {"keep": [modify(Transform("inverse", cubed), Input("x1"))]},
        {"transforms": ["sin", Transform("half", lambda x: np.sqrt(x) if (x >= 0).all() else 1 / 0)]},
    ],
    ids=["weights", "numbers", "penalty", "keep", "keep other function", "function fails"],
)
def test_what_runs_without_a_checkpoint_runs_with_one(changes, tmp_path):
    search = problem(**changes)
    expected = run_chains(search, 1, SEED)
    run_until(2, search, 1, tmp_path / "a")
    assert_same_chains(run_chains(search, 1, SEED, checkpoint=tmp_path / "a"), expected)


@pytest.mark.parametrize("value", [None, "much", -1.0, np.nan])
def test_what_is_an_error_without_a_checkpoint_is_the_same_with_one(value, tmp_path):
    search = problem(prior=ModelPrior(complexity=lambda _: value))
    for checkpoint in (None, tmp_path / "a"):
        with pytest.raises(SettingError, match="complexity must be a number of 0 or more"):
            run_chains(search, 1, SEED, checkpoint=checkpoint)


@pytest.mark.parametrize("folder", [5, b"bytes", "a\0b"])
def test_something_that_is_no_folder(folder):
    with pytest.raises((SettingError, CheckpointError), match="checkpoint"):
        run_chains(problem(), 1, SEED, checkpoint=folder)


def test_a_folder_is_made_with_those_above_it(tmp_path, monkeypatch, whole):
    monkeypatch.chdir(tmp_path)
    assert_same_chains(run_chains(problem(), 2, SEED, checkpoint="a/b/c"), whole)
    names = {"lock", MANIFEST, "chain-0000.journal", "chain-0001.journal"}
    assert content(tmp_path / "a" / "b" / "c").keys() == names
    (tmp_path / "empty").mkdir()
    Checkpoint("empty", problem(), None).close()


def test_files_need_no_pickle(folder, monkeypatch):
    """They are JSON and arrays; nothing in them can run."""
    for name in ("load", "loads", "dump", "dumps", "Unpickler", "Pickler"):
        monkeypatch.setattr(pickle, name, None)
    store = Checkpoint(folder, problem(), None)
    assert [len(store.restore(number)) for number in range(3)] == [4, 4, 0]
    store.close()
    json.loads((folder / MANIFEST).read_text())


# Folders that are no checkpoints.


def test_a_file_in_its_place(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"precious")
    for folder in (path, path / "below"):
        with refused("cannot be used: (File exists|Not a directory)", tmp_path):
            run_chains(problem(), 1, SEED, checkpoint=folder)


@pytest.mark.parametrize(
    "names",
    [
        ["thesis.tex"],
        [".hidden"],
        ["lock", "data.csv"],
        ["chain-0000.journal"],
        ["sub/file"],
        ["manifest.json.partial", "chain-0000.journal"],
    ],
)
def test_a_folder_of_something_else(names, tmp_path):
    for name in names:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"precious")
    with refused(f"is no checkpoint: it has files, but no {MANIFEST}", tmp_path):
        run_chains(problem(), 1, SEED, checkpoint=tmp_path)


@pytest.mark.parametrize("names", [["lock"], ["manifest.json.partial"], ["lock", "manifest.json.partial"]])
def test_what_is_left_of_a_run_that_was_killed_at_once(names, tmp_path, whole):
    for name in names:
        (tmp_path / name).write_bytes(b'{"format": 1')
    assert_same_chains(run_chains(problem(), 2, SEED, checkpoint=tmp_path), whole)


def test_a_folder_that_cannot_be_made():
    path = Path("/proc/bgnlm")
    if not path.parent.is_dir():
        pytest.skip("needs /proc")
    with refused("cannot be used"):
        run_chains(problem(), 1, SEED, checkpoint=path / "checkpoint")


@contextlib.contextmanager
def without_privileges():
    """As a user to whom permissions apply, even if tests are run by root."""
    if not hasattr(os, "geteuid"):
        pytest.skip("needs users")
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def reachable():
    """A folder that other users can reach."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    yield folder
    for path in (folder, *folder.rglob("*")):
        path.chmod(0o755)
    shutil.rmtree(folder)


def test_a_folder_that_is_read_only(reachable, finished):
    folder = shutil.copytree(finished, reachable / "checkpoint")
    (reachable / "empty").mkdir()
    for path in (*folder.iterdir(), folder, reachable / "empty", reachable):
        path.chmod(0o555 if path.is_dir() else 0o444)
    for path in (folder, reachable / "empty", reachable / "new"):
        with without_privileges(), refused("Permission denied", reachable):
            Checkpoint(path, problem(), None)


@pytest.mark.parametrize("name", [MANIFEST, "chain-0001.journal"])
def test_a_file_that_cannot_be_read(name, reachable, finished):
    folder = shutil.copytree(finished, reachable / "checkpoint")
    before = content(folder)
    for path in folder.iterdir():
        path.chmod(0o666)
    (folder / name).chmod(0o000)
    with without_privileges(), refused("Permission denied"):
        store = Checkpoint(folder, problem(), None)
        try:
            store.restore(1)
        finally:
            store.close()
    assert content(folder) == before


def test_a_file_that_cannot_be_written(reachable, finished):
    folder = shutil.copytree(finished, reachable / "checkpoint")
    for path in folder.iterdir():
        path.chmod(0o444 if path == chain_file(folder, 1) else 0o666)
    with without_privileges():
        store = Checkpoint(folder, problem(), None)
        found = store.restore(1)
        with refused("Permission denied", folder):
            store.append(1, found[0])
        store.close()


# Manifests.


def manifest(**changes):
    root = np.random.SeedSequence(SEED)
    with tempfile.TemporaryDirectory() as folder:
        Checkpoint(folder, problem(), root).close()
        return json.loads((Path(folder) / MANIFEST).read_text()) | changes


def without(name):
    content = manifest()
    del content[name]
    return content


@pytest.mark.parametrize("seed", [SEED, None])
@pytest.mark.parametrize(
    "make",
    [
        lambda: b"",
        lambda: b"\0" * 700,
        lambda: bytes(range(256)),
        lambda: b"PK\x03\x04",
        lambda: b"[" * 100_000,
        list,
        dict,
        lambda: None,
        lambda: "text",
        lambda: {"name": "An extension of a browser", "manifest_version": 3},
        lambda: without("format"),
        lambda: without("bgnlm"),
        lambda: without("seed"),
        lambda: without("settings"),
        lambda: manifest(settings=None),
        lambda: manifest(settings=[]),
        lambda: manifest(settings={}),
        lambda: manifest(settings=manifest()["settings"] | {"transforms": None}),
        lambda: manifest(seed=None),
        lambda: manifest(seed={}),
        lambda: manifest(seed={"entropy": None, "spawn_key": []}),
        lambda: manifest(seed={"entropy": -1, "spawn_key": []}),
        lambda: manifest(seed={"entropy": "3", "spawn_key": []}),
        lambda: manifest(seed={"entropy": 3.5, "spawn_key": []}),
        lambda: manifest(seed={"entropy": SEED, "spawn_key": 1}),
        lambda: manifest(seed={"entropy": SEED, "spawn_key": ["a"]}),
        lambda: manifest(format=0),
        lambda: manifest(format=2),
        lambda: manifest(format="1"),
        lambda: manifest(format=None),
    ],
)
def test_a_manifest_of_something_else(make, seed, folder):
    made = make()
    (folder / MANIFEST).write_bytes(made if isinstance(made, bytes) else json.dumps(made).encode())
    with refused("manifest|another search", folder):
        run_chains(problem(), 2, seed, checkpoint=folder)


def test_a_foreign_folder_with_a_manifest_gets_no_file_from_us(tmp_path):
    (tmp_path / MANIFEST).write_text('{"name": "An extension of a browser"}')
    with refused("no manifest of bgnlm", tmp_path):
        run_chains(problem(), 2, SEED, checkpoint=tmp_path)


def test_a_manifest_of_another_format_says_who_reads_it(folder):
    (folder / MANIFEST).write_text(json.dumps(manifest(format=2, bgnlm="9.8.7")))
    with refused(r"has format 2, .*bgnlm 9\.8\.7 does", folder):
        run_chains(problem(), 2, SEED, checkpoint=folder)


def test_a_manifest_that_is_a_folder(folder):
    (folder / MANIFEST).unlink()
    (folder / MANIFEST).mkdir()
    with refused("damaged or no manifest of bgnlm", folder):
        run_chains(problem(), 2, SEED, checkpoint=folder)


def test_a_manifest_that_was_cut_off_anywhere(folder):
    data = (folder / MANIFEST).read_bytes()
    for length in range(0, len(data), 11):
        (folder / MANIFEST).write_bytes(data[:length])
        with refused("damaged or no manifest of bgnlm"):
            Checkpoint(folder, problem(), np.random.SeedSequence(SEED))
        assert (folder / MANIFEST).read_bytes() == data[:length]


@pytest.mark.parametrize("seed", [SEED, None])
def test_bytes_of_a_manifest_that_are_others(folder, seed):
    """Either it is noticed or the seed, which is all that is used of a manifest, is as it was."""
    search = problem()
    data = (folder / MANIFEST).read_bytes()
    wrong = []
    for place in [*range(100), *range(100, len(data), 4)]:
        damaged = data[:place] + bytes([data[place] ^ 0x01]) + data[place + 1 :]
        (folder / MANIFEST).write_bytes(damaged)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", CheckpointWarning)
                store = Checkpoint(folder, search, None if seed is None else np.random.SeedSequence(seed))
        except CheckpointError:
            continue
        except Exception as error:
            wrong.append((place, damaged[place - 10 : place + 10], repr(error)))
            continue
        store.close()
        if (store.root.entropy, store.root.spawn_key) != (SEED, ()):
            wrong.append((place, damaged[place - 10 : place + 10], store.root))
        assert (folder / MANIFEST).read_bytes() == damaged
    assert wrong == []


def test_another_version_warns_and_goes_on(folder, whole, monkeypatch):
    chain_file(folder, 1).unlink()
    before = (folder / MANIFEST).read_bytes()
    monkeypatch.setattr(module, "__version__", "9.8.7")
    with pytest.warns(CheckpointWarning, match=r"was written by bgnlm .*, this is 9\.8\.7: the result may differ"):
        chains = run_chains(problem(), 2, SEED, checkpoint=folder)
    assert_same_chains(chains, whole)
    assert (folder / MANIFEST).read_bytes() == before


def test_warnings_point_at_the_call(folder, monkeypatch):
    monkeypatch.setattr(module, "__version__", "9.8.7")
    options = {"transforms": ["sin", "tanh"], "config": SMALL, "n_chains": 1, "random_state": SEED}
    with pytest.warns(CheckpointWarning) as caught:
        bgnlm.find_features(y, X, **options, checkpoint=folder)
    assert [warning.filename for warning in caught if warning.category is CheckpointWarning] == [__file__]


# Chain files.


@pytest.mark.parametrize("data", [b"hello", b"\0" * 100, b"PK\x03\x04 and more of it"])
def test_a_chain_file_of_something_else(folder, data):
    chain_file(folder, 1).write_bytes(data)
    with refused("chain-0001.journal is damaged at byte 0", folder):
        run_chains(problem(), 2, SEED, checkpoint=folder)
    assert len(run_chains(problem(), 1, SEED, checkpoint=folder)) == 1


def test_a_chain_file_that_is_a_folder(folder):
    chain_file(folder, 1).unlink()
    chain_file(folder, 1).mkdir()
    with refused("chain-0001.journal cannot be read: Is a directory", folder):
        run_chains(problem(), 2, SEED, checkpoint=folder)


def test_bytes_of_chain_files_that_are_others(folder):
    data = chain_file(folder, 0).read_bytes()
    for place in np.linspace(0, len(data) - 1, 60).astype(int):
        chain_file(folder, 0).write_bytes(data[:place] + bytes([data[place] ^ 0x40]) + data[place + 1 :])
        with refused("chain-0000.journal is damaged"):
            run_chains(problem(), 1, SEED, checkpoint=folder)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\n",
        b"nonsense",
        b"[]\n",
        b'{"values": {}, "arrays": {}}\n',
        b'{"values": {}, "arrays": []}\n',
        pack({"n_scored": 1}, {"scalars": np.zeros(3)}),
        pack({}, {"scalars": np.zeros(2)}),
    ],
)
def test_records_that_are_intact_and_mean_nothing(folder, payload):
    """As a later version might write them."""
    store = Checkpoint(folder, problem(), None)
    store._journal(1).append(payload)
    store.close()
    with refused("chain-0001.journal cannot be understood", folder):
        run_chains(problem(), 2, SEED, checkpoint=folder)


def test_files_of_chains_that_changed_places(folder):
    first, second = chain_file(folder, 0), chain_file(folder, 1)
    one, other = first.read_bytes(), second.read_bytes()
    first.write_bytes(other)
    second.write_bytes(one)
    with refused("chain-000", folder):
        run_chains(problem(), 2, SEED, checkpoint=folder)


@pytest.mark.parametrize(("changes", "seed"), [({"y": -y}, SEED), ({}, SEED + 1), (configured(n_candidates=30), SEED)])
def test_a_chain_file_of_another_checkpoint(folder, tmp_path, changes, seed):
    run_chains(problem(**changes), 1, seed, checkpoint=tmp_path / "other")
    shutil.copy(chain_file(tmp_path / "other", 0), chain_file(folder, 0))
    with refused("chain-0000.journal", folder):
        run_chains(problem(), 2, SEED, checkpoint=folder)


# Disks.


def disk_with_room_for(monkeypatch, n_writes):
    """A disk on which the write after so many stops in the middle."""
    n_left, write = n_writes, os.write

    def limited(file, data):
        nonlocal n_left
        n_left -= 1
        if n_left == -1:
            return write(file, data[: len(data) // 2])
        if n_left < -1:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(file, data)

    monkeypatch.setattr(os, "write", limited)


@pytest.mark.parametrize("n_writes", [0, 1, 3, 5, 7])
def test_a_full_disk(n_writes, tmp_path, whole, monkeypatch):
    with monkeypatch.context() as patch:
        disk_with_room_for(patch, n_writes)
        with refused("No space left on device.*still there"):
            run_chains(problem(), 2, SEED, checkpoint=tmp_path / "a")
    n_explored = []
    chains = run_chains(problem(), 2, SEED, checkpoint=tmp_path / "a", report=n_explored.append)
    assert len(n_explored) == 8 - n_writes
    assert_same_chains(chains, whole)


def test_a_full_disk_and_a_manifest(tmp_path, whole):
    """A real one, without room for a byte."""
    if not Path("/dev/full").exists():
        pytest.skip("needs /dev/full")
    partial = tmp_path / f"{MANIFEST}.partial"
    partial.symlink_to("/dev/full")
    with refused("No space left on device"):
        run_chains(problem(), 2, SEED, checkpoint=tmp_path)
    assert not (tmp_path / MANIFEST).exists()
    partial.unlink()
    assert_same_chains(run_chains(problem(), 2, SEED, checkpoint=tmp_path), whole)


def refuse(error):
    def refusing(*_):
        raise OSError(error, os.strerror(error))

    return refusing


def test_a_disk_that_fails_at_the_end(tmp_path, whole, monkeypatch):
    """The folder is free again all the same."""
    run_until(3, problem(), 2, tmp_path / "a")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", refuse(errno.EIO))
        with refused("Input/output error"):
            run_chains(problem(), 2, SEED, checkpoint=tmp_path / "a")
    assert_same_chains(run_chains(problem(), 2, SEED, checkpoint=tmp_path / "a"), whole)


PROGRAM = """if True:
    import sys
    import numpy as np
    from tests.search.test_description import problem
    from bgnlm.errors import CheckpointError
    from bgnlm.search.checkpoint import Checkpoint
    from bgnlm.search.runner import run_chains
    folder, what, limit = sys.argv[1:]
    if what == "hold":
        store = Checkpoint(folder, problem(), None)
        print("held", flush=True)
        sys.stdin.read()
    else:
        import resource
        if what == "size":
            resource.setrlimit(resource.RLIMIT_FSIZE, (int(limit), int(limit)))
        else:
            resource.setrlimit(resource.RLIMIT_NOFILE, (int(limit), int(limit)))
        try:
            chains = run_chains(problem(), 2 if what == "size" else 40, 3, checkpoint=folder)
            print("done", len(chains))
        except CheckpointError as error:
            print(error)
"""


def program(*arguments):
    command = [sys.executable, "-W", "error", "-c", PROGRAM, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_files_may_only_be_so_long(tmp_path, whole, finished):
    pytest.importorskip("resource")
    folder = tmp_path / "a"
    limit = (chain_file(finished, 0).stat().st_size * 3) // 4
    message, _ = program(folder, "size", limit).communicate(timeout=120)
    assert re.search(r"chain-0000.journal cannot be written: File too large\..*repeat the call", message), message
    assert 0 < chain_file(folder, 0).stat().st_size < limit
    assert_same_chains(run_chains(problem(), 2, SEED, checkpoint=folder), whole)


def test_many_chains_and_few_open_files(tmp_path):
    """There are as many files as chains, and the system may have fewer open at a time."""
    pytest.importorskip("resource")
    message, _ = program(tmp_path / "a", "open", 36).communicate(timeout=120)
    assert message == "done 40\n"


# Locks.


def test_a_folder_that_is_in_use_is_refused(folder, whole):
    """Until its user is gone, by whatever means."""
    pytest.importorskip("fcntl")
    user = program(folder, "hold", 0)
    try:
        assert user.stdout.readline() == "held\n"
        with refused("is being written by another process", folder):
            run_chains(problem(), 2, SEED, checkpoint=folder)
    finally:
        user.kill()
        user.communicate()
    assert user.returncode == -signal.SIGKILL
    assert_same_chains(run_chains(problem(), 2, SEED, checkpoint=folder), whole)


def test_a_folder_that_is_in_use_here_is_refused(folder):
    pytest.importorskip("fcntl")
    store = Checkpoint(folder, problem(), None)
    with refused("is being written", folder):
        run_chains(problem(), 2, SEED, checkpoint=folder)
    store.close()
    run_chains(problem(), 2, SEED, checkpoint=folder)


def test_a_run_that_failed_leaves_the_folder_free(folder):
    pytest.importorskip("fcntl")
    with refused("another search", folder):
        run_chains(problem(y=-y), 2, SEED, checkpoint=folder)
    chain_file(folder, 1).unlink()
    with pytest.raises(ZeroDivisionError):
        run_chains(problem(), 2, SEED, checkpoint=folder, report=StopAfter(1, ZeroDivisionError))
    Checkpoint(folder, problem(), None).close()


def test_a_file_system_without_locks_is_not_another_process(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(fcntl, "flock", refuse(errno.ENOLCK))
    message = ""
    try:
        Checkpoint(tmp_path, problem(), None).close()
    except CheckpointError as error:
        message = str(error)
    assert "another process" not in message
