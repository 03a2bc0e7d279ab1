"""Proof that a criterion's evidence can say no: faults put into a copy of the project, one at a time."""
