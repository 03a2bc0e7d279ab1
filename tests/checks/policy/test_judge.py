"""BL011: what of a lowered bar stops the change, and what is only listed."""

import pytest
from bar import a_move, unmoved
from building import a_finding, a_task, evidence

from gates.checks.policy.judge import Goalposts, Mode, judge, plan
from gates.checks.policy.moves import Part
from gates.criteria import decide
from gates.model import Basis, Decision, Finding, Level, Outcome, Severity

F, P, U = Outcome.FAILED, Outcome.PASSED, Outcome.UNKNOWN


def judged(seen: Goalposts | None) -> list[Finding]:
    return list(judge(a_task(), evidence(*([seen] if seen else []))))


def verdict(seen: Goalposts) -> Decision:
    return decide([a_finding(), *judged(seen)]).decision


def test_lowered_bar_is_named_before_and_after() -> None:
    (finding,) = judged(unmoved(a_move()))
    assert finding.message == "AC2 speedup at_least: 1.5 -> 1.2"
    assert (finding.outcome, finding.level, finding.severity) == (F, Level.MUST, Severity.HIGH)
    assert str(finding.location) == "tasks/T1.yaml:14"
    assert finding.criterion is None


STOPS = {
    (Mode.BAR, False): {Part.BAR},
    (Mode.ALL, False): set(Part) - {Part.CHANGED},
    (Mode.LIST, False): set(),
    (Mode.BAR, True): set(),
    (Mode.ALL, True): {Part.TESTS, Part.SETTINGS},
    (Mode.LIST, True): set(),
}


@pytest.mark.parametrize("part", Part)
@pytest.mark.parametrize(("mode", "by_base"), STOPS)
def test_what_stops_a_change_follows_from_who_judges(mode: Mode, by_base: bool, part: Part) -> None:
    stops = part in STOPS[mode, by_base]
    assert verdict(unmoved(a_move(part), mode=mode, by_base=by_base)) is (Decision.BLOCK if stops else Decision.PASS)


def test_missing_history_is_unknown_and_neither_stops_nor_speaks_for_the_change() -> None:
    (finding,) = judged(None)
    assert (finding.outcome, finding.level) == (U, Level.ADVISORY)
    assert decide([a_finding(), finding]).decision is Decision.PASS
    assert decide([finding.model_copy(update={"basis": Basis.DECLARED})]).decision is Decision.INCONCLUSIVE


def test_bar_that_stands_says_nothing_of_the_work() -> None:
    (finding,) = judged(unmoved())
    assert finding.outcome is P
    assert finding.message == (
        "None of the limits, bindings, tests and settings that are compared asks for less than at main (bbbbbbbbbbbb)."
    )
    assert decide([finding.model_copy(update={"basis": Basis.DECLARED})]).decision is Decision.INCONCLUSIVE


def test_what_was_not_compared_is_unknown_beside_what_was() -> None:
    assert [f.outcome for f in judged(unmoved(unread=("a.py",)))] == [U]
    assert [f.outcome for f in judged(unmoved(a_move(), unread=("a.py",)))] == [F, U]


def test_task_that_is_new_has_no_earlier_bar() -> None:
    assert [f.message for f in judged(unmoved(is_new=True))] == ["The task is new since main (bbbbbbbbbbbb)."]
    assert [check.scored for check in plan(a_task())] == [False]
