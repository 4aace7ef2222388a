"""Boosted models of the benchmark extra: XGBoost with trees or linear terms, and the explainable boosting machine."""

from itertools import product
from typing import Any, Self

import numpy as np

_ROUNDS, _PATIENCE = 3000, 30
_TREES: dict[str, tuple[Any, ...]] = {
    "learning_rate": (0.05,),
    "max_depth": (3, 5, 7),
    "min_child_weight": (1, 5),
    "subsample": (0.8,),
    "colsample_bytree": (0.8,),
}
_LINEAR: dict[str, tuple[Any, ...]] = {
    "learning_rate": (0.5,),
    "reg_lambda": (0.0, 0.01, 0.1),
    "reg_alpha": (0.0, 0.01),
}


def plain_boosting(booster: str, is_classification: bool, seed: int) -> Any:
    """XGBoost's own settings."""
    import xgboost

    kind = xgboost.XGBClassifier if is_classification else xgboost.XGBRegressor
    return kind(booster=booster, random_state=seed, n_jobs=1, **_updater(booster))


def _updater(booster: str) -> dict[str, Any]:
    """Linear terms one after the other: the other way depends on the order in which threads come."""
    return {"updater": "coord_descent"} if booster == "gblinear" else {}


class TunedBoosting:
    """Settings and number of rounds by cross-validation with early stopping."""

    def __init__(self, booster: str, is_classification: bool, seed: int) -> None:
        self._booster, self._is_classification, self._seed = booster, is_classification, seed
        self._means: Any = 0.0
        self._scales: Any = 1.0

    def fit(self, X: np.ndarray, y: np.ndarray) -> Self:
        """Choose among a grid of settings; linear terms are of scaled inputs."""
        import xgboost

        if self._booster == "gblinear":
            self._means, self._scales = X.mean(axis=0), X.std(axis=0)
        data = xgboost.DMatrix(self._scaled(X), y)
        best = min((self._validated(data, settings) for settings in self._grid()), key=lambda found: found[0])
        self._model = xgboost.train(best[2], data, best[1])
        return self

    def predict(self, X: np.ndarray) -> np.ndarray:
        """Means of the response."""
        import xgboost

        return np.asarray(self._model.predict(xgboost.DMatrix(self._scaled(X))))

    def predict_proba(self, X: np.ndarray) -> np.ndarray:
        """Probabilities of both classes."""
        positive = self.predict(X)
        return np.column_stack([1.0 - positive, positive])

    def _scaled(self, X: np.ndarray) -> np.ndarray:
        return np.asarray((X - self._means) / self._scales)

    def _grid(self) -> list[dict[str, Any]]:
        choices = _LINEAR if self._booster == "gblinear" else _TREES
        loss = ("binary:logistic", "logloss") if self._is_classification else ("reg:squarederror", "rmse")
        fixed = {
            "booster": self._booster,
            "objective": loss[0],
            "eval_metric": loss[1],
            "seed": self._seed,
            "nthread": 1,
        }
        fixed |= _updater(self._booster)
        return [fixed | dict(zip(choices, values, strict=True)) for values in product(*choices.values())]

    def _validated(self, data: Any, settings: dict[str, Any]) -> tuple[float, int, dict[str, Any]]:
        """Least loss in cross-validation, after how many rounds, and the settings."""
        import xgboost

        history = xgboost.cv(
            settings,
            data,
            _ROUNDS,
            nfold=5,
            stratified=self._is_classification,
            early_stopping_rounds=_PATIENCE,
            seed=self._seed,
            as_pandas=False,
        )
        losses = history[f"test-{settings['eval_metric']}-mean"]
        return min(losses), int(np.argmin(losses)) + 1, settings


def explainable(seed: int) -> Any:
    """Sums of functions of one and of two inputs, boosted."""
    from interpret.glassbox import ExplainableBoostingClassifier

    return ExplainableBoostingClassifier(random_state=seed, n_jobs=1)
