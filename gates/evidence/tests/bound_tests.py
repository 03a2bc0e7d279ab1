"""Which tests stand for a criterion, and how they are told of."""

from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import TestRecord
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


NAMED = 50  # so many tests have a finding of their own; the rest share one


def more(tests: list[TestRecord], what: str) -> str:
    """Return what to say of the tests that have no finding of their own, or nothing."""
    rest = len(tests) - NAMED
    return f"{rest} more tests {what}; all are in evidence/PytestRun.json." if rest > 0 else ""


def stand_for(count: int, criterion: Criterion) -> str:
    """Say how many tests stand for a criterion."""
    return f"1 test verifies {criterion.id}" if count == 1 else f"{count} tests verify {criterion.id}"
