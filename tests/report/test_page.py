"""The report page without a browser: what it says, that it needs nothing else, and that no name is markup."""

import base64
import json
import re
from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

import bgnlm
from bgnlm import BGNLMRegressor, Transform
from bgnlm.errors import DataError, MissingOffsetWarning, OutputError, SettingError
from bgnlm.estimators.columns import CategoricalColumn, NumericColumn
from bgnlm.estimators.inputs import TableCoding
from bgnlm.page.code import refit_code
from bgnlm.page.document import _important
from bgnlm.page.html import digest_source, embedded, escape
from bgnlm.page.notebook import card
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


def test_choices_have_the_order_of_the_picture(gaussian):
    pytest.importorskip("matplotlib")
    model, X, _ = fitted("gaussian")
    choice = re.search(r'data-column="kind".*?</select>', gaussian[0]).group(0)
    offered = re.findall(r"<option[^>]*>(.*?)</option>", choice)
    ax = bgnlm.plot.effect(model, X, "kind", n_draws=10, n_rows=10)
    assert [*(text.get_text() for text in ax.get_xticklabels()), "(missing)"] == offered
    most_frequent = X["kind"].value_counts().index[0]
    assert re.findall(r"<option[^>]* selected>(.*?)</option>", choice) == [most_frequent] != offered[:1]


def test_inputs_are_important_by_their_own_columns():
    columns = NumericColumn("a"), NumericColumn("a=b"), NumericColumn("ab"), CategoricalColumn("c", "x", ("y", "z"))
    model = SimpleNamespace(coding_=TableCoding(columns, True))
    assert _important(model, {"a=b": 0.9, "ab": 0.4, "c=y": 0.01, "c=z": 0.5}) == ["a=b", "c", "ab"]


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


def test_one_model_is_no_plural():
    page = fitted("hostile")[0].report()
    assert "<caption>1 model</caption>" in page
    assert "<caption>5 features</caption>" in page


def test_what_the_search_did(gaussian):
    """One search in a list, several in a table."""
    words = "models averaged over; their probability"
    assert f"<dt>{words}</dt>" in gaussian[0]
    assert "What the search did" not in gaussian[0]
    page = fitted("three")[0].report()
    assert f'<th scope="col">{words}</th>' in page
    assert "What the search did" in page


def test_a_single_chain_has_nothing_to_agree_with(gaussian):
    assert "chains came to their ends and agree" in gaussian[0]
    page = fitted("latent")[0].report()
    assert "chains came to their ends and agree" not in page
    assert "there was a single chain, and nothing to compare it with" in page


def test_trees_are_those_of_probable_features(gaussian):
    words = "The most probable feature that is no input, as a tree"
    model = fitted("gaussian")[0]
    assert model.features_.query("complexity > 0")["probability"].max() < 0.05
    assert words not in gaussian[0]
    X = table()[["b"]]
    law = BGNLMRegressor(search=QUICK, n_chains=1, random_state=1).fit(X, X["b"] ** 2)
    assert words in law.report()


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


def test_models_are_counted_once_whatever_their_hyperparameters():
    model, _, _ = fitted("latent")
    average = model.searches_[0].average
    n = average.latent.n_models
    assert n < len(average)
    assert f"average over {n:,} of" in model.summary()
    page = model.report()
    assert f"<strong>{n:,}</strong><span>models averaged over" in page
    assert f"<dd>{n:,}; {average.mass:.4f}</dd>" in page
    assert f"Predictions average over {n:,} models" in card(model)


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
    assert fitted("poisson")[0].report(path=path, title="A & B") is None  # or a prompt would show all of it
    page = path.read_text(encoding="utf-8")
    assert page == fitted("poisson")[0].report(title="A & B")
    assert "<title>A &amp; B</title>" in page


@pytest.mark.parametrize(
    ("name", "rows", "response", "message"),
    [
        ("gaussian", None, lambda y: y, "belong to the rows of X, which is not there. Give report"),
        ("gaussian", lambda X: X.iloc[:0], lambda y: y[:0], "X must have rows; got none. Give at least one, or leave"),
        ("gaussian", lambda X: X.to_numpy()[:0], None, "X must have rows; got none"),
        ("gaussian", lambda _: "page.html", None, r"must be a table; got 'page.html'.*report\(path='page.html'\)"),
        (
            "gaussian",
            lambda X: X,
            lambda y: y[:3],
            "inconsistent numbers of rows: 80 and 3. Give one response for each",
        ),
        ("gaussian", lambda X: X, lambda y: ["a"] * len(y), "y must hold numbers, as size did in training. Give"),
        ("gaussian", lambda X: X, lambda y: y.where(y > 3), "y must be finite in every row. Leave out rows"),
        ("poisson", lambda X: X, lambda y: -y - 1, "must be a whole number of 0 or more; got"),
        (
            "two",
            lambda X: X,
            lambda y: y.replace("no", "maybe"),
            "classes of the training data, 'no', 'yes'; got 'maybe'",
        ),
        ("three", lambda X: X, lambda y: y[:3], "inconsistent numbers of rows: 80 and 3"),
        (
            "gaussian",
            lambda X: X.drop(columns=["a", "on"]),
            None,
            "yet now missing:\n- a\n- on\nGive the columns of the training data",
        ),
        (
            "gaussian",
            lambda X: X.to_numpy()[:, :2],
            None,
            "X has 2 features.*expecting 4.*Give the columns of the train",
        ),
    ],
)
@pytest.mark.filterwarnings("ignore:X does not have valid feature names")
def test_data_that_are_refused(tmp_path, name, rows, response, message):
    model, X, y = fitted(name)
    X, y = None if rows is None else rows(X), None if response is None else response(y)
    with pytest.raises(DataError, match=message):
        model.report(X, y, tmp_path / "page.html")
    assert list(tmp_path.iterdir()) == []


def test_settings_that_are_refused():
    model = fitted("gaussian")[0]
    with pytest.raises(SettingError, match="path must be the name of a file, or None; got 3"):
        model.report(path=3)
    with pytest.raises(SettingError, match="title must be a text"):
        model.report(title=3)
    with pytest.raises(NotFittedError, match=r"not fitted yet\. Call 'fit'"):
        BGNLMRegressor().report()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("", "path must be a file; .* is a folder. Give the name of a file in it"),
        ("folder", "path must be a file; .* is a folder"),
        ("no/page.html", "there is no folder '.*no'. Create it first"),
        ("page.html/page.html", "there is no folder '.*page.html'"),
        ("x" * 300, "could not be written to .*: File name too long. Nothing was changed there. Name another file"),
        ("zero\0byte", "could not be written to .*: .*null"),
    ],
)
def test_places_that_cannot_be_written(tmp_path, monkeypatch, name, message):
    """Most are refused before the page is made, which takes a while."""
    monkeypatch.setattr("bgnlm.estimators.report_page.write_page", lambda _: "a page")
    (tmp_path / "folder").mkdir()
    (tmp_path / "page.html").write_text("before")
    with pytest.raises(OutputError, match=message):
        fitted("gaussian")[0].report(path=tmp_path / name)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["folder", "page.html"]
    assert (tmp_path / "page.html").read_text() == "before"


def test_a_full_disk_leaves_no_half_of_a_page(tmp_path, monkeypatch):
    path = tmp_path / "page.html"
    path.write_text("before")

    def fail(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail)
    with pytest.raises(OutputError, match=r"written to '.*page.html': No space left on device. Nothing was changed"):
        fitted("gaussian")[0].report(path=path)
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("page.html", "before")]


def test_a_forgotten_offset_is_said_once():
    model, X, y = fitted("offset")
    with pytest.warns(MissingOffsetWarning) as caught:
        page = model.report(X, y)
    assert len(caught) == 1
    assert page == model.report(X, y, offset=0.0)


def test_a_single_row():
    model, X, y = fitted("gaussian")
    assert "All rows have the same response" in model.report(X[:1], y[:1])


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


def test_code_with_an_offset():
    assert refit_code(fitted("offset")[0]).endswith(
        "model.fit(X, y, offset=offset)\nmodel.report(X, y, 'report.html', offset=offset)"
    )


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
