"""Runs one of our programs in the project's interpreter, and reads the journal that it signs."""

import hmac
import json
import secrets
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from gates.child import process
from gates.child.process import ProcessRun
from gates.child.tracebacks import crash_of, written
from gates.context import Context
from gates.model import CommandRecord, Location, Model
from gates.project.files import copy_package
from gates.terminal import printable

PACKAGE = "gates_probe"
RECORDER = f"{PACKAGE}.recorder"
MOST = 64 * 1024 * 1024
Entry = dict[str, object]


class Probed(Model):
    """What a program told, how it ended, and what went wrong, if anything did."""

    process: ProcessRun | None = None
    entries: tuple[Entry, ...] = ()
    problem: str = ""
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
        self._paths = [str(path) for path in paths]
        self._plugin = plugin
        self.commands: list[CommandRecord] = []

    def ask(
        self, program: str, name: str, asked: Mapping[str, object], limit_s: float, about: str,
        *, threads: int | None = 1,
    ) -> Probed:  # fmt: skip
        """Run a program; `name` is that of its journal, `about` what it was run for. No `threads` are those it has."""
        secret = secrets.token_hex(16)
        question, journal = self._plugin / f"{name}.json", self.folder / f"{name}.jsonl"
        told = {**asked, "paths": self._paths, "root": str(self._context.root), "limit_s": limit_s, "secret": secret,
                "folder": str(self._plugin), "journal": str(journal)}  # fmt: skip
        question.write_text(json.dumps(told), encoding="utf-8")
        env = {"PYTHONPATH": process.joined_paths(str(self._plugin)), "WANDB_MODE": "offline", "WANDB_SILENT": "true",
               "WANDB_DIR": str(self._plugin)}  # fmt: skip
        env |= {"OMP_NUM_THREADS": str(threads)} if threads else {}
        argv = [self._context.python, "-m", f"{PACKAGE}.{program}", str(question), str(journal)]
        log = self.folder / name
        try:
            run = process.run(argv, cwd=self._context.root, timeout_s=limit_s, log=log, env=env)
        except OSError as error:
            return Probed(problem=f"it cannot be started: {error.strerror or error}")
        run = run.model_copy(update={"argv": ("python", "-m", f"{PACKAGE}._{program}", about, journal.name)})
        self.commands.append(CommandRecord(purpose=program, argv=run.argv, ended=run.ended, duration_s=run.duration_s))
        return self._read(run, journal, secret, log.with_suffix(".stderr.txt"))

    def _read(self, run: ProcessRun, journal: Path, secret: str, log: Path) -> Probed:
        entries, foreign = signed(journal, secret)
        clean = tuple({name: _clean(value) for name, value in entry.items()} for entry in entries)
        seen = Probed(process=run, entries=clean)
        problem = next(iter(seen.of("problem")), None)
        if foreign:
            return seen.model_copy(update={"problem": "the journal holds lines that are not its own"})
        if problem:
            told = {"problem": str(problem.get("what", "")), "place": location(problem.get("place"))}
            return seen.model_copy(update=told)
        if seen.of("end") and run.exit_code == 0:
            return seen
        crash = crash_of(written(log), self._context) if run.exit_code else None
        if crash and crash.error:
            said = ": ".join(part for part in (crash.error, crash.message) if part)
            return seen.model_copy(update={"problem": said, "place": crash.location})
        return seen.model_copy(update={"problem": f"it ended before it was done: {run.ended}"})


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


def signed(path: Path, secret: str) -> tuple[list[Entry], bool]:
    """Return the signed lines of a journal, and whether there are others."""
    entries: list[Entry] = []
    foreign = False
    try:
        with path.open("rb") as file:
            lines = file.read(MOST).splitlines()
    except OSError:
        return [], False
    for line in lines:
        digest, _, text = line.partition(b" ")
        known = hmac.new(secret.encode(), text, "sha256").hexdigest().encode()
        if hmac.compare_digest(digest, known):
            entries.append(json.loads(text))
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
