"""Formulas and edge cases of a task, tried: what each call of the project's code came to."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any, Self, TypeAlias

from pydantic import JsonValue

from gates.check import Evidence
from gates.checks.calculations.spec import Calculation, Called, Case, EdgeCase, is_made
from gates.child.calculating import IMPORT_S
from gates.child.probing import Probe
from gates.child.process import ProcessRun
from gates.child.tracebacks import FRAME, crash_of, is_ours
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.model import CommandRecord, Location, Model
from gates.project.files import import_roots
from gates.task.task import Task
from gates.words import counted, printable

Asked: TypeAlias = dict[str, Any]
Told: TypeAlias = dict[str, Any]
DEATHS = 20
STACKS = "stacks.txt"
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
        told, ends = run_all(asked, probe)
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


def run_all(asked: Sequence[Asked], probe: Probe) -> tuple[list[Told], list[ProcessRun]]:
    """Make all calls and tell of each, in their order; and how each process ended."""
    told: dict[str, Told] = {}
    ends: list[ProcessRun] = []
    left = [*asked]
    while left and len(ends) < DEATHS:
        folder = probe.folder / str(len(ends))
        folder.mkdir(parents=True, exist_ok=True)
        modules = {call.get("call", "").partition(":")[0] for call in left}
        limit = IMPORT_S * len(modules) + sum(call["limit_s"] + 1 for call in left)
        # one thread each: those that a module started do not live on in a fork
        seen = probe.ask("calculating", f"{folder.name}/told", {"calls": left, "stacks": str(folder / STACKS)}, limit)
        if seen.process is None:
            told.update({call["id"]: _not_run(seen.problem) for call in left})
            break
        ends.append(seen.process)
        lines, context = seen.entries, probe.context
        found = _ended(left, lines, context) | _died_importing(left, lines, seen.process, folder, context)
        told.update(found or {call["id"]: _not_run(f"nothing was called: {seen.process.last_words}") for call in left})
        left = [call for call in left if call["id"] not in told]
    why = _not_run(f"{DEATHS} processes died before its turn")
    return [{"id": call["id"], **told.get(call["id"], why)} for call in asked], ends


def _ended(asked: Sequence[Asked], lines: Sequence[Told], context: Context) -> dict[str, Told]:
    """Return what was told of each call."""
    limits = {call["id"]: call["limit_s"] for call in asked}
    reached = {line["id"]: _place(line["place"], context) for line in lines if line["word"] == "reached"}
    found: dict[str, Told] = {}
    for line in (line for line in lines if line["word"] == "call"):
        name = line["id"]
        read = _dead(line, limits.get(name, 0), context) if "died" in line else _read(line, context)
        found[name] = {"place": reached.get(name), **read}
    return found


def _died_importing(
    asked: Sequence[Asked], lines: Sequence[Told], end: ProcessRun, folder: Path, context: Context
) -> dict[str, Told]:
    """Return what is known of the calls whose module ended the process when it was imported."""
    begun = [line["module"] for line in lines if line["word"] == "importing"]
    done = {line["module"] for line in lines if line["word"] == "imported"}
    module = next((name for name in begun if name not in done), None)
    if module is None:
        return {}
    how = _not_run("it ended the process before it returned")
    if end.timed_out or "Timeout (" in (folder / STACKS).read_text(encoding="utf-8", errors="replace"):
        how = {"ended": "stopped", "problem": f"its module was not imported within {IMPORT_S:g} s"}
    elif end.exit_code:
        crash = crash_of(end.stderr.tail, context)
        how = {"ended": "crashed", "problem": f"the process died: {end.ended}",
               "crash": crash.location if crash else None}  # fmt: skip
    ours = [call["id"] for call in asked if call.get("call", "").partition(":")[0] == module]
    return {name: {**how, "importing": True} for name in ours}


def _dead(line: Told, limit_s: float, context: Context) -> Told:
    """Tell of a call that did not live to tell of itself."""
    stack = [(match["path"], int(match["line"])) for match in FRAME.finditer(line["stacks"])]
    place = _innermost(reversed(stack), context)
    if "Timeout (" in line["stacks"]:
        return {"ended": "stopped", "problem": f"it did not return within {limit_s:g} s", "crash": place}
    if line["code"] == 0:
        return _not_run("it ended the process before it returned")
    return {"ended": "crashed", "problem": f"the process died: {line['died']}", "crash": place}


def _read(line: Told, context: Context) -> Told:
    """Turn what the session told of a call into what the evidence keeps of it."""
    told: Told = {
        "ended": "raised" if "error" in line else "returned" if "returned" in line else "not run",
        "problem": _text(line.get("problem", "")),
        "returned": line.get("returned"),
        "error": [_text(name) for name in line.get("error", ())],
        "message": _text(line.get("message", "")),
        "crash": _innermost(line.get("lines", ()), context),
        "importing": line.get("importing", False),
        "warnings": [{"kinds": kinds, "message": _text(message)} for kinds, message in line.get("warnings", ())],
    }
    if line.get("place"):
        told["place"] = _place(line["place"], context)
    if line.get("ran") is not None:
        told["ran"] = [place for path, first in line["ran"] if (place := _place((path, first, first), context))]
    if "again" in line:
        told["again"] = {"id": line["id"], **_read({"id": line["id"], **line["again"]}, context)}
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
    ours = [Location(path=context.shown(at), line=line) for path, line in lines
            if line and is_ours(at := context.root / path, context)]  # fmt: skip
    return ours[-1] if ours else None
