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


class BgnlmError(Exception):
    """Base of all errors that bgnlm raises on purpose."""


class SettingError(BgnlmError, ValueError):
    """A setting has a value that is not allowed."""


class DataError(BgnlmError, ValueError):
    """The data cannot be used as they are."""


class FeatureError(BgnlmError, ValueError):
    """A feature cannot be built, parsed or evaluated."""


class CheckpointError(BgnlmError, OSError):
    """A checkpoint cannot be written, read or continued; nothing in it was changed."""


class ModelFileError(BgnlmError, ValueError):
    """A model file cannot be written, read or trusted."""


class WorkerError(BgnlmError, RuntimeError):
    """A chain could not be advanced in another process."""


class MissingExtraError(BgnlmError, ImportError):
    """A package that an optional part needs is not installed."""


class BgnlmWarning(UserWarning):
    """Base of all warnings that bgnlm issues on purpose."""


class FeatureRangeWarning(BgnlmWarning):
    """A feature is not finite for some new rows and was set to a value seen in training."""


class ModelStatusWarning(BgnlmWarning):
    """A model's score is defined by convention only; the message says why and what to do."""


class SearchStoppedWarning(BgnlmWarning):
    """A search was interrupted, or some of its chains failed; what it had found is there."""


class CheckpointWarning(BgnlmWarning):
    """A checkpoint is continued under circumstances that may change the last digits of the result."""


class MissingOffsetWarning(BgnlmWarning):
    """A model that was fitted with an offset predicts without one, as if it were 0."""


class UnseenLevelWarning(BgnlmWarning):
    """A categorical column has levels that were not there in training; they count as its most frequent level."""
