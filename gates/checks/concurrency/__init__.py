"""Callables that run several times at once, and must come to the same as alone."""
