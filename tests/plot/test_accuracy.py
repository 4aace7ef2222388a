"""Predictions, residuals and classes, compared with scikit-learn and with the estimator."""

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import brier_score_loss, roc_auc_score, roc_curve

from bgnlm import BGNLMRegressor, plot
from bgnlm.errors import DataError, SettingError
from bgnlm.plot.canvas import some_of
from tests.plot.conftest import FAMILIES, LINEAR, N, classifier, labels, line_of, regressor, response, table, texts


@pytest.mark.parametrize("family", FAMILIES)
def test_predictions_and_their_intervals(family):
    model, y = regressor(family), response(family)
    ax = plot.predictions(model, table(), y, level=0.8)
    fitted, ends = model.predict(table()), model.predict_interval(table(), level=0.8)
    inside = ((y >= ends[:, 0]) & (y <= ends[:, 1])).to_numpy()
    np.testing.assert_allclose(line_of(ax, label="inside of its interval").get_xdata(), fitted[inside])
    np.testing.assert_allclose(line_of(ax, label="outside").get_ydata(), y[~inside])
    np.testing.assert_allclose([segment[:, 1] for segment in ax.collections[0].get_segments()], ends)
    assert any(f"{100 * inside.mean():.1f} % in the 80 % intervals" in text for text in texts(ax))
    assert any(f"R² {model.score(table(), y):.3f}" in text for text in texts(ax))


def test_points_are_limited_with_a_note():
    ax = plot.predictions(regressor(), table(), response("gaussian"), n_points=20)
    assert len(ax.collections[0].get_segments()) == 20
    assert any("20 of 60 rows" in text for text in texts(ax))
    chosen = some_of(100_000, 50)
    assert len(np.unique(chosen)) == 50
    np.testing.assert_array_equal(chosen, some_of(100_000, 50))


def test_predictions_are_for_numbers():
    with pytest.raises(SettingError, match="calibration and roc"):
        plot.predictions(classifier(), table(), labels(2))


def test_residuals_of_numbers_are_quantiles_of_the_predictive_distribution():
    model, y = regressor(), response("gaussian")
    ax = plot.residuals(model, table(), y)
    dots = next(line for line in ax.lines if line.get_marker() == ".")
    np.testing.assert_allclose(dots.get_xdata(), model.predict(table()))
    np.testing.assert_allclose(stats.norm.cdf(dots.get_ydata()), model.predict_cdf(table(), y), atol=1e-9)


@pytest.mark.parametrize("family", ["poisson", "negative_binomial", "binomial"])
def test_residuals_of_counts_are_drawn_within_their_step(family):
    model, y = regressor(family), response(family)
    ax = plot.residuals(model, table(), y, random_state=3)
    left = next(line for line in ax.lines if line.get_marker() == ".").get_ydata()
    place = stats.norm.cdf(left)
    assert (place <= model.predict_cdf(table(), y) + 1e-9).all()
    assert (place >= model.predict_cdf(table(), y - 1) - 1e-9).all()
    again = plot.residuals(model, table(), y, random_state=3)
    np.testing.assert_array_equal(left, next(line for line in again.lines if line.get_marker() == ".").get_ydata())


@pytest.mark.parametrize("family", FAMILIES)
def test_residuals_of_data_from_the_model_are_normal(family):
    """New responses from the predictive distribution itself, row by row."""
    model = regressor(family)
    X = table().loc[np.repeat(np.arange(N), 5)].reset_index(drop=True)
    y = np.array([model.sample_predictive(X, 1, random_state=k)[0] for k in range(len(X))])[
        np.arange(len(X)), np.arange(len(X))
    ]
    ax = plot.residuals(model, X, y, kind="quantiles")
    left = next(line for line in ax.lines if line.get_marker() == ".").get_ydata()
    assert stats.kstest(left, "norm").pvalue > 1e-3
    assert (np.diff(left) >= 0).all()


def test_residuals_of_shares_know_the_trials():
    rng = np.random.default_rng(3)
    trials = rng.integers(2, 12, N)
    share = rng.binomial(trials, 0.4) / trials
    model = BGNLMRegressor(family="binomial", search=LINEAR, n_chains=1, random_state=1)
    model.fit(table(), share, sample_weight=trials)
    ax = plot.residuals(model, table(), share, trials=trials)
    place = stats.norm.cdf(next(line for line in ax.lines if line.get_marker() == ".").get_ydata())
    above = model.predict_cdf(table(), share, trials=trials)
    below = model.predict_cdf(table(), share - 1 / trials, trials=trials)
    assert ((below - 1e-9 <= place) & (place <= above + 1e-9)).all()
    assert (above - below > 1e-6).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_residuals_of_classes(n_classes):
    model, y = classifier(n_classes), labels(n_classes)
    target = model.classes_[1]
    ax = plot.residuals(model, table(), y, target=target)
    dots = next(line for line in ax.lines if line.get_marker() == ".")
    fitted = model.predict_proba(table())[:, 1]
    np.testing.assert_allclose(dots.get_xdata(), fitted)
    assert ((stats.norm.cdf(dots.get_ydata()) > 1 - fitted) == (y == target)).all()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_areas_and_curves_are_those_of_scikit_learn(n_classes):
    model, y = classifier(n_classes), labels(n_classes)
    ax = plot.roc(model, table(), y)
    columns = [1] if n_classes == 2 else range(3)
    for line, column in zip(ax.lines[1:], columns, strict=True):
        event, probability = y == model.classes_[column], model.predict_proba(table())[:, column]
        assert f"AUC {roc_auc_score(event, probability):.4f}" in line.get_label()
        false, true, _ = roc_curve(event, probability, drop_intermediate=False)
        np.testing.assert_allclose(line.get_xydata(), np.column_stack([false, true]))


@pytest.mark.parametrize("n_classes", [2, 3])
def test_frequencies_of_bins(n_classes):
    model, y = classifier(n_classes), labels(n_classes)
    ax = plot.calibration(model, table(), y, n_bins=4)
    columns = [1] if n_classes == 2 else range(3)
    for line, column in zip(ax.lines[1:], columns, strict=False):
        event, probability = (y == model.classes_[column]).to_numpy(), model.predict_proba(table())[:, column]
        assert f"Brier score {brier_score_loss(event, probability):.4f}" in line.get_label()
        parts = np.array_split(np.argsort(probability, kind="stable"), 4)
        np.testing.assert_allclose(line.get_xdata(), [probability[part].mean() for part in parts])
        np.testing.assert_allclose(line.get_ydata(), [event[part].mean() for part in parts])
    for segments, line in zip(ax.collections, ax.lines[1:], strict=False):
        for (_, low), (_, high), frequency in zip(
            *np.swapaxes(segments.get_segments(), 0, 1), line.get_ydata(), strict=True
        ):
            assert 0.0 <= low <= frequency <= high <= 1.0


def test_a_class_by_name_and_regressors_of_zero_and_one():
    ax = plot.calibration(classifier(), table(), labels(2), target="high")
    assert ax.get_xlabel() == "predicted probability of grade = high"
    y = response("binomial")
    area = roc_auc_score(y, regressor("binomial").predict(table()))
    assert f"AUC {area:.4f}" in plot.roc(regressor("binomial"), table(), y).lines[1].get_label()


def test_classes_that_cannot_be_drawn():
    with pytest.raises(DataError, match="classes of the training data"):
        plot.roc(classifier(), table(), ["medium"] * N)
    with pytest.raises(DataError, match="has one kind"):
        plot.roc(classifier(), table(), ["low"] * N)
    with pytest.raises(SettingError, match="for classes"):
        plot.calibration(regressor(), table(), response("gaussian"))


@pytest.mark.parametrize("family", FAMILIES)
def test_distribution_functions_are_the_inverse_of_quantiles(family):
    model = regressor(family)
    for level in (0.1, 0.5, 0.9):
        quantile = model.predict_quantiles(table(), [level])[:, 0]
        at, below = model.predict_cdf(table(), quantile), model.predict_cdf(table(), quantile - 1.0)
        if family in ("gaussian", "gamma"):
            np.testing.assert_allclose(at, level, atol=1e-4)
        else:
            assert ((below < level) & (level <= at + 1e-9)).all()
    assert (model.predict_cdf(table(), np.full(N, -1.0 if family != "gaussian" else -1e9)) < 1e-6).all()
