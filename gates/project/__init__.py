"""The project under test: its revision, git, base, copies and files."""
