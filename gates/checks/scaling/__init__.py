"""By which power of a size time, memory or calls of a step grow."""
