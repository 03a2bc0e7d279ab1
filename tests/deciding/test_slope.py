"""The trend: exact where it is exact, and as sure as it says."""

import math
import random

import pytest

from gates.checks.leaks.collect import Slope, theil_sen


def test_line_has_its_slope_and_no_width() -> None:
    assert theil_sen([3.0 + 2 * i for i in range(10)]) == Slope(2.0, 2.0, 2.0, 10)


def test_too_few_samples_have_no_interval() -> None:
    assert theil_sen([1.0, 2.0, 3.0]) == Slope(1.0, -math.inf, math.inf, 3)


@pytest.mark.parametrize("n", [8, 20, 80])
def test_interval_holds_the_true_slope(n: int) -> None:
    source = random.Random(n)
    held = 0
    for _ in range(300):
        found = theil_sen([0.5 * i + source.gauss(0, 4) ** 3 for i in range(n)])
        held += found.low <= 0.5 <= found.high
    assert held / 300 >= 0.92
