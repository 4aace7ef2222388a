"""A table and a response in a few numbers."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.page.html import Markup, join, tag
from bgnlm.page.rows import plain

_MOST_COLUMNS = 100
_MOST_LEVELS = 4


@dataclass(frozen=True, kw_only=True, eq=False)
class PageData:
    """Rows that the page is about: a data frame in the order of the training data, responses, offset."""

    frame: Any
    y: Any = None
    offset: Any = None


def data_summary(model: Any, data: PageData | None) -> Markup:
    """Columns with their values, and how well the model predicts the response."""
    if data is None:
        words = "No data were given with this report. A model file keeps none, only the range of each column."
        return tag("p", words, class_="note")
    names = model.coding_.input_names
    rows = [_column(name, data.frame.iloc[:, place]) for place, name in enumerate(names[:_MOST_COLUMNS])]
    if data.y is not None:
        import pandas as pd

        rows.append(_column(f"{model.response_name_} (response)", pd.Series(np.asarray(data.y))))
    more = f", the first {_MOST_COLUMNS} of {len(names)} columns" if len(names) > _MOST_COLUMNS else ""
    headers = ["column", "kind", "missing", "values"]
    return join([plain(f"{len(data.frame):,} rows{more}", headers, rows), _score(model, data)])


def _column(name: str, values: Any) -> list[object]:
    present = values.dropna()
    missing = f"{len(values) - len(present):,}"
    if present.map(lambda value: isinstance(value, bool | np.bool_)).all():
        return [tag("code", name), "yes or no", missing, f"yes in {100 * present.astype(float).mean():.1f} %"]
    if present.map(lambda value: isinstance(value, str)).any():
        counts = present.astype(str).value_counts()
        shown = [join([tag("code", level), f" {count:,}"]) for level, count in counts.head(_MOST_LEVELS).items()]
        more = f", and {len(counts) - _MOST_LEVELS:,} more" if len(counts) > _MOST_LEVELS else ""
        return [tag("code", name), f"{len(counts):,} categories", missing, join([join(shown, ", "), more])]
    return [tag("code", name), "numbers", missing, _in_numbers(present.to_numpy(dtype=np.float64))]


def _in_numbers(values: FloatArray) -> str:
    low, middle, high = np.quantile(values, [0.0, 0.5, 1.0])
    return f"{low:.4g} to {high:.4g}, median {middle:.4g}, mean {values.mean():.4g}, sd {values.std():.4g}"


def _score(model: Any, data: PageData) -> Markup:
    if data.y is None:
        return Markup("")
    if not hasattr(model, "classes_") and len(set(data.y.tolist())) == 1:
        return tag("p", "All rows have the same response: there is no variation that a prediction could explain.")
    how = {} if data.offset is None else {"offset": data.offset}
    score = model.score(data.frame, data.y, **how)
    text = f"R² of the prediction is {score:.4f}."
    if hasattr(model, "classes_"):
        text = f"The most probable class is right in {100 * score:.1f} % of these rows."
    known = "If the model was fitted to these rows, that is better than for new ones."
    return tag("p", f"{text} {known}")
