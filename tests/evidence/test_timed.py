"""Measurements that the gate times, run for real in little projects."""

import json
import os
import py_compile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from arming import STEPS
from building import PATIENCE_S, a_context, a_criterion, a_measure, a_project, a_task, refused, result, written
from building import gates as command

from gates.check import Earlier, EvidenceSet
from gates.code.units import Units
from gates.evidence.measurements import Measurements
from gates.measuring import machine, session
from gates.measuring.taken import MeasurementRun

ARMS = {"old": {"call": "steps:work", "args": [12000]}, "new": {"call": "steps:work", "args": [4000]}}


@pytest.fixture(autouse=True)
def _state(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(session.SEGMENT_S, "cpu", 0.010)  # what is measured here differs by far


def run_of(folder: Path, *measures: dict[str, Any], files: dict[str, str] | None = None, **how: Any) -> MeasurementRun:
    root = written(folder / "project", {"steps.py": STEPS, **(files or {})})
    task = a_task(
        implementation=["steps.py"], criteria=[a_criterion(measures=list(measures or (a_measure(),)))],
        measurements=[{"id": "bench", **how}],
    )  # fmt: skip
    (run,) = Measurements.derive(task, a_context(root), EvidenceSet()).runs
    return run


def test_arms_are_timed_until_they_decide(tmp_path: Path) -> None:
    run = run_of(tmp_path, arms=ARMS, restarts=2, clock="cpu", budget_s=PATIENCE_S)
    assert run.problem == ""
    assert run.samples is not None
    assert run.taken is not None
    assert run.taken.ended in {"decided", "all pairs"}  # of a crowded machine it takes more
    assert json.loads((tmp_path / "project-evidence" / str(run.raw)).read_text())["schema"] == "gates.samples/1"


PLACED = """
import os
def make(processors):
    def step():
        assert len(os.sched_getaffinity(0)) == processors
        return sum(range(2000))
    return step
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="here nobody can say on which processor to run")
@pytest.mark.parametrize(("of", "processors"), [("step_cpu_time_s", 1), ("step_time_s", machine.observe().cores)])
def test_arms_share_a_processor_where_cpu_time_alone_decides(tmp_path: Path, of: str, processors: int) -> None:
    arms = {name: {"call": "placed:make", "args": [processors]} for name in ("old", "new")}
    asked: dict[str, Any] = {"arms": arms, "restarts": 1, "pairs": 6, "budget_s": PATIENCE_S}
    run = run_of(tmp_path, a_measure(of=of), files={"placed.py": PLACED}, **asked)
    assert run.problem == ""
    assert run.samples is not None
    assert ("processors" in run.samples.settings) is (of == "step_cpu_time_s")


def test_attempts_of_the_same_code_add_up_whatever_is_asked_and_those_of_other_code_do_not(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"arms": ARMS, "restarts": 1, "pairs": 6, "budget_s": PATIENCE_S}
    assert run_of(tmp_path / "1", **asked).earlier == ()
    root = tmp_path / "1" / "project"
    task = a_task(implementation=["steps.py"], criteria=[a_criterion(measures=[a_measure(at_least=1.4)])],
                  measurements=[{"id": "bench", **asked, "budget_s": PATIENCE_S - 1, "clock": "cpu"}])  # fmt: skip
    context = a_context(root.rename(tmp_path / "again"))
    (second,) = Measurements.derive(task, context, EvidenceSet()).runs
    assert [attempt.pairs for attempt in second.earlier] == [6]
    (context.root / "steps.py").write_text(STEPS + "\nANOTHER = 1\n")
    (third,) = Measurements.derive(task, context, EvidenceSet()).runs
    assert third.earlier == ()


def test_after_an_edit_only_the_measurements_that_ran_it_are_taken_anew(tmp_path: Path) -> None:
    more = "def other(n):\n    return lambda: sum(range(n))\n"
    root = written(tmp_path / "project", {"steps.py": STEPS + more})
    how: dict[str, Any] = {"restarts": 1, "pairs": 6, "clock": "cpu"}
    arms = {"old": {"call": "steps:other", "args": [12000]}, "new": {"call": "steps:other", "args": [4000]}}
    task = a_task(
        implementation=["steps.py"], criteria=[a_criterion(measures=[a_measure(), a_measure(**{"from": "b"})])],
        measurements=[{"id": "bench", "arms": ARMS, **how}, {"id": "b", "arms": arms, **how}],
    )  # fmt: skip
    context, seen = a_context(root), EvidenceSet()
    first = Measurements.derive(task, context, seen)
    old, new = ((STEPS + more.replace("sum(", text)).encode() for text in ("sum(", "max("))
    changed = {str(root / "steps.py"): (Units.of(old), Units.of(new))}
    earlier = Earlier(EvidenceSet({Measurements: first}), context.evidence, "", {}, changed, seen.noted)
    (context.root / "steps.py").write_bytes(new)
    again = Measurements.derive(task, replace(context, evidence=tmp_path / "raw"), EvidenceSet(earlier=earlier))
    assert [new is old for new, old in zip(again.runs, first.runs, strict=True)] == [True, False]
    assert (tmp_path / "raw" / str(again.runs[0].raw)).is_file()


def test_what_an_attempt_missed_stands_in_the_ledger(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"arms": ARMS, "restarts": 1, "pairs": 8, "budget_s": PATIENCE_S, "clock": "cpu"}
    met, far = a_measure(of="step_cpu_time_s", at_least=1.01), a_measure(of="step_cpu_time_s", at_least=30)
    run_of(tmp_path, met, far, **asked)
    last = (tmp_path / "project/.gates/attempts.jsonl").read_text(encoding="utf-8").splitlines()[-1]
    assert json.loads(last)["missed"] == ["ratio old/new of step_cpu_time_s >= 30 on cpu"]


def test_an_arm_that_fails_leaves_its_reason(tmp_path: Path) -> None:
    run = run_of(tmp_path, arms={**ARMS, "new": {"call": "steps:raises"}})
    assert (run.samples, run.problem) == (None, "new: ValueError: no step today")


def test_a_measurement_for_a_device_is_told_it_and_a_cpu_answers_for_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(machine, "may_have", lambda _device: True)
    arms = {name: {"call": "steps:work", "args": [2000, "{device}"]} for name in ("old", "new")}
    run = run_of(tmp_path, a_measure(on="cuda"), arms=arms, pairs=6, restarts=1)
    assert run.device == "cuda"
    assert run.problem.startswith("measured on 'cpu'")


def test_commands_of_all_arms_find_their_code_compiled_whatever_was_compiled_before(tmp_path: Path) -> None:
    look = "import os\nopen(os.environ['SEEN'], 'a').write(f'{__name__} {os.path.exists(__cached__)}\\n')\n"
    root, seen = written(tmp_path / "project", {"old.py": look, "new.py": look}), tmp_path / "seen"
    known = Path(str(py_compile.compile(str(root / "old.py"), doraise=True)))
    arms = {name: {"time": ["python", "-c", f"import {name}"]} for name in ("old", "new")}
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("SEEN", str(seen))
        run = run_of(tmp_path, a_measure(of="run_time_s"), arms=arms, pairs=6)
    assert run.problem == ""
    assert {*seen.read_text().splitlines()} == {"old True", "new True"}
    assert [*root.rglob("*.pyc")] == [known]


PYTEST_BENCHMARK = """
import json, random, sys
rows = [{"name": n, "stats": {"data": [s, s * 1.01, s * 1.02]}} for n, s in (("old", 2.0), ("new", 1.0))]
json.dump({"benchmarks": rows[:COUNT]}, open(sys.argv[1], "w"))
"""


def other_tool(tmp_path: Path, count: str = "2", **how: Any) -> MeasurementRun:
    files = {"bench.py": PYTEST_BENCHMARK.replace("COUNT", count)}
    asked: dict[str, Any] = {"run": ["python", "bench.py", "{out}"], "read": "pytest-benchmark", **how}
    return run_of(tmp_path, a_measure(of="time_s"), files=files, **asked)


def test_each_run_of_another_tool_is_one_sample(tmp_path: Path) -> None:
    run = other_tool(tmp_path, restarts=7)
    assert run.samples is not None
    assert run.samples.metrics["time_s"].arms == {"old": (2.02,) * 7, "new": (1.01,) * 7}


def test_another_tool_that_measures_now_this_now_that_is_refused(tmp_path: Path) -> None:
    once = "2 - __import__('os').path.exists('there')] + [open('there', 'w').close()][:0"
    assert "of 6 runs only" in other_tool(tmp_path, once).problem


def test_another_tool_that_writes_nothing_or_fails_says_so(tmp_path: Path) -> None:
    nothing = other_tool(tmp_path / "1", run=["python", "-c", "pass", "{out}"])
    assert nothing.problem == "the measurement ended well but wrote no samples file"
    fails = other_tool(tmp_path / "2", run=["python", "-c", "raise SystemExit('no')", "{out}"])
    assert fails.problem == "the measurement ended with exit code 1: no"


TASK = """\
id: T1
title: Doubling
implementation: [pkg]
tests: [tests]
criteria:
  - id: AC1
    text: Start quickly
    measures:
      - {from: start, value: own, of: run_time_s, at_most: 20}
      - {from: start, value: own, of: run_time_s, at_most: 0.0001, level: should}
measurements:
  - id: start
    arms: {own: {time: [python, -c, "import pkg.core"]}}
    pairs: 6
"""


def test_a_project_without_torch_is_gated_by_the_time_of_a_command(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p", {"tasks/T1.yaml": TASK})
    ended = command(project, "run", "T1", "--gate", "performance")
    seen = {finding["check"]: finding for gate in result(project)["gates"] for finding in gate["findings"]}
    assert ended.err.count("Traceback") == 0
    assert seen["measure:AC1:0"]["outcome"] in {"passed", "unknown"}  # a crowded machine is no place to say it
    assert seen["measure:AC1:1"]["outcome"] in {"failed", "unknown"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (("pairs: 6", "pairs: 5"), "greater than or equal to 6"),
        (("value: own", "value: onw"), "measurement 'start' has no arm 'onw'; did you mean 'own'?"),
        (("time: [", "tiem: ["), "unknown key 'tiem'; did you mean 'time'?"),
        (('time: [python, -c, "import pkg.core"]', "call: a:b, run: [x]"), "exactly one of 'call', 'run' and 'time'"),
        (("pairs: 6", "read: pyperf"), "'read' goes with 'run'"),
        (("pairs: 6", 'run: [x, "{out}"]'), "expected exactly one of 'run' and 'arms'"),
        (("arms: {own: ", "arms: {}  # "), "expected exactly one of 'run' and 'arms'"),
        (("pairs: 6", "clock: sun"), "expected 'wall', 'cpu' or 'either', found 'sun'"),
    ],
)
def test_what_is_wrong_in_the_task_file_is_said_with_its_place(
    tmp_path: Path, wrong: tuple[str, str], said: str
) -> None:
    assert said in refused(tmp_path, TASK.replace(*wrong))
