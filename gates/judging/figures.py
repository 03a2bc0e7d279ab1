"""Numbers as people read them: sizes in words, rows of numbers as rows of bars."""

import math
from collections.abc import Sequence

UNITS = ("B", "KB", "MB", "GB", "TB")
STEP = 1024
LARGE = 1000


def shown(value: float, unit: str) -> str:
    """Return a number with its unit, bytes in the largest one that keeps it above 1."""
    if unit != "bytes":
        return f"{value:.3g} {unit}"
    size, power = abs(value), 0
    while size >= STEP and power < len(UNITS) - 1:
        size, power = size / STEP, power + 1
    digits = f"{size:.0f}" if size >= LARGE else f"{size:.3g}"
    return f"{'-' if value < 0 else ''}{digits} {UNITS[power]}"


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
