"""Arms that the gate times itself: their processes, how they take turns, and what the machine did meanwhile."""
