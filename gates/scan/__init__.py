"""Code rules at work: patterns, the paths of events through a program, and the order that they must keep."""
