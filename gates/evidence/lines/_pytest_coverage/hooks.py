"""A pytest plugin that notes which test runs which lines of the implementation, by the library `coverage`.

It stands alone, as the witness does, and changes nothing about the run: where `coverage` is not there, or the project
traces itself, it stands down and says why. Lines that run in a fixture wider than a function, at import or between
tests are noted as such, for no test can claim them. Other processes are not followed, for that would change them; that
a test started some is noted.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from _pytest.doctest import DoctestItem
from _pytest.unittest import TestCaseFunction

from .lines import Lines, gettrace, settrace

HERE = Path(__file__).parent
_lines = Lines()


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    _lines.start(early_config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Iterator[None]:
    """Between the tests, and inside of pytest itself, trace nothing: no code of the project runs there."""
    _lines.windows = _lines.coverage is not None and not _hooks_of_project(session.config)
    if _lines.windows and gettrace() is _lines.tracer:
        settrace(None)
    try:
        return (yield)
    finally:
        if _lines.windows:
            _lines.windows = False
            if _lines.coverage is not None and gettrace() is None:
                settrace(_lines.tracer)  # type: ignore[arg-type]  # what sys.gettrace returned


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    before = _lines.switch(f"test:{item.nodeid}")
    opened = _lines.opened() if type(item) not in (pytest.Function, TestCaseFunction, DoctestItem) else None
    try:
        return (yield)
    finally:
        _lines.closed(opened)
        _lines.switch(before)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_fixture_setup(fixturedef: "pytest.FixtureDef[Any]") -> Iterator[None]:
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
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    opened = _lines.opened() if type(item) is not pytest.Function else None
    try:
        return (yield)
    finally:
        _lines.closed(opened)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_pyfunc_call() -> Iterator[None]:
    opened = _lines.opened()
    try:
        return (yield)
    finally:
        _lines.closed(opened)


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    opened = _lines.opened() if _may_finish_something(item, nextitem) else None
    try:
        return (yield)
    finally:
        _lines.closed(opened)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish() -> Iterator[None]:
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
