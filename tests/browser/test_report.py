"""The report page in a real browser: predictions and intervals computed there are those of Python."""

import numpy as np
import pytest

from bgnlm.page.notebook import card
from tests.report.page_models import fitted

PREDICTION = 1e-6  # relative, and so is the next one, to the width of the interval
INTERVAL = 1e-4
ROWS = (0, 1, 9, 17)


def row_of(X, number):
    row = X.iloc[number]
    return {
        name: None if row[name] != row[name] else row[name].item() if hasattr(row[name], "item") else row[name]
        for name in X
    }


def at(sight, selector, *keys):
    return sight.page.eval_on_selector_all(
        selector, "(all, keys) => all.map(one => keys.map(key => Number(one.dataset[key])))", list(keys)
    )


def check_quiet(sight):
    assert sight.complaints == []
    assert sight.dialogs == []
    assert all(url.startswith(("file:", "data:")) for url in sight.requests)


@pytest.mark.parametrize("family", ["gaussian", "poisson", "gamma", "binomial"])
def test_sliders_agree_with_predict(see, family):
    model, X, _ = fitted(family)
    sight = see(model.report())
    kinds = ("response", "mean") if family == "gaussian" else ("mean",)
    for number in ROWS:
        for name, value in row_of(X, number).items():
            sight.set(name, value)
        here = X.iloc[[number]]
        assert at(sight, "#prediction", "value")[0][0] == pytest.approx(model.predict(here)[0], rel=PREDICTION)
        for kind in kinds:
            low, high = model.predict_interval(here, of=kind)[0]
            found = at(sight, f"#intervals [data-of={kind}]", "low", "high")[0]
            np.testing.assert_allclose(found, [low, high], rtol=0, atol=INTERVAL * (high - low))
    check_quiet(sight)


@pytest.mark.parametrize("name", ["two", "three"])
def test_probabilities_agree_with_predict_proba(see, name):
    model, X, _ = fitted(name)
    sight = see(model.report())
    for number in ROWS:
        for column, value in row_of(X, number).items():
            sight.set(column, value)
        here = X.iloc[[number]]
        found = np.ravel(at(sight, "#probabilities output", "value"))
        np.testing.assert_allclose(found, model.predict_proba(here)[0], rtol=PREDICTION, atol=1e-12)
        ends = np.atleast_2d(model.predict_interval(here)[0])
        shown = at(sight, "#probabilities .bar-interval[data-low]", "low", "high")
        np.testing.assert_allclose(shown, ends, rtol=0, atol=INTERVAL)
    check_quiet(sight)


def test_latent_components_agree_with_predict(see):
    model, X, _ = fitted("latent")
    sight = see(model.report())
    for number in ROWS:
        for name, value in row_of(X, number).items():
            sight.set(name, value)
        expected = model.predict(X.iloc[[number]])[0]
        assert at(sight, "#prediction", "value")[0][0] == pytest.approx(expected, rel=PREDICTION)
    sight.set("patient", None)
    unseen = X.iloc[[ROWS[-1]]].assign(patient="new")
    assert at(sight, "#prediction", "value")[0][0] == pytest.approx(model.predict(unseen)[0], rel=PREDICTION)
    check_quiet(sight)


def test_the_offset_counts(see):
    model, X, _ = fitted("offset")
    sight = see(model.report())
    sight.page.locator("#in-offset").fill("0.75")
    for name, value in row_of(X, 0).items():
        sight.set(name, value)
    expected = model.predict(X.iloc[[0]], offset=[0.75])[0]
    assert at(sight, "#prediction", "value")[0][0] == pytest.approx(expected, rel=PREDICTION)
    low, high = model.predict_interval(X.iloc[[0]], of="mean", offset=[0.75])[0]
    found = at(sight, "#intervals [data-of=mean]", "low", "high")[0]
    np.testing.assert_allclose(found, [low, high], rtol=0, atol=INTERVAL * (high - low))
    check_quiet(sight)


def test_a_slider_is_moved_by_the_keyboard(see):
    model, _, _ = fitted("gaussian")
    sight = see(model.report())
    before = sight.page.locator("#prediction").get_attribute("data-value")
    slide = sight.page.locator(".control[data-column=a] input[type=range]")
    slide.focus()
    sight.page.keyboard.press("End")
    # Not a condition in JavaScript: the page's policy forbids to evaluate one again after a frame.
    sight.page.locator(f"#prediction:not([data-value='{before}'])").wait_for(state="attached")
    box = sight.page.locator(".control[data-column=a] input[type=number]").input_value()
    assert float(box) == pytest.approx(model.input_ranges_["a"][2], rel=1e-5)
    assert sight.page.locator("#curve path").count() > 0
    check_quiet(sight)


def test_formulas_have_their_space_and_length(see):
    model, X, y = fitted("hostile")
    page = see(model.report(X, y), width=375).page
    box = "one => { const box = one.getBoundingClientRect(); return [box.left, box.right]; }"
    name, sign = (page.eval_on_selector(f".law math:first-child {tag}", box) for tag in ("mi", "mo"))
    assert sign[1] - sign[0] > 12  # with space on both sides
    longest = page.eval_on_selector_all(
        ".law math", "all => Math.max(...all.map(one => one.getBoundingClientRect().width))"
    )
    assert longest > 1500  # not broken where it would not be seen
    assert page.evaluate("document.documentElement.scrollWidth") <= 375
    assert name[1] <= sign[0] + 1


def test_tables_sort_and_filter(see):
    sight = see(fitted("gaussian")[0].report())
    page = sight.page

    def column(k):
        return page.eval_on_selector_all(
            "#features tbody tr",
            "(rows, k) => rows.filter(r => !r.hidden).map(r => Number(r.cells[k].dataset.value))",
            k,
        )

    page.locator("#features th button").nth(4).click()
    assert column(4) == sorted(column(4), reverse=True)
    page.locator("#features th button").nth(4).click()
    assert column(4) == sorted(column(4))
    assert page.locator("#features th").nth(4).get_attribute("aria-sort") == "ascending"
    n_all = len(column(1))
    page.locator("#filter-features").fill("KIND=red")
    assert 0 < len(column(1)) < n_all
    assert page.locator("#filter-features-count").text_content() == f"{len(column(1))} of {n_all} rows"
    page.locator("#filter-features").fill("")
    assert len(column(1)) == n_all
    check_quiet(sight)


@pytest.mark.parametrize("name", ["gaussian", "three", "hostile", "latent"])
def test_a_phone_needs_no_sideways_scrolling(see, name):
    model, X, y = fitted(name)
    sight = see(model.report(X, y), width=375)
    assert sight.page.evaluate("document.documentElement.scrollWidth") <= 375
    check_quiet(sight)


@pytest.mark.parametrize("name", ["hostile", "long"])
def test_long_features_leave_room_for_their_probabilities(see, name):
    page = see(fitted(name)[0].report()).page
    seen, needed = page.eval_on_selector("#features", "one => [one.parentElement.clientWidth, one.scrollWidth]")
    assert needed <= seen
    scrolled = page.eval_on_selector_all(
        "#features td.formula div", "all => all.filter(one => one.scrollWidth > one.clientWidth).length"
    )
    assert scrolled > 0


def test_a_notebook_needs_no_sideways_scrolling(see):
    page = see(f"<!doctype html><meta charset=utf-8>{card(fitted('hostile')[0])}", width=375).page
    assert page.evaluate("document.documentElement.scrollWidth") <= 375


@pytest.mark.parametrize("width", [320, 375, 1280])
def test_boxes_show_long_numbers_whole(see, width):
    sight = see(fitted("gaussian")[0].report(), width)
    box = sight.page.locator(".control[data-column=a] input[type=number]")
    for text in ("-0.000123457", "-1.23457e+100", "-123456.7890123"):
        box.fill(text)
        seen, needed = box.evaluate("one => [one.clientWidth, one.scrollWidth]")
        assert needed <= seen, text
    assert sight.page.evaluate("document.documentElement.scrollWidth") <= width


def test_pictures_are_drawn_and_formulas_are_typeset(see):
    model, X, y = fitted("gaussian")
    sight = see(model.report(X, y))
    widths = sight.page.eval_on_selector_all("img", "all => all.map(one => one.naturalWidth)")
    assert len(widths) > 5
    assert min(widths) > 0
    assert sight.page.eval_on_selector(".law math", "one => one.getBoundingClientRect().width") > 20
    check_quiet(sight)


def test_hostile_names_do_nothing(see):
    model, X, y = fitted("hostile")
    sight = see(model.report(X, y))
    elements = sight.page.evaluate("[document.scripts.length, document.querySelectorAll('img[src=x]').length]")
    assert elements == [2, 0]
    sight.set(X.columns[1], 1.5)
    expected = X.median().to_frame().T
    expected[X.columns[1]] = 1.5
    used = sight.page.eval_on_selector_all(".control", "all => all.map(one => one.dataset.column)")
    if X.columns[1] in used:
        assert at(sight, "#prediction", "value")[0][0] == pytest.approx(model.predict(expected)[0], rel=PREDICTION)
    check_quiet(sight)


def test_names_of_levels_are_inside_of_the_curve(see):
    model, X, _ = fitted("gaussian")
    sight = see(model.report(), width=375)
    sight.set("kind", X["kind"].iloc[0])
    ends = sight.page.eval_on_selector_all("#curve text", "all => all.map(one => one.getBoundingClientRect().right)")
    box = sight.page.eval_on_selector("#curve", "one => one.getBoundingClientRect().right")
    assert len(ends) > 3
    assert max(ends) <= box
