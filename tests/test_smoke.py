"""A smoke run: less of each measurement, the same criteria, and the same ledger."""

from pathlib import Path

import pytest
from arming import STEPS
from building import a_context, a_criterion, a_measure, a_project, a_task, gates, written

from gates.evidence.measurements import Measurements, command
from gates.task.measurement import Measurement
from gates.task.task import PAIRS, RESTARTS, SAID, cut_short, smoked

ARMS = {"old": {"call": "pkg.core:make", "args": [1]}, "new": {"call": "pkg.core:make", "args": [2]}}


def test_smoke_leaves_criteria_and_measurements_as_they_are() -> None:
    task = a_task(criteria=[a_criterion(measures=[a_measure()])], leaks=[{"call": "pkg.core:train"}],
                  hot_paths=[{"call": "pkg.core:train"}])  # fmt: skip
    small = smoked(task)
    assert small.criteria == task.criteria
    assert small.measurements == task.measurements
    assert (small.leaks[0].epochs, small.hot_paths[0].steps) == (20, 20)
    assert small.smoke
    assert not task.smoke


def test_smoke_never_takes_more_than_was_asked() -> None:
    task = smoked(a_task(leaks=[{"call": "pkg.core:train", "epochs": 20}],
                         hot_paths=[{"call": "pkg.core:train", "steps": 12}]))  # fmt: skip
    assert (task.leaks[0].epochs, task.hot_paths[0].steps) == (20, 12)
    few = Measurement.model_validate({"id": "m", "arms": ARMS, "pairs": 8, "restarts": 2, "budget_s": 1})
    assert cut_short(few, task) == few


def test_arms_get_fewer_pairs_and_starts() -> None:
    arms = Measurement.model_validate({"id": "m", "arms": ARMS})
    short = cut_short(arms, smoked(a_task()))
    assert (short.pairs, short.restarts) == (PAIRS, RESTARTS)
    assert short.budget_s < arms.budget_s
    assert cut_short(arms, a_task()) == arms


def test_command_gets_its_words_for_a_smoke_run_only() -> None:
    measurement = {"id": "bench", "run": ["python", "bench.py", "{out}"], "smoke": ["--smoke"]}
    task = a_task(measurements=[measurement])
    assert command(task, "bench", "cpu") == ("python", "bench.py", "samples.json")
    assert command(smoked(task), "bench", "cpu") == ("python", "bench.py", "samples.json", "--smoke")


def test_smoke_is_no_word_for_arms() -> None:
    with pytest.raises(ValueError, match="'smoke' goes with 'run'"):
        Measurement.model_validate({"id": "m", "arms": ARMS, "smoke": ["--smoke"]})


def test_attempt_of_a_smoke_run_counts_for_later_ones(tmp_path: Path) -> None:
    arms = {name: {"call": "steps:naps", "args": [time]} for name, time in (("old", 3), ("new", 1))}
    task = a_task(
        implementation=["steps.py"], criteria=[a_criterion(measures=[a_measure()])],
        measurements=[{"id": "bench", "arms": arms, "restarts": 5, "pairs": 6, "budget_s": 30}],
    )  # fmt: skip
    context = a_context(written(tmp_path / "project", {"steps.py": STEPS}))
    (first,) = Measurements.collect(smoked(task), context).runs
    assert first.taken is not None
    assert first.taken.planned_starts == RESTARTS
    (second,) = Measurements.collect(task, context).runs
    assert [attempt.pairs for attempt in second.earlier] == [6]


def test_report_and_terminal_say_that_it_was_a_smoke_run(tmp_path: Path) -> None:
    root = a_project(tmp_path)
    ended = gates(root, "run", "T1", "--gate", "performance", "--smoke")
    assert f"budgets: {SAID}" in ended.out
    assert f"- **Budgets**: {SAID}" in (root / "reports/T1/partial/summary.md").read_text()
    assert f"- **Budgets**: {SAID}" in (root / "reports/T1/partial/performance.md").read_text()
    assert "udgets" not in gates(root, "run", "T1", "--gate", "performance").out
