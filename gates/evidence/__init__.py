"""Kinds of evidence, one in a file: what was observed, and how. Only this floor touches the world."""
