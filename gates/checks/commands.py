"""Commands that stand for a criterion: do they call its code, and heed its errors?"""

from collections.abc import Iterator

from gates.check import About, Check, EvidenceSet, about_criterion, beside
from gates.evidence.called_code import CalledCode, CommandCall, standing_for
from gates.evidence.tests.pytest_run import PytestRun, tests_of
from gates.model import Finding, Level, Planned, Severity
from gates.task.task import Criterion, Task
from gates.words import in_shell


def plan(task: Task) -> Iterator[Planned]:
    """Plan a check for each criterion that commands stand for."""
    yield from beside(_asked(task), "called", "The commands that verify {} call its code")


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Leave open each criterion of which a measurement, or all that stands for it, ended well without its code."""
    seen = evidence.get(CalledCode)
    for criterion in _asked(task):
        own = [call for call in seen.calls if call.criterion == criterion.id] if seen else []
        past = _past(own, tests=bool(tests_of(task, criterion, evidence.get(PytestRun))))
        about = about_criterion(criterion, "BL017", f"called:{criterion.id}", evidence="CalledCode.json")
        if past is not None:
            yield _open(about.but(location=task.place(criterion)), criterion, past)
        else:
            missing = "" if seen else evidence.why_missing(CalledCode)
            yield _called(about.but(level=Level.ADVISORY), criterion, own, missing)


def _asked(task: Task) -> list[Criterion]:
    return [c for c in task.criteria if any(not binding.rule for binding in c.code) and any(standing_for(task, c))]


def _past(own: list[CommandCall], *, tests: bool) -> CommandCall | None:
    """Return a command that says the same without the code of a criterion, where its part of the task asks for it."""
    for part in dict.fromkeys(call.part for call in own):
        calls = [call for call in own if call.part == part]
        idle = any(call.hoisted for call in calls) or all(call.misses or call.unheard for call in calls)
        if idle and (calls[0].measures or not tests):
            return next((call for call in calls if call.unheard or call.hoisted), calls[0])
    return None


def _open(about: About, criterion: Criterion, call: CommandCall) -> Finding:
    own = ", ".join(binding.name for binding in criterion.code)
    did = f"calls {own} before its steps and in none of them" if call.hoisted else f"ended well without calling {own}"
    facts = {"expected": "a command that calls it", "actual": "not called"}
    facts["impact"] = "It would say the same whatever that code does."
    fix = "Let it call the code, or trace the criterion to the code that it calls."
    if call.unheard:
        did = f"called {own}, which raised, and ended as it always does"
        facts = {"expected": "an end that tells of the error", "actual": "unheard"}
        facts["impact"] = "It would say the same if that code failed with each call."
        fix = "Let the error end it, or assert in a test on what the code does."
    message = f"`{in_shell(call.command)}` ({call.part}) {did}: it says nothing of {criterion.id}."
    return about.unknown(message, fix, subject=call.part, **facts)


def _called(about: About, criterion: Criterion, own: list[CommandCall], missing: str) -> Finding:
    if called := [call for call in own if call.called and not call.hoisted]:
        others, count = [call for call in own if call not in called], f"{len(called)} of {len(own)} commands"
        message = f"Each command that stands for {criterion.id} calls its code."
        if others:
            rest = ", ".join(f"{one.part} ({'no' if one.misses else one.why or 'it failed before'})" for one in others)
            message = f"{count} that stand for {criterion.id} call its code, not {rest}."
        return about.passed(message, actual=count)
    came = any(call.misses for call in own)
    unseen = "tests verify it, too, and no entry point calls it" if came else "no command came so far"
    unseen = next((call.why for call in own if call.why), unseen)
    why = missing or (unseen if own else "something other than functions is bound to it")
    message = f"Whether the commands that verify {criterion.id} call its code was not judged: {why}."
    return about.unknown(message, actual="not judged", severity=Severity.INFO)


CHECK = Check("commands", "business-logic", 40, (), plan, judge)
