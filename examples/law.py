"""A law: the period of a pendulum, from noisy measurements and two columns that do not matter."""

import numpy as np
import pandas as pd

from bgnlm import BGNLMRegressor, SearchConfig

rng = np.random.default_rng(1)
n = 80
table = pd.DataFrame(
    {
        "length": rng.uniform(0.2, 3.0, n),  # metres
        "gravity": rng.choice([1.62, 3.72, 9.81, 24.8], n),  # Moon, Mars, Earth, Jupiter
        "mass": rng.uniform(0.1, 2.0, n),
        "temperature": rng.uniform(0.0, 40.0, n),
    }
)
period = 2 * np.pi * np.sqrt(table["length"] / table["gravity"]) * (1 + 0.005 * rng.normal(size=n))

model = BGNLMRegressor(
    transforms=["sqrt_abs", "inverse", "log1p_abs", "sin"],
    noise_floor=0.005,  # half a per cent
    search=SearchConfig(n_populations=12),
    random_state=1,
)
model.fit(table, period.rename("period"))

print(model.expression(digits=4))
print(f"probability {model.models_['probability'][0]:.3f}; 2 pi is {2 * np.pi:.4f}")
print("log mass found by each chain:", [round(chain[-1].log_mass, 1) for chain in model.diagnostics_.history])
