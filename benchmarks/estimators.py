"""What a newcomer gets from the defaults: ``python -m benchmarks.estimators [diabetes] [breast-cancer] [small]``.

Five-fold cross-validation on data sets of scikit-learn, as they are, against linear models that tune themselves; and
how long fits take.
"""

import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import LassoCV, LogisticRegressionCV
from sklearn.metrics import log_loss, r2_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from bgnlm import BGNLMClassifier, BGNLMRegressor


def diabetes() -> None:
    X, y = load_diabetes(return_X_y=True)
    print("diabetes: R2 in five folds (in order; shuffled with two seeds), seconds for one fit")
    for folds in (KFold(5), *(KFold(5, shuffle=True, random_state=seed) for seed in range(2))):
        rows = []
        for train, test in folds.split(X):
            lasso = LassoCV().fit(X[train], y[train])
            began = time.perf_counter()
            model = BGNLMRegressor(random_state=0).fit(X[train], y[train])
            seconds = time.perf_counter() - began
            rows.append([r2_score(y[test], m.predict(X[test])) for m in (lasso, model)] + [seconds])
        print("  LassoCV {:.4f}  bgnlm {:.4f}  {:.1f} s".format(*np.mean(rows, axis=0)), flush=True)


def breast_cancer() -> None:
    X, y = load_breast_cancer(return_X_y=True)
    print("breast cancer: log loss in five folds (in order; shuffled), seconds for one fit")
    for folds in (StratifiedKFold(5), StratifiedKFold(5, shuffle=True, random_state=0)):
        rows = []
        for train, test in folds.split(X, y):
            raw = LogisticRegressionCV(max_iter=300).fit(X[train], y[train])
            scaled = make_pipeline(StandardScaler(), LogisticRegressionCV(max_iter=5000)).fit(X[train], y[train])
            began = time.perf_counter()
            model = BGNLMClassifier(random_state=0).fit(X[train], y[train])
            seconds = time.perf_counter() - began
            losses = [log_loss(y[test], m.predict_proba(X[test])) for m in (raw, scaled, model)]
            rows.append([*losses, log_loss(y[test], model.predict_proba(X[test], plug_in=False)), seconds])
        print(
            "  LogisticRegressionCV {:.4f}, after StandardScaler {:.4f}; bgnlm {:.4f}, over the posterior of the "
            "coefficients {:.4f}; {:.1f} s".format(*np.mean(rows, axis=0)),
            flush=True,
        )


def small() -> None:
    print("30 rows: seconds for one fit, compiled")
    for n_inputs in (2, 4, 10):
        rng = np.random.default_rng(n_inputs)
        X = rng.normal(size=(30, n_inputs))
        y = X[:, 0] + X[:, 1] * X[:, -1] + 0.3 * rng.normal(size=30)
        for estimator, response in ((BGNLMRegressor(random_state=0), y), (BGNLMClassifier(random_state=0), y > 0)):
            seconds = []
            for _ in range(4):
                began = time.perf_counter()
                estimator.fit(X, response)
                seconds.append(time.perf_counter() - began)
            print(f"  {n_inputs:2d} inputs  {type(estimator).__name__:<16} {min(seconds[1:]):.2f}", flush=True)


PARTS = {"small": small, "diabetes": diabetes, "breast-cancer": breast_cancer}


def main() -> None:
    warnings.simplefilter("ignore")  # of solvers that have not converged
    for name in sys.argv[1:] or PARTS:
        PARTS[name]()


if __name__ == "__main__":
    main()
