"""Effects of inputs and of features are averages of the estimator's predictions."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh

from bgnlm import BGNLMRegressor, plot
from bgnlm.errors import MissingOffsetWarning, SettingError
from bgnlm.features import parse
from bgnlm.plot.canvas import axes_for, some_of, title
from bgnlm.plot.effects import _surface
from bgnlm.plot.inputs import values_of
from bgnlm.posterior.coefficients import coefficient_of
from tests.plot.conftest import FAMILIES, LINEAR, N, band_of, classifier, labels, regressor, response, table, texts


def with_value(name, value, rows=slice(None)):
    return table().iloc[rows].assign(**{name: value})


@pytest.mark.parametrize("family", FAMILIES)
def test_the_line_is_the_average_of_predictions(family):
    model = regressor(family)
    ax = plot.effect(model, table(), "a", n_grid=5, n_draws=50)
    at, mean = ax.lines[0].get_data()
    np.testing.assert_allclose(at, np.linspace(*np.quantile(table()["a"], [0.01, 0.99]), 5))
    np.testing.assert_allclose(mean, [model.predict(with_value("a", value)).mean() for value in at])


def test_the_band_is_that_of_averages_of_draws():
    model, at = classifier(), [-1.0, 0.0, 1.0] * 4
    ax = plot.effect(model, table(), "a", grid=np.linspace(-1, 1, 12), level=0.8, n_draws=40, random_state=3)
    low, high = band_of(ax)
    stacked = pd.concat([with_value("a", value) for value in np.linspace(-1, 1, 12)], ignore_index=True)
    drawn = model.sample_predictive(stacked, n_draws=40, of="mean", random_state=3)[:, :, 1]
    averages = drawn.reshape(40, len(at), N).mean(axis=2)
    np.testing.assert_allclose([low, high], np.quantile(averages, [0.1, 0.9], axis=0))


def test_of_a_linear_model_the_band_is_the_interval_at_the_average_row():
    """The average over rows of linear predictions is the prediction for the average row."""
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40, 2))
    model = BGNLMRegressor(search=LINEAR, n_chains=1, random_state=1).fit(X, X @ [1.0, 2.0] + rng.normal(size=40))
    ax = plot.effect(model, X, 0, n_grid=9, n_draws=20_000)
    at = ax.lines[0].get_xdata()
    rows = np.column_stack([at, np.full(9, X[:, 1].mean())])
    interval = model.predict_interval(rows, of="mean")
    np.testing.assert_allclose(ax.lines[0].get_ydata(), model.predict(rows))
    np.testing.assert_allclose(band_of(ax), interval.T, atol=0.06 * np.ptp(interval, axis=1).mean())


def test_where_rows_crowd_there_are_more_values():
    values = np.exp(3 * np.random.default_rng(1).normal(size=500))
    even, crowded = (values_of(pd.Series(column), 20).at for column in (np.sqrt(np.arange(500.0)), values))
    np.testing.assert_allclose(np.diff(even), np.diff(even)[0])
    low, high = np.quantile(values, [0.01, 0.99])
    assert (crowded[0], crowded[-1]) == (low, high)
    assert len(crowded) <= 21
    shares = np.histogram(values, crowded)[0] / 500
    assert shares.max() < 0.15 < 0.5 < (np.histogram(values, np.linspace(low, high, 20))[0] / 500).max()


def test_names_of_few_values_have_room():
    X = table().assign(few=np.array([1e-9, 2e-9, 0.05, 1.0, 1.9, 2.0])[np.arange(N) % 6])
    model = BGNLMRegressor(search=LINEAR, n_chains=1, random_state=1).fit(X, X["few"])
    ax = plot.effect(model, X, "few", n_draws=10)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1e-09", "1", "1.9"]
    assert len(ax.lines[0].get_xdata()) == 6


@pytest.mark.parametrize("name", ["kind", "on", "few"])
def test_few_values_are_drawn_one_by_one(name):
    model = regressor()
    ax = plot.effect(model, table(), name, n_draws=50)
    values = sorted(table()[name].unique(), key=str)
    assert [label.get_text() for label in ax.get_xticklabels()] == [str(value) for value in values]
    np.testing.assert_allclose(
        ax.lines[0].get_ydata(), [model.predict(with_value(name, value)).mean() for value in values]
    )


def with_levels(names, n=400, rare="once", missing=20):
    """A model and its table, whose column kind has these levels, one that occurs once, and holes."""
    rng = np.random.default_rng(1)
    kind = np.append(rng.choice(names, n - 1), rare).astype(object)
    X = pd.DataFrame({"a": rng.normal(size=n), "kind": kind})
    X.loc[: missing - 1, "kind"] = None
    model = BGNLMRegressor(search=LINEAR, missing="impute", n_chains=1, random_state=1)
    return model.fit(X, X["a"] + (X["kind"] == names[0]) + 2.0 * X["kind"].isna()), X


def boxes_of(ticks):
    return [tick.get_window_extent() for tick in ticks]


def test_rare_levels_and_missing_values_are_drawn():
    model, X = with_levels(["red", "blue"])
    ax = plot.effect(model, X, "kind", n_rows=10, n_draws=10)
    assert [label.get_text() for label in ax.get_xticklabels()] == ["blue", "once", "red", "(missing)"]
    rows = X.iloc[some_of(len(X), 10)]
    expected = [model.predict(rows.assign(kind=value)).mean() for value in ("blue", "once", "red", None)]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), expected)
    assert expected[-1] != expected[0]
    pair = plot.effect(model, X, ("a", "kind"), n_rows=10, n_draws=10, n_grid=3)
    assert "kind = (missing)" in texts(pair)


def test_values_are_between_the_quantiles_of_all_rows():
    ax = plot.effect(regressor(), table(), "a", n_rows=5, n_grid=9, n_draws=10)
    np.testing.assert_allclose(ax.lines[0].get_xdata()[[0, -1]], np.quantile(table()["a"], [0.01, 0.99]))


@pytest.mark.parametrize("n_levels", [5, 15, 40])
def test_names_of_levels_are_not_written_over_each_other(n_levels):
    model, X = with_levels([f"quite_long_{k:04d}" for k in range(n_levels)], n=40 * n_levels)
    ax = plot.effect(model, X, "kind", n_rows=5, n_draws=5)
    FigureCanvasAgg(ax.figure).draw()
    labels = ax.get_xticklabels()
    height = labels[0].get_fontsize() * ax.figure.dpi / 72
    places = ax.transData.transform([(tick, 0.0) for tick in ax.get_xticks()])[:, 0]
    angle = np.deg2rad(labels[0].get_rotation())
    assert angle > 0
    assert np.diff(places).min() * np.sin(angle) >= height  # lines of text side by side
    inside = ax.figure.bbox
    assert all(box.y0 >= inside.y0 and box.x0 >= inside.x0 for box in boxes_of(labels))


def test_short_names_of_levels_stay_level():
    ax = plot.effect(regressor(), table(), "kind", n_rows=5, n_draws=5)
    assert {label.get_rotation() for label in ax.get_xticklabels()} == {0.0}


def test_the_legend_of_dots_is_above_them():
    ax = plot.effect(classifier(3), table(), "kind", n_rows=20, n_draws=20)
    FigureCanvasAgg(ax.figure).draw()
    box = ax.get_legend().get_window_extent()
    assert box.y0 >= ax.bbox.y1 - 1
    assert box.y1 <= ax.figure.bbox.y1


@pytest.mark.parametrize("show", ["mean", "width"])
def test_many_levels_have_a_band_each(show):
    model, X = with_levels([f"l{k}" for k in range(9)])
    ax = plot.effect(model, X, ("kind", "a"), n_rows=10, n_draws=10, n_grid=4, show=show)
    field = next(one for one in ax.collections if isinstance(one, QuadMesh))
    assert field.get_array().shape == (11, 4)
    if show == "mean":
        rows, across = X.iloc[some_of(len(X), 10)], np.linspace(*np.quantile(X["a"], [0.01, 0.99]), 4)
        expected = [model.predict(rows.assign(kind="l3", a=value)).mean() for value in across]
        np.testing.assert_allclose(field.get_array()[3], expected)
        edges = field.get_coordinates()
        np.testing.assert_allclose(edges[:, 0, 1], np.arange(12) - 0.5)
    assert [label.get_text() for label in ax.get_yticklabels()][-2:] == ["once", "(missing)"]


def test_numbers_of_contours_are_not_written_over_each_other():
    # Waves of one input: many contours side by side.
    values = [values_of(pd.Series(np.linspace(0, 1, 50)), 50)] * 2
    ax = axes_for(None)
    _surface(ax, values, np.tile(np.sin(40 * values[0].at), (50, 1)))
    FigureCanvasAgg(ax.figure).draw()
    places = np.array([text.get_position() for text in ax.texts])
    assert len(places) > 3
    for k, place in enumerate(places):
        assert (np.abs(places[:k] - place) >= [0.12, 0.05]).any(axis=1).all()


def test_rows_are_drawn_and_the_note_says_so():
    ax = plot.effect(regressor(), table(), "a", n_rows=10, n_grid=3, n_draws=10)
    rows = some_of(N, 10)
    assert len(rows) == 10
    mean = [regressor().predict(with_value("a", value, rows)).mean() for value in ax.lines[0].get_xdata()]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), mean)
    assert any("10 of 60 rows, drawn at random" in text for text in texts(ax))


def test_any_kind_of_table():
    pl = pytest.importorskip("polars")
    expected = plot.effect(regressor(), table(), "a", n_grid=4, n_draws=10).lines[0].get_ydata()
    frame = pl.DataFrame({name: table()[name].tolist() for name in table()})
    mixed = table().astype({"kind": "category"})[["few", "on", "kind", "b", "a"]]
    for given in (frame, frame.with_columns(pl.col("kind").cast(pl.Categorical)), mixed):
        ax = plot.effect(regressor(), given, "a", n_grid=4, n_draws=10)
        np.testing.assert_allclose(ax.lines[0].get_ydata(), expected)
        assert ax.get_xlabel() == "a"


def test_arrays_and_lists_go_by_number_or_name():
    rng = np.random.default_rng(4)
    X = rng.normal(size=(30, 2))
    model = BGNLMRegressor(search=LINEAR, n_chains=1, random_state=1).fit(X, X[:, 1])
    axes = [plot.effect(model, given, name, n_draws=5) for given in (X, X.tolist()) for name in (1, "x2")]
    for ax in axes:
        np.testing.assert_allclose(ax.lines[0].get_xydata(), axes[0].lines[0].get_xydata())
        assert ax.get_xlabel() == "x2"


def test_several_classes_have_a_line_each():
    model = classifier(3)
    ax = plot.effect(model, table(), "a", n_grid=4, n_draws=10)
    for column in range(3):
        expected = [model.predict_proba(with_value("a", v))[:, column].mean() for v in ax.lines[0].get_xdata()]
        np.testing.assert_allclose(ax.lines[column].get_ydata(), expected)
    strokes = {(line.get_color(), line.get_linestyle()) for line in ax.lines[:3]}
    assert len({color for color, _ in strokes}) == len({style for _, style in strokes}) == 3
    alone = plot.effect(model, table(), "a", target="low", n_grid=4, n_draws=10)
    np.testing.assert_allclose(alone.lines[0].get_ydata(), ax.lines[1].get_ydata())
    assert list(model.classes_) == sorted(set(labels(3)))


def test_two_inputs_with_many_values_are_contours():
    model = regressor()
    ax = plot.effect(model, table(), ("a", "b"), n_grid=5)
    assert any("rows" in text for text in texts(ax))
    bar = next(other for other in ax.figure.axes if other is not ax)
    assert bar.get_ylabel() == "mean of size"
    across, up = (np.linspace(*np.quantile(table()[name], [0.01, 0.99]), 5) for name in "ab")
    surface = [[model.predict(with_value("a", a).assign(b=b)).mean() for a in across] for b in up]
    levels = next(c for c in ax.collections if len(getattr(c, "levels", [])) > 5).levels
    assert levels[0] <= np.min(surface) <= np.max(surface) <= levels[-1]
    width = plot.effect(model, table(), ("a", "b"), n_grid=4, n_draws=20, show="width")
    assert any("width of the 90 % interval" in other.get_ylabel() for other in width.figure.axes)


@pytest.mark.parametrize("inputs", [("a", "kind"), ("kind", "a"), ("few", "on")])
def test_levels_of_a_second_input_have_a_line_each(inputs):
    model = regressor()
    ax = plot.effect(model, table(), inputs, n_grid=3, n_draws=10)
    name = "on" if "on" in inputs else "kind"
    other = next(one for one in inputs if one != name)
    for line, level in zip(ax.lines, sorted(table()[name].unique(), key=str), strict=False):
        assert line.get_label() == f"{name} = {level}"
        values = line.get_xdata() if other == "a" else sorted(table()[other].unique())
        expected = [model.predict(with_value(name, level).assign(**{other: value})).mean() for value in values]
        np.testing.assert_allclose(line.get_ydata(), expected)


def test_an_offset_belongs_to_its_rows():
    offset = np.linspace(0.0, 1.0, N)
    model = BGNLMRegressor(family="poisson", search=LINEAR, n_chains=1, random_state=1)
    model.fit(table(), response("poisson"), offset=offset)
    ax = plot.effect(model, table(), "a", n_rows=20, n_grid=3, n_draws=10, offset=offset)
    rows = some_of(N, 20)
    expected = [model.predict(with_value("a", v, rows), offset=offset[rows]).mean() for v in ax.lines[0].get_xdata()]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), expected)
    with pytest.warns(MissingOffsetWarning):
        plot.effect(model, table(), "a", n_rows=20, n_grid=3, n_draws=10)


@pytest.mark.parametrize("inputs", ["nobody", 17, ("a", "a"), ("a", "b", "kind"), ()])
def test_inputs_that_are_not_there(inputs):
    with pytest.raises(SettingError, match="input"):
        plot.effect(regressor(), table(), inputs)


def test_the_contribution_of_a_feature():
    model = regressor()
    for text in model.features_["expression"][:3]:
        mixture = coefficient_of(model.searches_[0].average, parse(text))
        ax = plot.feature_effect(model, table(), text, level=0.8, n_grid=7)
        values = ax.lines[0].get_ydata() / mixture.mean
        ends = np.sort([mixture.quantile(0.1) * values, mixture.quantile(0.9) * values], axis=0)
        np.testing.assert_allclose(band_of(ax), ends, rtol=1e-6, atol=1e-9)


def test_a_feature_of_one_input_is_drawn_over_it():
    rng = np.random.default_rng(4)
    X = pd.DataFrame({"u": rng.uniform(0, 3, 80), "v": rng.normal(size=80)})
    y = 3 * np.sin(X["u"]) + 0.1 * rng.normal(size=80)
    model = BGNLMRegressor(transforms=["sin"], search=regressor().search, n_chains=1, random_state=1).fit(X, y)
    ax = plot.feature_effect(model, X, "sin(u)", y=y, n_grid=20)
    assert ax.get_xlabel() == "u"
    curve = next(line for line in ax.lines if line.get_linestyle() == "-")
    slope = coefficient_of(model.searches_[0].average, parse("sin(u)")).mean
    np.testing.assert_allclose(
        curve.get_ydata(), slope * (np.sin(curve.get_xdata()) - np.sin(X["u"]).mean()), rtol=1e-6, atol=1e-9
    )
    dots = next(line for line in ax.lines if line.get_label() == "partial residuals")
    assert len(dots.get_xdata()) == 80
    with pytest.raises(SettingError, match="identity link"):
        plot.feature_effect(regressor("poisson"), table(), 0, y=response("poisson"))


def test_an_input_with_a_long_name_is_named_once():
    long = "a name of an input, very long, as it was measured in the first year"
    X = table().rename(columns={"a": long})
    model = BGNLMRegressor(search=LINEAR, n_chains=1, random_state=1).fit(X, response("gaussian"))
    ax = plot.feature_effect(model, X, f"`{long}`")
    assert ax.get_title(loc="left") == ""
    assert ax.get_xlabel().startswith("a name of an input")


def test_long_titles_are_in_several_lines():
    ax = axes_for(None)
    title(ax, "sigmoid(0.5 + 1.25*first - 3.75*second); class with a name of many, many words against the rest")
    FigureCanvasAgg(ax.figure).draw()
    box = ax._left_title.get_window_extent()
    assert box.x1 <= ax.figure.bbox.x1
    assert box.y1 <= ax.figure.bbox.y1
