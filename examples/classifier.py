"""A classifier whose probabilities mean what they say: an interaction, and calibration on rows it has not seen."""

import numpy as np
import pandas as pd
from sklearn.metrics import brier_score_loss, log_loss

from bgnlm import BGNLMClassifier, SearchConfig

rng = np.random.default_rng(1)
n = 600
table = pd.DataFrame(rng.normal(size=(n, 4)), columns=["dose", "age", "weight", "noise"])
truth = 1 / (1 + np.exp(-(0.5 + 1.5 * table["dose"] * table["age"] - table["weight"])))
ill = np.where(rng.random(n) < truth, "ill", "well")
train, test = slice(0, 300), slice(300, None)

model = BGNLMClassifier(search=SearchConfig(n_populations=4), n_chains=2, random_state=1)
model.fit(table[train], ill[train])
print(model.features_[["expression", "probability"]].head(4).to_string(index=False))

chance = model.predict_proba(table[test])[:, list(model.classes_).index("ill")]
print(
    f"log loss {log_loss(ill[test] == 'ill', chance):.3f}, of the truth {log_loss(ill[test] == 'ill', truth[test]):.3f}"
)
print(f"Brier score {brier_score_loss(ill[test] == 'ill', chance):.3f}")

print("\npredicted  observed  rows")
for low in np.arange(0, 1, 0.2):
    rows = (low <= chance) & (chance < low + 0.2)
    print(f"{chance[rows].mean():9.2f}  {np.mean(ill[test][rows] == 'ill'):8.2f}  {rows.sum():4}")
