"""Bundles: a measurement made on another machine, with all that is needed to judge it here."""
