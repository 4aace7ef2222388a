"""The container, and how little it takes to import it."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from bgnlm.datasets import Dataset
from bgnlm.datasets.frames import read_frame
from bgnlm.errors import DataError


def small(**changes):
    X = pd.DataFrame({"a": [1.0, 2.0, 3.0]}, index=[5, 7, 9])
    y = pd.Series([0, 1, 1], index=X.index, name="b")
    return Dataset(**{"name": "small", "X": X, "y": y, "table": X.assign(b=y), "description": "d"} | changes)


def test_training_and_test_rows():
    data = small(is_train=np.array([True, False, True]))
    (X, y), (X_test, y_test) = data.train, data.test
    assert (list(X["a"]), list(y), list(X.index)) == ([1.0, 3.0], [0, 1], [5, 9])
    assert (list(X_test["a"]), list(y_test), list(y_test.index)) == ([2.0], [1], [7])
    assert repr(data) == "<Dataset small: 3 rows, 1 inputs, response b, 2 for training>"


@pytest.mark.parametrize("part", ["train", "test"])
def test_no_split(part):
    with pytest.raises(DataError, match=r"'small' is not split into training and test rows\. Use X and y"):
        getattr(small(), part)
    assert repr(small()) == "<Dataset small: 3 rows, 1 inputs, response b>"


def test_it_is_not_to_be_changed():
    with pytest.raises(AttributeError):
        small().y = None


def test_columns_have_the_simplest_type_that_holds_them():
    frame = read_frame('word,count,number\n"a,b",1,0.1\nc,-2,3\n')
    assert frame.to_dict("list") == {"word": ["a,b", "c"], "count": [1, -2], "number": [0.1, 3.0]}
    assert [frame[name].dtype for name in ("count", "number")] == [np.int64, np.float64]


def test_numbers_are_read_to_the_last_bit():
    texts = ["0.421795702407947", "4.77200619184862", "13258.5975423735", "1e-08", "0.1", "2.2250738585072014e-308"]
    assert list(read_frame("x\n" + "\n".join(texts))["x"]) == [float(text) for text in texts]


def test_the_import_is_light():
    code = "import sys, bgnlm.datasets; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pandas", "pooch", "requests", "numba", "scipy"} & set(loaded)
