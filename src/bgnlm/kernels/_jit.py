"""The one decorator that compiles kernels."""

from collections.abc import Callable
from typing import Any

import numba

# "numpy": a division by zero gives inf instead of raising, as in the interpreted twin under np.errstate.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}


def jit(function: Callable[..., Any]) -> Any:
    """Compile on first call; keep the result on disk where a folder for it is writable."""
    try:
        return numba.njit(cache=True, **_OPTIONS)(function)
    except RuntimeError:  # Numba found no writable place for its cache
        return numba.njit(**_OPTIONS)(function)
