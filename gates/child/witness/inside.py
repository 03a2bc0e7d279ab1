"""Tells of a run, watches a test around the called function, shuffles tests, lets the harness judge canaries."""

import functools
import importlib
import inspect
import os
import random
import sys
import unittest
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, ModuleType
from typing import Any

import pytest
from _pytest import threadexception as threads
from _pytest import unraisableexception as unraisable
from _pytest.fixtures import FuncFixtureInfo
from _pytest.runner import runtestprotocol

from ..asking import Teller

getpid = os.getpid  # bound here, because the tested code may patch modules


class Witness:
    """Tells what happens in this process, or in a worker of it; without a journal it tells nothing."""

    def __init__(self) -> None:
        self.asked: dict[str, Any] = {}
        self.in_test, self.names = False, dict[str, object]()
        self._teller: Teller | None = None
        self._events: list[dict[str, object]] = []
        self._own, self._strayed = getpid(), False
        os.register_at_fork(after_in_child=self._forked)

    def attach(self, asked: dict[str, Any]) -> None:
        """Tell in the journal that the gate asks for."""
        if asked:
            self.asked, self._teller = asked, Teller(asked["journal"], asked["secret"])

    def note(self, event: str, **facts: object) -> None:
        """Keep an event for the next that must be told at once."""
        if self._strayed:
            event, facts = "strayed", {"id": str(facts.get("id", ""))}
        self._events.append({"event": event, "pid": self._own, **facts})
        if self._strayed:
            self.flush()
            self._strayed, self._teller = False, None

    def tell(self, event: str, **facts: object) -> None:
        """Tell an event now, and all that were kept: what comes next may be the end of the process."""
        self.note(event, **facts)
        self.flush()

    def flush(self) -> None:
        """Tell the events that were kept."""
        events, self._events = self._events, []
        if self._teller is not None and events:
            self._teller.note(*events)

    def _forked(self) -> None:
        """Tell of a fork in a test only that it goes on as if it were the run; another fork may be part of the run."""
        self._strayed, self._events = self.in_test, []
        if self._teller is not None:
            self._teller.forked()


NO_FAILURES = (pytest.skip.Exception, unittest.SkipTest, pytest.exit.Exception)


@contextmanager
def watched_test(item: pytest.Item, told: dict[str, object]) -> Iterator[None]:
    """Note in `told` that the function of a test is really called, and what the test raises, however it is called."""
    replaced: dict[str, object] = {"runtest": _noting(item.runtest, told)}
    if function := watched_function(item, told):
        replaced["_obj"] = function
    before = {name: item.__dict__[name] for name in replaced if name in item.__dict__}
    item.__dict__.update(replaced)
    try:
        yield
    finally:
        for name in replaced.keys() - before.keys():
            item.__dict__.pop(name, None)
        item.__dict__.update(before)


def watched_function(item: pytest.Item, told: dict[str, object]) -> Callable[..., object] | None:
    """Return a function that calls a test's and notes how it ended; `None` where a plugin may call it otherwise."""
    function = getattr(item, "obj", None)
    is_async = inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function)
    if is_async or not callable(function) or not (type(item) is pytest.Function or hasattr(item, "addFailure")):
        return None
    return functools.wraps(function)(_noting(function, told, called="yes"))


def _noting(function: Callable[..., object], told: dict[str, object], **more: object) -> Callable[..., object]:
    """Return what calls a function and notes it; conditions of marks and filters of warnings find no names of ours."""

    def ended(error: BaseException) -> None:
        if not isinstance(error, NO_FAILURES):
            told["error"] = type(error).__name__

    def call(*args: object, **named: object) -> object:
        __tracebackhide__ = True
        told.update(more)
        try:
            return function(*args, **named)
        except BaseException as error:
            ended(error)
            raise

    return FunctionType(call.__code__, {"__name__": "_pytest.python"}, "call", None, call.__closure__)


def shuffle(items: list[pytest.Item], seed: str) -> None:
    """Shuffle tests in place; those of one file stay together, so that its fixtures are set up once."""
    chance, before = random.Random(seed), list(items)  # noqa: S311  # an order, not a secret
    files = dict.fromkeys(item.path for item in items)
    kinds = dict.fromkeys(getattr(item, "cls", None) for item in items)
    ranks = {each: chance.random() for each in (*files, *kinds)}
    items.sort(key=lambda item: (ranks[item.path], ranks[getattr(item, "cls", None)], chance.random()))
    if items == before:
        items.reverse()


running: dict[str, bool] = {}
UNCAUGHT = ((threads, "thread_exceptions"), (unraisable, "unraisable_exceptions"))  # since pytest 8.4


def judged(session: pytest.Session, asked: dict[str, Any]) -> list[dict[str, object]]:
    """Run the canaries through the hooks of a test, no report told; return how each ended, or why it could not run."""
    if not session.items or not asked.get("canaries"):
        return []
    stash: Any = session.config.stash
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(running, "canaries", True)
        for name in ("last_type", "last_value", "last_traceback", "last_exc"):  # what these keep alive, lives on
            patch.delattr(sys, name, raising=False)
        patch.setattr(session.config.option, "tbstyle", "native")  # nobody reads it, and this one costs least
        for module, key in UNCAUGHT:  # the next hook of a test fails for these, and that is not to be a canary's
            if (kept := getattr(module, key, None)) in stash:
                patch.setitem(stash, kept, deque())
        # imported now, by pytest and after all that the project has to say about imports
        name = f"{__package__}.canary_tests"
        pytest.register_assert_rewrite(name)
        tests = importlib.import_module(name)
        return [_judge(session, tests, name) for name in ("passes", "fails", "compares", "expects")]


def _judge(session: pytest.Session, tests: ModuleType, name: str) -> dict[str, object]:
    told: dict[str, object] = {"id": name, "called": "", "error": "", "outcome": "", "unable": ""}
    test = _noting(getattr(tests, name), told, called="yes")
    try:
        for report in runtestprotocol(_item(session, tests, name, test), log=False):
            if report.when == "call":
                told["outcome"] = report.outcome
            elif not report.passed:
                told["unable"] = f"its {report.when} {report.outcome}"
    except Exception as error:  # noqa: BLE001  # whatever the project's hooks make of a test that is not theirs
        told["unable"] = repr(error)[:200]
    return told


def _item(session: pytest.Session, tests: ModuleType, name: str, test: Callable[..., object]) -> pytest.Item:
    module = pytest.Module.from_parent(session, path=session.items[0].path)
    setattr(module, "_obj", tests)  # noqa: B010  # no public way to give a module node its module
    test.__name__ = f"gates_canary_{name}"
    nothing = FuncFixtureInfo((), (), [], {})
    item: pytest.Function = pytest.Function.from_parent(module, name=test.__name__, callobj=test, fixtureinfo=nothing)
    setattr(item, "_json_report_extra", {})  # noqa: B010  # set around a test that is part of the session
    return item
