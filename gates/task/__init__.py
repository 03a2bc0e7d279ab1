"""Tasks: what a task file says, part by part, and the loader that says everything wrong in one with its place."""
