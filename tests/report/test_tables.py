"""Features and models as data frames."""

import numpy as np
import pandas as pd
import pytest

from bgnlm.features import parse
from bgnlm.likelihood.families import resolve_family
from bgnlm.posterior.average import ModelAverage
from bgnlm.posterior.summarize import summarize
from bgnlm.report.tables import MOST_MODELS, by_class, features_table, models_table
from bgnlm.search.union import FoundModels
from bgnlm.search.visited import ModelRows

FEATURES = tuple(map(parse, ("x1", "x1*x2", "sin(x2)")))


def found(models, log_marginal, features=FEATURES):
    """A posterior of models, given by the places of their features."""
    starts = np.append(0, np.cumsum([len(model) for model in models])).astype(np.int64)
    members = np.concatenate([*map(np.array, models), np.empty(0)]).astype(np.int64)
    rows = ModelRows(np.arange(len(models), dtype=np.uint64), np.array(log_marginal, dtype=float), starts, members)
    return summarize(FoundModels(features, np.zeros(len(features)), rows, -np.inf))


def averaged(features=FEATURES[:2]):
    """A model of one or more features with coefficients 1, 2, ... on standardised columns of scale 2."""
    size = len(features)
    return ModelAverage(
        family=resolve_family("gaussian", None),
        features=tuple(features),
        known_as=tuple(features),
        ranges=(),
        centres=np.zeros(size),
        scales=np.full(size, 2.0),
        probabilities=np.ones(1),
        mass=1.0,
        starts=np.array([0, size]),
        members=np.arange(size),
        coefficients=np.arange(size + 1.0),
        factors=np.eye(size + 1).ravel(),
        dispersions=np.ones(1),
        degrees=np.array([4.0]),
    )


def test_features_come_by_probability_with_their_coefficients():
    posterior = found([[0], [0, 1], [2]], np.log([0.2, 0.5, 0.3]))
    table = features_table(posterior, averaged())
    assert table["expression"].tolist() == ["x1", "x1*x2", "sin(x2)"]
    assert table["probability"].tolist() == pytest.approx([0.7, 0.5, 0.3])
    assert table["complexity"].tolist() == [0, 1, 1]
    assert table["depth"].tolist() == [0, 1, 1]
    # No averaged model has the third.
    assert table["coefficient"].tolist() == pytest.approx([0.5, 1.0, 0.0])
    assert table["sd"].tolist() == pytest.approx([np.sqrt(2.0) / 2, np.sqrt(2.0) / 2, 0.0])


def test_models_come_by_probability():
    table = models_table(found([[0], [0, 1], [], [2]], np.log([0.2, 0.5, 0.1, 0.2])))
    assert table["features"].tolist() == [("x1", "x1*x2"), ("x1",), ("sin(x2)",), ()]
    assert table["probability"].tolist() == pytest.approx([0.5, 0.2, 0.2, 0.1])
    assert table["log_posterior"].tolist() == pytest.approx(np.log([0.5, 0.2, 0.2, 0.1]).tolist())
    assert table["size"].tolist() == [2, 1, 1, 0]


def test_there_are_only_so_many_models():
    n_models = MOST_MODELS + 5
    table = models_table(found([[0]] * n_models, np.linspace(-1.0, 0.0, n_models)))
    assert len(table) == MOST_MODELS
    assert table["log_posterior"].iloc[0] == 0.0


def test_monte_carlo_errors_are_those_of_the_models_that_are_averaged_over():
    table = models_table(found([[0], [0, 1], [2]], np.log([0.2, 0.5, 0.3])), np.array([0.02, 0.0]))
    assert table["mc_error"].tolist() == pytest.approx([0.02, 0.0, np.nan], nan_ok=True)
    n_models = MOST_MODELS + 5
    many = models_table(found([[0]] * n_models, np.zeros(n_models)), np.full(n_models, 0.01))
    assert many["mc_error"].tolist() == [0.01] * MOST_MODELS


EMPTY = [(found([[]], [0.0]), averaged(())), (found([], []), averaged(()))]


@pytest.mark.parametrize(("posterior", "average"), EMPTY)
def test_tables_without_rows_have_their_types(posterior, average):
    full = features_table(found([[0, 1]], [0.0]), averaged())
    empty = features_table(posterior, average)
    assert len(empty) == 0
    assert empty.dtypes.equals(full.dtypes)
    assert models_table(posterior).dtypes.equals(models_table(found([[0]], [0.0])).dtypes)


@pytest.mark.parametrize("classes", [["a", "b", "c"], [1, 2, 3], np.array(["a", "b", "c"]), np.array([1.0, 2.0, 3.0])])
def test_tables_of_classes_are_put_together(classes):
    tables = [
        features_table(posterior, average)
        for posterior, average in ((found([[0, 1]], [0.0]), averaged()), EMPTY[0], (found([[2]], [0.0]), averaged()))
    ]
    table = by_class(tables, classes)
    assert table["class"].tolist() == [classes[0], classes[0], classes[2]]
    assert table.columns[0] == "class"
    assert table["complexity"].dtype == np.int64
    assert isinstance(table.index, pd.RangeIndex)
