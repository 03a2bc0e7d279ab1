"""Criteria: traced to live code, verified by tests, and what is bound to none of them."""
