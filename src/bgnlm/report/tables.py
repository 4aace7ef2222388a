"""Features and models as data frames."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bgnlm._typing import AnyArray, FloatArray
from bgnlm.features import Component, depth, operation_count, render
from bgnlm.latent.posterior import LatentPosterior
from bgnlm.posterior.average import ModelAverage
from bgnlm.posterior.summarize import Posterior

MOST_MODELS = 1000
NO_ERRORS = np.empty(0)


def features_table(posterior: Posterior, average: ModelAverage) -> Any:
    """Features by probability, with complexity and averaged coefficient; 0 where no averaged model has the feature."""
    import pandas as pd

    effects = average.effects()
    both = zip(posterior.features, posterior.inclusion_probabilities.tolist(), strict=True)
    listed = [(feature, probability) for feature, probability in both if not isinstance(feature, Component)]
    each = np.array([effects.get(feature, (0.0, 0.0)) for feature, _ in listed]).reshape(-1, 2)
    return pd.DataFrame(
        {
            "expression": pd.Series([render(feature) for feature, _ in listed], dtype="str"),
            "probability": np.array([probability for _, probability in listed], np.float64),
            "complexity": np.array([operation_count(feature) for feature, _ in listed], np.int64),
            "depth": np.array([depth(feature) for feature, _ in listed], np.int64),
            "coefficient": each[:, 0],
            "sd": each[:, 1],
        }
    )


def components_table(posterior: Posterior, average: ModelAverage) -> Any:
    """Latent components by probability, with their hyperparameters: mean and standard deviation where they are in."""
    import pandas as pd

    columns = ["component", "probability", "hyperparameter", "mean", "sd", "lower", "upper"]
    if average.latent is None:
        return pd.DataFrame({name: [] for name in columns})
    values = hyperparameters(average)
    rows: list[tuple[str, float, str, float, float, float, float]] = []
    for feature, probability in zip(posterior.features, posterior.inclusion_probabilities.tolist(), strict=True):
        if isinstance(feature, Component):
            found = values.get(feature.name) or {"": Summary(np.nan, np.nan, np.nan, np.nan)}
            rows += [(feature.name, probability, name, *summary) for name, summary in found.items()]
    return pd.DataFrame(rows, columns=columns)


class Summary(NamedTuple):
    """Posterior mean and standard deviation, and the ends of a 90 % interval."""

    mean: float
    sd: float
    lower: float
    upper: float


def hyperparameters(average: ModelAverage) -> dict[str, dict[str, Summary]]:
    """Hyperparameters by component, over the models that have it."""
    latent = average.latent
    assert latent is not None
    collected: dict[int, list[tuple[float, FloatArray]]] = {}
    for m, probability in enumerate(average.probabilities.tolist()):
        for component, values in latent.hyperparameters(m).items():
            collected.setdefault(component, []).append((probability, values))
    return {
        latent.models.names[component]: _summaries(latent, component, entries)
        for component, entries in collected.items()
    }


def _summaries(
    latent: LatentPosterior, component: int, entries: Sequence[tuple[float, FloatArray]]
) -> dict[str, Summary]:
    weights = np.array([probability for probability, _ in entries])
    weights /= weights.sum()
    each = [latent.natural(component, values) for _, values in entries]
    found = {}
    for name in each[0]:
        values = np.array([natural[name] for natural in each])
        mean = float(weights @ values)
        deviation = float(np.sqrt(max(float(weights @ np.square(values - mean)), 0.0)))
        found[name] = Summary(mean, deviation, *_quantiles(values, weights))
    return found


def _quantiles(values: FloatArray, weights: FloatArray) -> tuple[float, float]:
    """Ends of a 90 % interval of a weighted sample, between its values."""
    order = np.argsort(values, kind="stable")
    middles = np.cumsum(weights[order]) - 0.5 * weights[order]
    low, high = np.interp([0.05, 0.95], middles, values[order])
    return float(low), float(high)


def effects_table(average: ModelAverage, component: int, values: AnyArray, level: float) -> Any:
    """A latent component over its positions, averaged over the models that have it: mean, sd, ends of an interval."""
    import pandas as pd
    from scipy import stats

    assert average.latent is not None
    found = [(p, average.latent.effect(m, component)) for m, p in enumerate(average.probabilities.tolist())]
    present = [(p, effect) for p, effect in found if effect is not None]
    table = pd.DataFrame({"position": values})
    if not present:
        return table.assign(mean=np.nan, sd=np.nan, lower=np.nan, upper=np.nan)
    weights = np.array([p for p, _ in present])
    weights /= weights.sum()
    means = np.array([effect.mean for _, effect in present])
    deviations = np.array([effect.deviation for _, effect in present])
    mean = weights @ means
    sd = np.sqrt(weights @ (np.square(deviations) + np.square(means - mean)))
    half = float(stats.norm.ppf(0.5 + level / 2.0))
    return table.assign(mean=mean, sd=sd, lower=mean - half * sd, upper=mean + half * sd)


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
