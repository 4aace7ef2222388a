"""The loaders against what is known of the data."""

import numpy as np
import pytest

import bgnlm
from bgnlm import datasets
from bgnlm.datasets import Dataset
from bgnlm.datasets.storage import RECIPES
from bgnlm.errors import DataError, SettingError
from bgnlm.features import Evaluator

pytestmark = pytest.mark.usefixtures("needs_tables")


@pytest.fixture
def needs_tables(finished_table):
    for name in RECIPES:
        finished_table(name)


def check(data: Dataset, shape, response):
    assert data.X.shape == shape
    assert data.y.name == response
    assert data.y.index.equals(data.X.index)
    assert (data.X.dtypes == np.float64).all()
    assert np.isfinite(data.X.to_numpy()).all()
    assert data.table.loc[data.X.index, data.X.columns].astype(float).equals(data.X)
    assert response not in data.X
    assert response in data.description


@pytest.mark.parametrize(
    ("name", "response", "shape", "n_train", "n_ones"),
    [
        ("breast_cancer", "malignant", (569, 30), 143, (53, 159)),
        ("spam", "spam", (4601, 57), 1536, (595, 1218)),
        ("asteroids", "neo", (20766, 9), 64, (32, 14081)),
    ],
)
def test_two_classes(name, response, shape, n_train, n_ones):
    data = getattr(datasets, f"load_{name}")()
    assert data.name == name
    check(data, shape, response)
    assert data.is_train.dtype == bool
    (X_train, y_train), (X_test, y_test) = data.train, data.test
    assert (len(X_train), len(X_test)) == (n_train, shape[0] - n_train)
    assert (len(y_train), len(y_test)) == (n_train, shape[0] - n_train)
    assert (y_train.sum(), y_test.sum()) == n_ones
    assert set(data.y) == {0, 1}
    assert data.truth == ()
    assert data.offset is None


def test_abalone():
    data = datasets.load_abalone()
    check(data, (4177, 9), "Rings")
    assert data.is_train.sum() == 3177
    assert (data.X["Height"] == 0).sum() == 2
    assert data.X[["Male", "Female"]].sum().tolist() == [1528, 1307]
    assert data.is_train[-1]  # the last row could not be drawn


def test_asteroids_keep_the_shifted_row():
    data = datasets.load_asteroids()
    assert (data.X["inclination"] > 180).sum() == 1
    assert data.X["inclination"].max() == 16814


def correlation(data: Dataset, *texts: str) -> float:
    evaluator = Evaluator(data.X.to_numpy(), list(data.X.columns))
    return np.corrcoef([evaluator.column(bgnlm.parse(text)) for text in texts])[0, 1]


def test_exoplanets():
    data = datasets.load_exoplanets()
    check(data, (223, 10), "SemiMajorAxisAU")
    assert list(data.X.columns)[:4] == ["TypeFlag", "RadiusJpt", "PeriodDays", "PlanetaryMassJpt"]
    rivals = [f"cbrt_abs({name}*PeriodDays**2)" for name in ("HostStarRadiusSlrRad", "HostStarTempK")]
    # The numbers printed in the paper.
    assert correlation(data, data.truth[0], rivals[0]) == pytest.approx(0.9999667, abs=5e-8)
    assert correlation(data, data.truth[0], rivals[1]) == pytest.approx(0.9995362, abs=5e-8)
    with pytest.raises(DataError, match="'exoplanets' is not split"):
        _ = data.train
    with pytest.raises(DataError, match="'exoplanets' is not split"):
        _ = data.test


def test_the_mass_of_exoplanets():
    data = datasets.load_exoplanets(target="PlanetaryMassJpt")
    check(data, (223, 10), "PlanetaryMassJpt")
    assert "SemiMajorAxisAU" in data.X
    law = Evaluator(data.X.to_numpy(), list(data.X.columns)).column(bgnlm.parse(data.truth[0]))
    # As exact as that only if every digit was read.
    assert np.abs(law - data.y).max() < 1e-13


@pytest.mark.parametrize(
    ("sample", "n_rows"), [("paper", 500), ("r36", 500), ("first500", 500), ("all", 1502)], ids=lambda value: value
)
def test_samples_of_the_epigenetic_data(sample, n_rows):
    data = datasets.load_epigenetic(sample=sample)
    check(data, (n_rows, 14), "methylated_bases")
    assert len(data.table) == 1502
    for series in (data.offset, data.position):
        assert series.index.equals(data.X.index)
    rows = data.table.loc[data.X.index]
    assert np.allclose(np.exp(data.offset), rows["total_bases"])
    assert (data.position == rows["pos"]).all()
    assert data.is_train is None


def test_the_sample_of_the_paper():
    data = datasets.load_epigenetic()
    rows = data.table.loc[data.X.index]
    assert (data.y.sum(), rows["total_bases"].sum()) == (280, 2578)
    assert rows[["CG", "CHG", "CHH"]].sum().tolist() == [94, 79, 327]
    assert data.X.index[0] == 1  # the second row


def test_columns_of_the_epigenetic_data_mean_what_is_said():
    table = datasets.load_epigenetic(sample="all").table
    distance = table["base_dist"]
    for name, of_distance in {
        **{f"DT{d}": distance == d for d in range(1, 6)},
        "DT6_20": (distance >= 6) & (distance < 20),
        "DT20_inf": distance >= 20,
    }.items():
        assert (table[name] == of_distance).all()
    for group in (["CG", "CHG", "CHH"], ["M_alpha", "M_gamma", "M_delta"]):
        assert (table[group].sum(axis=1) == 1).all()


def test_inputs_of_the_epigenetic_data():
    text = datasets.load_epigenetic(inputs="text")
    assert text.X.shape == (500, 13)
    assert set(text.X) ^ set(datasets.load_epigenetic(inputs="script").X) == {"base_dist", "DT1", "DT20_inf"}


@pytest.mark.parametrize(
    ("load", "message"),
    [
        (lambda: datasets.load_exoplanets(target="RadiusJpt"), "target must be one of 'SemiMajorAxisAU', 'Planetary"),
        (lambda: datasets.load_epigenetic(sample="best"), "sample must be one of 'paper', 'r36', 'first500', 'all'"),
        (lambda: datasets.load_epigenetic(inputs="all"), "inputs must be one of 'script', 'text'; got 'all'"),
    ],
)
def test_what_is_not_offered(load, message):
    with pytest.raises(SettingError, match=message):
        load()
