"""Marginal likelihoods p(y | m) of models given as arrays (sections 2.2 and 3.1 of the paper)."""
