"""A pytest plugin that notes which test runs which lines of the implementation, by the library `coverage`.

It stands alone, as the witness does, and changes nothing about the run: where `coverage` is not there, or the project
traces itself, it stands down and says why. Lines that run in a fixture wider than a function, at import or between
tests are noted as such, for no test can claim them. Other processes are not followed, for that would change them; that
a test started some is noted.
"""

import json
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.assertion import rewrite
from _pytest.doctest import DoctestItem
from _pytest.unittest import TestCaseFunction

HERE = Path(__file__).parent
STARTS = {"subprocess.Popen", "pty.spawn", *(f"os.{n}" for n in ("system", "exec", "fork", "forkpty", "posix_spawn"))}
# programs that never run Python of the project
OTHERS = {"git", "uname", "hostname", "ldconfig", "gcc", "cc", "nvidia-smi", "lscpu", "ps", "file", "which"}
SPAWNS = ("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver")  # these raise no audit event


class _Lines:
    """The lines noted so far, and what could not be."""

    def __init__(self) -> None:
        asked = json.loads(os.environ.get("GATES_COVERAGE", "null"))
        worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        self.suffix = f".{worker}" if worker else ""
        self.folder = Path(asked["folder"]) if asked else None
        self.paths: list[str] = asked["paths"] if asked else []
        self.pid = os.getpid()
        self.context = ""
        self.coverage: Any = None
        self.tracer: object = None
        self.reason = ""
        self.version = ""
        self.ended = False
        self.windows = False
        self.children: dict[str, str] = {}
        self.lost: list[str] = []

    def start(self, config: pytest.Config) -> None:
        """Start tracing, unless somebody else does."""
        if self.folder is None or self.coverage is not None or self.reason:
            return
        self.reason = _why_not(config)
        if not self.reason:
            try:
                self._start()
            except Exception as error:  # noqa: BLE001  # the run is not ours to break
                self.coverage, self.reason = None, f"coverage could not be started: {error!r:.200}"
        self.note()

    def _start(self) -> None:
        import coverage

        assert self.folder is not None
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            measuring = coverage.Coverage(
                data_file=str(self.folder / f"data{self.suffix}"), config_file=False, include=self.paths, messages=False
            )
            slugs = ["no-data-collected", "module-not-measured", "module-not-imported", "already-imported",
                     "trace-changed", "no-ctracer", "couldnt-parse"]  # fmt: skip
            measuring.set_option("run:disable_warnings", slugs)
            before = os.environ.get("COVERAGE_CORE")
            os.environ["COVERAGE_CORE"] = "ctrace"  # the core of Python 3.14 does not tell tests apart
            try:
                measuring.start()
            finally:
                os.environ.pop("COVERAGE_CORE")
                if before is not None:
                    os.environ["COVERAGE_CORE"] = before
        self.coverage, self.version, self.tracer = measuring, coverage.__version__, sys.gettrace()
        _leave_rewriting_alone()
        sys.addaudithook(self._hear)
        os.register_at_fork(after_in_child=self._leave)

    def switch(self, context: str) -> str:
        """Give what runs from here on to a context; return the one before."""
        before, self.context = self.context, context
        if context != before and self.coverage is not None and os.getpid() == self.pid:
            try:
                self._mend(before)
                if self.coverage is not None:
                    self.coverage.switch_context(context.encode("utf-8", "backslashreplace").decode())
            except Exception as error:  # noqa: BLE001  # the run is not ours to break
                self._give_up(f"coverage broke in {before or 'the collection'}: {error!r:.200}")
        return before

    def _mend(self, before: str) -> None:
        """Notice where a test took the tracer away; trace again, unless another tracer has taken its place."""
        now = sys.gettrace()
        if now is self.tracer or (now is None and self.windows):
            return
        if now is None:
            self.lost.append(before)
            sys.settrace(self.tracer)  # type: ignore[arg-type]  # what sys.gettrace returned
        else:
            self._give_up(f"another tracer took over in {before or 'the collection'}")

    def opened(self) -> object:
        """Trace from here on, where only windows are traced; return what `closed` needs, or nothing to close."""
        if not self.windows or self.coverage is None or sys.gettrace() is not None or os.getpid() != self.pid:
            return None
        sys.settrace(self.tracer)  # type: ignore[arg-type]  # what sys.gettrace returned
        return self.tracer

    def closed(self, opened: object) -> None:
        """Trace no more, and notice where the tracer was taken away or replaced meanwhile."""
        if opened is None or self.coverage is None or os.getpid() != self.pid:
            return
        now = sys.gettrace()
        if now is None:
            self.lost.append(self.context)
        elif now is not opened:
            self._give_up(f"another tracer took over in {self.context or 'the collection'}")
            return
        sys.settrace(None)

    def _give_up(self, reason: str) -> None:
        self.coverage, self.reason = None, reason
        self.note()

    def end(self) -> None:
        """Write down what is left."""
        if self.coverage is not None and os.getpid() == self.pid:
            self.switch("")
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    self.coverage.stop()
                    self.coverage.save()
                self.ended = True
            except Exception as error:  # noqa: BLE001  # the run is not ours to break
                self.reason = f"coverage could not be saved: {error!r:.200}"
            self.coverage = None
        self.note()

    def note(self) -> None:
        """Write down how far this has come."""
        if self.folder is None or os.getpid() != self.pid:
            return
        facts = {"reason": self.reason, "version": self.version, "ended": self.ended, "children": self.children,
                 "lost": self.lost, "unheard": _unheard()}  # fmt: skip
        try:
            (self.folder / f"state{self.suffix}.json").write_text(json.dumps(facts), encoding="utf-8")
        except OSError:
            self.folder = None  # then nothing is known of this run, which the reader says

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        if event in STARTS and self.coverage is not None and os.getpid() == self.pid:
            program = str(args[0])[:200] if args and event != "os.fork" else event
            if Path(program.split(" ")[0]).name not in OTHERS:
                self.children.setdefault(self.context, program.encode("utf-8", "backslashreplace").decode())

    def _leave(self) -> None:
        """In a forked child, trace nothing: what it runs would be lost, or written twice."""
        if self.coverage is not None and sys.gettrace() is self.tracer:
            sys.settrace(None)
        self.coverage = None


def _leave_rewriting_alone() -> None:
    """Do not trace pytest while it rewrites assertions: nothing of the project runs there, and it takes long."""
    rewriting = getattr(rewrite, "_rewrite_test", None)
    if rewriting is None:
        return

    def untraced(*args: object, **more: object) -> object:
        tracer = sys.gettrace()
        sys.settrace(None)
        try:
            return rewriting(*args, **more)
        finally:
            sys.settrace(tracer)

    rewrite._rewrite_test = untraced  # noqa: SLF001  # there is no public way


def _why_not(config: pytest.Config) -> str:
    """Return why tracing must be left to somebody else, or nothing."""
    monitoring = getattr(sys, "monitoring", None)
    if getattr(config.known_args_namespace, "cov_source", None):
        return "the project measures coverage itself (pytest-cov)"
    if sys.gettrace() is not None:
        return f"the project traces itself ({type(sys.gettrace()).__module__})"
    if monitoring is not None and any(monitoring.get_tool(i) for i in (monitoring.DEBUGGER_ID, monitoring.COVERAGE_ID)):
        return "the project traces itself (sys.monitoring)"
    try:
        import coverage  # noqa: F401
    except Exception as error:  # noqa: BLE001  # whatever keeps it from loading, it is not there
        return f"the library `coverage` cannot be imported by the project's interpreter ({type(error).__name__})"
    return ""


def _unheard() -> list[str]:
    """Return what ran code that no tracer sees."""
    found = []
    if any(name in sys.modules for name in SPAWNS):
        found.append("tests used multiprocessing, whose processes were not followed")
    metrics = getattr(sys.modules.get("torch._dynamo.utils"), "compilation_time_metrics", None)
    if metrics:
        found.append("torch.compile ran code whose lines were not seen")
    return found


_lines = _Lines()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    _lines.start(early_config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[object]:
    """Between the tests, and inside of pytest itself, trace nothing: no code of the project runs there."""
    _lines.windows = _lines.coverage is not None and not _hooks_of_project(session.config)
    if _lines.windows and sys.gettrace() is _lines.tracer:
        sys.settrace(None)
    try:
        return (yield)
    finally:
        if _lines.windows:
            _lines.windows = False
            if _lines.coverage is not None and sys.gettrace() is None:
                sys.settrace(_lines.tracer)  # type: ignore[arg-type]  # what sys.gettrace returned


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[object]:
    before = _lines.switch(f"test:{item.nodeid}")
    opened = _lines.opened() if type(item) not in (pytest.Function, TestCaseFunction, DoctestItem) else None
    try:
        return (yield)
    finally:
        _lines.closed(opened)
        _lines.switch(before)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: "pytest.FixtureDef[Any]") -> Iterator[object]:
    opened = _lines.opened()
    before = _lines.context
    try:
        if fixturedef.scope != "function":
            _lines.switch(f"fixture:{fixturedef.argname}")
        return (yield)
    finally:
        _lines.switch(before)
        _lines.closed(opened)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[object]:
    opened = _lines.opened() if type(item) is not pytest.Function else None
    try:
        return (yield)
    finally:
        _lines.closed(opened)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pyfunc_call() -> Iterator[object]:
    opened = _lines.opened()
    try:
        return (yield)
    finally:
        _lines.closed(opened)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[object]:
    opened = _lines.opened() if _may_finish_something(item, nextitem) else None
    try:
        return (yield)
    finally:
        _lines.closed(opened)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish() -> Iterator[object]:
    _lines.switch("")
    return (yield)


def pytest_unconfigure() -> None:
    _lines.end()


def _hooks_of_project(config: pytest.Config) -> bool:
    """Return whether the project has hooks of its own around tests, in which its code may run."""
    manager = config.pluginmanager
    for name in dir(manager.hook):
        if name.startswith(("pytest_runtest_", "pytest_pyfunc", "pytest_fixture", "pytest_report_teststatus")):
            for implementation in getattr(manager.hook, name).get_hookimpls():
                file = Path(getattr(getattr(implementation.function, "__code__", None), "co_filename", ""))
                inside = file.is_relative_to(config.rootpath) and "site-packages" not in file.parts
                if inside and file.parent != HERE and HERE not in file.parents:
                    return True
    return False


def _may_finish_something(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Return whether fixtures of the project may end with a test: its own, or those of what it lies in."""
    if nextitem is None or nextitem.parent is not item.parent or not isinstance(item, pytest.Function):
        return True
    fixtures = item._fixtureinfo.name2fixturedefs.values()  # noqa: SLF001  # there is no public way
    return any(not each.func.__module__.startswith("_pytest.") for several in fixtures for each in several)
