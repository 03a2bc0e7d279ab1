"""Runs calls in processes of the project's interpreter: when one dies, it is named, and the rest goes on in another."""

import hmac
import json
import secrets
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, TypeAlias

from gates.child import process
from gates.child.process import ProcessRun
from gates.child.tracebacks import FRAME, crash_of, is_ours
from gates.context import Context
from gates.evidence._calculating.session import BOOTSTRAP, IMPORT_S
from gates.model import Location
from gates.terminal import printable

Asked: TypeAlias = dict[str, Any]
Told: TypeAlias = dict[str, Any]

DEATHS = 20
LIMIT = 500


def run_all(asked: Sequence[Asked], paths: list[str], context: Context) -> tuple[list[Told], list[ProcessRun]]:
    """Make all calls and tell of each, in their order; and how each process ended."""
    told: dict[str, Told] = {}
    ends: list[ProcessRun] = []
    for _, group in groupby(asked, key=lambda call: call["group"]):
        left = [*group]
        while left and len(ends) < DEATHS:
            folder = context.evidence / str(len(ends))
            try:
                end = _run(left, paths, context, folder)
            except OSError as error:
                told.update({call["id"]: _not_run(f"it cannot be started: {error.strerror or error}") for call in left})
                break
            ends.append(end.process)
            told.update(end.told)
            told.update(end.deaths(left, context))
            if not told.keys() & {call["id"] for call in left}:
                told.update({call["id"]: _not_run(f"nothing was called: {end.process.last_words}") for call in left})
            left = [call for call in left if call["id"] not in told]
    why = _not_run(f"{DEATHS} processes died before its turn")
    return [{"id": call["id"], **told.get(call["id"], why)} for call in asked], ends


class _End:
    """What one process told before its end."""

    def __init__(self, run: ProcessRun, lines: Sequence[Told], stacks: str, context: Context) -> None:
        self.process = run
        self.begun = [line["begun"] for line in lines if "begun" in line]
        self.reached = {line["reached"]: line["place"] for line in lines if "reached" in line}
        self.told = {line["id"]: _read(line, context) for line in lines if "id" in line}
        self._stacks = stacks

    def deaths(self, asked: Sequence[Asked], context: Context) -> dict[str, Told]:
        """Name the call in which the process died, and those that need the module in whose import it died."""
        died = next((call for call in asked if call["id"] in self.begun and call["id"] not in self.told), None)
        if died is None:
            return {}
        how = self._how(died, context)
        if died["id"] in self.reached:
            return {died["id"]: {**how, "place": _place(self.reached[died["id"]], context)}}
        if "call" not in died:
            return {died["id"]: how}
        module = died["call"].partition(":")[0]
        beside = [call for call in asked if call.get("call", "").partition(":")[0] == module]
        return {call["id"]: {**how, "importing": True} for call in beside if call["id"] not in self.told}

    def _how(self, died: Asked, context: Context) -> Told:
        run = self.process
        if self._stacks or run.timed_out:
            where = next(_places(self._stacks, context), None)
            limit = died["limit_s"] if died["id"] in self.reached else IMPORT_S
            what = "it did not return" if died["id"] in self.reached else "its module was not imported"
            return {"ended": "stopped", "problem": f"{what} within {limit:g} s", "crash": where}
        if run.exit_code == 0:
            return _not_run("it ended the process before it returned")
        crash = crash_of(run.stderr.tail, context)
        return {"ended": "crashed", "problem": f"the process died: {run.ended}",
                "crash": crash.location if crash else None}  # fmt: skip


def _run(asked: Sequence[Asked], paths: list[str], context: Context, folder: Path) -> _End:
    folder.mkdir(parents=True, exist_ok=True)
    secret = secrets.token_hex(16)
    words, result, stacks = folder / "asked.json", folder / "told.txt", folder / "stacks.txt"
    words.write_text(json.dumps({"secret": secret, "paths": paths, "calls": [*asked]}), encoding="utf-8")
    here = str(Path(__file__).parent)
    ended = process.run(
        [context.python, "-c", BOOTSTRAP, here, str(words), str(result), str(stacks)],
        cwd=context.root,
        timeout_s=IMPORT_S * len({call.get("call", "").partition(":")[0] for call in asked})
        + sum(call["limit_s"] for call in asked),
        log=folder / "log",
        env={"HYPOTHESIS_STORAGE_DIRECTORY": str(folder / "hypothesis")},
    )
    lines = [*_signed(result, secret)]
    return _End(ended, lines, stacks.read_text(encoding="utf-8", errors="replace") if stacks.exists() else "", context)


def _signed(path: Path, secret: str) -> Iterator[Told]:
    """Yield the lines of ours; what the project's code wrote there is none."""
    if not path.is_file():
        return
    for line in path.read_bytes().split(b"\n"):
        sign, _, text = line.partition(b" ")
        if hmac.compare_digest(sign, hmac.new(secret.encode(), text, "sha256").hexdigest().encode()):
            yield json.loads(text)


def _read(line: Told, context: Context) -> Told:
    """Turn what the session told of a call into what the evidence keeps of it."""
    told: Told = {
        "ended": "raised" if "error" in line else "returned" if "returned" in line or "tried" in line else "not run",
        "problem": _text(line.get("problem", "")),
        "returned": line.get("returned"),
        "error": [_text(name) for name in line.get("error", ())],
        "message": _text(line.get("message", "")),
        "crash": _crash(line.get("traceback", ""), context),
        "importing": line.get("importing", False),
        "place": _place(line.get("place"), context),
        "warnings": [{"kinds": kinds, "message": _text(message)} for kinds, message in line.get("warnings", ())],
        "notes": [note for key, note in NOTES.items() if line.get(key)],
        **{key: line[key] for key in ("tried", "whole", "held", "vacuous", "install") if key in line},
    }
    if "again" in line:
        told["again"] = {"id": line["id"], **_read({"id": line["id"], **line["again"]}, context)}
    if broken := line.get("broken"):
        told["broken"] = {"input": _text(broken["input"]), "seen": _text(broken["seen"]), "flaky": "flaky" in broken}
        told["crash"] = _crash(broken.get("traceback", ""), context)
    return told


NOTES = {"changed": "changes its arguments", "moved": "changes the working directory"}


def _not_run(why: str) -> Told:
    return {"ended": "not run", "problem": why}


def _text(text: str) -> str:
    return " ".join(printable(text).split())[:LIMIT]


def _crash(traceback: str, context: Context) -> Location | None:
    crash = crash_of(traceback, context)
    return crash.location if crash else None


def _place(told: Sequence[Any] | None, context: Context) -> Location | None:
    if told is None:
        return None
    path, first, last = told
    absolute = context.root / path
    return Location(path=context.shown(absolute), line=first, last_line=last) if is_ours(absolute, context) else None


def _places(stacks: str, context: Context) -> Iterator[Location]:
    """Yield the lines of the project in a dump of stacks, the innermost first."""
    for match in FRAME.finditer(stacks):
        path = context.root / match["path"]
        if int(match["line"]) and is_ours(path, context):
            yield Location(path=context.shown(path), line=int(match["line"]))
