"""One run of pytest in this process, told as events: what was collected, how each test ended, what was imported."""

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TextIO

import pytest

from .values import Listener

KEPT = 300  # characters of a message


class Recorder:
    """Chooses the tests that are asked for, in the order asked for, and writes down what becomes of them."""

    def __init__(self, told: dict[str, Any], events: TextIO) -> None:
        self._rank = {name: i for i, name in enumerate(told["tests"])}
        self._run = told.get("run")
        self._listener = Listener(told.get("listen", {}), lambda key, kind: self.say("kind", key=key, kind=kind))
        self._events = events

    def say(self, event: str, **facts: object) -> None:
        """Write one event, at once: the process may not live to write more."""
        line = json.dumps({"event": event, **facts})
        self._events.write(line.encode("ascii", "backslashreplace").decode() + "\n")
        self._events.flush()

    @pytest.hookimpl(hookwrapper=True)
    def pytest_load_initial_conftests(self, early_config: pytest.Config, args: list[str]) -> Iterator[None]:
        """Start no other processes and measure no coverage, where the project has switched such a plugin on."""
        if early_config.pluginmanager.hasplugin("xdist"):
            args.append("-n0")
        if early_config.pluginmanager.hasplugin("pytest_cov"):
            args.append("--no-cov")
            early_config.known_args_namespace.no_cov = True  # it has been read by now
        yield

    def pytest_configure(self, config: pytest.Config) -> None:
        """Make the marker known that binds tests to criteria: a project may refuse what it does not know."""
        if self._run:
            self._listener.listen()  # decorators are called while their users are imported
        config.addinivalue_line("markers", "criterion(id): the acceptance criterion that this test verifies")

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Leave the tests that were asked for."""
        chosen = [item for item in items if item.nodeid in self._rank]
        left = [item for item in items if item.nodeid not in self._rank]
        if left:
            config.hook.pytest_deselected(items=left)
        items[:] = sorted(chosen, key=lambda item: self._rank[item.nodeid])

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Name each test; all of them run, unless some are named."""
        for item in session.items:
            self.say("collected", id=item.nodeid)
        if self._run is not None:
            session.items[:] = [item for item in session.items if item.nodeid in self._run]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Note what could not be collected."""
        if report.failed:
            self.say("uncollected", id=report.nodeid, message=_last_line(report.longreprtext))

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Note that a test has begun."""
        self.say("started", id=nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note how a phase of a test ended."""
        message = _last_line(report.longreprtext) if report.failed else ""
        self.say("ended", id=report.nodeid, when=report.when, outcome=report.outcome, message=message)


def run(told: dict[str, Any]) -> int:
    """Run pytest as told; return its exit code. What is compiled is kept only if that is asked for."""
    sys.dont_write_bytecode = not told.get("compiled")
    with Path(told["events"]).open("a", encoding="utf-8") as events:
        recorder = Recorder(told, events)
        code = int(pytest.main([*told["arguments"], *_neutral(told["cache"])], plugins=[recorder]))
        recorder.say("exit", exit_code=code, packages=_packages())
    sys.stdout.flush()
    return code


def _neutral(cache: str) -> list[str]:
    """Return options that take no part in what is asked: no cache of the project's, no random order."""
    return ["-q", "--color=no", "--tb=line", "-p", "no:randomly", "-o", f"cache_dir={cache}"]


def _packages() -> list[str]:
    """Return the modules that were imported from where libraries are installed, in the order of their import."""
    places = tuple(path for path in sys.path if path.endswith(("site-packages", "dist-packages")))
    found = [(name, getattr(module, "__file__", None) or "") for name, module in list(sys.modules.items())]
    return [name for name, file in found if places and file.startswith(places)]


def _last_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:KEPT] if lines else ""


if __name__ == "__main__":
    sys.exit(run(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))))
