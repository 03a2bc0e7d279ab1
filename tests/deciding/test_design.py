"""Intervals of samples that were looked at while they came in, from processes that were restarted."""

import math
import random
import statistics
from typing import Any

import pytest
from building import a_measure

from gates.measuring.interval import Design, NotEnough, estimate, quantile
from gates.measuring.samples import Metric
from gates.task.task import Measure

RATIO = Measure.model_validate(a_measure())


def metric(old: list[float], new: list[float]) -> Metric:
    return Metric(unit="s", direction="lower", paired=True, arms={"old": tuple(old), "new": tuple(new)})


def pairs(n: int, *, noise: float = 0.01, between: float = 0.0, block: int = 4, seed: int = 1) -> Metric:
    """Pairs of a true ratio of 1, with noise within a start of the processes and between starts."""
    source = random.Random(seed)
    shifts = [source.gauss(0, between) for _ in range(n)]
    return metric([math.exp(source.gauss(0, noise) + shifts[i // block]) for i in range(n)], [1.0] * n)


def restarts(n: int, block: int = 4) -> tuple[int, ...]:
    return tuple(i // block for i in range(n))


def test_an_early_look_has_a_wider_interval_than_a_fixed_number_of_pairs() -> None:
    seen = pairs(16)
    looked, fixed = estimate(RATIO, seen, Design(most=64)), estimate(RATIO, seen)
    assert looked.low < fixed.low < fixed.high < looked.high
    assert (looked.value, looked.n) == (fixed.value, fixed.n)


def test_restarts_that_differ_widen_it() -> None:
    seen = pairs(24, noise=0.001, between=0.05)
    alone, whole = estimate(RATIO, seen, Design(most=64)), estimate(RATIO, seen, Design(64, restarts(24)))
    assert whole.low <= alone.low
    assert whole.high > alone.high or whole.low < alone.low


@pytest.mark.parametrize(
    ("between", "design", "holds"),
    [(0.0, Design(64, restarts(24)), True), (0.03, Design(64, restarts(24)), True), (0.03, Design(64), False)],
)
def test_interval_holds_its_level_where_it_is_over_restarts(between: float, design: Design, *, holds: bool) -> None:
    seen = [estimate(RATIO, pairs(24, between=between, seed=seed), design) for seed in range(400)]
    share = sum(each.low <= 1 <= each.high for each in seen) / len(seen)
    assert share >= 0.95 if holds else share < 0.93


def test_a_later_attempt_needs_more_to_decide() -> None:
    seen = pairs(48)
    first, third = (estimate(RATIO, seen, Design(64, attempt=attempt)) for attempt in (1, 3))
    assert third.low < first.low
    assert third.high > first.high
    assert third.level > first.level


@pytest.mark.parametrize(("n", "most"), [(5, 64), (6, 8), (12, 64)])
def test_too_few_pairs_are_no_interval(n: int, most: int) -> None:
    facts: dict[str, Any] = {"alpha": 1e-4}
    with pytest.raises(NotEnough):
        estimate(RATIO, pairs(n), Design(most), **facts)


def test_last_start_that_is_hardly_begun_is_left_out_of_the_spread() -> None:
    assert len(Design(64, (1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4)).blocks([1.0] * 13)) == 3
    assert Design(64, (1, 1, 2, 2)).blocks([1.0] * 4) == []


def test_many_short_starts_are_put_together_and_few_are_not() -> None:
    many = Design(64, (*(i // 4 for i in range(24)), *(6 + i // 8 for i in range(40))))
    assert [len(block) for block in many.blocks([1.0] * 64)] == [8] * 8
    assert [len(block) for block in Design(64, restarts(24)).blocks([1.0] * 24)] == [4] * 6


def test_all_looks_at_restarts_together_keep_the_error() -> None:
    design = Design(64)
    source = random.Random(4)
    wrong, looks = 0, (4, 6, 7, 9, 11)
    for _ in range(1500):
        medians = [source.gauss(0, 1) for _ in range(11)]
        reach = [quantile(design.level(64, 0.05), n - 1) * statistics.stdev(medians[:n]) / n**0.5 for n in looks]
        wrong += any(abs(statistics.fmean(medians[:n])) > r for n, r in zip(looks, reach, strict=True))
    assert wrong / 1500 < 0.05


@pytest.mark.parametrize("kind", ["ratio", "reduction", "difference"])
def test_each_kind_widens_on_its_own_scale(kind: str) -> None:
    measure = Measure.model_validate(a_measure(**{"ratio": None, kind: ["old", "new"], "at_least": 0.1}))
    seen = estimate(measure, pairs(24, between=0.02), Design(64, restarts(24)))
    assert seen.low < seen.value < seen.high
    assert seen.low < (1.0 if kind == "ratio" else 0.0) < seen.high
