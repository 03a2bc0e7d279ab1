"""Tests of the interval around a median, against the gates' own."""

import random

import pytest

from amp_core.benchmark.interval import Interval, around_median, difference, ratio
from gates.measuring.interval import estimate
from gates.measuring.samples import Metric
from gates.task.task import Measure


@pytest.mark.parametrize("n", [6, 7, 8, 9, 12, 24, 25, 64, 101])
def test_the_interval_is_the_one_that_the_gates_compute(n: int) -> None:
    draw = random.Random(n)
    arms = {name: tuple(draw.uniform(1.0, 2.0) for _ in range(n)) for name in ("fp32", "bf16")}
    asked = {"from": "amp", "ratio": ["fp32", "bf16"], "of": "t", "at_least": 1.0, "on": "any"}
    theirs = estimate(Measure.model_validate(asked), Metric(unit="s", direction="lower", paired=True, arms=arms))
    ours = ratio(arms["fp32"], arms["bf16"])
    assert (ours.value, ours.low, ours.high, ours.n) == pytest.approx((theirs.value, theirs.low, theirs.high, n))


def test_too_few_values_have_no_interval() -> None:
    with pytest.raises(ValueError, match=r"^an interval at 95% needs at least 6 values, found 5$"):
        around_median([1.0] * 5)


def test_differences_are_taken_pair_by_pair() -> None:
    assert difference([3.0, 5.0, 7.0, 9.0, 11.0, 13.0], [1, 2, 3, 4, 5, 6]) == Interval(4.5, 2.0, 7.0, 6)


def test_an_interval_is_within_a_bar_only_as_a_whole() -> None:
    assert Interval(0.0, -0.2, 0.1, 6).within(0.25)
    assert not Interval(0.0, -0.3, 0.1, 6).within(0.25)
    assert f"{Interval(1.0, 0.5, 1.5, 6):.2f}" == "1.00 [0.50, 1.50]"
