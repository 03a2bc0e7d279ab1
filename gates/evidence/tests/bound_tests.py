"""Which tests stand for a criterion, and how they are told of."""

from collections.abc import Iterable, Iterator, Mapping

from gates.code.syntax import texts
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import TestRecord
from gates.project.files import is_under
from gates.project.history import TwoStates
from gates.task.task import Criterion, Task


def tests_of(task: Task, criterion: Criterion, run: PytestRun | None) -> list[TestRecord]:
    """Return the tests bound to a criterion, by path or node id in the task or by marker in the test."""
    wanted = f"{task.id}/{criterion.id}"
    return [
        test
        for test in (run.tests if run else ())
        if wanted in test.criteria or any(is_under(test.id, path) for path in criterion.tests)
    ]


def moved_tests(paths: Iterable[str], states: TwoStates) -> tuple[dict[str, str | None], frozenset[str]]:
    """Return where each test of the files that differ is now, by its node id at the base, and all of today."""
    was, now = map(written_tests, states.changed(paths, ".py"))
    return found_again(was, now), frozenset(now)


def moved_symbols(task: Task, states: TwoStates) -> dict[str, str | None]:
    """Return where the definitions of the implementation are that the change took from their places, all as symbols."""
    was, now = (dict(_defined(side)) for side in states.changed(task.implementation, ".py"))
    return {one: place for one, place in found_again(was, now).items() if one != place}


def _defined(files: Mapping[str, bytes]) -> Iterator[tuple[str, str]]:
    """Yield the functions and classes of some files as symbols, each with what it says but for its name."""
    for path, content in files.items():
        module = path.removesuffix(".py").removeprefix("src/").removesuffix("/__init__").replace("/", ".")
        for name, text in texts(content).items():
            yield f"{module}:{name}", text.replace(repr(name.rpartition(".")[2]), "")


def found_again(was: Mapping[str, str], now: Mapping[str, str]) -> dict[str, str | None]:
    """Return where tests or definitions are now: there, or else by what they say, or their name; `None` is nowhere."""
    places = {key: one for one, text in now.items() if one not in was for key in (one.rpartition(":")[2], text)}
    return {o: o if o in now else places.get(t) or places.get(o.rpartition(":")[2]) for o, t in was.items()}


def written_tests(files: Mapping[str, bytes]) -> dict[str, str]:
    """Return the tests of some files by node id, each with what it says but for its name."""
    return {
        f"{path}::{name.replace('.', '::')}": text.replace(repr(own), "", 1)
        for path, content in files.items()
        for name, text in texts(content).items()
        if (own := name.rpartition(".")[2]).startswith("test")
    }


NAMED = 50  # so many tests have a finding of their own; the rest share one


def more(tests: list[TestRecord], what: str) -> str:
    """Return what to say of the tests that have no finding of their own, or nothing."""
    rest = len(tests) - NAMED
    return f"{rest} more tests {what}; all are in evidence/PytestRun.json." if rest > 0 else ""
