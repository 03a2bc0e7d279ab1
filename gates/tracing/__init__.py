"""The traceability matrix, read from task files and sources alone: nothing is run."""
