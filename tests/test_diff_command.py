"""What `gates diff` tells of two results."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from building import (
    LIGHT,
    NEW,
    a_criterion,
    a_measure,
    a_project,
    a_record,
    a_run,
    a_task,
    all_evidence,
    folded,
    gates,
    measured,
    samples,
    written,
)

from gates.check import Evidence
from gates.commands.history import compare
from gates.errors import UsageError
from gates.evidence.tests.test_records import TestOutcome
from gates.model import Revision
from gates.task.task import Task

FAILED = a_run(a_record(TestOutcome.FAILED))


def a_folder(path: Path, *instead: Evidence, task: Task | None = None, **changes: Any) -> Path:
    asked = task or a_task()
    revision = Revision(commit="c" * 40, dirty=True, digest="0" * 64, files=())
    report = folded(asked, all_evidence(asked, *instead), revision=revision, environment={"cores": "2"})
    report = report.model_copy(update=changes)
    path.mkdir()
    (path / "result.json").write_text(report.model_dump_json(by_alias=True), encoding="utf-8")
    return path


def test_equal_runs_differ_in_nothing(tmp_path: Path) -> None:
    text = compare(a_folder(tmp_path / "a"), a_folder(tmp_path / "b") / "result.json")
    assert text.splitlines()[0].startswith("A  T1  PASS  100/100  cccccccccccc+  2026-01-01T00:00:00Z")
    assert "criteria: no change" in text
    assert "findings: no change" in text
    assert "note:" not in text
    assert text.splitlines()[-1].endswith("the intervals overlap")


def test_a_failure_is_new_one_way_and_gone_the_other(tmp_path: Path) -> None:
    good, bad = a_folder(tmp_path / "a"), a_folder(tmp_path / "b", FAILED)
    there, back = compare(good, bad), compare(bad, good)
    assert "  AC1: PASS -> FAIL: " in there
    assert "  AC1: FAIL -> PASS\n" in back
    assert "  new: failed BL002 AC1 tests/test_core.py:4: " in there
    assert "  gone: failed BL002 AC1 tests/test_core.py:4: " in back
    assert there.splitlines()[1].startswith("B  T1  BLOCK")


@pytest.mark.parametrize(("factor", "verdict"), [(1.3, "less"), (0.5, "more"), (1.0, "the intervals overlap")])
def test_numbers_are_compared_by_their_intervals(tmp_path: Path, factor: float, verdict: str) -> None:
    new = [factor * value for value in NEW]
    before, after = a_folder(tmp_path / "a"), a_folder(tmp_path / "b", measured(samples(new=new)))
    line = next(line for line in compare(before, after).splitlines() if "ratio old/new" in line and " -> " in line)
    assert line.startswith("  ratio old/new of step_time_s >= 1.5 on cpu (AC2): 2 [2, 2] -> ")
    assert line.endswith(f": {verdict}")


def test_criteria_that_came_and_went_and_other_circumstances_are_said(tmp_path: Path) -> None:
    new = a_criterion(id="AC3", text="Be new", measures=[a_measure()])
    more = a_task(criteria=[a_criterion(), new], digest="e" * 64)
    before = a_folder(tmp_path / "a")
    text = compare(before, a_folder(tmp_path / "b", task=more, environment={"cores": "8"}))
    assert "  AC2: PASS -> no longer asked for (Be fast)" in text
    assert "  AC3: new, PASS (Be new)" in text
    assert "note: the task file has changed between them" in text
    assert "note: not the same cores: their times are not of one machine" in text
    other = a_folder(tmp_path / "c", task=a_task(id="T2"))
    assert "note: they are of different tasks, T1 and T2" in compare(before, other)


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    good = a_folder(tmp_path / "a")
    (tmp_path / "empty").mkdir()
    (tmp_path / "other.json").write_text("{}")
    for other, why in ((tmp_path / "empty", "holds no result.json"), (tmp_path / "other.json", "expected a folder")):
        with pytest.raises(UsageError, match=why):
            compare(good, other)
    (good / "result.json").write_text("{")
    with pytest.raises(UsageError, match="not a result of this version"):
        compare(good, good)


def test_many_findings_of_one_rule_are_counted(tmp_path: Path) -> None:
    bad = a_run(*(a_record(TestOutcome.FAILED, id=f"tests/test_core.py::test_{i}") for i in range(9)))
    lines = compare(a_folder(tmp_path / "a"), a_folder(tmp_path / "b", bad)).splitlines()
    assert sum(line.startswith("  new: failed EX002 ") for line in lines) == 5
    assert "  new: 4 more of EX002" in lines


def test_without_folders_the_last_two_runs_are_compared(tmp_path: Path) -> None:
    project = a_project(tmp_path / "p", {"tasks/T1.yaml": LIGHT % "double"})
    refused = gates(project, "diff")
    assert (refused.code, refused.out, refused.err.startswith("error: ")) == (2, "", True)
    assert "holds no result.json; `gates run TASK` makes one" in refused.err
    gates(project, "run", "T1")
    assert "holds one run only" in gates(project, "diff").err
    first = shutil.copytree(project / "reports/T1", tmp_path / "first")
    written(project, {"tasks/T1.yaml": LIGHT % "treble"})
    gates(project, "run", "T1")
    for words in ((), ("reports/T1",), (first, "reports/T1")):
        ended = gates(project, "diff", *words)
        assert (ended.code, ended.err, " -> NOT IMPLEMENTED" in ended.out) == (0, "", True)
