"""What of a criterion's code the tests ran: one line, several branches, and what never came to life."""

from typing import Any

import pytest
from building import a_criterion, a_run, a_task, evidence
from covering import TEST, a_function, executed

from gates.checks.coverage.judge import describe, judge
from gates.code.symbols import SymbolTrace
from gates.evidence.lines.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.model import Finding, Location, Outcome

P, U, N = Outcome.PASSED, Outcome.UNKNOWN, Outcome.NOT_APPLICABLE
TASK = a_task(entry_points=[], criteria=[a_criterion(code=[{"symbol": "pkg.core:double"}])])
OWN, OTHER = f"test:{TEST}", "test:tests/test_other.py::test_x"


def a_place(line: int, last: int) -> Location:
    return Location(path="pkg/core.py", line=line, last_line=last)


def a_trace(*others: Location, symbol: str = "pkg.core:double", place: Location | None = None) -> SymbolTrace:
    return SymbolTrace(symbol=symbol, wanted=(), location=place or a_place(1, 2), others=others)


def found(seen: ExecutedLines, *traces: SymbolTrace, **changes: Any) -> tuple[Finding, tuple[str, ...]]:
    task = changes.get("task", TASK)
    tree = SourceTree(how="", files=1, symbols=traces or (a_trace(),), rules=(), unparsed=())
    pieces = evidence(seen, a_run(), tree)
    (finding,) = [one for one in judge(task, pieces) if one.rule == "EX006"]
    rows = [s.rows[0] for s in describe(task, pieces) if s.title == "Tests That Executed the Code of Each Criterion"]
    return finding, rows[0]


def test_function_that_never_came_to_life_is_unknown() -> None:
    finding, _ = found(executed(a_function("other", line=9), aside=(a_function(ran=False),)))
    assert (finding.outcome, finding.actual) == (U, "not executed")


@pytest.mark.parametrize(("contexts", "outcome"), [((OWN,), P), ((OTHER,), U)])
def test_any_definition_of_several_branches_may_have_run(contexts: tuple[str, ...], outcome: Outcome) -> None:
    seen = executed(a_function(line=9), aside=(a_function(ran=False),), contexts=contexts)
    assert found(seen, a_trace(a_place(9, 10)))[0].outcome is outcome


def test_constant_has_no_code_of_its_own() -> None:
    finding, row = found(executed(a_function("other", line=9), contexts=(OTHER,)))
    assert (finding.outcome, "no code of its own" in finding.message) == (N, True)
    assert row[2:] == ("no code of its own", "-")


def test_constant_beside_a_function_excuses_nothing() -> None:
    code = [{"symbol": "pkg.core:LIMIT"}, {"symbol": "pkg.core:double"}]
    task = a_task(entry_points=[], criteria=[a_criterion(code=code)])
    traces = (a_trace(symbol="pkg.core:LIMIT", place=a_place(20, 20)), a_trace())
    assert found(executed(contexts=(OTHER,)), *traces, task=task)[0].outcome is U
