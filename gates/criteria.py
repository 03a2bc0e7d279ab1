"""Where each criterion stands: every finding that speaks of it, folded into one status with its traces."""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from gates.evidence.tests.bound_tests import tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.evidence.tests.test_records import TestOutcome
from gates.model import Basis, Finding, Level, Outcome, Planned, Row, Status
from gates.ranking import ranked, reason
from gates.report import CriterionReport, GateReport, Trace
from gates.task.task import Criterion, Task
from gates.waiving import standing_of


def stand(
    task: Task, criterion: Criterion, gates: Sequence[GateReport], run: PytestRun | None,
    of_the_run: Sequence[Finding] = (),
) -> CriterionReport:  # fmt: skip
    """Fold the findings of a criterion into its status and its line of the traceability matrix."""
    everything = [*(finding for gate in gates for finding in gate.findings), *of_the_run]
    about = [finding for finding in everything if finding.criterion == criterion.id]
    planned = {one.id: one for gate in gates for one in gate.checks if one.row}
    waivers = standing_of(task, criterion, everything, waived=any(f.waived for f in about))
    open_or_bad = [f for f in ranked(about) if f.outcome in {Outcome.FAILED, Outcome.UNKNOWN}]
    return CriterionReport(
        id=criterion.id,
        text=criterion.text,
        level=criterion.level,
        status=status(about),
        reasons=(*waivers, *(f"{reason(f)} ({f.waived})" if f.waived else reason(f) for f in open_or_bad)),
        code=tuple(_traces(about, planned, Row.CODE)),
        tests=(*_tests(task, criterion, run), *_traces(about, planned, Row.TEST)),
        measures=tuple(_traces(about, planned, Row.MEASURE)),
    )


def status(findings: Iterable[Finding]) -> Status:
    """Return a criterion's status; code that was only read never makes it a pass."""
    everything = [f for f in findings if f.outcome is not Outcome.NOT_APPLICABLE]
    binding = [f for f in everything if f.level is Level.MUST] or everything
    waived = any(f.waived for f in binding)
    failed = [f for f in binding if f.outcome is Outcome.FAILED and not f.waived]
    observed = [f for f in binding if f.outcome is Outcome.PASSED and f.basis is Basis.OBSERVED]
    if any(f.actual == "not implemented" for f in failed):
        return Status.NOT_IMPLEMENTED
    if failed:
        return Status.FAIL
    if any(f.outcome is Outcome.UNKNOWN and not f.waived for f in binding):
        return Status.PARTIAL if observed else Status.UNVERIFIED
    if waived:
        return Status.WAIVED
    return Status.PASS if observed else Status.UNVERIFIED


def _tests(task: Task, criterion: Criterion, run: PytestRun | None) -> Iterator[Trace]:
    """Yield the tests that stand for a criterion; only one that passed in a believed run has passed."""
    failed = {TestOutcome.FAILED, TestOutcome.ERROR}
    for test in tests_of(task, criterion, run):
        passed = test.passed and run is not None and run.complete
        outcome = Outcome.PASSED if passed else Outcome.FAILED if test.outcome in failed else Outcome.UNKNOWN
        yield Trace(name=test.id, location=test.location, outcome=outcome, detail=test.outcome.value)


def _traces(findings: Sequence[Finding], planned: Mapping[str, Planned], row: Row) -> Iterator[Trace]:
    """Yield what stands for a criterion in a row, once each: a run that answers several checks alike is one trace."""
    seen = set()
    for finding in findings:
        name = finding.subject or finding.message
        told = (name, finding.location, finding.outcome)
        check = planned.get(finding.check)
        if check and check.row is row and finding.outcome is not Outcome.NOT_APPLICABLE and told not in seen:
            seen.add(told)
            yield Trace(
                name=name, kind=check.label, location=finding.location, outcome=finding.outcome, detail=finding.actual
            )
