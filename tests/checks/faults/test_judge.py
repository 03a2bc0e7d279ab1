"""Emptied code in the report: what no test noticed leaves its criterion open, and what was not tried is told."""

import pytest
from building import a_criterion, a_record, a_run, a_task, evidence

from gates.check import EvidenceSet
from gates.checks import faults as _emptied
from gates.model import Finding, Level, Location, Outcome, Severity
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol
from gates.proving.proof import End
from gates.task.task import Task

TASK = a_task(criteria=[a_criterion()])


def a_symbol(name: str = "double", end: End = End.KILLED, **changes: object) -> EmptiedSymbol:
    facts = {"criterion": "AC1", "symbol": f"pkg.core:{name}", "location": Location(path="pkg/core.py", line=1),
             "end": end, "by": "tests/test_core.py::test_double", "tests": 2}  # fmt: skip
    return EmptiedSymbol.model_validate({**facts, **changes})


def told(task: Task, seen: EvidenceSet) -> list[Finding]:
    return [finding for finding in _emptied.judge(task, seen) if finding.rule == "BL016"]


def judged(*symbols: EmptiedSymbol, level: str = "must") -> Finding:
    seen = evidence(EmptiedCode(how="in a copy", symbols=symbols))
    (finding,) = told(a_task(criteria=[a_criterion(level=level)]), seen)
    return finding


def test_a_criterion_whose_tests_notice_is_told_and_stays() -> None:
    found = judged(a_symbol())
    assert (found.outcome, found.level) == (Outcome.PASSED, Level.ADVISORY)
    assert found.message == "The tests of AC1 fail without the body of pkg.core:double."


def test_tests_that_could_not_be_asked_are_named_where_the_others_miss_it() -> None:
    found = judged(a_symbol("double", End.SURVIVED, tests=3, aside=("tests/test_core.py::test_place",)))
    assert found.outcome is Outcome.UNKNOWN
    assert "all others that run it (2) still pass (tests/test_core.py::test_place fails in any copy" in found.message


@pytest.mark.parametrize(("level", "severity"), [("must", Severity.HIGH), ("should", Severity.MEDIUM)])
def test_what_no_test_notices_leaves_its_criterion_open(level: str, severity: Severity) -> None:
    found = judged(a_symbol(), a_symbol("halve", End.SURVIVED), level=level)
    assert (found.outcome, found.level, found.severity) == (Outcome.UNKNOWN, Level(level), severity)
    assert found.message.startswith("pkg.core:halve can be stubbed out, and all 2 tests that run it still pass")
    assert found.leaves_open is (level == "must")


def test_a_symbol_that_no_test_calls_leaves_its_criterion_open_whatever_they_notice_of_another() -> None:
    found = judged(a_symbol(), a_symbol("halve", End.NOT_TRIED, uncalled=True))
    assert (found.outcome, found.level, found.subject) == (Outcome.UNKNOWN, Level.MUST, "pkg.core:halve")
    assert found.message == "The tests of AC1 pass without calling pkg.core:halve."


def test_tests_that_could_not_be_asked_at_all_leave_open_what_they_alone_stand_for() -> None:
    alone, beside = a_criterion(), a_criterion(id="AC2")
    entry = {"run": ["x"], "criteria": ["AC2"], "line": 1}
    task = a_task(criteria=[alone, beside], entry_points=[entry], measurements=[])
    for run, expected in ((a_run(a_record()), [True, False]), (None, [False, False])):
        assert [found.leaves_open for found in told(task, evidence(run) if run else EvidenceSet())] == expected


def test_each_symbol_that_is_missed_by_all_is_named() -> None:
    seen = evidence(EmptiedCode(how="", symbols=(a_symbol("a", End.SURVIVED), a_symbol("b", End.SURVIVED, tests=1))))
    messages = [finding.message for finding in told(TASK, seen)]
    assert messages[0].startswith("pkg.core:a can be stubbed out, and all 2 tests that run it still pass")
    assert messages[1].startswith("pkg.core:b can be stubbed out, and its test still passes")


def test_what_was_not_tried_is_told_with_its_reason_and_asks_nothing() -> None:
    found = judged(a_symbol(end=End.NOT_TRIED, why="it has no body", spared=True))
    assert (found.outcome, found.level) == (Outcome.NOT_APPLICABLE, Level.ADVISORY)
    assert found.message.endswith("is not known: it has no body.")
    beside = judged(a_symbol(), a_symbol("TABLE", End.NOT_TRIED, why="it has no body", spared=True))
    assert beside.outcome is Outcome.PASSED
    assert beside.message.endswith("; pkg.core:TABLE was not judged: it has no body.")


def test_what_there_was_no_time_for_leaves_its_criterion_open() -> None:
    found = judged(a_symbol(end=End.NOT_TRIED, why="the time for it was up"))
    assert (found.outcome, found.leaves_open, bool(found.remediation)) == (Outcome.UNKNOWN, True, True)


def test_a_test_that_notices_nothing_is_named_beside_an_honest_one() -> None:
    honest, hollow = "tests/test_core.py::test_double", "tests/test_core.py::test_idle"
    symbols = a_symbol(noticing=(honest,), missing=(hollow,)), a_symbol("halve", missing=(honest, hollow))
    named, passed = told(TASK, evidence(EmptiedCode(how="", symbols=symbols)))
    assert (named.outcome, named.subject, named.blocks) == (Outcome.FAILED, hollow, False)
    assert "still passes with the code of AC1 stubbed out" in named.message
    assert passed.outcome is Outcome.PASSED


def test_without_a_look_nothing_is_judged() -> None:
    (found,) = told(TASK, EvidenceSet(why="the tests did not run"))
    assert (found.outcome, found.level) == (Outcome.UNKNOWN, Level.ADVISORY)
    assert "the tests did not run" in found.message


def test_the_report_names_who_noticed() -> None:
    table = a_symbol("TABLE", End.NOT_TRIED, why="it has no body", spared=True)
    symbols = (a_symbol(), a_symbol("halve", End.SURVIVED), table)
    (section,) = _emptied.page(TASK, evidence(EmptiedCode(how="", symbols=symbols)))
    assert [row[0] for row in section.rows] == ["tests/test_core.py::test_double", "none", "not judged: it has no body"]


def test_other_values_are_no_missing_body() -> None:
    found = judged(a_symbol("RATE", End.SURVIVED, tests=1, exchanged=True))
    assert found.message.startswith("pkg.core:RATE can hold another value, and its test still passes")


def test_promises_are_left_to_the_code_that_does_nothing() -> None:
    assert judged(a_symbol("Null", End.SURVIVED, promise=True)).outcome is Outcome.NOT_APPLICABLE
