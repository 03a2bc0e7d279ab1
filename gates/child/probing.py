"""Runs one of our programs in the project's interpreter, and reads the journal that it seals."""

import hmac
import json
import math
import secrets
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType

from gates.child import process
from gates.child.asking import command
from gates.child.process import ProcessRun
from gates.config import Context
from gates.errors import EvidenceUnavailable
from gates.model import CommandRecord, Location, Model
from gates.project.files import import_roots
from gates.task.task import Task
from gates.words import printable

UNTOLD = {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
NO_ENV: Mapping[str, str] = MappingProxyType({})
MOST = 64 * 1024 * 1024
Entry = dict[str, object]


class Probed(Model):
    """What a program told, how it ended, and what went wrong, if anything did.

    `foreign` counts the lines of its journal that are somebody else's. `problem` is what it told of, or why it was not
    heard, `error` the exception that ended it; `place` is where either was.
    """

    process: ProcessRun | None = None
    entries: tuple[Entry, ...] = ()
    foreign: int = 0
    problem: str = ""
    error: str = ""
    place: Location | None = None

    def of(self, word: str) -> list[Entry]:
        """Return the entries of a kind, without its name."""
        own = [entry for entry in self.entries if entry.get("word") == word]
        return [{name: value for name, value in entry.items() if name != "word"} for entry in own]

    @property
    def trouble(self) -> str:
        """Return why it was not heard to its end, or nothing where it was."""
        if self.foreign:
            return "the journal holds lines that are not its own"
        if self.problem or self.error or self.process is None:
            return self.problem or self.error
        done = self.of("end") and self.process.exit_code == 0
        return "" if done else f"it ended before it was done: {self.process.ended}"


class Probe:
    """Runs the programs, and keeps their journals in a folder."""

    def __init__(self, context: Context, folder: Path, paths: list[Path]) -> None:
        self.context = context
        self.folder = folder
        self._about = {"paths": [str(path) for path in paths], "root": str(context.root)}
        self.commands: list[CommandRecord] = []

    def ask(
        self,
        program: str,
        name: str,
        asked: Mapping[str, object],
        limit_s: float,
        *,
        threads: int | None = 1,
        env: Mapping[str, str] = NO_ENV,
    ) -> Probed:
        """Run a program; `name` is that of its journal. No `threads` are those it has."""
        question = Question(self.folder / f"{name}.jsonl", {**asked, **self._about, "limit_s": limit_s})
        env = {**UNTOLD, "WANDB_DIR": str(question.folder), **env}
        env |= {"OMP_NUM_THREADS": str(threads)} if threads else {}
        argv = command(self.context.python, program, str(question.path))
        try:
            with question:
                run = process.run(argv, cwd=self.context.root, timeout_s=limit_s, log=self.folder / name, env=env)
        except OSError as error:
            return Probed(problem=f"it cannot be started: {error.strerror or error}")
        about = filter(None, [str(asked.get("call") or asked.get("shared") or "")])
        known = program.removesuffix(".__main__").rpartition(".")[2]
        run = run.model_copy(update={"argv": ("python", "-m", f"gates_{known}", *about, f"{name}.jsonl")})
        self.commands.append(run.as_command(known.replace("_", " ")))
        entries, foreign = question.answer()
        seen = Probed(process=run, entries=tuple(entries), foreign=foreign)
        if run.exit_code and not entries and "No module named 'torch'" in run.stderr.tail:
            return seen.model_copy(update={"problem": "the project's interpreter has no torch"})
        for word, field in (("problem", "problem"), ("raised", "error")):
            for told in seen.of(word)[:1]:
                return seen.model_copy(update={field: str(told.get("what", "")), "place": location(told.get("place"))})
        return seen


class Question:
    """What a program is asked, in a file that it removes, with a secret that seals its answer in a journal.

    The file lies in a folder of its own, which is gone when the program has ended.
    """

    def __init__(self, journal: Path, asked: Mapping[str, object]) -> None:
        self._secret = secrets.token_hex(16)
        self._journal = journal
        self.folder = journal.with_suffix(".asked")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "question.json"
        told = {**asked, "secret": self._secret, "folder": str(self.folder), "journal": str(journal)}
        self.path.write_text(json.dumps(told), encoding="utf-8")

    def __enter__(self) -> None:
        return None

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def answer(self) -> tuple[list[Entry], int]:
        """Return the entries of the journal, and how many of its lines are somebody else's."""
        return read_entries(self._journal, self._secret)


def probing(task: Task, context: Context, key: str, folder: str = "") -> Probe:
    """Return what runs the programs for a part of a task; raise `EvidenceUnavailable` where the task has none."""
    if not getattr(task, key):
        raise EvidenceUnavailable(f"{task.path} names no {key!r}")
    return Probe(context, context.folder(folder or key).evidence, import_roots(task, context))


def location(place: object) -> Location | None:
    """Return a place that was told as `[path, line, ...]`."""
    if isinstance(place, list) and len(place) > 1 and isinstance(place[1], int) and place[0]:
        return Location(path=str(place[0]), line=max(place[1], 1))
    return None


def number(value: object) -> float:
    """Return a number that was told; raise `TypeError` where it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(value)
    return float(value)


def read_entries(path: Path, secret: str) -> tuple[list[Entry], int]:
    """Return the entries of a journal that were sealed with a secret, and how many lines are somebody else's."""
    try:
        with path.open("rb") as file:
            told = file.read(MOST).split(b"\n")
    except OSError:
        return [], 0
    told.pop()  # nothing, or a line that its writer did not live to end
    entries: list[Entry] = []
    for line in told:
        seal, _, text = line.partition(b" ")
        if hmac.compare_digest(seal, b"=" + hmac.digest(secret.encode(), text, "sha256").hex().encode()):
            with suppress(ValueError):
                entries.append(json.loads(text.decode("utf-8", "backslashreplace"), parse_constant=lambda _: None))
    return [{name: _clean(value) for name, value in entry.items()} for entry in entries], len(told) - len(entries)


def _clean(value: object) -> object:
    """Return what was told without what a terminal must not get, and without numbers that are none."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return {printable(str(k)): _clean(v) for k, v in value.items()} if isinstance(value, dict) else value
