"""Calls a callable of the tested project over and over and reads its memory, in the project's interpreter."""
