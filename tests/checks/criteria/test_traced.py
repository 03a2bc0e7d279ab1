"""Patterns and entries as a criterion's code, judged on built evidence; and where they stand in the report."""

from typing import Any

import pytest
from building import a_criterion, a_record, a_run, a_task, all_evidence, evidence

from gates.code.symbols import SymbolTrace
from gates.criteria import stand
from gates.evidence.source_tree import PatternTrace, SourceTree
from gates.model import Finding, Location, Outcome, Status
from gates.pipeline import judge as judge_gate
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol
from gates.proving.proof import End
from gates.stages import BUSINESS_LOGIC as GATE
from gates.task.task import Task

P, F, U = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN
PATTERN = "torch.amp.GradScaler(...)"
PLACE = Location(path="pkg/core.py", line=2, last_line=2)


def bound(**binding: Any) -> Task:
    code = {"pattern": PATTERN, "line": 9} if "symbol" not in binding else {"line": 9}
    return a_task(entry_points=[], measurements=[], criteria=[a_criterion(code=[{**code, **binding}])])


def tree(*places: Location, **facts: Any) -> SourceTree:
    trace = PatternTrace.model_validate({"name": f"pattern {PATTERN}", "at_least": 1, "places": places, **facts})
    return SourceTree(how="", files=1, symbols=(), rules=(), unparsed=(), patterns=(trace,))


def code(task: Task, seen: SourceTree) -> list[Finding]:
    return [f for f in GATE.judge(task, all_evidence(task, seen)) if f.check == "code:AC1"]


def test_each_place_that_fits_is_an_implementation_with_its_lines() -> None:
    found = code(bound(), tree(PLACE, Location(path="pkg/core.py", line=7, last_line=9)))
    assert [(f.outcome, str(f.location), f.subject) for f in found] == [
        (P, "pkg/core.py:2", f"pattern {PATTERN}"),
        (P, "pkg/core.py:7-9", f"pattern {PATTERN} #2"),
    ]
    report = stand(bound(), bound().criteria[0], [judge_gate(GATE, bound(), all_evidence(bound(), tree(PLACE)))], None)
    assert [str(trace.location) for trace in report.code] == ["pkg/core.py:2"]


def test_pattern_that_nothing_fits_fails() -> None:
    (finding,) = code(bound(), tree(problem="no live code of the implementation fits it"))
    assert (finding.outcome, finding.actual, str(finding.location)) == (F, "0 of 1", "tasks/T1.yaml:9")
    task = bound()
    seen = all_evidence(task, tree(problem="no live code of the implementation fits it"), a_run(a_record()))
    assert stand(task, task.criteria[0], [judge_gate(GATE, task, seen)], None).status is Status.FAIL


def test_too_few_places_fail_and_what_could_not_be_read_is_unknown() -> None:
    (few,) = code(bound(at_least=2), tree(PLACE, at_least=2, problem="1 place of the implementation fit it, not 2"))
    assert (few.outcome, few.actual, few.location) == (F, "1 of 2", PLACE)
    (unread,) = code(bound(), tree(problem="not checked, pkg/bad.py:1: x", checked=False))
    assert (unread.outcome, unread.actual) == (U, "not checked")
    (never,) = code(bound(pattern="f(...)"), tree(PLACE))
    assert (never.outcome, "was not applied" in never.message) == (U, True)


def test_report_sets_what_is_expected_beside_what_is_there() -> None:
    sections = GATE.describe(bound(), all_evidence(bound(), tree(PLACE)))
    (rows,) = (section.rows for section in sections if section.title == "Expected and Actual Architecture")
    told = f"pkg/core.py:2: pattern {PATTERN} fits live code in pkg/core.py:2."
    assert ("yes", f"pattern {PATTERN}", "1 place of live code", told) in rows


PROMISES: dict[str, tuple[dict[str, Any], dict[str, Any], Outcome, str]] = {
    "a test notices": (
        {},
        {"end": End.KILLED, "by": "tests/a.py::test_x"},
        P,
        "and tests/a.py::test_x asserts that it",
    ),
    "it is a class that holds nothing": ({}, {"exchanged": True}, U, "and no test of AC1 notices what it is: a.py:1"),
    "a test runs it": ({}, {"end": End.SURVIVED}, U, "and no test of AC1 notices what it is: a.py:1 only promises"),
    "no test runs it": ({}, {"end": End.NOT_TRIED, "why": "its tests do not call it"}, F, "is not implemented: a.py:1"),
    "it must use something": ({"uses": ["f"]}, {"end": End.KILLED}, F, "is not implemented"),
}


@pytest.mark.parametrize("case", PROMISES)
def test_what_does_nothing_is_implemented_where_a_test_notices(case: str) -> None:
    binding, ended, outcome, said = PROMISES[case]
    task = bound(symbol="pkg.core:double", **binding)
    trace = SymbolTrace(
        symbol="pkg.core:double", wanted=tuple(binding.get("uses", ())), location=None, promise=PLACE,
        problem="a.py:1 only promises 'double'",
    )  # fmt: skip
    seen = SourceTree(how="", files=1, symbols=(trace,), rules=(), unparsed=())
    symbol = EmptiedSymbol(criterion="AC1", symbol="pkg.core:double", location=PLACE, promise=True, **ended)
    pieces = evidence(seen, EmptiedCode(how="", symbols=(symbol,)), a_run())
    (finding,) = (f for f in GATE.judge(task, pieces) if f.check == "code:AC1")
    assert (finding.outcome, said in finding.message) == (outcome, True), finding.message
