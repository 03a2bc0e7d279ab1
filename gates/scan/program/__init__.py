"""A program read without running it: its files, names, classes, what objects are."""
