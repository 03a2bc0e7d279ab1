"""The part of the business logic gate on tests for CUDA that ran on an emulated device."""

from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.evidence.emulated import Emulated
from gates.model import Finding, Level, Outcome, Planned, RuleText, Severity
from gates.report import Section
from gates.task.task import Task

RULES = (
    RuleText(
        id="BL007",
        title="Tests for CUDA do not crash on an emulated device",
        meaning="Where the task asks for it (emulate: [cuda]), the tests that were skipped for want of a CUDA device "
        "are run again in a process in which the CPU stands for one. A crash there is a warning: code that nobody ran "
        "does not run. It says nothing of speed, memory or kernels and never satisfies a criterion.",
    ),
)
LABEL = "executed, emulated device"


def plan(task: Task) -> Iterator[Planned]:
    """Plan one check, where a device is to be emulated."""
    if task.emulate:
        yield Planned(id="emulated", title="Tests for CUDA do not crash on an emulated device", level=Level.ADVISORY)


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Tell of each test that crashed; what passed is only counted."""
    if not task.emulate:
        return
    seen = evidence.get(Emulated)
    place = task.place(task)
    if seen is None or (seen.asked and not seen.tests):
        ended = seen.process.ended if seen and seen.process else ""
        why = ended or evidence.why_missing(Emulated)
        yield _finding(
            Outcome.UNKNOWN, f"No test was run on an emulated device: {why}", location=place, actual="not run"
        )
        return
    crashed = [test for test in seen.tests if test.ended == "crashed"]
    for test in crashed:
        yield _finding(
            Outcome.FAILED, f"{test.id} crashes on an emulated device: {test.message}", location=test.location,
            subject=test.id, actual=f"crashed ({LABEL})", expected="it runs",
            impact="This code was never run where the tests were skipped.",
            remediation="Mend it, or run the test on a real device.",
        )  # fmt: skip
    if not crashed:
        count = sum(test.ended == "passed" for test in seen.tests)
        ran = f"{count} of {len(seen.asked)} tests that were skipped for want of CUDA pass on an emulated device"
        said = f"{ran}; that says nothing of a real one."
        outcome = Outcome.UNKNOWN if seen.asked else Outcome.NOT_APPLICABLE
        said = said if seen.asked else "No test was skipped for want of a CUDA device."
        yield _finding(outcome, said, location=place, actual=LABEL if seen.asked else "nothing skipped")


def _finding(outcome: Outcome, message: str, **facts: object) -> Finding:
    severity = {Outcome.FAILED: Severity.MEDIUM, Outcome.UNKNOWN: Severity.LOW}.get(outcome, Severity.INFO)
    return Finding.model_validate(
        {"rule": "BL007", "check": "emulated", "level": Level.ADVISORY, "outcome": outcome, "severity": severity,
         "message": message, **facts}
    )  # fmt: skip


def describe(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of each test how it ended."""
    seen = evidence.get(Emulated)
    if task.emulate and seen and seen.tests:
        yield Section(
            title="Tests on an Emulated Device",
            text="The CPU stood for a CUDA device: no speed, no memory and no kernel was seen.",
            columns=("Test", "Ended", "Message"),
            rows=tuple((test.id, f"{test.ended} ({LABEL})", test.message or "-") for test in seen.tests),
        )
