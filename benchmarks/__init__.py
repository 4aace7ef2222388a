"""Measurements: speed and memory, as ratios within one run where possible. Never part of the tests."""
