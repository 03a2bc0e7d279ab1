"""Training steps, and code in recorded tests, judged by what happened while they ran."""
