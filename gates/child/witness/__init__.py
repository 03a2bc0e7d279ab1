"""The pytest plugins that are loaded in the project's process: `hooks` and `lines`."""
