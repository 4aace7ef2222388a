"""Tools for developing the package; not part of it."""
