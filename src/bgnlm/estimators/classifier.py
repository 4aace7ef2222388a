"""`BGNLMClassifier`: two classes by a binomial model, more classes by one model for each against the rest."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets

from bgnlm._typing import AnyArray, FloatArray
from bgnlm._validation import check_weights
from bgnlm.errors import DataError, SettingError
from bgnlm.estimators.base import BGNLMEstimator, LearntTable, central, check_target, generator
from bgnlm.estimators.columns import kind_of
from bgnlm.estimators.progress import with_callbacks
from bgnlm.features import Feature, Transform
from bgnlm.likelihood.coefficient_priors import CoefficientPrior
from bgnlm.posterior.predict import Rows, predict_mean
from bgnlm.search.config import SearchConfig
from bgnlm.search.prior import ModelPrior
from bgnlm.search.problem import SearchProblem


class BGNLMClassifier(ClassifierMixin, BGNLMEstimator):  # type: ignore[misc]
    """Bayesian generalized nonlinear classification.

    The parameters are those of `BGNLMRegressor`; the family is binomial, with link "logit", "probit" or "cloglog". With
    more than two classes, one model for each class against the rest is searched for; their probabilities are divided by
    their sum, and tables have a column ``class``.

    Attributes
    ----------
    classes_
        The classes, sorted.
    features_, models_, posterior_, diagnostics_, input_ranges_, coding_, n_features_in_, feature_names_in_
        As for `BGNLMRegressor`; `posterior_` and `diagnostics_` are tuples, one for each class, if there are more than
        two.

    Examples
    --------
    >>> import numpy as np
    >>> from bgnlm import BGNLMClassifier, SearchConfig
    >>> rng = np.random.default_rng(1)
    >>> X = rng.normal(size=(100, 2))
    >>> y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=100) > 0, "same", "different")
    >>> model = BGNLMClassifier(search=SearchConfig(n_populations=3), n_chains=1, random_state=1).fit(X, y)
    >>> model.features_["expression"][0]
    'x1*x2'
    >>> model.predict([[2.0, 2.0], [1.0, -1.0]])
    array(['same', 'different'], dtype='<U9')

    Tables and texts are as for `BGNLMRegressor`. Probabilities of classes, with their uncertainty:

    >>> new = [[0.1, 0.1], [2.0, -2.0]]
    >>> model.predict_proba(new).round(2)
    array([[0.47, 0.53],
           [1.  , 0.  ]])
    >>> model.predict_log_proba(new).argmax(axis=1)
    array([1, 0])
    >>> model.predict_interval(new, level=0.9).round(2)
    array([[0.41, 0.64],
           [0.  , 0.  ]])
    >>> model.predict_quantiles(new, [0.5]).shape
    (2, 1)
    >>> model.sample_predictive(new, n_draws=100, random_state=1).shape
    (100, 2)
    >>> model.score(X, y)
    0.81
    """

    def __init__(
        self,
        link: str | None = None,
        transforms: str | Iterable[str | Transform] = "default",
        coefficient_prior: str | CoefficientPrior = "auto",
        penalty: str | float | ModelPrior = "bic",
        max_depth: int = 5,
        projection_weights: Any = "naive",
        latent: Sequence[Any] = (),
        keep: Iterable[str | Feature] = (),
        missing: str = "raise",
        n_chains: int = 4,
        n_jobs: int | None = None,
        max_seconds: float | None = None,
        search: SearchConfig | None = None,
        checkpoint: str | Path | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: int = 0,
    ) -> None:
        self.link = link
        self.transforms = transforms
        self.coefficient_prior = coefficient_prior
        self.penalty = penalty
        self.max_depth = max_depth
        self.projection_weights = projection_weights
        self.latent = latent
        self.keep = keep
        self.missing = missing
        self.n_chains = n_chains
        self.n_jobs = n_jobs
        self.max_seconds = max_seconds
        self.search = search
        self.checkpoint = checkpoint
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose

    family = "binomial"
    noise_floor = 0.0

    @with_callbacks
    def fit(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> Self:
        """Search for the features that tell the classes apart, and fit the models made of them.

        Parameters
        ----------
        X
            A table, as for `BGNLMRegressor`.
        y
            Classes: numbers, texts or Booleans.
        sample_weight
            How often each row was observed.
        offset
            A known part of the linear predictor; for two classes only.
        """
        table = self._learn(X, y, sample_weight)
        labels = check_target(y, len(table.design))
        classes = _classes(labels, sample_weight)
        if len(classes) > 2 and offset is not None:
            raise DataError(f"offset is for two classes; got {len(classes)} classes. Leave it out.")
        self._run(table, self._by_class(table, labels, classes, sample_weight, offset))
        self.classes_ = classes
        return self

    def _by_class(
        self, table: LearntTable, labels: AnyArray, classes: AnyArray, sample_weight: Any, offset: Any
    ) -> list[SearchProblem]:
        """One problem for each class against the rest; of two classes, for the second."""
        return [
            self._problem(table, (labels == one).astype(np.float64), sample_weight, offset, "binomial")
            for one in (classes[1:] if len(classes) == 2 else classes)
        ]

    def _problems_again(
        self, before: Self, table: LearntTable, y: AnyArray, sample_weight: Any, offset: Any
    ) -> list[SearchProblem]:
        self.classes_ = before.classes_
        if not np.array_equal(_classes(y, sample_weight), self.classes_):
            raise DataError("y must have the classes of the training data.")
        return self._by_class(table, y, self.classes_, sample_weight, offset)

    @property
    def _events(self) -> tuple[str | None, ...]:
        return tuple(str(one) for one in (self.classes_[1:] if len(self.classes_) == 2 else self.classes_))

    @property
    def _subject(self) -> str:
        if len(self.classes_) > 2:
            return ""
        first, second = self.classes_.tolist()
        return f"probability of class {second!r}, against {first!r}\n"

    def _rows(self, X: Any, offset: Any = None, trials: Any = None, *, needs_offset: bool = True) -> Rows:
        rows = super()._rows(X, offset, trials, needs_offset=needs_offset)
        if offset is not None and len(self.classes_) > 2:
            raise DataError(f"offset is for two classes; there are {len(self.classes_)}. Leave it out.")
        return rows

    def predict_proba(self, X: Any, offset: Any = None, using: str = "average", plug_in: bool = True) -> FloatArray:
        """Probabilities of the classes, one column each, in the order of `classes_`; see `BGNLMRegressor.predict`."""
        rows = self._rows(X, offset)
        shares = [predict_mean(found.models(using), rows, plug_in=plug_in) for found in self._found]
        return _normalised(shares)

    def predict(self, X: Any, offset: Any = None, using: str = "average") -> AnyArray:
        """Return the most probable class of each row."""
        best = self.predict_proba(X, offset, using).argmax(axis=1)
        return np.asarray(self.classes_[best])

    def predict_log_proba(self, X: Any, offset: Any = None, using: str = "average", plug_in: bool = True) -> FloatArray:
        """Logarithms of the probabilities."""
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X, offset, using, plug_in))

    def predict_interval(
        self, X: Any, level: float = 0.9, of: str = "mean", offset: Any = None, using: str = "average"
    ) -> FloatArray:
        """Central credible interval of the probability of the second class: lower and upper ends as two columns.

        For more than two classes (rows, classes, 2): of each class against the rest, before normalisation. Weights of
        projections that were fitted to y count as known, so with projections an interval may be too narrow.
        """
        return self.predict_quantiles(X, central(level), of, offset, using)

    def predict_quantiles(
        self,
        X: Any,
        levels: Any = (0.05, 0.5, 0.95),
        of: str = "mean",
        offset: Any = None,
        using: str = "average",
    ) -> FloatArray:
        """Quantiles of the probability of the second class, one column for each of `levels`; see `predict_interval`."""
        if of != "mean":
            raise SettingError(
                f"of must be 'mean', the probability of a class; got {of!r}. For the class itself use predict_proba."
            )
        each = self._quantiles(self._rows(X, offset), levels, "mean", using)
        return each[0] if len(each) == 1 else np.stack(each, axis=1)

    def sample_predictive(
        self,
        X: Any,
        n_draws: int = 1000,
        of: str = "response",
        offset: Any = None,
        using: str = "average",
        random_state: Any = None,
    ) -> AnyArray:
        """Draw classes ("response"): (n_draws, rows); or their probabilities ("mean"): (n_draws, rows, classes)."""
        if of not in ("response", "mean"):
            raise SettingError(f"of must be 'response' or 'mean'; got {of!r}.")
        rng = generator(random_state)
        shares = _normalised(self._draws(self._rows(X, offset), n_draws, "mean", using, rng))
        return shares if of == "mean" else np.asarray(self.classes_[_drawn(rng, shares)])

    def _drawn_classes(self, rng: np.random.Generator, each: Sequence[FloatArray]) -> AnyArray:
        """Numbers of classes drawn by the probabilities of each class against the rest."""
        return _drawn(rng, _normalised(each))

    def score(self, X: Any, y: Any, sample_weight: Any = None, offset: Any = None) -> float:
        """Share of rows whose class is predicted right."""
        from sklearn.metrics import accuracy_score

        return float(accuracy_score(y, self.predict(X, offset=offset), sample_weight=sample_weight))


def _drawn(rng: np.random.Generator, shares: FloatArray) -> AnyArray:
    """Numbers of classes: (draws, rows)."""
    return np.asarray((rng.random((*shares.shape[:2], 1)) > np.cumsum(shares, axis=2)[:, :, :-1]).sum(axis=2))


def _normalised(each: Sequence[FloatArray]) -> FloatArray:
    """Probabilities of the classes along a further axis, from those of each class against the rest."""
    if len(each) == 1:
        return np.stack([1.0 - each[0], each[0]], axis=-1)
    shares = np.stack(each, axis=-1)
    totals = shares.sum(axis=-1, keepdims=True)
    return np.where(totals > 0.0, shares / np.where(totals > 0.0, totals, 1.0), 1.0 / len(each))


def _check_one_kind(labels: AnyArray) -> None:
    """Refuse labels that cannot be put in order."""
    if labels.dtype.kind == "S":
        raise DataError("y must hold texts, numbers or Booleans; got bytes. Decode them: np.char.decode(y).")
    if labels.dtype.kind != "O":
        return
    kinds = [kind_of(label) for label in labels]
    other = next((row for row, kind in enumerate(kinds) if kind == "other" or kind != kinds[0]), None)
    if other is not None:
        raise DataError(
            "y must hold texts, or numbers, or Booleans, of one kind; "
            f"got {labels[0]!r} in row 0 and {labels[other]!r} in row {other}. Make them texts."
        )


def _classes(labels: AnyArray, sample_weight: Any) -> AnyArray:
    """Return the classes that occur in rows of positive weight."""
    absent = np.zeros(len(labels), np.bool_)
    if labels.dtype.kind == "f":
        absent = ~np.isfinite(labels)
    elif labels.dtype.kind == "O":
        absent = np.array([kind_of(label) == "nothing" for label in labels])
    if absent.any():
        row = int(absent.argmax())
        raise DataError(f"y must name a class in every row; got {labels[row]} in row {row}. Drop rows without a class.")
    _check_one_kind(labels)
    weights = check_weights(sample_weight, len(labels))
    check_classification_targets(labels)
    classes = np.unique(labels[weights > 0])
    if len(classes) < 2:
        only = classes.tolist()[0]
        raise DataError(f"y must have at least two classes; got one class, {only!r}. Check the response.")
    return classes
