"""Waivers: which work today, which end soon, which do not work any more."""
