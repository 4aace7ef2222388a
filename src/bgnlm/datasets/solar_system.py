"""Seventy bodies of the solar system: orbits that obey Kepler's third law, around eight parents.

The numbers are rounded mean facts as planetary fact sheets and small-body catalogues state them,
converted to common units; nothing was computed from the law. Three kinds of rows differ in how
well they follow it. Catalogues give dwarf planets and asteroids osculating elements, whose period
is the two-body period of the axis, so these rows follow the law to the rounding. Planets and
regular moons have observed periods and agree to 0.2 %; close moons of oblate planets deviate most.
Irregular moons are pulled by the Sun, which moves them by up to 0.5 %.
"""

from __future__ import annotations

from importlib import resources
from typing import TYPE_CHECKING

from bgnlm.datasets.frames import read_frame

if TYPE_CHECKING:
    import pandas as pd

DESCRIPTION = """\
Planets, dwarf planets, asteroids and moons of the solar system; rounded mean facts from planetary
fact sheets and small-body catalogues.

semi_major_axis  astronomical units (149 597 870.7 km), about the parent
period           sidereal, in years of 365.25 days
parent_mass      of the body at the centre, in solar masses (Sun = 1)
mass             of the body itself, in Earth masses; of small moons an estimate from their size
radius           mean radius in km
eccentricity     of the orbit
discovery_year   0 if known since antiquity

Kepler's third law in these units: semi_major_axis^3 = period^2 * (parent_mass + own mass), where
the own mass in solar masses is mass * 3.00349e-6 and matters for the Moon and Charon only.
"""


def load_solar_system() -> pd.DataFrame:
    """Load the orbits, masses and sizes of seventy bodies of the solar system.

    Returns
    -------
    DataFrame
        One row per body, with its name as index; ``attrs["description"]`` states the units.

    Examples
    --------
    >>> table = load_solar_system()
    >>> table.index[2], len(table)
    ('Earth', 70)
    """
    text = (resources.files("bgnlm.datasets") / "solar_system.csv").read_text(encoding="utf-8")
    frame = read_frame(text).set_index("body").drop(columns="parent").astype("float64")
    frame.attrs["description"] = DESCRIPTION
    return frame
