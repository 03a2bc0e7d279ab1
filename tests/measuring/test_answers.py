"""What samples say at a look: whether everything is decided, and what earlier attempts cost."""

import math
from typing import Any

import pytest
from building import a_measure
from taking import NEW, OLD, PAIRS, a_run_of, a_taken, an_attempt, some_samples

from gates.measuring.answers import estimated, outcome, settled
from gates.measuring.interval import NotEnough
from gates.measuring.taken import MeasurementRun
from gates.model import Outcome
from gates.task.task import Measure

NOISY = [1.0 + (i * 7 % 16) / 100 for i in range(PAIRS)]


def asked(**changes: Any) -> Measure:
    return Measure.model_validate(a_measure(**changes))


def a_source(**changes: Any) -> MeasurementRun:
    return a_run_of(some_samples(), a_taken(**changes))


def test_a_clear_answer_settles_it_and_an_open_one_does_not() -> None:
    assert settled([asked()], a_source())
    assert settled([asked(at_least=2.5)], a_source())
    noisy = a_run_of(some_samples(new=NOISY), a_taken())
    assert not settled([asked(at_least=1.85)], noisy)
    assert settled([asked()], noisy)
    assert not settled([asked(), asked(at_least=1.85)], noisy)


def test_an_unfit_machine_settles_nothing() -> None:
    assert not settled([asked()], a_source(threads=2, waiting=0.9))


def test_a_measure_that_does_not_apply_keeps_nobody_waiting() -> None:
    assert settled([asked(), asked(at_least=9.0, when=["amx_bf16"])], a_source())


def test_a_metric_that_is_not_there_stays_open() -> None:
    with pytest.raises(NotEnough, match="no 'items_per_s', only step_time_s"):
        estimated(asked(of="items_per_s"), a_source())
    assert not settled([asked(of="items_per_s")], a_source())


CONSTANT = [2.0] * 10_000


@pytest.mark.parametrize(
    ("old", "new"), [(CONSTANT, [1.0] * 10_000), (CONSTANT[:48], NEW * 3), (OLD * 3, CONSTANT[:48])]
)
def test_times_that_are_all_the_same_were_not_measured(old: list[float], new: list[float]) -> None:
    with pytest.raises(NotEnough, match=r"all \d+ samples of \w+ are 2 s, which no clock gives"):
        estimated(asked(), a_run_of(some_samples(old=old, new=new)))


def test_memory_and_counts_may_all_be_the_same() -> None:
    held = some_samples(peak_memory_bytes=([100.0] * 48, [50.0] * 48), losses=([2.0] * 48, [1.0] * 48))
    held.metrics["losses"].__dict__["unit"] = "nats"
    for of in ("peak_memory_bytes", "losses"):
        assert estimated(asked(of=of), a_run_of(held)).value == 2.0


def test_a_few_starts_settle_nothing_where_more_were_asked_for() -> None:
    two = tuple(i // 8 for i in range(PAIRS))
    assert not settled([asked()], a_source(restarts=two, planned_starts=3))
    assert settled([asked()], a_source(restarts=two, planned_starts=2))
    assert settled([asked()], a_source(planned_starts=6))
    assert settled([asked()], a_run_of(some_samples(), a_taken(restarts=two, planned_starts=3), (an_attempt(),)))


def test_earlier_attempts_add_their_pairs_and_leave_less_error() -> None:
    source = a_run_of(some_samples(new=NOISY), a_taken())
    tried = a_run_of(some_samples(new=NOISY), a_taken(), (an_attempt(new=NOISY), an_attempt(new=NOISY)))
    first, third = estimated(asked(), source), estimated(asked(), tried)
    assert (first.n, third.n) == (PAIRS, 3 * PAIRS)
    assert first.level == pytest.approx(0.96)
    assert third.level == pytest.approx(1 - 0.01 * 6 / (2 * math.pi) ** 2)


def test_pairs_that_were_split_and_whole_ones_are_not_put_together() -> None:
    whole, split = an_attempt(missed=("ratio",)), an_attempt(split=4)
    seen = estimated(asked(), a_run_of(some_samples(), a_taken(split=4), (whole, split)))
    assert seen.n == 2 * PAIRS
    assert seen.level == pytest.approx(1 - 0.01 * 6 / (2 * math.pi) ** 2)


def test_starts_of_different_attempts_are_different_starts() -> None:
    alike = estimated(asked(), a_run_of(some_samples(), a_taken(), (an_attempt(),)))
    apart = estimated(asked(), a_run_of(some_samples(), a_taken(), (an_attempt(new=[v * 1.2 for v in NEW]),)))
    assert apart.high - apart.low > alike.high - alike.low


def test_memory_has_one_value_for_each_start_and_no_looks() -> None:
    held = some_samples(old=OLD, new=NEW, peak_memory_bytes=([100.0 + i for i in range(6)], [50.0] * 6))
    seen = estimated(asked(of="peak_memory_bytes"), a_run_of(held, a_taken()))
    assert (seen.n, seen.low, seen.high) == (6, 2.0, 2.1)


@pytest.mark.parametrize(("digits", "expected"), [(6, Outcome.PASSED), (3, Outcome.UNKNOWN)])
def test_an_interval_is_as_wide_as_what_was_rounded_away(digits: int, expected: Outcome) -> None:
    levels = {7: 0.0306, 5: 0.0201}
    old, new = ([round(at * (1 + i * k % 16 / 1000), digits) for i in range(16)] for k, at in levels.items())
    assert outcome(asked(at_least=1.5), a_run_of(some_samples(old=old, new=new))) is expected
