"""Memory over epochs: a callable of the project run over and over in a process of its own, and what is held after each.

What may go on growing is run again for longer, in a fresh process; what does is run once more to see where.
"""

import hmac
import json
import math
import secrets
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from pydantic import ValidationError

from gates import process
from gates.context import Context
from gates.drift import DROPPED, Drift
from gates.errors import EvidenceUnavailable
from gates.evidence._import_paths import import_roots
from gates.evidence._tracebacks import crash_of
from gates.evidence.kind import Evidence
from gates.evidence.leaking import Allocated, Holder, LeakRun, Watched
from gates.files import copy_package
from gates.leak import Leak
from gates.model import CommandRecord, Location
from gates.process import ProcessRun
from gates.task import Task
from gates.terminal import printable

PROGRAM = "gates_leaks"
LONGER = 3
MOST_EPOCHS = 1000
SHARE = 0.8  # of the time limit, after which a longer run stops by itself
LOCATED = 6  # epochs that are looked at for where
READ = 256 * 1024
Entry = dict[str, object]


class Leaks(Evidence):
    """All callables of a task whose memory must not go on growing."""

    runs: tuple[LeakRun, ...]

    @classmethod
    def collect(cls, task: Task, context: Context) -> Self:
        """Run each callable in processes of its own."""
        if not task.leaks:
            raise EvidenceUnavailable(f"{task.path} names no 'leaks'")
        folder = context.folder("leaks").evidence
        plugin = folder / "plugin"
        copy_package(Path(__file__).with_name("_leaks"), plugin / PROGRAM)
        watch = _Watch(task, context, plugin)
        try:
            runs = tuple(watch.run(i, leak) for i, leak in enumerate(task.leaks))
        finally:
            shutil.rmtree(plugin, ignore_errors=True)
        return cls(
            how="each callable over and over, in processes of their own, memory read after each epoch",
            commands=tuple(watch.commands), runs=runs,
        )  # fmt: skip

    def run(self, index: int) -> LeakRun | None:
        """Return what was seen of a task's callable."""
        return next((run for run in self.runs if run.index == index), None)


class _Watch:
    """Runs callables and reads their journals."""

    def __init__(self, task: Task, context: Context, plugin: Path) -> None:
        self._context = context
        self._plugin = plugin
        self._paths = [str(path) for path in import_roots(task, context)]
        self.commands: list[CommandRecord] = []

    def run(self, index: int, leak: Leak) -> LeakRun:
        """Run one callable as often as is asked, and again where it does not stay as it is."""
        first = self._watched(leak, f"{index}", leak.epochs)
        seen = LeakRun(index=index, name=leak.name, first=first)
        if not first.complete or set(first.drifts(leak.tolerance_bytes).values()) <= {Drift.FLAT}:
            return seen
        longer = self._watched(leak, f"{index}-longer", min(LONGER * leak.epochs, MOST_EPOCHS))
        seen = seen.model_copy(update={"longer": longer})
        if Drift.GROWS not in longer.drifts(leak.tolerance_bytes).values():
            return seen
        where = self._located(leak, f"{index}-where", math.ceil(DROPPED * leak.epochs))
        if not any(where.values()):  # it began later
            where = self._located(leak, f"{index}-where-later", longer.epochs // 2)
        return seen.model_copy(update=where)

    def _watched(self, leak: Leak, name: str, epochs: int) -> Watched:
        run, entries, facts = self._process(leak, name, {"epochs": epochs, "locate": False})
        series = [entry for entry in entries if entry["word"] == "epoch"]
        told = next((entry for entry in entries if entry["word"] == "form"), {})
        try:
            return Watched.model_validate(
                {
                    **facts, "process": run, "asked": epochs, "epochs": len(series), "form": told.get("form", ""),
                    "rungs": _rungs(series), "filling": told.get("filling", ()), "troubles": told.get("troubles", ()),
                }
            )  # fmt: skip
        except ValidationError:
            return Watched(process=run, asked=epochs, problem="the journal cannot be read")

    def _located(self, leak: Leak, name: str, warm: int) -> dict[str, object]:
        _, entries, _ = self._process(leak, name, {"epochs": warm + LOCATED, "warm": warm, "locate": True})
        try:
            return {
                "allocated": tuple(Allocated.model_validate(each) for each in _placed(entries, "allocated")),
                "holders": tuple(Holder.model_validate(each) for each in _placed(entries, "holder")),
            }
        except ValidationError:  # what is known of where does not change that it leaks
            return {}

    def _process(
        self, leak: Leak, name: str, asked: Mapping[str, object]
    ) -> tuple[ProcessRun | None, list[Entry], dict[str, object]]:
        """Run one process; return how it ended, what it told, and what went wrong."""
        folder, secret = self._plugin.parent, secrets.token_hex(16)
        limit = leak.timeout_s or self._context.timeout_s
        told = {"call": leak.call, "args": leak.args, "paths": self._paths, "root": str(self._context.root),
                "seconds": SHARE * limit, "least": leak.epochs, "secret": secret, **asked}  # fmt: skip
        question, journal = folder / f"{name}.json", folder / f"{name}.jsonl"
        question.write_text(json.dumps(told), encoding="utf-8")
        env = {"PYTHONPATH": process.joined_paths(str(self._plugin)), "WANDB_MODE": "offline", "WANDB_SILENT": "true",
               "WANDB_DIR": str(self._plugin)}  # fmt: skip
        argv = [self._context.python, "-m", PROGRAM, str(question), str(journal)]
        try:
            run = process.run(argv, cwd=self._context.root, timeout_s=limit, log=folder / name, env=env)
        except OSError as error:
            return None, [], {"problem": f"cannot be started: {error.strerror or error}"}
        run = run.model_copy(update={"argv": ("python", "-m", PROGRAM, leak.call, journal.name)})
        self.commands.append(
            CommandRecord(purpose="epochs", argv=run.argv, ended=run.ended, duration_s=run.duration_s)
        )  # fmt: skip
        entries, foreign = _read(journal, secret)
        return run, entries, self._facts(run, entries, folder / f"{name}.stderr.txt", foreign=foreign)

    def _facts(self, run: ProcessRun, entries: list[Entry], log: Path, *, foreign: bool) -> dict[str, object]:
        """Return what went wrong, or that nothing did."""
        words = {str(entry["word"]): entry for entry in entries}
        if foreign:
            return {"problem": "the journal holds lines that are not its own"}
        if "problem" in words:
            return {"problem": str(words["problem"].get("what", ""))}
        crash = crash_of(_tail(log), self._context) if run.exit_code else None
        if crash:
            said = ": ".join(part for part in (crash.error, crash.message) if part)
            return {"crash": crash.location, "error": said}
        return {"complete": "end" in words and run.exit_code == 0}


def _read(path: Path, secret: str) -> tuple[list[Entry], bool]:
    """Return the signed lines of a journal, and whether there are others."""
    entries, foreign = [], False
    try:
        lines = path.read_bytes().splitlines()
    except OSError:
        return [], False
    for line in lines:
        digest, _, text = line.partition(b" ")
        known = hmac.new(secret.encode(), text, "sha256").hexdigest().encode()
        if hmac.compare_digest(digest, known):
            entries.append({str(name): _clean(value) for name, value in json.loads(text).items()})
        else:
            foreign = True
    return entries, foreign


def _clean(value: object) -> object:
    """Return what was told without what a terminal must not get."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return {str(k): _clean(v) for k, v in value.items()} if isinstance(value, dict) else value


def _rungs(series: list[Entry]) -> list[dict[str, object]]:
    """Return each rung that was read after most epochs; one that came later, such as a device, from there on."""
    names = dict.fromkeys(name for entry in series for name in entry if name != "word")
    columns = {name: [entry.get(name) for entry in series] for name in names}
    return [
        {"name": name, "values": [value for value in values if value is not None]}
        for name, values in columns.items()
        if values and values[-1] is not None
    ]


def _placed(entries: list[Entry], word: str) -> list[Entry]:
    """Return what entries of a kind tell, each with its location."""
    named = {"word", "path", "line"}
    return [
        {**{name: value for name, value in entry.items() if name not in named}, "location": _location(entry)}
        for entry in entries
        if entry["word"] == word
    ]


def _location(entry: Entry) -> Location | None:
    path, line = entry.get("path"), entry.get("line")
    return Location(path=str(path), line=int(str(line))) if path and line else None


def _tail(path: Path) -> str:
    try:
        return printable(path.read_bytes()[-READ:].decode("utf-8", errors="backslashreplace"))
    except OSError:
        return ""
