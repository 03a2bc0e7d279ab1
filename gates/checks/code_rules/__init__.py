"""Code rules that a task asks for."""
