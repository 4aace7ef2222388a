"""What a new process costs: ``python -m benchmarks.startup``."""

import os
import statistics
import subprocess
import sys
import tempfile

REPEATS = 7

IMPORTS = {
    "import numpy": "import numpy",
    "import bgnlm": "import bgnlm",
    "import numba": "import numba",
    "import bgnlm.features": "import bgnlm.features",
}
FIRST_SCORE = (
    "import numpy as np, bgnlm\n"
    "rng = np.random.default_rng(1)\n"
    "X = rng.normal(size=(100, 6))\n"
    "bgnlm.enumerate_models(X[:, 0] + rng.normal(size=100), X)\n"
)
_TIMED = "from time import perf_counter; start = perf_counter()\n{}\nprint(perf_counter() - start)"


def seconds(code: str, cache: str) -> float:
    """Seconds that the code takes in a new process, the start of Python itself apart."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache}
    done = subprocess.run(
        [sys.executable, "-c", _TIMED.format(code)], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as cache:
        for name, code in IMPORTS.items():
            print(f"{name:<42} {statistics.median(seconds(code, cache) for _ in range(REPEATS)):6.3f} s")
        print(f"{'first Gaussian scoring, nothing compiled':<42} {seconds(FIRST_SCORE, cache):6.3f} s")
        again = statistics.median(seconds(FIRST_SCORE, cache) for _ in range(REPEATS))
        print(f"{'the same in the next process':<42} {again:6.3f} s")


if __name__ == "__main__":
    main()
