"""Every public name has an example, and the example holds."""

import ast
import doctest
import importlib
import inspect
import itertools
import os
import re
import warnings
from types import ModuleType

import pytest

import bgnlm

NAMESPACES = [
    "bgnlm",
    "bgnlm.search",
    "bgnlm.latent",
    "bgnlm.features",
    "bgnlm.datasets",
    "bgnlm.plot",
    "bgnlm.errors",
]
PUBLIC = {
    f"{namespace}.{name}": importlib.import_module(namespace)
    for namespace in NAMESPACES
    for name in importlib.import_module(namespace).__all__
}
ESTIMATORS = ("BGNLMRegressor", "BGNLMClassifier")
METHODS = {  # those with an example of their own, which both estimators have
    f"bgnlm.BGNLMRegressor.{name}": bgnlm.BGNLMRegressor
    for name, value in inspect.getmembers(bgnlm.BGNLMRegressor)
    if not name.startswith("_") and ">>>" in (inspect.getdoc(value) or "")
}
# Values that can have no docstring: it stands below their assignment in this module.
ASSIGNED = {
    "bgnlm.__version__": "bgnlm._version",
    "bgnlm.features.Feature": "bgnlm.features.nodes",
    "bgnlm.features.PRESETS": "bgnlm.features.presets",
}
NEEDS_DATA = {
    f"bgnlm.datasets.load_{name}"
    for name in ("abalone", "asteroids", "breast_cancer", "epigenetic", "exoplanets", "spam")
}
CHECKER = doctest.NORMALIZE_WHITESPACE


def documentation(path):
    """Docstring of a public name, and the module it was written in."""
    name = path.rsplit(".", 1)[1]
    if path in ASSIGNED:
        module = importlib.import_module(ASSIGNED[path])
        return below_assignment(inspect.getsource(module), name), module
    value = getattr((PUBLIC | METHODS)[path], name)
    return inspect.getdoc(value), value if isinstance(value, ModuleType) else inspect.getmodule(value)


def below_assignment(source, name):
    body = ast.parse(source).body
    for statement, following in itertools.pairwise(body):
        targets = getattr(statement, "targets", [getattr(statement, "target", None)])
        if any(getattr(target, "id", None) == name for target in targets):
            return inspect.cleandoc(following.value.value)
    return None


def examples(path):
    text, module = documentation(path)
    return doctest.DocTestParser().get_doctest(text or "", dict(vars(module)), path, None, None)


def test_every_error_is_listed():
    defined = {name for name, value in vars(bgnlm.errors).items() if isinstance(value, type)}
    assert set(bgnlm.errors.__all__) == defined


@pytest.mark.parametrize("path", PUBLIC)
def test_every_public_name_has_an_example(path):
    test = examples(path)
    assert test.examples, f"the docstring of {path} has no example"
    assert any(example.want for example in test.examples), f"the example of {path} shows no result"
    written = "".join(example.source for example in test.examples)
    assert path.rsplit(".", 1)[1] in written, f"the example of {path} does not use it"


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_every_method_is_used_in_an_example(estimator):
    ours = {
        name
        for parent in getattr(bgnlm, estimator).__mro__
        if parent.__module__.startswith("bgnlm.")
        for name, value in vars(parent).items()
        if not name.startswith("_") and (callable(value) or isinstance(value, property))
    }
    paths = ["bgnlm.BGNLMRegressor", f"bgnlm.{estimator}", *METHODS]  # what both have is shown once, for regression
    written = "".join(example.source for path in paths for example in examples(path).examples)
    used = set(re.findall(r"\.(\w+)", written))
    assert sorted(ours - used) == []


@pytest.mark.parametrize("path", [*PUBLIC, *METHODS])
def test_examples_hold(path, monkeypatch):
    if path in NEEDS_DATA and not os.environ.get("BGNLM_DATA"):
        pytest.skip("needs the paper's data: set BGNLM_DATA to the folder that holds them")
    registered = dict(bgnlm.features.transform._registered)
    monkeypatch.setattr(bgnlm.features.transform, "_registered", registered)  # examples may register transforms
    if path.startswith("bgnlm.plot"):
        pytest.importorskip("matplotlib")
    if path.endswith(".to_arviz"):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what its next version changes
            pytest.importorskip("arviz")
    report = []
    runner = doctest.DocTestRunner(optionflags=CHECKER, verbose=False)
    runner.run(examples(path), out=report.append)
    assert runner.failures == 0, "".join(report)
