"""Small data sets that come with the package."""

from bgnlm.datasets.solar_system import load_solar_system

__all__ = ["load_solar_system"]
