"""Many rows: a hundred thousand, searched as a whole, because Gaussian models are scored from sums over the rows."""

from time import perf_counter

import numpy as np

from bgnlm import BGNLMRegressor, SearchConfig

rng = np.random.default_rng(1)
n = 100_000
X = rng.normal(size=(n, 8))
y = X[:, 0] * X[:, 1] + 0.5 * np.sin(X[:, 2]) + rng.normal(size=n)

start = perf_counter()
model = BGNLMRegressor(search=SearchConfig(n_populations=3, candidate_rows=5_000), n_chains=1, random_state=1)
model.fit(X, y)

print(model.features_[["expression", "probability", "coefficient"]].head(4).to_string(index=False))
print(f"{model.diagnostics_.n_scored:,} models scored; {perf_counter() - start:.1f} s, compilation included")
