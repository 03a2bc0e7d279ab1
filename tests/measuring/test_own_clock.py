"""The gate's own clock beside what workers tell: times that hold only by the worker's are not believed."""

import statistics
from pathlib import Path
from typing import Any

import pytest
from arming import STEPS, a_plan
from building import a_measure, written
from taking import NEW, OLD, PAIRS, a_run_of, a_taken, some_samples

from gates.measuring.answers import estimated, outcome, unfit
from gates.measuring.session import measure
from gates.measuring.taken import MeasurementRun
from gates.model import Outcome
from gates.task.task import Measure

RATIO = Measure.model_validate(a_measure())
LEVEL = Measure.model_validate(a_measure(ratio=None, value="new", at_least=None, at_most=1.2))
CPU: Any = {"step_cpu_time_s": (OLD, NEW)}
U, P = Outcome.UNKNOWN, Outcome.PASSED


def seen_by(
    old: float, new: float, measure: Measure = RATIO, *, clock: str = "wall", wall: Any = NEW
) -> MeasurementRun:
    """Workers that say 2.0 and 1.0 seconds; the gate's clock says so many times as much."""
    whole = {"old": (old,) * PAIRS, "new": (new,) * PAIRS}
    return a_run_of(some_samples(new=wall, **(CPU if clock == "cpu" else {})), a_taken(whole=whole, clock=clock))


@pytest.mark.parametrize("way", [1.0, 1.3, 4.0])
def test_the_way_of_question_and_answer_is_the_same_for_all_arms(way: float) -> None:
    assert outcome(RATIO, seen_by(way, way)) is P


@pytest.mark.parametrize("hidden", [1.4, 1.9])
def test_work_that_is_not_timed_decides_nothing(hidden: float) -> None:
    source = seen_by(1.0, hidden)
    assert outcome(RATIO, source) is U
    assert any("done where it is not timed" in why for why in unfit(RATIO, source, estimated(RATIO, source)))


def test_one_disturbed_pair_hides_no_work_that_is_not_timed() -> None:
    whole = {"old": (1.0,) * (PAIRS - 1) + (1.0 + PAIRS,), "new": (1.9,) * PAIRS}
    assert outcome(RATIO, a_run_of(some_samples(), a_taken(whole=whole, restarts=(1,) * PAIRS))) is U


@pytest.mark.parametrize("caught_up", [2, 3, 5, 15])
def test_work_that_is_put_off_for_long_decides_nothing(caught_up: int) -> None:
    whole = tuple(1.0 + caught_up * (i % (caught_up + 1) == caught_up) for i in range(PAIRS))
    taken = a_taken(whole={"old": (1.0,) * PAIRS, "new": whole}, restarts=(1,) * PAIRS)
    assert outcome(RATIO, a_run_of(some_samples(), taken)) is U


def test_what_changes_no_verdict_is_let_through() -> None:
    assert outcome(RATIO, seen_by(1.0, 1.2)) is P


@pytest.mark.parametrize(("whole", "decided"), [(1.0, P), (1.24, P), (1.5, U)])
def test_level_may_be_longer_by_the_way_only(whole: float, decided: Outcome) -> None:
    assert outcome(LEVEL, seen_by(1.0, whole)) is decided


def test_cpu_time_of_an_arm_that_lets_another_process_work_is_no_time_of_the_work() -> None:
    assert outcome(RATIO, seen_by(1.0, 1.0, clock="cpu")) is P
    assert outcome(RATIO, seen_by(1.0, 1.0, clock="cpu", wall=OLD)) is U


ARMS = """
import sys, time

def hurried(took, pause):
    clock, cpu = time.perf_counter, time.process_time
    time.perf_counter, time.process_time = (lambda: clock() * 0.55), (lambda: cpu() * 0.55)
    vars(sys.modules["__main__"]).update(perf_counter=time.perf_counter, process_time=time.process_time)
    return lambda: time.sleep(took / 1000)

def late(took, pause):
    left, last = [], [0.0]
    def step():
        if time.perf_counter() - last[0] > pause:
            time.sleep(sum(left))
            left.clear()
        left.append(took / 2000)
        time.sleep(took / 2000)
        last[0] = time.perf_counter()
    return step
"""


@pytest.mark.parametrize(
    ("arm", "most", "pause", "split"), [("hurried", 8, 0.0, 1), ("late", 8, 0.015, 1), ("late", 32, 0.003, 6)]
)
def test_arm_that_only_seems_fast_is_found_out(arm: str, most: int, pause: float, split: int, tmp_path: Path) -> None:
    """They sleep: who computes waits for others, on a busy machine for longer than it computes."""
    root = written(tmp_path / "p", {"steps.py": STEPS, "arms.py": ARMS})
    (tmp_path / "log").mkdir()
    arms: dict[str, dict[str, Any]] = {
        "old": {"call": "steps:naps", "args": [1]},
        "new": {"call": f"arms:{arm}", "args": [1, pause]},
    }
    plan = a_plan(root, arms, pairs=most, restarts=1, segment_s=0.030)
    samples, taken = measure(plan, tmp_path / "log", lambda *_: False)
    assert (taken.split, taken.pairs) == (split, most * split)
    whole = {name: statistics.median(values) for name, values in taken.whole.items()}
    assert whole["new"] > 0.8 * whole["old"]  # what the worker times says half of it
    assert outcome(Measure.model_validate(a_measure(at_least=1.3)), a_run_of(samples, taken)) is not P
