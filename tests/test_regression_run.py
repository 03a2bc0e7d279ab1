"""Whole runs of a task with a regression: the verdict, the report, and what a killed run leaves behind."""

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from bar import git
from building import clean, gates
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
LIMIT_S = 60


def a_repository(folder: Path, build: str = "", times: float = 2.6) -> Path:
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
    page = (root / "reports/T1/performance.md").read_text(encoding="utf-8")
    assert "## Regression" in page
    assert "## History" not in page
    assert gates(root, "run", "T1", "--gate", "performance", env=env).code == 1
    assert "## History" in (root / "reports/T1/performance.md").read_text(encoding="utf-8")
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
        seen_within(lambda: laid_out(tmp_path))
    finally:
        run.kill()
        run.wait(LIMIT_S)
    seen_within(lambda: not list((tmp_path / "tmp").glob("gates-*")))
    assert git(root, "worktree", "list").count("\n") == 0
    assert git(root, "status", "--porcelain") == ""


def laid_out(tmp_path: Path) -> list[Path]:
    return list((tmp_path / "tmp").glob("gates-*/regressions/tree/pkg/core.py"))


def seen_within(look: Callable[[], object]) -> None:
    limit = time.monotonic() + LIMIT_S
    while not look():
        if time.monotonic() > limit:
            pytest.fail("it did not come about in time")
        time.sleep(0.05)
