"""The pytest plugin that is copied beside the evidence, and loaded in the project's process: `hooks` and `lines`."""
