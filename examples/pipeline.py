"""In scikit-learn: columns prepared, the search inside cross-validation, features for another model."""

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.linear_model import RidgeCV
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from bgnlm import BGNLMRegressor, SearchConfig

rng = np.random.default_rng(1)
n = 200
table = pd.DataFrame(
    {
        "area": rng.uniform(30, 200, n),
        "floor": rng.integers(0, 6, n),
        "lift": rng.choice(["yes", "no"], n),
    }
)
climb = table["floor"] * (table["lift"] == "no")
rent = 5 * table["area"] ** 0.8 - 12 * climb + 10 * rng.normal(size=n)

prepare = ColumnTransformer(
    [("lift", OneHotEncoder(drop=["yes"], sparse_output=False), ["lift"])],
    remainder="passthrough",
    verbose_feature_names_out=False,
).set_output(transform="pandas")
search = BGNLMRegressor(search=SearchConfig(n_populations=5), n_chains=1, random_state=1)

candidates = {
    "ridge": make_pipeline(prepare, StandardScaler(), RidgeCV()),
    "bgnlm": make_pipeline(prepare, search),
    "its features, then ridge": make_pipeline(prepare, search, StandardScaler(), RidgeCV()),
}
for name, candidate in candidates.items():
    print(f"{name:<26} R2 {cross_val_score(candidate, table, rent, cv=3).mean():.3f}")

fitted = candidates["bgnlm"].fit(table, rent)
print(fitted[-1].expression(digits=3))
