"""A verification-gate runner: it never says PASS for what it has not seen."""

__version__ = "0.2.0"
