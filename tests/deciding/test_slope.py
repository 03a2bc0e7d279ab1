"""The trend: exact where it is exact, and as sure as it says."""

import itertools
import math
import random

import pytest

from gates.measuring.deciding import _bound, slope


def test_line_has_its_slope_and_no_width() -> None:
    assert slope([3.0 + 2 * i for i in range(10)], 0.05) == (2.0, 2.0, 2.0)


@pytest.mark.parametrize("n", [5, 6, 7])
def test_bound_is_that_of_all_orders(n: int) -> None:
    scores = sorted(
        sum(1 if b > a else -1 for a, b in itertools.combinations(order, 2))
        for order in itertools.permutations(range(n))
    )
    bound = _bound(n, 0.025)
    assert bound is not None
    above = sum(score > bound for score in scores) / math.factorial(n)
    assert above <= 0.025 < sum(score >= bound for score in scores) / math.factorial(n)


def test_too_few_samples_have_no_interval() -> None:
    assert slope([1.0, 2.0, 3.0], 0.05)[1:] == (-math.inf, math.inf)


@pytest.mark.parametrize("n", [8, 20, 80])
def test_interval_holds_the_true_slope(n: int) -> None:
    source = random.Random(n)
    held = 0
    for _ in range(300):
        _, low, high = slope([0.5 * i + source.gauss(0, 4) ** 3 for i in range(n)], 0.05)
        held += low <= 0.5 <= high
    assert held / 300 >= 0.92
