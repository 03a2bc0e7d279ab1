"""Runs one of our programs in the project's interpreter, reads the journal that it seals, and what programs wrote."""

import hmac
import json
import re
import secrets
import shutil
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from pathlib import Path
from sys import intern
from typing import NamedTuple, Self

from gates.child import process
from gates.child.asking import command
from gates.child.forks import Warm, warm
from gates.child.process import Env, ProcessRun
from gates.child.warm import THREADS
from gates.config import Context
from gates.errors import Absent, EvidenceUnavailable
from gates.model import CommandRecord, Location, Model
from gates.project.copies import relocated
from gates.project.files import import_roots
from gates.task.task import Task
from gates.words import printable

UNTOLD = {"WANDB_MODE": "offline", "WANDB_SILENT": "1", "WANDB_ERROR_REPORTING": "0", "WANDB_DISABLE_GIT": "1"}
ONE_THREAD = {THREADS: "1"}
IMPORTED = ("torch", "torch._dynamo")  # half of what a program of training does
# what may be a fork of what has torch: it judges neither the time of a whole run nor what a process holds
FORKED = {"recorder.__main__", "concurrency", "scaling", "calculating"}
MOST = 256 * 1024 * 1024
SHARE = 0.8  # of the time limit, after which a program begins nothing new
Entry = dict[str, object]
Moved = tuple[Path, Path]


class Probed(Model):
    """What a program told, how it ended, and what went wrong, if anything did.

    `foreign` counts the lines of its journal that are somebody else's, `problem` is why it was not heard.
    """

    process: ProcessRun | None = None
    entries: tuple[Entry, ...] = ()
    foreign: int = 0
    problem: str = ""
    error: str = ""
    place: Location | None = None

    @classmethod
    def told(cls, journal: Path, secret: str, run: ProcessRun | None = None, moved: Moved | None = None) -> Self:
        """Return what a journal that was sealed with a secret tells; of what was moved, where it belongs."""
        entries, foreign = read_entries(journal, secret, moved)
        last = {str(entry["word"]): entry for entry in entries}
        problem, raised = last.get("problem", {}), last.get("raised", {})
        about = {"problem": problem.get("what", ""), "error": raised.get("what", "")}
        about["place"] = problem.get("place") or raised.get("place")
        return cls.model_validate({"process": run, "entries": entries, "foreign": foreign, **about})

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

    def __init__(self, context: Context, task: Task, folder: Path) -> None:
        self.context, self.folder = context, folder
        self._copy = context.apart()
        self._warm = context.warm() if context.warm else None
        self._about = {"paths": [str(path) for path in import_roots(task, self._copy)], "root": str(self._copy.root)}
        self.commands: list[CommandRecord] = []

    def ask(
        self, program: str, name: str, asked: Mapping[str, object], limit_s: float, env: Mapping[str, str] = ONE_THREAD
    ) -> Probed:
        """Run a program; `name` is that of its journal, `env` what its environment has beside ours."""
        question = Question(self.folder / f"{name}.jsonl", {**asked, **self._about, "seconds": SHARE * limit_s})
        env = {**UNTOLD, "WANDB_DIR": str(question.folder), **env}
        with question:
            argv = command(self.context.python, program, str(question.path))
            forked = program in FORKED and env.get(THREADS, "1") == "1"
            ran = self.run(argv, name, limit_s, env, self._warm if forked else None)
        if ran.process is None:
            return ran
        about = filter(None, [str(asked.get("call") or asked.get("shared") or "")])
        known = program.removesuffix(".__main__").rpartition(".")[2]
        run = ran.process.model_copy(update={"argv": ("python", "-m", f"gates_{known}", *about, f"{name}.jsonl")})
        self.commands.append(run.as_command(known.replace("_", " ")))
        seen = Probed.told(question.journal, question.secret, run, (self._copy.root, self.context.root))
        if run.exit_code and not seen.entries and "No module named 'torch'" in run.stderr.tail:
            return seen.model_copy(update={"problem": "the project's interpreter has no torch"})
        return seen

    def run(
        self, argv: Sequence[str], name: str, limit_s: float, env: Env | None = None, forks: Warm | None = None
    ) -> Probed:
        """Run a command in the copy; what it wrote then speaks of the project's own folder."""
        root, start = self._copy.root, forks.start if forks and forks.ready() else None
        env = {**relocated(process.environment(), self.context.root, root), **(env or {})}
        try:
            ended = process.run(argv, cwd=root, timeout_s=limit_s, log=self.folder / name, env=env, start=start)
        except EvidenceUnavailable as error:
            return Probed(problem=str(error))
        streams = {"stdout": ended.stdout, "stderr": ended.stderr}
        moved = {key: one.model_copy(update={"tail": self.moved(one.tail)}) for key, one in streams.items()}
        return Probed(process=ended.model_copy(update=moved))

    def moved(self, text: str) -> str:
        """Return a text that speaks of the project where it spoke of the copy."""
        return text.replace(str(self._copy.root), str(self.context.root))


def warming(context: Context, log: Path, stack: ExitStack) -> Warm | None:
    """Return what begins to import torch, until the stack is closed; none where it can't be had."""
    with suppress(EvidenceUnavailable):
        found = stack.enter_context(warm(context.python, context.root, log, {**process.environment(), **ONE_THREAD}))
        found.load([], "warm:load", IMPORTED)
        return found
    return None


def warmed(task: Task, context: Context, found: Warm | None) -> Warm | None:
    """Return what forks programs: not where a module that it has imported is of the copy, or has a name there."""
    copy = context.apart()
    if found:
        found.load([context.root, copy.root, *import_roots(task, copy)], "warm:load", IMPORTED)
    return found


class Question(AbstractContextManager["Question"]):
    """What a program is asked, in a file in a folder of its own, with a secret that seals its answers in a journal."""

    def __init__(self, journal: Path, asked: Mapping[str, object]) -> None:
        self.secret, self.journal, self.folder = secrets.token_hex(16), journal, journal.with_suffix(".asked")
        self.folder.mkdir(parents=True, exist_ok=True)
        self.path = self.folder / "question.json"
        told = {**asked, "secret": self.secret, "folder": str(self.folder), "journal": str(journal)}
        self.path.write_text(json.dumps(told), encoding="utf-8")

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)


def probing(task: Task, context: Context, key: str) -> Probe:
    """Return what runs the programs for a part of a task; raise `EvidenceUnavailable` where the task has none."""
    if not getattr(task, key):
        raise Absent(f"{task.path} names no {key!r}")
    return Probe(context, task, context.folder(key).evidence)


def read_entries(path: Path, secret: str, moved: Moved | None = None) -> tuple[list[Entry], int]:
    """Return the entries of a journal that were sealed with a secret, and how many lines are somebody else's."""
    was, now = (json.dumps(str(path))[1:-1] for path in moved or ("", ""))
    key, decoded = secret.encode(), json.JSONDecoder(parse_constant=lambda _: None).decode
    entries: list[Entry] = []
    foreign = size = 0
    with suppress(OSError), path.open("rb") as file:
        for line in file:
            size += len(line)
            if size > MOST or not line.endswith(b"\n"):  # its writer did not live to end it
                break
            seal, _, text = line[:-1].partition(b" ")
            foreign += 1
            if hmac.compare_digest(seal, b"=" + hmac.digest(key, text, "sha256").hex().encode()):
                with suppress(ValueError, TypeError, AttributeError):
                    said = text.decode("utf-8", "backslashreplace")
                    told = decoded(said.replace(was, now) if moved else said)
                    entries += [{intern(name): _clean(value) for name, value in each.items()} for each in told]
                    foreign -= 1
    return entries, foreign


def _clean(value: object) -> object:
    """Return what was told without what a terminal must not get."""
    if isinstance(value, str):
        return intern(printable(value))  # of each test, its id is told half a dozen times
    if isinstance(value, list):
        return [_clean(each) for each in value]
    return {printable(str(k)): _clean(v) for k, v in value.items()} if isinstance(value, dict) else value


HEAD = "Traceback (most recent call last):"
FRAME = re.compile(r'^[ \t+|]*File "(?P<path>[^"\n]+)", line (?P<line>\d+)(?:, in (?P<name>[^\n]*))?', re.MULTILINE)
ERROR = re.compile(r"^[^\W\d][\w.]*(?:: .*)?$")
LIMIT, READ = 500, 256 * 1024


class Crash(NamedTuple):
    """An uncaught exception: what it says in one line, and the innermost frame in the project, if there is one."""

    error: str
    location: Location | None
    function: str


def written(path: Path) -> str:
    """Return the end of what a process wrote into a file."""
    with suppress(OSError):
        return printable(path.read_bytes()[-READ:].decode("utf-8", errors="backslashreplace"))
    return ""


def crash_of(text: str, context: Context) -> Crash | None:
    """Return the crash that the last traceback of a text tells of, or `None` where there is none."""
    if HEAD not in text:
        return None
    last = text.rpartition(HEAD)[2]
    for match in reversed(list(FRAME.finditer(last))):
        path = context.root / match["path"]  # which may be absolute
        if int(match["line"]) and is_ours(path, context):
            location = Location(path=context.shown(path), line=int(match["line"]))
            return Crash(_error(last), location, (match["name"] or "").strip())
    return Crash(_error(last), None, "")


def _error(last: str) -> str:
    """Return what an exception says: the first line that stands out, also in an exception group's frame."""
    plain = [line for line in last.splitlines() if line.strip() and not line[0].isspace()]
    framed = [line.strip().lstrip("|+- ") for line in last.splitlines() if line.strip().startswith("| ")]
    return next((text[:LIMIT] for line in (*plain, *framed) if ERROR.match(text := line.strip())), "")


def is_ours(path: Path, context: Context) -> bool:
    """Return whether a file is the project's own, not one that is installed inside its folder, nor `<string>`."""
    inside = path.is_relative_to(context.root) and not {"site-packages", "dist-packages"} & set(path.parts)
    return inside and not any(part.startswith("<") for part in path.relative_to(context.root).parts)


def advice_on(error: str) -> str:
    """Return what to do about a module that is not there, or nothing where an error says nothing of one."""
    there = "for the interpreter that runs the project's code"
    if unknown := re.search(r"unrecognized arguments: (--[\w-]+)", error):
        plugin = "pytest-json-report" if "--json-report" in error else f"the pytest plugin that has {unknown[1]}"
        return f"Install {plugin} {there}, or name one by --python."
    if (found := re.search(r"No module named '?([^'.\s]+)(?:\.([^'\s]+))?", error)) is None:
        return ""
    if found[2]:  # what it lies in was found
        what = f"There is {found[1]}, and no {found[2]} in it"
        return f"{what}: fix the import, add the module, or install a version that has it."
    if found[1] == "pytest":
        return f"Install pytest and pytest-json-report {there}, or name another by --python."
    lacks = f"The interpreter that runs the project's code has no {found[1]}: install it there"
    remedy = "`pip install -e .`), or name one that has it by --python. If there is no such module, fix the import."
    return f"{lacks} (the project itself: {remedy}"
