"""A row of numbers as a row of bars."""

import math
from collections.abc import Sequence

BARS = tuple(map(chr, range(0x2581, 0x2589)))
WIDTH = 20


def sparkline(values: Sequence[float]) -> str:
    """Return one bar for each number, as many as there is room for, from the least to the most."""
    if not values:
        return ""
    step = max(1.0, len(values) / WIDTH)
    shown = [values[math.floor(i * step)] for i in range(min(WIDTH, len(values)) - 1)] + [values[-1]]
    low, high = min(shown), max(shown)
    return "".join(BARS[round((value - low) / (high - low) * (len(BARS) - 1)) if high > low else 0] for value in shown)
