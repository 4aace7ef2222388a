"""Fitted models for other programs: source texts, queries and documents that predict what `predict` does."""
