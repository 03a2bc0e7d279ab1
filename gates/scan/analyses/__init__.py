"""Analyses that no pattern expresses, one in a file: each has a function `look`."""
