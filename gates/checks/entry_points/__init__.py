"""Production code run to its end."""
