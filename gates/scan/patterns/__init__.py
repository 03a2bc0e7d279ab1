"""Patterns of code: Python with holes, and the code that fits them."""
