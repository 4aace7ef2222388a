"""Every error and warning that bgnlm raises on purpose.

Examples
--------
>>> import bgnlm
>>> try:
...     bgnlm.log_marginal([1.0, 2.0, 3.0], [[1.0], [2.0], [3.0]], family="normal")
... except bgnlm.errors.SettingError as error:
...     print(type(error).__name__)
SettingError
"""

__all__ = [
    "BgnlmError",
    "BgnlmWarning",
    "CheckpointError",
    "CheckpointWarning",
    "DataError",
    "FeatureError",
    "FeatureRangeWarning",
    "MissingExtraError",
    "MissingOffsetWarning",
    "ModelFileError",
    "ModelStatusWarning",
    "OutputError",
    "SearchStoppedWarning",
    "SettingError",
    "UnseenLevelWarning",
    "WorkerError",
]


class BgnlmError(Exception):
    """Base of all errors that bgnlm raises on purpose.

    Examples
    --------
    >>> import bgnlm
    >>> for text in ["sin(x", "sin(x)"]:
    ...     try:
    ...         print(bgnlm.parse(text))
    ...     except bgnlm.errors.BgnlmError as error:
    ...         print(type(error).__name__)
    FeatureError
    sin(x)
    """


class SettingError(BgnlmError, ValueError):
    """A setting has a value that is not allowed.

    Examples
    --------
    >>> import bgnlm
    >>> try:
    ...     bgnlm.BGNLMRegressor(max_depth=-1).fit([[1.0], [2.0], [4.0]], [1.0, 3.0, 2.0])
    ... except bgnlm.errors.SettingError as error:
    ...     print(error)
    max_depth must be 0 or more; got -1.
    """


class DataError(BgnlmError, ValueError):
    """The data cannot be used as they are.

    Examples
    --------
    >>> import bgnlm
    >>> try:
    ...     bgnlm.log_marginal([1.0, 2.0], [[1.0], [2.0], [4.0]])
    ... except bgnlm.errors.DataError as error:
    ...     print(error)
    X and y must have the same number of rows; got 3 and 2.
    """


class FeatureError(BgnlmError, ValueError):
    """A feature cannot be built, parsed or evaluated.

    Examples
    --------
    >>> import bgnlm
    >>> try:
    ...     bgnlm.parse("sinus(x)")
    ... except bgnlm.errors.FeatureError as error:
    ...     print(str(error).split(".")[0])
    cannot read the feature at position 0: unknown transform 'sinus'
    """


class CheckpointError(BgnlmError, OSError):
    """A checkpoint cannot be written, read or continued; nothing in it was changed.

    Examples
    --------
    >>> import bgnlm, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = Path(folder, "letter.txt").write_text("something else")
    ...     try:
    ...         bgnlm.find_features([1.0, 3.0, 2.0, 5.0], [[1.0], [2.0], [4.0], [5.0]], checkpoint=folder)
    ...     except bgnlm.errors.CheckpointError as error:
    ...         print("is no checkpoint" in str(error))
    True
    """


class ModelFileError(BgnlmError, ValueError):
    """A model file cannot be written, read or trusted.

    Examples
    --------
    >>> import bgnlm
    >>> try:
    ...     bgnlm.load("nowhere.bgnlm")
    ... except bgnlm.errors.ModelFileError as error:
    ...     print(error)
    'nowhere.bgnlm' could not be read: No such file or directory.
    """


class OutputError(BgnlmError, OSError):
    """A page or a table cannot be written; what was there is as it was.

    Examples
    --------
    >>> import bgnlm
    >>> quick = bgnlm.SearchConfig(n_populations=1)
    >>> model = bgnlm.BGNLMRegressor(search=quick, n_chains=1, random_state=1)
    >>> model = model.fit([[1.0], [2.0], [4.0], [5.0]], [1.0, 3.0, 2.0, 5.0])
    >>> try:
    ...     model.report(path="nowhere/report.html")
    ... except bgnlm.errors.OutputError as error:
    ...     print(error)
    path must be a file in a folder that exists; there is no folder 'nowhere'. Create it first.
    """


class WorkerError(BgnlmError, RuntimeError):
    """A chain could not be advanced in another process; the message has the error there.

    If other chains went on, there is a `SearchStoppedWarning` instead.

    Examples
    --------
    >>> import bgnlm
    >>> try:
    ...     raise bgnlm.errors.WorkerError("MemoryError: no room")
    ... except RuntimeError as error:
    ...     print(error)
    MemoryError: no room
    """


class MissingExtraError(BgnlmError, ImportError):
    """A package that an optional part needs is not installed.

    Examples
    --------
    >>> import bgnlm
    >>> from unittest.mock import patch
    >>> with patch.dict("sys.modules", sympy=None):  # as if SymPy were not there
    ...     try:
    ...         bgnlm.features.to_sympy(bgnlm.parse("sin(x)"))
    ...     except bgnlm.errors.MissingExtraError as error:
    ...         print(error)
    to_sympy needs SymPy, which is not installed. Run: pip install 'bgnlm[sympy]'
    """


class BgnlmWarning(UserWarning):
    """Base of all warnings that bgnlm issues on purpose.

    Examples
    --------
    To run without them:

    >>> import bgnlm, warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore", bgnlm.errors.BgnlmWarning)
    ...     bgnlm.log_marginal([1.0, 3.0, 2.0, 5.0], [[1, 1], [2, 2], [4, 4], [5, 5]])
    -inf
    """


class FeatureRangeWarning(BgnlmWarning):
    """A feature is not finite for some new rows and was set to a value seen in training.

    Examples
    --------
    >>> import bgnlm, warnings
    >>> quick = bgnlm.SearchConfig(n_populations=2, population_size=4)
    >>> model = bgnlm.BGNLMRegressor(transforms=["inverse"], search=quick, n_chains=1, random_state=1)
    >>> model = model.fit([[k] for k in range(1, 9)], [1 / k for k in range(1, 9)])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     model.predict([[0.0]]).round(3)  # 1 / 0 becomes 1, the largest value in training
    array([1.])
    >>> caught[0].category is bgnlm.errors.FeatureRangeWarning
    True
    """


class ModelStatusWarning(BgnlmWarning):
    """A model's score is defined by convention only; the message says why and what to do.

    Examples
    --------
    >>> import bgnlm, warnings
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     bgnlm.log_marginal([1.0, 3.0, 2.0, 5.0], [[1, 1], [2, 2], [4, 4], [5, 5]])  # the same column twice
    -inf
    >>> caught[0].category is bgnlm.errors.ModelStatusWarning
    True
    """


class SearchStoppedWarning(BgnlmWarning):
    """A search was interrupted, or some of its chains failed; what it had found is there.

    Examples
    --------
    >>> import bgnlm, warnings
    >>> def stop(progress):
    ...     raise KeyboardInterrupt  # as Ctrl-C does
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     found = bgnlm.find_features([1.0, 3.0, 2.0, 5.0], [[1.0], [2.0], [4.0], [5.0]], progress=stop)
    >>> caught[0].category is bgnlm.errors.SearchStoppedWarning
    True
    """


class CheckpointWarning(BgnlmWarning):
    """A checkpoint is continued under circumstances that may change the last digits of the result.

    Examples
    --------
    >>> import bgnlm, tempfile, warnings
    >>> from unittest.mock import patch
    >>> y, X = [1.0, 3.0, 2.0, 5.0], [[1.0], [2.0], [4.0], [5.0]]
    >>> search = {"config": bgnlm.SearchConfig(n_populations=1), "n_chains": 1, "random_state": 1}
    >>> with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     begun = bgnlm.find_features(y, X, checkpoint=folder, **search)
    ...     with patch("bgnlm.search.checkpoint.__version__", "9.0"):  # as if a later version went on
    ...         ended = bgnlm.find_features(y, X, checkpoint=folder, **search)
    >>> caught[0].category is bgnlm.errors.CheckpointWarning
    True
    """


class MissingOffsetWarning(BgnlmWarning):
    """A model that was fitted with an offset predicts without one, as if it were 0.

    Examples
    --------
    >>> import bgnlm, warnings
    >>> quick = bgnlm.SearchConfig(n_populations=2, population_size=4)
    >>> model = bgnlm.BGNLMRegressor(family="poisson", search=quick, n_chains=1, random_state=1)
    >>> model = model.fit([[1.0], [2.0], [4.0], [5.0]], [0, 1, 4, 9], offset=[0.0, 0.0, 1.0, 2.0])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     prediction = model.predict([[3.0]])  # offset=0 would say that this is meant
    >>> caught[0].category is bgnlm.errors.MissingOffsetWarning
    True
    """


class UnseenLevelWarning(BgnlmWarning):
    """A categorical column has levels that were not there in training; they count as its most frequent level.

    Examples
    --------
    >>> import bgnlm, warnings
    >>> import pandas as pd
    >>> table = pd.DataFrame({"colour": ["red", "red", "red", "blue", "blue", "red"]})
    >>> quick = bgnlm.SearchConfig(n_populations=2, population_size=4)
    >>> model = bgnlm.BGNLMRegressor(search=quick, n_chains=1, random_state=1)
    >>> model = model.fit(table, [1.0, 1.1, 0.9, 3.0, 3.1, 1.0])
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     green, red = model.predict(pd.DataFrame({"colour": ["green", "red"]}))
    >>> bool(green == red), caught[0].category is bgnlm.errors.UnseenLevelWarning
    (True, True)
    """
