"""Formulas, edge cases and properties of a task, tried: what each call of the project's code came to."""

import math
from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Self

from pydantic import JsonValue

from gates.check import Evidence
from gates.context import Context
from gates.counted import counted
from gates.errors import EvidenceUnavailable
from gates.evidence._calculating.likeness import Unseen, differences, numbers_in
from gates.evidence._calculating.values import encode, plain, shown
from gates.evidence._calculations_run import Asked, run_all
from gates.model import CommandRecord, Location, Model
from gates.project.import_paths import import_roots
from gates.task.calculation import Called, Case, Instance, Property
from gates.task.task import Task
from gates.terminal import visible

CALL_S, TRIAL_S = 60.0, 300.0


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


class Counterexample(Model):
    """An input for which a property does not hold; `flaky` where it holds at another time."""

    input: str
    seen: str
    flaky: bool = False


class CallRun(Model):
    """One call, or one property tried.

    `returned` is the value in the JSON of `encode`, `error` the names that the exception can be expected by, `crash`
    the innermost line of the project that it came from, `place` the function's. `again` is the same call once more,
    where that came to something else.
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
    tried: int = 0
    whole: int = 0
    held: bool = False
    vacuous: str = ""
    broken: Counterexample | None = None
    install: str = ""


class Calculations(Evidence):
    """All calls that a task's calculations, edge cases and properties ask for."""

    calls: tuple[CallRun, ...]

    def call(self, call_id: str) -> CallRun | None:
        """Return the call of an id."""
        return next((call for call in self.calls if call.id == call_id), None)

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Make every call in a process of the project's interpreter; the rest goes on in another when one dies."""
        asked = [*_asked(task, context)]
        if not asked:
            raise EvidenceUnavailable(f"{task.path} names no 'calculations', 'edge_cases' or 'properties'")
        inside = context.folder("calculations")
        told, ends = run_all(asked, [str(path) for path in import_roots(task, context)], inside)
        made, duration = len(asked), sum(end.duration_s for end in ends)
        record = CommandRecord(
            purpose="calculations", argv=(f"{counted(made, 'call')} of the project's functions",),
            ended=ends[-1].ended if ends else "not started", duration_s=round(duration, 3),
        )  # fmt: skip
        return cls(
            how=f"{made} calls in {len(ends)} processes of the project's interpreter",
            commands=(record,),
            calls=tuple(CallRun.model_validate(one) for one in told),
        )


def _asked(task: Task, context: Context) -> list[Asked]:
    """Return what to call; what must come of it stays here."""
    limit_s = min(CALL_S, context.timeout_s)
    cases = [*_cases(task)]
    calls = [_call(name, part, limit_s, args=[*case.args], kwargs=case.kwargs) for name, part, case in cases]
    calls += [_trial(f"property:{i}", part, context) for i, part in enumerate(task.properties)]
    made = [
        {"id": f"expected:{name}", "build": case.expected, "limit_s": limit_s, "group": "expected"}
        for name, _, case in cases
        if is_made(case.expected)
    ]
    return [*calls, *made]


def _cases(task: Task) -> Iterator[tuple[str, Called, Case]]:
    for i, calculation in enumerate(task.calculations):
        for j, case in enumerate(calculation.table):
            yield f"calc:{i}:{j}", calculation, case
    for i, edge in enumerate(task.edge_cases):
        yield f"edge:{i}", edge, edge


def _call(name: str, part: Called, limit_s: float, **more: Any) -> Asked:  # noqa: ANN401  # JSON
    instance = part.instance.model_dump(exclude={"line"}) if part.instance else None
    common = {"id": name, "call": part.call, "take": part.take, "instance": instance}
    return {**common, "limit_s": part.timeout_s or limit_s, "group": "calls", **more}


def _trial(name: str, part: Property, context: Context) -> Asked:
    asked = part.model_dump(
        mode="json", by_alias=True, exclude={"criteria", "instance", "call", "take", "timeout_s", "name"}
    )
    return _call(name, part, min(TRIAL_S, context.timeout_s), **{**asked, "in": [*part.arguments]})


def is_made(value: JsonValue) -> bool:
    """Return whether a value of a task file holds something that only the project's interpreter can make."""
    if isinstance(value, list):
        return any(map(is_made, value))
    if isinstance(value, dict):
        return "$call" in value or "$ref" in value or any(map(is_made, value.values()))
    return False


def unlike(case: Case, returned: JsonValue, made: JsonValue = None) -> list[str]:
    """Return where a value is not what a case expects, in words; `made` is what its `expected` was made into."""
    expected = made if is_made(case.expected) else encode(plain(case.expected))
    return differences(expected, returned, tolerance=case.tolerance, relative=case.relative, signed_zero=True)


def is_certain(difference: str) -> bool:
    """Return whether what `unlike` tells is a difference, and not that nothing could be compared."""
    return not isinstance(difference, Unseen)


def is_finite(returned: JsonValue) -> bool:
    """Return whether there are numbers in a value, and all of them are finite."""
    found = [*numbers_in(returned)]
    return bool(found) and all(-math.inf < number < math.inf for number in found)


def as_text(value: JsonValue) -> str:
    """Return a value that a call returned, in words."""
    return visible(" ".join(shown(value).split()))


def input_of(called: Called, case: Case) -> str:
    """Return a call with its arguments, as Python writes it."""
    name = called.call.partition(":")[2]
    if called.instance:
        owner, _, name = name.rpartition(".")
        name = f"{owner}{_arguments(called.instance)}.{name}"
    return f"{name}{_arguments(case)}{f'.{called.take}' if called.take else ''}"


def _arguments(given: Case | Instance) -> str:
    named = [f"{key}={shown(as_written(value), 80)}" for key, value in given.kwargs.items()]
    return f"({', '.join([*(shown(as_written(value), 80) for value in given.args), *named])})"


def as_written(value: JsonValue) -> Any:  # noqa: ANN401  # JSON
    """Return an argument of a task file in the form that `shown` knows."""
    return value if is_made(value) else encode(plain(value))
