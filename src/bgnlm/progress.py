"""A line in the terminal that shows how far a search is."""

import shutil
import sys
import time
from typing import TextIO

from bgnlm.search.runner import RunProgress

_PATIENCE = 1.0  # seconds a search may take before a bar is of use
_EVERY = 0.1
_CELLS = 20


class ProgressBar:
    """Draws the state of a run, over what was drawn before; nothing for short runs."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = sys.stderr if stream is None else stream
        self._drawn = 0.0
        self._width = 0

    def __call__(self, progress: RunProgress) -> None:
        """Draw, at most every tenth of a second."""
        now = time.perf_counter()
        if progress.elapsed < _PATIENCE or now - self._drawn < _EVERY:
            return
        self._drawn = now
        line = describe(progress)[: max(shutil.get_terminal_size().columns - 1, 20)]
        self._stream.write("\r" + line.ljust(self._width))
        self._stream.flush()
        self._width = len(line)

    def close(self) -> None:
        """Clear the line."""
        if self._width:
            self._stream.write("\r" + " " * self._width + "\r")
            self._stream.flush()


def describe(progress: RunProgress) -> str:
    """Return the state of a run in one line."""
    filled = int(progress.done * _CELLS)
    return (
        f"[{'#' * filled}{'.' * (_CELLS - filled)}] {progress.done:4.0%} "
        f"chain {progress.latest.chain + 1}/{progress.n_chains}, "
        f"population {progress.latest.n_explored}/{progress.latest.n_populations}, "
        f"{_clock(progress.seconds_left)} left | best {progress.best_log_joint:.2f}, mass {progress.log_mass:.2f}, "
        f"{progress.n_models:,} models, {progress.n_features:,} features"
    )


def _clock(seconds: float) -> str:
    if not seconds < 360_000:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}" if minutes >= 60 else f"{minutes}:{rest:02d}"
