"""Which tests stand for a criterion, and how they are told of."""

from collections.abc import Iterator, Mapping

from gates.code.syntax import texts
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import TestRecord
from gates.project.two_states import TwoStates
from gates.task.task import Criterion, Task


def tests_of(task: Task, criterion: Criterion, run: PytestRun | None) -> list[TestRecord]:
    """Return the tests bound to a criterion, by path or node id in the task or by marker in the test."""
    wanted = f"{task.id}/{criterion.id}"
    return [
        test
        for test in (run.tests if run else ())
        if wanted in test.criteria or any(is_under(test.id, path) for path in criterion.tests)
    ]


def is_under(test_id: str, path: str) -> bool:
    """Return whether a test is a node id, or lies in the file, folder or class that a path names."""
    path = path.rstrip("/")
    return test_id == path or test_id.startswith((f"{path}::", f"{path}/", f"{path}["))


def moved_tests(task: Task, states: TwoStates) -> tuple[dict[str, str | None], frozenset[str]]:
    """Return where the tests are that the change took from their places, and all tests of the files that differ.

    They are known by what they say, or by their name; those that are nowhere are `None`.
    """
    was, now = (dict(_written(side)) for side in states.changed(task.tests, ".py"))
    return _moved(was, now), frozenset(now)


def moved_symbols(task: Task, states: TwoStates) -> dict[str, str | None]:
    """Return where the definitions of the implementation are that the change took from their places, all as symbols."""
    return _moved(*(dict(_defined(side)) for side in states.changed(task.implementation, ".py")))


def _moved(was: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str | None]:
    places = {key: one for one, text in now.items() if one not in was for key in (one.rpartition(":")[2], text)}
    return {o: places.get(t) or places.get(o.rpartition(":")[2]) for o, t in was.items() if o not in now}


def _defined(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield the functions and classes of some files as symbols, each with what it says but for its name."""
    for path, content in files.items():
        module = path.removesuffix(".py").removeprefix("src/").removesuffix("/__init__").replace("/", ".")
        for name, text in texts(content).items():
            yield f"{module}:{name}", text.replace(repr(name.rpartition(".")[2]), "")


def _written(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield the tests of some files by node id, each with what it says but for its name."""
    for path, content in files.items():
        for name, text in texts(content).items():
            own = name.rpartition(".")[2]
            if own.startswith("test"):
                yield f"{path}::{name.replace('.', '::')}", text.replace(repr(own), "", 1)


NAMED = 50  # so many tests have a finding of their own; the rest share one


def more(tests: list[TestRecord], what: str) -> str:
    """Return what to say of the tests that have no finding of their own, or nothing."""
    rest = len(tests) - NAMED
    return f"{rest} more tests {what}; all are in evidence/PytestRun.json." if rest > 0 else ""


def stand_for(count: int, criterion: Criterion) -> str:
    """Say how many tests stand for a criterion."""
    return f"1 test verifies {criterion.id}" if count == 1 else f"{count} tests verify {criterion.id}"
