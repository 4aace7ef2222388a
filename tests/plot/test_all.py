"""What holds for every plot: axes, figures, settings, names, models from files."""

import io
import itertools
import subprocess
import sys
import warnings
from types import SimpleNamespace
from unittest import mock

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import bgnlm
from bgnlm import plot
from bgnlm.errors import DataError, SettingError
from bgnlm.features import Input
from bgnlm.plot.canvas import axes_for, label_rows, row_values, shown
from bgnlm.plot.models import _inches, _set_off, _text
from tests.plot.conftest import (
    FAMILIES,
    HOSTILE,
    TINY,
    classifier,
    empty_model,
    hostile_data,
    hostile_model,
    labels,
    latent_data,
    latent_model,
    regressor,
    response,
    table,
    texts,
)

WITHOUT_DATA = {
    "inclusion": plot.inclusion,
    "coefficients": plot.coefficients,
    "model_space": plot.model_space,
    "front": plot.front,
    "search": plot.search,
    "seconds": lambda model, **more: plot.search(model, by="seconds", **more),
    "chains": plot.chains,
    "tree": plot.tree,
}
WITH_X = {"feature_effect": plot.feature_effect}
WITH_Y = {
    "residuals": plot.residuals,
    "quantiles": lambda *data, **more: plot.residuals(*data, kind="quantiles", **more),
}
FOR_NUMBERS = {"predictions": plot.predictions}
FOR_CLASSES = {"calibration": plot.calibration, "roc": plot.roc}


def drawn(model, X, y, *, is_number, name, **more):
    """One plot of a model."""
    if name in WITHOUT_DATA:
        return WITHOUT_DATA[name](model, **more)
    if name in WITH_X:
        return WITH_X[name](model, X, **more)
    if name == "effect":
        return plot.effect(model, X, 0, n_rows=5, n_draws=20, n_grid=4, **more)
    if name == "pair":
        target = None if is_number or len(model.classes_) == 2 else model.classes_[0]
        return plot.effect(model, X, (0, 1), n_rows=5, n_grid=4, target=target, **more)
    return (WITH_Y | FOR_NUMBERS | FOR_CLASSES)[name](model, X, y, **more)


EVERY = [*WITHOUT_DATA, *WITH_X, "effect", "pair", *WITH_Y]


def check(ax):
    """The picture can be drawn, without a warning, into a file of moderate size."""
    assert isinstance(ax, Axes)
    for kind in ("png", "svg"):
        file = io.BytesIO()
        ax.figure.savefig(file, format=kind, dpi=40)
        assert 0 < len(file.getvalue()) < 300_000
    return file.getvalue().decode()


@pytest.mark.parametrize("name", [*EVERY, *FOR_NUMBERS])
@pytest.mark.parametrize("family", FAMILIES)
def test_every_family(family, name):
    check(drawn(regressor(family), table(), response(family), is_number=True, name=name))


@pytest.mark.parametrize("name", [*EVERY, *FOR_CLASSES])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes(n_classes, name):
    ax = drawn(classifier(n_classes), table(), labels(n_classes), is_number=False, name=name)
    check(ax)
    if n_classes == 3:
        everywhere = [text for one in ax.figure.axes for text in texts(one)]
        assert any("class" in text or "high" in text for text in everywhere)


@pytest.mark.parametrize("name", [*EVERY, *FOR_NUMBERS])
def test_latent_components(name):
    check(drawn(latent_model(), *latent_data(), is_number=True, name=name))


@pytest.mark.parametrize("name", [*EVERY, *FOR_NUMBERS])
def test_a_loaded_model_draws_the_same(loaded, name):
    first, second = (
        drawn(model, table(), response("gaussian"), is_number=True, name=name) for model in (regressor(), loaded)
    )
    assert texts(first) == texts(second)
    for one, other in zip(first.lines, second.lines, strict=True):
        np.testing.assert_allclose(one.get_xydata(), other.get_xydata(), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", [*EVERY, *FOR_NUMBERS])
def test_hostile_names_are_written_as_they_are(name):
    svg = check(drawn(hostile_model(), *hostile_data(), is_number=True, name=name))
    assert "<script" not in svg
    for text in texts(drawn(hostile_model(), *hostile_data(), is_number=True, name=name)):
        assert text.isprintable()
        assert len(text) < 130


def test_a_dollar_is_no_formula():
    ax = plot.inclusion(hostile_model())
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert {"$x_1$", "_hidden", HOSTILE[1]} <= set(names)
    assert not any(label.get_parse_math() for label in [*ax.get_yticklabels(), ax.xaxis.label, *ax.texts])
    ax = plot.predictions(hostile_model(), *hostile_data())
    assert not any(text.get_parse_math() for text in [ax.xaxis.label, ax.yaxis.label, *ax.get_legend().get_texts()])


def test_long_texts_lose_their_middle():
    assert shown("short") == "short"
    assert shown("x" * 50 + "end", 20) == "x" * 13 + "…" + "xxxend"
    assert len(shown("y" * 500, 30)) == 30
    assert shown("a\tb\u202ec") == "a\\tb\\u202ec"


@pytest.mark.parametrize("name", ["inclusion", "model_space", "coefficients", "front", "search", "chains", "effect"])
def test_a_model_without_features(name):
    X, y = np.random.default_rng(9).normal(size=(30, 2)), np.zeros(30)
    model = empty_model()
    assert model.models_["size"].max() == 0
    check(drawn(model, X, y, is_number=True, name=name))


def test_nothing_found_is_said_in_words():
    ax = plot.inclusion(empty_model())
    assert [text.get_text() for text in ax.texts] == ["no features: the models found have an intercept alone"]
    assert not ax.axison
    with pytest.raises(SettingError, match="no features"):
        plot.tree(empty_model())


@pytest.mark.parametrize("name", [*EVERY, *FOR_NUMBERS])
def test_axes_given_are_used(name):
    figure = Figure()
    _, ax = figure.subplots(1, 2)
    other = figure.axes[0]
    assert drawn(regressor(), table(), response("gaussian"), is_number=True, name=name, ax=ax) is ax
    assert not other.has_data()
    check(ax)


def test_nothing_global_is_changed():
    from matplotlib import pyplot as plt

    before = dict(mpl.rcParams)
    for name in [*EVERY, *FOR_NUMBERS]:
        drawn(regressor(), table(), response("gaussian"), is_number=True, name=name)
    plot.latent(latent_model())
    assert plt.get_fignums() == []
    assert dict(mpl.rcParams) == before


def test_pictures_do_not_depend_on_the_settings_for_tex():
    with mpl.rc_context({"text.usetex": True}):
        ax = plot.inclusion(hostile_model())
    assert not any(text.get_usetex() for text in [*ax.get_yticklabels(), *ax.texts, ax.xaxis.label])


@pytest.mark.parametrize("ax", [Figure(), np.array([1]), "axes"])
def test_what_is_no_axes_is_refused(ax):
    with pytest.raises(SettingError, match="ax must be one matplotlib Axes"):
        plot.inclusion(regressor(), ax=ax)


def test_what_is_no_fitted_estimator_is_refused():
    with pytest.raises(NotFittedError):
        plot.inclusion(bgnlm.BGNLMRegressor())
    with pytest.raises(SettingError, match=r"pipeline\[-1\]"):
        plot.inclusion(make_pipeline(FunctionTransformer(), regressor()))


def test_data_are_asked_for(loaded):
    with pytest.raises(DataError, match="keeps no data"):
        plot.effect(loaded, None, "a")
    with pytest.raises(DataError, match="keeps no data"):
        plot.calibration(classifier(), None, None)
    with pytest.raises(DataError, match="X has 2 columns"):
        plot.effect(loaded, table()[["a", "b"]], "a")
    with pytest.raises(DataError, match="inconsistent numbers of rows"):
        plot.predictions(loaded, table(), [1.0, 2.0])


def test_a_class_that_is_not_there_is_refused():
    with pytest.raises(SettingError, match="target must be one of 'high', 'low', 'very high'"):
        plot.inclusion(classifier(3), target="huge")
    with pytest.raises(SettingError, match="no classes"):
        plot.effect(regressor(), table(), "a", target=1)


def test_without_matplotlib_the_advice_is_to_install_it():
    code = (
        "import sys; sys.modules['matplotlib'] = None; import bgnlm\n"
        "try:\n    bgnlm.plot.tree('x')\n"
        "except bgnlm.errors.MissingExtraError as error:\n    print(error)"
    )
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert 'pip install "bgnlm[plot]"' in output


def test_unusual_letters_are_left_to_the_fonts():
    X, y = hostile_data()
    X = X.set_axis(["名前", *X.columns[1:]], axis=1)
    ax = plot.inclusion(bgnlm.BGNLMRegressor(search=hostile_model().search, n_chains=1, random_state=1).fit(X, y))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ax.figure.savefig(io.BytesIO(), format="svg")
    assert all("Glyph" in str(one.message) for one in caught)


@pytest.mark.parametrize("n_chains", [1, 4, 6])
def test_the_legend_of_chains_is_inside_of_the_figure(n_chains):
    X, y = hostile_data()
    ax = plot.chains(bgnlm.BGNLMRegressor(search=TINY, n_chains=n_chains, random_state=1).fit(X, y))
    FigureCanvasAgg(ax.figure).draw()
    box, inside = ax.get_legend().get_window_extent(), ax.figure.bbox
    assert box.x0 >= inside.x0
    assert box.x1 <= inside.x1


@pytest.mark.parametrize("draw", [plot.inclusion, plot.model_space, plot.coefficients, plot.chains])
def test_notes_below_rows_with_long_names_are_inside_of_the_figure(draw):
    figure = draw(hostile_model()).figure
    FigureCanvasAgg(figure).draw()
    inside = figure.bbox
    for text in figure.axes[0].texts:
        box = text.get_window_extent()
        assert box.x0 >= inside.x0, text
        assert box.x1 <= inside.x1, text


def overlap(one, other):
    return one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1


@pytest.mark.parametrize("draw", [plot.inclusion, plot.coefficients, plot.model_space])
@pytest.mark.parametrize("target", ["low", "a class that has a name of many words"])
def test_the_title_of_rows_is_not_over_their_headings(draw, target):
    kinds = labels(3).replace({"high": "a class that has a name of many words"})
    long = table().rename(columns={"a": "a column that has a name of many, many words"})
    model = bgnlm.BGNLMClassifier(search=TINY, n_chains=1, random_state=1).fit(long, kinds)
    ax = draw(model, target=target)
    FigureCanvasAgg(ax.figure).draw()
    name = ax._right_title
    assert target in name.get_text()
    box = name.get_window_extent()
    assert not any(overlap(box, text.get_window_extent()) for text in ax.texts)
    assert ax.figure.bbox.x0 <= box.x0 < box.x1 <= ax.figure.bbox.x1
    assert box.y1 <= ax.figure.bbox.y1


@pytest.mark.parametrize("name", ["short", "a name of a feature that leaves little room, 1"])
def test_numbers_of_models_do_not_touch(name):
    ax = axes_for(None, (6.4, 2.0))
    edges = np.append(0.0, np.cumsum([0.3, 0.2, 0.1, *[0.04] * 10]))
    _set_off(ax, edges, _inches(ax, [name]))
    label_rows(ax, [name])
    row_values(ax, ["0.50"], "probability")
    ax.set_xlim(0.0, 1.0)
    FigureCanvasAgg(ax.figure).draw()
    boxes = [text.get_window_extent() for text in ax.texts if text.get_text().isdigit()]
    assert (len(boxes) > 5) == (name == "short")
    assert len(boxes) > 2
    assert all(one.x1 + 3 <= other.x0 for one, other in itertools.pairwise(boxes))


@pytest.mark.parametrize("model", [hostile_model, regressor])
def test_names_of_models_are_inside_of_the_picture(model):
    ax = plot.front(model())
    FigureCanvasAgg(ax.figure).draw()
    named = [text for text in ax.texts if text.get_text()]
    assert named
    for text in named:
        box = text.get_window_extent()
        assert ax.figure.bbox.x0 <= box.x0 < box.x1 <= ax.figure.bbox.x1, text
        assert box.y0 >= ax.bbox.y0


def test_a_name_of_two_terms_takes_half_of_the_picture():
    long = [Input("a name of many words, the first of two"), Input("a name of many words, the second of two")]
    assert max(len(_text(tuple(long))), len(_text((long[0],)))) <= 37
    assert _text(tuple(long)).count("a name") == 2


def test_the_legend_of_a_search_is_above_the_chains():
    ax = plot.search(regressor())
    FigureCanvasAgg(ax.figure).draw()
    assert ax.get_legend().get_window_extent().y0 >= ax.bbox.y1 - 1


@pytest.mark.parametrize("far", [0.5, 500.0])
def test_ticks_of_a_search_are_not_above_0(far):
    step = SimpleNamespace(n_explored=1, seconds=1.0, log_mass=-far, chain=0)
    history = [[step, SimpleNamespace(**vars(step) | {"n_explored": 2, "log_mass": 0.0})]]
    found = SimpleNamespace(
        diagnostics=SimpleNamespace(history=history, chain_probabilities=np.ones((1, 1))),
        posterior=SimpleNamespace(log_mass=0.0),
        title="",
    )
    with mock.patch("bgnlm.plot.searches.one_search", return_value=found):
        ax = plot.search(regressor())
    low, high = ax.get_ylim()
    assert all(tick <= 0 for tick in ax.get_yticks() if low <= tick <= high)
    assert (ax.get_yscale() == "linear") == (far < 1)


@pytest.mark.parametrize("draw", [plot.model_space, lambda model, ax: plot.effect(model, table(), "kind", ax=ax)])
def test_parts_of_figures_hold_pictures(draw):
    part = Figure(figsize=(8, 4)).subfigures(1, 2)[0]
    ax = draw(regressor(), ax=part.add_subplot())
    FigureCanvasAgg(part.figure).draw()
    assert ax.figure is part
