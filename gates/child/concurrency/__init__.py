"""Runs a callable of the tested project several times at once; copied to where the project's interpreter finds it."""
