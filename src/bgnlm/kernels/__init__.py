"""Compiled inner loops on plain arrays; nothing here knows what a feature or a prior is."""
