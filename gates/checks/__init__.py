"""The checks, one in a folder: what a task may ask, how it is seen, what that means."""
