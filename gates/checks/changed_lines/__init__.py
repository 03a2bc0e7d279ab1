"""Changed lines: do the tests that run them notice their mutants?"""
