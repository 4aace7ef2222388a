"""Ctrl-C: what was found is never thrown away because of it."""

import contextlib
import signal
import sys
import threading
from collections.abc import Iterator
from typing import Any


class Interrupts:
    """Counts Ctrl-C."""

    def __init__(self) -> None:
        self.count = 0

    @contextlib.contextmanager
    def heeded(self) -> Iterator[None]:
        """While chains run: once to stop after what is under way, twice to stop without waiting, then as usual."""

        def interrupt(*_: object) -> None:
            self.count += 1
            if self.count > 1:
                signal.signal(signal.SIGINT, usual)
            else:
                _say("Stopping after the populations under way; Ctrl-C again not to wait.")

        with _taken_over(interrupt) as usual:
            yield

    @contextlib.contextmanager
    def held_back(self) -> Iterator[None]:
        """While results are put together: once is noted, twice is as usual."""

        def interrupt(*arguments: Any) -> None:
            self.count += 1
            if self.count > 1:
                signal.signal(signal.SIGINT, usual)
                usual(*arguments)
            else:
                _say("What was found is being put together; Ctrl-C again to give it up.")

        with _taken_over(interrupt) as usual:
            yield


@contextlib.contextmanager
def _taken_over(handler: Any) -> Iterator[Any]:
    """Put a handler in the place of the usual one, where that is possible; provide the usual one."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield usual
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield usual
    finally:
        signal.signal(signal.SIGINT, usual)


def _say(message: str) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        print(f"\n{message}", file=sys.stderr)
