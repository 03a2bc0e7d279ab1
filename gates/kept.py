"""Evidence of an earlier run, taken again while all that it rests on is as it was.

It rests on every file of the project, its commits, the task and the options, the interpreter with its packages, the
environment, the machine and the day. Where only the text of Python files that tests can run is another, parts of it may
still hold (see `gates.evidence.lines.traced`). What a time limit, chance or a busy machine had a part in is not kept.
"""

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from gates import __version__, pipeline
from gates.check import WROTE, Earlier, EvidenceSet
from gates.checks.base_tests import BaseTests
from gates.child.asking import NETWORK
from gates.child.guardian import MARK, uninterrupted
from gates.child.noting import Noted
from gates.child.process import ProcessRun
from gates.code.units import Units
from gates.config import Context, Project
from gates.evidence.measurements import Measurements
from gates.evidence.tests.pytest_run import PytestRun
from gates.measuring import machine
from gates.measuring.taken import MeasurementRun, Taken
from gates.model import Model
from gates.project.copies import LEFT_OUT, is_left_out
from gates.project.files import files_of
from gates.project.revision import digest_folder, environment, git, observe
from gates.proving.changed_lines import ChangedLines
from gates.proving.emptied_code import EmptiedCode
from gates.report import Report
from gates.task.task import Selection, Task

STORE, REWRITTEN = Path(".gates", "kept"), Path(".gates", "rewritten")
# what evidence rests on, what tests can run, a line for each piece of evidence, and the report where all are kept
STATE, SOURCES, PIECES, REPORT = "state.json", "sources.json", "pieces.txt", "report.json"
SOME = "~"  # before a kind of which only a part is kept
MOST_RUNS, MOST_BYTES = 8, 256 * 1024**2
READ_WHOLE, MOST_LINKED = 4 * 1024**2, 50_000  # larger files are known by size and times, folders with more never
TERMINAL = "_ OLDPWD PWD SHLVL TERM_PROGRAM TMUX TMUX_PANE WINDOWID SSH_CLIENT SSH_CONNECTION SSH_TTY PS1"
ASIDE = frozenset({MARK, *TERMINAL.split()})
MEASURED = re.compile(r"\.coverage(\..+\.(pid)?\d+\.\w+)?")  # what `pytest --cov` leaves behind
UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError, SyntaxError, RecursionError)
MAPPED = re.compile(r"'(/[^'\n]+)'")  # where the finder of an editable install leads
ASK = "import json, sys; print(json.dumps([sys.version, sys.prefix, sys.base_prefix, *sys.path]))"
GIT = tuple(map(str.split, ("rev-parse --git-dir", "symbolic-ref -q HEAD", "show-ref --head", "ls-files --stage -z")))
RESTED_ON = (PytestRun.__name__, "EntryPointRuns")  # by other kinds, which are derived from them
PARTS = {"imports": "Startup", "measurement": "Measurements"}  # of which pieces of evidence notes may be


class State(NamedTuple):
    """All that evidence rests on but for what is `installed`: files, commits and index, and all `around` them."""

    files: Mapping[str, str]
    git: str
    around: str

    def name(self, installed: str) -> str:
        """Return what the evidence of the state is kept under."""
        whole = _digest([self.around, self.git, *(f"{path} {told}" for path, told in self.files.items())])
        return f"{whole}-{installed}"


def state_of(task: Task, context: Context, selection: Selection) -> State:
    """Return the present state of all that the evidence of a run rests on."""
    around = (
        [__version__, time.strftime("%x"), *map(" ".join, _files(Path(__file__).parent))],
        [task.model_dump_json(), repr(replace(context, evidence=Path(), rules=None)), repr(selection)],
        [_told(str(context.root / path)) for path in task.bundles],
        [_told(str(path)) for path in sorted(context.rules.glob("*"))] if context.rules else [],
        sorted(f"{name}={value}" for name, value in os.environ.items() if name not in ASIDE),
        [os.uname().nodename, *(f"{name}={value}" for name, value in sorted(environment(context).items()))],
        [*sorted(map(str, Path("/dev").glob("nvidia*"))), *(repr(machine.may_have(name)) for name in machine.DRIVERS)],
        [*_known(context.root)],
    )
    commits = _digest(git(context.root, *words) or "" for words in GIT)
    return State(dict(_files(context.root)), commits, _digest(map(_digest, around)))


def _known(root: Path) -> Iterator[str]:
    """Yield the files that git knows, and those that lie in the repository beside the project with their state."""
    top = git(root, "rev-parse", "--show-cdup") or "."
    for told in (git(root, "ls-files", "-tcoz", "--exclude-standard", "--", top) or "").split("\0"):
        tag, _, name = told.partition(" ")
        if name.startswith("../") or tag != "?":
            yield f"{told} {_told(str(root / name)) if name.startswith('../') else ''}"


def _digest(parts: Iterable[str]) -> str:
    return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogateescape")).hexdigest()


def takes(environ: Mapping[str, str]) -> bool:
    """Return whether a run may take evidence: never in continuous integration."""
    return environ.get("CI", "").lower() in {"", "0", "false", "no"}


def find(root: Path, state: State, installed: str, raw: Path) -> Earlier | None:
    """Return the run of a state, its raw files laid out, or of one of which the fewest files that tests run differ."""
    kinds, name = pipeline.kinds(), state.name(installed)
    found: list[tuple[bool, int, float, Path, dict[str, Any], list[str]]] = []
    for path in (root / STORE).glob(f"*-{installed}"):
        with suppress(*UNREADABLE):  # another run may take it away
            told = json.loads((path / STATE).read_text(encoding="utf-8"))
            if told["around"] == state.around and told["files"].keys() == state.files.keys():
                differing = [file for file, now in state.files.items() if told["files"][file] != now]
                found.append((path.name != name, len(differing), -path.stat().st_mtime, path, told, differing))
    for differs, _, _, folder, told, differing in sorted(found):
        with suppress(*UNREADABLE):
            texts = json.loads((folder / SOURCES).read_text(encoding="utf-8"))
            sources = {path: text.encode("utf-8", "surrogateescape") for path, text in texts.items()}
            links = [path for path in differing if "-> " in told["files"][path] + state.files[path]]
            changed = {"" if path in links else os.path.realpath(path): Path(path).read_bytes() for path in differing}
            if changed.keys() <= sources.keys():
                lines = filter(None, (folder / PIECES).read_text(encoding="utf-8").split("\n"))
                parts = (line.partition(" ") for line in lines)
                pieces = [(name, kinds[name.strip(SOME)].model_validate_json(text)) for name, _, text in parts]
                pairs = {path: (Units.of(sources[path]), Units.of(now)) for path, now in changed.items()}
                seen = EvidenceSet({type(piece): piece for _, piece in pieces})
                anew = differs or any(name == SOME + PytestRun.__name__ for name, _ in pieces)  # and what rests on it
                whole = {type(piece): piece for name, piece in pieces if not (anew or name.startswith(SOME))}
                if whole:
                    shutil.copytree(folder / "raw", raw, dirs_exist_ok=True, symlinks=True)
                    os.utime(folder)
                noted = {name: Noted.model_validate(each) for name, each in told["noted"].items()}
                return Earlier(seen, folder / "raw", told["at"], sources, pairs, noted, whole)
    return None


def again(root: Path, name: str, task: Task, context: Context) -> Report | None:
    """Return the report of a run of this very state, its raw files laid out, if these are those that it tells of."""
    folder, clock = root / STORE / name, time.monotonic()
    with suppress(*UNREADABLE):
        report = Report.model_validate_json((folder / REPORT).read_bytes())
        shutil.copytree(folder / "raw", context.evidence, dirs_exist_ok=True, symlinks=True)
        if report.evidence == digest_folder(context.evidence):
            os.utime(folder)
            now, took_s = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"), round(time.monotonic() - clock, 1)
            facts = {"started_at": now, "duration_s": took_s, "taken": f"evidence of the run of {report.started_at}"}
            gates = tuple(gate.model_copy(update={"duration_s": 0}) for gate in report.gates)
            revision = report.revision if report.revision.strays else observe(task, context)  # of reports git may tell
            return report.model_copy(update={**facts, "gates": gates, "revision": revision})
    return None


def keep(task: Task, root: Path, name: str, state: State, evidence: EvidenceSet, raw: Path, report: Report) -> None:
    """Keep what would be the same again; a folder that cannot be written keeps nothing."""
    shutil.rmtree(root / STORE / name, ignore_errors=True)  # which may be better than it should
    inside = all((root / file.path).resolve().is_relative_to(root.resolve()) for file in report.revision.files)
    online = {PARTS.get(name.split(" ")[0], name) for name, noted in evidence.noted.items() if noted.doubt in NETWORK}
    online |= {"CalledCode"} if online & {"EntryPointRuns", "Measurements"} else set()
    lasting = {kind.__name__: piece for kind, piece in evidence.present.items() if piece.lasting}
    kept = {name: piece for name, piece in lasting.items() if not (name in online or _in_doubt(piece))}
    if (seen := evidence.get(Measurements)) and Measurements.__name__ not in {*kept, *online}:
        certain = tuple(run for run in seen.runs if not _in_doubt(run))
        kept[SOME + Measurements.__name__] = seen.model_copy(update={"runs": certain})
    if (tests := evidence.get(PytestRun)) and tests.online and PytestRun.__name__ in kept:
        kept[SOME + PytestRun.__name__] = kept.pop(PytestRun.__name__)
    size = sum(path.lstat().st_size for path in raw.rglob("*"))
    is_whole = kept.keys() == lasting.keys()
    wrote = not is_whole and any(noted.doubt == WROTE for noted in evidence.noted.values())  # what others miss
    unsure = any(_in_doubt(lasting[kind]) for kind in RESTED_ON if kind in lasting)
    is_state = inside and not any(finding.rule == "GT002" for finding in report.findings)
    if unsure or wrote or not is_state or size > MOST_BYTES:
        return
    with suppress(OSError):
        (root / STORE).mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=root / STORE, prefix=".new-", ignore_cleanup_errors=True) as folder:
            shutil.copytree(raw, (draft := Path(folder)) / "raw", symlinks=True)
            run = [path for path in files_of((*task.implementation, *task.tests), root) if path.suffix == ".py"]
            sources = {os.path.realpath(path): path.read_bytes().decode("utf-8", "surrogateescape") for path in run}
            notes = {name: noted.model_dump() for name, noted in evidence.noted.items()}
            facts = {"at": report.started_at, "around": state.around, "files": state.files, "noted": notes}
            (draft / STATE).write_text(json.dumps(facts), encoding="utf-8")
            (draft / SOURCES).write_text(json.dumps(sources), encoding="utf-8")
            if is_whole and not evidence.unseen:
                (draft / REPORT).write_text(report.model_dump_json(by_alias=True), encoding="utf-8")
            with (draft / PIECES).open("w", encoding="utf-8") as file:  # at once it would take a hundred megabytes
                file.writelines(f"{kind} {piece.model_dump_json(by_alias=True)}\n" for kind, piece in kept.items())
            draft.rename(root / STORE / name)
        for old in sorted((root / STORE).iterdir(), key=lambda path: path.stat().st_mtime)[:-MOST_RUNS]:
            shutil.rmtree(old, ignore_errors=True)


def _in_doubt(value: object) -> bool:
    """Return whether the same state might be seen otherwise: chance or a time limit had a part in it."""
    match value:
        case tuple():
            return any(map(_in_doubt, value))
        case PytestRun():
            return not value.complete or bool(value.unstable) or _in_doubt((value.process, value.repeats))
        case EmptiedCode():
            doubt = value.in_doubt
        case ChangedLines():
            doubt = value.untried > 0
        case ProcessRun():
            doubt = value.timed_out or bool(value.signal)
        case Taken():
            doubt = value.ended != "decided"
        case MeasurementRun():
            doubt = bool(value.problem) and machine.may_have(value.device)
        case BaseTests():
            doubt = bool(value.problem)
        case _:
            doubt = False
    return doubt or (isinstance(value, Model) and any(_in_doubt(inner) for _, inner in value))


def said(earlier: Earlier | None, evidence: EvidenceSet) -> str:
    """Return, in words, how much of the evidence is of an earlier run, if any."""
    run, lasting = evidence.get(PytestRun), [piece for piece in evidence.present.values() if piece.lasting]
    kept = [piece for piece in lasting if earlier and piece is earlier.seen.get(type(piece))]
    if earlier is None or not (kept or (run and run.taken)):
        return ""
    tests = f"{len(run.taken)} of {len(run.tests)} tests" if run and run.taken and run not in kept else ""
    kinds = f"{len(kept)} of {len(lasting)} kinds of evidence" if kept else ""
    what = "evidence" if len(kept) == len(lasting) else " and ".join(filter(None, [tests, kinds]))
    return f"{what} of the run of {earlier.at}"


def _files(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each file and link of a folder with what tells its state, environments, caches and reports left out."""
    for here, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not is_left_out(Path(here, name)))
        links = [name for name in folders if Path(here, name).is_symlink()]
        for name in (*links, *sorted(name for name in names if not MEASURED.fullmatch(name))):
            path = os.path.join(here, name)  # noqa: PTH118  # of thousands
            yield path, _told(path, Path(os.path.realpath(folder)))


def _is_own(folder: Path, root: Path) -> bool:
    """Return whether a folder is of the project's own files, and not in an environment that lies among them."""
    inside = [each for each in (folder, *folder.parents) if each != root and each.is_relative_to(root)]
    return folder.is_relative_to(root) and not any(map(is_left_out, inside))


def _told(path: str, root: Path = Path(os.sep)) -> str:
    """Return what tells the state of a file: its contents, or size and times where it is large or linked elsewhere."""
    try:
        state = os.lstat(path)
        if os.path.islink(path):  # noqa: PTH114
            target = os.path.realpath(path)
            known = _is_own(Path(target), root) or root.is_relative_to(target)
            held = [_told(target)] if os.path.isfile(target) else [] if known else [*_held(target)]  # noqa: PTH113
            return f"-> {target} {_digest(held) if len(held) < MOST_LINKED else time.time_ns()}"
        if state.st_size > READ_WHOLE or not os.path.isfile(path):  # noqa: PTH113
            return f"{state.st_mode} {state.st_size} {state.st_mtime_ns} {state.st_ctime_ns} {state.st_ino}"
        return f"{state.st_mode} {hashlib.sha256(Path(path).read_bytes()).hexdigest()}"
    except OSError as error:
        return str(error.errno)


def _held(top: str) -> Iterator[str]:
    """Yield what a linked folder holds, links followed, so many at most."""
    found = (f"{here}/{name}" for here, inner, names in os.walk(top, followlinks=True) for name in (*inner, *names))
    for path in islice(found, MOST_LINKED):
        with suppress(OSError):
            yield f"{path} {(state := os.stat(path)).st_size} {state.st_mtime_ns}"  # noqa: PTH116  # of thousands


@contextmanager
def installed(project: Project) -> Iterator[Callable[[], str] | None]:
    """Digest the interpreter and every file that it may import, by sizes and times; yield what waits for it.

    There are tens of thousands: a fork looks at them meanwhile. Where nothing may be taken, it yields `None`.
    """
    if not takes(os.environ):
        yield None
        return
    read, write = os.pipe()
    with uninterrupted():
        if not (pid := os.fork()):
            try:
                os.closerange(0, write)  # whoever waits for their end waits for this process's parent
                os.closerange(write + 1, 256)  # more are not open yet
                os.write(write, _digest(_importable(project.root, project.python)).encode())
            finally:
                os._exit(0)
    os.close(write)
    with os.fdopen(read, encoding="ascii") as told:
        try:
            yield cache(lambda: told.read() or os.urandom(8).hex())  # of a fork that failed: like nothing else
        finally:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)


def _importable(root: Path, python: str) -> Iterator[str]:
    facts = [sys.version, sys.prefix, sys.base_prefix, *sys.path]
    if python != sys.executable:
        done = subprocess.run([python, "-c", ASK], capture_output=True, check=False, cwd=root, timeout=60)
        facts = json.loads(done.stdout) if not done.returncode else [os.urandom(8).hex(), "", ""]
    version, prefix, base, *paths = map(str, facts)
    yield f"{python} {version} {prefix} {base}"
    folders = [Path(path) for path in paths if path]
    libraries = [path for path in folders if path.name in {"site-packages", "dist-packages"}]
    finders = [finder for path in libraries for finder in sorted(path.glob("__editable__*.py"))]
    folders += [Path(found) for finder in finders for found in MAPPED.findall(finder.read_text(encoding="utf-8"))]
    for folder in dict.fromkeys(folders):
        yield f"{folder} {_told(str(folder)) if folder.is_file() else ''}"  # an archive
        is_standard = folder.is_relative_to(base) and folder not in libraries
        if folder.is_dir() and not is_standard and not _is_own(folder, root):
            yield from _times(str(folder))


def _times(top: str) -> Iterator[str]:
    """Yield each file below a folder with its size and time: a package manager changes them with the contents."""
    folders = [top]
    while folders:
        with suppress(OSError), os.scandir(folders.pop()) as found:
            for entry in found:
                if entry.is_dir(follow_symlinks=False):
                    if entry.name not in LEFT_OUT and entry.name[0] != ".":  # such as a cache in a checkout
                        folders.append(entry.path)
                elif not entry.name.endswith(".pyc"):
                    state = entry.stat(follow_symlinks=False)
                    yield f"{entry.path} {state.st_size} {state.st_mtime_ns}"
