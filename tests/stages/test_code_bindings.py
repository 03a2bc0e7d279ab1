"""Patterns and entries as a criterion's code, judged on built evidence; and where they stand in the report."""

from typing import Any

import pytest
from building import a_criterion, a_record, a_run, a_task, all_evidence, evidence
from covering import a_function, executed

from gates.criteria import stand
from gates.evidence.patterns import PatternTrace
from gates.evidence.reach import Reached, ReachTrace
from gates.evidence.source_tree import SourceTree
from gates.evidence.symbols import SymbolTrace
from gates.model import Finding, Location, Outcome, Status
from gates.pipeline import judge as judge_gate
from gates.proof import End
from gates.proving.emptied_code import EmptiedCode, EmptiedSymbol
from gates.stages import _coverage
from gates.stages.business_logic import GATE
from gates.task.task import Task

P, F, U = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN
PATTERN = "torch.amp.GradScaler(...)"
PLACE = Location(path="pkg/core.py", line=2, last_line=2)


def bound(**binding: Any) -> Task:
    code = {"pattern": PATTERN, "line": 9} if "symbol" not in binding else {"line": 9}
    return a_task(entry_points=[], measurements=[], criteria=[a_criterion(code=[{**code, **binding}])])


def tree(*places: Location, reach: ReachTrace | None = None, **facts: Any) -> SourceTree:
    trace = PatternTrace.model_validate(
        {"pattern": PATTERN, "within": None, "at_least": 1, "places": places, **facts}
    )  # fmt: skip
    return SourceTree(
        how="", files=1, symbols=(), rules=(), unparsed=(), patterns=(trace,), reaches=(reach,) if reach else ()
    )


def code(task: Task, seen: SourceTree) -> list[Finding]:
    return [f for f in GATE.judge(task, all_evidence(task, seen)) if f.check == "code:AC1"]


def test_each_place_that_fits_is_an_implementation_with_its_lines() -> None:
    other = Location(path="pkg/core.py", line=7, last_line=9)
    found = code(bound(), tree(PLACE, other))
    assert [(f.outcome, str(f.location), f.subject) for f in found] == [
        (P, "pkg/core.py:2", f"pattern {PATTERN}"),
        (P, "pkg/core.py:7-9", f"pattern {PATTERN} #2"),
    ]
    report = stand(bound(), bound().criteria[0], [judge_gate(GATE, bound(), all_evidence(bound(), tree(PLACE)))], None)
    assert [str(trace.location) for trace in report.code] == ["pkg/core.py:2"]


def test_many_places_share_a_line() -> None:
    found = code(bound(), tree(*(Location(path="pkg/core.py", line=n, last_line=n) for n in range(1, 100))))
    assert (len(found), found[-1].message) == (51, f"pattern {PATTERN} fits 49 more places of live code.")


def test_pattern_that_nothing_fits_is_not_implemented() -> None:
    (finding,) = code(bound(), tree(problem="no live code of the implementation fits it"))
    assert (finding.outcome, finding.actual, str(finding.location)) == (F, "not implemented", "tasks/T1.yaml:9")
    task = bound()
    seen = all_evidence(task, tree(problem="no live code of the implementation fits it"), a_run(a_record()))
    assert stand(task, task.criteria[0], [judge_gate(GATE, task, seen)], None).status is Status.NOT_IMPLEMENTED


def test_too_few_places_fail_and_what_could_not_be_read_is_unknown() -> None:
    (few,) = code(bound(at_least=2), tree(PLACE, at_least=2, problem="1 place of the implementation fit it, not 2"))
    assert (few.outcome, few.actual, few.location) == (F, "1 of 2", PLACE)
    (unread,) = code(bound(), tree(problem="not checked, pkg/bad.py:1: x", checked=False))
    assert (unread.outcome, unread.actual) == (U, "not checked")
    (never,) = code(bound(pattern="f(...)"), tree(PLACE))
    assert (never.outcome, "was not applied" in never.message) == (U, True)


SYMBOL = SymbolTrace(symbol="pkg.core:double", wanted=(), location=PLACE)
ENTRY = "pkg.core:fit"
REACH: dict[str, tuple[dict[str, Any], Outcome, str]] = {
    "reached": ({"reached": Reached.YES, "way": ("a.py:1 fit", "a.py:4 one")}, P, "a.py:1 fit -> a.py:4 one"),
    "called by another": ({"reached": Reached.NO, "callers": ("a.py:9 old",)}, F, "a.py:9 old"),
    "not called": ({"reached": Reached.NO}, F, "nothing calls it"),
    "no entry": ({"reached": Reached.NO, "problem": "pkg.core:fit: gone"}, F, "pkg.core:fit: gone"),
    "open": ({"reached": Reached.OPEN, "problem": "by an unknown type"}, U, "not decided"),
}


@pytest.mark.parametrize("case", REACH)
def test_code_must_be_called_from_its_entry(case: str) -> None:
    facts, outcome, actual = REACH[case]
    trace = ReachTrace(name="pkg.core:double", entry=ENTRY, **facts)
    seen = tree(PLACE).model_copy(update={"symbols": (SYMBOL,), "patterns": (), "reaches": (trace,)})
    live, found = code(bound(symbol="pkg.core:double", reached_from=ENTRY), seen)
    assert (live.outcome, found.outcome, found.actual) == (P, outcome, actual)
    assert found.expected == f"called from {ENTRY}, directly or through others"


def test_reach_that_was_not_looked_at_is_unknown_and_of_missing_code_nothing_is_said() -> None:
    task = bound(symbol="pkg.core:double", reached_from=ENTRY)
    seen = tree(PLACE).model_copy(update={"symbols": (SYMBOL,), "patterns": ()})
    assert [f.outcome for f in code(task, seen)] == [P, U]
    gone = seen.model_copy(update={"symbols": (SYMBOL.model_copy(update={"location": None}),)})
    assert [f.outcome for f in code(task, gone)] == [F]


def test_report_sets_what_is_expected_beside_what_is_there() -> None:
    reach = ReachTrace(name=f"pattern {PATTERN}", entry=ENTRY, reached=Reached.NO, callers=("a.py:9 old",))
    sections = GATE.describe(bound(), all_evidence(bound(), tree(PLACE, reach=reach)))
    (rows,) = (section.rows for section in sections if section.title == "Expected and Actual Architecture")
    assert rows == (
        (f"pattern {PATTERN}", "1 place of live code", "pkg/core.py:2", "yes"),
        (f"pattern {PATTERN}", f"called from {ENTRY}", "called by a.py:9 old", "no"),
    )


@pytest.mark.parametrize(
    ("lines", "outcome", "level"),
    [({2: 0}, P, "advisory"), ({3: 0}, U, "must"), ({}, U, "must")],
)
def test_tests_must_run_the_very_lines_that_fit(lines: dict[int, int], outcome: Outcome, level: str) -> None:
    seen = executed(a_function(line=1, last=4, lines=lines))
    task = bound()
    (finding,) = (
        f for f in _coverage.judge(task, evidence(seen, a_run(), tree(PLACE))) if f.check == "code:reached:AC1"
    )
    assert (finding.outcome, finding.level.value) == (outcome, level)


def test_lines_that_run_at_import_are_not_judged() -> None:
    seen = evidence(executed(a_function(line=5)), a_run(), tree(PLACE))
    (finding,) = (f for f in _coverage.judge(bound(), seen) if f.check == "code:reached:AC1")
    assert finding.outcome is Outcome.NOT_APPLICABLE


PROMISES: dict[str, tuple[dict[str, Any], dict[str, Any], Outcome, str]] = {
    "a test notices": (
        {},
        {"end": End.KILLED, "by": "tests/a.py::test_x"},
        P,
        "and tests/a.py::test_x asserts that it",
    ),
    "a test runs it": ({}, {"end": End.SURVIVED}, U, "and no test of AC1 notices what it is: a.py:1 only promises"),
    "no test runs it": ({}, {"end": End.NOT_TRIED, "why": "its tests do not call it"}, F, "is not implemented: a.py:1"),
    "it must use something": ({"uses": ["f"]}, {"end": End.KILLED}, F, "is not implemented"),
    "it must be reached": ({"reached_from": ENTRY}, {"end": End.KILLED}, F, "is not implemented"),
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
    assert finding.outcome is outcome
    assert said in finding.message
