"""Latent Gaussian components, and models with them (section 4.1 of the paper)."""
