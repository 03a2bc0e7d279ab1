"""Commands that never call the code that they stand for leave its criterion open."""

from typing import Any

from building import a_criterion, a_measure, a_record, a_run, a_task, evidence

from gates.check import EvidenceSet
from gates.checks import commands as _commands
from gates.evidence.called_code import CalledCode, CommandCall
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Level, Outcome, Severity
from gates.task.task import Task

MEASURED = a_task(criteria=[a_criterion(measures=[a_measure()], tests=[])], entry_points=[])
ENTRY = {"run": ["python", "-m", "pkg"], "criteria": ["AC1"], "line": 6}


def a_call(**changes: Any) -> CommandCall:
    """A command that ended well and called nothing."""
    facts = {"criterion": "AC1", "part": "measurement bench", "measures": True, "command": ("python", "b.py")}
    return CommandCall.model_validate({**facts, "called": False, "ended_well": True, **changes})


def judged(*calls: CommandCall, task: Task = MEASURED, run: PytestRun | None = None) -> Finding:
    (finding,) = _commands.judge(task, evidence(CalledCode(how="in a copy", calls=calls), *filter(None, [run])))
    return finding


def test_a_measurement_that_ends_well_without_the_code_says_nothing() -> None:
    found = judged(a_call())
    assert (found.outcome, found.level, found.severity) == (Outcome.UNKNOWN, Level.MUST, Severity.HIGH)
    assert found.message.startswith("`python b.py` (measurement bench) ended well without calling pkg.core:double")
    assert found.leaves_open


def test_one_arm_that_calls_the_code_is_enough() -> None:
    found = judged(a_call(), a_call(called=True, ended_well=False))
    assert (found.outcome, found.actual) == (Outcome.PASSED, "1 of 2 commands")


def test_a_command_that_takes_no_notice_of_an_error_says_nothing() -> None:
    found = judged(a_call(called=True))
    assert (found.outcome, found.severity, found.actual) == (Outcome.UNKNOWN, Severity.HIGH, "unheard")
    assert found.message.startswith("`python b.py` (measurement bench) called pkg.core:double, which raised, and ended")
    assert judged(a_call(called=True), a_call()).actual == "unheard"
    assert judged(a_call(called=True), a_call(called=True, ended_well=False)).outcome is Outcome.PASSED


def test_an_arm_that_calls_the_code_before_its_steps_alone_says_nothing() -> None:
    hoisted = a_call(called=True, ended_well=False, hoisted=True)
    found = judged(a_call(), hoisted)
    assert (found.outcome, found.actual) == (Outcome.UNKNOWN, "not called")
    assert "(measurement bench) calls pkg.core:double before its steps and in none of them: it says" in found.message
    assert judged(hoisted, a_call(called=True, ended_well=False)).outcome is Outcome.UNKNOWN  # the other arm does work


def test_a_command_that_fails_before_says_nothing() -> None:
    found = judged(a_call(ended_well=False))
    assert (found.outcome, found.level) == (Outcome.UNKNOWN, Level.ADVISORY)


def test_an_entry_point_is_asked_where_no_test_stands_for_the_criterion() -> None:
    alone = a_task(criteria=[a_criterion(tests=[])], entry_points=[ENTRY])
    beside = a_task(criteria=[a_criterion()], entry_points=[ENTRY])
    marked = a_run(a_record(criteria=("T1/AC1",)))
    call = a_call(part="entry point", measures=False)
    assert judged(call, task=alone).outcome is Outcome.UNKNOWN
    assert judged(call, task=alone, run=marked).outcome is Outcome.UNKNOWN
    assert judged(call, task=beside, run=a_run()).outcome is Outcome.UNKNOWN
    assert judged(call, task=beside, run=a_run(tests=())).outcome is Outcome.UNKNOWN


def test_a_command_of_which_nobody_can_tell_says_why() -> None:
    found = judged(a_call(why="nobody can tell"))
    assert (found.outcome, found.level) == (Outcome.UNKNOWN, Level.ADVISORY)
    assert "nobody can tell" in found.message


def test_what_was_not_seen_is_told() -> None:
    (found,) = _commands.judge(MEASURED, EvidenceSet(why="no copy could be made"))
    assert (found.outcome, found.level) == (Outcome.UNKNOWN, Level.ADVISORY)
    assert "no copy could be made" in found.message


def test_the_commands_that_were_not_seen_to_call_the_code_are_named() -> None:
    found = judged(a_call(called=True, ended_well=False), a_call(ended_well=False), a_call(why="no copy"))
    assert found.outcome is Outcome.PASSED
    assert "not measurement bench (it failed before), measurement bench (no copy)" in found.message
