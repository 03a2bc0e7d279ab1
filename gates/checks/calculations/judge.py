"""Do the formulas of a task come out as stated, at the table's inputs and at the edges? Each is called, then judged."""

import math
from collections.abc import Iterator
from enum import StrEnum
from pathlib import PurePosixPath
from typing import Any, ClassVar, Self, TypeAlias

from pydantic import JsonValue

from gates.check import About, Check, Evidence, EvidenceSet, Said
from gates.checks.calculations.spec import Called, Case, EdgeCase, Tried, as_written, input_of, is_made, tried
from gates.child.calculating import IMPORT_S
from gates.child.probing import Probe, Probed
from gates.child.values import Unseen, differences, encode, numbers_in, plain, shown
from gates.config import Context
from gates.errors import Absent
from gates.evidence.source_tree import SourceTree
from gates.evidence.tests.pytest_run import PytestRun, tests_of
from gates.model import Finding, Level, Location, Model, Outcome, Planned, Row
from gates.report import Section
from gates.task.task import Criterion, Task
from gates.words import counted, visible

Asked: TypeAlias = dict[str, Any]
CALL_S = 60.0


class Ended(StrEnum):
    """How a call ended; all but the first two mean that nothing of its result was seen."""

    RETURNED = "returned"
    RAISED = "raised"
    CRASHED = "crashed"
    STOPPED = "stopped"
    NOT_RUN = "not run"


class Warning_(Model):  # noqa: N801  # a warning that a call gave
    """A warning: the names that it can be expected by, and its message."""

    kinds: tuple[str, ...]
    message: str


class CallRun(Model):
    """One call.

    `returned` is the value in the JSON of `encode`, `error` the names that the exception can be expected by, `crash`
    the innermost line of the project that it came from, `place` the function's. `again` is the same call once more,
    where that came to something else. `ran` are the functions of the project that ran in it, where that was seen.
    """

    id: str = ""
    ended: Ended
    problem: str = ""
    returned: JsonValue = None
    error: tuple[str, ...] = ()
    message: str = ""
    crash: Location | None = None
    importing: bool = False
    place: Location | None = None
    warnings: tuple[Warning_, ...] = ()
    again: "CallRun | None" = None
    ran: tuple[Location, ...] | None = None

    @property
    def at(self) -> Location | None:
        """Return the line that an error came from, or that of the function."""
        return self.crash or self.place


class Calculations(Evidence):
    """All calls that a task's calculations and edge cases ask for."""

    noted: ClassVar[bool] = True
    calls: tuple[CallRun, ...]

    def call(self, call_id: str) -> CallRun | None:
        """Return the call of an id."""
        return next((call for call in self.calls if call.id == call_id), None)

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Make every call in a fork of a process of the project's interpreter."""
        if not (asked := [*_asked(task, min(CALL_S, context.timeout_s))]):
            raise Absent(f"{task.path} names no 'calculations' or 'edge_cases'")
        probe = Probe(context, task, context.folder("calculations").evidence)
        modules = {call.get("call", "").partition(":")[0] for call in asked}
        limit = IMPORT_S * len(modules) + sum(call["limit_s"] + 1 for call in asked)
        # one thread each: those that a module started do not live on in a fork
        seen = probe.ask("calculating", "told", {"calls": asked}, limit)
        told = {line["id"]: line for line in seen.of("call")}
        calls = [told.get(one["id"]) or _untold(one, seen) for one in asked]
        record = f"{counted(len(asked), 'call')} of the project's functions"
        commands = (seen.process.as_command("calculations", (record,)),) if seen.process else ()
        return cls.model_validate({"how": f"{record}, each in a fork", "commands": commands, "calls": calls})


def _asked(task: Task, limit_s: float) -> Iterator[Asked]:
    """Yield what to call; what must come of it stays here, but for what only the project's interpreter can make."""
    cases = [(one.part, name, case) for one in tried(task) for name, case in one.cases.items()]
    for part, name, case in cases:
        instance = part.instance.model_dump(exclude={"line"}) if part.instance else None
        given = {"instance": instance, "args": [*case.args], "kwargs": case.kwargs}
        yield {"id": name, "call": part.call, "take": part.take, **given, "limit_s": part.timeout_s or limit_s}
    for _, name, case in cases:
        if is_made(case.expected):
            yield {"id": f"expected:{name}", "build": case.expected, "limit_s": limit_s}


def _untold(call: Asked, seen: Probed) -> Asked:
    """Return why nothing was told of a call: the process did not live to make it."""
    ended = seen.process.ended if seen.process else seen.problem
    modules = [line["module"] for line in seen.of("importing")]
    why = f"nothing was called: {seen.process.last_words}" if seen.process else ended
    why = f"the import of {modules[-1]} ended the process: {ended}" if modules else why
    own = bool(modules) and modules[-1] == call.get("call", "").partition(":")[0]
    return {"id": call["id"], "ended": "not run", "problem": why, "importing": own}


TABLES = {"BL008": ("Calculations", "Correct", "Formula"), "BL009": ("Edge Cases", "Handled", "Case")}
LABELS = {"BL008": "calculation", "BL009": "edge case"}
SAID = {Outcome.PASSED: "yes", Outcome.FAILED: "NO", Outcome.UNKNOWN: "not seen"}


Rows = list[tuple[Said, CallRun | None]]  # what is said of each call, whose subject is the input


def plan(task: Task) -> Iterator[Planned]:
    """Plan each calculation and edge case once for each criterion that it names, or once for the task."""
    for one in tried(task):
        for check, named, level in _checks(task, one):
            title = f"{named}: {one.title}" if named else one.title
            yield Planned(id=check, title=title, level=level, criterion=named, label=LABELS[one.rule])


def judge(task: Task, evidence: EvidenceSet) -> Iterator[Finding]:
    """Judge each call by what came of it, and what stands alone for a criterion by whether it runs its code."""
    astray = [criterion for criterion in task.criteria if _misses_code(task, criterion, evidence)]
    for one in tried(task):
        told = _told(task, one, _rows(task, one, evidence))
        for check, named, level in _checks(task, one):
            said = [(one.rule, each) for each in told]
            said += [("BL018", _astray(one, each)) for each in astray if each.id == named]
            for rule, each in said:
                facts = {"message": visible(" ".join(each.message.split())), "level": level}
                about = About(check=check, criterion=named, rule=rule)
                yield about.says(each, location=each.location or task.place(one.part), **facts)


def page(task: Task, evidence: EvidenceSet) -> Iterator[Section]:
    """Show every call with its input, what was expected and what came of it."""
    for rule, (title, *first) in TABLES.items():
        if rows := [(one.name, s) for one in tried(task) if one.rule == rule for s, _ in _rows(task, one, evidence)]:
            missing = "" if evidence.get(Calculations) else f" Not run: {evidence.why_missing(Calculations)}."
            text = f"{sum(said.outcome is Outcome.PASSED for _, said in rows)} of {len(rows)} as stated.{missing}"
            cells = ((SAID[s.outcome], name, s.subject, s.expected, s.actual) for name, s in rows)
            yield Section(title=title, text=text, columns=(*first, "Input", "Expected", "Actual"), rows=tuple(cells))


def _checks(task: Task, one: Tried) -> Iterator[tuple[str, str | None, Level]]:
    """Yield the checks of a part: for each criterion that it names, or one that is the task's own."""
    if not one.part.criteria:
        yield one.check, None, Level.MUST
    yield from ((f"{one.check}:{each.id}", each.id, each.level) for each in task.criteria_of(one.part))


def _told(task: Task, one: Tried, rows: Rows) -> list[Said]:
    """Return what is said of a part: of each row that did not come out, or of all together."""
    call, first = one.part.call, next((run.at for _, run in rows if run and run.at), None)
    if bad := [said for outcome in (Outcome.FAILED, Outcome.UNKNOWN) for said, _ in rows if said.outcome is outcome]:
        return bad
    named = {PurePosixPath(folder).stem for path in task.implementation for folder in PurePosixPath(path).parts}
    if first is None and call.partition(":")[0].split(".")[0] not in named:
        message = f"{call} lies outside of the implementation: that it is right says nothing of it."
        expected, fix = "code of the implementation", "Call a function of the implementation."
        return [Said(Outcome.UNKNOWN, message, "foreign code", None, expected, remediation=fix, subject=call)]
    if len(rows) == 1:
        return [rows[0][0]]
    message, subject = f"All {len(rows)} rows of {call} hold.", f"{len(rows)} rows"
    return [Said(Outcome.PASSED, message, SAID[Outcome.PASSED], first, "as stated", subject=subject)]


def _misses_code(task: Task, criterion: Criterion, evidence: EvidenceSet) -> bool:
    """Return whether calculations alone stand for a criterion, and none was seen to run one of its functions."""
    parts, tree = task.shown_by(criterion), evidence.get(SourceTree)
    alone = all(isinstance(part, Called) for part in parts) and not criterion.measures
    if not parts or not alone or tree is None or tests_of(task, criterion, evidence.get(PytestRun)) or criterion.tests:
        return False
    traces = [tree.symbol(binding) for binding in criterion.code if binding.symbol]
    if not traces or len(traces) < len(criterion.code):
        return False
    runs = [run for one in tried(task) if one.part in parts for _, run in _rows(task, one, evidence)]
    ran = [run.ran if run else None for run in runs]
    places = [trace.location for trace in traces if trace and trace.location and trace.is_function]
    seen = [place for each in ran for place in each or ()]
    return len(places) == len(traces) and None not in ran and not any(p.meets(one) for p in seen for one in places)


def _astray(one: Tried, criterion: Criterion) -> Said:
    names = ", ".join(binding.name for binding in criterion.code)
    message = f"What verifies {criterion.id} does not run its code: {one.part.call} did not call {names}."
    fix = f"Trace {criterion.id} to the code that is called, or call that code."
    about = ("its code is not run", None, "something that runs its code", "", fix, f"code of {criterion.id}")
    return Said(Outcome.UNKNOWN, message, *about)


SHOWN = 3
Judged = tuple[Outcome, str, str]  # what came of a call, and that in words


def _rows(task: Task, one: Tried, evidence: EvidenceSet) -> Rows:
    seen, why = evidence.get(Calculations), evidence.why_missing(Calculations)
    is_edge = isinstance(one.part, EdgeCase)
    rows = []
    for name, case in one.cases.items():
        run, made = (seen.call(name), seen.call(f"expected:{name}")) if seen else (None, None)
        outcome, actual, told = _judged(case, run, made if run else None, why)
        given, place = input_of(one.part, case), (run.at if run else None) or task.place(case)
        impact = "The edge case is not handled." if is_edge else "Numbers made by it are wrong."
        told = f"{one.name}: {given} {told}" if is_edge else f"{given} {told}"
        about = (_wanted(case, made if run else None), impact if outcome is Outcome.FAILED else "")
        rows.append((Said(outcome, told, actual, place, *about, _remedy(outcome, run, one.part.call), given), run))
    return rows


def _judged(case: Case, run: CallRun | None, made: CallRun | None, why: str) -> Judged:
    if run is None:
        return Outcome.UNKNOWN, "not called", f"was not called: {why}"
    if run.ended in {Ended.NOT_RUN, Ended.STOPPED}:
        return Outcome.UNKNOWN, "not seen", f"was not seen: {run.problem}"
    if run.ended is Ended.CRASHED:
        return Outcome.FAILED, run.problem, f"ended badly: {run.problem}"
    if run.ended is Ended.RAISED:
        return _raised(case, run)
    if made is not None and made.ended is not Ended.RETURNED:
        why_not = made.problem or _error(made)
        return Outcome.UNKNOWN, _as_text(run.returned), f"was not judged: 'expected' cannot be made: {why_not}"
    return _returned(case, run, made)


def _raised(case: Case, run: CallRun) -> Judged:
    actual = f"raised {_error(run)}"
    if run.importing:
        return Outcome.FAILED, actual, f"could not be called: the import of its module {actual}"
    if case.raises is None or case.raises not in run.error:
        return Outcome.FAILED, actual, f"{actual}, expected {_wanted(case, None)}"
    if case.says and case.says not in run.message:
        return Outcome.FAILED, actual, f"{actual}, expected a message with {case.says!r}"
    if case.warns and not any(case.warns in warning.kinds for warning in run.warnings):
        return Outcome.FAILED, f"{actual}, no {case.warns}", f"{actual}, expected the warning {case.warns} as well"
    return Outcome.PASSED, actual, f"{actual}, as stated."


def _returned(case: Case, run: CallRun, made: CallRun | None) -> Judged:
    if run.again is not None:
        return _twice(case, run, run.again, made)
    actual, wrong = _as_text(run.returned), [*_wrong(case, run, made)]
    if wrong and all(isinstance(one, Unseen) for one in wrong):
        return Outcome.UNKNOWN, actual, f"was not judged: it returned {wrong[0]}"
    if wrong:
        more = f" and {len(wrong) - SHOWN} more differences" if len(wrong) > SHOWN else ""
        told = f"{'; '.join(wrong[:SHOWN])}{more}"
        return Outcome.FAILED, actual, f"returned {told if told.startswith(actual) else f'{actual}: {told}'}"
    return Outcome.PASSED, actual, f"returned {actual}, as stated."


def _twice(case: Case, run: CallRun, again: CallRun, made: CallRun | None) -> Judged:
    """Judge a call that came to something else when it was made again: within the tolerance both times, it passes."""
    first, other = _judged(case, run.model_copy(update={"again": None}), made, ""), _judged(case, again, made, "")
    returned = again.ended is Ended.RETURNED
    wrong = first[0] is Outcome.FAILED or (returned and other[0] is Outcome.FAILED)
    if returned and not wrong:
        return first
    told = f"returned {first[1]}, and called again with the same input {other[1]}; expected {_wanted(case, made)}"
    # where it only cannot be called twice, nothing wrong was seen
    return Outcome.FAILED if wrong else Outcome.UNKNOWN, f"{first[1]}, then {other[1]}", told


def _wrong(case: Case, run: CallRun, made: CallRun | None) -> Iterator[str]:
    if case.raises:
        yield f"expected {_wanted(case, None)}"
    if case.returns:
        expected = made.returned if made and is_made(case.expected) else encode(plain(case.expected))
        yield from differences(expected, run.returned, tolerance=case.tolerance, relative=case.relative)
    numbers = [*numbers_in(run.returned)]
    if case.finite and not (numbers and all(-math.inf < number < math.inf for number in numbers)):
        yield "expected finite numbers"
    if case.warns:
        given = [warning for warning in run.warnings if case.warns in warning.kinds]
        kinds = sorted({warning.kinds[0] for warning in run.warnings})
        if not given:
            yield f"expected the warning {case.warns}, found {', '.join(kinds) or 'none'}"
        elif case.says and not any(case.says in warning.message for warning in given):
            yield f"expected a {case.warns} with {case.says!r}, found {given[0].message!r}"


def _wanted(case: Case, made: CallRun | None) -> str:
    says = f" with {case.says!r}" if case.says else ""
    if case.raises:
        return f"{case.raises}{says}" + (f" and the warning {case.warns}" if case.warns else "")
    value = _as_text(made.returned if made else as_written(case.expected)) if case.returns else ""
    warns = f"the warning {case.warns}{says}" if case.warns else ""
    near = "" if case.tolerance is None else f"within {case.tolerance:g}"
    share = "" if case.relative is None else f"within {case.relative:g} of it"
    return ", ".join(filter(None, (value, "finite numbers" if case.finite else "", warns, near, share)))


REMEDIES = {
    Ended.STOPPED: "Make the call return, or allow it more time with 'timeout_s'.",
    Ended.RETURNED: "Name with 'take' a part of the result that can be compared.",
}


def _remedy(outcome: Outcome, run: CallRun | None, call: str) -> str:
    if outcome is Outcome.PASSED:
        return ""
    if outcome is Outcome.FAILED:
        return f"Fix {call}, or the expectation in the task if that is wrong."
    return REMEDIES.get(run.ended, "Fix what keeps the call from being made.") if run else "Let the gate run."


def _error(run: CallRun) -> str:
    return f"{run.error[0] if run.error else 'an exception'}{f': {run.message}' if run.message else ''}"


def _as_text(value: JsonValue) -> str:
    return visible(" ".join(shown(value).split()))


CHECK = Check("calculations", "business-logic", 70, (Calculations,), plan, judge, page, row=Row.TEST)
