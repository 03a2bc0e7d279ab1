"""What the report of the execution gate tells of the test run beside its findings."""

from collections.abc import Iterator

from gates.evidence.pytest_run import PytestRun
from gates.evidence.test_records import TestOutcome, TestRecord
from gates.model import Section

SLOWEST = 10
LISTED = 200


def describe_run(run: PytestRun) -> Iterator[Section]:
    """Tell the run: command, counts, tests by name, slowest tests, warnings."""
    counts = ", ".join(f"{run.count(o)} {o.value}" for o in TestOutcome if run.count(o)) or "no test"
    yield Section(
        title="Test Execution Results",
        facts=(
            ("Command", " ".join(run.commands[0].argv)),
            ("Ended", run.process.ended),
            ("Results", f"{counts}, {len(run.warnings)} distinct warnings"),
            ("Duration", f"{run.process.duration_s:.2f} s"),
            ("Versions", ", ".join(f"{name} {version}" for name, version in sorted(run.versions.items()))),
        ),
    )
    for outcome in TestOutcome:
        tests = [test for test in run.tests if test.outcome is outcome]
        if tests:
            yield _test_table(outcome, tests)
    slowest = sorted(run.tests, key=lambda test: -test.duration_s)[:SLOWEST]
    yield Section(
        title="Slowest Tests",
        columns=("Test", "Duration (s)"),
        rows=tuple((test.id, f"{test.duration_s:.2f}") for test in slowest),
    )
    yield Section(
        title="Warnings",
        text=listed(len(run.warnings)) if run.warnings else "None.",
        columns=("Category", "Place", "Message"),
        rows=tuple((w.category, str(w.location), w.message) for w in run.warnings[:LISTED]),
    )


def _test_table(outcome: TestOutcome, tests: list[TestRecord]) -> Section:
    passed = outcome is TestOutcome.PASSED
    shown = tests[:LISTED]
    return Section(
        title=f"{outcome.value.capitalize()} Tests ({len(tests)})",
        text=listed(len(tests)),
        columns=("Test", "Place") if passed else ("Test", "Place", "Reason"),
        rows=tuple(
            (t.id, str(t.location)) if passed else (t.id, str(t.crash or t.location), t.message.split("\n")[0])
            for t in shown
        ),
    )


def listed(count: int) -> str:
    """Return what to say of a list that is cut short, or nothing."""
    return f"The first {LISTED} of {count}; all of them are in evidence/PytestRun.json." if count > LISTED else ""
