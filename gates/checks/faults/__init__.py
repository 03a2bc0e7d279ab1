"""Faults: does a test of a criterion notice that its code does nothing, or gives something else?"""
