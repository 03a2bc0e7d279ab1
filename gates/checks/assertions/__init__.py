"""Three plain facts of a criterion's tests: assertions that never ran, warnings of pytest, what ruff finds."""
