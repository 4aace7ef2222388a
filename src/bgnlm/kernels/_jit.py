"""The decorators that compile kernels."""

from collections.abc import Callable
from typing import Any

import numba
from numba.extending import register_jitable

# "numpy": a division by zero gives inf instead of raising, as in the interpreted twin under np.errstate.
_OPTIONS: dict[str, Any] = {"nogil": True, "error_model": "numpy"}
# Sums may be added up in another order, several terms at a time; infinities and NaN keep their meaning.
_REORDERING: dict[str, Any] = {"fastmath": {"reassoc", "contract"}}


def jit(function: Callable[..., Any]) -> Any:
    """Compile on first call; keep the result on disk where a folder for it is writable."""
    return _compile(function, _OPTIONS)


def reordering_jit(function: Callable[..., Any]) -> Any:
    """As `jit`, for long sums whose order does not matter."""
    return _compile(function, _OPTIONS | _REORDERING)


def inlined_jit(function: Callable[..., Any]) -> Any:
    """As `jit`, for a large function that compiled code calls in one place only.

    Its code becomes part of the caller. Otherwise LLVM optimises it, and all that it calls, once more in every caller
    and every caller of these.
    """
    return _compile(function, _OPTIONS | {"inline": "always"})


def both_forms(function: Callable[..., Any]) -> Any:
    """Leave a function as it is for Python and make it callable from compiled code: one source, two forms."""
    return register_jitable(error_model="numpy")(function)


def _compile(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # Numba found no writable place for its cache
        return numba.njit(**options)(function)
