"""Calls of the tested project and what they return; runs in its interpreter (the standard library only)."""
