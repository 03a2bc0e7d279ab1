"""Members that a class does not have: the one analysis that is neither a pattern nor an order."""
