"""The markers of tests: each must name a criterion that exists."""

import re
from collections.abc import Iterator

from gates.check import EvidenceSet
from gates.checks.criteria.collect import KnownCriteria, Misspelt
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Level, Location, Outcome, Severity
from gates.task.task import TASK_ID, Task
from gates.task.yaml_source import did_you_mean

NAMED = 50
FORM = re.compile(rf"{TASK_ID.pattern}/{TASK_ID.pattern}")


def judge_markers(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Refuse markers that name a criterion which does not exist; where a task file is unread, it may be in there."""
    run, known = evidence.get(PytestRun), evidence.get(KnownCriteria)
    if run is None or known is None:
        why = evidence.why_missing(PytestRun if run is None else KnownCriteria)
        yield Finding(
            rule="BL004", check="markers", outcome=Outcome.UNKNOWN, level=Level.ADVISORY,
            message=f"The markers were not seen: {why}",
        )  # fmt: skip
        return
    seen = [*((t.id, t.location, t.criteria) for t in run.tests),
            *((t.id, t.location, t.criteria) for t in run.deselected)]  # fmt: skip
    loose = [(name, where, marker) for name, where, markers in seen for marker in markers if marker not in known.names]
    for name, where, marker in loose[:NAMED]:
        yield _loose(task, known, name, where, marker)
    for one in known.misspelt[:NAMED]:
        yield _misspelt(one)
    if not loose and not known.misspelt:
        marked = sum(any(m.startswith(f"{task.id}/") for m in test.criteria) for test in run.tests)
        yield Finding(
            rule="BL004", check="markers", outcome=Outcome.PASSED if run.tests else Outcome.UNKNOWN,
            severity=Severity.INFO, level=Level.ADVISORY,
            message=f"{marked} tests are marked for criteria of {task.id}, each of which exists.",
        )  # fmt: skip


def _misspelt(one: Misspelt) -> Finding:
    return Finding(
        rule="BL004", check="markers", outcome=Outcome.FAILED, severity=Severity.HIGH, level=Level.MUST,
        location=one.location, subject=f"{one.location} {one.criterion}", expected="pytest.mark.criterion",
        actual=f"pytest.mark.{one.written}",
        message=f"pytest.mark.{one.written} names {repr(one.criterion) if one.criterion else 'no criterion'} and binds "
        "no test to anything.",
        impact="The test verifies nothing, and the criterion it means has one less.",
        remediation='Write pytest.mark.criterion("TASK/CRITERION").',
    )  # fmt: skip


def _loose(task: Task, known: KnownCriteria, name: str, where: Location, marker: str) -> Finding:
    own = marker.startswith(f"{task.id}/")
    formed = FORM.fullmatch(marker) is not None
    maybe = formed and not own and known.unread
    hint = did_you_mean(marker, known.names)
    hint = hint if hint.startswith("; did") else ""
    says = "does not exist" if formed else "has not the form TASK/CRITERION"
    says = f"was not found; not read: {', '.join(known.unread[:3])}" if maybe else f"{says}{hint}"
    return Finding(
        rule="BL004", check="markers", outcome=Outcome.UNKNOWN if maybe else Outcome.FAILED, severity=Severity.HIGH,
        level=Level.ADVISORY if maybe else Level.MUST, location=where, subject=f"{name} {marker}",
        message=f"{name} is marked for {marker!r}, which {says}", expected="a criterion of a task", actual=marker,
        impact="The test verifies nothing, and the criterion it means has one less.",
        remediation="Mend the marker's id.",
    )  # fmt: skip
