"""A pytest plugin that runs inside the tested project's process and tells in a journal what happens there.

Outcomes are told twice: by the exception, noted inside of all that a conftest could put around it, and by the report.
"""

import faulthandler
import os
import signal
import sys
import traceback
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, Any
from warnings import WarningMessage

import pytest

from ..asking import NETWORK, question_at
from . import rewriting
from .inside import Witness, judged, running, shuffle, watched_function, watched_test

witness = Witness()
_in_worker = "PYTEST_XDIST_WORKER" in os.environ


def pytest_addoption() -> None:
    """Attach before any conftest file is read."""
    if path := os.environ.pop("GATES_WITNESS", ""):
        witness.attach(question_at(path))
    sys.addaudithook(_hear)
    if folder := witness.asked.get("rewritten"):
        rewriting.keep(Path(folder))


@pytest.hookimpl(trylast=True)
def pytest_configure(config: pytest.Config) -> None:
    """Tell of the start; after pytest's own plugin, take the stack of a process that dies."""
    config.addinivalue_line("markers", "criterion(id): the acceptance criterion that this test verifies")
    if hasattr(config, "workerinput"):
        witness.attach(config.workerinput.pop("gates", {}))
    _keep_stacks()
    witness.tell(
        "start",
        pytest=pytest.__version__,
        python=".".join(map(str, sys.version_info[:3])),
        asserts=not sys.flags.optimize,
        worker=os.environ.get("PYTEST_XDIST_WORKER", ""),
        functions=list(config.getini("python_functions")),
        classes=list(config.getini("python_classes")),
        files=list(config.getini("python_files")),
    )
    _listen_to_reads(f"{config.rootpath}{os.sep}")


def _keep_stacks() -> None:
    """Have the stacks of this process written down where it dies, or is ended at the time limit."""
    if path := witness.asked.get("stacks"):
        if not _stacks:
            _stacks.append(open(path, "ab", buffering=0))  # noqa: PTH123, SIM115  # as long as the process lives
        faulthandler.enable(file=_stacks[0], all_threads=True)
        faulthandler.register(signal.SIGTERM, file=_stacks[0], all_threads=True, chain=True)


def _hear(event: str, args: tuple[object, ...]) -> None:
    """Keep that a network is asked, and not a socket of a path."""
    if event in NETWORK and (event.startswith("socket.get") or any(isinstance(each, tuple) for each in args)):
        _online.add(event)


def _listen_to_reads(root: str) -> None:
    """Keep which files of the project are opened to be read, those of Python aside."""

    def heard(event: str, args: tuple[object, ...]) -> None:
        if event != "open" or len(args) != 3 or not isinstance(args[0], str) or len(_read) >= MOST_READ:
            return
        path, mode, flags = str(args[0]), args[1], args[2]
        writes = set(mode) & set("wax") if isinstance(mode, str) else isinstance(flags, int) and flags & os.O_ACCMODE
        if not writes and not path.endswith((".py", ".pyc", ".so")):
            full = os.path.abspath(path)  # noqa: PTH100  # a hook that is called often, and links stay as they are
            if full.startswith(root):
                _read.add(full)

    sys.addaudithook(heard)


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:  # noqa: ANN401  # a worker of pytest-xdist
    """Let a worker of pytest-xdist tell in the same journal."""
    node.workerinput["gates"] = witness.asked


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:  # noqa: ANN401  # the same
    """Tell of the end of a worker."""
    witness.tell("worker_down", worker=node.workerinput.get("workerid"), error=str(error or "")[:8000])


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Tell which file is read: its import may end the process."""
    if isinstance(collector, pytest.File):
        witness.tell("collecting", id=collector.nodeid)
    result = yield
    witness.note("collected", id=collector.nodeid)
    return result


MOST_READ = 10_000
_stacks: list[IO[bytes]] = []
_read, _online, _collected, _deselected = set[str](), set[str](), set[str](), set[str]()
_whole: list[pytest.Item] = []  # with those that are taken


def pytest_itemcollected(item: pytest.Item) -> None:
    """Keep what was collected, to find what is dropped without a word."""
    _collected.add(item.nodeid)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Take another order where one is asked for; leave out the tests that an earlier run answers for."""
    if seed := witness.asked.get("seed"):
        shuffle(items, seed)
    if taken := witness.asked.get("taken"):
        _whole[:], aside = items, frozenset(taken)
        items[:] = [item for item in items if item.nodeid not in aside]


def pytest_collection_finish(session: pytest.Session) -> None:
    """Tell the plan."""
    witness.note("asked", args=[str(arg) for arg in session.config.args])
    for item in _whole or session.items:
        _tell_of("planned", item, plain=watched_function(item, {}) is not None)
    lost = _collected - {item.nodeid for item in _whole or session.items} - _deselected
    witness.note("lost", ids=sorted(lost)[:20], count=len(lost))


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    """Tell what is left out."""
    around = (frame for frame, _ in traceback.walk_stack(None))  # it may be pytest's own mark expression (`-m`)
    names = {(frame.f_code.co_name, frame.f_globals.get("__name__")) for frame in around}
    mark = ("deselect_by_mark", "_pytest.mark") in names
    for item in items:
        _deselected.add(item.nodeid)
        _tell_of("deselected", item, mark=mark)


def _tell_of(event: str, item: pytest.Item, **facts: object) -> None:
    path, line, _ = item.location
    chain = [node.name for node in item.listchain() if isinstance(node, pytest.Class)]
    name = getattr(item, "originalname", "") or ""
    written = {"file": str(item.path), "path": path, "line": (line or 0) + 1, "chain": chain, "name": name}
    witness.note(event, id=item.nodeid, criteria=criteria_of(item), **written, **facts)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    """Tell what could not be read."""
    if report.failed:
        witness.tell("collect_failed", id=report.nodeid, **failure_of(report))
    elif report.skipped:
        where = report.longrepr
        line = where[1] if isinstance(where, tuple) and len(where) == 3 else None
        witness.note("collect_skipped", id=report.nodeid, message=reason_of(report), line=line)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Have the canaries judged before the tests and after them."""
    options = session.config.option
    runs_here = not options.collectonly and getattr(options, "dist", "no") == "no"
    if runs_here:
        witness.tell("canaries", when="before", said=judged(session, witness.asked))
    result = yield
    if runs_here:
        witness.tell("canaries", when="after", said=judged(session, witness.asked))
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Tell which test is begun, and that it is over."""
    witness.tell("began", id=item.nodeid)
    result = yield
    witness.note("over", id=item.nodeid)  # told with the next test's begin
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Watch the test from the inside of all that is wrapped around it."""
    if running:
        return (yield)
    told: dict[str, object] = {}
    witness.in_test, witness.names = True, getattr(getattr(item, "obj", None), "__globals__", {})
    with watched_test(item, told):
        try:
            return (yield)
        finally:
            witness.in_test, witness.names = False, {}
            witness.note("ran", id=item.nodeid, **told)


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    """Note what a phase raised, before and after the report is made: unittest tells only then."""
    before = _raw(call)
    yield
    failed, error = max(before, _raw(call))
    if failed and not running:
        expected = error == "XFailed" or any(True for _ in item.iter_markers("xfail"))
        witness.note("raw", id=item.nodeid, when=call.when, error=error, expected=expected)


@pytest.hookimpl(tryfirst=True)
def pytest_markeval_namespace() -> dict[str, object]:
    """Let conditions of marks find the names around a test, whose function is replaced while it runs."""
    return witness.names


def _raw(call: pytest.CallInfo[None]) -> tuple[bool, str]:
    """Return whether a phase raised more than a skip, and what."""
    error = call.excinfo
    if error is None or error.errisinstance(pytest.skip.Exception) or error.typename == "SkipTest":
        return False, ""
    return True, error.typename


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Note what a report says; of a worker's tests its controller hears too."""
    if _in_worker:
        return
    sub = type(report).__name__ == "SubtestReport" or getattr(report, "context", None) is not None
    facts: dict[str, object] = {"reason": reason_of(report)} if report.outcome == "skipped" else {}
    if report.outcome in {"failed", "rerun"}:
        facts = failure_of(report)
    facts |= {"xfail": hasattr(report, "wasxfail"), "subtest": sub, "duration": report.duration}
    witness.note("report", id=report.nodeid, when=report.when, outcome=report.outcome, **facts)


def pytest_warning_recorded(warning_message: WarningMessage, when: str, nodeid: str) -> None:
    """Note a warning and its place."""
    category, message = warning_message.category.__name__, str(warning_message.message)[:500]
    place = {"path": str(warning_message.filename), "line": warning_message.lineno}
    witness.note("warning", id=nodeid, when=when, category=category, message=message, **place)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """Tell the end, and which installed modules were imported up to here: the summary may load more."""
    places = tuple(path for path in sys.path if path.endswith(("site-packages", "dist-packages")))
    files = [(name, getattr(module, "__file__", None)) for name, module in list(sys.modules.items())]
    witness.note("imported", names=[name for name, file in files if isinstance(file, str) and file.startswith(places)])
    witness.note("read", paths=sorted(_read), online=bool(_online))
    witness.tell("end", exit_code=int(exitstatus), worker=hasattr(session.config, "workerinput"))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    """Take the stack again, which pytest's own plugin has given up."""
    _keep_stacks()


def criteria_of(item: pytest.Item) -> list[str]:
    """Return what the markers `criterion` of a test name, by place or as `id`; a `reason` names none."""
    given = [(*mark.args, *filter(None, [mark.kwargs.get("id")])) for mark in item.iter_markers("criterion")]
    return sorted({str(name) for names in given for name in names or [""]})


def reason_of(report: pytest.CollectReport | pytest.TestReport) -> str:
    """Return why something was skipped."""
    where = report.longrepr
    if isinstance(where, tuple) and len(where) == 3:
        return str(where[2]).removeprefix("Skipped: ")[:500]
    own = getattr(report, "wasxfail", None)
    return str(where or "")[:500] if own is None else str(own)[:500] or "no reason given"


def failure_of(report: pytest.CollectReport | pytest.TestReport) -> dict[str, object]:
    """Return what a failure says, and the innermost line of its traceback, with an absolute path."""
    if (crash := getattr(report.longrepr, "reprcrash", None)) is not None:
        return {"message": str(crash.message)[:2000], "path": str(crash.path), "line": int(crash.lineno)}
    path, line, _ = report.location or (report.nodeid, 0, "")
    text = str(getattr(report.longrepr, "errorstring", report.longrepr))  # a fixture that there is not
    return {"message": text[-2000:], "path": path, "line": (line or 0) + 1}
