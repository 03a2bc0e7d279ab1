"""Formulas and edge cases of a task, tried: what each call of the project's code came to."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Any, Self, TypeAlias

from pydantic import JsonValue

from gates.check import Evidence
from gates.checks.calculations.spec import is_made, tried
from gates.child.calculating import IMPORT_S
from gates.child.probing import Probe, Probed, is_ours
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.model import Location, Model
from gates.project.files import import_roots
from gates.task.task import Task
from gates.words import counted, printable

Asked: TypeAlias = dict[str, Any]
Told: TypeAlias = dict[str, Any]
LIMIT = 500
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
        probe = Probe(context, context.folder("calculations").evidence, import_roots(task, context))
        modules = {call.get("call", "").partition(":")[0] for call in asked}
        limit = IMPORT_S * len(modules) + sum(call["limit_s"] + 1 for call in asked)
        # one thread each: those that a module started do not live on in a fork
        seen = probe.ask("calculating", "told", {"calls": asked}, limit)
        lines: dict[object, Told] = {line["id"]: line for line in seen.of("call")}
        calls = []
        for one in asked:
            line = lines.get(one["id"])
            came = _read(line, one["limit_s"], context) if line else _untold(one, seen)
            calls.append({"id": one["id"], **came})
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


def _untold(call: Asked, seen: Probed) -> Told:
    """Return why nothing was told of a call: the process did not live to make it."""
    ended = seen.process.ended if seen.process else seen.problem
    modules = [line["module"] for line in seen.of("importing")]
    if not modules:
        return _not_run(f"nothing was called: {seen.process.last_words}" if seen.process else ended)
    own = modules[-1] == call.get("call", "").partition(":")[0]
    return {**_not_run(f"the import of {modules[-1]} ended the process: {ended}"), "importing": own}


def _read(line: Told, limit_s: float, context: Context) -> Told:
    """Turn what the session told of a call into what the evidence keeps of it."""
    place = _place(line["place"], context) if line.get("place") else None
    if line.get("late"):
        return {"ended": "stopped", "problem": f"it did not return within {limit_s:g} s", "place": place}
    if line.get("code") == 0:
        return {**_not_run("it ended the process before it returned"), "place": place}
    if "died" in line:
        return {"ended": "crashed", "problem": f"the process died: {line['died']}", "place": place}
    told: Told = {
        "ended": "raised" if "error" in line else "returned" if "returned" in line else "not run",
        "place": place,
        "problem": _text(line.get("problem", "")),
        "returned": line.get("returned"),
        "error": [_text(name) for name in line.get("error", ())],
        "message": _text(line.get("message", "")),
        "crash": _innermost(line.get("lines", ()), context),
        "importing": line.get("importing", False),
        "warnings": [{"kinds": kinds, "message": _text(message)} for kinds, message in line.get("warnings", ())],
    }
    if line.get("ran") is not None:
        told["ran"] = [place for path, first in line["ran"] if (place := _place((path, first, first), context))]
    if "again" in line:
        told["again"] = {"id": line["id"], **_read(line["again"], limit_s, context)}
    return told


def _not_run(why: str) -> Told:
    return {"ended": "not run", "problem": why}


def _text(text: str) -> str:
    return " ".join(printable(text).split())[:LIMIT]


def _place(told: Sequence[Any] | None, context: Context) -> Location | None:
    if told is None:
        return None
    path, first, last = told
    absolute = context.root / path
    return Location(path=context.shown(absolute), line=first, last_line=last) if is_ours(absolute, context) else None


def _innermost(lines: Iterable[Sequence[Any]], context: Context) -> Location | None:
    """Return the last line of the project among those that lead to somewhere."""
    places = ((context.root / path, line) for path, line in lines if line)
    ours = [Location(path=context.shown(path), line=line) for path, line in places if is_ours(path, context)]
    return ours[-1] if ours else None
