"""Slopes with intervals, and growth that goes on as against growth that ends."""

import math
import random

import pytest

from gates.checks.leaks import Rung, drift, theil_sen
from gates.measuring.interval import Estimate
from gates.model import Outcome

NOISE = random.Random(7)


def test_line_has_its_slope_and_an_interval_without_width() -> None:
    assert theil_sen([3.0 + 2 * i for i in range(20)]) == Estimate(2, 2, 2, 20, 0.95)


def test_far_off_values_do_not_move_it() -> None:
    values = [float(i) for i in range(20)]
    values[3] = values[17] = 1e9
    assert theil_sen(values).low <= 1 <= theil_sen(values).high < 10


def test_too_few_samples_have_no_interval() -> None:
    assert theil_sen([1.0, 2.0, 3.0]) == Estimate(1.0, -math.inf, math.inf, 3, 0.95)


@pytest.mark.parametrize("n", [8, 20, 80])
def test_interval_holds_the_slope_at_its_level(n: int) -> None:
    found = [theil_sen([0.5 * i + NOISE.gauss(0, 4) ** 3 for i in range(n)]) for _ in range(300)]
    assert sum(slope.low <= 0.5 <= slope.high for slope in found) / 300 >= 0.92


GROWTHS = [
    ([100 * i for i in range(30)], Outcome.FAILED),
    ([5_000] * 30, Outcome.PASSED),
    ([min(i, 8) * 100 for i in range(30)], Outcome.PASSED),  # filled before what is kept
    ([min(i, 20) * 100 for i in range(30)], Outcome.UNKNOWN),  # ended, but only just
    ([min(i, 60) * 100 for i in range(90)], Outcome.PASSED),  # ended long ago
    ([i // 5 * 500 for i in range(90)], Outcome.FAILED),  # in steps
    ([1_000 * (1 - 0.97**i) * 33 for i in range(90)], Outcome.UNKNOWN),  # ever more slowly
    ([9_000 * (i == 28) for i in range(30)], Outcome.PASSED),  # one value, once
    ([9_000 * (i > 20) for i in range(30)], Outcome.UNKNOWN),  # one large step late
    ([100 * i for i in range(12)], Outcome.UNKNOWN),  # too few
    ([5 * i for i in range(30)], Outcome.PASSED),  # within the tolerance
    ([-100 * i for i in range(30)], Outcome.PASSED),
]


@pytest.mark.parametrize(("values", "expected"), GROWTHS)
def test_growth_is_what_goes_on(values: list[float], expected: Outcome) -> None:
    assert drift(values, 10) is expected


def test_noise_does_not_grow() -> None:
    assert Outcome.FAILED not in [drift([NOISE.gauss(0, 500) for _ in range(30)], 10) for _ in range(100)]


@pytest.mark.parametrize("slip", range(20, 60))
def test_heap_that_goes_up_and_down_does_not_grow_wherever_it_falls_out_of_step(slip: int) -> None:
    heap = [(i + (i < slip)) % 2 << 20 for i in range(60)]
    leak = [value + i * 32 * 1024 for i, value in enumerate(heap)]
    assert drift(Rung(name="private", values=tuple(heap)).held, 16 * 1024) is Outcome.PASSED
    assert drift(Rung(name="private", values=tuple(leak)).held, 16 * 1024) is not Outcome.PASSED
