"""The other methods of the paper's prediction tables, at two levels.

"paper": what a library does if it is given the training rows and the name of the method. "tuned": what a careful user
does: inputs scaled in a pipeline, settings by cross-validation on the training rows, early stopping. Test rows play no
part in either. The spam inputs are standardised by all rows for the first level, as the authors do, and raw for the
second. Methods without settings are at the first level alone.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor
from sklearn.linear_model import LassoCV, LinearRegression, LogisticRegression, LogisticRegressionCV, RidgeCV
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier, MLPRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler

from benchmarks.paper.boosting import TunedBoosting, explainable, plain_boosting
from benchmarks.paper.data import load
from benchmarks.paper.ours import assess
from benchmarks.paper.varbayes import VariationalSpikeSlab

N_FOLDS = 5
_LAYERS = ((100, 100), (50, 50, 50))
_PENALTIES = np.logspace(-4.0, 4.0, 33)
_STRENGTHS = np.logspace(-3.0, 2.0, 16)  # 1 / penalty of logistic regressions


class Competitor(NamedTuple):
    """A method at one level: the model for a seed, and whether the seed matters."""

    make: Callable[[bool, int], Any]  # for classification or not
    is_random: bool = True


def folds(is_classification: bool, seed: int) -> Any:
    """Folds of the training rows for tuning."""
    return (StratifiedKFold if is_classification else KFold)(N_FOLDS, shuffle=True, random_state=seed)


def searched(model: Any, grid: Any, is_classification: bool, seed: int) -> GridSearchCV:
    """The model with the settings of the grid that predict best in cross-validation."""
    scoring = "neg_log_loss" if is_classification else "neg_mean_squared_error"
    return GridSearchCV(model, grid, cv=folds(is_classification, seed), scoring=scoring)


def _lasso(is_classification: bool, _: int) -> Any:
    return LogisticRegressionCV(l1_ratios=(1.0,), **_LIBLINEAR) if is_classification else LassoCV()


def _lasso_tuned(is_classification: bool, seed: int) -> Any:
    if not is_classification:
        return make_pipeline(StandardScaler(), LassoCV(alphas=200, eps=1e-4, cv=folds(False, seed), max_iter=20_000))
    return make_pipeline(StandardScaler(), _penalised(1.0, seed))


def _ridge(is_classification: bool, _: int) -> Any:
    return LogisticRegressionCV(l1_ratios=(0.0,), **_LIBLINEAR) if is_classification else RidgeCV()


def _ridge_tuned(is_classification: bool, seed: int) -> Any:
    if not is_classification:
        return make_pipeline(StandardScaler(), RidgeCV(alphas=_PENALTIES))
    return make_pipeline(StandardScaler(), _penalised(0.0, seed))


# Warnings of scikit-learn aside, this is what both of its interfaces agree on.
_LIBLINEAR: dict[str, Any] = {"solver": "liblinear", "use_legacy_attributes": False}


def _penalised(l1_ratio: float, seed: int) -> LogisticRegressionCV:
    return LogisticRegressionCV(
        Cs=_STRENGTHS, cv=folds(True, seed), l1_ratios=(l1_ratio,), scoring="neg_log_loss", max_iter=1000, **_LIBLINEAR
    )


def _network(is_classification: bool, seed: int) -> Any:
    """Two layers of 200 on scaled inputs, as h2o has them by default."""
    kind = MLPClassifier if is_classification else MLPRegressor
    return make_pipeline(StandardScaler(), kind(hidden_layer_sizes=(200, 200), random_state=seed))


def _network_tuned(is_classification: bool, seed: int) -> Any:
    kind = MLPClassifier if is_classification else MLPRegressor
    model = kind(n_iter_no_change=20, max_iter=500, random_state=seed)
    step = kind.__name__.lower()
    grid = {
        f"{step}__hidden_layer_sizes": _LAYERS,
        f"{step}__alpha": (1e-3, 0.1, 1.0),
        f"{step}__early_stopping": (True, False),  # where rows are few, none can be spared
    }
    tuned = searched(make_pipeline(StandardScaler(), model), grid, is_classification, seed)
    return tuned if is_classification else TransformedTargetRegressor(tuned, transformer=StandardScaler())


def _forest(is_classification: bool, seed: int) -> Any:
    return (RandomForestClassifier if is_classification else RandomForestRegressor)(random_state=seed)


def _forest_tuned(is_classification: bool, seed: int) -> Any:
    kind = RandomForestClassifier if is_classification else RandomForestRegressor
    grid = {"max_features": ("sqrt", 1 / 3), "min_samples_leaf": (1, 3, 10)}
    return searched(kind(300, random_state=seed), grid, is_classification, seed)


def _naive_bayes_tuned(_: bool, seed: int) -> Any:
    """Inputs made as normal as a power can make them."""
    model = make_pipeline(PowerTransformer(), GaussianNB())
    return searched(model, {"gaussiannb__var_smoothing": np.logspace(-9, 0, 10)}, True, seed)


def _logistic(_: bool, __: int) -> Any:
    return LogisticRegression(C=np.inf, solver="newton-cholesky")


_ANY: dict[tuple[str, str], Competitor] = {
    ("TXGBOOST", "paper"): Competitor(lambda c, seed: plain_boosting("gbtree", c, seed), is_random=False),
    ("TXGBOOST", "tuned"): Competitor(lambda c, seed: TunedBoosting("gbtree", c, seed)),
    ("LXGBOOST", "paper"): Competitor(lambda c, seed: plain_boosting("gblinear", c, seed), is_random=False),
    ("LXGBOOST", "tuned"): Competitor(lambda c, seed: TunedBoosting("gblinear", c, seed)),
    ("LASSO", "paper"): Competitor(_lasso, is_random=False),
    ("LASSO", "tuned"): Competitor(_lasso_tuned),
    ("RIDGE", "paper"): Competitor(_ridge, is_random=False),
    ("RIDGE", "tuned"): Competitor(_ridge_tuned),
    ("DEEPNETS", "paper"): Competitor(_network),
    ("DEEPNETS", "tuned"): Competitor(_network_tuned),
    ("RFOREST", "paper"): Competitor(_forest),
    ("RFOREST", "tuned"): Competitor(_forest_tuned),
}
CLASSIFIERS = _ANY | {
    ("NBAYES", "paper"): Competitor(lambda _, __: GaussianNB(), is_random=False),
    ("NBAYES", "tuned"): Competitor(_naive_bayes_tuned),
    ("LR", "paper"): Competitor(_logistic, is_random=False),
}
REGRESSORS = _ANY | {
    ("GR", "paper"): Competitor(lambda _, __: LinearRegression(), is_random=False),
    ("VARBAYES", "paper"): Competitor(lambda _, __: VariationalSpikeSlab(), is_random=False),
}
# Not in the paper: interpretable, and among the best on the spam data. Its own settings are said to need no tuning,
# which would take half an hour a run here.
EBM = {
    ("EBM", "paper"): Competitor(lambda _, seed: explainable(seed)),
}


def compete(example: str, method: str, level: str, seed: int) -> dict[str, Any]:
    """One run of another method."""
    sample = load(example, is_standardised=example == "spam" and level == "paper")
    competitor = ((CLASSIFIERS | EBM) if sample.is_classification else REGRESSORS)[method, level]
    model = competitor.make(sample.is_classification, seed)
    X, X_new = sample.X.to_numpy(), sample.X_new.to_numpy()
    began = time.perf_counter()
    model.fit(X, sample.y.astype(int) if sample.is_classification else sample.y)
    seconds = time.perf_counter() - began
    return {"seconds": round(seconds, 3), "outcome": assess(sample._replace(X_new=X_new), model)}
