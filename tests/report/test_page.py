"""The report page without a browser: what it says, that it needs nothing else, and that no name is markup."""

import base64
import json
import re
from html.parser import HTMLParser

import numpy as np
import pytest

import bgnlm
from bgnlm import BGNLMRegressor, Transform
from bgnlm.errors import DataError, SettingError
from bgnlm.page.code import refit_code
from bgnlm.page.html import digest_source, embedded, escape
from tests.report.page_models import HOSTILE, QUICK, fitted, table

VOID = {"input", "img", "meta", "br"}


class Reader(HTMLParser):
    """Elements with their attributes, and texts; fails where tags do not close as they opened."""

    def __init__(self, page):
        super().__init__()
        self.found, self.open, self.texts = [], [], {}
        self.feed(page)
        self.close()
        assert not self.open

    def handle_starttag(self, tag, attributes):
        self.found.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        for tag in set(self.open):
            self.texts[tag] = self.texts.get(tag, "") + data

    def all(self, tag, **attributes):
        return [given for name, given in self.found if name == tag and attributes.items() <= given.items()]


def model_of(page):
    return json.loads(re.search(r'<script type="application/json" id="bgnlm-model">(.*?)</script>', page).group(1))


@pytest.fixture(scope="module")
def gaussian():
    model, X, y = fitted("gaussian")
    page = model.report(X, y)
    return page, Reader(page)


def test_parts_and_headings(gaussian):
    _, read = gaussian
    headings = [
        "The law",
        "Can it be trusted?",
        "What if?",
        "Features",
        "Models",
        "Pictures",
        "What was asked",
        "Data",
        "Do it again",
    ]
    assert [text for text in headings if text not in read.texts["h2"]] == []
    ids = [one["id"] for _, one in read.found if "id" in one]
    assert len(ids) == len(set(ids))
    assert {one["href"].removeprefix("#") for one in read.all("a")} <= set(ids)
    assert len(read.all("h1")) == 1
    assert read.all("html") == [{"lang": "en"}]


def test_nothing_comes_from_elsewhere(gaussian):
    page, read = gaussian
    policy = read.all("meta", **{"http-equiv": "Content-Security-Policy"})[0]["content"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    style = re.search(r"<style>(.*?)</style>", page, re.DOTALL).group(1)
    script = re.search(r"<script>(.*?)</script>", page, re.DOTALL).group(1)
    assert f"style-src {digest_source(style)};" in policy
    assert f"script-src {digest_source(script)};" in policy
    assert not read.all("link")
    assert all(one["src"].startswith("data:image/svg+xml;base64,") for one in read.all("img"))
    assert not any("style" in one or any(key.startswith("on") for key in one) for _, one in read.found)
    assert "http" not in style.replace("http-equiv", "")


def test_controls_and_tables_are_labelled(gaussian):
    _, read = gaussian
    labelled = {one["for"] for one in read.all("label") if "for" in one}
    for tag in ("input", "select"):
        for one in read.all(tag):
            assert one.get("id") in labelled or "aria-label" in one or one.get("type") == "checkbox"
    assert len(read.all("caption")) == len(read.all("table"))
    assert all(one["alt"] for one in read.all("img"))


def test_pictures_need_what_is_given(gaussian):
    model, X, _ = fitted("gaussian")
    with_all, with_rows, alone = (Reader(page).all("img") for page in (gaussian[0], model.report(X), model.report()))
    names = [{one["alt"] for one in found} for found in (with_all, with_rows, alone)]
    assert "Observed against predicted" in names[0] - names[1]
    assert "Effect of a" in names[1] - names[2]
    assert "Probabilities of features" in names[2]


def test_pictures_keep_texts_and_are_always_the_same(gaussian):
    page, read = gaussian
    first = base64.b64decode(read.all("img")[0]["src"].partition(",")[2]).decode()
    assert "<text" in first
    model, X, y = fitted("gaussian")
    assert model.report(X, y) == page


def test_the_page_computes_with_the_models_of_predict(gaussian):
    document = model_of(gaussian[0])
    model, *_ = fitted("gaussian")
    assert len(document["parts"][0]["uncertainty"]) == np.count_nonzero(model.searches_[0].average.probabilities)
    assert sum(one["probability"] for one in document["parts"][0]["uncertainty"]) == pytest.approx(1.0)


def test_too_many_covariances_are_left_out_and_said(monkeypatch):
    monkeypatch.setattr("bgnlm.page.average._MOST_NUMBERS", 30)
    page = fitted("gaussian")[0].report()
    kept = model_of(page)["parts"][0]["uncertainty"]
    assert len(kept) < len(fitted("gaussian")[0].searches_[0].average)
    assert sum(one["probability"] for one in kept) == pytest.approx(1.0)
    assert "leave out the least probable models" in page


def test_hostile_names_are_texts():
    model, X, y = fitted("hostile")
    page = model.report(X, y)
    read = Reader(page)
    assert len(read.all("script")) == 2
    assert len(read.all("title")) == 1
    assert not any("onerror" in one for _, one in read.found)
    columns = [one["name"] for one in model_of(page)["columns"]]
    assert columns == list(HOSTILE)
    assert "\u2028" not in page
    assert "\x07" not in page
    page.encode()


def test_what_cannot_be_printed_is_shown_as_an_escape():
    assert escape("half \ud800 \x07 \N{RIGHT-TO-LEFT OVERRIDE}") == "half \\ud800 \\x07 \\u202e"
    assert embedded({"a": "\ud800</script>\u2028&"}) == r'{"a":"\ud800\u003c/script\u003e\u2028\u0026"}'


@pytest.mark.parametrize("name", ["two", "three"])
def test_classes(name):
    model, X, y = fitted(name)
    read = Reader(model.report(X, y))
    assert len([one for one in read.all("output") if "data-class" in one]) == len(model.classes_)
    assert "Calibration: observed against predicted" in {one["alt"] for one in read.all("img")}
    assert ("class low, against the rest" in read.texts["h3"]) if name == "three" else "h3" not in read.texts


def test_latent_components():
    model, X, y = fitted("latent")
    page = model.report(X, y)
    document = model_of(page)
    assert [one["slope"] for one in document["latent"]] == [None, "b"]
    assert document["latent"][0]["values"] == [f"p{k}" for k in range(6)]
    assert "predict_interval gives them" in page
    assert "Latent components" in Reader(page).texts["h2"]


def test_too_many_positions(monkeypatch):
    monkeypatch.setattr("bgnlm.page.average._MOST_NUMBERS", 3)
    page = fitted("latent")[0].report()
    assert model_of(page)["latent"] == []
    assert "There are too many positions to carry" in page


def test_from_a_file_the_page_is_the_same(tmp_path):
    model, X, _ = fitted("gaussian")
    model.save(tmp_path / "model.bgnlm")
    loaded = bgnlm.load(tmp_path / "model.bgnlm")
    assert loaded.input_ranges_ == model.input_ranges_
    assert loaded.input_ranges_["b"] == tuple(np.quantile(X["b"], [0.0, 0.5, 1.0]))
    assert loaded.report() == model.report()


def test_without_ranges_the_page_says_so():
    model = fitted("gaussian")[0].rescore(*fitted("gaussian")[1:])
    model.input_ranges_ = {}
    page = model.report()
    assert "No range is known of" in page
    assert not Reader(page).all("input", type="range")
    assert Reader(model.report(table())).all("input", type="range")


def test_to_a_file_and_with_a_title(tmp_path):
    path = tmp_path / "report.html"
    page = fitted("poisson")[0].report(path=path, title="A & B")
    assert path.read_text(encoding="utf-8") == page
    assert "<title>A &amp; B</title>" in page


def test_what_is_refused(tmp_path):
    model, X, y = fitted("gaussian")
    with pytest.raises(DataError, match="belong to the rows of X"):
        model.report(y=y)
    with pytest.raises(DataError, match="inconsistent numbers of rows"):
        model.report(X, y[:3])
    with pytest.raises(SettingError, match="path must be the name of a file"):
        model.report(path=3)
    with pytest.raises(SettingError, match="title must be a text"):
        model.report(title=3)


def test_transforms_without_a_form_leave_the_sliders_out():
    own = Transform("own_cube", lambda x: x**3)
    X = table()[["b"]]
    settings = {"transforms": [own], "search": QUICK, "n_chains": 1, "random_state": 1, "keep": ["own_cube(b)"]}
    bgnlm.features.register(own)
    page = BGNLMRegressor(**settings).fit(X, X["b"] ** 3).report()
    assert "The models cannot be computed in the page." in page
    assert "bgnlm-model" not in page.partition("<script>")[0]


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.axes", None)
    page = fitted("poisson")[0].report()
    assert "pip install &quot;bgnlm[plot]&quot;" in page
    assert not Reader(page).all("img")


def test_code_that_fits_again():
    model, X, y = fitted("gaussian")
    names = {"X": X, "y": y}
    exec(refit_code(model).rpartition("\n")[0], names)
    assert names["model"].summary().splitlines()[:4] == model.summary().splitlines()[:4]


def test_code_of_latent_components():
    model = fitted("latent")[0]
    names = {}
    exec(refit_code(model).partition("\nmodel.fit")[0], names)
    assert names["model"].get_params() == model.get_params()


def test_notebooks_show_the_law():
    for name in ("gaussian", "three", "latent"):
        model = fitted(name)[0]
        shown = model._repr_mimebundle_()["text/html"]
        card = shown.partition('<div class="bgnlm-card">')[2]
        assert "<math>" in card
        assert "of the probability found" in card
        # Old versions of scikit-learn number what they show in the style, too.
        beginnings = [re.sub(r"id-\d+", "", text).partition('id="sk-')[0] for text in (model._repr_html_(), shown)]
        assert beginnings[0] == beginnings[1]
    assert "bgnlm-card" not in BGNLMRegressor()._repr_mimebundle_()["text/html"]


def test_notebooks_show_hostile_names_as_texts():
    card = fitted("hostile")[0]._repr_html_().partition('<div class="bgnlm-card">')[2].partition("</div></div>")[0]
    assert "<script>alert" not in card
    assert "<img" not in card
