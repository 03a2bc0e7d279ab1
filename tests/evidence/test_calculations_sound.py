"""Calls and properties at the edges of what can be called, tried and compared: sound code is not blocked there."""

from pathlib import Path
from typing import Any

import pytest
from building import a_context, a_task, evidence, written
from calculating import a_calculation, a_property

from gates.evidence.calculations import Calculations
from gates.model import Finding, Outcome
from gates.stages._calculations import judge

CORE = """\
import collections, functools, itertools, json, os

seen = []


def once_none(x):
    seen.append(x)
    return None if len(seen) == 1 else float(x)


def once_refused(x):
    seen.append(x)
    if len(seen) == 1:
        raise ValueError("only once")
    return True


def same(x):
    return x


def double(x):
    return 2 * x


def minus(a, b):
    return a - b


def one(x):
    return 1


def count_of(n):
    return len(range(n)) * 2


def square(x):
    return x * x


def wrong_between(x):
    return 5.0 if 0 < x < 0.9 else 1.0


def whole(x):
    return float(int(x))


def queue():
    return collections.deque([1, 2])


def mapped():
    return map(int, "12")


def zipped():
    return zip([1, 2], "ab")


def stepping():
    return iter([1, 2])


def values():
    return {"a": 1, "b": 2}.values()


def keys():
    return {"a": 1, "b": 2}.keys()


def forever():
    return itertools.count()


async def later(n):
    for i in range(n):
        yield i


class Steps:
    def __init__(self, n):
        self._n = n

    def __iter__(self):
        return self

    def __next__(self):
        if not self._n:
            raise StopIteration
        self._n -= 1
        return self._n


class Public(Steps):
    def __init__(self, n):
        self.n = n

    def __next__(self):
        raise StopIteration


class Closed:
    __slots__ = ("_x",)


def closed(x=0):
    return Closed()


def closed_beside():
    return [3, Closed()]


def own_list():
    return collections.UserList([1, 2])


def bare(x):
    assert x < 0


def quick(x):
    json.dumps = lambda *a, **k: b"{}"
    return x


def daemon(x):
    os.closerange(3, 256)
    return x


class Kept:
    @functools.lru_cache
    def double(self, x):
        return 2 * x

    def times(self, n, x):
        return n * x

    triple = functools.partialmethod(times, 3)

    @staticmethod
    @functools.lru_cache
    def half(x):
        return x / 2
"""
PASSED, FAILED, UNKNOWN = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN


def found(folder: Path, **parts: Any) -> list[Finding]:
    """What is said of each part of a task."""
    root = written(folder / "project", {"pkg/__init__.py": "", "pkg/core.py": CORE})
    task = a_task(**parts)
    seen = Calculations.collect(task, a_context(root))
    return [*judge(task, evidence(seen))]


def a_row(call: str, *args: object, **changes: Any) -> dict[str, Any]:
    own = {name: changes.pop(name) for name in ("instance", "take") if name in changes}
    path = call if ":" in call else f"pkg.core:{call}"
    return a_calculation({"args": list(args), **changes}, call=path, criteria=[], **own)


HUGE = [{"integers": [0, 10**21]}]
LARGE, BEYOND = {"integers": [2**53, 10**21]}, {"integers": [0, 10**400]}
COUNT, HIGH, LAST = {"integers": [0, 99]}, {"floats": [1.0e300, 8.0e307]}, {"floats": [1.0e300, 1.7e308]}
MANY, MOST = {"floats": [0, 1e6]}, {"floats": [0, 1e9]}
WIDE = {"floats": [-1.7e308, 1.7e308]}
PROPERTIES: dict[str, tuple[dict[str, Any], Outcome, str]] = {
    "huge numbers, odd": ({"call": "same", "property": "odd", "over": HUGE}, PASSED, ""),
    "huge numbers, even": ({"call": "one", "property": "even", "over": HUGE}, PASSED, ""),
    "huge numbers, swapped": ({"call": "minus", "property": "antisymmetric", "over": [LARGE, LARGE]}, PASSED, ""),
    "huge numbers, scaled": ({"call": "double", "property": "homogeneous", "over": HUGE}, PASSED, ""),
    "huge numbers, any scale": ({"call": "one", "property": "scale-invariant", "over": HUGE}, PASSED, ""),
    "huge numbers, any shift": ({"call": "one", "property": "shift-invariant", "over": HUGE}, PASSED, ""),
    "beyond all floats, odd": ({"call": "same", "property": "odd", "over": [BEYOND]}, PASSED, ""),
    "huge numbers, wrong": ({"call": "square", "property": "homogeneous", "over": [LARGE]}, FAILED, "square(9"),
    "whole numbers stay whole": ({"call": "count_of", "property": "homogeneous", "over": [COUNT]}, PASSED, ""),
    "at the end of all floats": ({"call": "double", "property": "homogeneous", "over": [HIGH]}, PASSED, ""),
    "beyond the end of all floats": ({"call": "one", "property": "scale-invariant", "over": [LAST]}, PASSED, ""),
    "between nothing and one": ({"call": "wrong_between", "property": "constant", "over": [MANY]}, FAILED, "between("),
    "near nothing": ({"call": "wrong_between", "property": "constant", "over": [MOST]}, FAILED, "between("),
    "all floats": ({"call": "same", "property": "increasing", "over": [WIDE]}, PASSED, ""),
    "nothing to compare": (
        {"call": "closed", "property": "deterministic", "over": [{"integers": [0, 9]}]},
        UNKNOWN,
        "",
    ),
    "no text": ({"call": "bare", "property": "finite", "over": [{"floats": [0, 1]}]}, FAILED, "raised AssertionError"),
}


@pytest.fixture(scope="module")
def tried(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Finding]:
    """All of PROPERTIES, in one run."""
    parts = [a_property(**{**part, "call": f"pkg.core:{part['call']}"}) for part, _, _ in PROPERTIES.values()]
    return dict(zip(PROPERTIES, found(tmp_path_factory.mktemp("properties"), properties=parts), strict=True))


@pytest.mark.parametrize("case", PROPERTIES)
def test_property(tried: dict[str, Finding], case: str) -> None:
    _, outcome, text = PROPERTIES[case]
    assert (tried[case].outcome, tried[case].actual) == (outcome, tried[case].actual)
    assert text in (tried[case].actual or "")


@pytest.mark.parametrize("call", ["pkg.core:once_none", "pkg.core:double"])
def test_what_fails_only_once_is_told_and_is_no_counterexample(tmp_path: Path, call: str) -> None:
    given = {} if "once" in call else {"given": "pkg.core:once_refused"}
    (finding,) = found(tmp_path, properties=[a_property(call=call, **given)])
    assert finding.outcome is UNKNOWN
    assert "is not the same every time" in finding.message
    assert ("only once" if given else "gave None") in finding.message


CALLS: dict[str, tuple[dict[str, Any], Outcome]] = {
    "half lost": (a_row("whole", 1234567.5, expected=1234567.5), FAILED),
    "deque": (a_row("queue", expected=[1, 2]), PASSED),
    "deque, wrong": (a_row("queue", expected=[1, 3]), FAILED),
    "map": (a_row("mapped", expected=[1, 2]), PASSED),
    "map, wrong": (a_row("mapped", expected=[1, 3]), FAILED),
    "zip": (a_row("zipped", expected=[[1, "a"], [2, "b"]]), PASSED),
    "iterator": (a_row("stepping", expected=[1, 2]), PASSED),
    "own iterator": (a_row("Steps", 2, expected=[1, 0]), PASSED),
    "iterator of which all is public": (a_row("Public", 2, expected=[]), UNKNOWN),
    "what is public of it": (a_row("Public", 2, expected={"n": 2}), PASSED),
    "part of it": (a_row("Public", 2, expected=2, take="n"), PASSED),
    "part of a map": (a_row("mapped", expected=2, take="1"), PASSED),
    "part that is private": (a_row("Steps", 2, expected=2, take="_n"), PASSED),
    "values": (a_row("values", expected=[1, 2]), PASSED),
    "keys": (a_row("keys", expected=["a", "b"]), PASSED),
    "own list": (a_row("own_list", expected=[1, 2]), PASSED),
    "own list, wrong": (a_row("own_list", expected=[1, 3]), FAILED),
    "own list by its fields": (a_row("own_list", expected={"data": [1, 2]}), PASSED),
    "endless": (a_row("forever", expected=[1, 2]), UNKNOWN),
    "async generator": (a_row("later", 2, expected=[0, 1]), PASSED),
    "async generator, wrong": (a_row("later", 2, expected=[0, 2]), FAILED),
    "nothing that could be compared": (a_row("closed", expected=[1, 2]), UNKNOWN),
    "something that could": (a_row("closed_beside", expected=[2, 2]), FAILED),
    "json.dumps replaced": (a_row("quick", 3, expected=3), PASSED),
    "after that": (a_row("same", 3, expected=3), PASSED),
    "all files closed": (a_row("daemon", 3, expected=3), PASSED),
    "after that too": (a_row("same", 3, expected=4), FAILED),
    "cached method without an instance": (a_row("Kept.double", 2, expected=4), UNKNOWN),
    "partial method without an instance": (a_row("Kept.triple", 2, expected=6), UNKNOWN),
    "cached method": (a_row("Kept.double", 2, expected=4, instance={}), PASSED),
    "partial method": (a_row("Kept.triple", 2, expected=6, instance={}), PASSED),
    "cached static method": (a_row("Kept.half", 2, expected=1), PASSED),
    "method of a type that is built in": (a_row("builtins:str.upper", "a", expected="A"), UNKNOWN),  # no code of ours
}


@pytest.fixture(scope="module")
def called(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Finding]:
    """All of CALLS, in one run."""
    parts = [part for part, _ in CALLS.values()]
    return dict(zip(CALLS, found(tmp_path_factory.mktemp("calls"), calculations=parts), strict=True))


@pytest.mark.parametrize("case", CALLS)
def test_call(called: dict[str, Finding], case: str) -> None:
    assert (called[case].outcome, called[case].message) == (CALLS[case][1], called[case].message)


def test_why_it_is_unknown_is_said(called: dict[str, Finding]) -> None:
    wanted = {
        "nothing that could be compared": "of which nothing can be compared",
        "cached method without an instance": "write 'instance: {args: [...]}' beside 'call'",
        "partial method without an instance": "write 'instance: {args: [...]}' beside 'call'",
    }
    assert {case: text for case, text in wanted.items() if text not in called[case].message} == {}
