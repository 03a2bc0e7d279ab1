"""How tests that stand for a criterion are told of."""

from gates.evidence.tests.test_records import TestRecord
from gates.task.task import Criterion

NAMED = 50  # so many tests have a finding of their own; the rest share one


def more(tests: list[TestRecord], what: str) -> str:
    """Return what to say of the tests that have no finding of their own, or nothing."""
    rest = len(tests) - NAMED
    return f"{rest} more tests {what}; all are in evidence/PytestRun.json." if rest > 0 else ""


def stand_for(count: int, criterion: Criterion) -> str:
    """Say how many tests stand for a criterion."""
    return f"1 test verifies {criterion.id}" if count == 1 else f"{count} tests verify {criterion.id}"
