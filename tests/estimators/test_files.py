"""Saved estimators: everything comes back, and what a file says is not believed."""

import contextlib
import copy
import io
import json
import subprocess
import sys
import warnings
import zipfile
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import bgnlm
from bgnlm import BGNLMClassifier, BGNLMRegressor, CoefficientPrior, SearchConfig, Transform, persistence
from bgnlm.errors import BgnlmError, DataError, ModelFileError
from bgnlm.features import parse, register
from bgnlm.features.transform import _registered
from bgnlm.latent import AR1, Grouped
from bgnlm.search import Limits, MjmcmcSettings, ModelPrior, MoveProbabilities, ProjectionWeights
from tests.naive_glm import PAIRS

QUICK = SearchConfig(n_populations=2, population_size=6, n_candidates=20)
TINY = SearchConfig(n_populations=2, population_size=4, n_candidates=20, n_averaged=5)
CASES = [("gaussian", "identity"), *PAIRS]
N = 30
N_CHANGED = 1200  # files whose content was changed; raise it to look further
N_PARTS = 8


def quick(**settings):
    return BGNLMRegressor(**{"search": QUICK, "n_chains": 1, "random_state": 0, **settings})


@cache
def frame():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(81)
    return pd.DataFrame(
        {
            "size": rng.uniform(0.5, 2.0, N),
            "weight": rng.uniform(0.5, 2.0, N),
            "color": rng.choice(["red", "green"], N),
            "sold": rng.random(N) < 0.5,
        }
    )


@cache
def response(family):
    rng = np.random.default_rng(82)
    eta = (frame()["size"] * frame()["weight"] - 1.0).to_numpy()
    return {
        "gaussian": lambda: eta + 0.3 * rng.normal(size=N),
        "binomial": lambda: (rng.random(N) < 1.0 / (1.0 + np.exp(-eta))).astype(float),
        "poisson": lambda: rng.poisson(np.exp(eta)).astype(float),
        "gamma": lambda: rng.gamma(5.0, np.exp(eta) / 5.0),
        "negative_binomial": lambda: rng.poisson(np.exp(eta) * rng.gamma(3.0, 1.0 / 3.0, N)).astype(float),
    }[family]()


@cache
def fitted(family="gaussian", link=None, search=QUICK):
    return quick(family=family, link=link, search=search).fit(frame(), response(family))


@cache
def with_latent():
    latent = [AR1("weight"), Grouped("color", slope="size"), Grouped("color")]
    return quick(family="poisson", latent=latent, search=TINY).fit(frame(), response("poisson"))


@cache
def three(search=QUICK):
    labels = np.array(["low", "middle", "high"])[np.digitize(response("gaussian"), [-0.3, 0.8])]
    return BGNLMClassifier(search=search, n_chains=1, random_state=0).fit(frame(), labels)


def saved_and_loaded(model, path):
    model.save(path)
    return bgnlm.load(path)


def assert_same(one, other, X):
    """Every answer is the same to the last digit."""
    assert type(one) is type(other)
    for using in ("average", "best", "median"):
        np.testing.assert_array_equal(one.predict(X, using=using), other.predict(X, using=using))
        np.testing.assert_array_equal(one.predict_interval(X, using=using), other.predict_interval(X, using=using))
        assert one.expression(using) == other.expression(using)
    np.testing.assert_array_equal(
        one.sample_predictive(X, 5, random_state=1), other.sample_predictive(X, 5, random_state=1)
    )
    if isinstance(one, BGNLMRegressor):
        for mine, theirs in zip(one.predict(X, return_std=True), other.predict(X, return_std=True), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    else:
        np.testing.assert_array_equal(one.classes_, other.classes_)
        np.testing.assert_array_equal(one.predict_proba(X, plug_in=False), other.predict_proba(X, plug_in=False))
    np.testing.assert_array_equal(one.transform(X), other.transform(X))
    assert one.get_feature_names_out().tolist() == other.get_feature_names_out().tolist()
    assert one.features_.equals(other.features_)
    assert one.models_.equals(other.models_)
    assert one.summary() == other.summary()
    assert one.coding_ == other.coding_
    assert one.response_name_ == other.response_name_
    assert one.n_features_in_ == other.n_features_in_
    assert (
        getattr(one, "feature_names_in_", np.array(0)).tolist()
        == getattr(other, "feature_names_in_", np.array(0)).tolist()
    )
    for mine, theirs in zip(one.searches_, other.searches_, strict=True):
        assert str(mine.diagnostics) == str(theirs.diagnostics)
        assert mine.diagnostics.history == theirs.diagnostics.history
        assert (mine.posterior.log_mass, mine.posterior.discarded) == (
            theirs.posterior.log_mass,
            theirs.posterior.discarded,
        )


class TestRoundTrip:
    @pytest.mark.parametrize(("family", "link"), CASES)
    def test_every_family(self, family, link, tmp_path):
        model = fitted(family, link)
        again = saved_and_loaded(model, tmp_path / "model")
        assert_same(model, again, frame())
        assert again.get_params() == model.get_params()
        again.save(tmp_path / "again")
        assert_same(model, bgnlm.load(tmp_path / "again"), frame())

    def test_three_classes(self, tmp_path):
        again = saved_and_loaded(three(), tmp_path / "model")
        assert_same(three(), again, frame())
        assert isinstance(again.posterior_, tuple)
        assert again.features_["class"].drop_duplicates().tolist() == ["high", "low", "middle"]

    @pytest.mark.parametrize(
        "classes",
        [
            np.array(["no", "yes"]),
            np.array(["no", "yes"], dtype=object),
            np.array(["", "\n`'\"\u00e9\U0001f600\ud800"]),
            np.array([False, True]),
            np.array([-7, 3]),
            np.array([0, 200], dtype=np.uint8),
            np.array([0, 2**63], dtype=np.uint64),
            np.array([1.0, 2.0]),
            np.array([-1e15, 1e15]),
        ],
        ids=lambda value: f"{value.dtype}-{value!r:.20}".encode("ascii", "replace").decode(),
    )
    def test_classes_of_any_type(self, classes, tmp_path):
        labels = classes[(response("gaussian") > 0.3).astype(int)]
        model = BGNLMClassifier(search=TINY, n_chains=1, random_state=0).fit(frame(), labels)
        again = saved_and_loaded(model, tmp_path / "model")
        assert_same(model, again, frame())
        assert again.classes_.tolist() == classes.tolist()
        assert again.classes_.dtype.kind in {classes.dtype.kind, "U" if classes.dtype == object else "i"}

    def test_classes_that_no_file_can_have(self, tmp_path):
        labels = np.array(["2020-01-01", "2021-01-01"], dtype="M8[D]")[(response("gaussian") > 0.3).astype(int)]
        model = BGNLMClassifier(search=TINY, n_chains=1, random_state=0).fit(frame(), labels)
        with pytest.raises(ModelFileError, match=r"Classes of type datetime64\[D\] cannot be saved"):
            model.save(tmp_path / "model")
        assert not list(tmp_path.iterdir())

    def test_names_of_any_kind(self, tmp_path):
        pd = pytest.importorskip("pandas")
        rng = np.random.default_rng(83)
        names = [
            "a b",
            "`",
            "new\nline",
            "quote\"'",
            "\u4e2d\u6587",
            "sin(x)",
            "\\",
            "tab\t",
            " ",
            "0",
            "\u2028",
        ]
        X = pd.DataFrame(rng.uniform(1.0, 2.0, size=(N, len(names))), columns=names)
        y = pd.Series(X["`"] * X["sin(x)"] + 0.01 * rng.normal(size=N), name="\u00fc\n")
        model = quick(search=SearchConfig(n_populations=2, n_candidates=20)).fit(X, y)
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), X)
        with pytest.raises(DataError, match="names that are not empty; number 1 has none"):
            quick().fit(X.rename(columns={"`": ""}), y)

    @pytest.mark.parametrize("missing", ["raise", "impute"])
    def test_codings_of_any_kind(self, missing, tmp_path):
        X = frame().copy()
        if missing == "impute":
            X["color"] = X["color"].astype(object)
            X.loc[3, "color"] = None
            X.loc[5, "size"] = np.nan
        model = quick(missing=missing).fit(X, response("gaussian"))
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), X)

    def test_arrays_without_names(self, tmp_path):
        X = frame()[["size", "weight"]].to_numpy()
        model = quick().fit(X, response("gaussian"))
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), X)

    @pytest.mark.filterwarnings("ignore:There is no feature to return")
    @pytest.mark.parametrize("kind", ["nothing", "few", "no features", "several chains", "time", "rescored"])
    def test_unusual_fits(self, kind, tmp_path):
        X, y = frame(), response("gaussian")
        if kind == "nothing":
            with pytest.warns(UserWarning, match="CONSTANT_RESPONSE"):
                model = quick().fit(X, np.ones(N))
        elif kind == "few":
            model = quick().fit(X[:4], y[:4])
        elif kind == "no features":
            with pytest.warns(UserWarning, match="Constant columns"):
                model = quick().fit(X[["size"]] * 0.0 + 1.0, y)
            X = X[["size"]]
        elif kind == "several chains":
            model = quick(n_chains=3).fit(X, y)
        elif kind == "time":
            model = quick(max_seconds=0).fit(X, y)
        else:
            model = fitted().rescore(X, y, coefficient_prior="g", penalty="aic")
        assert_same(model, saved_and_loaded(model, tmp_path / "model"), X)

    def test_what_is_loaded_can_be_rescored_fitted_and_saved(self, tmp_path):
        X, y = frame(), response("gaussian")
        model = quick(warm_start=True).fit(X, y)
        again = saved_and_loaded(model, tmp_path / "model")
        one, other = (each.rescore(X, y, coefficient_prior="g") for each in (model, again))
        np.testing.assert_array_equal(one.predict(X), other.predict(X))
        same = again.rescore(X, y, penalty="aic")
        np.testing.assert_array_equal(same.predict(X), model.rescore(X, y, penalty="aic").predict(X))
        again.fit(X, y)  # what a search needs to go on is not in the file
        assert len(again.diagnostics_.history[0]) == 2
        np.testing.assert_array_equal(again.predict(X), fitted().predict(X))

    def test_another_process_finds_the_same(self, tmp_path):
        """All models at once, in a process in which nothing can be unpickled."""
        models = {f"{family}-{link}": fitted(family, link) for family, link in CASES} | {"three": three()}
        for name, model in models.items():
            model.save(tmp_path / f"{name}.bgnlm")
        frame().to_csv(tmp_path / "data.csv", index=False)
        code = f"""
import json, pathlib, pickle
from unittest import mock
import numpy, pandas
from bgnlm import load
def fail(*_, **__):
    raise AssertionError("unpickled")
folder = pathlib.Path({str(tmp_path)!r})
with mock.patch.multiple(pickle, load=fail, loads=fail, Unpickler=fail), mock.patch("numpy.load", fail):
    models = {{path.stem: load(path) for path in folder.glob("*.bgnlm")}}
X = pandas.read_csv(folder / "data.csv")
print(json.dumps({{
    name: [model.predict(X).tolist(), model.predict_interval(X).tolist(), model.summary(), model.features_.to_csv(),
           str(model.models_)]
    for name, model in models.items()
}}))
"""
        run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        found = json.loads(run.stdout)
        assert found.keys() == models.keys()
        for name, (mean, interval, summary, features, table) in found.items():
            model = models[name]
            # Another process may round the last digit of a matrix product differently.
            if isinstance(model, BGNLMClassifier):
                assert mean == model.predict(frame()).tolist(), name
            else:
                assert mean == pytest.approx(model.predict(frame()), rel=1e-12), name
            assert np.array(interval) == pytest.approx(model.predict_interval(frame()), rel=1e-12), name
            assert summary == model.summary()
            assert features == model.features_.to_csv()
            assert table == str(model.models_)


SETTINGS = {
    "search": SearchConfig(
        n_populations=2,
        population_size=6,
        n_candidates=20,
        transform_weights=(1.0, 2.5),
        engine="mjmcmc",
        patience=7,
        max_seconds=100.5,
        moves=MoveProbabilities(projection=0.0, new_input=2.0),
        limits=Limits(max_depth=2, max_model_size=5),
        mjmcmc=MjmcmcSettings(jump_probability=0.2, moves=(1.0, 1.0, 1.0, 1.0)),
    ),
    "transforms": ("sin", "gauss"),
    "coefficient_prior": CoefficientPrior("hyper-g", a=3.25, information="local"),
    "penalty": ModelPrior(penalty=1.5, complexity="oc", max_model_size=4, weight_cost=0.5),
    "noise_floor": 0.01,
    "max_depth": 3,
    "keep": (parse("size*weight"), "sin(size)"),
    "missing": "impute",
    "n_chains": 2,
    "n_jobs": 1,
    "max_seconds": 50,
    "random_state": 7,
    "verbose": 0,
    "warm_start": False,
    "latent": (),
    "family": "gaussian",
    "link": "identity",
    "projection_weights": ProjectionWeights(strategy="concave", n_starts=1),
}


class TestSettings:
    def test_all_of_them(self, tmp_path):
        settings = {**SETTINGS, "checkpoint": tmp_path / "checkpoint"}
        model = BGNLMRegressor(**settings).fit(frame(), response("gaussian"))
        assert set(settings) == set(model.get_params())
        again = saved_and_loaded(model, tmp_path / "model")
        for name, value in settings.items():
            assert again.get_params()[name] == value, name
        assert isinstance(again.checkpoint, Path)
        refitted = again.set_params(checkpoint=None).fit(frame(), response("gaussian"))
        np.testing.assert_array_equal(refitted.predict(frame()), model.predict(frame()))

    @pytest.mark.parametrize(
        ("name", "value", "loaded"),
        [
            ("random_state", np.random.RandomState(3), None),
            ("random_state", np.random.default_rng(3), None),
            ("random_state", np.int64(3), 3),
            ("penalty", np.float64(1.5), 1.5),
            ("penalty", np.float32(1.5), 1.5),
            ("penalty", ModelPrior(complexity=lambda _: 1.0), "bic"),
            ("transforms", ["sin", "cos"], ("sin", "cos")),
            ("transforms", [Transform("sin", np.sin)], ("sin",)),
            ("transforms", {"sin": None}, "default"),
            ("keep", ["size", parse("size*weight")], ("size", parse("size*weight"))),
            ("keep", [], ()),
            ("n_chains", np.int32(1), 1),
        ],
        ids=lambda value: type(value).__name__,
    )
    def test_values_as_they_come_back(self, name, value, loaded, tmp_path):
        """What no file can have is left at its default; the estimator does not need it to predict."""
        model = quick(**{name: value}).fit(frame(), response("gaussian"))
        again = saved_and_loaded(model, tmp_path / "model")
        assert again.get_params()[name] == loaded
        assert type(again.get_params()[name]) is type(loaded)
        with zipfile.ZipFile(tmp_path / "model") as archive:
            content = json.loads(archive.read("model.json"))["content"]
        assert (name in content["settings_not_stored"]) == (name not in content["settings"])
        np.testing.assert_array_equal(again.predict(frame()), model.predict(frame()))


@pytest.fixture
def registry():
    before = dict(_registered)
    yield
    _registered.clear()
    _registered.update(before)


@pytest.mark.usefixtures("registry")
class TestTransformsOfOnesOwn:
    def saved(self, path, transform):
        kept = parse(f"{transform.name}(size)", [transform])
        model = quick(transforms=[transform], keep=[kept]).fit(frame(), response("gaussian"))
        assert any(transform.name in text for text in model.features_["expression"])
        model.save(path)
        return model

    def test_one_that_is_registered_is_found_by_its_name(self, tmp_path):
        transform = register(Transform("my_square", np.square))
        model = self.saved(tmp_path / "model", transform)
        assert_same(model, bgnlm.load(tmp_path / "model"), frame())

    def test_one_that_is_not_is_asked_for(self, tmp_path):
        self.saved(tmp_path / "model", Transform("my_square", np.square))
        with pytest.raises(
            ModelFileError, match=r"not registered here: 'my_square'. Register them before loading: bgnlm.f"
        ):
            bgnlm.load(tmp_path / "model")

    @pytest.mark.parametrize(
        "other",
        [np.abs, lambda x: np.square(x) + 1e-6, lambda x: np.full(x.shape, np.nan), lambda _: 1 / 0, lambda x: x[:3]],
        ids=range(5),
    )
    def test_another_function_of_the_same_name_is_refused(self, other, tmp_path):
        self.saved(tmp_path / "model", Transform("my_square", np.square))
        register(Transform("my_square", other))
        with pytest.raises(ModelFileError, match=r"'my_square' is another function here"):
            bgnlm.load(tmp_path / "model")

    def test_the_same_function_in_other_words_is_the_same(self, tmp_path):
        model = self.saved(tmp_path / "model", Transform("my_square", np.square))
        register(Transform("my_square", lambda x: x * x))
        np.testing.assert_array_equal(bgnlm.load(tmp_path / "model").predict(frame()), model.predict(frame()))

    def test_threshold_transforms(self, tmp_path):
        transform = register(Transform("my_cut", lambda x, cut: np.maximum(x - cut, 0.0), quantile=0.4))
        model = self.saved(tmp_path / "model", transform)
        assert_same(model, bgnlm.load(tmp_path / "model"), frame())
        register(Transform("my_cut", lambda x, cut: np.maximum(x - 2.0 * cut, 0.0), quantile=0.4), replace=True)
        with pytest.raises(ModelFileError, match="is another function"):
            bgnlm.load(tmp_path / "model")

    def test_a_function_that_fails_at_the_probes(self, tmp_path):
        def narrow(x):
            if (x < 0).any():
                raise ValueError("only for positive numbers")
            return np.sqrt(x)

        transform = register(Transform("my_root", narrow))
        model = self.saved(tmp_path / "model", transform)
        assert_same(model, bgnlm.load(tmp_path / "model"), frame())


def parts_of(raw):
    with zipfile.ZipFile(io.BytesIO(raw)) as archive:
        content = json.loads(archive.read("model.json"))["content"]
        with np.load(io.BytesIO(archive.read("arrays.npz"))) as arrays:
            return content, {name: arrays[name] for name in arrays.files}


def with_digest(content, arrays):
    """A file whose digest and checksums are right, whatever it has."""
    document = {
        "format": persistence.FORMAT,
        "version": persistence.VERSION,
        "digest": persistence._digest(content, arrays),
        "content": content,
    }
    packed, buffer = io.BytesIO(), io.BytesIO()
    np.savez(packed, **arrays)
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("model.json", json.dumps(document))
        archive.writestr("arrays.npz", packed.getvalue())
    return buffer.getvalue()


@cache
def small_files():
    """Small models of every kind, as content and arrays."""
    models = [fitted(family, None, TINY) for family in dict(CASES)] + [with_latent(), three(TINY)]
    files = []
    for model in models:
        buffer = {}

        def keep(_, content, arrays, version, buffer=buffer):
            buffer.update(content=copy.deepcopy(content), arrays=dict(arrays))

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("bgnlm.estimators.files.write_model", keep)
            model.save("nowhere")
        files.append((json.loads(json.dumps(buffer["content"])), buffer["arrays"]))
    return files


def use(model):
    """Ask everything that a kernel or a table answers; files with absurd numbers may give absurd answers."""
    new = frame()[:4]
    model.predict(new)
    model.predict_interval(new)
    for using in ("best", "median"):
        model.predict(new, using=using)
    if isinstance(model, BGNLMRegressor):
        model.predict(new, return_std=True)
        model.predict_interval(new, of="mean")
    else:
        model.predict_proba(new, plug_in=False)
    model.transform(new)
    assert isinstance(model.summary(), str)
    assert len(model.features_) >= 0
    assert len(model.models_) >= 0
    assert str(model.diagnostics_)
    assert len(model.components_) >= 0
    for field in model.latent_columns_.fields:
        assert len(model.latent_effects(field))
    model.expression()


def refused_or_usable(path, content, arrays):
    """Whether a file is refused; anything but an error of ours is a failure."""
    path.write_bytes(with_digest(content, arrays))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            model = bgnlm.load(path)
        except ModelFileError:
            return True
        with contextlib.suppress(BgnlmError):
            use(model)
    return False


NESTED = [0]
for _ in range(80):
    NESTED = [NESTED]
VALUES = [
    *(
        None,
        True,
        False,
        0,
        1,
        -1,
        2,
        0.5,
        1e300,
        -1e300,
        1e-300,
        10**30,
        2**53,
        "",
        "x",
        [],
        {},
        [1],
        {"a": 1},
        NESTED,
    ),
    *("gaussian", "binomial", "gamma", "identity", "logit", "log", "size", "sin(size)", "size*weight", "`color=red`"),
    *("above_median(size)", "unknown(size)", "sin(", "BGNLMRegressor", "BGNLMClassifier", "numeric", "categorical"),
    *({"object": "SearchConfig"}, {"object": "Path"}, {"feature": "size"}, {"path": "x"}, {"object": []}, [0.5] * 13),
]
FLOATS = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1.0, 2.0, 1e16, 1e308, -1e308, 1e-308, 5e-324]
WHOLE = [0, -1, 1, 2, 3, 100, 2**31, 2**62, -(2**62), 2**63 - 1]
TYPES = ["f4", "f8", ">f8", "i2", "i4", "i8", "u8", "?", "g"]


def places_in(value, path=()):
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places_in(value[key], (*path, key))


def changed_content(rng, content):
    """Leave something out, or put something else in its place."""
    places = [place for place in places_in(content) if place]
    *before, last = places[rng.integers(len(places))]
    holder = content
    for key in before:
        holder = holder[key]
    match rng.integers(4):
        case 0:
            del holder[last]
        case 1:
            holder[last] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
        case 2:
            other = content
            for key in places[rng.integers(len(places))]:
                other = other[key]
            holder[last] = copy.deepcopy(other)
        case _:
            match holder[last]:
                case list() as items:
                    items.extend(copy.deepcopy(items[:1]))
                case str() as text:
                    holder[last] = text[:-1] if rng.random() < 0.5 else text + "x"
                case int() | float() as number:
                    holder[last] = number * -3
    return content


def changed_arrays(rng, arrays):
    """Other values, lengths, shapes or types; one array less, or in the place of another."""
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays[name].copy()
    values = FLOATS if array.dtype.kind == "f" else WHOLE
    value = np.array(values[rng.integers(len(values))]).astype(array.dtype)
    flat = array.reshape(-1)
    match rng.integers(8):
        case 0 if array.size:
            flat[rng.integers(array.size)] = value
        case 1:
            array[...] = value
        case 2:
            array = flat[: rng.integers(array.size + 1)]
        case 3:
            array = np.append(flat, flat[: rng.integers(4)])
        case 4:
            array = array.astype(TYPES[rng.integers(len(TYPES))])
        case 5:
            array = array[None] if rng.random() < 0.5 else flat[::-1]
        case 6:
            array = arrays[sorted(arrays)[rng.integers(len(arrays))]]
        case _:
            return {key: value for key, value in arrays.items() if key != name}
    return {**arrays, name: array}


def changed(rng, content, arrays):
    content = copy.deepcopy(content)
    with np.errstate(all="ignore"):
        for _ in range(rng.integers(1, 4)):
            if rng.random() < 0.4:
                content = changed_content(rng, content)
            elif arrays:
                arrays = changed_arrays(rng, arrays)
    return content, arrays


class TestFilesThatLie:
    def test_the_files_themselves_are_accepted(self, tmp_path):
        for content, arrays in small_files():
            assert not refused_or_usable(tmp_path / "model", content, arrays)

    @pytest.mark.parametrize("part", range(N_PARTS))
    def test_they_are_refused_or_harmless(self, part, tmp_path):
        rng = np.random.default_rng([84, part])
        files = small_files()
        n_files = N_CHANGED // N_PARTS
        n_refused = 0
        for number in range(n_files):
            n_refused += refused_or_usable(tmp_path / "model", *changed(rng, *files[number % len(files)]))
        assert 0.5 * n_files < n_refused < n_files

    @pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e308, 5e-324])
    def test_numbers_beyond_reason(self, value, tmp_path):
        """Every array of floats, all of it and one entry."""
        content, arrays = small_files()[4]
        for name, array in arrays.items():
            if array.dtype.kind == "f" and array.size:
                one = array.copy()
                one.reshape(-1)[-1] = value
                for other in (np.full_like(array, value), one):
                    refused_or_usable(tmp_path / "model", content, {**arrays, name: other})

    @pytest.mark.parametrize("value", [-1, 3, 100, 2**31, -(2**62), 2**63 - 1])
    def test_places_beyond_the_ends(self, value, tmp_path):
        """Kernels find numbers by these."""
        content, arrays = small_files()[1]
        for name, array in arrays.items():
            if array.dtype.kind != "i" or "tally" in name:
                continue
            for place in range(min(array.size, 3)):
                other = array.astype(np.int64)
                other.flat[place] = value
                is_refused = refused_or_usable(tmp_path / "model", content, {**arrays, name: other})
                assert is_refused or 0 <= value < 100

    @pytest.mark.parametrize("name", ["0.members", "0.starts", "0.keys", "0.costs", "0.average.factors", "0.history"])
    @pytest.mark.parametrize(
        "change",
        [
            lambda array: array[:0],
            lambda array: array[:-1],
            lambda array: np.append(array, array[-1:]),
            lambda array: array.astype(np.float32),
            lambda array: array[None],
            lambda array: np.array(array.reshape(-1)[0]),
        ],
        ids=["none", "fewer", "more", "type", "dimension", "scalar"],
    )
    def test_arrays_that_do_not_fit_each_other(self, name, change, tmp_path):
        content, arrays = small_files()[0]
        assert refused_or_usable(tmp_path / "model", content, {**arrays, name: change(arrays[name])})

    def test_features_of_other_inputs_and_twice(self, tmp_path):
        content, arrays = small_files()[0]
        for features in (
            ["unknown", *content["searches"][0]["features"][1:]],
            [content["searches"][0]["features"][1], *content["searches"][0]["features"][1:]],
            content["searches"][0]["features"][:-1],
            [],
            "size",
        ):
            other = copy.deepcopy(content)
            other["searches"][0]["features"] = features
            assert refused_or_usable(tmp_path / "model", other, arrays)

    @pytest.mark.parametrize(
        "change",
        [
            lambda kernels: kernels[:-1],
            lambda kernels: [*kernels, "another"],
            lambda kernels: [*kernels[:-1], kernels[0]],
            lambda kernels: [*kernels[:-1], 1],
            lambda kernels: dict.fromkeys(kernels),
            lambda kernels: kernels[0],
            lambda _: None,
        ],
        ids=["fewer", "more", "twice", "no text", "no list", "a text", "none"],
    )
    def test_kernels_that_do_not_fit_the_tally(self, change, tmp_path):
        content, arrays = small_files()[0]
        other = copy.deepcopy(content)
        other["searches"][0]["kernels"] = change(other["searches"][0]["kernels"])
        assert refused_or_usable(tmp_path / "model", other, arrays)

    @pytest.mark.parametrize("kernels", [["flip", "swap"], ["flip", "of another version"], []])
    def test_kernels_of_another_version(self, kernels, tmp_path):
        content, arrays = small_files()[0]
        other = copy.deepcopy(content)
        other["searches"][0]["kernels"] = kernels
        tally = np.arange(2 * len(kernels), dtype=np.int64).reshape(2, -1)
        path = tmp_path / "model"
        path.write_bytes(with_digest(other, {**arrays, "0.diagnostics.tally": tally}))
        diagnostics = bgnlm.load(path).diagnostics_
        assert diagnostics.kernels == tuple(kernels)
        assert all(kernel in str(diagnostics) for kernel in kernels)

    def test_a_classifier_of_another_family(self, tmp_path):
        content, arrays = small_files()[-1]
        other = copy.deepcopy(content)
        other["searches"][1] |= {"family": "gaussian", "link": "identity"}
        assert refused_or_usable(tmp_path / "model", other, arrays)

    def test_a_regressor_is_no_classifier(self, tmp_path):
        content, arrays = small_files()[0]
        assert refused_or_usable(tmp_path / "model", {**content, "estimator": "BGNLMClassifier"}, arrays)
        assert refused_or_usable(tmp_path / "model", {**content, "estimator": "os.system"}, arrays)

    def test_texts_are_cut_in_messages(self, tmp_path):
        content, arrays = small_files()[0]
        path = tmp_path / "model"
        path.write_bytes(with_digest({**content, "estimator": "x" * 10_000}, arrays))
        with pytest.raises(ModelFileError, match="is damaged") as caught:
            bgnlm.load(path)
        assert len(str(caught.value)) < 600
