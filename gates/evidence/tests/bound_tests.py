"""Which tests stand for a criterion."""

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
