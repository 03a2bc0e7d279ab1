"""Formulas and edge cases of a task, tried: what each call of the project's code came to."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Self

from pydantic import JsonValue

from gates.check import Evidence
from gates.checks.calculations.runs import Asked, run_all
from gates.checks.calculations.spec import Calculation, Called, Case, EdgeCase
from gates.context import Context
from gates.counted import counted
from gates.errors import EvidenceUnavailable
from gates.model import CommandRecord, Location, Model
from gates.project.import_paths import import_roots
from gates.task.task import Task

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

    id: str
    ended: Ended
    problem: str = ""
    returned: JsonValue = None
    error: tuple[str, ...] = ()
    message: str = ""
    crash: Location | None = None
    importing: bool = False
    place: Location | None = None
    warnings: tuple[Warning_, ...] = ()
    notes: tuple[str, ...] = ()
    again: "CallRun | None" = None
    ran: tuple[Location, ...] | None = None


class Calculations(Evidence):
    """All calls that a task's calculations and edge cases ask for."""

    calls: tuple[CallRun, ...]

    def call(self, call_id: str) -> CallRun | None:
        """Return the call of an id."""
        return next((call for call in self.calls if call.id == call_id), None)

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Make every call in a fork of a process of the project's interpreter."""
        asked = [*_asked(task, min(CALL_S, context.timeout_s))]
        if not asked:
            raise EvidenceUnavailable(f"{task.path} names no 'calculations' or 'edge_cases'")
        inside = context.folder("calculations")
        told, ends = run_all(asked, [str(path) for path in import_roots(task, context)], inside)
        record = CommandRecord(
            purpose="calculations", argv=(f"{counted(len(asked), 'call')} of the project's functions",),
            ended=ends[-1].ended if ends else "not started", duration_s=round(sum(end.duration_s for end in ends), 3),
        )  # fmt: skip
        return cls(
            how=f"{len(asked)} calls in {len(ends)} processes of the project's interpreter",
            commands=(record,),
            calls=tuple(CallRun.model_validate(one) for one in told),
        )


def _asked(task: Task, limit_s: float) -> Iterator[Asked]:
    """Yield what to call; what must come of it stays here, but for what only the project's interpreter can make."""
    for name, part, case in _cases(task):
        instance = part.instance.model_dump(exclude={"line"}) if part.instance else None
        yield {"id": name, "call": part.call, "take": part.take, "instance": instance, "args": [*case.args],
               "kwargs": case.kwargs, "limit_s": part.timeout_s or limit_s}  # fmt: skip
    for name, _, case in _cases(task):
        if is_made(case.expected):
            yield {"id": f"expected:{name}", "build": case.expected, "limit_s": limit_s}


def _cases(task: Task) -> Iterator[tuple[str, Called, Case]]:
    for i, calculation in enumerate(task.part(Calculation)):
        for j, case in enumerate(calculation.table):
            yield f"calc:{i}:{j}", calculation, case
    for i, edge in enumerate(task.part(EdgeCase)):
        yield f"edge:{i}", edge, edge


def is_made(value: Any) -> bool:  # noqa: ANN401  # JSON
    """Return whether a value of a task file holds something that only the project's interpreter can make."""
    if isinstance(value, dict):
        return "$call" in value or "$ref" in value or any(map(is_made, value.values()))
    return isinstance(value, list) and any(map(is_made, value))
