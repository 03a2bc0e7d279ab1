"""What the report of the execution gate tells of the test run beside its findings."""

from collections.abc import Iterator

from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import TestOutcome, TestRecord
from gates.report import Section

SLOWEST = 10
LISTED = 200


def describe_run(run: PytestRun) -> Iterator[Section]:
    """Tell the run: command, counts, tests by name, slowest tests, warnings."""
    counts = ", ".join(f"{run.count(o)} {o.value}" for o in TestOutcome if run.count(o)) or "no test"
    yield Section(
        title="Test Execution Results",
        facts=(
            ("Command", run.commands[0].line),
            ("Ended", run.process.ended),
            ("Results", f"{counts}, {len(run.warnings)} distinct warnings"),
            ("Duration", f"{run.process.duration_s:.2f} s"),
            ("Peak memory", _memory(run.process.peak_memory_bytes)),
            ("Orders", _orders(run)),
            ("Versions", ", ".join(f"{name} {version}" for name, version in sorted(run.versions.items()))),
        ),
    )
    if run.process.exit_code is None or run.running:
        yield _certificate(run)
    for outcome in TestOutcome:
        tests = [test for test in run.tests if test.outcome is outcome]
        if tests and outcome is not TestOutcome.PASSED:  # those are a count here, and named in PytestRun.json
            yield _test_table(outcome, tests)
    slowest = sorted(run.tests, key=lambda test: -test.duration_s)[:SLOWEST]
    yield Section(
        title="Slowest Tests",
        columns=("Duration (s)", "Test"),
        rows=tuple((f"{test.duration_s:.2f}", test.id) for test in slowest),
    )
    yield Section(
        title="Warnings",
        text=listed(len(run.warnings)) if run.warnings else "None.",
        columns=("Category", "Place", "Message"),
        rows=tuple((w.category, str(w.location), w.message) for w in run.warnings[:LISTED]),
    )


def _certificate(run: PytestRun) -> Section:
    """Tell how a run died: what was running, of what, how much memory it held, and where it was."""
    return Section(
        title="Death Certificate",
        facts=(
            ("Ended", run.process.ended),
            ("Running", ", ".join(run.running[:LISTED]) or "no test"),
            ("Last seen", run.stage or "never"),
            ("Peak memory", _memory(run.process.peak_memory_bytes)),
        ),
        code=run.stack or "No stack was written: SIGKILL and os._exit leave no time for one.",
    )


def _memory(count: int | None) -> str:
    return f"{count / 2**20:.0f} MiB (largest process)" if count else "not known"


def _orders(run: PytestRun) -> str:
    seeds = ", ".join(repeat.seed for repeat in run.repeats)
    return f"as collected; then shuffled, seeds {seeds}" if seeds else "as collected, once"


def _test_table(outcome: TestOutcome, tests: list[TestRecord]) -> Section:
    return Section(
        title=f"{outcome.value.capitalize()} Tests ({len(tests)})",
        text=listed(len(tests)),
        columns=("Test", "Place", "Reason"),
        rows=tuple((t.id, str(t.crash or t.location), t.message.split("\n")[0]) for t in tests[:LISTED]),
    )


def listed(count: int) -> str:
    """Return what to say of a list that is cut short, or nothing."""
    return f"The first {LISTED} of {count}; all of them are in evidence/PytestRun.json." if count > LISTED else ""
