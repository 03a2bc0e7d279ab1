"""The lines and files that ran, and the functions that they are of."""
