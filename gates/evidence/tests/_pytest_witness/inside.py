"""Watches a test from the inside, around the function that is called, not around hooks; or shuffles all tests."""

import functools
import inspect
import random
import unittest
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

NO_FAILURES = (pytest.skip.Exception, unittest.SkipTest, pytest.exit.Exception)
ABSENT = object()


@contextmanager
def watched_test(item: pytest.Item, told: dict[str, object]) -> Iterator[None]:
    """Note in `told` what a test raises, and for unittest what it calls a failure, however it is called."""
    item.__dict__["_gates_told"] = told
    replaced: dict[str, object] = {"runtest": _noting(item.runtest, told)}
    method = watched_function(getattr(item, "obj", None), told) if hasattr(item, "addFailure") else None
    if method is not None:
        replaced["_obj"] = method
    for name in ("addFailure", "addError"):
        if hasattr(item, name):
            replaced[name] = _failing(getattr(item, name), told)
    before = {name: item.__dict__.get(name, ABSENT) for name in replaced}
    item.__dict__.update(replaced)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is ABSENT:
                item.__dict__.pop(name, None)
            else:
                item.__dict__[name] = value


def watched_function(function: object, told: dict[str, object]) -> Callable[..., object] | None:
    """Return a function that calls another and notes how it ended; `None` for what is no plain function."""
    if inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function) or not callable(function):
        return None

    told["code"] = _code_of(function)

    @functools.wraps(function)
    def call(*args: object, **named: object) -> object:
        __tracebackhide__ = True
        told["called"] = "yes"
        try:
            return function(*args, **named)
        except BaseException as error:
            _note(error, told)
            raise

    return call


def _code_of(function: object) -> str:
    """Return where the code of a function was written, beneath all that keeps to the ways of `functools.wraps`."""
    for _ in range(20):
        inner = getattr(function, "__wrapped__", None) or getattr(function, "__func__", None)
        if inner is None:
            break
        function = inner
    code = getattr(function, "__code__", None)
    return f"{code.co_firstlineno}:{code.co_filename}" if code is not None else ""


def _noting(function: Callable[[], object], told: dict[str, object]) -> Callable[[], object]:
    def runtest() -> object:
        __tracebackhide__ = True
        try:
            return function()
        except BaseException as error:
            _note(error, told)
            raise

    return runtest


def _failing(
    function: Callable[[object, object], object], told: dict[str, object]
) -> Callable[[object, object], object]:
    def add(testcase: object, excinfo: object) -> object:
        error = excinfo[1] if isinstance(excinfo, tuple) else getattr(excinfo, "value", None)
        if isinstance(error, BaseException):
            _note(error, told)
        return function(testcase, excinfo)

    return add


def _note(error: BaseException, told: dict[str, object]) -> None:
    if not isinstance(error, NO_FAILURES):
        told["error"] = type(error).__name__


def shuffle(items: list[pytest.Item], seed: str) -> None:
    """Shuffle tests in place; those of one file stay together, so that its fixtures are set up once."""
    chance = random.Random(seed)  # noqa: S311  # an order, not a secret
    levels: list[Callable[[pytest.Item], Any]] = [lambda item: item.path, lambda item: getattr(item, "cls", None)]
    before = list(items)
    items[:] = _shuffled(items, levels, chance)
    if items == before:
        items.reverse()


def _shuffled(
    items: list[pytest.Item], levels: list[Callable[[pytest.Item], Any]], chance: random.Random
) -> list[pytest.Item]:
    if not levels:
        chance.shuffle(items)
        return items
    groups: dict[Any, list[pytest.Item]] = {}
    for item in items:
        groups.setdefault(levels[0](item), []).append(item)
    parts = list(groups.values())
    chance.shuffle(parts)
    return [item for part in parts for item in _shuffled(part, levels[1:], chance)]
