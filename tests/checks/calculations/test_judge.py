"""Calculations and edge cases judged by what came of each call."""

from typing import Any

import pytest
from building import a_criterion, a_task, evidence
from calculating import PLACE, a_calculation, a_call, a_raise, an_edge_case, calculated, calculating

from gates.check import EvidenceSet
from gates.checks.calculations.judge import CallRun, Ended, judge, page, plan
from gates.checks.calculations.spec import Calculation, EdgeCase
from gates.criteria import stand
from gates.model import Finding, Level, Outcome, Severity, Status
from gates.pipeline import judge as judge_gate
from gates.stages import BUSINESS_LOGIC as GATE
from gates.task.task import Task, narrowed

PASSED, FAILED, UNKNOWN = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN


def only(task: Task, *calls: CallRun) -> Finding:
    """The one finding about the one part of a task."""
    (finding,) = judge(task, evidence(calculated(*calls)))
    return finding


def a_table(*rows: dict[str, Any], **changes: Any) -> Task:
    return a_task(calculations=[a_calculation(*rows, **changes)])


def test_what_is_as_stated_passes_at_the_function() -> None:
    findings = [*judge(calculating(), evidence(calculated()))]
    assert [(f.rule, f.check, f.outcome) for f in findings] == [
        ("BL008", "calc:0:AC1", PASSED),
        ("BL009", "edge:0", PASSED),
    ]
    assert findings[0].location == PLACE
    assert findings[0].message == "double(2) returned 4, as stated."
    assert findings[1].message == "nothing: double(None) raised TypeError: no number, as stated."


def test_task_without_calculations_plans_and_tells_nothing() -> None:
    task = a_task()
    assert [*plan(task), *judge(task, EvidenceSet()), *page(task, EvidenceSet())] == []


def test_wrong_result_shows_input_expected_and_actual() -> None:
    finding = only(a_table({"args": [2.0], "kwargs": {"by": 1}, "expected": 4, "tolerance": 0.5}), a_call(returned=8))
    assert (finding.outcome, finding.severity, str(finding.location)) == (FAILED, Severity.CRITICAL, "pkg/core.py:3-4")
    assert finding.message == "double(2.0, by=1) returned 8, expected 4 (off by 4.0)"
    assert (finding.subject, finding.expected, finding.actual) == ("double(2.0, by=1)", "4, within 0.5", "8")


def test_good_table_is_one_finding() -> None:
    rows = [{"args": [i], "expected": i} for i in range(3)]
    finding = only(a_table(*rows), *(a_call(f"calc:0:{i}", returned=i) for i in range(3)))
    assert (finding.outcome, finding.message) == (PASSED, "All 3 rows of pkg.core:double hold.")


def test_calculation_speaks_for_each_criterion_at_its_level() -> None:
    task = calculating(
        criteria=[a_criterion(), a_criterion(id="AC2", level="should"), a_criterion(id="AC3")],
        calculations=[a_calculation(criteria=["AC2", "AC1"])],
        edge_cases=[],
    )
    found = [*judge(task, evidence(calculated(a_call(returned=5))))]
    assert [(f.criterion, f.level, f.severity) for f in found] == [
        ("AC1", Level.MUST, Severity.CRITICAL),
        ("AC2", Level.SHOULD, Severity.MEDIUM),
    ]
    assert [check.id for check in plan(task)] == [f.check for f in found] == ["calc:0:AC1", "calc:0:AC2"]


ENDS: dict[str, tuple[CallRun, Outcome, str]] = {
    "raised": (a_raise("calc:0:0"), FAILED, "double(2) raised TypeError: no number, expected 4"),
    "import broke": (
        a_raise("calc:0:0", importing=True),
        FAILED,
        "double(2) could not be called: the import of its module raised TypeError: no number",
    ),
    "died": (
        a_call(ended=Ended.CRASHED, problem="the process died: killed by SIGSEGV"),
        FAILED,
        "double(2) ended badly: the process died: killed by SIGSEGV",
    ),
    "hung": (
        a_call(ended=Ended.STOPPED, problem="it did not return within 1 s"),
        UNKNOWN,
        "double(2) was not seen: it did not return within 1 s",
    ),
    "not there": (
        a_call(ended=Ended.NOT_RUN, problem="pkg.core has no 'double'"),
        UNKNOWN,
        "double(2) was not seen: pkg.core has no 'double'",
    ),
    "not told of": (a_call("calc:9:9"), UNKNOWN, "double(2) was not called: it was not collected"),
    "another result the second time": (
        a_call(again=a_call(returned=5)),
        FAILED,
        "double(2) returned 4, and called again with the same input 5; expected 4",
    ),
    "an exception the second time": (
        a_call(again=a_raise()),
        UNKNOWN,
        "double(2) returned 4, and called again with the same input raised TypeError: no number; expected 4",
    ),
    "two results like the expected": (
        a_call(again=a_call(returned=4 + 1e-12)),
        PASSED,
        "double(2) returned 4, as stated.",
    ),
}


@pytest.mark.parametrize("case", ENDS)
def test_end_of_a_call(case: str) -> None:
    run, outcome, message = ENDS[case]
    finding = only(a_table(), run)
    assert (finding.outcome, finding.message) == (outcome, message)


WARNED = ({"kinds": ("UserWarning", "Warning"), "message": "take care"},)
EDGES: dict[str, tuple[dict[str, Any], CallRun, Outcome]] = {
    "raises": ({}, a_raise(), PASSED),
    "raises what is one": ({"raises": "LookupError"}, a_raise("edge:0", "KeyError", "LookupError"), PASSED),
    "raises another": ({"raises": "ValueError"}, a_raise(), FAILED),
    "says": ({"says": "no num"}, a_raise(), PASSED),
    "says another": ({"says": "none"}, a_raise(), FAILED),
    "returns instead": ({}, a_call("edge:0"), FAILED),
    "raises and warns": ({"warns": "Warning"}, a_raise(warnings=WARNED), PASSED),
    "raises and warns of another": ({"warns": "FutureWarning"}, a_raise(warnings=WARNED), FAILED),
    "raises and warns not": ({"warns": "Warning"}, a_raise(), FAILED),
    "raises at import": ({}, a_raise(importing=True), FAILED),
    "finite": ({"raises": ..., "finite": True}, a_call("edge:0", [1, 2.5]), PASSED),
    "not finite": ({"raises": ..., "finite": True}, a_call("edge:0", [1, {"$": "float", "text": "nan"}]), FAILED),
    "no number": ({"raises": ..., "finite": True}, a_call("edge:0", "text"), FAILED),
    "warns": ({"raises": ..., "warns": "Warning", "says": "care"}, a_call("edge:0", warnings=WARNED), PASSED),
    "warns of another": ({"raises": ..., "warns": "FutureWarning"}, a_call("edge:0", warnings=WARNED), FAILED),
    "warns otherwise": ({"raises": ..., "warns": "Warning", "says": "x"}, a_call("edge:0", warnings=WARNED), FAILED),
    "warns not": ({"raises": ..., "warns": "Warning"}, a_call("edge:0"), FAILED),
    "nothing is expected": ({"raises": ..., "expected": None}, a_call("edge:0", None), PASSED),
    "nothing was expected": ({"raises": ..., "expected": None}, a_call("edge:0", 0), FAILED),
}


@pytest.mark.parametrize("case", EDGES)
def test_edge_case(case: str) -> None:
    changes, run, outcome = EDGES[case]
    assert only(a_task(edge_cases=[an_edge_case(**changes)]), run).outcome is outcome


def test_expected_value_that_only_the_project_can_make_is_compared_as_it_was_made() -> None:
    task = a_table({"args": [2], "expected": {"$call": "fractions:Fraction", "args": [4]}})
    made = a_call("expected:calc:0:0", returned=4)
    assert only(task, a_call(), made).outcome is PASSED
    assert only(task, a_call(returned=5), made).outcome is FAILED
    assert only(task, a_call(), a_raise("expected:calc:0:0")).outcome is UNKNOWN
    assert only(task, a_call()).outcome is not PASSED


def test_hostile_text_stays_in_one_line() -> None:
    finding = only(a_table(), a_call(returned={"$": "text", "type": "X", "text": "a\n\x1b[31m\u202eb"}))
    assert finding.outcome is FAILED
    assert not {"\n", "\x1b", "\u202e"} & set(finding.message + finding.actual)


def test_sections_show_every_call() -> None:
    sections = [*page(calculating(), evidence(calculated(a_call(returned=3), a_raise())))]
    assert [(s.title, s.text, s.rows) for s in sections] == [
        ("Calculations", "0 of 1 as stated.", (("NO", "pkg.core:double", "double(2)", "4", "3"),)),
        (
            "Edge Cases",
            "1 of 1 as stated.",
            (("yes", "nothing", "double(None)", "TypeError", "raised TypeError: no number"),),
        ),
    ]
    unseen = [*page(calculating(), EvidenceSet(why="no time"))]
    assert [s.text for s in unseen] == ["0 of 1 as stated. Not run: no time."] * 2


def test_criterion_passes_by_its_calculation_alone() -> None:
    task = calculating(criteria=[a_criterion(code=[], tests=[])], tests=[], entry_points=[], edge_cases=[])
    for returned, expected in ((4, Status.UNVERIFIED), (5, Status.FAIL)):
        report = judge_gate(GATE, task, evidence(calculated(a_call(returned=returned))))
        standing = stand(task, task.criteria[0], [report], None)
        assert ("calc:0:AC1" in {f.check for f in report.findings}, len(standing.tests)) == (True, 1)
        assert (standing.status is Status.FAIL) is (expected is Status.FAIL)


def test_run_of_one_criterion_makes_its_calls_only() -> None:
    left = narrowed(calculating(edge_cases=[an_edge_case(criteria=["AC2"])]), "AC2")
    assert (len(left.part(Calculation)), len(left.part(EdgeCase))) == (0, 1)


def test_code_of_others_says_nothing_of_the_implementation() -> None:
    task = a_task(calculations=[{"call": "operator:add", "table": [{"args": [1, 1], "expected": 2}]}])
    (finding,) = judge(task, evidence(calculated(a_call(returned=2, place=None))))
    assert (finding.outcome, finding.actual) == (UNKNOWN, "foreign code")
