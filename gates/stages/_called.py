"""What came of one call, against what the task says must come of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from gates.evidence.calculations import (
    Calculations,
    CallRun,
    Ended,
    as_text,
    as_written,
    input_of,
    is_certain,
    is_finite,
    unlike,
)
from gates.model import Location, Outcome
from gates.task.calculation import Calculation, Called, Case, EdgeCase, Property
from gates.task.types import Located

SHOWN = 3
# what Python says of a name that is not there
NO_NAME = {
    "NameError": re.compile(r"name '.*' is not defined|cannot access (local|free) variable|(local|free) variable '"),
    "ImportError": re.compile(r"No module named|cannot import name"),
}


@dataclass(frozen=True)
class Row:
    """One line of a table: what was called, what must come of it, and what did."""

    name: str
    input: str
    expected: str
    actual: str
    outcome: Outcome
    message: str
    part: Located
    place: Location | None = None
    impact: str = ""
    remediation: str = ""
    command: str = ""


def case_rows(called: Called, check: str, seen: Calculations | None, why: str) -> Iterator[Row]:
    """Judge each call of a calculation or an edge case."""
    if isinstance(called, EdgeCase):
        yield _row(called.name, called, called, seen.call(check) if seen else None, seen, why)
    for i, case in enumerate(called.table if isinstance(called, Calculation) else ()):
        yield _row(called.call, called, case, seen.call(f"{check}:{i}") if seen else None, seen, why)


def property_row(called: Called, check: str, seen: Calculations | None, why: str) -> Row:
    """Judge one property by what was tried of it."""
    assert isinstance(called, Property)
    run = seen.call(check) if seen else None
    law = " ".join(
        part for part in (called.law, f"with {called.with_}" if called.with_ else "", _bounds(called)) if part
    )
    outcome, actual, message = _tried(called, law, run, why)
    return Row(
        name=called.name, input=called.call, expected=law, actual=actual, outcome=outcome, message=message, part=called,
        place=(run.crash or run.place) if run else None,
        impact="The stated property is not one of this function." if outcome is Outcome.FAILED else "",
        remediation=_remedy(outcome, run, "Mend the function; if the difference is rounding, state a tolerance."),
        command=f"python -m pip install {run.install}" if run and run.install else "",
    )  # fmt: skip


def _tried(called: Property, law: str, run: CallRun | None, why: str) -> tuple[Outcome, str, str]:
    name, where = called.name, called.call
    if run is None:
        return Outcome.UNKNOWN, "not tried", f"{name}: the property of {where} was not tried: {why}"
    if broken := run.broken:
        often = ", though not every time" if broken.flaky else ""
        return Outcome.FAILED, broken.seen, f"{name}: {where} is not {law}{often}: {broken.seen}"
    if run.importing and run.ended is Ended.RAISED:
        return Outcome.FAILED, _error(run), f"{name}: {where} cannot be imported: {_error(run)}"
    if run.ended is Ended.CRASHED:
        return Outcome.FAILED, run.problem, f"{name}: {where}: {run.problem}"
    if run.held and run.tried and run.whole and run.ended is Ended.RETURNED:
        left = (
            f", of which {run.whole - run.tried} say nothing of it (refused or left out)"
            if run.whole > run.tried
            else ""
        )
        told = f"{name}: {where} is {law}: all {run.whole} inputs of its domain were tried{left}."
        return Outcome.PASSED, f"all {run.whole} inputs", told
    if run.held and run.tried and run.ended is Ended.RETURNED:
        return Outcome.PASSED, f"{run.tried} inputs", f"{name}: {where} is {law}, as far as {run.tried} inputs show."
    problem = run.problem or f"no input could be tried ({run.vacuous or 'the domain is empty'})"
    return Outcome.UNKNOWN, "not seen", f"{name}: the property of {where} was not seen: {problem}"


def _bounds(called: Property) -> str:
    if called.bounds is None:
        return ""
    least, most = called.bounds
    return f"from {'-inf' if least is None else f'{least:g}'} to {'inf' if most is None else f'{most:g}'}"


def _row(
    name: str, called: Called, case: Case, run: CallRun | None, seen: Calculations | None, why: str
) -> Row:  # fmt: skip
    given = input_of(called, case)
    made = seen.call(f"expected:{run.id}") if seen and run else None
    outcome, actual, told = _judged(case, run, made, why)
    wanted = _wanted(case, made)
    is_edge = name != called.call
    message = f"{name}: {given} {told}" if is_edge else f"{given} {told}"
    failed = outcome is Outcome.FAILED
    return Row(
        name=name, input=given, expected=wanted, actual=actual, outcome=outcome, message=message, part=case,
        place=(run.crash or run.place) if run else None,
        impact="" if not failed else "The edge case is not handled." if is_edge else "Numbers made by it are wrong.",
        remediation=_remedy(outcome, run, f"Mend {called.call}, or the expectation in the task if that is wrong."),
    )  # fmt: skip


def _judged(case: Case, run: CallRun | None, made: CallRun | None, why: str) -> tuple[Outcome, str, str]:
    """Return the outcome of a call, what came of it, and that in words."""
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
        return Outcome.UNKNOWN, as_text(run.returned), f"was not judged: 'expected' cannot be made: {_why_not(made)}"
    return _returned(case, run, made)


def _raised(case: Case, run: CallRun) -> tuple[Outcome, str, str]:
    actual = f"raised {_error(run)}"
    if run.importing:
        return Outcome.FAILED, actual, f"could not be called: the import of its module {actual}"
    if case.raises is None:
        return Outcome.FAILED, actual, f"{actual}, expected {_wanted(case, None)}"
    if (slip := _slip(case.raises, run)) and case.raises in run.error:
        return (
            Outcome.UNKNOWN,
            actual,
            f"{actual}, which comes of {slip} and is no refusal; state the kind that is meant",
        )
    if case.raises not in run.error:
        return Outcome.FAILED, actual, f"{actual}, expected {_wanted(case, None)}"
    if case.says and case.says not in run.message:
        return Outcome.FAILED, actual, f"{actual}, expected a message with {case.says!r}"
    if case.warns and not any(case.warns in warning.kinds for warning in run.warnings):
        return Outcome.FAILED, f"{actual}, no {case.warns}", f"{actual}, expected the warning {case.warns} as well"
    return Outcome.PASSED, actual, f"{actual}, as stated."


def _slip(wanted: str, run: CallRun) -> str:
    """Return what shows that an error came of a name that is not there, where a wider kind of error is asked for."""
    kind = next((kind for kind in NO_NAME if kind in run.error), "")
    meant = kind and wanted.rpartition(".")[2] in run.error[: run.error.index(kind) + 1]
    return "" if not kind or meant or not NO_NAME[kind].match(run.message) else "a name that is not there"


def _returned(case: Case, run: CallRun, made: CallRun | None) -> tuple[Outcome, str, str]:
    actual = as_text(run.returned)
    wrong = [*_wrong(case, run, made)]
    again = run.again
    if again is not None:
        ends = {Ended.RETURNED: as_text(again.returned), Ended.RAISED: f"raised {_error(again)}"}
        other = ends.get(again.ended, again.problem)
        seen_wrong = any(
            map(is_certain, [*wrong, *(_wrong(case, again, made) if again.ended is Ended.RETURNED else ())])
        )
        if seen_wrong or again.ended is not Ended.RETURNED:
            told = f"returned {actual}, and called again with the same input {other}; expected {_wanted(case, made)}"
            # where it only cannot be called twice, nothing wrong was seen
            return Outcome.FAILED if seen_wrong else Outcome.UNKNOWN, f"{actual}, then {other}", told
    if wrong and not any(map(is_certain, wrong)):
        return Outcome.UNKNOWN, actual, f"was not judged: it returned {wrong[0]}"
    if wrong:
        more = f" and {len(wrong) - SHOWN} more differences" if len(wrong) > SHOWN else ""
        told = f"{'; '.join(wrong[:SHOWN])}{more}"
        return Outcome.FAILED, actual, f"returned {told if told.startswith(actual) else f'{actual}: {told}'}"
    notes = "".join(f"; it {note}" for note in run.notes)
    return Outcome.PASSED, actual, f"returned {actual}, as stated{notes}."


def _wrong(case: Case, run: CallRun, made: CallRun | None) -> Iterator[str]:
    """Yield what a returned value is not."""
    if case.raises:
        yield f"expected {_wanted(case, None)}"
    if case.returns:
        yield from unlike(case, run.returned, made.returned if made else None)
    if case.finite and not is_finite(run.returned):
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
    value = as_text(made.returned if made else as_written(case.expected)) if case.returns else ""
    warns = f"the warning {case.warns}{says}" if case.warns else ""
    return ", ".join([part for part in (value, "finite numbers" if case.finite else "", warns) if part] + within)


def _remedy(outcome: Outcome, run: CallRun | None, failed: str) -> str:
    if outcome is Outcome.PASSED:
        return ""
    if outcome is Outcome.FAILED:
        return failed
    if run is None:
        return "Let the gate run."
    if run.install:
        return f"Install {run.install} into the interpreter that runs the project."
    if run.ended is Ended.STOPPED:
        return "Make the call return, or allow it more time with 'timeout_s'."
    if run.vacuous:
        return "Widen the domain under 'over', or loosen 'given' and 'rejects'."
    if run.ended is Ended.RETURNED and run.again is None:
        return "Name with 'take' a part of the result that can be compared."
    return "Mend the reference, or what keeps the call from being made."


def _error(run: CallRun) -> str:
    return f"{run.error[0] if run.error else 'an exception'}{f': {run.message}' if run.message else ''}"


def _why_not(run: CallRun) -> str:
    return run.problem or _error(run)
