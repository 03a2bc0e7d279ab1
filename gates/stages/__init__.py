"""The gates, one in a file: what each plans to decide, and the pure function that judges it."""
