"""Exact posteriors by enumeration, against one model at a time."""

import numpy as np
import pytest

import bgnlm
from bgnlm.errors import DataError, ModelStatusWarning, SettingError
from bgnlm.likelihood.coefficient_priors import PARAMETERS
from bgnlm.likelihood.status import ModelStatus
from tests import naive


@pytest.fixture
def data(rng):
    X = rng.normal(size=(40, 5)) @ rng.normal(size=(5, 5))
    return X[:, 0] - 0.4 * X[:, 2] + rng.normal(size=40), X


@pytest.mark.parametrize("floor", [0.0, 0.3])
@pytest.mark.parametrize("prior", list(PARAMETERS))
def test_agrees_with_one_model_at_a_time(data, prior, floor, rng):
    y, X = data
    weights, offset = rng.integers(1, 4, size=40), rng.normal(size=40)
    options = {"coefficient_prior": prior, "noise_floor": floor, "sample_weight": weights, "offset": offset}
    result = bgnlm.enumerate_models(y, X, penalty=0.7, complexity=[1, 2, 0, 1, 3], **options)
    subsets = naive.all_subsets(5)
    expected = [bgnlm.log_marginal(y, X[:, list(s)], **options) for s in subsets]
    prior_costs = [-0.7 * sum([1, 2, 0, 1, 3][j] for j in s) for s in subsets]
    probabilities = naive.enumerate_probabilities(np.add(expected, prior_costs))
    assert sorted(result.masks.tolist()) == list(range(32))
    assert result.log_marginal == pytest.approx(np.array(expected)[result.masks], abs=2e-8)
    assert result.log_model_prior == pytest.approx(np.array(prior_costs)[result.masks])
    assert result.model_probabilities == pytest.approx(probabilities[result.masks], abs=1e-8)
    assert result.inclusion_probabilities == pytest.approx(naive.inclusion(probabilities, subsets, 5), abs=1e-8)
    assert (np.diff(result.model_probabilities) <= 0).all()


def test_averaged_coefficients_and_predictions(data, rng):
    y, X = data
    result = bgnlm.enumerate_models(y, X)
    average = np.zeros(6)
    for model, probability in enumerate(result.model_probabilities):
        columns = list(result.columns_of(model))
        average[[0, *(j + 1 for j in columns)]] += probability * bgnlm.fit_model(y, X[:, columns]).coefficients
    assert result.coefficients == pytest.approx(average, abs=1e-9)
    new = rng.normal(size=(3, 5))
    assert result.predict(new) == pytest.approx(average[0] + new @ average[1:], abs=1e-8)


def test_the_largest_model_size(data):
    y, X = data
    full = bgnlm.enumerate_models(y, X)
    capped = bgnlm.enumerate_models(y, X, max_model_size=2)
    assert len(capped) == 1 + 5 + 10
    assert max(map(int.bit_count, capped.masks.tolist())) == 2
    small = [i for i, mask in enumerate(full.masks.tolist()) if mask.bit_count() <= 2]
    expected = full.model_probabilities[small] / full.model_probabilities[small].sum()
    assert capped.model_probabilities == pytest.approx(expected, abs=1e-12)
    assert len(bgnlm.enumerate_models(y, X, max_model_size=0)) == 1


def test_relabelling_columns_relabels_results(data):
    y, X = data
    order = [3, 0, 4, 1, 2]
    here, there = bgnlm.enumerate_models(y, X), bgnlm.enumerate_models(y, X[:, order])
    assert there.inclusion_probabilities == pytest.approx(here.inclusion_probabilities[order], abs=1e-10)


def test_a_duplicated_column_is_counted_once(data):
    """A model with both copies is rank deficient and has no probability; the copies share what one had."""
    y, X = data
    doubled = bgnlm.enumerate_models(y, np.column_stack([X, X[:, 0]]))
    both = doubled.included[:, 0] & doubled.included[:, 5]
    assert (doubled.model_probabilities[both] == 0).all()
    assert (doubled.log_marginal[both] == -np.inf).all()
    assert doubled.inclusion_probabilities[0] == pytest.approx(doubled.inclusion_probabilities[5], abs=1e-9)


def test_names_of_a_data_frame_are_kept(data):
    class Frame:
        columns = ("a b", "x%", "c", "d", "e")

        def __init__(self, values):
            self.values = values

        def __array__(self, dtype=None, copy=None):
            return self.values

    y, X = data
    result = bgnlm.enumerate_models(y, Frame(X))
    assert result.names == ("a b", "x%", "c", "d", "e")
    assert "a b" in str(result)
    assert "32 models" in str(result)


def test_more_than_64_models_print_the_best_five(rng):
    X = rng.normal(size=(30, 7))
    text = str(bgnlm.enumerate_models(X[:, 0] + rng.normal(size=30) * 0.1, X))
    assert "128 models" in text
    assert len(text.splitlines()) == 2 + 8 + 2 + 5


def test_penalties(data):
    y, X = data
    free = bgnlm.enumerate_models(y, X)
    for penalty, nats in (("bic", np.log(40)), ("aic", 2.0), (1.5, 1.5)):
        charged = bgnlm.enumerate_models(y, X, penalty=penalty)
        sizes = np.array([mask.bit_count() for mask in charged.masks.tolist()])
        assert charged.log_model_prior == pytest.approx(-nats * sizes)
    assert (charged.inclusion_probabilities[[1, 3, 4]] < free.inclusion_probabilities[[1, 3, 4]]).all()


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"X": np.eye(25)[:, :25] + 0.0, "y": np.arange(25.0)}, DataError, "at most 24 columns"),
        ({"penalty": "ebic"}, SettingError, "'bic', 'aic'"),
        ({"penalty": -1.0}, SettingError, "0 or more"),
        ({"penalty": np.array([1.0, 2.0])}, SettingError, "finite number"),
        ({"complexity": [1.0]}, DataError, "one value per column"),
        ({"complexity": 3.0}, DataError, "one value per column"),
        ({"complexity": {1, 2}}, DataError, "numbers only"),
        ({"complexity": [1.0, -2.0]}, SettingError, "0 or more"),
        ({"names": ["a"]}, DataError, "one different name each"),
        ({"names": ["a", "a"]}, DataError, "more than once: a"),
        ({"max_model_size": 1.5}, SettingError, "whole number"),
        ({"max_model_size": -1}, SettingError, "0 or more"),
    ],
)
def test_bad_settings_are_refused(change, error, message, rng):
    arguments = {"y": rng.normal(size=9), "X": rng.normal(size=(9, 2))} | change
    with pytest.raises(error, match=message):
        bgnlm.enumerate_models(arguments.pop("y"), arguments.pop("X"), **arguments)


def test_predicting_with_the_wrong_columns(data):
    y, X = data
    models = bgnlm.enumerate_models(y, X)
    with pytest.raises(DataError, match="5 columns"):
        models.predict(X[:, :2])
    with pytest.raises(DataError, match="row 3, column 1"):
        models.predict(np.where(np.arange(200).reshape(40, 5) == 16, np.nan, X))
    with pytest.raises(DataError, match="numbers only"):
        models.predict([["a", 1, 1, 1, 1]])


def test_predicting_finds_columns_by_name(data):
    class Frame(dict):
        columns = property(lambda self: list(self))

        def __array__(self, dtype=None, copy=None):
            return np.column_stack(list(self.values()))

        def __getitem__(self, names):
            return Frame({name: self.get(name) for name in names})

    y, X = data
    frame = Frame(zip("abcde", X.T, strict=True))
    models = bgnlm.enumerate_models(y, frame)
    backwards = Frame({"extra": y, **{name: frame.get(name) for name in "edcba"}})
    assert models.predict(backwards) == pytest.approx(models.predict(frame), abs=1e-14)
    assert models.predict(X) == pytest.approx(models.predict(frame), abs=1e-14)


def test_constant_columns_are_named_in_a_warning(data):
    y, X = data
    with pytest.warns(ModelStatusWarning, match="in no model: x6"):
        result = bgnlm.enumerate_models(y, np.column_stack([X, np.ones(40)]))
    assert result.inclusion_probabilities[5] == 0.0


def test_names_given_for_an_array(data):
    y, X = data
    assert bgnlm.enumerate_models(y, X, names=list("abcde")).names == tuple("abcde")
    assert repr(bgnlm.enumerate_models(y, X)) == "<EnumeratedModels: 32 models over 5 columns>"


def test_abalone_linear_models_reproduce_the_table_of_the_paper(abalone):
    """The BGLM row: 512 models, -RSS/2 and log(3177) for each input, all printed digits."""
    X, y, X_test, y_test, _ = abalone
    result = bgnlm.enumerate_models(y, X, coefficient_prior="script", penalty=np.log(3177))
    assert len(result) == 512
    error = result.predict(X_test) - y_test
    assert f"{np.sqrt(np.mean(error**2)):.4f}" == "2.0758"
    assert f"{np.abs(error).mean():.4f}" == "1.5381"
    assert f"{np.corrcoef(result.predict(X_test), y_test)[0, 1]:.4f}" == "0.7522"


def test_asteroid_linear_models_reproduce_the_table_of_the_paper(asteroids):
    """The BGLM row, 0.9999 | 0.0001 | 0.0002: 512 models, minus half the deviance and half a nat for each input."""
    X, y, X_test, y_test = asteroids
    result = bgnlm.enumerate_models(y, X, family="binomial", coefficient_prior="script", penalty=0.5)
    assert len(result) == 512
    near = result.predict(X_test) >= 0.5
    assert int(np.sum(~near & (y_test == 1))) == 2
    assert int(np.sum(near & (y_test == 0))) == 1
    # 436 of the 512 models separate the training classes.
    separated = bgnlm.enumerate_models(y, X, family="binomial", coefficient_prior="bic")
    assert int(np.sum(separated.status == ModelStatus.SEPARATED)) == 436
    # The default prior is finite for all of them.
    default = bgnlm.enumerate_models(y, X, family="binomial")
    assert (default.status == ModelStatus.OK).all()
    assert np.isfinite(default.log_marginal).all()
    near = default.predict(X_test) >= 0.5
    assert int(np.sum(near != (y_test == 1))) <= 10
