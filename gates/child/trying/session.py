"""Runs pytest once in a process, forked from a warm one or started afresh, which tells of events as they happen."""

import contextlib
import gc
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Iterable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any, TextIO

import pytest

from ..witness import rewriting
from .keeping import lines_in
from .values import hearing

Told = dict[str, Any]
NEUTRAL = ("-q", "--color=no", "--tb=line", "-p", "no:randomly", "-o")
# of plugins, which a warm process has loaded before pytest could rewrite their assertions
UNTOLD = "ignore:Module already imported:pytest.PytestAssertRewriteWarning"
distributions = metadata.distributions


class Recorder:
    """Chooses the tests that are asked for, in the order asked for, and writes down what becomes of them."""

    def __init__(self, told: dict[str, Any], events: TextIO) -> None:
        self._rank = {name: i for i, name in enumerate(told["tests"])}
        self._run, self._keys, self._events = told.get("run"), told.get("listen", {}), events
        self._raised, self._whole = set[str](), told.get("whole", ())

    def say(self, event: str, **facts: object) -> None:
        """Write one event, at once: the process may not live to write more."""
        self._events.write(json.dumps({"event": event, **facts}) + "\n")
        self._events.flush()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config, args: list[str]) -> Iterator[None]:
        """Start no other processes and measure no coverage, where the project has switched such a plugin on."""
        metadata.distributions = distributions  # the project looks for itself
        if early_config.pluginmanager.hasplugin("xdist"):
            args.append("-n0")
        if early_config.pluginmanager.hasplugin("pytest_cov"):
            args.append("--no-cov")
            early_config.known_args_namespace.no_cov = True  # it has been read by now
        yield

    def pytest_configure(self, config: pytest.Config) -> None:
        """Make the marker known that binds tests to criteria: a project may refuse what it does not know."""
        if self._run:
            heard = hearing(self._keys, lambda key, kind: self.say("kind", key=key, kind=kind))
            threading.setprofile(heard)  # from now on: decorators are called while their users are imported
            sys.setprofile(heard)
        config.addinivalue_line("markers", "criterion(id): the acceptance criterion that this test verifies")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Leave the tests that were asked for."""
        chosen = [item for item in items if item.nodeid in self._rank]
        items[:] = sorted(chosen, key=lambda item: self._rank[item.nodeid])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Name each test; all of them run, unless some are named."""
        known, summary = session.config.pluginmanager, "pytest_terminal_summary"  # nobody reads it, it loads much
        vars(session.config.hook)[summary] = known.subset_hook_caller(summary, known.get_plugins())
        for item in session.items:
            self.say("collected", id=item.nodeid)
        if self._run is not None:
            session.items[:] = [item for item in session.items if item.nodeid in self._run]

    def pytest_exception_interact(self, node: pytest.Collector, call: pytest.CallInfo[object]) -> None:
        """Keep a file of tests that counts as a whole and raised by what it calls, not by an import, as it was read."""
        read = [str(each.path) for each in call.excinfo.traceback if each.name == "<module>"] if call.excinfo else []
        self._raised |= {node.nodeid} if read == [str(node.path)] and node.nodeid in self._whole else set()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self.say("uncollected", id=report.nodeid, message=_last_line(report), raised=report.nodeid in self._raised)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test has begun."""
        self.say("started", id=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a phase of a test ended."""
        message = _last_line(report) if report.failed else ""
        self.say("ended", id=report.nodeid, when=report.when, outcome=report.outcome, message=message)


def main(told: Told) -> int:
    """Run pytest as told; return its exit code. What is compiled is kept only if that is asked for."""
    sys.dont_write_bytecode = not told.get("compiled")
    if told.get("rewritten"):
        rewriting.keep(Path(told["rewritten"]), copy=told["root"])
    with Path(told["events"]).open("a", encoding="utf-8") as events:
        recorder = Recorder(told, events)
        neutral = [*NEUTRAL, f"cache_dir={told['cache']}", "-W", UNTOLD]
        code = int(pytest.main([*told["arguments"], *neutral], plugins=[recorder]))
        recorder.say("exit", exit_code=code)
    sys.stdout.flush()
    return code


def _last_line(report: pytest.CollectReport | pytest.TestReport) -> str:
    return report.longreprtext.strip().rpartition("\n")[2].strip()[:300]


def warm_up(packages: Iterable[str], modules: Iterable[str]) -> bool:
    """Import what every session needs and the faults do not touch; return whether forking is safe after it."""
    if not hasattr(os, "fork") or sys.platform == "darwin":
        return False
    own = {name.split(".")[0] for name in modules}
    left = own | {"conftest", "coverage"}  # which the test run needs alone
    before = list(sys.path)
    gc.disable()  # what is imported stays
    for name in ("faulthandler", "pdb", "readline", "tomllib", *packages):  # of these pytest loads four as it starts
        if name.split(".")[0] not in left and not name.startswith(("__editable__", "test")):
            with contextlib.suppress(Exception):
                importlib.import_module(name)
    sys.path[:] = before
    plugins = [each for each in distributions() if "pytest11" in {one.group for one in each.entry_points}]
    metadata.distributions = lambda **_: iter(plugins)  # pytest looks for nothing else
    gc.freeze()  # no fork needs to look at what was there before it
    gc.enable()
    return not own & set(sys.modules) and threading.active_count() == 1


def run(told: Told, *, forked: bool, log: Path, limit_s: float, limit_bytes: int) -> Told:
    """Run a session to its end or its limits; return its events and how its process ended.

    Its main thread may compute for `busy_s` without an event: else a loop does not end, however busy the machine is.
    """
    events, busy_s = Path(told["events"]), float(told.get("busy_s", "inf"))
    events.write_bytes(b"")
    begun, delay, why, size, since, busy = time.monotonic(), 0.002, "", 0, 0.0, 0.0
    pid = (_fork if forked else _spawn)(told, log)
    while not (ended := os.waitpid(pid, os.WNOHANG))[0] and not why:
        if size != (size := events.stat().st_size):
            since = _computed_s(pid)
        busy = max(busy, _computed_s(pid) - since if size else 0)
        late = busy > busy_s or time.monotonic() > begun + limit_s
        why = "timeout" if late else "memory" if _resident(pid) > limit_bytes else ""
        time.sleep(delay)
        delay = min(delay * 1.05, 0.02)  # most sessions are short, and there are many
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, signal.SIGKILL)
    code = os.waitstatus_to_exitcode((ended if ended[0] else os.waitpid(pid, 0))[1])
    return {"events": lines_in(events), "why": why, "code": code, "busy": busy, "seconds": time.monotonic() - begun}


def _fork(told: Told, log: Path) -> int:
    """Be the session in a fork, which never returns; return its id."""
    sys.stdout.flush()
    sys.stderr.flush()
    if pid := os.fork():
        return pid
    code = 70
    try:
        os.setsid()
        os.dup2(os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), 1)
        os.dup2(1, 2)
        sys.argv = ["pytest"]
        code = main(told)
        sys.stderr.flush()
    except BaseException:  # noqa: BLE001  # whatever it is, this process must not go on as its parent
        traceback.print_exc()
    finally:
        os._exit(code)


def _spawn(told: Told, log: Path) -> int:
    asked = Path(told["events"]).with_suffix(".told.json")
    asked.write_text(json.dumps(told), encoding="utf-8")
    with log.open("wb") as written:
        argv = [sys.executable, "-m", f"{__package__}.session", str(asked)]
        child = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=written, stderr=written, start_new_session=True)
    child.returncode = 0  # its end is waited for by its number
    return child.pid


def _resident(pid: int) -> int:
    with contextlib.suppress(OSError, ValueError, IndexError):
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * 4096  # bytes of a page
    return 0


def _computed_s(pid: int) -> float:
    """Return how long the main thread of a process has computed, where the system tells."""
    try:
        told = Path(f"/proc/{pid}/task/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
        return sum(map(int, told.split()[11:13])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError):
        return 0.0


if __name__ == "__main__":
    sys.exit(main(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
