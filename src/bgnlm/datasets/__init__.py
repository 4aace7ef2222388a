"""Data sets: a small table that comes with the package, those of the paper's examples, and simulated ones.

Examples
--------
>>> from bgnlm import datasets
>>> datasets.load_solar_system().shape
(70, 7)
"""

from bgnlm.datasets.dataset import Dataset
from bgnlm.datasets.epigenetic import load_epigenetic
from bgnlm.datasets.loaders import (
    load_abalone,
    load_asteroids,
    load_breast_cancer,
    load_exoplanets,
    load_spam,
)
from bgnlm.datasets.simulated import make_kepler, make_logic
from bgnlm.datasets.solar_system import load_solar_system

__all__ = [
    "Dataset",
    "load_abalone",
    "load_asteroids",
    "load_breast_cancer",
    "load_epigenetic",
    "load_exoplanets",
    "load_solar_system",
    "load_spam",
    "make_kepler",
    "make_logic",
]
