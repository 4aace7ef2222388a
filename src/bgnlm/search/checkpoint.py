"""Checkpoints: a folder with a manifest, which says what the run is about, and a journal of populations for each chain.

Written by the process that asked for the chains, without pickle. Discoveries, one after the other, are a chain: what is
read back is absorbed as if it had just been found, and the result is the same to the last bit.
"""

import contextlib
import errno
import json
import os
import warnings
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np

from bgnlm._version import __version__
from bgnlm.errors import BgnlmError, CheckpointError, CheckpointWarning, SettingError
from bgnlm.features import Feature, parse, render
from bgnlm.search.description import describe, differences
from bgnlm.search.gmjmcmc import Discovery
from bgnlm.search.journal import Journal
from bgnlm.search.problem import SearchProblem
from bgnlm.search.record import decode, encode

MANIFEST = "manifest.json"
_LOCK = "lock"
_FORMAT = 1


class Checkpoint:
    """A folder that holds the populations of a run.

    Parameters
    ----------
    folder
        It is made if it does not exist.
    problem
        What the run is about; a folder of another one is refused.
    root
        The seed of the run; None for the one that is there, or any.
    """

    def __init__(self, folder: str | Path, problem: SearchProblem, root: np.random.SeedSequence | None) -> None:
        if not isinstance(folder, str | os.PathLike) or "\0" in str(folder):
            raise SettingError(f"checkpoint must be the path of a folder; got {folder!r}.")
        self._folder = Path(folder)
        self._problem = problem
        self._journals: dict[int, Journal] = {}
        self._texts: dict[Feature, str] = {}
        self._features: dict[str, Feature] = {}
        settings = describe(problem)
        _make_folder(self._folder)
        self._lock = _lock(self._folder / _LOCK)
        try:
            self.root = self._agree(settings, root)
            self._identity = _checksum(_plain(self.root), settings)
        except BaseException:
            self.close()
            raise

    def _agree(self, settings: dict[str, Any], root: np.random.SeedSequence | None) -> np.random.SeedSequence:
        """Compare with the manifest, or write it."""
        path = self._folder / MANIFEST
        if not path.exists():
            root = np.random.SeedSequence() if root is None else root
            content = {"format": _FORMAT, "bgnlm": __version__, "seed": _plain(root), "settings": settings}
            _write(path, content | {"checksum": _checksum(content["seed"], settings)})
            return root
        there = _read(path)
        seed = there["seed"]
        changed = list(differences(there["settings"], json.loads(json.dumps(settings))))
        if root is not None and _plain(root) != seed:
            changed.append(f"random_state was {_shown(seed)} and is {_shown(_plain(root))}")
        if changed:
            raise CheckpointError(
                f"The checkpoint {self._folder} is of another search: {'; '.join(changed)}. Nothing was changed. "
                "Repeat the call as it was, or name another folder."
            )
        if there["bgnlm"] != __version__:
            warnings.warn(
                f"The checkpoint {self._folder} was written by bgnlm {there['bgnlm']}, this is {__version__}: the "
                "result may differ from that of an uninterrupted run.",
                CheckpointWarning,
                stacklevel=6,
            )
        return np.random.SeedSequence(**seed)

    def restore(self, chain: int) -> list[Discovery]:
        """Return what a chain found so far."""
        journal = self._journal(chain)
        records, journal.records = journal.records, []
        try:
            return [self._checked(decode(record, self._parse)) for record in records]
        except (ValueError, KeyError, TypeError, AttributeError, BgnlmError) as error:
            raise CheckpointError(
                f"{self._path(chain)} cannot be understood ({error}); nothing was changed. Remove the file to run its "
                "chain from the beginning, or name another folder."
            ) from None

    def _checked(self, found: Discovery) -> Discovery:
        changes = found.changes
        for feature, cost in zip(changes.representatives, changes.costs.tolist(), strict=True):
            if self._problem.cost(feature) != cost:
                raise CheckpointError(f"{feature} costs {self._problem.cost(feature)} by the prior, not {cost}")
        return found

    def append(self, chain: int, discovery: Discovery) -> None:
        """Write down what a chain found; when this returns, it survives the end of this process."""
        self._journal(chain).append(encode(discovery, self._render))

    def close(self) -> None:
        """Close all files and let others use the folder."""
        with contextlib.ExitStack() as stack:
            stack.callback(os.close, self._lock)
            for journal in self._journals.values():
                stack.callback(journal.close)

    def _journal(self, chain: int) -> Journal:
        if chain not in self._journals:
            self._journals[chain] = Journal(self._path(chain), f"{self._identity} {chain}".encode())
        return self._journals[chain]

    def _path(self, chain: int) -> Path:
        return self._folder / f"chain-{chain:04d}.journal"

    def _render(self, feature: Feature) -> str:
        """Text of a feature; those of a population come again and again."""
        if feature not in self._texts:
            self._texts[feature] = render(feature)
        return self._texts[feature]

    def _parse(self, text: str) -> Feature:
        if text not in self._features:
            names = [component.name for component in self._problem.components]
            self._features[text] = parse(text, self._problem.all_transforms, names)
        return self._features[text]


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        names = {path.name for path in folder.iterdir()}
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {folder} cannot be used: {error.strerror or error}. Name another folder."
        ) from None
    if MANIFEST in names:
        _read(folder / MANIFEST)
    elif names - {_LOCK, _temporary(Path(MANIFEST)).name}:
        raise CheckpointError(
            f"The folder {folder} is no checkpoint: it has files, but no {MANIFEST}. Nothing was changed. Name a "
            "folder that is empty or does not exist."
        )


def _lock(path: Path) -> int:
    """Keep others from writing to the folder; the lock ends with the process, however that ends."""
    try:
        file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {path.parent} cannot be written: {error.strerror or error}. Name another folder."
        ) from None
    try:
        import fcntl
    except ImportError:  # there is no such lock on Windows
        return file
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno not in (errno.EWOULDBLOCK, errno.EACCES):  # the file system has no locks
            return file
        os.close(file)
        raise CheckpointError(
            f"The checkpoint {path.parent} is being written by another process. Wait for it, or name another folder."
        ) from None
    return file


def _plain(seed: np.random.SeedSequence) -> dict[str, Any]:
    entropy: Any = seed.entropy
    is_one = np.ndim(entropy) == 0
    return {
        "entropy": int(entropy) if is_one else [int(number) for number in entropy],
        "spawn_key": [int(number) for number in seed.spawn_key],
    }


def _shown(seed: dict[str, Any]) -> str:
    return f"{seed['entropy']}" + (f" with spawn_key {seed['spawn_key']}" if seed["spawn_key"] else "")


def _checksum(seed: Any, settings: Any) -> str:
    return blake2b(json.dumps([seed, settings]).encode(), digest_size=16).hexdigest()


def _temporary(path: Path) -> Path:
    return path.with_name(path.name + ".partial")


def _write(path: Path, content: dict[str, Any]) -> None:
    """Write a file that is there as a whole or not at all."""
    temporary = _temporary(path)
    try:
        with temporary.open("w") as file:
            json.dump(content, file, indent=1)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        raise CheckpointError(f"{path} cannot be written: {error.strerror or error}. Name another folder.") from None


def _read(path: Path) -> dict[str, Any]:
    """Read a manifest of the format that is understood."""
    try:
        content: dict[str, Any] = json.loads(path.read_text())
        version, writer = content["format"], content["bgnlm"]
        if version == _FORMAT and content["checksum"] != _checksum(content["seed"], content["settings"]):
            raise ValueError("wrong checksum")
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise CheckpointError(
            f"{path} is damaged or no manifest of bgnlm ({error!r}); nothing was changed. Restore it from a copy, or "
            "name another folder."
        ) from None
    if version != _FORMAT:
        raise CheckpointError(
            f"{path} has format {version}, which this version of bgnlm does not read; bgnlm {writer} does. "
            "Use that, or name another folder."
        )
    return content
