"""The log of runs, and what `gates history` makes of it."""

from pathlib import Path
from typing import Any

from building import a_project, gates

from gates.commands import history
from gates.commands.history import LoggedRun, perform
from gates.config import Project, Settings
from gates.measuring import machine

STEP = "ratio now/base of step_time_s (AC1)"


def a_run(value: float = 1.0, **changes: Any) -> LoggedRun:
    """A run on this machine that measured one number."""
    facts: dict[str, Any] = {
        "task": "T1", "at": "2026-01-01T00:00:00Z", "commit": "c" * 40, "dirty": False, "digest": "d" * 64,
        "machine": machine.name(), "decision": "PASS", "score": 100, "gates": ("execution",), "duration_s": 2.0,
        "numbers": {STEP: value},
    }  # fmt: skip
    return LoggedRun.model_validate({**facts, **changes})


def shown(root: Path, last: int = 20) -> str:
    return "".join(f"{line}\n" for line in perform(Project(root, Settings()), "T1", last))


def test_runs_are_kept_in_order_and_read_back_by_task(tmp_path: Path) -> None:
    runs = [a_run(1.0), a_run(2.0, task="T2"), a_run(3.0)]
    assert [history.log_run(tmp_path, run) for run in runs] == ["", "", ""]
    assert history.runs_of(tmp_path, "T1") == (runs[0], runs[2])
    assert (tmp_path / ".gates/.gitignore").read_text() == "*\n"


def test_a_line_that_is_no_run_is_passed_over(tmp_path: Path) -> None:
    history.log_run(tmp_path, a_run())
    log = tmp_path / history.NAME
    log.write_bytes(b'\xff\n{"task": "T1"}\n' + log.read_bytes() + b'{"task": "T1", "at"')
    assert history.runs_of(tmp_path, "T1") == (a_run(),)
    assert history.runs_of(tmp_path / "nowhere", "T1") == ()


def test_a_log_that_cannot_be_written_is_said_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / ".gates").write_text("a file")
    assert "cannot be written" in history.log_run(tmp_path, a_run())


def test_history_tells_verdict_score_commit_and_time_and_numbers_of_this_machine_only(tmp_path: Path) -> None:
    root = a_project(tmp_path)
    blocked = a_run(2.0, dirty=True, decision="BLOCK", score=40, only="AC2")
    for run in (a_run(4.0), a_run(9.0, machine="another"), blocked):
        history.log_run(root, run)
    lines = shown(root).splitlines()
    assert lines[0] == "T1  Doubling"
    assert lines[1].split() == ["2026-01-01T00:00:00Z", "PASS", "100/100", "c" * 12, "2.0", "s", "execution"]
    assert lines[2].endswith("execution, another machine")
    assert lines[3].split()[1:4] == ["BLOCK", "40/100", "c" * 12 + "+"]
    assert lines[3].endswith("execution, --only AC2")
    assert lines[-1].endswith("4 -> 2, 2 runs")
    assert len(shown(root, last=1).splitlines()) == len(lines) - 2


def test_a_task_that_never_ran_says_so(tmp_path: Path) -> None:
    assert "`gates run T1` adds one" in shown(a_project(tmp_path))


def test_every_run_is_in_the_history(tmp_path: Path) -> None:
    root = a_project(tmp_path)
    assert gates(root, "run", "T1", "--gate", "performance").code == 3
    ended = gates(root, "history", "T1")
    assert (ended.code, ended.err) == (0, "")
    assert "performance" in ended.out
    assert "ratio old/new of step_time_s >= 1.5 on cpu (AC2)" in ended.out
    assert gates(root, "history", "T9").code == 2
