"""How R draws without replacement, to see that the stored row lists are what the authors' seeds give."""

from collections.abc import Callable

import numpy as np


def draw(seed: int, n: int, size: int, *, rejection: bool) -> list[int]:
    """What ``set.seed(seed); sample.int(n, size)`` gives, by rejection since R 3.6 and by rounding before."""
    uniform = twister(seed)
    left = list(range(1, n + 1))
    drawn = []
    for _ in range(size):
        place = by_rejection(uniform, len(left)) if rejection else int(len(left) * uniform())
        last = left.pop()
        drawn.append(left[place] if place < len(left) else last)
        if place < len(left):
            left[place] = last
    return drawn


def twister(seed: int) -> Callable[[], float]:
    """R's default generator of uniform numbers: the state comes from a congruential one that was run for a while."""
    states = []
    for _ in range(50 + 625):
        seed = (69069 * seed + 1) % 2**32
        states.append(seed)
    bits = np.random.MT19937()
    # The first of the last 625 would be the position, which R then sets to the end.
    key = np.array(states[-624:], dtype=np.uint32)
    bits.state = {"bit_generator": "MT19937", "state": {"key": key, "pos": 624}}
    return lambda: int(bits.random_raw()) * 2.3283064365386963e-10


def by_rejection(uniform: Callable[[], float], n: int) -> int:
    """A whole number below n: as few bits as can hold it, drawn again while it is too large."""
    n_bits = (n - 1).bit_length()
    while True:
        value = 0
        for _ in range(0, n_bits + 1, 16):
            value = 65536 * value + int(65536 * uniform())
        value %= 2**n_bits
        if value < n:
            return value
