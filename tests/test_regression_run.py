"""Whole runs of a task with a regression: the verdict, the report, and what a killed run leaves behind."""

import subprocess
import sys
from pathlib import Path

import pytest
from bar import git
from building import PATIENCE_S, ROOT, awaited, clean, gates, loaded, refused
from regressing import slower, two_commits

TASK = """\
id: T1
title: Squares
implementation: [pkg]
criteria:
  - {id: AC1, text: Not slower than before}
measurements:
  - {id: step, arms: {work: {call: "bench:make_step"}}, clock: cpu, pairs: 8, restarts: 1}
regressions:
  - {from: step, of: step_time_s, criteria: [AC1]BUILD}
"""


def test_the_example_of_the_documentation_is_a_task(tmp_path: Path) -> None:
    page = (ROOT / "docs/regression.md").read_text(encoding="utf-8")
    example = page.split("```yaml\n")[1].split("```")[0]
    task = loaded(tmp_path, f"id: T1\ntitle: x\nimplementation: [pkg]\n{example}")
    limits = [(one.of, one.warns_at, one.block_at) for one in task.regressions]
    assert limits == [("step_time_s", 0.5, 1.0), ("peak_memory_bytes", 0.05, 0.2), ("run_time_s", 0.5, 1.0)]


REFUSED = {
    "{from: stp, of: step_time_s}": "unknown measurement 'stp'; did you mean 'step'?",
    "{from: step, of: step_time_s, arm: wrk}": "measurement 'step' has no arm 'wrk'; did you mean 'work'?",
    "{from: two, of: step_time_s}": "expected 'arm': measurement 'two' has a, b",
    "{from: tool, of: time_s}": "expected 'arm': the name of a benchmark of 'tool'",
    "{from: raw, of: step_time_s}": "measurement 'raw' has no 'arms' that the gate times",
    "{from: step, of: step_time}": "did you mean 'step_time_s'?",
    "{from: step, of: step_time_s, warn_at: 2}": "expected 'warn_at' to be at most 'block_at', which is 1",
    "{from: step, of: step_time_s, block_at: 0}": "expected greater than 0",
    "{from: step, of: step_time_s, criteria: [AC9]}": "unknown criterion 'AC9'",
}
MORE = """\
  - {id: two, arms: {a: {call: "b:a"}, b: {call: "b:b"}}}
  - {id: tool, run: [tool, "{out}"], read: pyperf}
  - {id: raw, run: [tool, "{out}"]}
regressions:
  - WRONG
"""


@pytest.mark.parametrize("wrong", REFUSED)
def test_what_is_wrong_with_a_regression_is_said_with_its_place(tmp_path: Path, wrong: str) -> None:
    said = refused(tmp_path, TASK.split("regressions:")[0] + MORE.replace("WRONG", wrong))
    assert (said.startswith("12:"), REFUSED[wrong] in said) == (True, True), said


REFUSED_MEASURES = {
    "{from: two, ratio: [base, now], of: step_time_s, at_least: 1.3}": "expected 'arm': measurement 'two' has a, b",
    "{from: raw, ratio: [base, now], of: step_time_s, at_least: 1.3}": "has no 'arms' that the gate times",
    "{from: two, ratio: [base, a], of: step_time_s, at_least: 1.3}": "measurement 'two' has no arm 'base'",
    "{from: two, ratio: [a, b], of: step_time_s, at_least: 1.3, arm: a}": "'arm' goes with the arms 'base' and 'now'",
}


@pytest.mark.parametrize("wrong", REFUSED_MEASURES)
def test_a_measure_against_the_base_names_one_arm(tmp_path: Path, wrong: str) -> None:
    head = TASK.split("regressions:")[0].replace("than before}", f"than before, measures: [{wrong}]}}")
    said = refused(tmp_path, head + MORE.split("regressions:")[0])
    assert (said.startswith("5:"), REFUSED_MEASURES[wrong] in said) == (True, True), said


def a_repository(folder: Path, build: str = "", times: float = 8) -> Path:
    files = {
        "pyproject.toml": "[tool.gates]\n",
        ".gitignore": "reports/\n",
        "tasks/T1.yaml": TASK.replace("BUILD", build),
    }
    return two_commits(folder, before=files, after=slower(times))


def test_a_slowed_change_blocks_with_a_report_and_the_next_one_shows_the_history(tmp_path: Path) -> None:
    root, env = a_repository(tmp_path / "p"), {"XDG_STATE_HOME": str(tmp_path / "state")}
    first = gates(root, "run", "T1", "--gate", "performance", env=env)
    assert first.code == 1
    assert "it is more than 100 % worse" in first.out
    page = (root / "reports/T1/partial/performance.md").read_text(encoding="utf-8")
    assert "## Regression" in page
    assert "## History" not in page
    assert gates(root, "run", "T1", "--gate", "performance", env=env).code == 1
    assert "## History" in (root / "reports/T1/partial/performance.md").read_text(encoding="utf-8")
    assert gates(root, "run", "T1", "--base", "no-such", env=env).code == 2
    assert git(root, "status", "--porcelain") == ""


def test_a_killed_run_takes_its_baseline_with_it(tmp_path: Path) -> None:
    root = a_repository(tmp_path / "p", build=", build: [sleep, '600']")
    (tmp_path / "tmp").mkdir()
    env = clean({"TMPDIR": str(tmp_path / "tmp"), "XDG_STATE_HOME": str(tmp_path / "state")})
    run = subprocess.Popen(
        [sys.executable, "-m", "gates", "run", "T1", "--gate", "performance"], cwd=root, env=env,
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        awaited(lambda: laid_out(tmp_path))
    finally:
        run.kill()
        run.wait(PATIENCE_S)
    awaited(lambda: not list((tmp_path / "tmp").glob("gates-*")))
    assert git(root, "worktree", "list").count("\n") == 0
    assert git(root, "status", "--porcelain") == ""


def laid_out(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "tmp").glob("gates-*/regressions/tree/pkg/core.py"))
