"""Whole runs of a task with a regression: the verdict, the report, and what a killed run leaves behind."""

import re
from pathlib import Path

import pytest
from bar import git
from building import ROOT, gates, written
from regressing import slower, two_commits

from gates.commands import run
from gates.errors import UsageError
from gates.task import loading as spec

TASK = """\
id: T1
title: Squares
implementation: [pkg]
criteria:
  - {id: AC1, text: Not slower than before, measures: [{from: step, ratio: [now, base], of: step_time_s, at_most: 2}]}
measurements:
  - {id: step, arms: {work: {call: "bench:make_step"}}, clock: cpu, pairs: 8, restarts: 1BUILD}
"""


def test_the_example_of_the_documentation_is_a_task(tmp_path: Path) -> None:
    example = (ROOT / "docs/regression.md").read_text(encoding="utf-8").split("```yaml\n")[1].split("```")[0]
    path = tmp_path / "tasks/T1.yaml"
    written(tmp_path, {"tasks/T1.yaml": f"id: T1\ntitle: x\nimplementation: [pkg]\n{example}"})
    limits = [(m.of, m.at_most) for c in spec.load(path, tmp_path).criteria for m in c.measures if m.against_base]
    assert limits == [("step_time_s", 2.0), ("peak_memory_bytes", 1.2), ("run_time_s", 1.5)]


MORE = """\
  - {id: two, arms: {a: {call: "b:a"}, b: {call: "b:b"}}}
  - {id: tool, run: [tool, "{out}"], read: pyperf}
  - {id: raw, run: [tool, "{out}"]}
"""
REFUSED = {
    "{from: stp, ratio: [now, base], of: step_time_s, at_most: 2}": "unknown measurement 'stp'; did you mean 'step'?",
    "{from: step, ratio: [now, base], of: x, at_most: 2, arm: wrk}": "no arm 'wrk'; did you mean 'work'?",
    "{from: tool, ratio: [now, base], of: time_s, at_most: 2}": "has no 'arms' that the gate times",
    "{from: two, ratio: [base, now], of: step_time_s, at_least: 1.3}": "expected 'arm': measurement 'two' has a, b",
    "{from: raw, ratio: [base, now], of: step_time_s, at_least: 1.3}": "has no 'arms' that the gate times",
    "{from: two, ratio: [base, a], of: step_time_s, at_least: 1.3}": "measurement 'two' has no arm 'base'",
    "{from: two, ratio: [a, b], of: step_time_s, at_least: 1.3, arm: a}": "'arm' goes with the arms 'base' and 'now'",
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_a_measure_against_the_base_names_one_arm(tmp_path: Path, wrong: str) -> None:
    asked = "{from: step, ratio: [now, base], of: step_time_s, at_most: 2}"
    root = written(tmp_path, {"tasks/T1.yaml": TASK.replace("BUILD", "").replace(asked, wrong) + MORE})
    with pytest.raises(UsageError) as refused:
        spec.load(root / "tasks/T1.yaml", root)
    assert REFUSED[wrong] in str(refused.value)
    assert str(refused.value).startswith("tasks/T1.yaml:5:")


def a_repository(folder: Path, build: str = "", times: float = 30) -> Path:
    task = TASK.replace("BUILD", build)
    files = {"pyproject.toml": "[tool.gates]\n", ".gitignore": "reports/\n", "tasks/T1.yaml": task}
    return two_commits(folder, before=files, after=slower(times))


def test_a_slowed_change_blocks_with_a_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "HEARTBEAT_S", 0.001)
    root = a_repository(tmp_path / "p")
    first = gates(root, "run", "T1", "--gate", "performance")
    assert first.code == 1
    assert "misses the target" in first.out
    assert re.search(r"6 of 7; step/work: [\d.]+ \[.+\] after 8 of at most 8 pairs; ", first.err)
    assert "## Against the Base" in (root / "reports/T1/partial/performance.md").read_text(encoding="utf-8")
    assert gates(root, "run", "T1", "--base", "no-such").code == 2
    assert git(root, "status", "--porcelain") == ""
