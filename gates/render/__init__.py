"""Formats, one in a file: each is a pure rendering of a report."""
