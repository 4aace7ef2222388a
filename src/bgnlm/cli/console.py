"""What the commands say on the error stream: one line each, with the name of the program."""

import sys
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

# Ends the line of a progress bar that may be there.
_CLEAR = "\r\x1b[K"


def tell(message: object) -> None:
    """Print a line on the error stream."""
    if sys.stderr is not None:
        start = _CLEAR if sys.stderr.isatty() else ""
        print(f"{start}bgnlm: {' '.join(str(message).split())}", file=sys.stderr, flush=True)


def is_watched() -> bool:
    """Whether a person sees the error stream."""
    return sys.stderr is not None and sys.stderr.isatty()


@contextmanager
def warnings_as_lines() -> Iterator[None]:
    """Show each warning once, without the line of Python that it came from.

    Deprecations are for those who write programs. They are dropped here, not by a filter: libraries set filters too.
    """
    told = set()

    def show(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        if str(message) not in told and not issubclass(category, DeprecationWarning | PendingDeprecationWarning):
            told.add(str(message))
            tell(f"warning: {message}")

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def escape_what_cannot_be_shown() -> None:
    """Let characters that the encoding of the terminal lacks appear as escapes, not end the program."""
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def quoted(names: Iterable[str]) -> str:
    """Names for a message, not too many of them."""
    every = [repr(name) for name in names]
    return ", ".join(every) if len(every) <= 10 else f"{', '.join(every[:9])} and {len(every) - 9} more"


def counted(n: int, noun: str) -> str:
    """A number of things."""
    return f"{n} {noun}" if n == 1 else f"{n} {noun}s"
