"""The version, read by the build and by users."""

__version__ = "0.1.0.dev0"
"""The version of the package.

Examples
--------
>>> import bgnlm
>>> bgnlm.__version__.count(".") >= 2
True
"""
