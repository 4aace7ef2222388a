"""Counts in groups: calls to several clinics, with an exposure and an effect of each clinic."""

import numpy as np
import pandas as pd

from bgnlm import BGNLMRegressor, SearchConfig
from bgnlm.latent import Gamma, Grouped

rng = np.random.default_rng(1)
n, n_clinics = 150, 10
clinic = rng.integers(0, n_clinics, n)
table = pd.DataFrame({"clinic": [f"c{k}" for k in clinic], "cold": rng.normal(size=n), "rain": rng.normal(size=n)})
days = rng.integers(1, 8, n)
own = 0.6 * rng.normal(size=n_clinics)
calls = rng.poisson(days * np.exp(0.8 + 0.4 * table["cold"] + own[clinic]))

model = BGNLMRegressor(
    family="poisson",
    latent=[Grouped("clinic", precision_prior=Gamma(1, 0.5))],
    search=SearchConfig(n_populations=2, population_size=5),
    n_chains=1,
    random_state=1,
)
model.fit(table, calls, offset=np.log(days))

print(model.features_[["expression", "probability", "coefficient"]].head(3).to_string(index=False))
print(model.components_.to_string(index=False))
effects = model.latent_effects("Grouped(clinic)")
print(f"correlation of estimated and true effects: {np.corrcoef(effects['mean'], own)[0, 1]:.2f}")

somebody = pd.DataFrame({"clinic": ["c0", "new"], "cold": 0.0, "rain": 0.0})
print("90 % intervals of the mean for a known and a new clinic:")
print(model.predict_interval(somebody, offset=np.zeros(2), of="mean").round(2))
