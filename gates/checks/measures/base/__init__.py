"""The base revision timed beside the work tree."""
