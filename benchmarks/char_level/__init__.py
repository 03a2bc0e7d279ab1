"""One character-level training written five ways: `python -m benchmarks.char_level` counts the lines of each."""
