"""Kill `gates run` at a random time, and look for what it leaves behind."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil
from building import PATIENCE_S, clean, written

MARK = "GATES_KILL_TEST"
SUITE = """
import os, subprocess, sys, time
def test_double() -> None:
    assert True
def test_busy() -> None:
    for own in (False, True):
        subprocess.Popen(["sleep", "600"], start_new_session=own)
    time.sleep(TAKES_S)
    assert True
"""


@dataclass(frozen=True)
class Left:
    """What one kill left behind: processes, temporary files, odd files among the reports, and reports not whole."""

    signal: str
    after_s: float
    exit_code: int
    processes: tuple[str, ...]
    files: tuple[str, ...]
    reports: tuple[str, ...]


def busy(project: Path, takes_s: float = 3.0) -> Path:
    """Give a project a suite that takes a moment and starts children of its own, one in a session of its own."""
    return written(project, {"tests/test_core.py": SUITE.replace("TAKES_S", str(takes_s))})


def killed(
    project: Path, scratch: Path, *, number: signal.Signals, name: str, after_s: float = 0.0, until: str = ""
) -> Left:
    """Start a run, send it a signal after some time or when it runs some command, let the dust settle, and look."""
    temporary = scratch / name
    temporary.mkdir(parents=True)
    before = snapshot(project)
    mark = f"{os.getpid()}-{name}"
    runner = subprocess.Popen(
        [sys.executable, "-m", "gates", "run", "T1"], cwd=project, start_new_session=True,
        env=clean({MARK: mark, "TMPDIR": str(temporary)}), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        stdin=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        limit = time.monotonic() + PATIENCE_S
        while until and not marked(mark, until) and runner.poll() is None and time.monotonic() < limit:
            time.sleep(0.05)  # each look is at all processes of the machine
        runner.wait(after_s)
    except subprocess.TimeoutExpired:
        runner.send_signal(number)
    code = runner.wait(PATIENCE_S)
    limit = time.monotonic() + PATIENCE_S
    while (alive := marked(mark)) and time.monotonic() < limit:
        time.sleep(0.1)
    for process in alive:
        process.kill()
    files = tuple(path.name for path in temporary.iterdir() if "jinja2-cache" not in path.name)
    return Left(number.name, round(after_s, 3), code, tuple(f"{p.pid}" for p in alive), files, torn(project, before))


def marked(mark: str, word: str = "") -> list[psutil.Process]:
    """Return the processes that a run with this mark started, directly or not, with a word in their command."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(MARK) == mark and word in " ".join(process.cmdline()) and not gone(process.pid):
                found.append(process)
        except (psutil.Error, OSError):
            continue
    return found


def gone(pid: int) -> bool:
    """Return whether a process has ended."""
    return not psutil.pid_exists(pid) or psutil.Process(pid).status() == psutil.STATUS_ZOMBIE


def snapshot(project: Path) -> dict[str, bytes]:
    """Return every file of the reports."""
    reports = project / "reports"
    return {path.relative_to(reports).as_posix(): path.read_bytes() for path in reports.rglob("*") if path.is_file()}


def torn(project: Path, before: Mapping[str, bytes]) -> tuple[str, ...]:
    """Return what is odd among the reports: they must be those of before, or a whole new set of the same names."""
    after = snapshot(project)
    odd = sorted({name.split("/")[1] for name in after.keys() - before.keys() if "/.gates-" in name})
    before = {name: text for name, text in before.items() if "/.gates-" not in name}  # the next run sweeps those
    same = {name: after.get(name) for name in before} == dict(before)
    whole = {name.split("/")[1] for name in before} <= {name.split("/")[1] for name in after}
    return tuple(odd) if same or whole else (*odd, *sorted(before.keys() - after.keys()))
