"""Interactions and logic: which combinations of switches matter, with the prior of Bayesian logic regression."""

import numpy as np
import pandas as pd

from bgnlm import BGNLMRegressor, SearchConfig
from bgnlm.search import ModelPrior, MoveProbabilities, logic_complexity

rng = np.random.default_rng(1)
n, n_switches = 300, 12
table = pd.DataFrame(rng.integers(0, 2, size=(n, n_switches)), columns=[f"s{k}" for k in range(1, n_switches + 1)])
response = 1 + 1.5 * table["s1"] * table["s2"] + 2 * table["s3"] * (1 - table["s4"]) + rng.normal(size=n)

model = BGNLMRegressor(
    transforms="logic",  # "not", beside products, which are "and"
    penalty=ModelPrior(penalty=1.0, complexity=logic_complexity(n_inputs=n_switches, max_leaves=4)),
    search=SearchConfig(n_populations=10, moves=MoveProbabilities(projection=0)),
    n_chains=2,
    random_state=1,
)
model.fit(table, response)

print(model.features_[["expression", "probability", "coefficient"]].head(4).to_string(index=False))
