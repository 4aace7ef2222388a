"""The text of a table as a data frame, with every digit of every number."""

from __future__ import annotations

import csv
from io import StringIO
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import pandas as pd


def read_frame(text: str) -> pd.DataFrame:
    """Read comma separated text with a header; a column is whole numbers, numbers or texts.

    Not left to pandas, which does not round to the nearest number in all its versions.
    """
    import pandas as pd

    header, *rows = csv.reader(StringIO(text))
    return pd.DataFrame({name: _typed(cells) for name, cells in zip(header, zip(*rows, strict=True), strict=True)})


def _typed(cells: tuple[str, ...]) -> Any:
    for number, dtype in ((int, np.int64), (float, np.float64)):
        try:
            return np.array([number(cell) for cell in cells], dtype=dtype)
        except ValueError:
            continue
    return list(cells)
