"""What came of one call, against what the task says must come of it."""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from gates.checks.calculations.collect import Calculations, CallRun, Ended, is_made
from gates.checks.calculations.spec import Calculation, Called, Case, EdgeCase, Instance
from gates.child.likeness import Unseen, differences, numbers_in
from gates.child.values import encode, plain, shown
from gates.model import Location, Outcome
from gates.words import visible

SHOWN = 3
# what Python says of a name that is not there
NO_NAME = {
    "NameError": re.compile(r"name '.*' is not defined|cannot access (local|free) variable|(local|free) variable '"),
    "ImportError": re.compile(r"No module named|cannot import name"),
}
Judged = tuple[Outcome, str, str]  # what came of a call, and that in words


@dataclass(frozen=True)
class CaseRow:
    """One line of a table: what was called, what must come of it, and what did."""

    name: str
    input: str
    expected: str
    actual: str
    outcome: Outcome
    message: str
    part: Case | Called
    place: Location | None = None
    impact: str = ""
    remediation: str = ""
    ran: tuple[Location, ...] | None = None


def case_rows(called: Called, check: str, seen: Calculations | None, why: str) -> Iterator[CaseRow]:
    """Judge each call of a calculation or an edge case."""
    if isinstance(called, EdgeCase):
        yield _row(called.name, called, called, seen.call(check) if seen else None, seen, why)
    for i, case in enumerate(called.table if isinstance(called, Calculation) else ()):
        yield _row(called.call, called, case, seen.call(f"{check}:{i}") if seen else None, seen, why)


def _row(name: str, called: Called, case: Case, run: CallRun | None, seen: Calculations | None, why: str) -> CaseRow:
    given = _input_of(called, case)
    made = seen.call(f"expected:{run.id}") if seen and run else None
    outcome, actual, told = _judged(case, run, made, why)
    is_edge = name != called.call
    failed = outcome is Outcome.FAILED
    return CaseRow(
        name=name, input=given, expected=_wanted(case, made), actual=actual, outcome=outcome,
        message=f"{name}: {given} {told}" if is_edge else f"{given} {told}", part=case,
        place=(run.crash or run.place) if run else None, ran=run.ran if run else None,
        impact="" if not failed else "The edge case is not handled." if is_edge else "Numbers made by it are wrong.",
        remediation=_remedy(outcome, run, called.call),
    )  # fmt: skip


def _judged(case: Case, run: CallRun | None, made: CallRun | None, why: str) -> Judged:
    if run is None:
        return Outcome.UNKNOWN, "not called", f"was not called: {why}"
    if run.ended in {Ended.NOT_RUN, Ended.STOPPED}:
        where = f" (it was in {run.crash})" if run.crash else ""
        return Outcome.UNKNOWN, "not seen", f"was not seen: {run.problem}{where}"
    if run.ended is Ended.CRASHED:
        place = "could not be called: in the import of its module" if run.importing else "ended badly:"
        return Outcome.FAILED, run.problem, f"{place} {run.problem}"
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
    if _is_slip(case.raises, run):
        told = f"{actual}, which comes of a name that is not there and is no refusal; state the kind that is meant"
        return Outcome.UNKNOWN, actual, told
    if case.says and case.says not in run.message:
        return Outcome.FAILED, actual, f"{actual}, expected a message with {case.says!r}"
    if case.warns and not any(case.warns in warning.kinds for warning in run.warnings):
        return Outcome.FAILED, f"{actual}, no {case.warns}", f"{actual}, expected the warning {case.warns} as well"
    return Outcome.PASSED, actual, f"{actual}, as stated."


def _is_slip(wanted: str, run: CallRun) -> bool:
    """Return whether an error came of a name that is not there, where a wider kind of error is asked for."""
    kind = next((kind for kind in NO_NAME if kind in run.error), "")
    meant = kind and wanted.rpartition(".")[2] in run.error[: run.error.index(kind) + 1]
    return bool(kind) and not meant and NO_NAME[kind].match(run.message) is not None


def _returned(case: Case, run: CallRun, made: CallRun | None) -> Judged:
    actual, wrong = _as_text(run.returned), [*_wrong(case, run, made)]
    certain = [one for one in wrong if not isinstance(one, Unseen)]
    if run.again is not None:
        return _twice(case, run, run.again, made, wrong=bool(certain))
    if wrong and not certain:
        return Outcome.UNKNOWN, actual, f"was not judged: it returned {wrong[0]}"
    if wrong:
        more = f" and {len(wrong) - SHOWN} more differences" if len(wrong) > SHOWN else ""
        told = f"{'; '.join(wrong[:SHOWN])}{more}"
        return Outcome.FAILED, actual, f"returned {told if told.startswith(actual) else f'{actual}: {told}'}"
    notes = "".join(f"; it {note}" for note in run.notes)
    return Outcome.PASSED, actual, f"returned {actual}, as stated{notes}."


def _twice(case: Case, run: CallRun, again: CallRun, made: CallRun | None, *, wrong: bool) -> Judged:
    """Judge a call that came to something else when it was made again: within the tolerance both times, it passes."""
    actual = _as_text(run.returned)
    ends = {Ended.RETURNED: _as_text(again.returned), Ended.RAISED: f"raised {_error(again)}"}
    other = ends.get(again.ended, again.problem)
    returned = again.ended is Ended.RETURNED
    wrong = wrong or (returned and any(not isinstance(one, Unseen) for one in _wrong(case, again, made)))
    if returned and not wrong:
        return _returned(case, run.model_copy(update={"again": None}), made)
    told = f"returned {actual}, and called again with the same input {other}; expected {_wanted(case, made)}"
    # where it only cannot be called twice, nothing wrong was seen
    return Outcome.FAILED if wrong else Outcome.UNKNOWN, f"{actual}, then {other}", told


def _wrong(case: Case, run: CallRun, made: CallRun | None) -> Iterator[str]:
    """Yield what a returned value is not."""
    if case.raises:
        yield f"expected {_wanted(case, None)}"
    if case.returns:
        expected = made.returned if made and is_made(case.expected) else encode(plain(case.expected))
        within = {"tolerance": case.tolerance, "relative": case.relative}
        yield from differences(expected, run.returned, **within, signed_zero=True)
    if case.finite and not _is_finite(run.returned):
        yield "expected finite numbers"
    if case.warns:
        given = [warning for warning in run.warnings if case.warns in warning.kinds]
        kinds = sorted({warning.kinds[0] for warning in run.warnings})
        if not given:
            yield f"expected the warning {case.warns}, found {', '.join(kinds) or 'none'}"
        elif case.says and not any(case.says in warning.message for warning in given):
            yield f"expected a {case.warns} with {case.says!r}, found {given[0].message!r}"


def _wanted(case: Case, made: CallRun | None) -> str:
    """Return what must come of a case, in words."""
    says = f" with {case.says!r}" if case.says else ""
    if case.raises:
        return f"{case.raises}{says}" + (f" and the warning {case.warns}" if case.warns else "")
    within = [
        *([f"within {case.tolerance:g}"] if case.tolerance is not None else []),
        *([f"within {case.relative:g} of it"] if case.relative is not None else []),
    ]
    value = _as_text(made.returned if made else _as_written(case.expected)) if case.returns else ""
    warns = f"the warning {case.warns}{says}" if case.warns else ""
    return ", ".join([part for part in (value, "finite numbers" if case.finite else "", warns) if part] + within)


def _remedy(outcome: Outcome, run: CallRun | None, call: str) -> str:
    if outcome is Outcome.PASSED:
        return ""
    if outcome is Outcome.FAILED:
        return f"Mend {call}, or the expectation in the task if that is wrong."
    if run is None:
        return "Let the gate run."
    if run.ended is Ended.STOPPED:
        return "Make the call return, or allow it more time with 'timeout_s'."
    if run.ended is Ended.RETURNED and run.again is None:
        return "Name with 'take' a part of the result that can be compared."
    return "Mend the reference, or what keeps the call from being made."


def _error(run: CallRun) -> str:
    return f"{run.error[0] if run.error else 'an exception'}{f': {run.message}' if run.message else ''}"


def _is_finite(returned: JsonValue) -> bool:
    """Return whether there are numbers in a value, and all of them are finite."""
    found = [*numbers_in(returned)]
    return bool(found) and all(-math.inf < number < math.inf for number in found)


def _as_text(value: JsonValue) -> str:
    return visible(" ".join(shown(value).split()))


def _as_written(value: JsonValue) -> JsonValue:
    """Return an argument of a task file in the form that `shown` knows."""
    written: JsonValue = value if is_made(value) else encode(plain(value))
    return written


def _input_of(called: Called, case: Case) -> str:
    """Return a call with its arguments, as Python writes it."""
    name = called.call.partition(":")[2]
    if called.instance:
        owner, _, name = name.rpartition(".")
        name = f"{owner}{_arguments(called.instance)}.{name}"
    return f"{name}{_arguments(case)}{f'.{called.take}' if called.take else ''}"


def _arguments(given: Case | Instance) -> str:
    named = [f"{key}={shown(_as_written(value), 80)}" for key, value in given.kwargs.items()]
    return f"({', '.join([*(shown(_as_written(value), 80) for value in given.args), *named])})"
