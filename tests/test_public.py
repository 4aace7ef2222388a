"""What a user sees first: the public names, and how little `import bgnlm` loads."""

import subprocess
import sys

import pytest

import bgnlm

HEAVY = ["numba", "sklearn", "matplotlib", "pandas", "sympy", "dask", "scipy"]


def _run(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_everything_public_can_be_had():
    assert sum(not name.startswith("_") for name in bgnlm.__all__) <= 17
    for name in bgnlm.__all__:
        assert getattr(bgnlm, name) is not None
    assert set(bgnlm.__all__) <= set(dir(bgnlm))


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'BGNLM'"):
        _ = bgnlm.BGNLM


@pytest.mark.parametrize("statement", ["import bgnlm", "import bgnlm.features", "from bgnlm import parse, Transform"])
def test_imports_stay_light(statement):
    loaded = _run(f"import sys; {statement}; print(' '.join(sys.modules))").split()
    assert not [name for name in HEAVY if name in loaded]


def test_matplotlib_is_loaded_when_something_is_drawn():
    loaded = _run("import sys; from bgnlm import *; bgnlm_plot = plot; print(' '.join(sys.modules))").split()
    assert "bgnlm.plot" in loaded
    assert "matplotlib" not in loaded


def test_the_next_process_finds_the_compiled_kernels(tmp_path):
    """The first process writes the cache, the second only reads it."""
    code = (
        "import numpy as np, bgnlm; from bgnlm.kernels import gram;"
        "bgnlm.enumerate_models(np.array([1., 3., 2., 5., 4., 7.]), np.arange(6.)[:, None]);"
        "print(sum(gram.eliminate_all_subsets.stats.cache_hits.values()),"
        "sum(gram.eliminate_all_subsets.stats.cache_misses.values()))"
    )
    environment = {**__import__("os").environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    outputs = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True).stdout
        for _ in range(2)
    ]
    assert [output.split() for output in outputs] == [["0", "1"], ["1", "0"]]


def test_kernels_work_where_nothing_can_be_cached(tmp_path, monkeypatch):
    import numba

    from bgnlm.kernels._jit import jit

    def no_cache(*, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return numba_njit(**options)

    numba_njit = numba.njit
    monkeypatch.setattr(numba, "njit", no_cache)
    assert jit(lambda x: x + 1)(2) == 3
