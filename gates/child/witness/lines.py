"""A pytest plugin that notes which test runs which lines of the implementation, by the library `coverage`.

It changes nothing about the run: where it cannot trace, it stands down and says why. No test can claim lines that run
in a wider fixture, at import or between tests. Other processes are not followed; that a test started some is noted.
What ran is written down here, context by context: the database of `coverage` takes a fifth of the time of quick tests.
"""

import functools
import gc
import json
import linecache
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import islice, takewhile
from json import dumps
from pathlib import Path
from traceback import walk_stack
from types import CodeType, FunctionType
from typing import Any

import pytest

from ..asking import HERE, NETWORK, Places, append

gettrace, settrace = sys.gettrace, sys.settrace  # bound here: the tested code may patch modules
STARTS = {"subprocess.Popen", "pty.spawn", *(f"os.{n}" for n in ("system", "exec", "fork", "forkpty", "posix_spawn"))}
# programs that never run Python of the project
OTHERS = {"git", "uname", "hostname", "ldconfig", "gcc", "cc", "nvidia-smi", "lscpu", "ps", "file", "which"}
SPAWNS = ("multiprocessing.popen_spawn_posix", "multiprocessing.popen_forkserver")  # these raise no audit event


WRAPPED = ("runtest_setup", "runtest_call", "runtest_teardown")
TOLD = ("protocol", "logstart", "makereport", "logreport", "logfinish")
TELLING = (*WRAPPED, *(f"runtest_{name}" for name in TOLD), "report_teststatus", "json_runtest_stage")
TELLERS = {"_pytest", "pytest_jsonreport", "_hypothesis_pytestplugin", __name__.partition(".")[0]}
CALLERS = {*TELLERS, "__main__", "pluggy", "pytest", "runpy"}
IN_GIT, GETS = f"{os.sep}.git{os.sep}", "object.__getattr__"
HEARD = {*STARTS, *NETWORK, "open", "exec", GETS}
# who reads code for others, who reads it to run it or to show it, or its numbers to try them, and who counts arguments
OPENERS = ("/pathlib.py", "/tokenize.py", "/linecache.py", "/inspect.py", "/dis.py")
RUNNERS = (f"{os.sep}_pytest{os.sep}", f"{os.sep}hypothesis{os.sep}", "traceback.py", "warnings.py", HERE)
COUNTERS, DEEPEST = {"_signature_from_function", "_signature_is_functionlike"}, 16  # frames above who reads for others


class Lines:
    """The lines noted so far, and what could not be."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = json.loads(os.environ.get("GATES_COVERAGE", '{"folder": ""}'))
        worker = os.environ.get("PYTEST_XDIST_WORKER", "")
        self.suffix = f".{worker}" if worker else ""
        self.folder: Path | None = Path(self.asked["folder"])
        self.context = self.data = ""
        self.coverage: Any = None
        self.tracer: object = None
        self.alone: bool | None = None
        self.handlers: list[Any] = []
        self.paused = False
        self.outside, self.importing, self.reading = set[str](), set[str](), set[tuple[str, str]]()
        self.told: dict[str, Any] = {"reason": "", "ended": False, "unseen": {}}
        os.register_at_fork(after_in_child=self._leave)

    def start(self, config: pytest.Config) -> None:
        """Start tracing, unless somebody else does."""
        if not (why := _why_not(config)):
            try:
                self._start()
            except ImportError as error:
                why = f"the library `coverage` cannot be imported by the project's interpreter ({type(error).__name__})"
            except Exception as error:  # noqa: BLE001  # the run is not ours to break
                why = f"coverage could not be started: {error!r:.200}"
        self.note(reason=why)

    def _start(self) -> None:
        import coverage

        paths, self.data = self.asked["paths"], f"{self.folder}{os.sep}data{self.suffix}"
        append(self.data, b"", os.O_CREAT)
        with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
            warnings.simplefilter("ignore")
            measuring: Any = coverage.Coverage(data_file=None, config_file=False, include=paths, messages=False)
            measuring.get_data().add_lines = self._write
            patch.setenv("COVERAGE_CORE", "ctrace")  # the core of Python 3.14 does not tell tests apart
            patch.setattr("coverage.collector.short_stack", str, raising=False)  # which reads the sources of all pytest
            measuring.start()
        self.coverage, self.tracer = measuring, gettrace()
        sys.addaudithook(self._hear)

    def switch(self, context: str) -> str:
        """Give what runs from here on to a context, and trace it; return the one before."""
        self.resume()
        before = self.context
        while _shown:  # no later test finds their lines there
            linecache.cache.pop(_shown.pop(), None)
        if context != before and self.coverage is not None:
            try:
                self._mend(before)
                if self.coverage is not None:
                    self.coverage.switch_context(_written(context))
            except Exception as error:  # noqa: BLE001  # the run is not ours to break
                self._give_up(f"coverage broke in {before or 'the collection'}: {error!r:.200}")
        self.context = context
        return before

    def _write(self, ran: Mapping[str, set[int]]) -> None:
        """Write down the lines that ran in the present context, as coverage tells them where it is left."""
        if lines := {path: sorted(numbers) for path, numbers in ran.items() if numbers}:
            append(self.data, dumps([_written(self.context), lines]).encode() + b"\n")

    def look_around(self, config: pytest.Config) -> None:
        """Look whether none but pytest and we run tests, stand around their phases or hear of their reports."""
        if self.alone is None:
            hooks = {name: getattr(config.hook, f"pytest_{name}", None) for name in TELLING}
            impls = [(name in WRAPPED, each) for name, hook in hooks.items() if hook for each in hook.get_hookimpls()]
            around = [each for inside, each in impls if not inside or each.wrapper or each.hookwrapper]
            heard = {str(each.function.__module__).partition(".")[0] for each in around}
            called = {str(frame.f_globals.get("__name__")).partition(".")[0] for frame, _ in walk_stack(None)}
            self.alone = heard <= TELLERS and called <= CALLERS
            logging = config.pluginmanager.get_plugin("logging-plugin")
            self.handlers = [logging.caplog_handler, logging.report_handler] if logging else []

    def pause(self, item: pytest.Item) -> None:
        """Trace nothing where pytest alone runs; late marks, properties, dropped records and streams may run more."""
        kinds = {type(each).__module__.partition(".")[0] for each in (sys.stdout, sys.stderr)}
        quiet = "xfail" not in item.keywords and not item.user_properties and kinds <= {"_io", "_pytest"}
        quiet = quiet and not any(handler.records for handler in self.handlers)
        self.paused = quiet and bool(self.alone) and self.coverage is not None and gettrace() is self.tracer
        if self.paused:
            settrace(None)

    def resume(self) -> bool:
        """Trace again; return whether that was paused."""
        paused, self.paused = self.paused, False
        if paused:
            settrace(self.tracer)  # type: ignore[arg-type]  # what sys.gettrace returned
            _written("")  # at any call the tracer takes over again, and then sees these hooks return
        return paused

    def _mend(self, before: str) -> None:
        """Notice where a test took the tracer away; trace again, unless another tracer has taken its place."""
        if (now := gettrace()) is None:
            self.told["unseen"][before] = "took the tracer away"
            settrace(self.tracer)  # type: ignore[arg-type]  # what sys.gettrace returned
        elif now is not self.tracer:
            self._give_up(f"another tracer took over in {before or 'the collection'}")

    def _give_up(self, reason: str) -> None:
        self.coverage = None
        self.note(reason=reason)

    def end(self) -> None:
        """Write down what is left."""
        self.switch("")
        if self.coverage is not None:
            try:
                self.coverage.switch_context("")
                self.coverage.stop()
                self.told["ended"] = True
            except Exception as error:  # noqa: BLE001  # the run is not ours to break
                self.told["reason"] = f"coverage could not be stopped: {error!r:.200}"
            self.coverage = None
        root, own = self.asked["root"], self.asked["modules"]
        self.note(modules=_files_under(root), foreign=_foreign(own), cached=_cached(root))

    def note(self, **facts: object) -> None:
        """Write down how far this has come; where that cannot be, nothing is known of this run, as the reader says."""
        self.told |= facts
        sets = {name: sorted(getattr(self, name)) for name in ("outside", "importing", "reading")}
        heard = {"unheard": [*_unheard()], **sets}
        if self.folder:
            with suppress(OSError):
                (self.folder / f"state{self.suffix}.json").write_text(json.dumps(self.told | heard), encoding="utf-8")

    def _hear(self, event: str, args: tuple[object, ...]) -> None:
        if event in HEARD and self.coverage is not None and (event != GETS or args[1:] == ("__code__",)):
            try:
                self._heed(event, args, _written(self.context))
            except Exception:  # noqa: BLE001  # the tested code may have patched what this uses: then it is in doubt
                self.outside.add(self.context)

    def _heed(self, event: str, args: tuple[object, ...], context: str) -> None:
        first = args[0] if args else None
        if event == "exec":  # of a module, its code
            if context and isinstance(first, CodeType) and first.co_name == "<module>":
                self.importing |= {context} if Places(self.asked["root"]).shown(first.co_filename) else set()
        elif event in STARTS:
            program = str(first)[:200] if args and event != "os.fork" else event
            name = Path(program.split(" ")[0]).name
            if name not in OTHERS:
                what = f"started another process ({_written(program)}), which was not followed"
                self.told["unseen"].setdefault(context, what)
            self.outside |= {context} if name == "git" else set()
        elif event not in {"open", GETS} or (isinstance(first, str) and IN_GIT in os.sep + first):
            self.outside.add(context)
        elif (read := _read(Places(self.asked["root"]), first)) and read[0]:
            self.reading.add((f"{self.asked['root']}/{read[0]}", "" if read[1] else context))

    def _leave(self) -> None:
        """In a forked child, trace and tell nothing: what it runs would be lost, or written twice."""
        if self.coverage is not None and gettrace() is self.tracer:
            settrace(None)
        self.coverage = self.folder = None
        self.paused = False


def _read(places: Places, what: object) -> tuple[str | None, bool] | None:
    """Return the file of the project whose code is read, not to be run, and whether that is kept for other readers."""
    path = os.fsdecode(what) if isinstance(what, str | bytes | os.PathLike) else ""
    if not isinstance(what, FunctionType) and not path.endswith(".py"):
        return None
    codes = [frame.f_code for frame, _ in islice(walk_stack(sys._getframe(3)), DEEPEST)]  # noqa: SLF001
    past = [*takewhile(lambda c: c.co_filename.endswith(OPENERS) and not places.shown(c.co_filename), codes)]
    by, above, *_ = codes[len(past) :]
    is_own, lines = places.shown(by.co_filename), any(code.co_filename.endswith("linecache.py") for code in past)
    if isinstance(what, FunctionType):  # libraries count its arguments
        counts = not is_own or COUNTERS & {code.co_name for code in past}
        return None if counts else (places.shown(what.__code__.co_filename), False)
    imports = by.co_filename.startswith("<frozen importlib") and above.co_name in {"get_code", "exec_module"}
    passed = imports or (not is_own and any(each in by.co_filename for each in RUNNERS))
    if passed and lines:
        _shown.add(path)
    return None if passed else (places.shown(os.path.realpath(path)), lines)


def _written(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()


def _cached(root: str) -> list[tuple[str, int]]:
    """Return the lines of the project's functions whose results are kept at the end (`functools.cache`)."""
    kept = [one for one in gc.get_objects() if type(one) is functools._lru_cache_wrapper]  # noqa: SLF001  # its type
    codes = [getattr(getattr(one, "__wrapped__", None), "__code__", None) for one in kept if one.cache_info().currsize]
    own = [code for code in codes if isinstance(code, CodeType) and code.co_filename.startswith(root)]
    return sorted({(code.co_filename, line) for code in own for *_, line in code.co_lines() if line})


def _why_not(config: pytest.Config) -> str:
    monitoring = getattr(sys, "monitoring", None)
    if getattr(config.known_args_namespace, "cov_source", None):
        return "the project measures coverage itself (pytest-cov)"
    if gettrace() is not None:
        return f"the project traces itself ({type(gettrace()).__module__})"
    if monitoring is not None and any(monitoring.get_tool(i) for i in (monitoring.DEBUGGER_ID, monitoring.COVERAGE_ID)):
        return "the project traces itself (sys.monitoring)"
    return ""


def _files_under(root: str) -> list[str]:
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    inside = os.path.join(root, "")  # noqa: PTH118  # modules may have patched more than this
    return sorted({f for f in files if isinstance(f, str) and f.startswith(inside)})


def _foreign(own: dict[str, str]) -> list[str]:
    """Return the files of modules of the implementation that were imported from elsewhere."""
    files = {name: getattr(sys.modules.get(name), "__file__", None) or own[name] for name in own}
    alike = {name: file for name, file in files.items() if Path(file).name == Path(own[name]).name}
    return sorted({file for name, file in alike.items() if os.path.realpath(file) != own[name]})


def _unheard() -> Iterator[str]:
    """Yield what ran code that no tracer sees."""
    if any(name in sys.modules for name in SPAWNS):
        yield "tests used multiprocessing, whose processes were not followed"
    if getattr(sys.modules.get("torch._dynamo.utils"), "compilation_time_metrics", None):
        yield "torch.compile ran code whose lines were not seen"


_lines, _shown = Lines(), set[str]()  # which files were read to be shown


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Begin before any conftest file is read."""
    _lines.start(early_config)
    early_config.pluginmanager.register(_Inside())


def pytest_plugin_registered() -> None:
    """Look around again, and trace all until then."""
    _lines.resume()
    _lines.alone = None


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Give what runs to the test."""
    before = _lines.switch(f"test:{item.nodeid}")
    _lines.look_around(item.config)
    own = type(item).__module__.startswith("_pytest.")
    if own and not before and "filterwarnings" not in item.keywords:  # whose classes are imported around the phases
        _lines.pause(item)
    try:
        return (yield)
    finally:
        _lines.switch(before)


def _traced(item: pytest.Item) -> Iterator[None]:
    paused = _lines.resume()
    try:
        return (yield)
    finally:
        if paused:
            _lines.pause(item)


class _Inside:
    """Traces what pytest's own wrappers stand around: fixtures, the test, and whatever a project has in these hooks."""

    pytest_runtest_setup = pytest_runtest_call = pytest_runtest_teardown = staticmethod(
        pytest.hookimpl(wrapper=True, trylast=True)(_traced)
    )


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> None:
    """Trace all that follows where something was raised, whose text may run the project's code."""
    if call.excinfo or getattr(item, "_excinfo", None):
        _lines.resume()


@pytest.hookimpl(trylast=True)
def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Trace from the last report on: pytest drops the values of fixtures, and tells of warnings."""
    if report.when == "teardown":
        _lines.resume()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: "pytest.FixtureDef[Any]") -> Iterator[None]:
    """Give what runs to the fixture, where it is wider than a test."""
    before = _lines.context
    try:
        if fixturedef.scope != "function":
            _lines.switch(f"fixture:{fixturedef.argname}")
        return (yield)
    finally:
        _lines.switch(before)


def pytest_unconfigure() -> None:
    """Write down what is left."""
    _lines.end()
