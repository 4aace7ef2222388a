"""`bgnlm demo`: Kepler's third law from a table of solar-system bodies."""

from time import perf_counter

import numpy as np

from bgnlm._typing import FloatArray
from bgnlm.datasets import load_solar_system
from bgnlm.features import (
    Evaluator,
    Feature,
    Input,
    Transform,
    modify,
    multiply,
    operation_count,
    reject_reason,
    render,
    resolve_transforms,
)
from bgnlm.likelihood.marginal import check_likelihood
from bgnlm.search.exhaustive import EnumeratedModels, enumerate_population
from bgnlm.search.prior import ModelPrior

RESPONSE = "semi_major_axis"
TRANSFORMS = ("sqrt_abs", "cbrt_abs", "log1p_abs", "inverse")
MAX_OPERATIONS = 3
POPULATION_SIZE = 18
# The table states its facts to a few digits: noise of a ten-thousandth of the spread is no news.
NOISE_FLOOR = 1e-4
SAME_FUNCTION = 1e-10  # of 1 - |correlation|


def run_demo() -> str:
    """Search all small features of the table's columns and describe what was found."""
    start = perf_counter()
    table = load_solar_system()
    inputs = [name for name in table.names if name != RESPONSE]
    likelihood = check_likelihood(table.column(RESPONSE), noise_floor=NOISE_FLOOR)
    evaluator = Evaluator(table.select(inputs).values, inputs)
    features = all_features([Input(name) for name in inputs], resolve_transforms(TRANSFORMS), MAX_OPERATIONS)
    usable = [feature for feature in features if reject_reason(evaluator.column(feature)) is None]
    chosen, n_functions = best_alone(usable, evaluator.matrix(usable), likelihood.y, POPULATION_SIZE)
    costs = ModelPrior(penalty="bic").costs(chosen, len(table))
    population = likelihood.population(evaluator.matrix(chosen))
    models = enumerate_population(population, costs, tuple(map(render, chosen)), len(chosen))
    header = [
        f"{len(table)} bodies of the solar system; response: {RESPONSE} (AU)",
        f"inputs: {', '.join(inputs)}",
        f"features with up to {MAX_OPERATIONS} operations: {len(features):,} ({n_functions:,} different functions)",
        f"models over the {len(chosen)} that explain most alone, all scored exactly: {len(models):,}",
        f"prior: robust mixture of g-priors, log(n) nats per operation; noise floor {NOISE_FLOOR:g} of sd({RESPONSE})",
        "",
    ]
    footer = [
        "",
        f"{perf_counter() - start:.1f} seconds, compilation included; in Python: help(bgnlm.enumerate_models)",
    ]
    return "\n".join([*header, *_report(models), *footer])


def all_features(inputs: list[Feature], transforms: tuple[Transform, ...], max_operations: int) -> list[Feature]:
    """Every feature that at most so many modifications and multiplications make, simplest first."""
    by_count: list[list[Feature]] = [inputs]
    for count in range(1, max_operations + 1):
        made: list[Feature] = [modify(transform, feature) for feature in by_count[-1] for transform in transforms]
        for left in range(count):
            made += [multiply(a, b) for a in by_count[left] for b in by_count[count - 1 - left]]
        by_count.append(list(dict.fromkeys(made)))
    return [feature for features in by_count for feature in features]


def best_alone(features: list[Feature], columns: FloatArray, y: FloatArray, n_best: int) -> tuple[list[Feature], int]:
    """Return the features that explain most by themselves, one for each function, and how many functions there are."""
    units = columns - columns.mean(axis=0)
    units /= np.linalg.norm(units, axis=0)
    centred = y - y.mean()
    explained = np.square(centred @ units) / (centred @ centred)
    order = np.lexsort(([operation_count(feature) for feature in features], -np.round(explained, 9)))
    first = np.ones(len(order), dtype=np.bool_)  # of its function, in this order
    for place, j in enumerate(order):
        if first[place]:
            later = order[place + 1 :]
            first[place + 1 :] &= np.abs(units[:, j] @ units[:, later]) <= 1.0 - SAME_FUNCTION
    distinct = order[first]
    return [features[j] for j in distinct[:n_best]], len(distinct)


def _report(models: EnumeratedModels) -> list[str]:
    lines = ["the law", f"  {_equation(models, 0)}", f"  probability {models.model_probabilities[0]:.4f}", ""]
    lines += ["runner-up models", "  probability  features"]
    for model in range(1, 6):
        lines.append(f"  {models.model_probabilities[model]:11.2g}  {' + '.join(models.names_of(model)) or '(none)'}")
    lines += ["", "features by probability"]
    for j in np.argsort(-models.inclusion_probabilities, kind="stable")[:5]:
        lines.append(f"  {models.inclusion_probabilities[j]:11.2g}  {models.names[j]}")
    return lines


def _equation(models: EnumeratedModels, model: int) -> str:
    coefficients = models.fit(model).coefficients
    terms = [
        f" {'-' if value < 0 else '+'} {abs(value):.5f} * {name}"
        for value, name in zip(coefficients[1:], models.names_of(model), strict=True)
    ]
    return f"{RESPONSE} = {coefficients[0]:.5f}{''.join(terms)}"
