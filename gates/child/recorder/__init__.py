"""Runs one training step of the tested project and notes what happens in it; stands alone (torch and the library)."""
