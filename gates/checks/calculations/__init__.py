"""Calculations and edge cases: what calls of the project's functions must return or raise."""
