"""Proof: did the tests of a criterion kill the mutants of the last `gates prove`?"""
