"""Findings about one check of one criterion, under the name that the parts of gates know."""

from gates.about import FAILED, UNKNOWN, About

__all__ = ["FAILED", "UNKNOWN", "About"]
