"""The paths of a program, walked: what happens on them, in which order, and what their names hold."""
