"""Data whose law is known: the simulated Example 8 of the paper, and planets like those of Example 4."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from bgnlm._validation import check_count, check_number
from bgnlm.datasets.dataset import Dataset
from bgnlm.errors import SettingError

if TYPE_CHECKING:
    from bgnlm._typing import FloatArray

DAYS_PER_YEAR = 365.25
# Example 8: the mean is 1 and this much for each product of binary inputs that is 1.
LOGIC_EFFECTS = {
    "X7": 1.5,
    "X8": 1.5,
    "X18*X21": 6.6,
    "X2*X9": 3.5,
    "X12*X20*X37": 9.0,
    "X1*X3*X27": 7.0,
    "X4*X10*X17*X30": 7.0,
    "X11*X13*X19*X50": 7.0,
}
KEPLER_LAW = "cbrt_abs(HostStarMassSlrMass*PeriodDays**2)"

_LOGIC = f"""\
Simulated logic regression (Example 8): X1 - X50 are independent and 0 or 1 with probability 1/2.

y = 1 + {" + ".join(f"{effect:g}*{term}" for term, effect in LOGIC_EFFECTS.items())} + N(0, 1)
"""
_KEPLER = f"""\
Simulated planets with the columns of the exoplanet data (Example 4).

SemiMajorAxisAU = (HostStarMassSlrMass * (PeriodDays / {DAYS_PER_YEAR})^2)^(1/3) + N(0, noise^2), in AU

PeriodDays            log-uniform from 1 to 1000 days
HostStarMassSlrMass   log-normal about the Sun's, standard deviation 0.25 of the logarithm
HostStarRadiusSlrRad, HostStarTempK
                      grow with the star's mass, with scatter: rivals of the mass in the law, as in reality
PlanetaryMassJpt, RadiusJpt
                      log-normal, the radius growing with the mass; PlanetaryDensJpt is mass / radius^3
Eccentricity, HostStarMetallicity, TypeFlag
                      drawn on their own

The planet's own mass is neglected in the law, and the axis may fall below zero where the noise is large.
"""


def make_logic(n_rows: int = 1000, random_state: int | np.random.Generator | None = None) -> Dataset:
    """Simulate Example 8 of the paper: eight products of up to four of 50 binary inputs.

    Parameters
    ----------
    n_rows : int
        How many rows; the paper has 1000.
    random_state : int, Generator or None
        A seed, or what draws the numbers; None gives other data each time.

    Returns
    -------
    Dataset
        Inputs ``X1`` to ``X50`` and a Gaussian response; `truth` has the eight products.

    Examples
    --------
    >>> from bgnlm.datasets import make_logic
    >>> data = make_logic(n_rows=100, random_state=1)
    >>> data.X.shape, len(data.truth)
    ((100, 50), 8)
    """
    n_rows = check_count(n_rows, "n_rows", low=2)
    rng = _generator(random_state)
    names = [f"X{j}" for j in range(1, 51)]
    inputs = (rng.random((n_rows, len(names))) < 0.5).astype(np.float64)
    column = dict(zip(names, inputs.T, strict=True))
    mean = 1.0 + sum(
        effect * np.prod([column[name] for name in term.split("*")], axis=0) for term, effect in LOGIC_EFFECTS.items()
    )
    return _dataset("logic", column, "y", mean + rng.normal(size=n_rows), _LOGIC, tuple(LOGIC_EFFECTS))


def make_kepler(
    n_rows: int = 223, noise: float = 0.01, random_state: int | np.random.Generator | None = None
) -> Dataset:
    """Simulate planets that obey Kepler's third law, with the columns of `load_exoplanets`.

    Parameters
    ----------
    n_rows : int
        How many planets.
    noise : float
        Standard deviation of the Gaussian error of the semi-major axis in AU, the same for all planets; 0 for none.
        Without it the axes lie between 0.02 and 2 AU, most of them below 0.5.
    random_state : int, Generator or None
        A seed, or what draws the numbers; None gives other data each time.

    Returns
    -------
    Dataset
        Ten inputs and the semi-major axis; `truth` has the law.

    Examples
    --------
    >>> from bgnlm.datasets import make_kepler
    >>> data = make_kepler(n_rows=100, noise=0.01, random_state=1)
    >>> data.X.shape, data.truth
    ((100, 10), ('cbrt_abs(HostStarMassSlrMass*PeriodDays**2)',))
    """
    n_rows = check_count(n_rows, "n_rows", low=2)
    noise = check_number(noise, "noise", low=0.0)
    rng = _generator(random_state)

    def scatter(sd: float) -> FloatArray:
        return np.exp(sd * rng.normal(size=n_rows))

    star_mass = scatter(0.25)
    period = 10.0 ** rng.uniform(0.0, 3.0, size=n_rows)
    planet_mass = 0.8 * scatter(1.2)
    radius = 1.1 * planet_mass**0.2 * scatter(0.2)
    columns = {
        "TypeFlag": np.where(rng.random(n_rows) < 0.1, 2.0, 0.0),
        "RadiusJpt": radius,
        "PeriodDays": period,
        "PlanetaryMassJpt": planet_mass,
        "Eccentricity": rng.beta(0.8, 4.0, size=n_rows),
        "HostStarMassSlrMass": star_mass,
        "HostStarRadiusSlrRad": star_mass**0.9 * scatter(0.15),
        "HostStarMetallicity": rng.normal(0.05, 0.2, size=n_rows),
        "HostStarTempK": 5778.0 * star_mass**0.5 * scatter(0.05),
        "PlanetaryDensJpt": planet_mass / radius**3,
    }
    axis = np.cbrt(star_mass * (period / DAYS_PER_YEAR) ** 2) + noise * rng.normal(size=n_rows)
    return _dataset("kepler", columns, "SemiMajorAxisAU", axis, _KEPLER, (KEPLER_LAW,))


def _generator(random_state: int | np.random.Generator | None) -> np.random.Generator:
    try:
        return np.random.default_rng(random_state)
    except (TypeError, ValueError) as error:
        raise SettingError(
            f"random_state must be a whole number of 0 or more, a numpy.random.Generator or None; got {random_state!r}."
        ) from error


def _dataset(
    name: str,
    columns: dict[str, FloatArray],
    response: str,
    values: FloatArray,
    description: str,
    truth: tuple[str, ...],
) -> Dataset:
    import pandas as pd

    X = pd.DataFrame(columns)
    y = pd.Series(values, name=response)
    return Dataset(name=name, X=X, y=y, table=X.assign(**{response: y}), description=description, truth=truth)
