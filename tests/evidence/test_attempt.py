"""Attempts stand in the ledger however they end: decided, failed or killed."""

import multiprocessing
from functools import partial
from pathlib import Path
from typing import Any

from arming import a_folder, a_plan
from building import a_context, a_criterion, a_measure, a_task, awaited
from taking import an_attempt

from gates.evidence.measurements import BEGUN, KILLED, attempt, counted, take, timed
from gates.measuring.answers import answered
from gates.measuring.taken import NAME, Ledger, MeasurementRun
from gates.model import Outcome

WORK: dict[str, Any] = {"call": "steps:work"}


def measured(tmp_path: Path, new: dict[str, Any] | None = None, **how: Any) -> MeasurementRun:
    root, logs = a_folder(tmp_path / "p"), tmp_path / "logs"
    logs.mkdir(exist_ok=True)
    plan = a_plan(root, {"old": WORK, "new": new or WORK}, **{"pairs": 6, "restarts": 1, **how})
    return attempt(MeasurementRun(id="bench", device="any"), (), "k", root, partial(timed, plan, (), logs))


def lines(tmp_path: Path) -> list[tuple[str, int]]:
    return [(line.ended, line.pairs) for line in Ledger(tmp_path / "p").read()[0]]


def test_an_attempt_is_written_down_as_begun_and_as_ended_and_is_one(tmp_path: Path) -> None:
    assert measured(tmp_path).earlier == ()
    assert lines(tmp_path) == [(BEGUN, 0), ("all pairs", 6)]
    (earlier,) = measured(tmp_path).earlier
    assert (earlier.ended, earlier.pairs, list(earlier.metrics["step_time_s"].arms)) == ("all pairs", 6, ["old", "new"])


def test_an_attempt_that_an_arm_ended_is_one_unless_it_came_to_no_pair(tmp_path: Path) -> None:
    assert "exit code 9" in measured(tmp_path, {"call": "steps:dies_anew"}, pairs=8, restarts=2).problem
    assert "no step today" in measured(tmp_path, {"call": "steps:raises"}).problem
    assert lines(tmp_path) == [(BEGUN, 0), ("failed", 4), (BEGUN, 0), ("failed", 0)]
    (earlier,) = measured(tmp_path).earlier
    assert (earlier.ended, earlier.metrics) == ("failed", {})


def test_one_pair_tells_that_the_device_lacks_what_is_asked_of_it(tmp_path: Path) -> None:
    criterion = a_criterion(tests=[], measures=[a_measure(when=["tensor_cores"])])
    task = a_task(criteria=[criterion], measurements=[{"id": "bench", "arms": {"amp": WORK, "fp32": WORK}}])
    context = a_context(a_folder(tmp_path / "p"))
    run = take(task, task.measurements[0], "any", context, context.evidence)
    assert run.taken and (run.taken.ended, run.taken.pairs) == ("decided", 1)
    assert answered(task.criteria[0].measures[0], run).outcome is Outcome.NOT_APPLICABLE


def test_an_attempt_that_is_killed_is_one(tmp_path: Path) -> None:
    run = multiprocessing.get_context("fork").Process(target=measured, args=(tmp_path, {"call": "steps:hangs"}))
    run.start()
    ledger = tmp_path / "p" / NAME
    awaited(lambda: ledger.exists() and ledger.read_bytes().endswith(b"\n"))
    run.kill()
    run.join()
    (earlier,) = measured(tmp_path).earlier
    assert (earlier.ended, earlier.pairs, earlier.unfit) == (BEGUN, 0, (KILLED,))


def test_what_was_begun_and_ended_counts_once() -> None:
    begun = [an_attempt(at=at, ended=BEGUN, metrics={}).model_copy(update={"pairs": 0}) for at in "123"]
    ended, failed = an_attempt(at="1"), an_attempt(at="3", ended="failed").model_copy(update={"pairs": 0})
    before = an_attempt(at="0")  # as it was written before attempts were begun
    assert counted([before, *begun, failed, ended]) == (before, begun[1], ended)
