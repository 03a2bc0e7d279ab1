"""A run of the tests: what its witnesses said of it, reconciled."""
