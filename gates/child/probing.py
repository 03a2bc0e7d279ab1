"""Runs one of our programs in the project's interpreter, and reads the journal that it signs."""

import hmac
import json
import math
import secrets
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType

from gates.child import process
from gates.child.channel import Channel
from gates.child.process import ProcessRun
from gates.child.tracebacks import crash_of, said, written
from gates.context import Context
from gates.errors import EvidenceUnavailable
from gates.model import CommandRecord, Location, Model
from gates.project.files import copy_package
from gates.project.import_paths import import_roots
from gates.task.task import Task
from gates.terminal import printable

PACKAGE = "gates_probe"
UNTOLD = {"WANDB_MODE": "offline", "WANDB_SILENT": "true"}
NO_ENV: Mapping[str, str] = MappingProxyType({})
NO_JOURNAL = "the recorder wrote no journal"
MOST = 64 * 1024 * 1024
Entry = dict[str, object]


class Probed(Model):
    """What a program told, how it ended, and what went wrong, if anything did.

    `foreign` counts the lines of its journal that are somebody else's; `error` and `place` are of the exception that
    ended it, `place` also of a problem that it told.
    """

    process: ProcessRun | None = None
    entries: tuple[Entry, ...] = ()
    foreign: int = 0
    problem: str = ""
    error: str = ""
    place: Location | None = None

    def of(self, word: str) -> list[Entry]:
        """Return the entries of a kind."""
        return [entry for entry in self.entries if entry.get("word") == word]


@contextmanager
def programs(folder: Path) -> Iterator[Path]:
    """Yield a folder where the project's interpreter finds our programs, while they are needed."""
    plugin = folder / "plugin"
    copy_package(Path(__file__).parent, plugin / PACKAGE)
    try:
        yield plugin
    finally:
        shutil.rmtree(plugin, ignore_errors=True)


class Probe:
    """Runs the programs, which lie in a plugin."""

    def __init__(self, context: Context, plugin: Path, paths: list[Path]) -> None:
        self._context = context
        self.folder = plugin.parent
        self._about = {"paths": [str(path) for path in paths], "root": str(context.root)}
        self._plugin = plugin
        self.commands: list[CommandRecord] = []

    def ask(
        self, program: str, name: str, asked: Mapping[str, object], limit_s: float, about: str,
        *, threads: int | None = 1,
    ) -> Probed:  # fmt: skip
        """Run a program; `name` is that of its journal, `about` what it was run for. No `threads` are those it has."""
        secret = secrets.token_hex(16)
        question, journal = self._plugin / f"{name}.json", self.folder / f"{name}.jsonl"
        told = {**asked, **self._about, "limit_s": limit_s, "secret": secret,
                "folder": str(self._plugin), "journal": str(journal)}  # fmt: skip
        question.write_text(json.dumps(told), encoding="utf-8")
        env = {"OMP_NUM_THREADS": str(threads)} if threads else {}
        shown = ("python", "-m", f"{PACKAGE}._{program}", about, journal.name)
        try:
            run = self._run([f"{PACKAGE}.{program}", str(question), str(journal)], limit_s, name, env, shown)
        except OSError as error:
            return Probed(problem=f"it cannot be started: {error.strerror or error}")
        self.commands.append(run.as_command(program))
        return self._read(run, journal, secret, name)

    def record(
        self, program: str, name: str, asked: Mapping[str, object], limit_s: float, env: Mapping[str, str] = NO_ENV
    ) -> Probed:
        """Run a program of the recorder, which tells on a channel."""
        log = self.folder / name
        log.mkdir(exist_ok=True)
        channel = Channel(log)
        argv = [f"{PACKAGE}.{program}", json.dumps({**asked, **self._about})]
        shown = ("python", "-m", f"gates_{program}", str(asked["call"]), f"{name}.jsonl")
        try:
            run = self._run(argv, limit_s, name, env, shown, channel)
        except OSError as error:
            return Probed(problem=f"cannot be started: {error.strerror or error}")
        there = channel.told.is_file()
        entries, foreign = read_entries(channel.told, channel.nonce, chained=True)
        with suppress(FileNotFoundError):  # the process removed the folder
            channel.told.replace(log.with_suffix(".jsonl"))
        shutil.rmtree(log, ignore_errors=True)
        seen = Probed(process=run, entries=tuple(entries), foreign=foreign)
        told = next((str(entry["what"]) for entry in seen.of("problem")), "") if there else NO_JOURNAL
        text = self._written(name)
        lacking = run.exit_code and not entries and "No module named 'torch'" in text
        crash = crash_of(text, self._context) if run.exit_code and not told else None
        return seen.model_copy(update={
            "problem": "the project's interpreter has no torch" if lacking else told,
            "error": said(crash) if crash else "", "place": crash.location if crash else None,
        })  # fmt: skip

    def _run(
        self, argv: Sequence[str], limit_s: float, name: str, env: Mapping[str, str], shown: tuple[str, ...],
        channel: Channel | None = None,
    ) -> ProcessRun:  # fmt: skip
        plugin = str(self._plugin)
        env = {**UNTOLD, "WANDB_DIR": plugin, "PYTHONPATH": process.joined_paths(plugin), **env}
        argv = [self._context.python, "-m", *argv]
        log = self.folder / name
        run = process.run(argv, cwd=self._context.root, timeout_s=limit_s, log=log, env=env, channel=channel)
        return run.model_copy(update={"argv": shown})

    def _written(self, name: str) -> str:
        return written((self.folder / name).with_suffix(".stderr.txt"))

    def _read(self, run: ProcessRun, journal: Path, secret: str, name: str) -> Probed:
        entries, foreign = read_entries(journal, secret)
        seen = Probed(process=run, entries=tuple(entries))
        problem = next(iter(seen.of("problem")), None)
        if foreign:
            return seen.model_copy(update={"problem": "the journal holds lines that are not its own"})
        if problem:
            told = {"problem": str(problem.get("what", "")), "place": location(problem.get("place"))}
            return seen.model_copy(update=told)
        if seen.of("end") and run.exit_code == 0:
            return seen
        crash = crash_of(self._written(name), self._context) if run.exit_code else None
        if crash and crash.error:
            return seen.model_copy(update={"problem": said(crash), "place": crash.location})
        return seen.model_copy(update={"problem": f"it ended before it was done: {run.ended}"})


@contextmanager
def probing(task: Task, context: Context, key: str, folder: str = "") -> Iterator[Probe]:
    """Yield what runs the programs for a part of a task; raise `EvidenceUnavailable` where the task has none."""
    if not getattr(task, key):
        raise EvidenceUnavailable(f"{task.path} names no {key!r}")
    with programs(context.folder(folder or key).evidence) as plugin:
        yield Probe(context, plugin, import_roots(task, context))


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


def read_entries(path: Path, secret: str, *, chained: bool = False) -> tuple[list[Entry], int]:
    """Return the entries of a journal that were told with a secret, and how many lines are somebody else's.

    Each line has a seal. Where they are chained, it is made with the line before, too: a line that was taken out or
    changed leaves no seal behind it that fits, and all after it are somebody else's.
    """
    try:
        with path.open("rb") as file:
            told = file.read(MOST).split(b"\n")
    except OSError:
        return [], 0
    told.pop()  # nothing, or a line that its writer did not live to end
    entries: list[Entry] = []
    last = b""
    for line in told:
        seal, _, text = line.partition(b" ")
        fits = hmac.digest(secret.encode(), last + text, "sha256")
        if hmac.compare_digest(seal, b"=" + fits.hex().encode()):
            last = fits if chained else b""
            entries += _entry(text)
    return entries, len(told) - len(entries)


def _entry(text: bytes) -> list[Entry]:
    try:
        entry = json.loads(text.decode("utf-8", "backslashreplace"), parse_constant=lambda _: None)
    except ValueError:
        return []
    if not isinstance(entry, dict) or not isinstance(entry.get("word"), str):
        return []
    return [{str(name): _clean(value) for name, value in entry.items()}]


def _clean(value: object) -> object:
    """Return what was told without what a terminal must not get, and without numbers that are none."""
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return {printable(str(k)): _clean(v) for k, v in value.items()} if isinstance(value, dict) else value
