"""Pictures show the estimator's numbers: features, models, search, trees, latent effects."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection, PolyCollection
from scipy import stats

import bgnlm
from bgnlm import SearchConfig, plot
from bgnlm.errors import SettingError
from bgnlm.features import operation_count, parse
from bgnlm.latent import AR1
from bgnlm.posterior.coefficients import coefficient_of
from bgnlm.search import Limits
from tests.plot.conftest import (
    FAMILIES,
    band_of,
    classifier,
    latent_model,
    line_of,
    regressor,
    response,
    table,
    texts,
)


def rows_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_bars_are_probabilities():
    model = regressor()
    ax = plot.inclusion(model, n_features=6, least=0.0)
    found = model.features_.head(6)
    np.testing.assert_allclose([bar.get_width() for bar in ax.patches], found["probability"])
    assert [text.get_text() for text in ax.texts[:6]] == list(map(str, found["complexity"]))
    assert any(f"6 of {len(model.features_)} features" in text for text in texts(ax))


def test_improbable_features_are_left_out_with_a_note():
    ax = plot.inclusion(regressor(), least=0.3)
    found = regressor().features_["probability"]
    assert len(ax.patches) == (found >= 0.3).sum() < len(found)


def test_two_hundred_features_stay_readable():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 200))
    limits = Limits(max_depth=0, max_model_size=30)
    search = SearchConfig(n_populations=1, population_size=200, limits=limits, engine="mjmcmc", n_final_steps=20)
    model = bgnlm.BGNLMRegressor(search=search, n_chains=1, penalty=0.1, random_state=1)
    model.fit(X, X[:, :3].sum(axis=1) + rng.normal(size=100))
    for draw in (plot.inclusion, plot.model_space, plot.chains, plot.coefficients):
        ax = draw(model)
        assert len(rows_of(ax)) <= 20
        assert any(" of " in text for text in texts(ax))


def test_bars_of_a_class():
    model = classifier(3)
    for one in model.classes_:
        found = model.features_[model.features_["class"] == one].head(4)
        ax = plot.inclusion(model, n_features=4, least=0.0, target=one)
        np.testing.assert_allclose([bar.get_width() for bar in ax.patches], found["probability"])
        assert f"class {one} against the rest" in texts(ax)


def test_latent_components_have_bars_of_their_own():
    ax = plot.inclusion(latent_model(), least=0.0, n_features=50)
    hatched = [bar for bar in ax.patches if bar.get_hatch()]
    found = latent_model().components_.groupby("component")["probability"].first()
    np.testing.assert_allclose(sorted(bar.get_width() for bar in hatched), sorted(found))
    assert [text.get_text() for text in ax.texts].count("latent") == len(found)


@pytest.mark.parametrize("family", FAMILIES)
def test_coefficients_are_those_of_the_table_given_that_they_are_there(family):
    model = regressor(family)
    average = model.searches_[0].average
    found = model.features_[model.features_["coefficient"] != 0.0].head(5)
    assert len(found)
    for _, row in found.iterrows():
        mixture = coefficient_of(average, parse(row["expression"]))
        assert mixture.probability * mixture.mean == pytest.approx(row["coefficient"], rel=1e-9)
        variances = [stats.t.var(df, scale=s) for df, s in zip(mixture.degrees, mixture.deviations, strict=True)]
        square = mixture.probability * (mixture.weights @ (variances + mixture.means**2))
        assert np.sqrt(square - row["coefficient"] ** 2) == pytest.approx(row["sd"], rel=1e-6)
        for level in (0.05, 0.5, 0.99):
            assert mixture.cdf(mixture.quantile(level)) == pytest.approx(level, abs=1e-9)
    assert coefficient_of(average, parse("sin(nobody)")) is None


def test_intervals_of_coefficients():
    model = regressor()
    ax = plot.coefficients(model, n_features=3, level=0.8, standardized=False)
    for row, text in enumerate(rows_of(ax)):
        mixture = coefficient_of(model.searches_[0].average, parse(f"`{text}`" if "=" in text else text))
        bar, dot = (line.get_xdata() for line in ax.lines[1 + 2 * row : 3 + 2 * row])
        np.testing.assert_allclose(bar, [mixture.quantile(0.1), mixture.quantile(0.9)], rtol=1e-6)
        assert dot[0] == pytest.approx(mixture.mean)


def test_columns_are_as_wide_as_models_are_probable():
    model = regressor()
    ax = plot.model_space(model, n_models=8)
    models = model.models_.head(8)
    blocks = [c for c in ax.collections if isinstance(c, PolyCollection)]
    for block, name in zip(blocks, rows_of(ax), strict=True):
        spans = [path.get_extents() for path in block.get_paths()]
        shares = [(name in each or f"`{name}`" in each) for each in models["features"]]
        covered = sum(span.x1 - span.x0 for span in spans)
        assert covered == pytest.approx(models["probability"][shares].sum(), abs=1e-12)
    assert ax.get_xlim() == (0.0, pytest.approx(models["probability"].sum()))
    first = next(c for c in ax.collections if isinstance(c, LineCollection)).get_segments()[0][0, 0]
    assert first == pytest.approx(models["probability"][0])


def test_the_front_is_what_nothing_simpler_beats():
    model = regressor()
    found = model.posterior_.found
    sizes = [sum(1 + operation_count(f) for f in model.posterior_.features_of(m)) for m in range(len(found.rows))]
    scores = found.rows.log_marginal - found.rows.log_marginal.max()
    best = {}
    for size, score in zip(sizes, scores, strict=True):
        if score > max((s for z, s in zip(sizes, scores, strict=True) if z < size), default=-np.inf):
            best[size] = max(score, best.get(size, -np.inf))
    line = line_of(plot.front(model), label="best of its complexity")
    np.testing.assert_allclose(line.get_xydata(), sorted(best.items()))


def test_mass_over_time():
    model = regressor()
    for by in ("populations", "seconds"):
        ax = plot.search(model, by=by)
        for number, history in enumerate(model.diagnostics_.history):
            line = line_of(ax, label=f"chain {number}")
            expected = [step.log_mass - model.posterior_.log_mass for step in history]
            np.testing.assert_allclose(line.get_ydata(), np.minimum(expected, 0.0), atol=1e-9)
            times = [step.n_explored if by == "populations" else step.seconds for step in history]
            np.testing.assert_allclose(line.get_xdata(), times)


def test_chains_against_each_other():
    model = regressor()
    ax = plot.chains(model, n_features=5, least=0.0)
    for number, each in enumerate(model.diagnostics_.chain_probabilities):
        np.testing.assert_allclose(line_of(ax, label=f"chain {number}").get_xdata(), each[:5])
    np.testing.assert_allclose(
        line_of(ax, label="all chains").get_xdata(), model.posterior_.inclusion_probabilities[:5]
    )


def test_after_rescore_chains_cannot_be_compared():
    other = regressor().rescore(table(), response("gaussian"), penalty=1.0)
    with pytest.raises(SettingError, match="rescore"):
        plot.chains(other)
    lines = [line for line in plot.search(other).lines if line.get_label().startswith("chain")]
    assert max(line.get_ydata()[-1] for line in lines) == 0.0


def test_a_tree():
    ax = plot.tree("sigmoid(0.5 + 2.0*x*y**2 - 1.5*sin(z))")
    assert [text.get_text() for text in ax.texts] == [
        "-1.5", "2", "sigmoid", "0.5 + Σ", "sin", "z", "×", "x", "power 2", "y",
    ]  # fmt: skip
    places = {text.get_text(): text.get_position() for text in ax.texts[2:]}
    assert places["sin"][1] == places["×"][1] == places["0.5 + Σ"][1] - 1
    assert places["×"][0] == (places["x"][0] + places["power 2"][0]) / 2
    assert len(ax.lines) == 7


def test_trees_of_a_model_by_place_and_by_text():
    model = regressor()
    for place, text in enumerate(model.features_["expression"].head(4)):
        assert texts(plot.tree(model, place)) == texts(plot.tree(model, text)) == texts(plot.tree(parse(text)))
    with pytest.raises(SettingError, match="feature must be one that was found"):
        plot.tree(model, "a*a*a*a*a*a")
    with pytest.raises(SettingError, match="a place in features_"):
        plot.tree(model, 10_000)


def test_a_process_is_a_line_with_its_band():
    ax = plot.latent(latent_model(), "AR1(t)", level=0.8)
    effects = latent_model().latent_effects("AR1(t)", level=0.8)
    np.testing.assert_allclose(ax.lines[1].get_xydata(), effects[["position", "mean"]])
    np.testing.assert_allclose(band_of(ax), effects[["lower", "upper"]].T)


def test_groups_are_sorted_and_the_largest_are_kept():
    effects = latent_model().latent_effects("Grouped(g)").sort_values("mean", ascending=False)
    ax = plot.latent(latent_model(), "Grouped(g)")
    assert rows_of(ax) == list(effects["position"])
    np.testing.assert_allclose(ax.lines[1].get_xdata(), effects["mean"])
    ends = [segment[:, 0] for segment in ax.collections[0].get_segments()]
    np.testing.assert_allclose(ends, effects[["lower", "upper"]])
    few = plot.latent(latent_model(), "Grouped(g)", n_groups=2)
    assert set(rows_of(few)) == set(effects.loc[effects["mean"].abs().nlargest(2).index, "position"])
    assert any("the 2 largest of 6" in text for text in texts(few))


def test_the_most_probable_component_comes_by_default():
    first = latent_model().components_["component"][0]
    assert any(text == first for text in texts(plot.latent(latent_model())))
    assert any("AR1(t)" in text for text in texts(plot.latent(latent_model(), AR1("t"))))
    with pytest.raises(SettingError, match="no latent components"):
        plot.latent(regressor())
    with pytest.raises(SettingError, match="component must be one of"):
        plot.latent(latent_model(), "AR1(s)")
