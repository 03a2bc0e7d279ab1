"""The part of the business logic gate on commands: do those that stand for a criterion call its code, and heed it?"""

from collections.abc import Iterator
from functools import partial

from gates.check import Check, EvidenceSet, about_criterion
from gates.evidence.called_code import CalledCode, CommandCall, standing_for
from gates.evidence.tests.bound_tests import tests_of
from gates.evidence.tests.pytest_run import PytestRun
from gates.model import Finding, Level, Outcome, Planned, RuleText
from gates.report import Section
from gates.task.task import Criterion, Task
from gates.words import in_shell

RAW = "CalledCode.json"
RULES = (
    RuleText(
        id="BL017",
        title="Commands that verify a criterion call its code",
        meaning="Measurements and entry points run in a copy in which the criterion's functions raise. "
        "One that ends well without calling them, or ignores their errors, leaves the criterion "
        "unknown.",
    ),
)


def plan(task: Task) -> Iterator[Planned]:
    """Plan a check for each criterion that commands stand for."""
    for criterion in _asked(task):
        title = f"The commands that verify {criterion.id} call its code"
        yield Planned(
            id=f"called:{criterion.id}", title=title, level=Level.ADVISORY, criterion=criterion.id, scored=False
        )


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Leave open each criterion of which a measurement, or all that stands for it, ended well without its code."""
    seen = evidence.get(CalledCode)
    for criterion in _asked(task):
        own = [call for call in seen.calls if call.criterion == criterion.id] if seen else []
        past = _past(own, tests=bool(tests_of(task, criterion, evidence.get(PytestRun))))
        if past is not None:
            yield _open(task, criterion, past)
        else:
            yield _told(criterion, own, "" if seen else evidence.why_missing(CalledCode))


def describe(_task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Tell of each command whether it called the code of its criterion."""
    seen = evidence.get(CalledCode)
    if seen is not None and seen.calls:
        yield Section(
            title="Commands and the Code That They Verify",
            text="Each command ran once more in a copy, in which the code of its criterion leaves a mark and raises.",
            columns=("Calls the code", "Criterion", "Command"),
            rows=tuple(dict.fromkeys(map(_row, seen.calls))),  # arms may differ in their arguments alone
        )


def _asked(task: Task) -> list[Criterion]:
    return [c for c in task.criteria if any(not binding.rule for binding in c.code) and any(standing_for(task, c))]


def _past(own: list[CommandCall], *, tests: bool) -> CommandCall | None:
    """Return a command that says the same without the code of a criterion, where its part of the task asks for it."""
    for part in dict.fromkeys(call.part for call in own):
        calls = [call for call in own if call.part == part]
        idle = any(call.hoisted for call in calls) or all(call.misses or call.unheard for call in calls)
        if idle and not (part == "entry point" and tests):
            return next((call for call in calls if call.unheard or call.hoisted), calls[0])
    return None


def _open(task: Task, criterion: Criterion, call: CommandCall) -> Finding:
    """Say that a command calls none of the code, or says the same when that raises."""
    names = ", ".join(binding.name for binding in criterion.code)
    did = f"ended well without calling {names}"
    expected, impact = "a command that calls it", "It would say the same whatever that code does."
    fix = "Let it call the code, or trace the criterion to the code that it calls."
    if call.unheard:
        did = f"called {names}, which raised, and ended as it always does"
        expected, impact = "an end that tells of the error", "It would say the same if that code failed with each call."
        fix = "Let the error end it, or assert in a test on what the code does."
    elif call.hoisted:
        did = f"calls {names} before its steps and in none of them"
    about = about_criterion(criterion, "BL017", f"called:{criterion.id}")
    said = partial(about, outcome=Outcome.UNKNOWN, location=task.place(criterion), subject=call.part, evidence=RAW)
    message = f"`{in_shell(call.command)}` ({call.part}) {did}: it says nothing of {criterion.id}."
    actual = "unheard" if call.unheard else "not called"
    return said(message=message, expected=expected, actual=actual, impact=impact, remediation=fix)


def _told(criterion: Criterion, own: list[CommandCall], missing: str) -> Finding:
    called = [call for call in own if call.called and not call.hoisted]
    about = partial(about_criterion(criterion, "BL017", f"called:{criterion.id}"), level=Level.ADVISORY, evidence=RAW)
    if called:
        share = "Each command" if len(called) == len(own) else f"{len(called)} of the {len(own)} commands"
        verbs = ("verifies", "calls") if len(called) == len(own) else ("verify", "call")
        message = f"{share} that {verbs[0]} {criterion.id} {verbs[1]} its code."
        return about(outcome=Outcome.PASSED, actual=f"{len(called)} of {len(own)} commands", message=message)
    came = any(call.misses for call in own)
    unseen = "tests verify it, too, and no entry point calls it" if came else "no command came so far"
    unseen = next((call.why for call in own if call.why), unseen)
    why = missing or (unseen if own else "something other than functions is bound to it")
    message = f"Whether the commands that verify {criterion.id} call its code was not judged: {why}."
    return about(outcome=Outcome.NOT_APPLICABLE, actual="not judged", message=message)


def _row(call: CommandCall) -> tuple[str, str, str]:
    return _says(call), call.criterion, f"{call.part}: {in_shell(call.command)}"


def _says(call: CommandCall) -> str:
    if call.hoisted:
        return "no: before its steps alone"
    if call.called or call.misses:
        return "yes, and ignored its error" if call.unheard else "yes" if call.called else "no"
    return f"not known: {call.why or 'it failed before'}"


CHECK = Check(
    name="commands", gate="business-logic", order=40, rules=RULES, uses=(), plan=plan, judge=judge, page=describe
)
