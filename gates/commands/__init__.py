"""The commands: what each does, from a request to an exit code; the command line only reads their options."""
