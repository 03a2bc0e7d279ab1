"""Concurrency, collected for real: callables of a project, several at once."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from building import PATIENCE_S, ROOT, a_context, a_task, evidence, written

from gates.checks.concurrency import CHECK, Concurrency, Together
from gates.child import concurrency as child
from gates.child.asking import Places
from gates.child.noting import noting
from gates.model import Finding, Outcome

CASES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "benchmarks/cases/together").glob("*.py")}
P, F, U = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN
HEAD = "import os, random, sys, threading, time\nSEEN = []\nMAIN = threading.main_thread()\n\n\n"


def look(tmp_path: Path, body: str = "return 1", **changes: Any) -> tuple[Together, Finding]:
    """Run a callable of the cases at once, or one with a body of its own."""
    files = {**CASES, "pkg/__init__.py": "", "pkg/own.py": f"{HEAD}def work(*args):\n    {body}\n"}
    root = written(tmp_path / "project", files)
    asked = {"call": "pkg.own:work", "failure_rate": 0.5, "budget_s": PATIENCE_S, **changes}
    if "shared" in asked:
        del asked["call"]
    task = a_task(concurrency=[asked])
    concurrency = Concurrency.collect(task, a_context(root))
    assert not (root.parent / "project-evidence/concurrency/plugin").exists()
    return concurrency.seen[0], next(iter(CHECK.judge(task, evidence(concurrency))))


def shared(name: str, read: str = "counted", times: int = 400) -> dict[str, Any]:
    """An object that two threads use."""
    module = "planted_together" if name in CASES["planted_together.py"] else "sound_together"
    return {"shared": f"{module}:{name}", "use": f"{module}:{name}.log", "read": f"{module}:{read}", "times": times}


@pytest.mark.parametrize(("name", "read"), [("CountingTracker", "counted"), ("BatchedTracker", "flushed")])
def test_lost_updates_of_a_tracker_are_found(tmp_path: Path, name: str, read: str) -> None:
    _, finding = look(tmp_path, **shared(name, read))
    assert (finding.outcome, "expected 800" in finding.message) == (F, True), finding.message


def test_generator_that_two_trainers_share_is_found(tmp_path: Path) -> None:
    _, finding = look(tmp_path, call="planted_together:seeded", each=[[1], [2]])
    assert finding.outcome is F


def test_deadlock_is_found_with_the_line_of_each_thread(tmp_path: Path) -> None:
    seen, finding = look(tmp_path, call="planted_together:crossed")
    assert finding.outcome is F
    assert str(finding.location) == line_of("with other:")
    assert finding.message.count(line_of("with other:")) == len(seen.stood) == 2


def test_pause_of_the_whole_machine_is_no_deadlock(monkeypatch: pytest.MonkeyPatch) -> None:
    done, clock = threading.Event(), iter([0.0, 0.0, 8.0])  # the begin and two looks, between which nothing changed
    time = SimpleNamespace(monotonic=lambda: next(clock, 8.0), process_time=float, thread_time=float)
    monkeypatch.setattr(child, "time", time)
    monkeypatch.setattr(child.AtOnce, "_note", lambda *_, **told: pytest.fail(f"it was taken for a deadlock: {told}"))
    (at_once := child.AtOnce.__new__(child.AtOnce)).__dict__.update(_places=Places("/"), _still_s=4.0, _limit_s=99.0)
    (worker := child._Worker(0, lambda one: one.returned.append(done.wait(PATIENCE_S)))).thread.start()
    threading.Timer(0.3, done.set).start()
    at_once._end_if_standing([worker], forced=False)
    assert done.is_set()


def test_error_that_is_raised_at_once_only_is_found(tmp_path: Path) -> None:
    _, finding = look(tmp_path, "SEEN.append(1); time.sleep(0.02); n = len(SEEN); SEEN.pop(); return 1 // (2 - n)")
    assert finding.outcome is F
    assert "it raises ZeroDivisionError" in finding.message
    assert str(finding.location) == "pkg/own.py:7"


@pytest.mark.parametrize("name", ["LockedTracker", "AppendingTracker", "DatabaseTracker"])
def test_sound_tracker_passes(tmp_path: Path, name: str) -> None:
    with noting(tmp_path):  # an audit hook that lets threads change places
        seen, finding = look(tmp_path, **shared(name, times=2), failure_rate=0.05)
    assert finding.outcome is P, finding.message
    assert min(seen.pauses, seen.met) > 0


def test_what_has_its_own_state_passes(tmp_path: Path) -> None:
    seen, finding = look(tmp_path, call="sound_together:own_generator", each=[[1], [2]])
    assert (finding.outcome, seen.met) == (P, 6), finding.message
    assert "fewer than 0.5 of the rounds fail" in finding.message


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ValueError('no')", "ValueError: no"),
        ("sys.exit(0)", "it ended before it was done: exit code 0"),
        ("os._exit(0)", "it ended before it was done: exit code 0"),
        ("os.kill(os.getpid(), 9)", "killed by SIGKILL"),
        ("time.sleep(60)", "it ended before it was done"),
        ("return random.random()", "alone it gives something else the second time"),
        ("SEEN.append(1); return len(SEEN)", "alone it gives something else the second time"),
        ("pass", "it returns nothing that can be compared"),
        ("return iter([object()])", "it returns nothing that can be compared"),
        ("open(SELF, 'ab').write(b'x {}\\n'); return 1", "lines that are not its own"),
    ],
)
def test_what_has_no_result_alone_is_unknown_with_the_reason(tmp_path: Path, body: str, said: str) -> None:
    journal = tmp_path / "project-evidence/concurrency/0.jsonl"
    limit: dict[str, Any] = {"timeout_s": 2} if "sleep" in body else {}  # others may take their time to begin
    _, finding = look(tmp_path, body.replace("SELF", repr(str(journal))), **limit)
    assert (finding.outcome, said in finding.message) == (U, True), finding.message
    assert "\n" not in finding.message


def test_what_is_not_there_is_unknown(tmp_path: Path) -> None:
    _, finding = look(tmp_path, call="pkg.own:nothing")
    assert (finding.outcome, "pkg.own has no 'nothing'" in finding.message) == (U, True)


def line_of(text: str) -> str:
    """Return the place of a line of the planted cases."""
    lines = CASES["planted_together.py"].splitlines()
    return f"planted_together.py:{next(i for i, line in enumerate(lines, 1) if text in line)}"
