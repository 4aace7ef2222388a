"""Features and models as data frames."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.features import depth, operation_count, render
from bgnlm.posterior.average import ModelAverage
from bgnlm.posterior.summarize import Posterior

MOST_MODELS = 1000
NO_ERRORS = np.empty(0)


def features_table(posterior: Posterior, average: ModelAverage) -> Any:
    """Features by probability, with complexity and averaged coefficient; 0 where no averaged model has the feature."""
    import pandas as pd

    effects = average.effects()
    each = np.array([effects.get(feature, (0.0, 0.0)) for feature in posterior.features]).reshape(-1, 2)
    return pd.DataFrame(
        {
            "expression": pd.Series([render(feature) for feature in posterior.features], dtype="str"),
            "probability": posterior.inclusion_probabilities,
            "complexity": np.array([operation_count(feature) for feature in posterior.features], np.int64),
            "depth": np.array([depth(feature) for feature in posterior.features], np.int64),
            "coefficient": each[:, 0],
            "sd": each[:, 1],
        }
    )


def models_table(posterior: Posterior, weight_errors: FloatArray = NO_ERRORS) -> Any:
    """Return the most probable models; with Monte Carlo errors of the log posterior where weights are averaged over."""
    import pandas as pd

    n_models = min(len(posterior), MOST_MODELS)
    errors = np.full(n_models, np.nan)
    errors[: len(weight_errors)] = weight_errors[:n_models]
    return pd.DataFrame(
        {
            "features": pd.Series(
                [tuple(map(render, posterior.features_of(model))) for model in range(n_models)], dtype=object
            ),
            "probability": posterior.model_probabilities[:n_models],
            "log_posterior": posterior.found.log_joint[:n_models],
            "size": posterior.found.rows.sizes[:n_models].astype(np.int64),
            **({"mc_error": errors} if len(weight_errors) else {}),
        }
    )


def by_class(tables: Sequence[Any], classes: Sequence[Any]) -> Any:
    """Put the tables of several classes below each other, with the class in the first column."""
    import pandas as pd

    for table, one in zip(tables, classes, strict=True):
        table.insert(0, "class", [one] * len(table))
    return pd.concat(tables, ignore_index=True)
