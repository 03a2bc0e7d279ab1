"""Finds what a task names in the code of a project: symbols, patterns, orders."""
