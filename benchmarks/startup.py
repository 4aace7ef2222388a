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
    "import numba, sklearn": "import numba, sklearn",
    "from bgnlm import BGNLMRegressor": "from bgnlm import BGNLMRegressor",
}
_DATA = "import numpy as np, bgnlm\nrng = np.random.default_rng(1)\nX = rng.normal(size=(100, 6))\n"
FIRST_SCORES = {
    "Gaussian scoring": _DATA + "bgnlm.enumerate_models(X[:, 0] + rng.normal(size=100), X)",
    "logistic fit": _DATA + "bgnlm.log_marginal((X[:, 0] > 0.3) ^ (X[:, 1] > 1), X, family='binomial')",
    "fit of a regressor": _DATA + "bgnlm.BGNLMRegressor(random_state=1).fit(X[:30], X[:30, 0] + rng.normal(size=30))",
    "fit of a classifier": _DATA
    + "bgnlm.BGNLMClassifier(random_state=1).fit(X[:30], X[:30, 0] + rng.normal(size=30) > 0)",
    "Poisson fit": _DATA + "bgnlm.log_marginal(rng.poisson(np.exp(X[:, 0])), X, family='poisson')",
}
_TIMED = "from time import perf_counter; start = perf_counter()\n{}\nprint(perf_counter() - start)"


def seconds(code: str, cache: str, bytecode: str) -> float:
    """Seconds that the code takes in a new process, the start of Python itself apart."""
    environment = os.environ | {"NUMBA_CACHE_DIR": cache, "PYTHONPYCACHEPREFIX": bytecode}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # as after an installation
    done = subprocess.run(
        [sys.executable, "-c", _TIMED.format(code)], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


def main() -> None:
    with tempfile.TemporaryDirectory() as bytecode:
        for name, code in IMPORTS.items():
            seconds(code, "", bytecode)
            print(f"{name:<42} {statistics.median(seconds(code, '', bytecode) for _ in range(REPEATS)):6.3f} s")
        for name, code in FIRST_SCORES.items():
            with tempfile.TemporaryDirectory() as cache:
                print(f"{f'first {name}, nothing compiled':<42} {seconds(code, cache, bytecode):6.3f} s")
                again = statistics.median(seconds(code, cache, bytecode) for _ in range(REPEATS))
                print(f"{'the same in the next process':<42} {again:6.3f} s")


if __name__ == "__main__":
    main()
