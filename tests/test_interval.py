"""The interval: exact coverage, what it is made of, when there is none, and how it decides."""

import math
import random
import statistics
from fractions import Fraction
from typing import Any

import pytest
from building import a_measure
from hypothesis import given
from hypothesis import strategies as st

from gates.measuring.interval import NEEDED, Estimate, NotEnough, compare, estimate, pairs_needed, quantile, rank
from gates.measuring.samples import Metric
from gates.model import Outcome
from gates.task.task import Measure


def measure(kind: str, *arms: str) -> Measure:
    facts = {"ratio": None, kind: list(arms) if len(arms) > 1 else arms[0], "at_least": 0.5, "of": "loss"}
    return Measure.model_validate(a_measure(**facts))


def metric(*, paired: bool = True, unit: str = "none", **arms: list[float]) -> Metric:
    return Metric.model_validate({"unit": unit, "direction": "none", "paired": paired, "arms": arms})


RATIO = measure("ratio", "old", "new")


def coverage(n: int, k: int) -> Fraction:
    """The exact chance that the k-th least and k-th greatest of n hold the median: 1 - 2 P(Bin(n, 1/2) < k)."""
    return 1 - 2 * Fraction(sum(math.comb(n, i) for i in range(k)), 2**n)


@pytest.mark.parametrize("n", [*range(6, 60), 100, 257, 1023, 1024, 2000])
def test_rank_is_the_greatest_that_still_covers(n: int) -> None:
    k, level = rank(n)
    assert level == pytest.approx(float(coverage(n, k)))
    assert coverage(n, k) >= Fraction(95, 100) > coverage(n, k + 1)


def test_rank_of_very_many_samples_does_not_take_for_ever() -> None:
    assert abs(rank(100_000)[0] - 49_690) < 5


HALVES: Any = {"old": [1.0, 2.0, 4.0, 8.0, 16.0, 32.0], "new": [0.5, 1.0, 2.0, 4.0, 8.0, 16.0]}
KINDS: dict[str, tuple[Any, tuple[float, float, float]]] = {
    "ratio": (HALVES, (2.0, 2.0, 2.0)),
    "reduction": ({"old": [10.0] * 6, "new": [6.0, 6.0, 6.0, 6.0, 5.0, 7.0]}, (0.4, 0.3, 0.5)),
    "difference": ({"old": [0.0, -1.0] * 3, "new": [0.5, 0.0] * 3}, (-0.75, -1.0, -0.5)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_has_its_number_and_interval_by_pairs_and_not_by_medians(kind: str) -> None:
    arms, expected = KINDS[kind]
    seen = estimate(measure(kind, "old", "new"), metric(**arms))
    assert (seen.value, seen.low, seen.high) == pytest.approx(expected)


def test_value_is_the_median_between_order_statistics() -> None:
    seen = estimate(measure("value", "a"), metric(a=[float(i) for i in range(12, 0, -1)]))
    assert seen == Estimate(6.5, 3.0, 10.0, 12, float(coverage(12, 3)))


@given(st.lists(st.tuples(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6)), min_size=6, max_size=40))
def test_estimate_lies_in_its_interval_and_inverts_with_the_arms(pairs: list[tuple[float, float]]) -> None:
    both = metric(old=[a for a, _ in pairs], new=[b for _, b in pairs])
    seen, inverted = estimate(RATIO, both), estimate(measure("ratio", "new", "old"), both)
    assert seen.low <= seen.value <= seen.high
    assert (1 / seen.high, 1 / seen.low) == pytest.approx((inverted.low, inverted.high))


@given(st.lists(st.floats(-1e6, 1e6), min_size=6, max_size=40), st.randoms())
def test_order_of_samples_does_not_matter(values: list[float], source: random.Random) -> None:
    shuffled = source.sample(values, len(values))
    assert estimate(measure("value", "a"), metric(a=values)) == estimate(measure("value", "a"), metric(a=shuffled))


def why(asked: Measure, given_: Metric) -> str:
    with pytest.raises(NotEnough) as caught:
        estimate(asked, given_)
    return str(caught.value)


@pytest.mark.parametrize("n", range(1, NEEDED))
def test_too_few_samples_have_no_interval(n: int) -> None:
    assert why(RATIO, metric(old=[2.0] * n, new=[1.0] * n)).startswith(f"{n} sample")


def test_missing_arm_is_named_with_those_that_are_there() -> None:
    assert why(RATIO, metric(old=[2.0] * 6, newer=[1.0] * 6)) == "loss has no arm 'new'; it has newer, old"


@pytest.mark.parametrize("kind", ["ratio", "reduction", "difference"])
def test_samples_that_are_not_paired_are_not_compared(kind: str) -> None:
    assert "not paired" in why(measure(kind, "old", "new"), metric(paired=False, old=[2.0] * 6, new=[1.0] * 6))


@pytest.mark.parametrize("kind", ["ratio", "reduction"])
@pytest.mark.parametrize("bad", [0.0, -1.0, -0.0])
def test_nothing_below_or_at_zero_has_a_ratio(kind: str, bad: float) -> None:
    assert "above 0" in why(measure(kind, "old", "new"), metric(old=[2.0] * 6, new=[1.0] * 5 + [bad]))


@pytest.mark.parametrize(("name", "unit"), [("step_time_s", "ms"), ("step_time_s", "min"), ("wait_ms", "s"),
                                            ("peak_memory_bytes", "MiB"), ("peak_memory_mb", "GB")])  # fmt: skip
def test_level_in_another_unit_than_its_limit_is_no_number(name: str, unit: str) -> None:
    asked = Measure.model_validate(a_measure(of=name, ratio=None, value="old", at_least=None, at_most=2.0))
    metric = Metric(unit=unit, direction="lower", paired=True, arms={"old": (1.5,) * 8, "new": (1.0,) * 8})
    with pytest.raises(NotEnough, match="its name and the limit are in"):
        estimate(asked, metric)
    assert estimate(Measure.model_validate(a_measure(of=name)), metric).value == 1.5


def test_rate_is_in_the_unit_that_it_says() -> None:
    asked = Measure.model_validate(a_measure(of="items_per_s", ratio=None, value="old"))
    assert estimate(asked, Metric(unit="1/s", direction="higher", paired=True, arms={"old": (1.5,) * 8})).value == 1.5


@pytest.mark.parametrize("huge", [1e308, -1e308])
def test_difference_that_overflows_is_no_number(huge: float) -> None:
    try:
        seen = estimate(measure("difference", "old", "new"), metric(old=[huge] * 6, new=[-huge] * 6))
    except NotEnough:
        return
    assert all(map(math.isfinite, (seen.value, seen.low, seen.high)))


TABLE = [
    (">=", (1.5, 1.6), Outcome.PASSED),
    (">=", (1.49, 1.6), Outcome.UNKNOWN),
    (">=", (1.3, 1.5), Outcome.UNKNOWN),
    (">=", (1.3, 1.49), Outcome.FAILED),
    ("<=", (1.3, 1.5), Outcome.PASSED),
    ("<=", (1.5, 1.6), Outcome.UNKNOWN),
    ("<=", (1.51, 1.6), Outcome.FAILED),
    ("<", (1.3, 1.49), Outcome.PASSED),
    ("<", (1.3, 1.5), Outcome.UNKNOWN),
    ("<", (1.5, 1.6), Outcome.FAILED),
]


@pytest.mark.parametrize(("sign", "interval", "outcome"), TABLE)
def test_number_decides_with_its_interval(sign: str, interval: tuple[float, float], outcome: Outcome) -> None:
    assert compare(Estimate(statistics.fmean(interval), *interval, 6, 0.96), sign, 1.5) is outcome


WORSE = [Outcome.PASSED, Outcome.UNKNOWN, Outcome.FAILED]


@given(st.floats(0, 10), st.floats(0, 10), st.floats(0, 10), st.floats(0, 5), st.sampled_from([">=", "<=", "<"]))
def test_a_worse_interval_gets_no_better_one(low: float, width: float, limit: float, shift: float, sign: str) -> None:
    here = Estimate(low, low, low + width, 6, 0.96)
    away = -shift if sign == ">=" else shift
    worse = Estimate(low + away, low + away, low + width + away, 6, 0.96)
    assert WORSE.index(compare(worse, sign, limit)) >= WORSE.index(compare(here, sign, limit))


@given(st.floats(0, 10), st.floats(0, 10), st.floats(0, 10), st.floats(0, 5), st.sampled_from([">=", "<=", "<"]))
def test_a_wider_interval_settles_nothing_open(low: float, width: float, limit: float, more: float, sign: str) -> None:
    narrow, wide = Estimate(low, low, low + width, 6, 0.96), Estimate(low, low - more, low + width + more, 6, 0.96)
    assert compare(wide, sign, limit) in {compare(narrow, sign, limit), Outcome.UNKNOWN}


@pytest.mark.parametrize(
    ("arms", "kind", "bound", "expected"),
    [
        ((6.0, 2.0), "ratio", {"below": 3}, Outcome.FAILED),
        ((6.0, 2.0), "ratio", {"at_least": 3}, Outcome.PASSED),
        ((3.0, 1.0), "ratio", {"at_most": 3}, Outcome.PASSED),
        ((6.0, 3.0), "reduction", {"at_least": 0.5}, Outcome.PASSED),
    ],
)
def test_exact_limit_is_not_lost_to_rounding(
    arms: tuple[float, float], kind: str, bound: dict[str, float], expected: Outcome
) -> None:
    metric = Metric(unit="B", direction="lower", paired=True, arms={"a": (arms[0],) * 6, "b": (arms[1],) * 6})
    measure = Measure.model_validate({"from": "m", "of": "t", kind: ("a", "b"), **bound})
    assert compare(estimate(measure, metric), *measure.bound) is expected


@pytest.mark.parametrize("kind", ["value", "difference"])
@pytest.mark.parametrize("of", ["run_time_s", "wait_ms", "peak_memory_bytes"])
def test_time_or_memory_below_zero_is_refused_whatever_its_unit_is_said_to_be(kind: str, of: str) -> None:
    asked = measure(kind, "old", "new") if kind == "difference" else measure(kind, "old")
    asked = asked.model_copy(update={"of": of})
    with pytest.raises(NotEnough, match=f"{of} has a sample of -1, expected above 0"):
        estimate(asked, metric(old=[-1.0] * 8, new=[2.0] * 8))


QUANTILES = [
    (1, 0.95, 12.706), (2, 0.95, 4.303), (3, 0.95, 3.182), (4, 0.95, 2.776), (5, 0.95, 2.571), (10, 0.95, 2.228),
    (30, 0.95, 2.042), (1, 0.99, 63.657), (5, 0.99, 4.032), (10, 0.99, 3.169), (120, 0.95, 1.980), (2, 0.9, 2.920),
]  # fmt: skip


@pytest.mark.parametrize(("freedom", "level", "t"), QUANTILES)
def test_quantiles_are_those_of_the_tables(freedom: int, level: float, t: float) -> None:
    assert quantile(level, freedom) == pytest.approx(t, abs=6e-4)


SLOWER = Measure.model_validate(a_measure(ratio=["new", "old"], at_least=None, at_most=1.05))


@pytest.mark.parametrize(("n", "split"), [(64, 1), (384, 6)])
def test_pairs_are_counted_as_a_task_asks_for_them(n: int, split: int) -> None:
    assert pairs_needed(Estimate(1.08, 1.02, 1.14, n, 0.95), SLOWER, split) == 317


def test_what_is_settled_needs_none() -> None:
    assert pairs_needed(Estimate(1.2, 1.19, 1.21, 384, 0.95), SLOWER, 6) is None
