"""A pytest plugin that runs inside the tested project's process and writes down what happens there.

It stands alone (the standard library and pytest), because the project's interpreter need not have this package. Each
line of the file named by GATES_WITNESS is one event; lines are appended by a single write, so that worker processes can
share the file. Outcomes are noted twice: as the exception says (before any conftest could rewrite a report) and as the
report says.
"""

import inspect
import json
import os
import sys
import time
from collections.abc import Iterator, Sequence
from warnings import WarningMessage

import pytest

_path = os.environ["GATES_WITNESS"]
_nonce = os.environ["GATES_WITNESS_NONCE"]
_in_worker = "PYTEST_XDIST_WORKER" in os.environ


# bound here, because the tested code may patch modules
_dumps, _send, _pid = json.dumps, os.write, os.getpid
_file = os.open(_path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def _write(event: str, **facts: object) -> None:
    line = _dumps({"event": event, "nonce": _nonce, "pid": _pid(), **facts}, default=str) + "\n"
    _send(_file, line.encode("utf-8", errors="backslashreplace"))


def _criteria(item: pytest.Item) -> list[str]:
    return sorted({str(arg) for mark in item.iter_markers("criterion") for arg in mark.args})


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "criterion(id): the acceptance criterion that this test stands for")
    _write(
        "start",
        time=time.time(),
        pytest=pytest.__version__,
        python=".".join(map(str, sys.version_info[:3])),
        asserts=not sys.flags.optimize,
        worker=os.environ.get("PYTEST_XDIST_WORKER", ""),
        root=str(config.rootpath),
    )


def pytest_collection_finish(session: pytest.Session) -> None:
    _write("asked", args=[str(arg) for arg in session.config.args])
    for item in session.items:
        path, line, _ = item.location
        # an async test is called by its plugin, a unittest one by unittest
        plain = type(item) is pytest.Function and not inspect.iscoroutinefunction(item.obj)
        _write("planned", id=item.nodeid, path=path, line=(line or 0) + 1, criteria=_criteria(item), plain=plain)


def pytest_itemcollected(item: pytest.Item) -> None:
    _write("collected", id=item.nodeid)


def _is_left_out_by_mark(item: pytest.Item) -> bool:
    """Return whether the mark expression (`-m`) and nothing else leaves a test out."""
    options = item.config.option
    if not options.markexpr or options.keyword or options.deselect:
        return False
    try:
        from _pytest.mark import MarkMatcher
        from _pytest.mark.expression import Expression

        return not Expression.compile(options.markexpr).evaluate(MarkMatcher.from_markers(item.iter_markers()))
    except Exception:  # noqa: BLE001  # no public way to ask: another version is another answer, the careful one
        return False


def pytest_deselected(items: Sequence[pytest.Item]) -> None:
    for item in items:
        by_mark = _is_left_out_by_mark(item)
        path, line, _ = item.location
        _write("deselected", id=item.nodeid, path=path, line=(line or 0) + 1, criteria=_criteria(item), mark=by_mark)


def pytest_collectreport(report: pytest.CollectReport) -> None:
    if report.failed:
        _write("collect_failed", id=report.nodeid, message=_text(report))
    elif report.skipped:
        where = report.longrepr
        line = where[1] if isinstance(where, tuple) and len(where) == 3 else None
        _write("collect_skipped", id=report.nodeid, message=_reason(report), line=line)
    else:
        _write("visited", id=report.nodeid)


def pytest_runtest_logstart(nodeid: str) -> None:
    if _in_worker:  # the controller hears of it too
        return
    _write("began", id=nodeid)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Note what a test raises, inside of all other wrappers, which could swallow it."""
    try:
        return (yield)
    except BaseException as error:
        if not isinstance(error, pytest.skip.Exception) and type(error).__name__ not in {"SkipTest", "Exit"}:
            _write("raised", id=item.nodeid, when="call", error=type(error).__name__)
        raise


@pytest.hookimpl(specname="pytest_pyfunc_call")  # after those of conftest files, before pytest's own
def pytest_gates_note_call(pyfuncitem: pytest.Function) -> None:
    """Note that nobody answered in the test function's place: the next to be asked is pytest, which calls it."""
    _write("called", id=pyfuncitem.nodeid)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Do so inside the wrappers of this hook too."""
    return (yield from pytest_runtest_call(pyfuncitem))


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Iterator[None]:
    before = _raw(call)
    yield
    seen = max(before, _raw(call))  # unittest tells of its exceptions only while the report is made
    _write("raw", id=item.nodeid, when=call.when, failed=seen[0], error=seen[1])


def _raw(call: pytest.CallInfo[None]) -> tuple[bool, str]:
    """Return whether a phase raised more than a skip, and what."""
    error = call.excinfo
    if error is None or error.errisinstance(pytest.skip.Exception) or error.typename == "SkipTest":
        return False, ""
    return True, error.typename


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if _in_worker:
        return
    sub = type(report).__name__ == "SubtestReport" or getattr(report, "context", None) is not None
    facts: dict[str, object] = {"reason": _reason(report)} if report.outcome == "skipped" else {}
    if report.outcome == "failed":
        path, line = _crash(report)
        facts = {"message": _text(report), "path": path, "line": line}
    _write(
        "report",
        id=report.nodeid,
        when=report.when,
        outcome=report.outcome,
        xfail=hasattr(report, "wasxfail"),
        subtest=sub,
        duration=report.duration,
        **facts,
    )


def pytest_warning_recorded(warning_message: WarningMessage, when: str, nodeid: str) -> None:
    _write(
        "warning",
        id=nodeid,
        when=when,
        category=warning_message.category.__name__,
        message=str(warning_message.message)[:500],
        path=str(warning_message.filename),
        line=warning_message.lineno,
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    worker = hasattr(session.config, "workerinput")
    _write("end", exit_code=int(exitstatus), collected=session.testscollected, worker=worker, time=time.time())


def _reason(report: pytest.CollectReport | pytest.TestReport) -> str:
    where = report.longrepr
    if isinstance(where, tuple) and len(where) == 3:
        return str(where[2])[:500]
    return str(getattr(report, "wasxfail", "") or where or "")[:500]


def _text(report: pytest.CollectReport | pytest.TestReport) -> str:
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.message)[:2000]
    return str(report.longrepr)[-2000:]


def _crash(report: pytest.TestReport) -> tuple[str, int]:
    """Return the innermost line of the traceback, as an absolute path and a number."""
    crash = getattr(report.longrepr, "reprcrash", None)
    if crash is not None:
        return str(crash.path), int(crash.lineno)
    return report.location[0], (report.location[1] or 0) + 1
