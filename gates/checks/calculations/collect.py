"""Formulas and edge cases of a task, tried: what each call of the project's code came to."""

from collections.abc import Iterator
from enum import StrEnum
from typing import Any, Self, TypeAlias

from pydantic import JsonValue

from gates.check import Evidence
from gates.checks.calculations.spec import is_made, tried
from gates.child.calculating import IMPORT_S
from gates.child.probing import Probe, Probed
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.model import Location, Model
from gates.project.files import import_roots
from gates.task.task import Task
from gates.words import counted

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
        probe = Probe(context, context.folder("calculations").evidence, import_roots(task, context))
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
