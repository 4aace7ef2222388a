"""The eight examples of the paper with all methods of its tables; see `benchmarks.paper.__main__`."""
