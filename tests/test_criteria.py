"""Where a criterion stands: every finding that speaks of it, folded into one status."""

import pytest
from building import a_criterion, a_finding, a_measure, a_process, a_record, a_run, a_task, all_evidence

from gates.criteria import stand, status
from gates.evidence.tests.test_records import TestOutcome
from gates.model import Basis, Finding, Level, Location, Outcome, Severity, Status
from gates.pipeline import discover, judge
from gates.report import CriterionReport, ranked

P, F, U, N = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE


def seen(outcome: Outcome, check: str = "tests:AC1", **changes: object) -> Finding:
    return a_finding(outcome, check=check, criterion="AC1", **changes)


CODE = seen(P, "code:AC1", basis=Basis.READ)
TABLE = [
    ([], Status.UNVERIFIED),
    ([CODE], Status.UNVERIFIED),
    ([CODE, seen(N)], Status.UNVERIFIED),
    ([seen(N)], Status.UNVERIFIED),
    ([CODE, seen(P)], Status.PASS),
    ([CODE, seen(N), seen(P, "measure:AC1:0")], Status.PASS),
    ([CODE, seen(U)], Status.UNVERIFIED),
    ([CODE, seen(U), seen(P, "entry:0:AC1")], Status.PARTIAL),
    ([seen(U, "code:AC1"), seen(P)], Status.PARTIAL),
    ([CODE, seen(F)], Status.FAIL),
    ([CODE, seen(F), seen(P), seen(U)], Status.FAIL),
    ([seen(F, "code:AC1")], Status.FAIL),
    ([seen(F, "code:AC1", absent=True), seen(P)], Status.NOT_IMPLEMENTED),
    ([CODE, seen(P), seen(F, "measure:AC1:0", level=Level.SHOULD)], Status.PASS),
    ([CODE, seen(P), seen(U, "measure:AC1:0", level=Level.ADVISORY)], Status.PASS),
    ([seen(P, level=Level.SHOULD)], Status.PASS),
    ([seen(F, level=Level.ADVISORY)], Status.FAIL),
]


@pytest.mark.parametrize(("findings", "expected"), TABLE)
def test_findings_fold_into_a_status(findings: list[Finding], expected: Status) -> None:
    assert status(findings) is expected
    assert status(findings[::-1]) is expected


def stands(*tests: TestOutcome, **changes: object) -> CriterionReport:
    task = a_task()
    records = [a_record(end, id=f"tests/test_core.py::test_{i}") for i, end in enumerate(tests)]
    evidence = all_evidence(task, a_run(*records, **changes))
    gates = [judge(gate, task, evidence) for gate in discover()]
    return stand(task, task.criteria[0], gates, a_run(*records, **changes))


def test_criterion_that_passed_names_its_code_tests_and_entry_points() -> None:
    report = stands(TestOutcome.PASSED)
    assert (report.status, report.reasons) == (Status.PASS, ())
    assert [(t.name, str(t.location), t.outcome) for t in report.code] == [("pkg.core:double", "pkg/core.py:1-3", P)]
    assert [(t.name, t.outcome) for t in report.tests] == [("tests/test_core.py::test_0", P), ("python -m pkg", P)]


def test_skipped_test_is_no_trace_of_a_pass() -> None:
    report = stands(TestOutcome.PASSED, TestOutcome.SKIPPED)
    assert [t.outcome for t in report.tests[:2]] == [P, U]
    assert report.status is Status.PARTIAL


def test_test_of_an_unbelieved_run_is_no_trace_of_a_pass() -> None:
    report = stands(TestOutcome.PASSED, disagreements=("they differ",))
    assert report.tests[0].outcome is U
    assert report.status is not Status.PASS


def test_what_decides_is_named_before_a_failure_that_does_not_and_a_place_before_the_rest() -> None:
    rest = seen(F, level=Level.ADVISORY, severity=Severity.LOW, message="9 more are alike")
    advised = seen(F, level=Level.ADVISORY, severity=Severity.LOW, location=Location(path="a.py"), message="advised")
    missing = seen(U, message="missing")
    assert ranked([rest, advised, missing]) == [missing, advised, rest]


def test_measure_is_traced_to_the_task_file() -> None:
    task = a_task(criteria=[a_criterion(measures=[a_measure()])])
    gates = [judge(gate, task, all_evidence(task)) for gate in discover()]
    (trace,) = stand(task, task.criteria[0], gates, a_run()).measures
    assert (trace.outcome, trace.detail) == (P, "2 [2, 2], n = 12, on a cpu")
    assert trace.location == Location(path="tasks/T1.yaml", line=14)


def test_tests_that_a_run_broke_off_before_only_follow_from_that() -> None:
    run = a_run(a_record(TestOutcome.NOT_RUN, id="tests/test_core.py::test_0"), process=a_process(3))
    task = a_task()
    found = [f for gate in discover() for f in judge(gate, task, all_evidence(task, run)).findings if f.leaves_open]
    assert {f.rule for f in found if f.rule in {"EX001", "EX002", "BL002"} and not f.follows} == {"EX001"}
