"""What the tests execute, judged on built evidence: what fails, what stays open, and what must never block."""

from typing import Any

import pytest
from building import a_criterion, a_process, a_record, a_run, a_task, a_tree, evidence
from covering import TEST, a_function, executed

from gates.check import EvidenceSet
from gates.checks.coverage.judge import describe, judge, plan
from gates.code.symbols import SymbolTrace
from gates.criteria import decide
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.model import Decision, Finding, Level, Location, Outcome, Severity
from gates.task.selection import narrowed
from gates.task.task import Task

TASK = a_task(entry_points=[], criteria=[a_criterion()])
P, F, U, N = Outcome.PASSED, Outcome.FAILED, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE
OTHER = "tests/test_other.py::test_x"


def findings(seen: ExecutedLines, rule: str, task: Task = TASK, **changes: Any) -> list[Finding]:
    pieces = evidence(seen, changes.get("run", a_run()), changes.get("tree", a_tree(task)))
    everything = list(judge(task, pieces))
    assert {f.check for f in everything} == {check.id for check in plan(task)}
    return [f for f in everything if f.rule == rule]


def test_function_that_no_test_executes_is_listed_at_its_line() -> None:
    seen = executed(a_function(), a_function("lost", line=5, ran=False))
    (finding,) = findings(seen, "EX005")
    assert (finding.outcome, finding.severity, finding.level) == (F, Severity.MEDIUM, Level.ADVISORY)
    assert str(finding.location) == "pkg/core.py:5-6"
    assert "`lost`" in finding.message
    assert not finding.blocks


def test_function_that_does_not_count_is_not_asked_for() -> None:
    (finding,) = findings(executed(a_function(), a_function("_own", line=5, ran=False, counts=False)), "EX005")
    assert (finding.outcome, finding.actual) == (P, "1 of 1 executed")


UNSEEN: dict[str, dict[str, Any]] = {
    "another process": {"children": {f"test:{OTHER}": "python"}},
    "a tracer that was taken away": {"lost": (f"test:{OTHER}",)},
    "a run that died": {"doubts": ("the test run did not come to its end",)},
}


@pytest.mark.parametrize("case", UNSEEN)
def test_function_that_may_have_run_unseen_is_unknown(case: str) -> None:
    (finding,) = findings(executed(a_function("lost", ran=False), **UNSEEN[case]), "EX005")
    assert (finding.outcome, finding.leaves_open) == (U, False)


def test_function_that_did_not_run_in_a_run_that_cannot_be_believed_is_unknown() -> None:
    (finding,) = findings(executed(a_function("lost", ran=False)), "EX005", run=a_run(process=a_process(3)))
    assert (finding.outcome, finding.leaves_open) == (U, False)


def test_run_of_one_criterion_need_not_execute_all_public_functions() -> None:
    task = narrowed(a_task(), "AC1")
    seen = executed(a_function(lines={}))
    (finding,) = [f for f in judge(task, evidence(seen, a_run(a_record()))) if f.rule == "EX005"]
    assert finding.outcome is Outcome.NOT_APPLICABLE


def test_long_list_is_cut() -> None:
    seen = executed(*(a_function(f"f{i}", line=3 * i + 1, ran=False) for i in range(60)))
    found = findings(seen, "EX005")
    assert len(found) == 51
    assert found[-1].message.startswith("10 more public functions")
    assert len({f.fingerprint for f in found}) == 51


def test_file_that_cannot_be_read_leaves_the_functions_unknown() -> None:
    (finding,) = findings(executed(unparsed=("pkg/x.py:1: bad",)), "EX005")
    assert finding.outcome is U


def test_tests_that_run_the_code_of_their_criterion_are_no_pass_of_it() -> None:
    (finding,) = findings(executed(), "EX006")
    assert (finding.outcome, finding.level, finding.criterion) == (P, Level.ADVISORY, None)


def elsewhere(**changes: Any) -> ExecutedLines:
    """The code of AC1 was executed by a test that stands for something else."""
    return executed(**{"contexts": (f"test:{OTHER}",), **changes})


@pytest.mark.parametrize("level", list(Level))
def test_tests_that_never_run_the_code_of_their_criterion_leave_it_open(level: Level) -> None:
    task = a_task(entry_points=[], criteria=[a_criterion(level=level)])
    (finding,) = findings(elsewhere(), "EX006", task)
    assert (finding.outcome, finding.level, finding.criterion) == (U, level, "AC1")
    assert str(finding.location) == "pkg/core.py:1-2"
    assert decide([finding]).decision is Decision.INCONCLUSIVE


EXCUSES: dict[str, tuple[ExecutedLines, str]] = {
    "a child of its own test": (elsewhere(children={f"test:{TEST}": "python"}), "another process"),
    "a child of a shared fixture": (elsewhere(children={"fixture:server": "python"}), "another process"),
    "a shared fixture": (elsewhere(contexts=("fixture:shared",)), "a fixture that tests share"),
    "a cache": (elsewhere(functions=(a_function(wrapped=True),)), "a decorator may answer"),
    "the definition on its line": (elsewhere(contexts=("",)), "ran at import"),
    "no function": (elsewhere(functions=(a_function(line=50),)), "no code of its own"),
    "a tracer that was taken away": (elsewhere(lost=(f"test:{TEST}",)), "took the tracer away"),
    "spawned processes": (elsewhere(doubts=("tests used multiprocessing",)), "tests used multiprocessing"),
}


@pytest.mark.parametrize("case", EXCUSES)
def test_nothing_is_said_where_something_else_may_have_run_the_code(case: str) -> None:
    seen, why = EXCUSES[case]
    (finding,) = findings(seen, "EX006")
    assert (finding.outcome, finding.criterion) == (N, None)
    assert why in finding.message


def test_tests_that_import_another_copy_of_the_code_leave_it_open() -> None:
    (finding,) = findings(elsewhere(foreign=("/lib/pkg/core.py",), doubts=("tests used multiprocessing",)), "EX006")
    assert (finding.outcome, finding.criterion) == (U, "AC1")
    assert finding.message.endswith("none was seen to execute pkg.core:double: they import /lib/pkg/core.py.")


TWO = a_task(
    entry_points=[], criteria=[a_criterion(code=[{"symbol": "pkg.core:double"}, {"symbol": "pkg.core:halve"}])]
)
PLACES = {"double": Location(path="pkg/core.py", line=1, last_line=2), "halve": Location(path="pkg/core.py", line=5)}
BOTH = SourceTree(how="", files=1, rules=(), unparsed=(), symbols=tuple(
    SymbolTrace(symbol=f"pkg.core:{name}", wanted=(), location=place) for name, place in PLACES.items()
))  # fmt: skip


def test_symbol_that_no_test_runs_leaves_its_criterion_open() -> None:
    seen = executed(a_function(), a_function("halve", line=5, ran=False))
    (finding,) = findings(seen, "EX006", TWO, tree=BOTH)
    assert (finding.outcome, finding.criterion, finding.subject) == (U, "AC1", "pkg.core:halve")
    assert finding.message.endswith("none executed a line of pkg.core:halve.")
    (finding,) = findings(executed(a_function(), a_function("halve", line=5)), "EX006", TWO, tree=BOTH)
    assert finding.outcome is P


def test_symbol_that_no_test_runs_may_be_run_by_what_else_stands_for_its_criterion() -> None:
    step = {"call": "pkg.core:halve", "name": "half", "args": [2], "expected": 1, "criteria": ["AC1"], "line": 7}
    task = a_task(entry_points=[], criteria=list(TWO.criteria), edge_cases=[step])
    seen = executed(a_function(), a_function("halve", line=5, ran=False))
    (finding,) = findings(seen, "EX006", task, tree=BOTH)
    assert finding.outcome is P


def test_child_of_another_test_excuses_nothing() -> None:
    (finding,) = findings(elsewhere(children={f"test:{OTHER}": "python"}), "EX006")
    assert finding.outcome is U


def test_criterion_that_an_entry_point_shows_is_not_judged() -> None:
    task = a_task(criteria=[a_criterion()])
    (finding,) = findings(elsewhere(), "EX006", task)
    assert (finding.outcome, "entry point" in finding.message) == (N, True)


def test_criterion_without_a_passed_test_is_not_judged_here() -> None:
    (finding,) = findings(elsewhere(), "EX006", run=a_run(a_record(id=OTHER)))
    assert (finding.outcome, "no test that verifies it passed" in finding.message) == (N, True)


def test_class_is_reached_by_any_of_its_methods() -> None:
    where = Location(path="pkg/core.py", line=1, last_line=20)
    trace = SymbolTrace(symbol="pkg.core:double", wanted=(), location=where)
    tree = SourceTree(how="", files=1, symbols=(trace,), rules=(), unparsed=())
    seen = executed(a_function("C.a", ran=False), a_function("C.b", line=5))
    (finding,) = findings(seen, "EX006", tree=tree)
    assert finding.outcome is P


def test_lines_that_were_not_measured_ask_nothing_of_anybody() -> None:
    found = list(judge(TASK, EvidenceSet.withheld("the project measures coverage itself")))
    assert {f.outcome for f in found} == {U}
    assert not any(f.blocks or f.leaves_open or f.criterion for f in found)
    (section,) = describe(TASK, EvidenceSet.withheld("the project measures coverage itself"))
    assert section.text == "Not measured: the project measures coverage itself."


def a_place(line: int, last: int) -> Location:
    return Location(path="pkg/core.py", line=line, last_line=last)


def a_traced(*traces: SymbolTrace) -> SourceTree:
    return SourceTree(how="", files=1, symbols=traces, rules=(), unparsed=())


DOUBLE = SymbolTrace(symbol="pkg.core:double", wanted=(), location=a_place(1, 2))


def test_function_that_never_came_to_life_is_unknown() -> None:
    seen = executed(a_function("other", line=9), aside=(a_function(ran=False),))
    (finding,) = findings(seen, "EX006", tree=a_traced(DOUBLE))
    assert (finding.outcome, finding.actual) == (U, "not executed")


@pytest.mark.parametrize(("test", "outcome"), [(TEST, P), (OTHER, U)])
def test_any_definition_of_several_branches_may_have_run(test: str, outcome: Outcome) -> None:
    seen = executed(a_function(line=9), aside=(a_function(ran=False),), contexts=(f"test:{test}",))
    branches = DOUBLE.model_copy(update={"others": (a_place(9, 10),)})
    assert findings(seen, "EX006", tree=a_traced(branches))[0].outcome is outcome


def test_constant_has_no_code_of_its_own_and_excuses_nothing_beside_it() -> None:
    seen = elsewhere(functions=(a_function("other", line=9),))
    (finding,) = findings(seen, "EX006", tree=a_traced(DOUBLE))
    assert (finding.outcome, "no code of its own" in finding.message) == (N, True)
    limit = SymbolTrace(symbol="pkg.core:halve", wanted=(), location=a_place(20, 20))
    assert findings(elsewhere(), "EX006", TWO, tree=a_traced(limit, DOUBLE))[0].outcome is U
