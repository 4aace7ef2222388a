"""The report of a fitted model: one HTML file that needs nothing else."""
