"""Tests that had something else in the place of the code of a criterion, judged on built evidence."""

from typing import Any

import pytest
from building import a_criterion, a_record, a_run, a_task, a_tree, evidence
from covering import TEST, a_function, executed

from gates.check import EvidenceSet
from gates.code.symbols import SymbolTrace
from gates.evidence.executed_lines import ExecutedLines
from gates.evidence.source_tree import SourceTree
from gates.evidence.stand_ins import Instead, StandIn
from gates.evidence.test_records import TestRecord
from gates.model import Finding, Level, Location, Outcome
from gates.stages._coverage import describe, judge
from gates.stages._stand_ins import TITLE

TASK = a_task(entry_points=[], criteria=[a_criterion()])
SECOND = "tests/test_core.py::test_x"
BOTH = {"contexts": (f"test:{TEST}", f"test:{SECOND}"), "sets": ("0-1",)}
CLASS = Location(path="pkg/core.py", line=1, last_line=20)


def having(kind: str, name: str = "double", line: int = 1, **facts: Any) -> TestRecord:
    stand_in = StandIn(name=f"pkg/core.py:{name}", line=line, kind=Instead(kind), by="tests/conftest.py:3")
    return a_record(replaced=(stand_in,), **facts)


def reached(seen: ExecutedLines | None, *tests: TestRecord, tree: SourceTree | None = None) -> Finding:
    pieces = [piece for piece in (seen, a_run(*tests), tree or a_tree(TASK)) if piece is not None]
    return next(one for one in judge(TASK, evidence(*pieces)) if one.rule == "EX006" and one.outcome in SAID)


SAID = {Outcome.PASSED, Outcome.UNKNOWN}
OPEN: dict[str, tuple[ExecutedLines, tuple[TestRecord, ...], str]] = {
    "it is replaced": (executed(), (having("object"),), "whenever it runs pkg.core:double, something else stands in"),
    "its values are changed": (executed(), (having("value"),), "it reads what pkg/core.py does not say: tests/con"),
    "other code runs": (executed(), (having("code"),), "is not the code of pkg/core.py: tests/conftest.py:3"),
    "other code runs in one test": (executed(**BOTH), (a_record(id=SECOND), having("code")), "is not the code of"),
    "the other test runs another function": (executed(), (having("object"), a_record(id=SECOND)), "in the place of"),
    "the other test changes it too": (executed(**BOTH), (having("object"), having("value", id=SECOND)), "in the place"),
    "the other test asserts nothing": (executed(**BOTH), (having("object"), a_record(id=SECOND, executed=0)), "place"),
    "the other test stands for nothing": (
        executed(),
        (having("object"), a_record(id="tests/test_other.py::test_x", location=Location(path="tests/test_other.py"))),
        "something else stands in the place of double",
    ),
}


@pytest.mark.parametrize("case", OPEN)
def test_criterion_is_open_where_no_test_ran_the_code_as_it_is_shipped(case: str) -> None:
    seen, tests, said = OPEN[case]
    finding = reached(seen, *tests)
    assert (finding.outcome, finding.level, finding.criterion) == (Outcome.UNKNOWN, Level.MUST, "AC1")
    assert said in finding.message
    assert finding.leaves_open


GOOD: dict[str, tuple[ExecutedLines, tuple[TestRecord, ...]]] = {
    "one of two replaces it": (executed(**BOTH), (having("object"), a_record(id=SECOND))),
    "one of two changes a value": (executed(**BOTH), (having("value"), a_record(id=SECOND))),
    "the other may have run it unseen": (
        executed(children={f"test:{SECOND}": "python"}), (having("object"), a_record(id=SECOND)),
    ),
    "it is answered from a cache": (executed(a_function(cached=True)), (having("object"), a_record(id=SECOND))),
    "it changes a constant": (executed(), (having("constant"),)),
    "both change a constant": (executed(**BOTH), (having("constant"), having("constant", id=SECOND))),
    "one changes a value, one a constant": (executed(**BOTH), (having("value"), having("constant", id=SECOND))),
    "it replaces something else": (executed(), (having("object", "other", line=30),)),
}  # fmt: skip


@pytest.mark.parametrize("case", GOOD)
def test_one_test_of_the_code_as_it_is_shipped_is_enough(case: str) -> None:
    seen, tests = GOOD[case]
    assert reached(seen, *tests).outcome is Outcome.PASSED


@pytest.mark.parametrize("ran", [True, False])
def test_method_of_a_class_may_be_replaced_unless_it_runs_in_no_other_way(*, ran: bool) -> None:
    trace = SymbolTrace(symbol="pkg.core:double", wanted=(), location=CLASS)
    tree = SourceTree(how="", files=1, symbols=(trace,), rules=(), unparsed=())
    seen = executed(a_function("C.a"), a_function("C.send", line=5, ran=ran))
    finding = reached(seen, having("object", "C.send", line=5), tree=tree)
    assert finding.outcome is (Outcome.UNKNOWN if ran else Outcome.PASSED)


def test_code_of_others_is_told_where_lines_were_not_measured() -> None:
    assert reached(None, having("code")).outcome is Outcome.UNKNOWN
    found = list(judge(TASK, evidence(a_run(having("object")), a_tree(TASK))))
    assert [one.leaves_open for one in found if one.criterion] == [True]


def test_single_tests_are_listed_in_the_report() -> None:
    seen = evidence(executed(**BOTH), a_run(having("value"), a_record(id=SECOND)), a_tree(TASK))
    (section,) = (one for one in describe(TASK, seen) if one.title == TITLE)
    assert section.rows == (("AC1", "pkg/core.py:double", "tests/conftest.py:3", TEST),)
    assert not any(one.title == TITLE for one in describe(TASK, EvidenceSet.withheld("nothing ran")))


def test_constant_that_all_tests_change_is_told() -> None:
    assert "another constant than is shipped: tests/conftest.py:3" in reached(executed(), having("constant")).message
    one_of_two = reached(executed(**BOTH), having("constant"), a_record(id=SECOND))
    assert "another constant" not in one_of_two.message


def test_constant_that_a_criterion_is_traced_to_may_not_be_another_one() -> None:
    code = [{"symbol": "pkg.core:double"}, {"symbol": "pkg.core:BY"}]
    task = a_task(entry_points=[], criteria=[a_criterion(code=code)])
    stand_in = StandIn(name="pkg/core.py:double", line=1, kind=Instead.CONSTANT, by="`BY` is 3", constants=("BY",))
    seen = evidence(executed(), a_run(a_record(replaced=(stand_in,))), a_tree(task))
    (finding,) = (one for one in judge(task, seen) if one.criterion)
    assert finding.leaves_open
    assert "a constant that it names has another value: `BY` is 3" in finding.message
