"""Student's t for whole degrees of freedom, from its closed form; no library is needed for it."""

import math


def within(t: float, freedom: int) -> float:
    """Return the probability that |T| is at most `t` (Abramowitz and Stegun, Handbook, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(freedom))
    cosine = math.cos(angle)
    odd = freedom % 2
    term, total = (cosine if odd else 1.0), 0.0
    for i in range(freedom // 2):
        total += term
        term *= cosine**2 * (2 * i + 1 + odd) / (2 * i + 2 + odd)
    if not odd:
        return math.sin(angle) * total
    return 2 / math.pi * (angle + math.sin(angle) * total)


def quantile(level: float, freedom: int) -> float:
    """Return t so that |T| is at most t with the probability `level`."""
    low, high = 0.0, 1.0
    while within(high, freedom) < level:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if within(middle, freedom) < level else (low, middle)
    return high
