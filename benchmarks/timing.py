"""How the benchmarks take the time."""

from collections.abc import Callable
from time import perf_counter


def best_time(action: Callable[[], object], repeats: int) -> float:
    """Seconds of the fastest of several runs, after one that does not count."""
    action()
    times = []
    for _ in range(repeats):
        start = perf_counter()
        action()
        times.append(perf_counter() - start)
    return min(times)
