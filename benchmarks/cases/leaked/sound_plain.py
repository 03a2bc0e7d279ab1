"""Sound code without torch."""

import random
from collections.abc import Callable

import numpy as np


def numpy_only() -> Callable[[], float]:
    """Fit a line by gradient descent."""
    random_, weights = np.random.default_rng(0), np.zeros(16)

    def epoch() -> float:
        nonlocal weights
        for _ in range(10):
            inputs = random_.normal(size=(64, 16))
            weights = weights - 0.01 * inputs.T @ (inputs @ weights - inputs.sum(axis=1)) / 64
        return float(weights.sum())

    return epoch


def pure_python() -> None:
    """Sort, count and forget."""
    words = [random.choice("abcdefgh") * random.randint(1, 9) for _ in range(2000)]
    counts: dict[str, int] = {}
    for word in sorted(words):
        counts[word] = counts.get(word, 0) + 1
    assert sum(counts.values()) == len(words)
